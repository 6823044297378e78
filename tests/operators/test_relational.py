"""select, project, join, distinct."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aioflow import PlanError, Row, RunError
from aioflow.relation import identity
from aioflow.testing import Script, rows, run_plan
from tests.operators.running import NO_MEMORY, Mode, bag, out, run, tables

NAN = float("nan")
HOUSES = rows(("Irvine", 3), ("Tustin", 5), ("Irvine", None), schema="city beds")


# --- select -------------------------------------------------------------------------------------


def test_select_keeps_the_tuples_for_which_the_condition_holds() -> None:
    assert out('select (rel, "beds > 3" : out)', rel=HOUSES) == [("Tustin", 5)]


def test_select_drops_tuples_for_which_the_condition_is_null() -> None:
    assert out('select (rel, "not beds > 3" : out)', rel=HOUSES) == [("Irvine", 3)]


def test_select_takes_conditions_from_the_only_attribute_of_a_relation() -> None:
    conditions = rows(("beds is not null",), ("beds < 5",), schema="wish")
    assert out("select (rel, conditions : out)", rel=HOUSES, conditions=conditions) == [("Irvine", 3)]


def test_select_takes_conditions_from_the_attribute_text() -> None:
    conditions = rows((1, "beds = 5"), schema="number text")
    assert out("select (rel, conditions : out)", rel=HOUSES, conditions=conditions) == [("Tustin", 5)]


def test_select_takes_conditions_from_the_attribute_that_cond_names() -> None:
    conditions = rows(("beds = 5", "false"), schema="wish text")
    assert out('select (rel, c : out) {COND: "wish"}', rel=HOUSES, c=conditions) == [("Tustin", 5)]


def test_select_without_any_condition_passes_every_tuple() -> None:
    assert len(out("select (rel, c : out)", rel=HOUSES, c=rows(schema="wish"))) == 3


def test_select_reads_all_conditions_before_the_first_tuple_passes() -> None:
    conditions = Script().row(wish="beds > 1").wait(10).row(wish="beds > 3")
    assert out("select (rel, c : out)", rel=HOUSES, c=conditions) == [("Tustin", 5)]


def test_a_bad_condition_in_a_relation_is_named() -> None:
    with pytest.raises(RunError, match="bad condition 'beds >': expected a value"):
        run("select (rel, c : out)", rel=HOUSES, c=rows(("beds >",), schema="wish"))


def test_a_condition_that_is_no_text_is_an_error() -> None:
    with pytest.raises(RunError, match="a condition must be text; attribute 'wish' is None"):
        run("select (rel, c : out)", rel=HOUSES, c=rows((None,), schema="wish"))


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("select (rel : out)", "select needs a condition"),
        ('select (rel, c, "true" : out)', "a condition or an input with conditions, not both"),
        (
            'select (rel, "true" : out) {COND: "wish"}',
            "COND names an attribute of the input with",
        ),
        ("select (rel, c : out)", "which attribute has the conditions? there are: a, b"),
        ('select (rel, c : out) {COND: "d"}', "unknown attribute 'd'"),
    ],
)
def test_a_select_with_the_wrong_settings_is_a_mistake(statement: str, message: str) -> None:
    text = f"PLAN test {{ INPUT: rel (n number), c (a char, b char) OUTPUT: out BODY {{ {statement} }} }}"
    with pytest.raises(PlanError) as caught:
        run_plan(text, rel=[], c=[])
    assert message in str(caught.value)


def test_select_counts_what_it_could_not_compare() -> None:
    statistics = run('select (rel, "city > 3" : out)', rel=HOUSES).statistics
    step = next(step for step in statistics.steps if step.operator == "select")
    assert step.counters == {"not a number": 3}


# --- project ------------------------------------------------------------------------------------


def test_project_renames_and_computes() -> None:
    assert out('project (rel, "beds + 1 as more, city as town" : out)', rel=HOUSES) == [
        (4, "Irvine"),
        (6, "Tustin"),
        (None, "Irvine"),
    ]


def test_project_keeps_duplicates() -> None:
    assert out('project (rel, "city" : out)', rel=HOUSES) == [("Irvine",), ("Tustin",), ("Irvine",)]


def test_project_takes_all_but_some_attributes() -> None:
    assert run('project (rel, "* except beds" : out)', rel=HOUSES)[0] == {"city": "Irvine"}


def test_project_counts_divisions_by_zero() -> None:
    statistics = run('project (rel, "1 / (beds - 3) as x" : out)', rel=HOUSES).statistics
    step = next(step for step in statistics.steps if step.operator == "project")
    assert step.counters == {"division by zero": 1}


# --- distinct -----------------------------------------------------------------------------------


def test_distinct_keeps_the_first_tuple_of_each_value() -> None:
    assert out('distinct (rel, "city" : out)', rel=HOUSES) == [("Irvine", 3), ("Tustin", 5)]


def test_distinct_compares_whole_tuples_without_attributes() -> None:
    rel = rows((1,), (1.0,), (True,), (None,), (None,), (NAN,), (NAN,), ("1",))
    assert bag(out("distinct (rel : out)", rel=rel)) == bag([(1,), (True,), (None,), (NAN,), ("1",)])


def test_distinct_passes_new_tuples_at_once() -> None:
    rel = Script().row(n=1).row(n=1).hang()
    assert out("distinct (rel : all) limit (all, 1 : out)", rel=rel) == [(1,)]


@settings(max_examples=50, deadline=None)
@given(tables(2))
def test_distinct_gives_the_same_on_disk(table: list[Row]) -> None:
    rel = rows(*table, schema="a b")
    expected = list({identity(row[:1]): row for row in reversed(table)}.values())
    assert bag(out('distinct (rel, "a" : out)', rel=rel, memory_bytes=NO_MEMORY)) == bag(expected)


# --- join ---------------------------------------------------------------------------------------

LEFT = rows((1, "x"), (2, "y"), (None, "z"), (1, "w"), schema="k l")
RIGHT = rows((1, "p"), (3, "q"), (None, "n"), (1.0, "o"), schema="k r")
PAIRS = [(1, "x", "p"), (1, "x", "o"), (1, "w", "p"), (1, "w", "o")]
ALONE_LEFT = [(2, "y", None), (None, "z", None)]
ALONE_RIGHT = [(3, None, "q"), (None, None, "n")]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("inner", PAIRS),
        ("left", PAIRS + ALONE_LEFT),
        ("right", PAIRS + ALONE_RIGHT),
        ("full", PAIRS + ALONE_LEFT + ALONE_RIGHT),
        ("semi", [(1, "x"), (1, "w")]),
        ("anti", [(2, "y"), (None, "z")]),
    ],
)
def test_each_type_of_join_keeps_what_it_says(kind: str, expected: list[Row]) -> None:
    statement = f'join (a, b, "left.k = right.k" : out) {{TYPE: {kind}}}'
    assert bag(out(statement, a=LEFT, b=RIGHT)) == bag(expected)


def test_join_names_attributes_of_one_name_by_their_side() -> None:
    a, b = rows((1, 2), schema="k n"), rows((1, 3), schema="k n")
    assert run('join (a, b, "left.k = right.k" : out)', a=a, b=b)[0] == {"k": 1, "left.n": 2, "right.n": 3}


def test_join_keeps_both_attributes_when_equated_ones_differ_in_name() -> None:
    a, b = rows((1,), schema="x"), rows((1,), schema="y")
    assert run('join (a, b, "x = y" : out)', a=a, b=b)[0] == {"x": 1, "y": 1}


def test_join_without_equality_compares_all_pairs() -> None:
    a, b = rows((1,), (5,), schema="x"), rows((2,), (9,), schema="y")
    assert bag(out('join (a, b, "x < y" : out)', a=a, b=b)) == bag([(1, 2), (1, 9), (5, 9)])


def test_a_pair_leaves_when_its_second_half_arrives() -> None:
    a = Script().row(k=1, l="first").hang()
    b = Script().wait(5).row(k=1, r="second").hang()
    pairs = out('join (a, b, "left.k = right.k" : all) limit (all, 1 : out)', a=a, b=b)
    assert pairs == [(1, "first", "second")]


def test_a_busy_left_input_does_not_starve_the_right() -> None:
    async def busy() -> AsyncIterator[dict[str, int]]:
        for number in count():
            yield {"k": number}

    b = rows((0, "found"), schema="k r")
    assert out('join (a, b, "left.k = right.k" : all) limit (all, 1 : out)', a=busy(), b=b) == [(0, "found")]


def test_right_tuples_are_not_remembered_once_the_left_has_ended() -> None:
    a = rows((1,), schema="k")
    b = Script().wait(1).rows(*({"k": number, "r": "x" * 1000} for number in range(2000)))
    result = run('join (a, b, "left.k = right.k" : out)', a=a, b=b, memory_bytes=100_000)
    assert result.statistics.spilled_rows == 0


def test_a_left_join_gives_up_on_a_tuple_once_the_right_has_ended() -> None:
    a = Script().row(k=1, l="alone").wait(5).row(k=2, l="other").hang()
    b = rows((3, "r"), schema="k r")
    alone = out('join (a, b, "left.k = right.k" : all) {TYPE: left} limit (all, 1 : out)', a=a, b=b)
    assert alone == [(1, "alone", None)]


@pytest.mark.parametrize("kind", ["left", "anti"])
def test_a_join_with_an_input_of_which_nothing_is_known_keeps_the_left(kind: str) -> None:
    statement = f'join (a, b, "left.k = right.k" : out) {{TYPE: {kind}}}'
    assert out(statement, a=rows((1,), schema="k"), b=[]) == [(1,)]


def test_join_refuses_an_unknown_type() -> None:
    with pytest.raises(PlanError, match="must be one of inner, left, right, full, semi, anti"):
        run('join (a, b, "left.k = right.k" : out) {TYPE: outer}', a=LEFT, b=RIGHT)


def test_one_row_may_have_very_many_partners() -> None:
    a = rows((1,), schema="k")
    b = rows(*((1, number) for number in range(10_000)), schema="k n")
    assert len(out('join (a, b, "left.k = right.k" : out)', a=a, b=b, capacity_rows=256)) == 10_000


Condition = Callable[[Row, Row], bool]
CONDITIONS: dict[str, Condition] = {
    "left.k = right.k": lambda left, right: True,
    "left.k = right.k and n < m": lambda left, right: None not in (left[1], right[1]) and left[1] < right[1],
}


def naive_join(left: list[Row], right: list[Row], kind: str, rest: Condition) -> list[Row]:
    """All pairs by comparison of everything with everything."""

    def match(one: Row, other: Row) -> bool:
        return one[0] is not None and identity(one[:1]) == identity(other[:1]) and rest(one, other)

    pairs = [(i, j) for i, one in enumerate(left) for j, other in enumerate(right) if match(one, other)]
    with_partner, partners = {i for i, _ in pairs}, {j for _, j in pairs}
    if kind == "semi":
        return [row for i, row in enumerate(left) if i in with_partner]
    if kind == "anti":
        return [row for i, row in enumerate(left) if i not in with_partner]
    result = [(*left[i], right[j][1]) for i, j in pairs]
    if kind in ("left", "full"):
        result += [(*row, None) for i, row in enumerate(left) if i not in with_partner]
    if kind in ("right", "full"):
        result += [(row[0], None, row[1]) for j, row in enumerate(right) if j not in partners]
    return result


KEYED = st.tuples(st.sampled_from([None, 1, 2, 1.0, NAN, True, "1"]), st.one_of(st.none(), st.integers(0, 3)))


@settings(max_examples=150, deadline=None)
@given(
    st.lists(KEYED, max_size=8),
    st.lists(KEYED, max_size=8),
    st.sampled_from(["inner", "left", "right", "full", "semi", "anti"]),
    st.sampled_from(sorted(CONDITIONS)),
    st.sampled_from([NO_MEMORY, 1500, 1 << 20]),
    st.integers(0, 1000),
)
def test_join_equals_the_comparison_of_all_pairs(
    left: list[Row], right: list[Row], kind: str, condition: str, memory_bytes: int, seed: int
) -> None:
    statement = f'join (a, b, "{condition}" : out) {{TYPE: {kind}}}'
    a, b = rows(*left, schema="k n"), rows(*right, schema="k m")
    found = out(statement, a=a, b=b, memory_bytes=memory_bytes, seed=seed, capacity_rows=1)
    assert bag(found) == bag(naive_join(left, right, kind, CONDITIONS[condition]))


@pytest.mark.parametrize("mode", ["D-", "D+S-", "D+S+"])
def test_join_gives_the_same_in_all_modes(mode: Mode) -> None:
    found = out('join (a, b, "left.k = right.k" : out) {TYPE: full}', a=LEFT, b=RIGHT, mode=mode)
    assert bag(found) == bag(PAIRS + ALONE_LEFT + ALONE_RIGHT)
