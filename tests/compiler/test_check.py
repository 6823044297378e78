"""The checker: what it accepts, what it warns of, in which order it reports, and how fast it is.

The mistakes that it finds are in tests/bad_plans.
"""

import random
import re
from collections.abc import Mapping
from typing import Any

import pytest

from aioflow.compiler.check import check
from aioflow.errors import Diagnostic, PlanError
from aioflow.language import parse
from aioflow.plan import InputDeclaration, Option, Parameter, Plan, Program, Setting, Statement, Variable
from aioflow.relation import Schema
from tests.clocks import effort_at_most
from tests.compiler.bad_plans.fakes import fakes

REGISTRY = fakes()


def program(*texts: str) -> Program:
    """The plans of some texts; the first is the main plan."""
    files = [parse(text, f"{place}.plan") for place, text in enumerate(texts)]
    plans = tuple(entry for file in files for entry in file.entries if isinstance(entry, Plan))
    return Program(plans[0], plans)


def found(
    *texts: str,
    inputs: Mapping[str, Schema | None] | None = None,
    parameters: Mapping[str, Any] | None = None,
) -> list[str]:
    """What the check finds, as `line:column: message` or `line:column: warning: message`."""
    diagnostics = check(program(*texts), REGISTRY, inputs=inputs, parameters=parameters)
    return [str(diagnostic).partition("\n")[0].removeprefix("0.plan:") for diagnostic in diagnostics]


def body(statements: str, inputs: str = "a", outputs: str = "out", more: str = "", name: str = "p") -> str:
    """A plan whose statements begin in line 5."""
    return f"PLAN {name} {{ {more}\nINPUT: {inputs}\nOUTPUT: {outputs}\nBODY {{\n{statements}\n}} }}\n"


HOUSES = """
PLAN watch {
  INPUT: criteria (city char)
  OUTPUT: houses
  BODY {
    fetch ("search", criteria : page) {ERRORS: skip}
    urls (page : found)
    diff (found : new) {TABLE: "seen"}
    fetch ("detail", new : details) {ERRORS: failed; WORKERS: 8}
    same (details : houses)
    store (houses, "mail" : _) {DONE: mailed}
    load ("update" : _) {WAIT: mailed}
    store (failed, "log")
  }
}
PLAN urls {
  INPUT: page
  OUTPUT: all
  BODY {
    keep (page, "url" : here)
    fetch ("next", page : next-page)
    urls (next-page : rest)
    merge (here, rest : all)
  }
}
PLAN diff {
  INPUT: new
  OUTPUT: changed
  PARAM: table, key = "${table}-key"
  BODY {
    load ($table : old)
    subtract (new, old : changed)
    store (changed, "${key}")
  }
}
"""


def test_a_good_program_has_only_the_warnings_it_deserves() -> None:
    assert found(HOUSES) == ["12:5: warning: load has no effect, and its results are not read"]


def test_everything_is_reported_in_the_order_of_the_text_the_main_file_first() -> None:
    second = body("sam (a : x)\nsam (x : out)", name="other")
    first = body("zebra (a : b)\nother (b, b : c)\nmerge (c, d : e)", outputs="out")
    assert found(first, second) == [
        "3:9: nothing produces the output 'out'",
        "5:1: unknown operator 'zebra'",
        "6:11: other takes 1 input, not 2: other (a : out)",
        "7:11: unknown variable 'd': nothing produces it",
        "1.plan:5:1: unknown operator 'sam'; did you mean 'same'?",
        "1.plan:6:1: unknown operator 'sam'; did you mean 'same'?",
    ]


def test_a_message_shows_the_line_and_a_caret_inside_a_string() -> None:
    [diagnostic] = check(program(body('keep (a, "x, z" : out)', inputs="a (x, y)")), REGISTRY)
    assert str(diagnostic) == (
        "0.plan:5:14: unknown attribute 'z' (there are: x, y)\n"
        '    keep (a, "x, z" : out)\n'
        "                 ^"
    )


def test_the_caret_counts_escapes_and_parameters_as_they_are_written() -> None:
    text = body(r'keep (a, "\x78, ${name}, z" : out)', inputs="a (x, longer)", more='PARAM: name = "longer"')
    assert found(text) == ["5:26: unknown attribute 'z' (there are: x, longer)"]


def test_the_caret_stands_in_the_right_line_of_a_long_string() -> None:
    text = body('keep (a, """x,\n  z""" : out)', inputs="a (x)")
    assert found(text) == ["6:3: unknown attribute 'z' (there are: x)"]


# --- plans built in Python ----------------------------------------------------------------------

A, B, OUT = Variable("a"), Variable("b"), Variable("out")


def test_a_plan_without_a_text_gets_messages_that_name_the_statement() -> None:
    statements = (
        Statement("same", (A,), (B,)),
        Statement("keep", (B,), (OUT,)),
        Statement("same", (A,), (OUT,)),
    )
    plan = Plan("built", (InputDeclaration("a"),), (OUT, Variable("x")), statements)
    assert [str(diagnostic) for diagnostic in check(Program(plan), REGISTRY)] == [
        "built: nothing produces the output 'x'",
        "built: statement 2 (keep): keep needs 'attributes': keep (rows, \"attributes\" : out)",
        "built: statement 3 (same): 'out' has two producers: keep (statement 2) and same (statement 3)",
    ]


def test_the_limits_of_a_plan_built_in_python_are_checked() -> None:
    statements = (Statement("same", (A,), (OUT,)),)
    plan = Plan("built", (InputDeclaration("a"),), (OUT,), statements, max_depth=0, once="")
    assert [str(diagnostic) for diagnostic in check(Program(plan), REGISTRY)] == [
        "built: MAX_DEPTH must be at least 1, not 0",
        "built: ONCE names no attribute",
    ]


def test_parameters_of_a_plan_built_in_python_are_checked() -> None:
    statements = (Statement("same", (A, Setting("${x}")), (OUT,), options=(Option("WORKERS", (3,)),)),)
    plan = Plan("built", (InputDeclaration("a"),), (OUT,), statements, parameters=(Parameter("y", "${z}"),))
    assert [str(diagnostic) for diagnostic in check(Program(plan), REGISTRY)] == [
        "built: unknown parameter 'z'",
        "built: statement 1 (same): unknown parameter 'x'",
    ]


# --- what a run gives ---------------------------------------------------------------------------


def test_parameters_without_default_must_be_set_for_a_run() -> None:
    text = body('same (a, "${x} ${y}" : out)', more="PARAM: x, y")
    assert found(text) == []
    assert found(text, parameters={"X": 1}) == ["1:20: the parameter 'y' must be set"]


def test_a_run_may_set_only_parameters_that_exist() -> None:
    text = body('same (a, "${table}" : out)', more='PARAM: table = "t"')
    assert found(text, parameters={"tabel": "x"}) == [
        "1:6: p has no parameter 'tabel'; did you mean 'table'?"
    ]
    assert found(text, parameters={"TABLE": "x", "run-id": "r"}) == []


def test_the_parameters_of_a_run_are_checked_with_their_values() -> None:
    text = body('fetch (a, "s" : out) {TRIES: $n}', more="PARAM: n = 1")
    assert found(text, parameters={"n": "x"}) == ["5:30: fetch: 'tries' must be a whole number, not 'x'"]


def test_a_run_may_give_only_inputs_that_exist() -> None:
    text = body("same (a : out)")
    assert found(text, inputs={"b": None}) == ["1:6: p has no input 'b'"]


def test_the_schemas_of_a_run_are_checked() -> None:
    text = body('keep (a, "x" : out)')
    assert found(text) == []
    assert found(text, inputs={"a": Schema.of("y")}) == ["5:11: unknown attribute 'x' (there are: y)"]


# --- parameters and recursion -------------------------------------------------------------------


def test_a_recursive_call_keeps_the_parameters_that_it_does_not_set() -> None:
    recursive = body("p (a : rest)\nsame (rest, $note : more)\nmerge (a, more : out)", more="PARAM: note")
    assert found(recursive) == []


def test_a_mutual_recursion_keeps_parameters_only_inside_a_call_of_the_same_plan() -> None:
    main = body("ping (a : out) {N: 1}", name="main")
    ping = body('pong (a : rest)\nsame (rest, "${n}" : out)', more="PARAM: n", name="ping")
    pong = body("ping (a : out)", name="pong")
    assert found(main + ping + pong) == []
    assert found(body("pong (a : out)", name="main") + ping + pong) == [
        "18:1: ping needs its parameter 'n': {N: …}"
    ]


def test_built_in_parameters_exist_everywhere() -> None:
    assert found(body('same (a, "${run-id} ${Task-Id}" : b)\nsame (b, $started : out)')) == []


def test_a_recursion_without_inputs_or_limit_is_suspicious() -> None:
    text = body("p ( : rest)\nmerge (rest : out)", inputs="")
    warning = "5:1: warning: this recursive call of p has no inputs: nothing ends the recursion"
    assert found(text) == [warning]
    assert found(text.replace("PLAN p {", "PLAN p { MAX_DEPTH: 5")) == []


# --- no noise -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statements", "message"),
    [
        ('zebra (a : b)\nkeep (b, "x" : out)', "5:1: unknown operator 'zebra'"),
        ('keep (a, "z" : b)\nkeep (b, "y" : out)', "5:11: unknown attribute 'z' (there are: x)"),
        (
            "decide (a, a : b, c)\nmerge (b, c : out)",
            "5:1: decide takes 3 inputs, not 2: decide (d, dt, df : t, f)",
        ),
        ("same (aa : b)\nmerge (b, b : out)", "5:7: unknown variable 'aa'; did you mean 'a'?"),
        (
            "same (a, a, z : out)",
            '5:13: same takes 1 or 2 inputs, not 3: same (rows, [extra], ["note"] : out)',
        ),
        (
            "same (a : b)\nsame (b : b)\nsame (b : out)",
            "6:11: 'b' has two producers: same (line 5) and same (line 6)",
        ),
        (
            'fetch (a, "s" : b) {TRYS: 1}\nsame (b : out)',
            "5:21: fetch has no option 'TRYS'; did you mean 'TRIES'?",
        ),
        ("same (a : b)\nsame (a, $z : out)", "6:10: unknown parameter 'z'"),
        ("same (A : out)", "5:7: unknown variable 'A'; did you mean 'a'?"),
        ("merge (q7, a : b)\nmerge (q7, b : out)", "5:8: unknown variable 'q7': nothing produces it"),
        (
            "same (raw-details : all-details)\nsame (all-details : out)",
            "5:7: unknown variable 'raw-details': nothing produces it",
        ),
    ],
)
def test_one_mistake_gives_one_message(statements: str, message: str) -> None:
    assert found(body(statements, inputs="a (x)")) == [message]


def test_a_mistake_in_a_subplan_is_reported_once_for_all_its_calls() -> None:
    inner = body('keep (a, "z" : out)', inputs="a (x)", name="q")
    assert len(found(body("q (a : b)\nq (b : out)", inputs="a (x)") + inner)) == 1


def test_a_subplan_that_is_wrong_for_one_call_only_names_that_call() -> None:
    inner = body('keep (a, "z" : out)', name="q")
    main = body("q (a : b)\nq (c : d)\nmerge (b, d : out)", inputs="a (z), c (y)")
    assert found(main + inner) == ["13:11: unknown attribute 'z' (there are: y) (when called on line 6 of p)"]


# --- warnings -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "warnings"),
    [
        (
            body("same (a : out)\nsame (a : b)"),
            ["6:11: warning: 'b' is never read; an output that is not needed is written '_'"],
        ),
        (
            body("same (a : out)\nsame (a : b)\nsame (b : c)"),
            [
                "6:1: warning: nothing that same gives here reaches an output or an effect",
                "7:11: warning: 'c' is never read; an output that is not needed is written '_'",
            ],
        ),
        (
            body("same (a : out)\nsame (a : _)"),
            ["6:1: warning: same has no effect, and its results are not read"],
        ),
        (
            body('fetch (a, "s" : out) {ERRORS: failed}'),
            ["5:31: warning: 'failed' is never read; ERRORS: skip drops what fails, and counts it"],
        ),
        (body("same (a : out) {ENABLE: e}"), ["5:25: warning: no statement waits for the signal 'e'"]),
        (body("same (a : out) {DONE: d}"), ["5:23: warning: no statement waits for the signal 'd'"]),
        (body("same (a : out)", inputs="a, b"), ["2:11: warning: the input 'b' is never read"]),
        (body("same (a : out)", more="PARAM: x = 1"), ["1:17: warning: the parameter 'x' is never used"]),
        (
            body('same (a : out)\nstore (a, "t" : b) {DRY}\nsame (b : _)'),
            [
                "6:1: warning: nothing that store gives here reaches an output or an effect",
                "7:1: warning: same has no effect, and its results are not read",
            ],
        ),
        (
            body('store (a, "t" : b) {DONE: d}\nload ("t" : old) {WAIT: d}\nsubtract (b, old : out)'),
            [
                "7:1: warning: subtract reads 'old' to its end first, and that waits for 'd', "
                "which 'b' does not wait for"
            ],
        ),
        (
            body('decide (a, a, a : t, f)\nfetch (t, "s" : u)\nmerge (u, f : out)'),
            ["5:1: warning: t can never have a tuple"],
        ),
        (
            body("same (a : out)\nq (a : _)") + body("same (a : out)", name="q"),
            ["6:1: warning: q has no effect, and its results are not read"],
        ),
    ],
)
def test_what_looks_like_a_mistake_is_warned_of(text: str, warnings: list[str]) -> None:
    assert found(text) == warnings


@pytest.mark.parametrize(
    "text",
    [
        body("", inputs="a", outputs="a"),
        body('store (a, "t")', outputs=""),
        body('same (a : b)\nstore (b, "t")', outputs=""),
        body('same (a : b) {DONE: d}\nstore (a, "t") {WAIT: d}\nstore (b, "t")', outputs=""),
        body('same (a : _) {DONE: d}\nstore (a, "t") {WAIT: d}', outputs=""),
        body('same (a : b)\nstore (a, "t") {WAIT: b}', outputs=""),
        body('fetch (a, "s" : out) {ERRORS: e}\nstore (e, "t")'),
        body("decide (a, b, a : _, f)\nmerge (f, b : out)", inputs="a, b"),
        body("q (a : _)", outputs="") + body('store (a, "t" : out)', name="q"),
        body("q (a : _)", outputs="")
        + body("r (a : out)", name="q")
        + body('store (a, "t")\nsame (a : out)', name="r"),
        body('store (a, "t" : b) {DONE: d}\nload ("t" : old) {WAIT: d}\nsubtract (b, old : out) {WAIT: d}'),
        body('load ("t" : x) {WAIT: a}\nload ("u" : y) {WAIT: a}\nsubtract (x, y : out)'),
        body(
            'store (a, "t") {DONE: d}\nload ("t" : new) {WAIT: d}\n'
            'load ("u" : old)\nsubtract (new, old : out)'
        ),
        body('same (a, "$${x}" : out)'),
        body('decide (a, a, a : t, out)\nstore (t, "nothing new")'),
        body("decide (a, a, a : t, f)\nsame (t : u)\nmerge (u, f : out)"),
        body('decide (a, a, a : t, out)\nfetch (t, "s" : _) {DONE: d}\nstore (a, "x") {WAIT: d}'),
        body("same (a : out)", more='PARAM: x = 1, y = "${x}"').replace("same (a :", 'same (a, "${y}" :'),
    ],
)
def test_what_has_a_use_is_not_warned_of(text: str) -> None:
    assert found(text) == []


def test_warnings_about_use_wait_until_the_mistakes_are_mended() -> None:
    text = body("same (a : price-info)\nsame (pirce-info : out)")
    assert found(text) == ["6:7: unknown variable 'pirce-info'; did you mean 'price-info'?"]


def test_a_variable_that_is_made_anew_is_taken_for_a_loop() -> None:
    text = body('decide (a, a, b : next, urls)\nfetch (next, "s" : urls)\nmerge (urls : out)', inputs="a, b")
    assert found(text)[-2:] == [
        "6:20: 'urls' has two producers: decide (line 5) and fetch (line 6)",
        "6:20: warning: fetch (line 6) gives 'urls' anew from what decide (line 5) gives, as in a loop, "
        "but nothing recurs: p does not call itself",
    ]


def test_a_variable_that_is_assigned_again_is_no_loop() -> None:
    text = body("same (a : b)\nsame (b : b)\nsame (b : out)")
    assert found(text) == ["6:11: 'b' has two producers: same (line 5) and same (line 6)"]


# --- size and speed -----------------------------------------------------------------------------


def long_plan(length: int) -> Plan:
    statements = tuple(
        Statement("keep", (Variable(f"v{k}"), Setting("x")), (Variable(f"v{k + 1}"),)) for k in range(length)
    )
    return Plan("long", (InputDeclaration("v0", Schema.of("x")),), (Variable(f"v{length}"),), statements)


def test_a_plan_of_2000_statements_is_checked_in_well_under_a_second() -> None:
    plan = long_plan(2_000)
    with effort_at_most(40):
        assert check(Program(plan), REGISTRY) == []


def test_a_chain_of_5000_statements_is_checked() -> None:
    assert check(Program(long_plan(5_000)), REGISTRY) == []


def test_a_chain_of_1000_plans_is_checked() -> None:
    plans = [
        Plan(f"q{k}", (InputDeclaration("a"),), (OUT,), (Statement(f"q{k + 1}", (A,), (OUT,)),))
        for k in range(1_000)
    ]
    last = Plan("q1000", (InputDeclaration("a"),), (OUT,), (Statement("same", (A,), (OUT,)),))
    with effort_at_most(100):
        assert check(Program(plans[0], (*plans, last)), REGISTRY) == []


def test_a_cycle_of_5000_statements_is_found() -> None:
    statements = tuple(
        Statement("same", (Variable(f"v{k}"),), (Variable(f"v{(k + 1) % 5_000}"),)) for k in range(5_000)
    )
    [diagnostic] = check(Program(Plan("round", (), (Variable("v0"),), statements)), REGISTRY)
    assert "4994 more" in diagnostic.message


def test_a_plan_full_of_mistakes_is_checked_in_time() -> None:
    statements = tuple(
        Statement("same", (Variable(f"w{k}"), Setting("${p}")), (Variable(f"v{k % 500}"),))
        for k in range(2_000)
    )
    with effort_at_most(100):
        assert len(check(Program(Plan("bad", (), (), statements)), REGISTRY)) > 4_000


# --- robustness ---------------------------------------------------------------------------------

_TOKEN = re.compile(r'"[^"]*"|[\w$-]+|\S|\s+')


def mutated(text: str, chance: random.Random) -> str:
    """The text with a few tokens dropped, doubled or replaced by others of it."""
    tokens = _TOKEN.findall(text)
    for _ in range(chance.randint(1, 4)):
        place = chance.randrange(len(tokens))
        tokens[place] = chance.choice(["", tokens[place] * 2, chance.choice(tokens), "_", "$x", "7"])
    return "".join(tokens)


def test_no_mutation_of_a_program_brings_the_checker_down() -> None:
    chance = random.Random(1)
    checked = 0
    for _ in range(300):
        try:
            changed = program(mutated(HOUSES, chance))
        except (PlanError, IndexError):  # a text that cannot be read, or holds no plan
            continue
        checked += 1
        assert all(isinstance(each, Diagnostic) and each.span for each in check(changed, REGISTRY))
    assert checked > 30
