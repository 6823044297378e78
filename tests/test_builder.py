"""Plans built in Python: equal to the same plans read from text, and clear about what cannot be built."""

from collections.abc import Callable
from typing import Any

import pytest

from aioflow.builder import PlanBuilder
from aioflow.errors import InputError
from aioflow.language import parse
from aioflow.plan import Plan, Variable, Word
from aioflow.relation import Schema
from aioflow.source import Source, Span

TEXT = """
PLAN watch_houses
{
  INPUT: criteria (city char, max-price number), more
  OUTPUT: houses, taken
  PARAM: table = "seen", limit, list = [1, 2]
  MAX_DEPTH: 50 stop
  ONCE: "url"
  COMMIT: batch

  BODY
  {
    wrapper ("search", criteria : page) {ERRORS: failed; WORKERS: 8}
    null (page, page, more : taken, _) {WAIT: ready, go}
    persistent_diff (page : new) {ENABLE: ready; ERRORS: skip; TABLE: $table; ALL}
    join (new, page, "left.a = right.a" : houses) {ONLY: [1, 2]; TYPE: left; BY: "city", "zip"}
    email (houses, $limit, to="me@example.org") {DONE: mailed}
    log ()
  }
}
"""


def build() -> Plan:
    plan = PlanBuilder("watch_houses")
    criteria = plan.input("criteria", "city char, max-price number")
    more = plan.input("more")
    table = plan.param("table", "seen")
    limit = plan.param("limit")
    plan.param("list", [1, 2])
    plan.max_depth(50, stop=True)
    plan.once("url")
    plan.option("commit", Word("batch"))
    page = plan.add("wrapper", "search", criteria, output="page", errors="failed", workers=8)
    taken, _ = plan.add("null", page, page, more, outputs=("taken", "_"), wait=("ready", "go"))
    new = plan.add(
        "persistent_diff",
        page,
        output="new",
        enable="ready",
        errors="skip",
        table=table,
        all=True,
        ordered=False,
    )
    houses = plan.add(
        "join",
        new,
        page,
        "left.a = right.a",
        output="houses",
        type=Word("left"),
        by=("city", "zip"),
        options={"ONLY": [1, 2]},
    )
    plan.add("email", houses, limit, settings={"to": "me@example.org"}, done=plan.variable("mailed"))
    plan.add("log")
    plan.output(houses, taken)
    return plan.build()


def test_parts_of_plans_differ_by_their_content_and_not_by_their_place() -> None:
    placed = Variable("houses", Span(Source("<plan>", "houses"), 0, 6))
    assert placed == Variable("houses")
    assert not placed != Variable("houses")  # noqa: SIM202
    assert hash(placed) == hash(Variable("houses"))
    assert placed != Variable("taken")
    assert placed != Word("houses")
    assert repr(placed) == "Variable(name='houses')"


def test_a_built_plan_equals_the_one_read_from_text() -> None:
    (read,) = parse(TEXT).entries
    assert build() == read


def test_outputs_get_names_when_something_reads_them() -> None:
    plan = PlanBuilder("p")
    rows = plan.input("rows")
    plan.add("select", rows, "a")
    first = plan.add("select", rows, "b")
    second = plan.add("select", first, "c")
    _, right = plan.add("null", second, second, second, outputs=2)
    plan.output(right)
    (read,) = parse(
        """
        PLAN p {
          INPUT: rows
          OUTPUT: null-2
          BODY {
            select (rows, "a")
            select (rows, "b" : select-2)
            select (select-2, "c" : select-3)
            null (select-3, select-3, select-3 : _, null-2)
          }
        }
        """
    ).entries
    assert plan.build() == read


def test_names_that_are_made_up_avoid_those_that_are_given() -> None:
    plan = PlanBuilder("p")
    plan.input("op-1")
    plan.add("op", output="op-2")
    assert plan.add("op") == Variable("op-3")


def test_a_builder_can_go_on_after_building() -> None:
    plan = PlanBuilder("p")
    first = plan.build()
    plan.output(plan.add("op"))
    assert (first, len(plan.build().statements)) == (Plan("p"), 1)


def test_an_input_may_be_declared_by_a_schema() -> None:
    plan = PlanBuilder("p")
    plan.input("a", Schema.of(city="char"))
    plan.input("b", "")
    assert [declaration.schema for declaration in plan.build().inputs] == [Schema.of(city="char"), Schema(())]


def reused(plan: PlanBuilder) -> None:
    plan.add("op", plan.add("op"))
    plan.add("op", output="op-1")


MISUSES: list[tuple[Callable[[PlanBuilder], Any], str]] = [
    (
        lambda plan: PlanBuilder("two words"),
        "'two words' cannot be the name of a plan: "
        "names are letters, digits, '_' and '-', beginning with a letter or '_'",
    ),
    (
        lambda plan: plan.input("1st"),
        "'1st' is not a name: names are letters, digits, '_' and '-', beginning with a letter or '_'",
    ),
    (lambda plan: plan.input("rows"), "p has an input 'rows' already"),
    (lambda plan: plan.input("a", "x numbr"), "unknown type 'numbr'; did you mean 'number'?"),
    (
        lambda plan: plan.input("a", "x text"),
        "unknown type 'text' (there are: char, number, boolean, date, relation, document)",
    ),
    (
        lambda plan: plan.input("a", "x big number"),
        "'x big number' must be an attribute and its type, such as 'beds number'",
    ),
    (lambda plan: plan.input("a", "x, x"), "attribute 'x' stands twice in 'x, x'"),
    (lambda plan: plan.output(5), "an output must be a variable or its name, not 5"),  # type: ignore[arg-type]
    (lambda plan: plan.param("Limit"), "p has a parameter 'Limit' already"),
    (
        lambda plan: plan.param("a", object),
        "the default of parameter 'a' cannot be <class 'object'>: "
        "text, a number, a boolean, None, a list of those or a parameter",
    ),
    (lambda plan: plan.max_depth(0), "max_depth takes a whole number of at least 1, not 0"),
    (lambda plan: plan.once(5), "once takes a text with attributes, not 5"),  # type: ignore[arg-type]
    (lambda plan: plan.add("op", output="a", outputs=("b",)), "op: give output= or outputs=, not both"),
    (lambda plan: plan.add("op", outputs="ab"), "op: outputs= takes several names or their number, not 'ab'"),
    (
        lambda plan: plan.add("op", plan.add("two", outputs=2)),
        "op: an argument is a tuple of variables; pick one, or pass them by *",
    ),
    (
        lambda plan: plan.add("an op"),
        "'an op' cannot be the name of an operator: "
        "names are letters, digits, '_' and '-', beginning with a letter or '_'",
    ),
    (
        lambda plan: plan.add("op", float("inf")),
        "an argument of op is the number inf, which no plan can hold",
    ),
    (
        lambda plan: plan.add("op", [[1]]),
        "an argument of op is a list in which not all values are text, numbers, booleans or None",
    ),
    (lambda plan: plan.add("op", wait=5), "a signal of op must be a variable or its name, not 5"),
    (lambda plan: plan.add("op", errors="Skip"), "a variable for errors cannot be called 'skip'"),
    (
        lambda plan: plan.add("op", options={"wait": "a"}),
        "WAIT is a clause of its own: give it as wait=",
    ),
    (reused, "'op-1' is a name that was made up for another output; choose another one"),
]


@pytest.mark.parametrize(("misuse", "message"), MISUSES, ids=[message for _, message in MISUSES])
def test_misuse_is_told_clearly(misuse: Callable[[PlanBuilder], Any], message: str) -> None:
    plan = PlanBuilder("p")
    plan.input("rows")
    plan.param("limit")
    with pytest.raises(InputError) as caught:
        misuse(plan)
    assert str(caught.value) == message
