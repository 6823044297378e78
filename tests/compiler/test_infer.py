"""Schemas found by following them through statements, calls and recursion."""

from collections.abc import Mapping, Sequence
from typing import Any

from aioflow.authoring.operator import Registry, describe
from aioflow.compiler.analysis import Inference, LinkedProgram, reachable
from aioflow.compiler.parameters import UNKNOWN, ParameterScope
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
)
from aioflow.relation import Schema, Type
from aioflow.runtime.stream import Stream
from tests.clocks import effort_at_most
from tests.compiler.bad_plans.fakes import fakes, load

REGISTRY = fakes()


def plan(
    name: str, inputs: Sequence[str | InputDeclaration], outputs: str, *statements: Statement, **more: Any
) -> Plan:
    declarations = tuple(InputDeclaration(each) if isinstance(each, str) else each for each in inputs)
    return Plan(name, declarations, tuple(map(Variable, outputs.split())), statements, **more)


def do(operator: str, arguments: str, outputs: str = "", *settings: Any, **clauses: Any) -> Statement:
    """A statement with variables in `arguments` and `outputs`, separated by spaces."""
    inputs = tuple(map(Variable, arguments.split()))
    return Statement(
        operator, (*inputs, *map(Setting, settings)), tuple(map(Variable, outputs.split())), **clauses
    )


def schemas(
    main: Plan, *inputs: Schema | None, plans: Sequence[Plan] = (), **parameters: Any
) -> Mapping[str, Schema | None]:
    inference = Inference(LinkedProgram(Program(main, tuple(plans)), REGISTRY))
    return inference.plan_schemas(main, parameters, inputs)


def test_schemas_follow_the_data_whatever_the_order_of_the_statements() -> None:
    main = plan("p", ["a"], "c", do("same", "b", "c"), do("keep", "a", "b", "x, y"))
    assert schemas(main, Schema.of("x", "z", y="number")) == {
        "a": Schema.of("x", "z", y="number"),
        "b": Schema.of("x", y="number"),
        "c": Schema.of("x", y="number"),
    }


def test_what_only_the_run_can_tell_is_none() -> None:
    main = plan("p", ["a"], "c", do("load", "", "b", "t"), do("same", "b", "c"), do("same", "a", "d"))
    assert schemas(main, None) == {"a": None, "b": None, "c": None, "d": None}


def test_a_declaration_fills_in_what_is_not_known() -> None:
    declared = InputDeclaration("a", Schema.of("x", y="number"))
    main = plan("p", [declared], "b", do("same", "a", "b"))
    assert schemas(main, None)["b"] == Schema.of("x", y="number")
    assert schemas(main, Schema.of("y", "z", x="char"))["b"] == Schema(
        ("y", "z", "x"), (Type.NUMBER, None, Type.CHAR)
    )


def test_errors_carry_the_failed_tuple_of_an_operator_that_fires_for_each() -> None:
    main = plan("p", ["a"], "b", do("fetch", "a", "b", "s", errors=Variable("e")))
    expected = Schema.of("x").add(Schema.of(**{"error": "char", "error-kind": "char", "attempts": "number"}))
    assert schemas(main, Schema.of("x"))["e"] == expected
    assert schemas(main, None)["e"] is None


def test_errors_of_other_statements_carry_the_packed_input() -> None:
    main = plan("p", ["a"], "b", do("same", "a", "b", errors=Variable("e")))
    found = schemas(main, Schema.of("x"))["e"]
    assert found is not None
    assert str(found) == "(relation relation, error char, error-kind char, attempts number)"


def test_errors_of_a_call_say_where_it_failed() -> None:
    inner = plan("q", ["a"], "b", do("same", "a", "b"))
    main = plan("p", ["a"], "b", do("q", "a", "b", errors=Variable("e")))
    found = schemas(main, Schema.of("x"), plans=[inner])["e"]
    assert found is not None
    assert str(found) == "(where char, tuple relation, error char, error-kind char, attempts number)"


def test_a_call_gives_what_its_plan_gives_for_these_inputs() -> None:
    inner = plan("q", ["a"], "b c", do("suffix", "a", "b", "1"), do("suffix", "b", "c", "2"))
    main = plan("p", ["a", "z"], "d", do("Q", "a", "b c"), do("q", "z", "_ e"))
    found = schemas(main, Schema.of("x"), Schema.of("y"), plans=[inner])
    assert (found["b"], found["c"], found["e"]) == (Schema.of("x1"), Schema.of("x12"), Schema.of("y12"))


def test_a_call_gives_what_its_plan_gives_for_these_parameters() -> None:
    inner = plan(
        "q",
        ["a"],
        "b",
        do("suffix", "a", "b", ParameterReference("s")),
        parameters=(Parameter("s", "-default"),),
    )
    main = plan(
        "p",
        ["a"],
        "b c",
        do("q", "a", "b"),
        do("q", "a", "c", options=(Option("S", ("-${mine}",)),)),
        parameters=(Parameter("mine", required=True),),
    )
    found = schemas(main, Schema.of("x"), plans=[inner], Mine="set")
    assert (found["b"], found["c"]) == (Schema.of("x-default"), Schema.of("x-set"))
    unknown = schemas(main, Schema.of("x"), plans=[inner])
    assert (unknown["b"], unknown["c"]) == (Schema.of("x-default"), None)


def test_recursion_starts_from_nothing_known() -> None:
    urls = plan(
        "urls",
        ["page"],
        "all",
        do("keep", "page", "here", "url"),
        do("fetch", "page", "next", "s"),
        do("urls", "next", "rest"),
        do("merge", "here rest", "all"),
    )
    found = schemas(urls, Schema.of("url", "link"))
    assert (found["here"], found["all"]) == (Schema.of("url"), Schema.of("url"))
    assert (found["next"], found["rest"]) == (None, None)


def test_recursion_with_the_same_schema_finds_the_result_of_the_call() -> None:
    again = plan(
        "again",
        ["a"],
        "all",
        do("same", "a", "b"),
        do("again", "b", "rest"),
        do("suffix", "a", "here", "!"),
        do("merge", "here rest", "all"),
    )
    found = schemas(again, Schema.of("x"))
    assert found["rest"] == found["all"] == Schema.of("x!")


def test_mutual_recursion_is_followed() -> None:
    even = plan("even", ["a"], "out", do("odd", "a", "rest"), do("merge", "a rest", "out"))
    odd = plan("odd", ["a"], "out", do("even", "a", "rest"), do("same", "rest", "out"))
    assert schemas(even, Schema.of("x"), plans=[odd])["rest"] == Schema.of("x")


def test_a_mutual_recursion_keeps_the_parameters_of_the_call_around_it() -> None:
    reference = ParameterReference("s")
    ping = plan(
        "ping",
        ["a"],
        "out",
        do("suffix", "a", "here", reference),
        do("pong", "a", "rest"),
        do("merge", "here rest", "out"),
        parameters=(Parameter("s", "-"),),
    )
    pong = plan("pong", ["a"], "out", do("ping", "a", "out"))
    inference = Inference(LinkedProgram(Program(ping, (pong,)), REGISTRY))
    scope = ParameterScope.outermost(ping, {"s": "+"})
    inside = scope.enter(pong, {}, recursive=True)
    assert inference.outputs(ping, scope, [Schema.of("x")]) == (Schema.of("x+"),)
    assert inference.outputs(pong, inside, [Schema.of("x")]) == (Schema.of("x+"),)
    assert inference.outputs(pong, {}, [Schema.of("x")]) == (Schema.of("x-"),)


def test_a_recursion_that_gives_nothing_of_its_own_stays_unknown() -> None:
    never = plan("never", ["a"], "out", do("never", "a", "out"))
    assert schemas(never, Schema.of("x"))["out"] is None


def test_a_recursion_whose_schema_grows_at_every_level_is_cut_off() -> None:
    growing = plan("growing", ["a"], "out", do("suffix", "a", "b", "+"), do("growing", "b", "out"))
    inference = Inference(LinkedProgram(Program(growing), REGISTRY))
    root = inference.follow(growing, {}, [Schema.of("x")])
    assert root.outputs == (None,)
    assert len(list(reachable([root]))) < 20


def test_a_recursion_whose_parameter_grows_at_every_level_is_cut_off() -> None:
    growing = plan(
        "growing",
        ["a"],
        "out",
        do("suffix", "a", "b", ParameterReference("s")),
        do("growing", "a", "rest", options=(Option("s", ("${s}+",)),)),
        do("merge", "a rest", "out"),
        parameters=(Parameter("s", "x"),),
    )
    inference = Inference(LinkedProgram(Program(growing), REGISTRY))
    root = inference.follow(growing, {}, [Schema.of("x")])
    reached = list(reachable([root]))
    assert root.outputs == (Schema.of("x"),)
    assert reached[-1].scope.values["s"] is UNKNOWN
    assert len(reached) < 20


def test_a_recursion_that_branches_while_it_grows_stays_small() -> None:
    statements = [do("suffix", "a", f"b{k}", str(k)) for k in range(5)]
    calls = [do("growing", f"b{k}", f"c{k}") for k in range(5)]
    growing = plan("growing", ["a"], "c0", *statements, *calls)
    inference = Inference(LinkedProgram(Program(growing), REGISTRY))
    root = inference.follow(growing, {}, [Schema.of("x")])
    assert len(list(reachable([root]))) < 1_000


def test_a_result_that_keeps_changing_counts_as_unknown() -> None:
    def alternating(inputs: Sequence[Schema | None], settings: Any) -> Schema:
        return Schema.of("b") if inputs[0] == Schema.of("a") else Schema.of("a")

    registry = Registry([describe(flip, schema=alternating)])
    main = plan("p", [], "out", do("p", "", "rest"), do("flip", "rest", "out"))
    assert Inference(LinkedProgram(Program(main), registry)).outputs(main, {}, []) == (None,)


async def flip(rows: Stream) -> Any:
    yield rows


def test_a_wrong_setting_is_noted_once_with_its_statement() -> None:
    main = plan("p", ["a"], "b", do("keep", "a", "b", "y"), do("same", "b", "c"))
    root = Inference(LinkedProgram(Program(main), REGISTRY)).follow(main, {}, [Schema.of("x")])
    assert {index: [each.message for each in found] for index, found in root.problems.items()} == {
        0: ["unknown attribute 'y' (there are: x)"]
    }
    assert root.schemas["c"] is None


def test_every_wrong_setting_of_a_statement_is_noted() -> None:
    options = (Option("TRIES", ("x",)), Option("KIND", ("xml",)))
    main = plan("p", ["a"], "b", do("fetch", "a", "b", 5, options=options))
    root = Inference(LinkedProgram(Program(main), REGISTRY)).follow(main, {}, [None])
    assert [problem.message for problem in root.problems[0]] == [
        "fetch: 'source' must be text, not 5",
        "fetch: 'tries' must be a whole number, not 'x'",
        "fetch: 'kind' must be one of html, json, not 'xml'",
    ]


def test_a_call_with_no_workers_is_noted() -> None:
    inner = plan("q", ["a"], "b", do("same", "a", "b"))
    options = (Option("WORKERS", (ParameterReference("n"),)),)
    main = plan("p", ["a"], "b", do("q", "a", "b", options=options), parameters=(Parameter("n", 0),))
    root = Inference(LinkedProgram(Program(main, (inner,)), REGISTRY)).follow(main, {}, [None])
    assert [problem.message for problem in root.problems[0]] == [
        "WORKERS must be a whole number of at least 1, not 0"
    ]


def test_the_fault_of_a_plug_in_is_noted_with_its_statement() -> None:
    def broken(inputs: Sequence[Schema | None], settings: Any) -> Schema | None:
        return inputs[7]

    registry = Registry([describe(load, schema=broken)])
    main = plan("p", [], "b", do("load", "", "b", "t"))
    root = Inference(LinkedProgram(Program(main), registry)).follow(main, {}, [])
    assert [problem.message for problem in root.problems[0]] == [
        "load cannot be checked: IndexError: list index out of range"
    ]


def test_a_cycle_of_data_is_left_alone() -> None:
    main = plan("p", ["a"], "b", do("same", "c", "b"), do("same", "b", "c"), do("same", "a", "d"))
    found = schemas(main, Schema.of("x"))
    assert (found["b"], found["c"], found["d"]) == (None, None, Schema.of("x"))


def test_a_chain_of_5000_statements_is_followed() -> None:
    statements = [do("same", f"v{k}", f"v{k + 1}") for k in range(5_000)]
    main = plan("p", ["v0"], "v5000", *reversed(statements))
    assert schemas(main, Schema.of("x"))["v5000"] == Schema.of("x")


def test_a_chain_of_1000_calls_is_followed() -> None:
    plans = [plan(f"q{k}", ["a"], "b", do(f"q{k + 1}", "a", "b")) for k in range(1_000)]
    last = plan("q1000", ["a"], "b", do("suffix", "a", "b", "!"))
    assert schemas(plans[0], Schema.of("x"), plans=[*plans, last])["b"] == Schema.of("x!")


def test_a_cycle_of_500_plans_is_followed() -> None:
    plans = [
        plan(
            f"q{k}",
            ["a"],
            "out",
            do(f"q{(k + 1) % 500}", "a", "rest"),
            do("merge", "a rest" if k == 250 else "rest", "out"),
        )
        for k in range(500)
    ]
    with effort_at_most(100):
        assert schemas(plans[0], Schema.of("x"), plans=plans)["out"] == Schema.of("x")


def test_calls_that_double_at_every_level_are_followed_a_bounded_number_of_times() -> None:
    """Each of 60 plans calls the next twice, with another parameter each time."""
    plans = [
        plan(
            f"q{level}",
            ["a"],
            "b",
            do(f"q{level + 1}", "a", "b", options=(Option("k", ("${k}x",)),)),
            do(f"q{level + 1}", "a", "c", options=(Option("k", ("${k}y",)),)),
            parameters=(Parameter("k", "z"),),
        )
        for level in range(60)
    ]
    last = plan("q60", ["a"], "b", do("same", "a", "b"), parameters=(Parameter("k", "z"),))
    inference = Inference(LinkedProgram(Program(plans[0], (*plans[1:], last)), REGISTRY))
    with effort_at_most(200):
        found = [inference.outputs(each, {}, [Schema.of("x")]) for each in plans]
    # The schemas of calls that were not followed are unknown.
    assert set(found) <= {(Schema.of("x"),), (None,)}


def test_answers_are_remembered() -> None:
    main = plan("p", ["a"], "b", do("same", "a", "b"))
    inference = Inference(LinkedProgram(Program(main), REGISTRY))
    assert inference.follow(main, {}, [Schema.of("x")]) is inference.follow(main, {}, [Schema.of("x")])
