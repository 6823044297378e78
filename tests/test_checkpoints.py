"""COMMIT: batch: services commit while the plan streams, at moments when no row is under way."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any, ClassVar

import pytest

from aioflow import Context, Engine, Row, RunError, Stream, loads, operator
from aioflow.authoring.operator import same_as_input
from aioflow.authoring.services import Scope, ServiceHost
from aioflow.runtime.events import Event, RunCommitted
from aioflow.testing import run


class Notes:
    """Two lists that always belong together: every row stands in both, or in none."""

    scope: ClassVar[Scope] = "run"
    commits: ClassVar[list[tuple[Counter[Row], Counter[Row]]]] = []
    begun: ClassVar[list[bool]] = []  # for each commit whether there was anything
    followed: ClassVar[list[int]] = []
    fails: ClassVar[bool] = False
    takes_seconds: ClassVar[float] = 0.0

    def __init__(self) -> None:
        self.one: Counter[Row] = Counter()
        self.two: Counter[Row] = Counter()

    @classmethod
    def open_service(cls, host: ServiceHost) -> Notes:
        return cls()

    @property
    def wants_checkpoint(self) -> bool:
        return bool(self.one or self.two)

    async def commit(self) -> bool:
        self.begun.append(self.wants_checkpoint)
        await asyncio.sleep(self.takes_seconds)
        if self.fails:
            type(self).fails = False
            raise RunError("the disk is full")
        if not self.wants_checkpoint:
            return False
        self.commits.append((self.one, self.two))
        self.one, self.two = Counter(), Counter()
        return True

    async def committed(self) -> None:
        self.followed.append(len(self.commits))

    async def close(self) -> None:
        pass


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (
        ("commits", []),
        ("begun", []),
        ("followed", []),
        ("fails", False),
        ("takes_seconds", 0.0),
    ):
        monkeypatch.setattr(Notes, name, value)


@operator(name="note_one", schema=same_as_input, effects=True)
async def note_one(rows: Stream, *, context: Context) -> AsyncGenerator[Row, None]:
    """Note tuples as they come."""
    async for row in rows:
        context.service(Notes).one[row] += 1
        yield row


@operator(name="note_two", schema=same_as_input, effects=True)
async def note_two(rows: Stream, *, context: Context) -> AsyncGenerator[Row, None]:
    """Note tuples after thinking about each."""
    async for row in rows:
        await context.sleep(0.3)
        context.service(Notes).two[row] += 1
        yield row


PLAN = """
PLAN watch
{
  INPUT: x
  OUTPUT: noted
  COMMIT: batch
  BODY
  {
    note_one (x)
    select (x, "n >= 0" : some)
    distinct (some : different)
    note_two (different : noted)
  }
}
"""


async def ticks(count: int, seconds: float = 0.25) -> AsyncIterator[dict[str, Any]]:
    for number in range(count):
        await asyncio.sleep(seconds)
        yield {"n": number}


async def watched(count: int, plan: str = PLAN) -> list[int]:
    async with Engine() as engine:
        return [record["n"] for record in await engine.run(loads(plan), x=ticks(count))]


@pytest.mark.parametrize("seed", range(20))
def test_what_a_checkpoint_makes_durable_belongs_together(seed: int) -> None:
    assert run(watched(12), seed=seed) == list(range(12))
    assert len(Notes.commits) > 2
    for one, two in Notes.commits:
        assert one == two
    whole = sum((one for one, _ in Notes.commits), Counter())
    assert whole == Counter({(number,): 1 for number in range(12)})


def test_what_follows_a_checkpoint_comes_after_it() -> None:
    run(watched(8))
    assert Notes.followed == list(range(1, len(Notes.commits) + 1))


def test_each_commit_is_published_with_its_number() -> None:
    seen: list[tuple[str, int]] = []

    def listen(event: Event) -> None:
        if isinstance(event, RunCommitted):
            seen.append((event.plan, event.number))

    async def main() -> None:
        async with Engine() as engine:
            engine.subscribe(listen)
            await engine.run(loads(PLAN), x=ticks(8))

    run(main())
    assert len(Notes.commits) > 2
    assert seen == [("watch", number + 1) for number in range(len(Notes.commits))]


def test_a_checkpoint_that_fails_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Notes, "fails", True)
    with pytest.raises(RunError, match="the disk is full"):
        run(watched(8))


async def ending_during_a_checkpoint(seconds: float) -> list[int]:
    """The checkpoint begins after 1 second; the last row comes before, the end of the input later."""

    async def source() -> AsyncIterator[dict[str, Any]]:
        async for row in ticks(3):
            yield row
        await asyncio.sleep(seconds)

    async with Engine() as engine:
        return [record["n"] for record in await engine.run(loads(PLAN), x=source())]


@pytest.mark.parametrize("seconds", [0.0, 2.0], ids=["before the commit", "during the commit"])
@pytest.mark.parametrize("seed", range(5))
def test_a_run_that_ends_during_a_checkpoint_waits_for_it(
    seed: int, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Notes, "takes_seconds", 60.0)
    assert run(ending_during_a_checkpoint(seconds), seed=seed) == [0, 1, 2]
    ((one, two),) = Notes.commits
    assert one == two == Counter({(number,): 1 for number in range(3)})
    assert Notes.begun == [True, False]


def test_a_checkpoint_that_fails_when_the_run_has_ended_fails_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Notes, "takes_seconds", 60.0)
    monkeypatch.setattr(Notes, "fails", True)
    with pytest.raises(RunError, match="the disk is full"):
        run(ending_during_a_checkpoint(2.0))
    assert Notes.commits == []
    assert Notes.begun == [True]


def test_without_it_nothing_is_durable_before_the_end() -> None:
    run(watched(8, PLAN.replace("COMMIT: batch", "")))
    assert len(Notes.commits) == 1
    assert Notes.followed == [1]


def test_a_reader_that_leaves_keeps_what_was_committed_and_loses_the_rest() -> None:
    async def leave() -> None:
        async with Engine() as engine, engine.stream(loads(PLAN), x=ticks(1000)) as stream:
            async for record in stream:
                if record["n"] == 10:
                    return

    run(leave())
    assert Notes.commits
    assert all(one == two for one, two in Notes.commits)


# --- recursion ----------------------------------------------------------------------------------


async def recurred(plan: str, count: int) -> list[int]:
    """The first results of a recursion, each of whose levels takes a while."""
    found: list[int] = []
    async with Engine() as engine, engine.stream(loads(plan), x=[{"n": 0}]) as stream:
        async for record in stream:
            found.append(record["n"])
            if record["n"] >= count:
                return found
    return found


def recursive(
    statements: str, call: str = "watch (next : rest)", union: str = "union (two, rest : noted)"
) -> str:
    return f"""
    PLAN watch
    {{
      INPUT: x
      OUTPUT: noted
      COMMIT: batch
      BODY
      {{
        note_one (x : one)
        {statements}
        note_two (x : two)
        project (two, "n + 1 as n" : next)
        {call}
        {union} {{ALL}}
        log (one)
      }}
    }}
    """


RESTING = """
        sort (one, "n" : sorted) log (sorted)
        pack (one, "all" : packed) log (packed)
        select (one, "n < 0" : none)
        minus (one, none : held) log (held)
"""


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize(
    ("statements", "call", "union"),
    [
        ("", "watch (next : rest)", "union (two, rest : noted)"),
        ("", 'watch (next : below) select (below, "n >= 0" : rest)', "union (two, rest : noted)"),
        ("", "distinct (next : more) watch (more : rest)", "union (rest, two : noted)"),
        (RESTING, "watch (next : rest)", "union (two, rest : noted)"),
    ],
    ids=["tail call", "no tail call", "step before the call", "rows that rest"],
)
def test_an_endless_recursion_commits_as_it_goes_on(
    seed: int, statements: str, call: str, union: str
) -> None:
    plan = recursive(statements, call, union)
    run(recurred(plan, 30), seed=seed)
    assert len(Notes.commits) > 3
    for one, two in Notes.commits:
        assert one == two
    whole = sum((one for one, _ in Notes.commits), Counter())
    assert whole == Counter({(number,): 1 for number in range(len(whole))})


@pytest.mark.parametrize("seed", range(10))
def test_a_recursion_that_starts_in_a_called_plan_commits_as_well(seed: int) -> None:
    """Each level gives several tuples to the next, which come one by one."""
    plan = """
    PLAN main { INPUT: x OUTPUT: noted COMMIT: batch BODY { spread (x : noted) } }
    PLAN spread { INPUT: x OUTPUT: noted BODY {
        note_one (x : one)
        note_two (x : two)
        project (two, "2 * n + 1 as n" : odd)
        project (two, "2 * n + 2 as n" : even)
        union (odd, even : next) {ALL}
        spread (next : rest)
        union (two, rest : noted) {ALL}
        log (one)
    } }
    """

    async def main() -> None:
        async with Engine() as engine, engine.stream(loads(plan, plan="main"), x=[{"n": 0}]) as stream:
            async for record in stream:
                if record["n"] > 100_000:
                    return

    run(main(), seed=seed)
    assert len(Notes.commits) > 3
    assert all(one == two for one, two in Notes.commits)


COUNTING = """
PLAN main { INPUT: x OUTPUT: noted COMMIT: batch BODY {
    count_up (x : all)
    note_one (all : one)
    note_two (all : noted)
    log (one)
} }
PLAN count_up { INPUT: x OUTPUT: all BODY {
    project (x, "n + 1 as n" : next)
    count_up (next : rest)
    union (x, rest : all) {ALL}
} }
"""


def test_a_work_list_rests_at_a_checkpoint() -> None:
    async def main() -> None:
        async with Engine() as engine, engine.stream(loads(COUNTING, plan="main"), x=[{"n": 0}]) as stream:
            async for record in stream:
                if record["n"] > 2000:
                    return

    run(main())
    assert len(Notes.commits) > 1
    assert all(one == two for one, two in Notes.commits)
