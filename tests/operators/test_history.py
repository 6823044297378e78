"""The history that diff writes: the changes of tables, and rows from first to last sight."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aioflow import Row
from aioflow.authoring.context import RunIdentity
from aioflow.errors import InputError
from aioflow.relation import Document, Relation, Schema, identity
from aioflow.state import (
    Connection,
    RowChange,
    RowHistory,
    TrackedTable,
    read_changes,
    read_rows,
    tracked_tables,
)
from tests.operators.database_plans import ALL_OWN_TABLES, run
from tests.operators.running import NO_MEMORY, bag
from tests.operators.watched_table import DAY, START, Table, days
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
    request.getfixturevalue("postgres").run(f"drop table if exists t, u, {ALL_OWN_TABLES}", url=url)


class Watched(Table):
    """A table whose history is read."""

    def changes(self, **wanted: Any) -> list[RowChange]:
        return self.ask(lambda connection: read_changes(connection, **{"tables": [self.name], **wanted}))

    def histories(self, **wanted: Any) -> list[RowHistory]:
        return self.ask(lambda connection: read_rows(connection, self.name, **wanted))

    def history(self, key: Any) -> RowHistory:
        (found,) = [each for each in self.histories(limit=1000) if each.row["k"] == key]
        return found

    def tracked(self) -> TrackedTable:
        found = self.ask(tracked_tables)
        (own,) = [each for each in found if each.table == self.name]
        return own


@pytest.fixture
def watched(url: str) -> Watched:
    return Watched(url)


def day(number: int) -> datetime:
    return START + number * DAY


def told(changes: list[RowChange]) -> list[tuple[str, Any, Any]]:
    return [(each.kind, each.row["k"], each.row["a"]) for each in changes]


# --- changes --------------------------------------------------------------------------------------


def test_the_rows_of_the_baseline_are_first_seen_with_it(watched: Watched) -> None:
    watched.see((1, "x", 0), (2, "y", 0))
    assert watched.changes(include_quiet=True) == []
    assert {each.row["k"] for each in watched.histories()} == {1, 2}
    for each in watched.histories():
        assert (each.first_seen, each.last_seen, each.gone, each.changes) == (day(1), day(1), None, ())
    assert watched.tracked() == TrackedTable(
        *("t", "", "test", watched.tracked().run_id, ("k",), day(1), day(1), day(1), None)
    )


def test_a_row_is_followed_from_first_to_last_sight(watched: Watched) -> None:
    rows = [(number, "a", 0) for number in range(10)]
    watched.see(*rows)
    watched.see(*rows, (10, "new", 0))
    watched.see(*rows, (10, "newer", 0))
    watched.see(*rows, (10, "newer", 0))
    watched.see(*rows)
    found = watched.history(10)
    assert dict(found.row) == {"k": 10, "a": "newer", "v": 0}
    assert (found.first_seen, found.last_seen, found.gone) == (day(2), day(4), day(5))
    (change,) = found.changes
    assert (change.noticed, change.column, change.before, change.after) == (day(3), "a", "new", "newer")
    assert told(watched.changes()) == [
        *(("removed", 10, "newer"), ("changed", 10, "newer"), ("added", 10, "new")),
    ]
    watched.see(*rows, (10, "back", 0))
    found = watched.history(10)
    assert (found.first_seen, found.last_seen, found.gone) == (day(2), day(6), None)
    assert found.absences == ((day(5), day(6)),)


def test_a_run_without_changes_notes_that_it_has_seen_the_rows(watched: Watched) -> None:
    watched.see((1, "x", 0))
    watched.see((1, "x", 0))
    assert watched.histories()[0].last_seen == day(2)
    watched.see((1, "x", 0), mark="partial")
    assert watched.histories()[0].last_seen == day(2)
    watched.see((1, "y", 0), mark="partial")
    assert watched.histories()[0].last_seen == day(4)


def test_a_change_of_ignored_attributes_is_no_change(url: str) -> None:
    watched = Watched(url, 'KEY: "k"; IGNORE: "v"')
    watched.see((1, "x", 0))
    watched.see((1, "x", 1))
    watched.see((1, "y", 2))
    (change,) = watched.changes(include_quiet=True)
    assert change.columns == ("a",)
    assert [each.column for each in watched.histories()[0].changes] == ["a"]


def test_first_news_are_logged(url: str) -> None:
    watched = Watched(url, 'KEY: "k"; FIRST: news')
    watched.see((1, "x", 0))
    assert told(watched.changes()) == [("added", 1, "x")]
    assert watched.histories()[0].first_seen == watched.tracked().since == day(1)


def test_an_empty_first_run_is_the_baseline(watched: Watched) -> None:
    watched.see()
    watched.see()
    watched.see((1, "x", 0))
    assert watched.tracked().since == day(1)
    assert told(watched.changes()) == [("added", 1, "x")]


def test_rows_of_an_incomplete_baseline_are_no_news_but_have_a_first_day(watched: Watched) -> None:
    watched.see((1, "x", 0), mark="partial")
    watched.see((1, "x", 0), (2, "y", 0))
    assert watched.changes() == []
    assert watched.history(1).first_seen == day(1)
    assert watched.history(2).first_seen == day(2)


def test_held_rows_are_not_logged_until_they_are_applied(watched: Watched) -> None:
    rows = [(number, "a", 0) for number in range(4)]
    watched.see(*rows)
    watched.see(rows[0])
    assert watched.changes(include_quiet=True) == []
    missing = watched.history(3)
    assert (missing.is_missing, missing.last_seen, missing.gone) == (True, day(1), None)
    assert (watched.history(0).is_missing, watched.history(0).last_seen) == (False, day(2))
    watched.confirm()
    watched.see(rows[0])
    assert Counter(told(watched.changes())) == Counter(("removed", number, "a") for number in (1, 2, 3))
    assert (watched.history(3).last_seen, watched.history(3).gone) == (day(1), day(3))


def test_quiet_changes_are_in_the_history_of_rows_and_are_no_news(watched: Watched) -> None:
    rows = [(number, "a", 0) for number in range(4)]
    others = [(number, "a", 0) for number in range(10, 14)]
    watched.see(*rows)
    watched.see(*others)
    watched.confirm(quietly=True)
    assert watched.see(*others) == ([], [], [])
    assert watched.changes() == []
    quiet = watched.changes(include_quiet=True)
    assert Counter((each.kind, each.is_told) for each in quiet) == {
        ("added", False): 4,
        ("removed", False): 4,
    }
    assert watched.history(0).gone == watched.history(10).first_seen == day(3)


def test_a_column_that_empties_quietly_is_in_the_history(watched: Watched) -> None:
    watched.see((1, "x", 0), (2, "y", 0))
    watched.see((1, None, 0), (2, None, 0))
    assert watched.histories()[0].changes == ()
    watched.confirm(quietly=True)
    assert watched.see((1, None, 0), (2, None, 0)) == ([], [], [])
    assert watched.changes() == []
    (change,) = watched.history(1).changes
    assert (change.noticed, change.column, change.before, change.after) == (day(3), "a", "x", None)


def test_a_new_column_has_its_baseline(url: str) -> None:
    watched = Watched(url, 'KEY: "k"; EVOLVE: true')
    run(url, 'diff (rel, "t") {KEY: "k"}', rel=[{"k": 1}], clock=lambda: START)
    watched.see((1, "x", 0))
    assert watched.changes(include_quiet=True) == []
    watched.see((1, "y", 0))
    (change,) = watched.changes()
    assert (change.before, change.after) == ({"k": 1, "a": "x", "v": 0}, {"k": 1, "a": "y", "v": 0})


def test_without_a_key_rows_come_and_go(url: str) -> None:
    watched = Watched(url, "GUARD: off")
    watched.see((1, "x", 0))
    watched.see((1, "y", 0))
    assert Counter(told(watched.changes())) == {("added", 1, "y"): 1, ("removed", 1, "x"): 1}


def test_several_comparisons_of_one_run_are_all_logged(url: str) -> None:
    def see(*keys: int) -> None:
        statements = 'diff (r, "t") {KEY: "k"} diff (s, "u") {KEY: "k"}'
        rel = [{"k": key, "a": "x"} for key in keys]
        run(url, statements, r=rel, s=rel, clock=lambda: START)

    see(1)
    see(1, 2, 3)
    watched = Watched(url)
    assert Counter(each.table for each in watched.changes(tables=None)) == {"t": 2, "u": 2}
    assert len({each.cursor for each in watched.changes(tables=None)}) == 4


def test_changes_of_a_failed_run_are_not_logged(url: str) -> None:
    watched = Watched(url)
    watched.see((1, "x", 0))
    with pytest.raises(Exception, match="two different tuples"):
        watched.see((1, "y", 0), (2, "a", 0), (2, "b", 0))
    assert watched.changes(include_quiet=True) == []
    assert watched.tracked().seen == day(1)


# --- reading --------------------------------------------------------------------------------------


def test_changes_are_chosen_by_task_time_kind_and_run(watched: Watched) -> None:
    for number in range(1, 4):
        rows = [(key, "a", 0) for key in range(number)]
        watched.see(*rows, identity=RunIdentity(f"run {number}", f"task {number % 2}"))
    newest, older = watched.changes()
    assert [each.run_id for each in (newest, older)] == ["run 3", "run 2"]
    assert watched.changes(task_id="task 1") == [newest]
    assert watched.changes(run_id="run 2") == [older]
    assert watched.changes(after=day(2)) == [newest]
    assert watched.changes(before=day(3)) == [older]
    assert watched.changes(kinds=["removed"]) == watched.changes(kinds=[]) == watched.changes(tables=[]) == []
    assert watched.changes(tables=["t", "other"], limit=1) == [newest]
    assert watched.changes(cursor=newest.cursor) == [older]
    tables = watched.ask(tracked_tables)
    assert [(each.table, each.task_id, each.run_id) for each in tables] == [
        ("t", "task 0", "run 2"),
        ("t", "task 1", "run 3"),
    ]
    assert {each.seen for each in tables} == {day(3)}
    assert watched.ask(lambda connection: tracked_tables(connection, "task 0")) == tables[:1]


def test_a_cursor_is_stable_while_changes_come(watched: Watched) -> None:
    watched.see((0, "a", 0))
    watched.see(*((key, "a", 0) for key in range(8)))
    first = watched.changes(limit=3)
    watched.see(*((key, "a", 0) for key in range(12)))
    rest = watched.changes(cursor=first[-1].cursor)
    assert [each.row["k"] for each in (*first, *rest)] == [7, 6, 5, 4, 3, 2, 1]


@pytest.mark.parametrize("cursor", ["", "x", "1/2/3", "2026-01-01T00:00:00.000000Z/x/1", "gone"])
def test_another_text_is_no_cursor(watched: Watched, cursor: str) -> None:
    watched.see((1, "a", 0))
    with pytest.raises(InputError, match="is no cursor of a change"):
        watched.changes(cursor=cursor)


@pytest.mark.parametrize("cursor", ["x", "other/1", "gone/x"])
def test_another_text_is_no_cursor_of_a_row(watched: Watched, cursor: str) -> None:
    watched.see((1, "a", 0))
    with pytest.raises(InputError, match="is no cursor of a row"):
        watched.histories(cursor=cursor)


def test_a_database_without_system_tables_has_no_history(watched: Watched) -> None:
    run(watched.url, 'dbupdate ("create table t (k integer)")')
    assert watched.histories() == []

    async def drop(connection: Connection) -> None:
        for table in reversed(ALL_OWN_TABLES.split(", ")):
            await connection.run(f"DROP TABLE {table}")

    watched.ask(drop)
    assert [watched.changes(), watched.histories(), watched.ask(tracked_tables)] == [[], [], []]


def test_a_table_that_was_dropped_keeps_its_history_until_it_is_made_anew(watched: Watched) -> None:
    rows = [(number, "a", 0) for number in range(5)]
    watched.see(*rows)
    watched.see(*rows, (5, "x", 0))
    run(watched.url, 'dbupdate ("drop table t")')
    (gone,) = watched.histories()
    assert (gone.row["k"], gone.first_seen, gone.last_seen, gone.gone) == (5, day(2), day(2), day(2))
    watched.see(*rows, (5, "x", 0))
    assert {each.first_seen for each in watched.histories()} == {day(3)}
    assert len(watched.histories()) == 6
    assert told(watched.changes()) == [("added", 5, "x")]


def test_a_table_without_the_columns_of_its_key_has_rows_without_changes(watched: Watched) -> None:
    watched.see((1, "x", 0))
    watched.see((1, "y", 0))
    run(watched.url, 'dbupdate ("alter table t rename column k to other")')
    (found,) = watched.histories(include_gone=False)
    assert (dict(found.row), found.changes) == ({"other": 1, "a": "y", "v": 0}, ())


def test_only_the_last_changes_of_a_row_are_given(watched: Watched) -> None:
    for number in range(6):
        watched.see((0, "a", 0), *([(1, str(number), 0)] if number else []))
    found = next(each for each in watched.histories(most_changes=2) if each.row["k"] == 1)
    assert [each.after for each in found.changes] == ["4", "5"]
    assert found.first_seen == day(2)


VALUES: tuple[Any, ...] = (
    *(None, "", "Ünï\x00\ud800", 1, 1 << 70, 2.5, float("nan"), float("inf"), Decimal("1.10")),
    *(True, date(2026, 1, 31), datetime(2026, 1, 31, 12, tzinfo=UTC), Document("<p>x</p>", "html")),
    *(Relation(Schema(("n",)), [(1,), (None,)]), Relation.of_values([1, "x"])),
)


def test_values_of_all_kinds_come_back_as_they_were(tmp_path: Path) -> None:
    watched = Watched(f"sqlite:{tmp_path / 'test.db'}")
    watched.see((-1, None, None))
    rows = [(at, value, VALUES[at - 1]) for at, value in enumerate(VALUES)]
    watched.see((-1, None, None), *rows)
    found = [tuple(each.after.values()) for each in watched.changes() if each.after is not None]
    assert bag(found) == bag(rows)


# --- forgetting -----------------------------------------------------------------------------------


def test_only_so_many_changes_of_a_table_are_kept(watched: Watched) -> None:
    limited = {"history": {"most_changes": 3}}
    watched.see((0, "a", 0), settings=limited)
    for number in range(1, 4):
        watched.see(*((key, "a", 0) for key in range(2 * number + 1)), settings=limited)
    assert [each.row["k"] for each in watched.changes()] == [6, 5, 4]
    assert watched.tracked().forgotten == day(3)
    assert (watched.history(2).first_seen, watched.history(2).is_first_known) == (day(1), False)
    assert (watched.history(6).first_seen, watched.history(6).is_first_known) == (day(4), True)
    watched.see(*((key, "b", 0) for key in range(7)), settings=limited)
    assert len(watched.changes()) == 3
    other = Watched(watched.url, name="u")
    other.now = watched.now
    other.see((0, "a", 0), settings=limited)
    other.see((0, "a", 0), (1, "a", 0), settings=limited)
    assert (len(watched.changes()), len(other.changes())) == (3, 1)


def test_old_changes_are_forgotten(watched: Watched) -> None:
    limited = {"history": {"keep_days": 2}}
    for number in range(6):
        watched.see(*((key, "a", 0) for key in range(number + 1)), settings=limited)
    assert [each.row["k"] for each in watched.changes()] == [5, 4, 3]
    assert watched.tracked().forgotten == day(3)
    watched.see(*((key, "a", 0) for key in range(6)), settings=limited, after=10 * DAY)
    assert watched.changes() == []


def test_a_history_can_be_turned_off(watched: Watched) -> None:
    off = {"history": {"most_changes": 0}}
    watched.see((0, "a", 0), settings=off)
    watched.see((0, "b", 0), (1, "a", 0), settings=off)
    assert watched.changes(include_quiet=True) == []
    assert {each.first_seen for each in watched.histories()} == {day(1)}


# --- in general -----------------------------------------------------------------------------------


@dataclass
class _Life:
    """The life of a row, as two states of its table tell it."""

    row: Row
    first: datetime | None  # None in a baseline
    seen: datetime
    changes: list[tuple[datetime, Any, Any]] = field(default_factory=list)
    gone: datetime | None = None
    absences: list[tuple[datetime, datetime]] = field(default_factory=list)


class _Lives:
    """The history of a table, in a dictionary."""

    def __init__(self) -> None:
        self.lives: dict[Hashable, _Life] = {}

    def note(self, relation: list[Row], table: list[Row], now: datetime, *, is_baseline: bool) -> int:
        """Compare the table with its last state. Return the number of changes."""
        after = {identity(row[:1]): row for row in table}
        changes = 0
        for key, life in self.lives.items():
            if life.gone is None and key not in after:
                life.gone = now
                changes += 1
        for key, row in after.items():
            changes += self._note_row(key, row, now, is_baseline=is_baseline)
        for key in {identity(row[:1]) for row in relation} & self.lives.keys():
            if self.lives[key].gone is None:
                self.lives[key].seen = now
        return changes

    def _note_row(self, key: Hashable, row: Row, now: datetime, *, is_baseline: bool) -> bool:
        life = self.lives.get(key)
        if life is None:
            self.lives[key] = _Life(row, None if is_baseline else now, now)
            return not is_baseline
        before, life.row = life.row, row
        if life.gone is not None:
            life.absences.append((life.gone, now))
            life.gone = None
            return True
        if identity(before[1:2]) != identity(row[1:2]):
            life.changes.append((now, before[1], row[1]))
            return True
        return False


def _check(watched: Watched, lives: _Lives) -> None:
    since = watched.tracked().since
    found = watched.histories()
    pages: list[RowHistory] = []
    while page := watched.histories(limit=2, cursor=pages[-1].cursor if pages else None):
        pages += page
    assert [each.row_key for each in pages] == [each.row_key for each in found]
    by_key: dict[Hashable, RowHistory] = {identity((each.row["k"],)): each for each in found}
    assert len(by_key) == len(found)
    assert by_key.keys() == lives.lives.keys()
    for key, life in lives.lives.items():
        each = by_key[key]
        assert identity(tuple(each.row.values())) == identity(life.row)
        assert each.first_seen == (life.first or since)
        assert each.gone == life.gone
        assert list(each.absences) == life.absences
        assert bag((one.noticed, one.before, one.after) for one in each.changes) == bag(life.changes)
        assert each.first_seen <= each.last_seen <= life.seen


def _told(changes: list[RowChange], kind: str) -> list[Mapping[str, Any]]:
    return [each.row for each in changes if each.kind == kind]


_numbers = count()


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data(), memory_bytes=st.sampled_from([NO_MEMORY, 1 << 20]))
def test_day_after_day_the_history_equals_a_dictionary(
    url: str, data: st.DataObject, memory_bytes: int
) -> None:
    sequence = data.draw(days(url.partition(":")[0]))
    watched, lives, exists = Watched(url, 'KEY: "k"; IGNORE: "v"', f"h{next(_numbers)}"), _Lives(), False
    for rows, mark, confirms, hours, mode in sequence:
        if confirms and any(each.table == watched.name for each in watched.suspects()):
            watched.confirm(quietly=data.draw(st.booleans()))
        after = timedelta(hours=hours)
        outputs = watched.see(*rows, mark=mark, after=after, mode=mode, memory_bytes=memory_bytes)
        was_there, exists = exists, exists or _is_there(watched)
        table = watched.rows() if exists else []
        is_baseline = not was_there and not outputs[0]
        count = lives.note(rows, table, watched.now, is_baseline=is_baseline)
        changes = watched.changes(include_quiet=True, after=watched.now - timedelta(seconds=1))
        assert len(changes) == count
        for kind, expected in zip(("added", "changed", "removed"), outputs, strict=True):
            news = _told([each for each in changes if each.is_told], kind)
            assert bag(tuple(each.values()) for each in news) == bag(row[:3] for row in expected)
    if exists:
        _check(watched, lives)


def _is_there(watched: Watched) -> bool:
    async def ask(connection: Connection) -> bool:
        return await connection.columns(watched.name) is not None

    return watched.ask(ask)
