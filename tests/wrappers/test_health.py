"""The health of extraction: what is counted, what is told, and the file that keeps it."""

from __future__ import annotations

import asyncio
import os
import random
import sqlite3
import subprocess
import sys
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from aioflow.folders import data_folder
from aioflow.relation import Relation, Schema
from aioflow.testing import VirtualLoop
from aioflow.wrappers.health import HealthStore, RunHealth, Tally, decay
from aioflow.wrappers.health_store import KEPT_RUNS

HOUSES = Schema.of("price", "address")


def tally_of(rows: int, **nulls: int) -> Tally:
    """So many rows on one page, with so many nulls in each column."""
    tally = Tally(tuple(nulls))
    tally.pages = 1
    values = [[None] * count + ["x"] * (rows - count) for count in nulls.values()]
    tally.add(list(zip(*values, strict=True)) if values else [()] * rows)
    return tally


def run_of(rows: int, pages: int = 1, **nulls: int) -> RunHealth:
    return RunHealth("run", rows, pages, nulls)


def told(history: Iterable[RunHealth], run: RunHealth) -> list[str]:
    return decay("search", run, list(history))


def steady(count: int, rows: int, pages: int = 1, **nulls: int) -> list[RunHealth]:
    return [run_of(rows, pages, **nulls) for _ in range(count)]


# --- counting ------------------------------------------------------------------------------------


def test_a_tally_counts_rows_and_the_nulls_of_each_column() -> None:
    tally = Tally(("price", "address"))
    tally.add([(1, None), (None, None)])
    tally.add([])
    tally.add([(0, "")])
    assert (tally.rows, tally.by_column()) == (3, {"price": 1, "address": 2})


def test_an_embedded_relation_without_rows_counts_as_null() -> None:
    tally = Tally(("rooms",))
    tally.add([(Relation(HOUSES, [(1, "a")]),), (Relation(HOUSES),), (None,)])
    assert tally.by_column() == {"rooms": 2}


# --- what is told --------------------------------------------------------------------------------


def test_rows_that_drop_by_more_than_half_are_told() -> None:
    history = [run_of(rows) for rows in (72, 70, 75, 71, 74)]
    assert told(history, run_of(40)) == []
    assert told(history, run_of(12)) == [
        "wrapper search: 12 rows on 1 page, where its last 5 runs had about 72 a page; has the page changed?"
    ]


def test_a_smaller_query_with_as_many_rows_on_each_page_is_not_told() -> None:
    history = [run_of(17, pages=3) for _ in range(10)]
    assert told(history, run_of(4, pages=1)) == []
    assert told([run_of(92, pages=4) for _ in range(10)], run_of(1, pages=1)) == []
    assert told(steady(10, 23, pages=23), run_of(1, pages=1)) == []


def test_pages_that_hold_fewer_rows_are_told_however_many_there_are() -> None:
    history = [run_of(rows, pages) for rows, pages in ((200, 10), (61, 3), (119, 6), (80, 4))]
    assert told(history, run_of(9, pages=10)) == [
        "wrapper search: 9 rows on 10 pages, where its last 4 runs had about 20 a page; has the page changed?"
    ]


def test_runs_that_read_no_page_to_its_end_are_no_measure_for_rows() -> None:
    assert told(steady(5, 72), run_of(0, pages=0)) == []
    assert told(steady(5, 72, pages=0), run_of(3)) == []
    assert told([*steady(5, 500, pages=0), *steady(3, 10)], run_of(10)) == []


def test_pages_without_any_row_are_told_of_a_wrapper_that_always_found_some() -> None:
    assert told(steady(3, 6), run_of(0)) == [
        "wrapper search: no rows on 1 page, where its last 3 runs had about 6 a page; has the page changed?"
    ]
    assert told(steady(3, 23, pages=23), run_of(0, pages=4)) == [
        "wrapper search: no rows on 4 pages, where its last 3 runs had about 1 a page; has the page changed?"
    ]
    assert told([*steady(3, 6), run_of(0)], run_of(0)) == []


def test_nothing_is_told_before_three_runs_are_known() -> None:
    assert told(steady(2, 72, price=0), run_of(0, price=0)) == []
    assert told(steady(3, 72, price=0), run_of(0, price=0)) != []


def test_rows_that_always_varied_may_drop() -> None:
    history = [run_of(rows) for rows in (10, 300, 25, 120, 8, 700, 60)]
    assert told(history, run_of(9)) == []


def test_small_counts_do_not_cry_wolf() -> None:
    assert told([run_of(rows) for rows in (2, 1, 3, 2, 0, 2)], run_of(0)) == []
    assert told(steady(3, 2), run_of(0)) == []
    assert told(steady(3, 1, price=0), run_of(1, price=1)) == []
    assert told([run_of(3, price=nulls) for nulls in (0, 1, 0, 0, 2, 0, 0)], run_of(3, price=3)) == []


def test_a_steady_small_count_that_goes_to_nothing_is_told_once_it_is_known_to_be_steady() -> None:
    assert told(steady(4, 1), run_of(0)) == []
    assert told(steady(20, 1), run_of(0)) != []


def test_a_column_that_goes_null_is_told_with_its_share() -> None:
    history = [run_of(50, price=nulls, address=0) for nulls in (2, 3, 1, 2, 4)]
    assert told(history, run_of(48, price=40, address=0)) == [
        "wrapper search: price is null in 83% of 48 rows, where 4% is usual; has the page changed?"
    ]
    assert told(history, run_of(48, price=12, address=0)) == []


def test_a_column_that_was_often_null_may_vary_as_it_did() -> None:
    history = [run_of(20, price=nulls) for nulls in (2, 14, 8, 18, 5, 11)]
    assert told(history, run_of(20, price=18)) == []


def test_a_column_that_never_was_null_and_is_now_always_is_told_even_for_one_row() -> None:
    assert told(steady(5, 4, price=0), run_of(3, price=3)) == [
        "wrapper search: price is always null, and never was in the last 5 runs; has the page changed?"
    ]
    assert told(steady(20, 1, price=0), run_of(1, price=1)) != []


def test_columns_that_are_new_or_gone_are_not_compared() -> None:
    assert told(steady(5, 50, price=0), run_of(50, beds=50)) == []


def test_runs_without_rows_say_nothing_about_columns() -> None:
    history = [*steady(2, 50, price=0), *steady(10, 0, price=0)]
    assert told(history, run_of(50, price=50)) == []


def test_ordinary_fluctuation_is_hardly_ever_told() -> None:
    chance = random.Random(7)

    def drawn(rows: float, share: float) -> RunHealth:
        count = sum(chance.random() < rows / 200 for _ in range(200))
        return run_of(count, price=sum(chance.random() < share for _ in range(count)))

    alarms = 0
    for _ in range(40):
        rows, share = chance.uniform(1, 80), chance.random()
        runs = [drawn(rows, share) for _ in range(30)]
        alarms += sum(bool(told(runs[max(0, now - 20) : now], runs[now])) for now in range(3, 30))
    assert alarms <= 1  # of 1,080 runs


# --- the file ------------------------------------------------------------------------------------


async def record_all(path: Path, rows: Sequence[int], start: int = 0) -> list[list[str]]:
    """A scripted history: one run for each number of rows."""
    async with HealthStore.open(path) as store:
        return [
            await store.record(f"run-{number}", "site.plan:search", tally_of(count, price=0))
            for number, count in enumerate(rows, start)
        ]


async def test_a_drop_is_told_by_the_run_that_has_it(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "health.sqlite"
    assert await record_all(path, [72, 70, 74, 71]) == [[], [], [], []]
    [messages] = await record_all(path, [3], start=4)
    assert messages[0].startswith("wrapper site.plan:search: 3 rows on 1 page, where its last 4 runs had")


async def test_a_bad_run_is_no_measure_for_later_ones(tmp_path: Path) -> None:
    path = tmp_path / "health.sqlite"
    told = await record_all(path, [72] * 5 + [0] * 6 + [72])
    assert [bool(messages) for messages in told] == [False] * 5 + [True] * 6 + [False]


async def test_ten_bad_runs_in_a_row_are_the_new_usual(tmp_path: Path) -> None:
    path = tmp_path / "health.sqlite"
    told = await record_all(path, [72] * 12 + [20] * 14)
    assert [bool(messages) for messages in told] == [False] * 12 + [True] * 10 + [False] * 4


async def test_wrappers_have_histories_of_their_own(tmp_path: Path) -> None:
    await record_all(tmp_path / "health.sqlite", [72] * 5)
    async with HealthStore.open(tmp_path / "health.sqlite") as store:
        assert await store.record("other", "other.plan:search", tally_of(1)) == []
        assert await store.wrappers() == ["other.plan:search", "site.plan:search"]


async def test_the_history_has_the_last_run_first(tmp_path: Path) -> None:
    await record_all(tmp_path / "health.sqlite", [72, 71, 70, 1])
    async with HealthStore.open(tmp_path / "health.sqlite") as store:
        history = await store.history("site.plan:search")
    assert [(run.run_id, run.rows, run.is_good) for run in history] == [
        ("run-3", 1, False),
        ("run-2", 70, True),
        ("run-1", 71, True),
        ("run-0", 72, True),
    ]
    assert all(run.ended is not None and run.nulls == {"price": 0} for run in history)


async def test_a_run_that_is_recorded_again_replaces_its_figures(tmp_path: Path) -> None:
    await record_all(tmp_path / "health.sqlite", [72])
    await record_all(tmp_path / "health.sqlite", [50])
    async with HealthStore.open(tmp_path / "health.sqlite") as store:
        assert [run.rows for run in await store.history("site.plan:search")] == [50]


async def test_a_wrapper_that_was_changed_begins_anew(tmp_path: Path) -> None:
    await record_all(tmp_path / "health.sqlite", [72] * 5)
    async with HealthStore.open(tmp_path / "health.sqlite") as store:
        await store.forget("site.plan:search")
        assert await store.record("new", "site.plan:search", tally_of(0)) == []


async def test_the_history_is_pruned(tmp_path: Path) -> None:
    await record_all(tmp_path / "health.sqlite", [72] * (KEPT_RUNS + 5))
    async with HealthStore.open(tmp_path / "health.sqlite") as store:
        history = await store.history("site.plan:search", most=10_000)
    assert len(history) == KEPT_RUNS
    assert history[-1].run_id == "run-5"


def test_the_file_is_kept_on_a_loop_with_virtual_time(tmp_path: Path) -> None:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        told = runner.run(record_all(tmp_path / "health.sqlite", [72, 72, 72, 0]))
    assert [bool(messages) for messages in told] == [False, False, False, True]


def test_the_file_lies_in_the_users_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert HealthStore.open().path == data_folder() / "health.sqlite"
    assert HealthStore.open().path.is_relative_to(tmp_path)


async def test_a_run_that_is_cancelled_while_it_records_leaves_nothing_open(tmp_path: Path) -> None:
    path = tmp_path / "health.sqlite"
    await record_all(path, [72])
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("begin immediate")
        recording = asyncio.ensure_future(record_all(path, [72], start=1))
        await asyncio.sleep(0)  # its thread is at work now, and waits for the other
        recording.cancel()
        await asyncio.sleep(0)
        other.execute("commit")
        with pytest.raises(asyncio.CancelledError):
            await recording
    # The last one who closes the file removes what stands beside it.
    assert names_in(tmp_path) == ["health.sqlite"]


def names_in(folder: Path) -> list[str]:
    return [each.name for each in folder.iterdir()]


RECORD = """
import asyncio, sys
from aioflow.wrappers.health import HealthStore, Tally

async def main(path, name):
    tally = Tally(("price",))
    tally.add([(1,)] * 72)
    sys.stdin.readline()  # all begin at once
    for number in range(20):
        async with HealthStore.open(path) as store:
            for message in await store.record(f"{name}-{number}", "shared", tally):
                print(message)

asyncio.run(main(*sys.argv[1:]))
"""


def record_in_processes(path: Path) -> list[tuple[int, bytes]]:
    """The exit status and output of four processes that record twenty runs each."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", RECORD, str(path), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
        )
        for name in "abcd"
    ]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write(b"\n")
        process.stdin.flush()
    outputs = [process.communicate()[0] for process in processes]
    return [(process.returncode, output) for process, output in zip(processes, outputs, strict=True)]


async def test_several_processes_record_at_once(tmp_path: Path) -> None:
    path = tmp_path / "health.sqlite"
    assert record_in_processes(path) == [(0, b"")] * 4
    async with HealthStore.open(path) as store:
        assert len(await store.history("shared")) == 80


# --- files that cannot be used -------------------------------------------------------------------


async def expect_one_warning(path: Path, reason: str) -> None:
    async with HealthStore.open(path) as store:
        [message] = await store.record("run", "search", tally_of(3))
        assert str(path.name) in message
        assert reason in message
        assert await store.record("run", "detail", tally_of(3)) == []
        assert await store.history("search") == []
        assert await store.wrappers() == []
        await store.forget("search")


async def test_a_file_that_is_no_database_is_told_once_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "health.sqlite"
    path.write_bytes(b"these are not the bytes of a database" * 100)
    before = path.read_bytes()
    await expect_one_warning(path, "not a database")
    assert path.read_bytes() == before


async def test_a_damaged_page_of_the_file_is_told(tmp_path: Path) -> None:
    path = tmp_path / "health.sqlite"
    await record_all(path, [72] * 50)
    content = bytearray(path.read_bytes())
    content[4096:] = bytes([7]) * (len(content) - 4096)
    path.write_bytes(content)
    await expect_one_warning(path, "malformed")


async def test_figures_that_nobody_wrote_are_told(tmp_path: Path) -> None:
    path = tmp_path / "health.sqlite"
    await record_all(path, [72] * 3)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("update wrapper_runs set nulls = 'x', wrapper = 'search'")
    await expect_one_warning(path, "damaged")


async def test_a_file_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "health.sqlite"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("pragma user_version = 99")
    await expect_one_warning(path, "newer version")


async def test_a_folder_in_the_place_of_the_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "health.sqlite").mkdir()
    await expect_one_warning(tmp_path / "health.sqlite", "cannot be used")


async def test_a_place_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    await expect_one_warning(tmp_path / "file" / "health.sqlite", "cannot be used")
