"""Names of operators, plans, variables and signals."""

from tests.compiler.bad_plans.table import BadPlan, plan

NAMES = [
    BadPlan(
        "an operator that is misspelt",
        plan('selct (houses, "beds > 2" : out)'),
        ["5:5: unknown operator 'selct'; did you mean 'select'?"],
    ),
    BadPlan(
        "an operator that is not installed",
        plan('translate (houses, "xml" : out)'),
        ["5:5: unknown operator 'translate'"],
    ),
    BadPlan(
        "a plan that is misspelt",
        plan("get_url (houses : out)") + plan("limit (houses, 1 : out)", name="get_urls"),
        ["5:5: unknown operator 'get_url'; did you mean 'get_urls'?"],
    ),
    BadPlan(
        "a variable that is misspelt",
        plan('select (houses, "beds > 2" : chosen)', "limit (choosen, 3 : out)"),
        ["6:12: unknown variable 'choosen'; did you mean 'chosen'?"],
    ),
    BadPlan(
        "a variable that nothing resembles",
        plan("union (houses, zebra : out)"),
        ["5:20: unknown variable 'zebra': nothing produces it"],
    ),
    BadPlan(
        "a variable with two producers",
        plan("limit (houses, 3 : out)", 'sort (houses, "price" : out)'),
        ["6:29: 'out' has two producers: limit (line 5) and sort (line 6)"],
    ),
    BadPlan(
        "a variable with three producers",
        plan("limit (houses, 1 : x)", "limit (houses, 2 : x)", "limit (houses, 3 : x)", "union (x : out)"),
        ["6:24: 'x' has 3 producers: limit (line 5), limit (line 6) and limit (line 7)"],
    ),
    BadPlan(
        "a variable that one statement produces twice",
        plan("null (houses, sold, houses : out, out)", inputs="houses, sold"),
        ["5:39: 'out' is produced twice by null (line 5)"],
    ),
    BadPlan(
        "an input that is produced as well",
        plan('select (houses, "beds > 2" : houses)', "limit (houses, 2 : out)"),
        ["5:34: 'houses' has two producers: the plan's INPUT and select (line 5)"],
    ),
    BadPlan(
        "an input that is declared twice",
        plan("union (a, b : out)", inputs="a, b, a"),
        ["2:16: the input 'a' is named twice"],
    ),
    BadPlan(
        "an output that is named twice",
        plan("limit (a, 2 : out)", inputs="a", outputs="out, out"),
        ["3:16: the output 'out' is named twice"],
    ),
    BadPlan(
        "a misspelt output of the plan",
        plan("limit (houses, 2 : result)", outputs="resutl"),
        ["3:11: nothing produces the output 'resutl'; did you mean 'result'?"],
    ),
    BadPlan(
        "an output of the plan that nothing resembles",
        plan('emit (houses, "x")', outputs="zebra"),
        ["3:11: nothing produces the output 'zebra'"],
    ),
    BadPlan(
        "an underscore that is read",
        plan("null (houses, houses, houses : _, some)", "union (some, _ : out)"),
        ["6:18: '_' cannot be read: it stands for outputs that are not needed"],
    ),
    BadPlan(
        "an underscore that is waited for",
        plan("limit (houses, 2 : out) {WAIT: _}"),
        ["5:36: '_' cannot be read: it stands for outputs that are not needed"],
    ),
    BadPlan(
        "an underscore as an input of the plan",
        plan("limit (a, 2 : out)", inputs="a, _"),
        ["2:13: '_' cannot be an input of a plan: it cannot be named"],
    ),
    BadPlan(
        "an underscore as an output of the plan",
        plan("limit (a, 2 : _)", inputs="a", outputs="_"),
        ["3:11: '_' cannot be an output of a plan: it cannot be named"],
    ),
    BadPlan(
        "an underscore as a signal",
        plan("limit (houses, 2 : out) {ENABLE: _}"),
        ["5:38: '_' cannot be a signal: no statement can wait for it"],
    ),
    BadPlan(
        "an underscore that carries errors",
        plan("limit (houses, 2 : out) {ERRORS: _}"),
        ["5:38: '_' cannot carry errors; ERRORS: skip drops them"],
    ),
    BadPlan(
        "a signal that is read as data",
        plan('emit (houses, "x") {ENABLE: told}', "union (houses, told : out)"),
        ["6:20: 'told' is a signal (ENABLE of emit (line 5)), not data: only WAIT can name it"],
    ),
    BadPlan(
        "a signal as an output of the plan",
        plan('emit (houses, "x") {DONE: told}', outputs="told"),
        ["3:11: 'told' is a signal (DONE of emit (line 5)), not data: only WAIT can name it"],
    ),
    BadPlan(
        "a signal named like a variable",
        plan("limit (houses, 2 : out)", 'emit (houses, "x") {ENABLE: out}'),
        ["6:33: 'out' has two producers: limit (line 5) and ENABLE of emit (line 6)"],
    ),
    BadPlan(
        "a signal that two statements send",
        plan(
            'emit (houses, "x") {DONE: told}',
            "log (houses) {DONE: told}",
            "limit (houses, 1 : out) {WAIT: told}",
        ),
        ["6:25: 'told' has two producers: DONE of emit (line 5) and DONE of log (line 6)"],
    ),
    BadPlan(
        "one name for both signals of a statement",
        plan('emit (houses, "x" : out) {ENABLE: told; DONE: told}', "log (out) {WAIT: told}"),
        ["5:51: 'told' has two producers: ENABLE of emit (line 5) and DONE of emit (line 5)"],
    ),
    BadPlan(
        "errors named like an output",
        plan("limit (houses, 1 : out) {ERRORS: out}"),
        ["5:38: 'out' has two producers: limit (line 5) and ERRORS of limit (line 5)"],
    ),
    BadPlan(
        "errors named like an input of the plan",
        plan("limit (houses, 1 : out) {ERRORS: houses}"),
        ["5:38: 'houses' has two producers: the plan's INPUT and ERRORS of limit (line 5)"],
    ),
    BadPlan(
        "a misspelt signal",
        plan(
            'emit (houses, "x") {DONE: mailed}',
            "limit (houses, 2 : out) {WAIT: maild}",
            "log (houses) {WAIT: mailed}",
        ),
        ["6:36: no statement sends the signal 'maild'; did you mean 'mailed'?"],
    ),
    BadPlan(
        "a signal that nobody sends",
        plan("limit (houses, 2 : out) {WAIT: godot}"),
        ["5:36: no statement sends the signal 'godot'"],
    ),
    BadPlan(
        "a plan named like an operator",
        plan("limit (houses, 2 : out)", name="Union"),
        ["1:6: the plan 'Union' is named like an operator"],
    ),
    BadPlan(
        "a missing colon",
        plan('project (houses, "city", cities)', "distinct (cities : out)"),
        ["5:30: a ':' is missing before 'cities': it is used as an output"],
    ),
    BadPlan(
        "a missing colon behind any number of inputs",
        plan("union (houses, more, all)", "limit (all, 2 : out)", inputs="houses, more"),
        ["5:26: a ':' is missing before 'all': it is used as an output"],
    ),
]
