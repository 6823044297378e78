"""Binding statements to operators and plans."""

import pytest

from aioflow.compiler.parameters import (
    UNKNOWN,
    ParameterScope,
    complete,
    place_before_substitution,
    substitute,
)
from aioflow.compiler.resolution import Resolved, resolve_statement, signature
from aioflow.errors import Diagnostic, SettingError
from aioflow.plan import (
    InputDeclaration,
    Option,
    Parameter,
    ParameterReference,
    Plan,
    Program,
    Setting,
    Statement,
    Variable,
    Word,
)
from tests.compiler.bad_plans.fakes import fakes

REGISTRY = fakes()
CALLED = Plan(
    "Diff",
    (InputDeclaration("new"),),
    (Variable("changed"), Variable("gone")),
    parameters=(Parameter("table", required=True), Parameter("Limit", 5)),
)
PROGRAM = Program(Plan("main"), (CALLED,))


def resolve(statement: Statement, *variables: str) -> tuple[Resolved | None, list[str]]:
    found: list[Diagnostic] = []
    resolved = resolve_statement(statement, PROGRAM, REGISTRY, found.append, variables)
    return resolved, [diagnostic.message for diagnostic in found]


def well(statement: Statement) -> Resolved:
    resolved, messages = resolve(statement)
    assert messages == []
    assert resolved is not None
    return resolved


def mistakes(statement: Statement, *variables: str) -> list[str]:
    _, messages = resolve(statement, *variables)
    assert messages
    return messages


A, B, OUT = Variable("a"), Variable("b"), Variable("out")


def test_variables_bind_to_inputs_and_constants_to_settings_in_any_mixture() -> None:
    resolved = well(Statement("FETCH", (Setting("site"), A, Setting(3)), (OUT,)))
    assert resolved.inputs == ("a",)
    assert resolved.settings == {"source": "site", "tries": 3}
    assert resolved.outputs == ("out",)
    assert resolved.target is REGISTRY.get("fetch")


def test_settings_bind_by_name_and_by_option_whatever_their_case() -> None:
    statement = Statement("fetch", (A, Setting("site", "Source")), (OUT,), options=(Option("TRIES", (2,)),))
    assert well(statement).settings == {"source": "site", "tries": 2}


def test_an_option_gives_a_text_for_a_word_a_tuple_for_several_values_and_true_for_a_flag() -> None:
    word = Statement("fetch", (A, Setting("s")), options=(Option("kind", (Word("json"),)),))
    several = Statement("fetch", (A,), options=(Option("source", ("x", Word("y"))),))
    flag = Statement("merge", (A, B), (OUT,), options=(Option("ALL"),))
    assert well(word).settings["kind"] == "json"
    assert well(several).settings["source"] == ("x", "y")
    assert well(flag).settings == {"all": True}


def test_an_optional_input_may_be_left_out_and_a_variadic_one_takes_all() -> None:
    assert well(Statement("same", (A,), (OUT,))).inputs == ("a",)
    assert well(Statement("same", (A, B), (OUT,))).inputs == ("a", "b")
    assert well(Statement("merge", (A, B, A), (OUT,))).inputs == ("a", "b", "a")


def test_outputs_that_nobody_needs_are_none() -> None:
    statement = Statement("decide", (A, A, B), (Variable("_"),))
    assert well(statement).outputs == (None, None)


def test_clauses_and_universal_options_find_their_places() -> None:
    statement = Statement(
        "fetch",
        (A, Setting("s")),
        (OUT,),
        wait=(Variable("w"),),
        enable=(Variable("e"),),
        done=(Variable("d"),),
        errors=Variable("failed"),
        options=(Option("WORKERS", (8,)), Option("ordered"), Option("BUFFER", (ParameterReference("n"),))),
    )
    resolved = well(statement)
    assert (resolved.wait, resolved.enable, resolved.done) == (("w",), ("e",), ("d",))
    assert (resolved.errors, resolved.skip_errors) == ("failed", False)
    assert (resolved.workers, resolved.ordered, resolved.buffer) == (8, True, ParameterReference("n"))


def test_errors_can_be_skipped() -> None:
    resolved = well(Statement("fetch", (A, Setting("s")), errors="skip"))
    assert (resolved.errors, resolved.skip_errors) == (None, True)


def test_a_call_sets_parameters_by_option_by_name_and_in_order() -> None:
    by_option = Statement("diff", (A,), (OUT,), options=(Option("TABLE", ("seen",)),))
    in_order = Statement("diff", (A, Setting("seen"), Setting(7, "LIMIT")), (OUT,))
    assert well(by_option).settings == {"table": "seen"}
    assert well(by_option).outputs == ("out", None)
    assert well(by_option).plan is CALLED
    assert well(in_order).settings == {"table": "seen", "limit": 7}


@pytest.mark.parametrize(
    ("statement", "messages"),
    [
        (Statement("fetsh", (A,)), ["unknown operator 'fetsh'; did you mean 'fetch'?"]),
        (Statement("dif", (A,)), ["unknown operator 'dif'; did you mean 'Diff'?"]),
        (Statement("zzz"), ["unknown operator 'zzz'"]),
        (
            Statement("keep", (A, B, Setting("x"))),
            ['keep takes 1 input, not 2: keep (rows, "attributes" : out)'],
        ),
        (
            Statement("keep", (Setting("x"),)),
            ['keep takes 1 input, none is given: keep (rows, "attributes" : out)'],
        ),
        (Statement("decide", (A, B)), ["decide takes 3 inputs, not 2: decide (d, dt, df : t, f)"]),
        (
            Statement("same", (A, A, A)),
            ['same takes 1 or 2 inputs, not 3: same (rows, [extra], ["note"] : out)'],
        ),
        (Statement("merge"), ['merge takes at least 1 input, none is given: merge (rows, …, ["all"] : out)']),
        (Statement("load", (A, Setting("t"))), ['load takes no inputs, not 1: load ("table" : out)']),
        (Statement("diff", (A, B)), ["Diff takes 1 input, not 2: Diff (new : changed, gone)"]),
        (
            Statement("keep", (A, Setting("x")), (OUT, B)),
            ['keep has 1 output, not 2: keep (rows, "attributes" : out)'],
        ),
        (Statement("keep", (A,)), ["keep needs 'attributes': keep (rows, \"attributes\" : out)"]),
        (
            Statement("keep", (A, Setting("x"), Setting("y"))),
            ['keep takes 1 constant: keep (rows, "attributes" : out)'],
        ),
        (
            Statement("keep", (A, B)),
            [
                "'b' is a variable, but keep takes the constant 'attributes' here; write it in quotes: "
                'keep (rows, "attributes" : out)'
            ],
        ),
        (
            Statement("keep", (A, Setting("x", "atributes"))),
            ["keep has no setting 'atributes'; did you mean 'attributes'?"],
        ),
        (
            Statement("fetch", (A, Setting("x"), Setting(2, "workers"))),
            ["'workers' is a clause, not a setting: write {WORKERS: …} after the ')'"],
        ),
        (
            Statement("fetch", (A, Setting("x")), options=(Option("TRYS", (2,)),)),
            ["fetch has no option 'TRYS'; did you mean 'TRIES'?"],
        ),
        (
            Statement("fetch", (A, Setting("x")), options=(Option("WORKER", (2,)),)),
            ["fetch has no option 'WORKER'; did you mean 'WORKERS'?"],
        ),
        (
            Statement("fetch", (A, Setting("x")), options=(Option("SOURCE", ("y",)),)),
            ["fetch: 'source' is given twice"],
        ),
        (
            Statement("fetch", (A,), options=(Option("Source"),)),
            ["option 'Source' needs a value: text"],
        ),
        (
            Statement("same", (A,), options=(Option("WORKERS", (0,)),)),
            ["WORKERS must be a whole number of at least 1, not 0"],
        ),
        (
            Statement("same", (A,), options=(Option("BUFFER", (True,)),)),
            ["BUFFER must be a whole number of at least 1, not True"],
        ),
        (
            Statement("same", (A,), options=(Option("buffer"),)),
            ["BUFFER needs a value: a whole number of at least 1"],
        ),
        (
            Statement("same", (A,), options=(Option("ORDERED", (Word("yes"),)),)),
            ["ORDERED must be true or false, not 'yes'"],
        ),
        (
            Statement("same", (A,), options=(Option("ORDERED"), Option("ordered"))),
            ["option 'ordered' is given twice"],
        ),
        (
            Statement("diff", (A,), options=(Option("TABEL", ("x",)),)),
            ["Diff has no parameter 'TABEL'; did you mean 'TABLE'?"],
        ),
        (
            Statement("diff", (A, Setting("x", "tabel"))),
            ["Diff has no parameter 'tabel'; did you mean 'table'?"],
        ),
        (Statement("same", (A,), options=(Option("WAIT", (Word("e"),)),)), ["WAIT takes names of variables"]),
    ],
)
def test_a_mistake_in_a_statement_is_reported(statement: Statement, messages: list[str]) -> None:
    assert mistakes(statement) == messages


def test_a_variable_in_quotes_is_recognised_where_inputs_are_missing() -> None:
    statement = Statement("keep", (Setting("details"), Setting("beds")), (OUT,))
    assert mistakes(statement, "details") == ["'details' is a variable: write it without quotes"]


def test_a_variable_in_quotes_is_recognised_where_no_constant_belongs() -> None:
    statement = Statement("subtract", (A, B, Setting("details")), (OUT,))
    assert mistakes(statement, "details") == ["'details' is a variable: write it without quotes"]


def test_every_mistake_of_a_statement_is_reported() -> None:
    statement = Statement("keep", (A, B, Setting("x")), (OUT, OUT), options=(Option("WORKERS", (-1,)),))
    assert len(mistakes(statement)) == 3


def test_the_signature_shows_what_is_optional() -> None:
    fetch, diff = REGISTRY.get("fetch"), CALLED
    assert fetch is not None
    assert signature(fetch) == 'fetch (rows, "source", ["tries"], ["kind"] : out)'
    assert signature(diff) == "Diff (new : changed, gone)"


# --- parameters ---------------------------------------------------------------------------------

PARAMETERS = {"table": "seen", "n": 3, "flag": True, "nothing": None, "list": (1, "x")}


@pytest.mark.parametrize(
    ("value", "result"),
    [
        (ParameterReference("N"), 3),
        ("from ${Table} up to ${n}", "from seen up to 3"),
        ("$${table} $table ${flag} ${nothing} ${list}", "${table} $table true null 1, x"),
        (("${n}", 4, None), ("3", 4, None)),
        (1.5, 1.5),
        ("${ and ${}", "${ and ${}"),
    ],
)
def test_parameters_are_put_into_constants(value: object, result: object) -> None:
    assert substitute(value, PARAMETERS) == result  # type: ignore[arg-type]  # parametrized as object


def test_an_unknown_parameter_is_refused() -> None:
    with pytest.raises(SettingError, match="unknown parameter 'tabel'; did you mean 'table'"):
        substitute("x ${tabel}", PARAMETERS)


def test_a_constant_with_an_unknown_value_is_unknown() -> None:
    parameters = {"x": UNKNOWN}
    assert substitute(ParameterReference("x"), parameters) is UNKNOWN
    assert substitute("a ${x}", parameters) is UNKNOWN
    assert substitute(("a", "${x}"), parameters) is UNKNOWN


@pytest.mark.parametrize(("after", "before"), [(0, 0), (2, 2), (3, 3), (6, 3), (7, 11), (9, 13)])
def test_a_place_after_substitution_is_found_in_the_text_as_written(after: int, before: int) -> None:
    # "ab seen cd" was made of "ab ${table} cd".
    assert place_before_substitution("ab ${table} cd", PARAMETERS, after) == before


def test_defaults_may_use_earlier_parameters() -> None:
    plan = Plan("p", parameters=(Parameter("a", "x"), Parameter("B", "${a}y"), Parameter("c", required=True)))
    values = complete(plan, {"a": "z"})
    assert (values["a"], values["b"], values["c"]) == ("z", "zy", UNKNOWN)


def test_a_recursive_call_keeps_the_parameters_that_it_does_not_set() -> None:
    plan = Plan("p", parameters=(Parameter("a", 1), Parameter("b", 2)))
    scope = ParameterScope.outermost(plan, {"A": 10, "b": 20}).enter(plan, {"b": 30}, recursive=True)
    assert (scope.values["a"], scope.values["b"]) == (10, 30)


def test_no_other_call_inherits_parameters() -> None:
    caller = Plan("p", parameters=(Parameter("a", 1),))
    callee = Plan("q", parameters=(Parameter("a", 2),))
    assert ParameterScope.outermost(caller, {"a": 10}).enter(callee, {}, recursive=False).values["a"] == 2


def test_a_mutual_recursion_keeps_the_parameters_of_the_nearest_call_of_the_same_plan() -> None:
    first = Plan("p", parameters=(Parameter("a", 1),))
    second = Plan("q", parameters=(Parameter("a", 2),))
    outer = ParameterScope.outermost(first, {"a": 10})
    inner = outer.enter(second, {}, recursive=True).enter(first, {}, recursive=True)
    assert outer.enter(second, {}, recursive=True).values["a"] == 2
    assert inner.values["a"] == 10


def test_every_call_sees_the_parameters_of_the_run() -> None:
    caller, callee = Plan("p"), Plan("q")
    scope = ParameterScope.outermost(caller, {"run-id": "r1"}).enter(callee, {}, recursive=False)
    assert scope.values["run-id"] == "r1"
    assert scope.values["task-id"] == "0"


def test_scopes_with_equal_numbers_of_different_types_are_different() -> None:
    plan = Plan("p", parameters=(Parameter("a", 1),))
    keys = {ParameterScope.outermost(plan, {"a": value}).key for value in (1, 1.0, True, "1")}
    assert len(keys) == 4
