"""Statements that wait for each other."""

from tests.compiler.bad_plans.table import BadPlan, plan

GRAPH = [
    BadPlan(
        "a statement that reads its own output",
        plan("union (houses, out : out)"),
        ["5:5: union waits for its own output 'out'; a loop is a plan that calls itself"],
    ),
    BadPlan(
        "two statements that read each other",
        plan("union (houses, rest : all)", "limit (all, 2 : rest)", 'sort (all, "price" : out)'),
        [
            "5:5: these statements wait for each other: union (line 5) -> 'all' -> limit (line 6) -> "
            "'rest' -> union (line 5); a loop is a plan that calls itself"
        ],
    ),
    BadPlan(
        "a statement that waits for what comes of it",
        plan("limit (houses, 2 : few) {WAIT: out}", 'sort (few, "price" : out)'),
        [
            "5:5: these statements wait for each other: limit (line 5) -> 'few' -> sort (line 6) -> "
            "'out' -> limit (line 5)"
        ],
    ),
    BadPlan(
        "two statements that wait for each other's signals",
        plan(
            'emit (houses, "x") {WAIT: b; DONE: a}',
            'emit (houses, "y") {WAIT: a; DONE: b}',
            "limit (houses, 1 : out)",
        ),
        [
            "5:5: these statements wait for each other: emit (line 5) -> 'a' -> emit (line 6) -> 'b' "
            "-> emit (line 5)"
        ],
    ),
    BadPlan(
        "a statement that waits for its own signal",
        plan("limit (houses, 2 : out) {WAIT: ready; ENABLE: ready}"),
        ["5:5: limit waits for its own signal 'ready'"],
    ),
    BadPlan(
        "a cycle through errors",
        plan("union (failed : all) {ALL}", 'project (all, "city" : out) {ERRORS: failed}'),
        [
            "5:5: these statements wait for each other: union (line 5) -> 'all' -> project (line 6) "
            "-> 'failed' -> union (line 5); a loop is a plan that calls itself"
        ],
    ),
    BadPlan(
        "a cycle of data and a signal",
        plan("limit (houses, 9 : few) {WAIT: told}", 'sort (few, "price" : out)', "log (out) {DONE: told}"),
        [
            "5:5: these statements wait for each other: limit (line 5) -> 'few' -> sort (line 6) -> "
            "'out' -> log (line 7) -> 'told' -> limit (line 5)"
        ],
    ),
    BadPlan(
        "a long cycle",
        plan(
            "limit (v0, 1 : v1)",
            "limit (v1, 1 : v2)",
            "limit (v2, 1 : v3)",
            "limit (v3, 1 : v4)",
            "limit (v4, 1 : v5)",
            "limit (v5, 1 : v6)",
            "limit (v6, 1 : v7)",
            "limit (v7, 1 : v8)",
            "limit (v8, 1 : v0)",
            "union (v0 : out)",
            inputs="",
        ),
        [
            "5:5: these statements wait for each other: limit (line 5) -> 'v1' -> limit (line 6) -> "
            "'v2' -> limit (line 7) -> 'v3' -> limit (line 8) -> 'v4' -> limit (line 9) -> 'v5' -> 3 "
            "more -> limit (line 13) -> 'v0' -> limit (line 5); a loop is a plan that calls itself"
        ],
    ),
    BadPlan(
        "two cycles",
        plan(
            "limit (a, 1 : a)",
            "limit (houses, 1 : out)",
            "union (b, c : d)",
            "limit (d, 1 : b)",
            "limit (d, 2 : c)",
        ),
        [
            "5:5: limit waits for its own output 'a'; a loop is a plan that calls itself",
            "7:5: these statements wait for each other: union (line 7) -> 'd' -> limit (line 8) -> "
            "'b' -> union (line 7); a loop is a plan that calls itself",
        ],
    ),
]
