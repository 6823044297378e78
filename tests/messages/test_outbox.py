"""The outbox of a run: messages and writes are committed together, and messages are delivered after that."""

import asyncio
import re
import tracemalloc
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from aioflow import Context, Engine, Result, Row, RunError, Stream, loads, same_as_input
from aioflow.authoring.operator import Registry, StoreUse, describe, load_operators
from aioflow.messages.outbox.courier import Courier, Report
from aioflow.messages.outbox.message import DeliveryError, Message
from aioflow.messages.outbox.rows import OutboxAccount, Waiting
from aioflow.messages.outbox.service import Outbox, report_warnings
from aioflow.runtime.events import Event, MessagesDelivered, RunCommitted, RunEnded
from aioflow.testing import VirtualLoop
from tests.messages.posts import NOON, Post, ScriptedChannel, address_of, failing, opened_post

PLAN = """
PLAN tell
{
  INPUT: people (name, age number)
  BODY
  {
    dbappend (people, "people")
    post (people)
    select (people, "age < 0" : wrong)
    refuse (wrong)
  }
}
"""


async def post(rel: Stream, *, context: Context) -> AsyncGenerator[Row, None]:
    """Posts a message for each tuple."""
    async for row in rel:
        await context.service(Outbox).post("test", "main", {"subject": row[0]}, where=context.where)
        yield row


async def refuse(rel: Stream) -> AsyncGenerator[Row, None]:
    """Fails at the first tuple."""
    async for row in rel:
        raise ValueError(f"refused {row}")
        yield row


def registry() -> Registry:
    def posts(settings: Any) -> StoreUse:
        return StoreUse(None, "post")

    return Registry(
        [
            *load_operators(),
            describe(post, effects=True, store=posts, schema=same_as_input),
            describe(refuse, effects=True, schema=same_as_input),
        ]
    )


@pytest.fixture
def channel(monkeypatch: pytest.MonkeyPatch) -> ScriptedChannel:
    """What the entry points bring: one channel, called `test`."""
    made = ScriptedChannel()
    point = SimpleNamespace(name="test", load=lambda: lambda configuration: made)
    monkeypatch.setattr("aioflow.messages.channels.installed", lambda group: (point,))
    return made


def configuration(url: str, **outbox: Any) -> dict[str, Any]:
    return {"database": {"default": {"url": url}}, "outbox": {"retry_base_seconds": 1000, **outbox}}


async def told(url: str, *people: tuple[str, int], **outbox: Any) -> Result:
    async with Engine(registry=registry(), configuration=configuration(url, **outbox)) as engine:
        given = [{"name": name, "age": age} for name, age in people]
        return await engine.run(loads(PLAN), people=given)


async def stored(url: str) -> list[str]:
    connection = await Post(url).connect()
    try:
        if await connection.columns("people") is None:
            return []
        return [name for (name,) in await connection.fetch("SELECT name FROM people ORDER BY name")]
    finally:
        await connection.close()


async def test_a_run_that_ends_well_delivers_what_it_posted(
    database_url: str, channel: ScriptedChannel
) -> None:
    result = await told(database_url, ("Ann", 30), ("Bob", 40))
    assert result.warnings == ()
    assert channel.subjects == ["Ann", "Bob"]
    assert channel.closed == 1
    first = channel.delivered[0]
    assert first.run_id == channel.delivered[1].run_id != ""
    assert "post" in first.statement
    async with opened_post(database_url) as opened:
        assert await opened.states() == {"Ann": "sent", "Bob": "sent"}
        assert {entry.message.key for entry in await opened.entries()} == {
            message.key for message in channel.delivered
        }


async def test_the_account_of_a_run_tells_what_became_of_messages(
    database_url: str, channel: ScriptedChannel
) -> None:
    channel.does = failing(DeliveryError("greylisted"), DeliveryError("no such user", final=True))
    account = (await told(database_url, ("Ann", 30), ("Bob", 40), ("Cleo", 50))).account
    entry = next(each for each in account.entries if each.name == "messages")
    assert entry.figures == {"posted": 3, "committed": True, "delivered": 1, "waiting": 1, "dead": 1}
    assert entry.lines == ("1 message delivered, 1 waiting, 1 given up",)


async def published(url: str, *people: tuple[str, int], **outbox: Any) -> list[Any]:
    """The events that tell of commits, deliveries and the end of a run."""
    seen: list[Any] = []

    def listen(event: Event) -> None:
        if isinstance(event, RunCommitted | MessagesDelivered | RunEnded):
            seen.append(event)

    async with Engine(registry=registry(), configuration=configuration(url, **outbox)) as engine:
        engine.subscribe(listen)
        given = [{"name": name, "age": age} for name, age in people]
        with suppress(RunError):
            await engine.run(loads(PLAN), people=given)
    return seen


async def test_the_commit_is_published_before_and_deliveries_after_messages_leave(
    database_url: str, channel: ScriptedChannel
) -> None:
    order: list[str] = []

    async def does(message: Message) -> None:
        order.append(f"sent {message.content['subject']}")

    channel.does = does
    async with Engine(registry=registry(), configuration=configuration(database_url)) as engine:
        engine.subscribe(lambda event: order.append(type(event).__name__))
        await engine.run(loads(PLAN), people=[{"name": "Ann", "age": 30}])
    assert order[order.index("RunCommitted") :] == [
        "RunCommitted",
        "sent Ann",
        "MessagesDelivered",
        "RunEnded",
    ]


async def test_the_event_of_deliveries_has_their_figures(database_url: str, channel: ScriptedChannel) -> None:
    channel.does = failing(DeliveryError("greylisted"), DeliveryError("no such user", final=True))
    _, delivered, _ = await published(database_url, ("Ann", 30), ("Bob", 40), ("Cleo", 50))
    assert (delivered.plan, delivered.sent, delivered.failed, delivered.waiting) == ("tell", 1, 1, 1)


async def test_a_run_that_fails_publishes_neither_commit_nor_deliveries(
    database_url: str, channel: ScriptedChannel
) -> None:
    (ended,) = await published(database_url, ("Ann", 30), ("Bob", -1))
    assert ended.outcome == "failed"


async def test_a_run_that_leaves_deliveries_to_others_publishes_its_commit_only(
    database_url: str, channel: ScriptedChannel
) -> None:
    seen = await published(database_url, ("Ann", 30), deliver_seconds=0)
    assert [type(event) for event in seen] == [RunCommitted, RunEnded]


async def test_messages_of_a_run_that_failed_were_not_sent(
    database_url: str, channel: ScriptedChannel
) -> None:
    async with Engine(registry=registry(), configuration=configuration(database_url)) as engine:
        people = [{"name": "Ann", "age": 30}, {"name": "Bob", "age": -1}]
        async with engine.stream(loads(PLAN), people=people) as stream:
            with pytest.raises(RunError):
                async for _ in stream.batches():
                    pass
    entry = next(each for each in stream.account().entries if each.name == "messages")
    assert entry.figures == {"posted": 2, "committed": False}
    assert entry.lines == ("2 messages not sent",)


async def test_a_run_that_fails_stores_and_delivers_nothing(
    database_url: str, channel: ScriptedChannel
) -> None:
    with pytest.raises(RunError, match="refused"):
        await told(database_url, ("Ann", 30), ("Bob", -1))
    assert (channel.delivered, await stored(database_url)) == ([], [])
    async with opened_post(database_url) as opened:
        assert await opened.entries() == []


async def test_what_cannot_be_delivered_is_a_warning_and_leaves_with_the_next_run(
    database_url: str, channel: ScriptedChannel
) -> None:
    channel.does = failing(DeliveryError("greylisted"), DeliveryError("no such user", final=True))
    result = await told(database_url, ("Ann", 30), ("Bob", 40), ("Cleo", 50))
    dead, waiting = map(str, result.warnings)
    assert dead == (
        "1 message could not be delivered, nor will be (test main: no such user); see `aioflow outbox list`"
    )
    assert waiting.startswith("1 message waits to be delivered (test main: greylisted); next try in ")
    assert waiting.endswith("see `aioflow outbox list`")
    assert await stored(database_url) == ["Ann", "Bob", "Cleo"]

    async with opened_post(database_url) as opened:
        ((key, _),) = [
            (entry.message.key, entry.state) for entry in await opened.entries() if entry.state == "waiting"
        ]
        await opened.table().retry(key, NOON)
    await told(database_url, ("Dan", 60))
    assert channel.subjects == ["Ann", "Bob", "Cleo", "Ann", "Dan"]


async def test_a_run_may_leave_deliveries_to_others(database_url: str, channel: ScriptedChannel) -> None:
    result = await told(database_url, ("Ann", 30), deliver_seconds=0)
    assert (channel.delivered, result.warnings) == ([], ())
    async with opened_post(database_url) as opened:
        assert await opened.states() == {"Ann": "waiting"}


async def test_a_plan_that_commits_as_it_streams_delivers_meanwhile(
    tmp_path: Path, channel: ScriptedChannel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aioflow.runtime.checkpoints.INTERVAL_SECONDS", 0.05)
    url = f"sqlite:{tmp_path / 'test.db'}"
    arrived = asyncio.Event()

    async def does(message: Any) -> None:
        arrived.set()

    channel.does = does

    async def people() -> AsyncIterator[dict[str, Any]]:
        yield {"name": "Ann", "age": 30}
        await arrived.wait()
        arrived.clear()
        yield {"name": "Bob", "age": 40}
        await arrived.wait()

    text = PLAN.replace("INPUT:", "COMMIT: batch\n  INPUT:")
    async with Engine(registry=registry(), configuration=configuration(url)) as engine:
        await engine.run(loads(text), people=people())
    assert channel.subjects == ["Ann", "Bob"]
    assert await stored(url) == ["Ann", "Bob"]


async def test_a_message_that_is_under_way_when_a_streaming_run_ends_goes_once(
    tmp_path: Path, channel: ScriptedChannel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aioflow.runtime.checkpoints.INTERVAL_SECONDS", 0.05)
    url = f"sqlite:{tmp_path / 'test.db'}"
    arrived, stopped = asyncio.Event(), asyncio.Event()

    async def does(message: Any) -> None:
        arrived.set()
        await stopped.wait()

    stop = Courier.stop

    def stop_and_tell(courier: Courier) -> None:
        stop(courier)
        stopped.set()

    channel.does = does
    monkeypatch.setattr(Courier, "stop", stop_and_tell)

    async def people() -> AsyncIterator[dict[str, Any]]:
        yield {"name": "Ann", "age": 30}
        await arrived.wait()

    text = PLAN.replace("INPUT:", "COMMIT: batch\n  INPUT:")
    async with Engine(registry=registry(), configuration=configuration(url)) as engine:
        await engine.run(loads(text), people=people())
    assert channel.subjects == ["Ann"]


def test_many_large_messages_do_not_fill_memory(tmp_path: Path) -> None:
    class Host:
        """A run whose transaction is looked at from here."""

        def __init__(self) -> None:
            self.configuration: dict[str, Any] = {}
            self.writes: list[Any] = []

        def service(self, kind: Any) -> Any:
            return self

        def database_of(self, database: Any) -> Any:
            return address_of(f"sqlite:{tmp_path / 'a.db'}")

        def stage(self, database: Any, write: Any) -> None:
            self.writes = [write]

    host = Host()
    run: Any = SimpleNamespace(run_id="run")

    async def main() -> None:
        outbox = Outbox(host, run)  # type: ignore[arg-type]
        for number in range(500):
            await outbox.post("test", None, {"text": f"{number}".ljust(50_000)}, where="plan:1")
        (write,) = host.writes
        assert not write.is_empty
        async with opened_post(f"sqlite:{tmp_path / 'a.db'}") as opened:
            connection = await opened.connect()
            write.seal()
            await write.apply(connection)
            assert await connection.fetch("SELECT count(*), count(DISTINCT key) FROM aioflow_outbox") == [
                (500, 500)
            ]
            await connection.close()
        write.forget()
        assert write.is_empty
        write.close()

    tracemalloc.start()
    try:
        asyncio.run(main())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 18_000_000


def test_the_warnings_of_a_run_say_how_many_why_and_when() -> None:
    address = address_of("sqlite:test.db")
    waiting = [
        Waiting(OutboxAccount("email", "home"), 2, NOON + timedelta(seconds=125), "refused"),
        Waiting(OutboxAccount("notify", ""), 1000, NOON + timedelta(hours=3), None),
    ]
    (text,) = report_warnings(Report(waiting=waiting), address, NOON)
    assert text == (
        "1,002 messages wait to be delivered (email home: refused); next try in 2m 05s, by "
        "`aioflow outbox deliver` or a later run; see `aioflow outbox list`"
    )
    (text,) = report_warnings(Report(troubles=["the disk is full"]), address, NOON)
    assert text == (
        "messages wait to be delivered (the disk is full); `aioflow outbox deliver` tries again; "
        "see `aioflow outbox list`"
    )
    assert report_warnings(Report(sent=3), address, NOON) == []


async def test_a_defect_of_a_channel_is_a_warning_of_a_run_that_is_committed(
    database_url: str, channel: ScriptedChannel, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def close() -> None:
        raise ValueError("cannot close")

    monkeypatch.setattr(channel, "close", close)
    result = await told(database_url, ("Ann", 30))
    (warning,) = map(str, result.warnings)
    assert "ValueError: cannot close" in warning
    assert await stored(database_url) == ["Ann"]


@pytest.mark.parametrize("interrupts", [False, True])
def test_a_cut_that_cannot_be_noted_is_told_and_counts_as_waiting(
    tmp_path: Path, channel: ScriptedChannel, interrupts: bool
) -> None:
    url = f"sqlite:{tmp_path / 'test.db'}"

    async def main() -> None:
        other, locked, ended = await Post(url).connect(), asyncio.Event(), asyncio.Event()

        async def write() -> None:
            async with other.transaction("write"):
                locked.set()
                await ended.wait()

        async def hangs(message: Message) -> None:
            writers.append(asyncio.ensure_future(write()))
            await locked.wait()
            if interrupts:
                reader.cancel()
            await asyncio.sleep(10**6)

        async def read() -> None:
            async with stream:
                async for _ in stream.batches():
                    pass

        writers: list[asyncio.Future[None]] = []
        channel.does = hangs
        async with Engine(registry=registry(), configuration=configuration(url)) as engine:
            stream = engine.stream(loads(PLAN), people=[{"name": "Ann", "age": 30}])
            reader = asyncio.ensure_future(read())
            with suppress(asyncio.CancelledError):
                await reader
        ended.set()
        await asyncio.gather(*writers)
        await other.close()
        entry = next(each for each in stream.account().entries if each.name == "messages")
        assert entry.figures == {"posted": 1, "committed": True, "delivered": 0, "waiting": 1, "dead": 0}
        assert entry.lines == ("1 message waiting",)
        *others, warning = map(str, stream.statistics().warnings)
        assert re.fullmatch(
            r"the outcome of 1 message could not be noted in the database; it is taken up again when its "
            r"lease has ended, at \d\d:\d\d:\d\d, by `aioflow outbox deliver` or a later run; "
            r"see `aioflow outbox list`",
            warning,
        )
        interrupted = "interrupted during delivery: all that the run wrote is stored, and 1 message waits"
        assert others == ([f"{interrupted} in the outbox"] if interrupts else [])

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(main())


async def test_what_a_run_posted_is_in_its_account_also_when_another_process_delivers_it(
    tmp_path: Path, channel: ScriptedChannel, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:{tmp_path / 'test.db'}"

    async def claims_first(self: Courier, seconds: float | None = None) -> Report:
        async with opened_post(url) as other:
            now = other.clock.now
            await other.table().claim((await other.only()).message.key, "other", now, now + timedelta(days=1))
        return self.report

    monkeypatch.setattr(Courier, "deliver", claims_first)
    account = (await told(url, ("Ann", 30))).account
    entry = next(each for each in account.entries if each.name == "messages")
    assert (entry.figures["posted"], entry.lines) == (1, ("1 message in the outbox",))
