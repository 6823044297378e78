"""Random plans on the engine and on the naive evaluator; `python -m tests.naive` is the long form."""

from dataclasses import replace

import pytest

import aioflow
from tests.naive.bag import Bag, counted
from tests.naive.campaign import campaign, matrix
from tests.naive.compare import Setup, disagreement, expected, loaded
from tests.naive.constructs import names
from tests.naive.databases import campaign as databases
from tests.naive.databases.constructs import CONSTRUCTS
from tests.naive.databases.generator import story
from tests.naive.generator import MAIN, Example, example
from tests.naive.marks import Marks, Range
from tests.naive.shrink import shrink

FIRST_SEED = 1_000_000  # apart from those of the long form


def test_random_plans_equal_the_naive_evaluator() -> None:
    report = campaign(500, FIRST_SEED, most_failures=1)
    assert not report.failures, report.failures[0]
    assert report.plans == 500
    assert not [name for name in names() if not report.counts[name]], "a construct does not occur at all"


def test_random_plans_are_the_same_in_every_setup() -> None:
    report = matrix(20, FIRST_SEED + 10_000, most_failures=1)
    assert not report.failures, report.failures[0]
    assert report.runs == 20 * 27


def test_random_runs_on_databases_equal_dictionaries() -> None:
    report = databases.campaign(30, FIRST_SEED, most_failures=1)
    assert not report.failures, report.failures[0]
    assert not [name for name in CONSTRUCTS if not report.counts[name]], "a construct does not occur"


def test_a_seed_makes_the_same_program_again() -> None:
    assert [example(seed).text for seed in range(20)] == [example(seed).text for seed in range(20)]


# --- the naive evaluator, on plans whose meaning is plain ------------------------------------------


def naive(
    body: str, outputs: str = "out", header: str = "", plans: str = "", **inputs: Bag
) -> dict[str, Bag]:
    declared = f"INPUT: {', '.join(inputs)}\n" if inputs else ""
    text = f"PLAN {MAIN}\n{{\n{declared}OUTPUT: {outputs}\nBODY\n{{\n{body}\n}}\n}}\n{plans}"
    program = aioflow.loads(text, plan=MAIN)
    return dict(expected(program, inputs).outputs)


def numbers(*values: int) -> Bag:
    return Bag(("n",), tuple((value,) for value in values))


def test_dead_streams_reach_what_depends_on_them_alone() -> None:
    found = naive(
        """
        null (rows, rows, rows : t, f)
        project (t, "n" : dead)
        union (t, f : alive)
        aggregate (t, "count() as k" : silent)
        series (1 : told) {WAIT: t}
        """,
        "dead, alive, silent, told",
        rows=numbers(1, 2),
    )
    assert found["dead"].dead
    assert len(found["alive"].rows) == 2
    assert not found["alive"].dead
    assert found["silent"].dead
    assert found["told"].dead


def test_done_is_sent_by_what_ended_well_and_enable_by_what_fired() -> None:
    found = naive(
        """
        select (rows, "n > 9" : none) {DONE: ended}
        project (none, "n" : nothing) {ENABLE: fired}
        series (1 : after) {WAIT: ended}
        series (1 : never) {WAIT: fired}
        """,
        "after, never",
        rows=numbers(1),
    )
    assert found["after"].rows == ((0,),)
    assert found["never"].dead


def test_a_recursive_call_unfolds_only_for_a_tuple() -> None:
    plans = """
    PLAN down
    {
      INPUT: top
      OUTPUT: all
      BODY
      {
        select (top, "n > 0" : more)
        project (more, "n - 1 as n" : next)
        down (next : rest)
        union (top, rest : all) {ALL}
      }
    }
    """
    found = naive("down (rows : out)", plans=plans, rows=numbers(2))
    assert sorted(found["out"].rows) == [(0,), (1,), (2,)]


def test_errors_take_failed_tuples() -> None:
    found = naive('apply (rows, "t_odd_fails" : out) {ERRORS: bad}', "out, bad", rows=numbers(1, 2))
    assert found["out"].rows == ((2, "even"),)
    assert found["bad"].rows == ((1, "odd", "ValueError", 1),)


PARTIAL, DOUBTFUL = Marks(partial=True), Marks(doubtful=True)


def test_marks_are_those_of_what_is_missing() -> None:
    found = naive(
        """
        apply (rows, "t_odd_fails" : even) {ERRORS: bad}
        apply (rows, "t_small_gone" : large) {ERRORS: skip}
        minus (rows, even : odd) {ON: "n"}
        sort (even, "n" : ranked)
        limit (ranked, 1 : first)
        union (even, even : mended) {WHOLE}
        project (odd, "n" : late) {WAIT: bad}
        """,
        "even, large, odd, ranked, first, mended, late, bad",
        rows=numbers(1, 2, 4),
    )
    exact = {"even": PARTIAL, "odd": DOUBTFUL, "first": DOUBTFUL, "late": DOUBTFUL}
    for name in ("even", "large", "odd", "first", "mended", "late", "bad"):
        assert found[name].marks == Range(exact.get(name, Marks()), exact.get(name, Marks())), name
    assert found["ranked"].marks.least == Marks(partial=True, cut=True)


def test_marks_are_left_open_where_what_arrives_first_decides() -> None:
    found = naive(
        """
        apply (rows, "t_odd_fails" : even) {ERRORS: skip}
        minus (rows, even : odd) {ON: "n"}
        null (odd, rows, rows : _, f)
        """,
        "f",
        rows=numbers(1, 2),
    )
    assert found["f"].marks == Range(Marks(), DOUBTFUL)
    assert found["f"].marks.allows(Marks())
    assert found["f"].marks.allows(DOUBTFUL)
    assert not found["f"].marks.allows(PARTIAL)


# --- what the command does with a disagreement -----------------------------------------------------


def test_a_program_is_made_small() -> None:
    def contains_null(candidate: Example) -> bool:
        return any("null (" in statement for plan in candidate.plans for statement in plan.statements)

    large = next(made for seed in range(100) if contains_null(made := example(seed)))
    small = shrink(large, contains_null)
    assert sum(len(plan.statements) for plan in small.plans) == 1
    assert contains_null(small)


def test_a_wrong_result_is_a_disagreement() -> None:
    case = next(seed for seed in range(100) if _gives_rows(seed))
    program = loaded(example(case))
    inputs = example(case).inputs
    wanted = expected(program, inputs)
    wrong = {name: Bag(bag.names, (*bag.rows, *bag.rows)) for name, bag in wanted.outputs.items()}
    assert disagreement(program, inputs, wanted, Setup()) is None
    assert disagreement(program, inputs, type(wanted)(wrong), Setup()) is not None


def test_wrong_marks_are_a_disagreement() -> None:
    case = next(seed for seed in range(100) if _gives_rows(seed))
    program, inputs = loaded(example(case)), example(case).inputs
    wanted = expected(program, inputs)
    both = Marks(partial=True, doubtful=True)
    wrong = {name: replace(bag, marks=Range(both, both)) for name, bag in wanted.outputs.items()}
    assert "marks of" in str(disagreement(program, inputs, type(wanted)(wrong), Setup()))


def test_a_wrong_table_is_a_disagreement() -> None:
    steps = next(steps for seed in range(100) if len(steps := databases.expected_steps(story(seed))) == 1)
    setup = databases.setups(0)[0]
    assert databases.disagreement(steps, setup) is None
    steps[0].tables.rows["many"].append((99, 99))
    assert "run 0: table many: missing" in str(databases.disagreement(steps, setup))


def _gives_rows(seed: int) -> bool:
    wanted = expected(loaded(example(seed)), example(seed).inputs)
    return not wanted.failed and any(bag.rows for bag in wanted.outputs.values())


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        ({"a": 1}, {"a": 1.0}, True),
        ({"a": 1}, {"a": True}, False),
        ({"a": None}, {"a": None}, True),
        ({"a": float("nan")}, {"a": float("nan")}, True),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ({"a": "1"}, {"a": 1}, False),
    ],
)
def test_tuples_are_compared_as_the_language_says(
    one: dict[str, object], other: dict[str, object], equal: bool
) -> None:
    assert (counted([one]) == counted([other])) is equal
