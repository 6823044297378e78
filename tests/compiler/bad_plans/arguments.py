"""Inputs, constants, outputs and options of statements and calls."""

from tests.compiler.bad_plans.table import BadPlan, plan

ARGUMENTS = [
    BadPlan(
        "an input too many",
        plan("limit (houses, houses, 2 : out)"),
        ['5:20: limit takes 1 input, not 2: limit (rel, "count", ["offset"] : out)'],
    ),
    BadPlan(
        "an input too few",
        plan("null (houses, houses : out, _)"),
        ["5:5: null takes 3 inputs, not 2: null (d, dt, df : t, f)"],
    ),
    BadPlan(
        "no input",
        plan("limit (2 : out)"),
        ['5:5: limit takes 1 input, none is given: limit (rel, "count", ["offset"] : out)'],
    ),
    BadPlan(
        "more inputs than an optional one allows",
        plan("select (houses, houses, houses : out)"),
        ['5:29: select takes 1 or 2 inputs, not 3: select (rel, [conditions], ["where"], ["cond"] : out)'],
    ),
    BadPlan(
        "a union of nothing",
        plan("union ( : out)", inputs=""),
        ['5:5: union takes at least 1 input, none is given: union (inputs, …, ["all"] : out)'],
    ),
    BadPlan(
        "a variable where a constant belongs",
        plan("project (houses, city : out)"),
        [
            "5:22: 'city' is a variable, but project takes the constant 'attributes' here; write it "
            'in quotes: project (rel, "attributes" : out)'
        ],
    ),
    BadPlan(
        "a variable in quotes",
        plan('project ("houses", "city" : out)'),
        ["5:14: 'houses' is a variable: write it without quotes"],
    ),
    BadPlan(
        "a variable in quotes among inputs",
        plan('minus (houses, "sold" : out)', inputs="houses, sold"),
        ["5:20: 'sold' is a variable: write it without quotes"],
    ),
    BadPlan(
        "a constant that no setting takes",
        plan('project (houses, "city", "price" : out)'),
        ['5:30: project takes 1 constant: project (rel, "attributes" : out)'],
    ),
    BadPlan(
        "a constant for an operator without settings",
        plan('null (houses, houses, houses, "city" : out)'),
        ["5:35: null takes no constants: null (d, dt, df : t, f)"],
    ),
    BadPlan(
        "an output too many",
        plan("limit (houses, 2 : out, rest)", "log (rest)"),
        ['5:29: limit has 1 output, not 2: limit (rel, "count", ["offset"] : out)'],
    ),
    BadPlan(
        "a setting that is missing",
        plan("join (houses, houses : out)"),
        ['5:5: join needs \'on\': join (left, right, "on", ["type"] : out)'],
    ),
    BadPlan(
        "a setting with a misspelt name",
        plan("limit (houses, cuont=2 : out)"),
        ["5:20: limit has no setting 'cuont'; did you mean 'count'?"],
    ),
    BadPlan(
        "a clause in the place of a setting",
        plan("limit (houses, 2, workers=3 : out)"),
        ["5:23: 'workers' is a clause, not a setting: write {WORKERS: …} after the ')'"],
    ),
    BadPlan(
        "an option that is misspelt",
        plan("union (houses, houses : out) {AL}"),
        ["5:35: union has no option 'AL'; did you mean 'ALL'?"],
    ),
    BadPlan(
        "a universal option that is misspelt",
        plan("limit (houses, 2 : out) {WORKRES: 2}"),
        ["5:30: limit has no option 'WORKRES'; did you mean 'WORKERS'?"],
    ),
    BadPlan(
        "an option that nothing resembles",
        plan('limit (houses, 2 : out) {TABLE: "x"}'),
        ["5:30: limit has no option 'TABLE'"],
    ),
    BadPlan(
        "a setting given in its place and as an option",
        plan("limit (houses, 2 : out) {COUNT: 3}"),
        ["5:37: limit: 'count' is given twice"],
    ),
    BadPlan(
        "an option given twice",
        plan("limit (houses, 2 : out) {OFFSET: 1; OFFSET: 2}"),
        ["5:49: limit: 'offset' is given twice"],
    ),
    BadPlan(
        "a universal option given twice",
        plan("limit (houses, 2 : out) {BUFFER: 1", "BUFFER: 2}"),
        ["6:5: option 'BUFFER' is given twice"],
    ),
    BadPlan(
        "an option without its value",
        plan("limit (houses, 2 : out) {OFFSET}"),
        ["5:30: option 'OFFSET' needs a value: a whole number, 0 or more"],
    ),
    BadPlan(
        "no workers",
        plan("limit (houses, 2 : out) {WORKERS: 0}"),
        ["5:39: WORKERS must be a whole number of at least 1, not 0"],
    ),
    BadPlan(
        "workers in words",
        plan("limit (houses, 2 : out) {WORKERS: many}"),
        ["5:39: WORKERS must be a whole number of at least 1, not 'many'"],
    ),
    BadPlan(
        "workers without a number",
        plan("limit (houses, 2 : out) {WORKERS}"),
        ["5:30: WORKERS needs a value: a whole number of at least 1"],
    ),
    BadPlan(
        "half a row in the buffer",
        plan("limit (houses, 2 : out) {BUFFER: 0.5}"),
        ["5:38: BUFFER must be a whole number of at least 1, not 0.5"],
    ),
    BadPlan(
        "an order that is neither true nor false",
        plan("limit (houses, 2 : out) {ORDERED: 3}"),
        ["5:39: ORDERED must be true or false, not 3"],
    ),
    BadPlan(
        "a call with an input too few",
        plan("merge_both (houses : out)")
        + plan("union (a, b : both)", inputs="a, b", outputs="both", name="merge_both"),
        ["5:5: merge_both takes 2 inputs, not 1: merge_both (a, b : both)"],
    ),
    BadPlan(
        "a call with an input too many",
        plan("merge_both (houses, houses, houses : out)")
        + plan("union (a, b : both)", inputs="a, b", outputs="both", name="merge_both"),
        ["5:33: merge_both takes 2 inputs, not 3: merge_both (a, b : both)"],
    ),
    BadPlan(
        "a call with an output too many",
        plan("merge_both (houses, houses : out, x)", "log (x)")
        + plan("union (a, b : both)", inputs="a, b", outputs="both", name="merge_both"),
        ["5:39: merge_both has 1 output, not 2: merge_both (a, b : both)"],
    ),
    BadPlan(
        "a call with an operator's option",
        plan("merge_both (houses, houses : out) {ALL}")
        + plan("union (a, b : both)", inputs="a, b", outputs="both", name="merge_both"),
        ["5:40: merge_both has no parameter 'ALL'"],
    ),
    BadPlan(
        "a call with a constant for a plan without parameters",
        plan("merge_both (houses, houses, 3 : out)")
        + plan("union (a, b : both)", inputs="a, b", outputs="both", name="merge_both"),
        ["5:33: merge_both takes no constants: merge_both (a, b : both)"],
    ),
    BadPlan(
        "three mistakes in one statement",
        plan("limit (houses, houses, 2 : out, _) {WORKERS: -1}"),
        [
            '5:20: limit takes 1 input, not 2: limit (rel, "count", ["offset"] : out)',
            '5:37: limit has 1 output, not 2: limit (rel, "count", ["offset"] : out)',
            "5:50: WORKERS must be a whole number of at least 1, not -1",
        ],
    ),
]
