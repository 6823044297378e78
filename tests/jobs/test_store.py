"""Jobs in a folder: records come back as they were, the first of a key wins, one process works on a job."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aioflow.jobs import JobError, JobStore, StageRecord
from aioflow.jobs.exchange import StageFailure
from aioflow.jobs.recording import RequestRate
from aioflow.jobs.store import JobDescription, JobFolder, JobState, is_worked_on
from aioflow.relation import Document, identity
from tests.jobs.exchange_cases import (
    check_claims_are_bounded_and_kept,
    check_the_first_record_of_a_key_wins,
    key,
    record,
)
from tests.xml.values import VALUES

FAILURES = st.none() | st.builds(StageFailure, st.text(), st.text(), st.integers(0, 9), st.booleans())
RECORDS = st.builds(
    StageRecord,
    st.integers(0, 3).flatmap(lambda width: st.lists(st.tuples(*[VALUES] * width), max_size=4)),
    st.dictionaries(st.text(max_size=5), st.integers(1, 9), max_size=3),
    st.lists(st.text(max_size=5), max_size=2),
    st.lists(st.tuples(st.just("http://a.example/"), st.booleans()), max_size=2),
    FAILURES,
)


@settings(max_examples=200, deadline=None)
@given(RECORDS)
def test_records_come_back_as_they_were(given_record: StageRecord) -> None:
    found = StageRecord.decoded(given_record.encoded())
    assert list(map(identity, found.rows)) == list(map(identity, given_record.rows))
    assert [list(map(type, row)) for row in found.rows] == [list(map(type, row)) for row in given_record.rows]
    assert found.counts == given_record.counts
    assert found.partial == given_record.partial
    assert found.pages == given_record.pages
    assert found.failure == given_record.failure


async def test_a_group_of_large_pages_does_not_wait_for_more(tmp_path: Path) -> None:
    def stored() -> int:
        with closing(sqlite3.connect(tmp_path / "j" / "job.db")) as connection:
            return int(connection.execute("SELECT count(*) FROM records").fetchone()[0])

    store = await JobStore.open(tmp_path / "j")
    try:
        await store.put(key(0), record((0, "a")))  # the first is stored at once
        for number in range(1, 4):
            await store.put(key(number), StageRecord([(Document("a" * 1_500_000),)]))
        assert stored() >= 3
    finally:
        await store.close()


async def test_the_exchange_in_a_folder(tmp_path: Path) -> None:
    store = await JobStore.open(tmp_path / "j")
    try:
        await check_the_first_record_of_a_key_wins(store)
        await check_claims_are_bounded_and_kept(store)
    finally:
        await store.close()
    store = await JobStore.open(tmp_path / "j")
    try:
        found = await store.find(key(1))
        assert found is not None
        assert found.rows == [(1, "a")]
        assert await store.find(key(2)) is None
        assert await store.claim("pages", [key(1), key(9)], 3) == [True, False]
        await check_the_first_record_of_a_key_wins(store)
    finally:
        await store.close()


async def test_what_was_put_is_stored_by_close(tmp_path: Path) -> None:
    store = await JobStore.open(tmp_path / "j")
    for number in range(300):
        await store.put(
            key(number), record((number,), failure=StageFailure("E", "m") if number % 3 else None)
        )
    await store.close()
    store = await JobStore.open(tmp_path / "j")
    try:
        statistics = await store.statistics()
        assert (statistics.done, statistics.failed) == (100, 200)
    finally:
        await store.close()


async def test_one_process_works_on_a_job(tmp_path: Path) -> None:
    store = await JobStore.open(tmp_path / "j")
    assert is_worked_on(tmp_path / "j")
    with pytest.raises(JobError, match="the job j is being worked on by another process"):
        await JobStore.open(tmp_path / "j")
    await store.close()
    assert not is_worked_on(tmp_path / "j")


async def test_a_folder_of_jobs(tmp_path: Path) -> None:
    jobs = JobFolder(tmp_path)
    assert jobs.names() == []
    store = await JobStore.open(jobs.of("one"))
    await store.describe(JobDescription(plan="p.plan", attempts=1))
    await store.close()
    assert jobs.names() == ["one"]
    description, statistics, is_running = jobs.look("one")
    assert (description.plan, description.state, statistics.done, is_running) == (
        *("p.plan", JobState.RUNNING, 0),
        False,
    )
    with pytest.raises(JobError, match=r"there is no job two in .* \(jobs: one\)"):
        jobs.look("two")
    jobs.forget("one")
    assert jobs.names() == []
    with pytest.raises(JobError, match="there is no job one"):
        jobs.forget("one")


def test_the_rate_is_that_of_the_last_minute() -> None:
    rate = RequestRate()
    assert rate.per_second(0) is None
    for tenth in range(1200):
        rate.add(1000 + tenth / 10)
    assert rate.per_second(1000.5) is None
    assert rate.per_second(1120) == pytest.approx(10, rel=0.03)
    assert rate.per_second(1150) == pytest.approx(5, rel=0.05)
    assert rate.per_second(1190) == 0
