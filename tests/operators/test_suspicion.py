"""diff tells of nothing that did not happen: what is held back, why, and what settles it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import aioflow.operators.differences  # noqa: F401  # registers it
from aioflow import Row
from aioflow.errors import OperatorError
from tests.operators.database_plans import ALL_OWN_TABLES, out
from tests.operators.diff_oracle import DiffOracle
from tests.operators.running import NO_MEMORY, bag
from tests.operators.watched_table import Table, days
from tests.servers.postgres import Postgres


@pytest.fixture(scope="module")
def shared_url(postgres: Postgres) -> Iterator[str]:
    url = postgres.create_database()
    yield url
    postgres.drop_database(url)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:{tmp_path / 'test.db'}"
        return
    url = request.getfixturevalue("shared_url")
    yield url
    request.getfixturevalue("postgres").run(f"drop table if exists t, {ALL_OWN_TABLES}", url=url)


@pytest.fixture
def watched(url: str) -> Table:
    return Table(url)


def many(count: int, first: int = 0, a: Any = "a", v: Any = 0) -> list[Row]:
    return [(number, a, v) for number in range(first, first + count)]


NOTHING: tuple[list[Row], ...] = ([], [], [])


# --- the first run ------------------------------------------------------------------------------


def test_the_first_run_remembers_everything_and_tells_nothing(watched: Table) -> None:
    assert watched.see(*many(3)) == NOTHING
    assert "it remembers 3 rows and tells nothing" in watched.notes[0]
    assert watched.rows() == many(3)
    assert watched.see(*many(4)) == (many(1, 3), [], [])


def test_a_reason_that_is_a_question_ends_as_one(watched: Table) -> None:
    watched.see(*many(3))
    watched.see(*many(2), mark="asked")
    assert "has the page changed? `aioflow suspects confirm t`" in watched.warnings[0]
    (entry,) = watched.account.entries
    assert entry.figures == {"commits": 1, "held": {"t": "1 of 3 rows seems to be gone"}}
    assert entry.lines == ("held back from t: 1 of 3 rows seems to be gone (aioflow suspects)",)


def test_the_first_run_tells_everything_where_that_is_asked_for(url: str) -> None:
    watched = Table(url, 'KEY: "k"; FIRST: news')
    assert watched.see(*many(3), mark="partial") == (many(3), [], [])
    assert watched.see(*many(4), mark="partial") == (many(1, 3), [], [])
    assert watched.suspects() == []


def test_until_the_first_whole_run_new_rows_are_remembered_and_not_told(watched: Table) -> None:
    assert watched.see(*many(10), mark="partial") == NOTHING
    assert "no run has seen the whole yet" in watched.warnings[0]
    assert "page 3 failed" in watched.warnings[0]
    assert watched.see(*many(11), mark="partial") == NOTHING
    assert watched.see(*many(12)) == NOTHING
    assert watched.suspects() == []
    assert watched.see(*many(13)) == (many(1, 12), [], [])


def test_a_first_run_that_finds_nothing_is_a_baseline_too(watched: Table) -> None:
    assert watched.see() == NOTHING
    assert watched.suspects() == []
    assert watched.see(*many(2)) == (many(2), [], [])


def test_a_first_run_that_may_lack_everything_is_none(watched: Table) -> None:
    assert watched.see(mark="partial") == NOTHING
    assert watched.see(*many(2), mark="doubtful") == NOTHING
    assert watched.see(*many(2)) == NOTHING
    assert watched.see(*many(3)) == (many(1, 2), [], [])


def test_a_person_may_accept_a_baseline_that_never_was_whole(watched: Table) -> None:
    watched.see(*many(10), mark="partial")
    watched.confirm()
    assert watched.see(*many(11), mark="partial") == (many(1, 10), [], [])
    assert watched.see(*many(12)) == (many(1, 11), [], [])


# --- partial and doubtful -----------------------------------------------------------------------


def test_after_a_partial_input_nothing_is_deleted_and_news_are_told(watched: Table) -> None:
    watched.see(*many(20))
    changed = (0, "b", 0)
    told = watched.see(changed, *many(9, 1), *many(1, 99), mark="partial")
    assert told == (many(1, 99), [(*changed, "a", 0, "a")], [])
    assert len(watched.rows()) == 21
    (warning,) = watched.warnings
    assert "10 of 20 rows seem to be gone" in warning
    assert "page 3 failed" in warning
    assert "aioflow suspects confirm t" in warning
    assert watched.see(changed, *many(19, 1), *many(1, 99)) == NOTHING
    assert watched.suspects() == []


def test_what_seemed_gone_and_is_gone_is_told_by_the_next_whole_run(watched: Table) -> None:
    watched.see(*many(20))
    watched.see(*many(18), mark="partial")
    added, changed, removed = watched.see(*many(18))
    assert (added, changed, sorted(removed)) == ([], [], many(2, 18))


def test_after_a_doubtful_input_nothing_is_told_at_all(watched: Table) -> None:
    watched.see(*many(20))
    assert watched.see((0, "b", 0), *many(20, 5), mark="doubtful") == NOTHING
    assert watched.rows() == sorted(many(20), key=repr)
    assert "a side lacks rows" in watched.warnings[0]
    added, changed, removed = watched.see((0, "b", 0), *many(20, 1))
    assert (added, changed, removed) == (many(1, 20), [(0, "b", 0, "a", 0, "a")], [])
    assert watched.suspects() == []


# --- many rows at once --------------------------------------------------------------------------


@pytest.mark.parametrize("size", [3, 20, 2_500])
def test_what_shrinks_is_told_after_three_whole_runs_a_day_apart(url: str, size: int) -> None:
    watched = Table(url)
    watched.see(*many(size))
    left = size // 4 + 1
    assert watched.see(*many(left)) == NOTHING
    assert f"{size - left:,} of {size:,} rows" in watched.warnings[0]
    assert watched.see(*many(left), after=timedelta(hours=1)) == NOTHING  # too soon to count
    assert watched.see(*many(left), mark="partial") == NOTHING  # neither counts nor resets
    assert watched.see(*many(left)) == NOTHING
    removed = watched.see(*many(left))[2]
    assert sorted(removed) == many(size - left, left)
    assert watched.suspects() == []
    assert watched.see(*many(left)) == NOTHING


def test_the_number_of_runs_and_the_time_between_them_can_be_set(url: str) -> None:
    watched = Table(url, 'KEY: "k"; CONFIRM_RUNS: 2; CONFIRM_APART: "1h"')
    watched.see(*many(20))
    assert watched.see(*many(5)) == NOTHING
    assert watched.see(*many(5), after=timedelta(minutes=30)) == NOTHING
    assert len(watched.see(*many(5), after=timedelta(minutes=40))[2]) == 15


def test_a_row_that_comes_back_is_not_told(watched: Table) -> None:
    watched.see(*many(20))
    watched.see(*many(5))
    watched.see(*many(6))
    added, changed, removed = watched.see(*many(6))
    assert (added, changed, sorted(removed)) == ([], [], many(14, 6))
    assert len(watched.rows()) == 6


@pytest.mark.parametrize("share", ["0.1", "0.5", "off"])
def test_the_share_that_may_vanish_at_once_can_be_set(url: str, share: str) -> None:
    watched = Table(url, f'KEY: "k"; GUARD: {share}')
    watched.see(*many(20))
    assert len(watched.see(*many(17))[2]) == (0 if share == "0.1" else 3)
    watched.see(*many(20))
    assert len(watched.see(*many(10))[2]) == (0 if share == "0.1" else 10)


def test_zero_rows_are_never_believed_by_repetition(watched: Table) -> None:
    watched.see(*many(20))
    for _ in range(5):
        assert watched.see() == NOTHING
    assert "nothing came at all, where the table has 20 rows" in watched.warnings[0]
    watched.confirm()
    assert len(watched.see()[2]) == 20
    assert watched.rows() == []


def test_a_page_that_proves_to_be_empty_is_believed(watched: Table) -> None:
    watched.see(*many(20))
    assert len(watched.see(mark="empty")[2]) == 20


def test_a_redesigned_key_is_neither_gone_nor_new_however_often_it_is_seen(watched: Table) -> None:
    watched.see(*many(20))
    for _ in range(5):
        assert watched.see(*many(20, 100)) == NOTHING
    assert len(watched.rows()) == 20
    (warning,) = watched.warnings
    assert "as if the key had been redesigned" in warning
    (suspect,) = watched.suspects()
    assert (suspect.gone, suspect.added) == (20, 20)


def test_what_comes_where_nothing_known_is_left_is_no_news(watched: Table) -> None:
    watched.see(*many(20))
    assert watched.see((999, "captcha", 0)) == NOTHING
    assert watched.see(*many(20)) == NOTHING


def test_of_several_tuples_with_one_key_the_first_may_be_missing(url: str) -> None:
    watched = Table(url, 'KEY: "k"; DUPLICATES: first')
    watched.see(*many(20), *many(20, a="b"))
    assert watched.see(*many(20, a="b"), mark="partial") == NOTHING
    assert len(watched.rows()) == 20


def test_a_person_may_take_a_redesigned_key_over_without_a_word(watched: Table) -> None:
    watched.see(*many(20))
    watched.see(*many(20, 100))
    watched.confirm(quietly=True)
    assert watched.see(*many(20, 100), (999, "a", 0)) == ([(999, "a", 0)], [], [])
    assert [row[0] for row in watched.rows()] == [*range(100, 120), 999]
    assert watched.suspects() == []


def test_rows_under_a_new_key_stay_held_while_runs_are_partial(watched: Table) -> None:
    watched.see(*many(20))
    watched.see(*many(20, 100))
    assert watched.see(*many(3, 100), (999, "a", 0), mark="partial") == NOTHING
    assert len(watched.rows()) == 20
    watched.confirm(quietly=True)
    assert watched.see(*many(5, 100), mark="partial") == NOTHING
    assert watched.see(*many(20, 100), (998, "a", 0)) == ([(998, "a", 0)], [], [])
    assert watched.suspects() == []


def test_rows_that_were_taken_over_are_no_news_when_they_come_late(watched: Table) -> None:
    watched.see(*many(20))
    watched.see(*many(20, 100))
    watched.confirm(quietly=True)
    assert watched.see(*many(15, 100)) == NOTHING
    assert watched.suspects() == []
    assert watched.see(*many(18, 100)) == NOTHING
    assert len(watched.rows()) == 18
    for _ in range(4):
        assert watched.see(*many(18, 100)) == NOTHING
    assert watched.see(*many(20, 100)) == (many(2, 118), [], [])


def test_a_confirmation_does_not_cover_what_vanishes_later(watched: Table) -> None:
    watched.see(*many(20))
    watched.see(*many(20, 100))
    watched.confirm(quietly=True)
    assert watched.see(*many(15, 100)) == NOTHING
    assert watched.see(*many(5, 100)) == NOTHING
    assert len(watched.rows()) == 15
    assert "10 of 15 rows" in watched.warnings[0]


# --- a person -----------------------------------------------------------------------------------


def test_what_a_person_confirms_is_told_by_the_next_whole_run(watched: Table) -> None:
    watched.see(*many(20))
    watched.see(*many(5))
    watched.confirm()
    assert watched.see(*many(4), mark="partial") == NOTHING
    added, changed, removed = watched.see(*many(5))
    assert (added, changed, sorted(removed)) == ([], [], many(15, 5))
    assert watched.suspects() == []


def test_a_confirmation_is_for_what_was_held_when_it_was_given(watched: Table) -> None:
    watched.see(*many(20))
    watched.see(*many(10))
    watched.confirm()
    assert sorted(watched.see(*many(3))[2]) == many(10, 10)
    assert len(watched.rows()) == 10
    assert "7 of 10 rows" in watched.warnings[0]


# --- columns ------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 3, 20])
def test_a_column_that_went_empty_keeps_its_values(url: str, size: int) -> None:
    watched = Table(url)
    watched.see(*many(size))
    for _ in range(4):
        assert watched.see(*many(size, a=None)) == NOTHING
    assert "a is null in" in watched.warnings[0]
    assert "and had values" in watched.warnings[0]
    assert watched.rows() == sorted(many(size), key=repr)
    assert watched.see(*many(size)) == NOTHING
    assert watched.suspects() == []


def test_a_null_is_filled_later_without_a_word(watched: Table) -> None:
    watched.see(*many(20))
    new = (20, None, 0)
    assert watched.see(*many(20, a=None), new) == ([new], [], [])
    assert watched.see(*many(21)) == NOTHING
    assert watched.rows() == sorted(many(21), key=repr)
    assert watched.see((0, "b", 0), *many(20, 1))[1] == [(0, "b", 0, "a", 0, "a")]


def test_a_value_that_comes_back_is_no_news_though_the_table_has_none_left(watched: Table) -> None:
    watched.see(*many(10))
    watched.see(*many(10, a=None), *many(30, 10, a=None))
    for first in (4, 8, 10):
        watched.see(*many(40 - first, first, a=None))
    assert all(row[1] is None for row in watched.rows())
    watched.see(*many(30, 10, a=None))
    assert watched.see(*many(30, 10)) == NOTHING


def test_a_confirmation_is_not_for_columns_that_go_empty_later(watched: Table) -> None:
    watched.see(*many(20))
    watched.see(*many(5))
    watched.confirm()
    watched.see(*many(5, a=None), mark="partial")
    assert watched.see(*many(5, a=None))[1] == []
    assert all(row[1] == "a" for row in watched.rows())
    assert watched.see(*many(5)) == NOTHING


def test_other_changes_are_told_while_a_column_is_empty(watched: Table) -> None:
    watched.see(*many(20))
    told = watched.see((0, None, 7), *many(19, 1, a=None))
    assert told == ([], [(0, "a", 7, "a", 0, "v")], [])


def test_a_change_while_a_column_was_empty_is_told_when_it_is_back(watched: Table) -> None:
    watched.see(*many(20))
    watched.see(*many(20, a=None))
    assert watched.see((0, "b", 0), *many(19, 1))[1] == [(0, "b", 0, "a", 0, "a")]


def test_a_column_that_a_person_confirms_to_be_empty_is(watched: Table) -> None:
    watched.see(*many(3))
    watched.see(*many(3, a=None))
    watched.confirm()
    assert len(watched.see(*many(3, a=None))[1]) == 3
    assert watched.rows() == many(3, a=None)
    assert watched.see(*many(3, a=None)) == NOTHING


def test_an_empty_column_may_be_taken_over_without_a_word(watched: Table) -> None:
    watched.see(*many(3))
    watched.see(*many(3, a=None))
    watched.confirm(quietly=True)
    assert watched.see(*many(3, a=None)) == NOTHING
    assert watched.rows() == many(3, a=None)


def test_an_empty_key_is_doubted(watched: Table) -> None:
    watched.see(*many(3))
    assert watched.see((None, "x", 1), (None, "y", 2)) == NOTHING
    assert "k, of the KEY, is null in every row" in watched.warnings[0]
    assert watched.rows() == many(3)


def test_without_key_an_empty_column_is_left_out_of_the_comparison(url: str) -> None:
    watched = Table(url, "")
    watched.see(*many(20))
    new = (20, None, 0)
    assert watched.see(*many(19, a=None), new) == ([new], [], many(1, 19))
    assert watched.see(*many(19), (20, "a", 0)) == NOTHING
    assert watched.rows() == sorted([*many(19), (20, "a", 0)], key=repr)
    assert watched.suspects() == []


def test_a_tuple_that_comes_twice_counts_once_also_where_a_column_has_vanished(watched: Table) -> None:
    watched.see(*many(5))
    assert watched.see(*many(5, a=None), *many(2, a=None)) == NOTHING
    assert watched.rows() == sorted(many(5), key=repr)
    with pytest.raises(OperatorError, match="two different tuples have k = 0: v = 0, then v = 1; a KEY"):
        watched.see(*many(5, a=None), *many(1, a=None, v=1))


@pytest.mark.parametrize("runs", [1, 2, 3])
@pytest.mark.parametrize("declared", [True, False])
def test_what_comes_after_runs_that_found_nothing_is_new(url: str, runs: int, declared: bool) -> None:
    statement = 'diff (given, "t" : out) {KEY: "k"}'
    statement = (
        'project (rel, "k, a" : given) ' + statement if declared else statement.replace("given", "rel")
    )
    for _ in range(runs):
        assert out(url, statement, rel=[]) == []
    assert out(url, statement, rel=[{"k": 1, "a": "x"}]) == [(1, "x")]


def test_a_doubtful_run_does_not_make_an_empty_baseline_unknown(url: str) -> None:
    first, rest = (
        'project (rel, "k, a" : g) ',
        'suspicion_marked (g, "{}" : h) diff (h, "t" : out) {{KEY: "k"}}',
    )
    for mark in ("whole", "doubtful", "whole", "partial", "whole"):
        assert out(url, first + rest.format(mark), rel=[]) == []
    assert out(url, first + rest.format("whole"), rel=[{"k": 1, "a": "x"}]) == [(1, "x")]


# --- in general ---------------------------------------------------------------------------------

_numbers = count()


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data(), memory_bytes=st.sampled_from([NO_MEMORY, 1 << 20]))
def test_day_after_day_equals_a_dictionary(url: str, data: st.DataObject, memory_bytes: int) -> None:
    sequence = data.draw(days(url.partition(":")[0]))
    watched = Table(url, 'KEY: "k"; IGNORE: "v"', f"t{next(_numbers)}")
    oracle = DiffOracle()
    for rows, mark, confirms, hours, mode in sequence:
        if confirms and oracle.holds_anything:
            watched.confirm()
            oracle.confirm()
        after = timedelta(hours=hours)
        found = watched.see(*rows, mark=mark, after=after, mode=mode, memory_bytes=memory_bytes)
        expected = oracle.diff(rows, mark, watched.now)
        assert [bag(each) for each in found] == [bag(each) for each in expected]
        if oracle.rows:
            assert bag(watched.rows()) == bag(oracle.rows.values())
