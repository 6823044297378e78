"""Parameters of plans: declared, used and set."""

from tests.compiler.bad_plans.table import BadPlan, plan

PARAMETERS = [
    BadPlan(
        "a setting from a parameter that does not exist",
        plan("limit (houses, $cout : out)", header="PARAM: count = 2"),
        ["6:20: unknown parameter 'cout'; did you mean 'count'?"],
    ),
    BadPlan(
        "a parameter that does not exist inside a string",
        plan(
            "select (houses, \"city = '${town}' and beds > ${beds}\" : out)",
            header='PARAM: town2 = "Irvine", beds = 2',
        ),
        ["6:30: unknown parameter 'town'; did you mean 'town2'?"],
    ),
    BadPlan(
        "a placeholder that names nothing",
        plan("select (houses, \"city = '${}'\" : out)"),
        ["5:30: '${' names no parameter; the two characters themselves are written '$${'"],
    ),
    BadPlan(
        "an option from a parameter that does not exist",
        plan("limit (houses, 2 : out) {OFFSET: $skip}"),
        ["5:38: unknown parameter 'skip'"],
    ),
    BadPlan(
        "a call that leaves a parameter unset",
        plan("first (houses : out)")
        + plan("limit (houses, $count : out)", header="PARAM: count", name="first"),
        ["5:5: first needs its parameter 'count': {COUNT: …}"],
    ),
    BadPlan(
        "a call with a misspelt parameter",
        plan("first (houses : out) {COUNTS: 3; COUNT: 2}")
        + plan("limit (houses, $count : out)", header="PARAM: count", name="first"),
        ["5:27: first has no parameter 'COUNTS'; did you mean 'COUNT'?"],
    ),
    BadPlan(
        "a call with a parameter that nothing resembles",
        plan('first (houses : out) {COUNT: 2; TABLE: "x"}')
        + plan("limit (houses, $count : out)", header="PARAM: count", name="first"),
        ["5:37: first has no parameter 'TABLE'"],
    ),
    BadPlan(
        "a call with a parameter set twice",
        plan("first (houses, 2 : out) {COUNT: 3}")
        + plan("limit (houses, $count : out)", header="PARAM: count", name="first"),
        ["5:37: first: 'count' is given twice"],
    ),
    BadPlan(
        "a call that passes on a parameter that does not exist",
        plan("first (houses : out) {COUNT: $n}")
        + plan("limit (houses, $count : out)", header="PARAM: count", name="first"),
        ["5:34: unknown parameter 'n'"],
    ),
    BadPlan(
        "a mutual recursion entered where a parameter is unset",
        plan("ping (houses : out) {N: 1}")
        + plan("pong (houses : rest)", "limit (rest, $n : out)", header="PARAM: n", name="ping")
        + plan("ping (houses : rest)", "limit (rest, $m : out)", header="PARAM: m", name="pong"),
        ["13:5: pong needs its parameter 'm': {M: …}"],
    ),
    BadPlan(
        "a parameter that is declared twice",
        plan("limit (houses, $count : out)", header="PARAM: count = 1, Count = 2"),
        ["4:21: the parameter 'Count' is declared twice"],
    ),
    BadPlan(
        "a parameter that every plan has",
        plan("log (houses, $run-id : out)", header="PARAM: run-id = 1"),
        ["4:10: every plan has a parameter 'run-id' already"],
    ),
    BadPlan(
        "a parameter named like a clause",
        plan("limit (houses, $workers : out)", header="PARAM: workers = 1"),
        ["4:10: 'workers' cannot be a parameter: every statement has an option WORKERS"],
    ),
    BadPlan(
        "a default that uses a later parameter",
        plan('log (houses, "${a} ${b}" : out)', header='PARAM: a = "${b}", b = "x"'),
        ["4:14: the default of 'a' may use the parameters before it only"],
    ),
    BadPlan(
        "a default of the wrong type",
        plan("limit (houses, $count : out)", header='PARAM: count = "many"'),
        ["6:20: limit: 'count' must be a whole number, 0 or more, not 'many'"],
    ),
    BadPlan(
        "a call that sets a parameter to the wrong type",
        plan('first (houses : out) {COUNT: "few"}')
        + plan("limit (houses, $count : out)", header="PARAM: count", name="first"),
        ["13:20: limit: 'count' must be a whole number, 0 or more, not 'few' (when called on line 5 of p)"],
    ),
    BadPlan(
        "a default that leaves no workers",
        plan("limit (houses, 2 : out) {WORKERS: $n}", header="PARAM: n = 0"),
        ["6:39: WORKERS must be a whole number of at least 1, not 0"],
    ),
    BadPlan(
        "a parameter without its dollar sign",
        plan("limit (houses, count : out)", header="PARAM: count = 2"),
        [
            "6:20: 'count' is a variable, but limit takes the constant 'count' here; the parameter is "
            "written $count"
        ],
    ),
    BadPlan(
        "a variable that is a parameter",
        plan("union (houses, count : out)", header="PARAM: count = 2"),
        ["6:20: unknown variable 'count'; the parameter is written $count"],
    ),
]
