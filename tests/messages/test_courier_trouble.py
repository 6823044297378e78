"""Deliveries while the database fails or others write to it, and as time passes."""

import asyncio
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from aioflow.messages.outbox.message import Delivery, DeliveryError, Message, if_cut_short
from aioflow.messages.outbox.rows import OutboxAccount
from aioflow.messages.outbox.settings import OutboxSettings
from aioflow.messages.outbox.table import OutboxTable
from aioflow.state.driver import Connection
from aioflow.state.errors import BusyError, DatabaseError, DisconnectedError
from aioflow.testing import VirtualLoop
from tests.messages.posts import NOON, SETTINGS, Changed, Post, failing, opened_post

MAIN = OutboxAccount("test", "main")
REFUSED = DeliveryError("refused")


# --- a database that fails ------------------------------------------------------------------------


def failing_runs(post: Post, error: Exception, *, when: Callable[[str], bool]) -> OutboxTable:
    """A table on which the statements fail that `when` picks."""

    async def connect() -> Any:
        connection = await post.connect()

        async def run(sql: str, values: Any = ()) -> int:
            if when(sql):
                raise error
            return int(await connection.run(sql, values))

        return Changed(connection, run=run)

    table: OutboxTable = post.table(connect)
    return table


async def test_an_outcome_that_cannot_be_noted_is_told_and_not_delivered_again_in_the_round(
    tmp_path: Path,
) -> None:
    async with opened_post(f"sqlite:{tmp_path / 'test.db'}") as post:
        await post.put("one", "two")

        def when(sql: str) -> bool:
            if "state = 'sent'" not in sql:
                return False
            post.clock.pass_seconds(101)  # so that the lease is over at once
            return True

        table = failing_runs(post, DatabaseError("disk failed"), when=when)
        report = await post.courier(table).deliver()
        assert (report.sent, post.channel.subjects) == (0, ["one", "two"])
        assert len(post.told) == 2
        assert "was delivered, and may be again, with the same key" in post.told[0]
        assert "disk failed" in post.told[0]
        post.clock.pass_seconds(101)
        assert (await post.courier().deliver()).sent == 2
        keys = [message.key for message in post.channel.delivered]
        assert keys[:2] == keys[2:]


async def test_a_connection_that_is_lost_at_the_note_is_made_again(database_url: str) -> None:
    async with opened_post(database_url) as post:
        await post.put("hello", delivery="at-most-once")
        connections: list[Connection] = []

        async def connect() -> Any:
            connection = await post.connect()
            connections.append(connection)

            async def run(sql: str, values: Any = ()) -> int:
                if "state = 'sent'" in sql and len(connections) < 3:
                    raise DisconnectedError("gone")
                return await connection.run(sql, values)

            return Changed(connection, run=run)

        assert (await post.courier(post.table(connect)).deliver()).sent == 1
        assert ((await post.only()).state, len(post.channel.delivered)) == ("sent", 1)
        assert len(connections) == 3


async def test_a_database_that_fails_at_the_claim_is_told_and_other_deliveries_go_on(tmp_path: Path) -> None:
    async with opened_post(f"sqlite:{tmp_path / 'test.db'}") as post:
        await post.put("hello")
        table = failing_runs(post, DatabaseError("disk failed"), when=lambda sql: "attempts + 1" in sql)
        report = await post.courier(table).deliver()
        assert (report.troubles, post.channel.delivered) == (["disk failed"], [])
        assert (await post.courier().deliver()).sent == 1


async def test_a_note_waits_for_a_run_that_is_writing(tmp_path: Path) -> None:
    async with opened_post(f"sqlite:{tmp_path / 'test.db'}") as post:
        await post.put("hello", "world")
        other = await post.connect()
        noticed = asyncio.Event()

        async def connect() -> Any:
            connection = await post.connect()

            async def run(sql: str, values: Any = ()) -> int:
                try:
                    return await connection.run(sql, values)
                except BusyError:
                    noticed.set()
                    raise

            return Changed(connection, run=run)

        async def write(begun: asyncio.Event) -> None:
            async with other.transaction("write"):
                begun.set()
                await noticed.wait()

        async with asyncio.TaskGroup() as group:

            async def locks(message: Message) -> None:
                if message.content["subject"] == "hello":
                    begun = asyncio.Event()
                    group.create_task(write(begun))
                    await begun.wait()

            post.channel.does = locks
            report = await post.courier(post.table(connect)).deliver()
        await other.close()
        assert (report.sent, report.troubles, post.channel.subjects) == (2, [], ["hello", "world"])
        assert noticed.is_set()


async def test_who_waited_for_a_writer_notes_the_outcome_before_another_can_deliver(
    database_url: str,
) -> None:
    async with opened_post(database_url) as post:
        await post.put("hello")
        touched = asyncio.Event()  # the message, by who comes later

        async def blocked() -> Any:
            connection = await post.connect()

            async def run(sql: str, values: Any = ()) -> int:
                if "state = 'sent'" in sql and not touched.is_set():
                    raise BusyError("another run is writing")
                return await connection.run(sql, values)

            return Changed(connection, run=run)

        async def faster() -> Any:
            connection = await post.connect()

            async def run(sql: str, values: Any = ()) -> int:
                changed = await connection.run(sql, values)
                if changed:
                    touched.set()
                return changed

            return Changed(connection, run=run)

        async with asyncio.TaskGroup() as group:

            async def begins_another(message: Message) -> None:
                if len(post.channel.delivered) == 1:
                    post.clock.pass_seconds(101)  # the lease is over, with nothing noted
                    group.create_task(post.courier(post.table(faster)).deliver())
                    await asyncio.sleep(0)

            post.channel.does = begins_another
            report = await post.courier(post.table(blocked)).deliver()
        assert touched.is_set()
        assert (report.sent, post.channel.subjects) == (1, ["hello"])
        assert (await post.only()).state == "sent"


def test_a_message_is_taken_over_after_its_owner_had_time_in_which_the_database_was_free(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        async with opened_post(f"sqlite:{tmp_path / 'test.db'}") as post:
            (key,) = await post.put("hello")
            await post.table().claim(key, "somebody who died", NOON, NOON)
            post.clock.pass_seconds(1)
            happened: list[str] = []

            async def connect() -> Any:
                connection = await post.connect()
                begin = connection.transaction

                async def run(sql: str, values: Any = ()) -> int:
                    changed = await connection.run(sql, values)
                    if changed and "leased_until = ?" in sql:
                        happened.append("taken" if "attempts + 1" in sql else "notice")
                    return changed

                def transaction(kind: Any) -> Any:
                    if happened == ["notice", "notice"]:  # when the message is to be taken over
                        happened.append("busy")
                        raise BusyError("another run is writing")
                    return begin(kind)

                return Changed(connection, run=run, transaction=transaction)

            report = await post.courier(post.table(connect)).deliver()
            assert (report.sent, happened) == (1, ["notice", "notice", "busy", "notice", "taken"])

    on_virtual_time(main)


# --- time -----------------------------------------------------------------------------------------


def on_virtual_time(main: Callable[[], Any]) -> VirtualLoop:
    loop = VirtualLoop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(main())
    return loop


def test_within_its_seconds_a_courier_tries_again_what_failed(tmp_path: Path) -> None:
    async def main() -> None:
        settings = OutboxSettings(retry_base_seconds=5, most_attempts=9)
        async with opened_post(f"sqlite:{tmp_path / 'test.db'}", settings) as post:
            await post.put("hello", "world")
            post.channel.does = failing(REFUSED, None, REFUSED)
            begun = asyncio.get_running_loop().time()
            report = await post.courier(clock=None).deliver(30)
            assert (report.sent, report.failed, report.waiting) == (2, 2, [])
            assert post.channel.subjects == ["hello", "world", "hello", "hello"]
            assert 15 <= asyncio.get_running_loop().time() - begun < 16

    on_virtual_time(main)


def test_a_courier_does_not_wait_for_what_is_due_after_its_seconds(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened_post(f"sqlite:{tmp_path / 'test.db'}") as post:
            await post.put("hello")
            post.channel.does = failing(REFUSED, REFUSED, REFUSED)
            begun = asyncio.get_running_loop().time()
            report = await post.courier(clock=None).deliver(15)
            assert (report.failed, len(report.waiting)) == (2, 1)
            assert 10 <= asyncio.get_running_loop().time() - begun < 11

    on_virtual_time(main)


def test_a_courier_ends_within_its_seconds_whatever_is_under_way(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened_post(f"sqlite:{tmp_path / 'test.db'}") as post:
            await post.put(*map(str, range(9)))

            async def slow(message: Message) -> None:
                await asyncio.sleep(20)

            post.channel.does = slow
            begun = asyncio.get_running_loop().time()
            report = await post.courier(clock=None).deliver(30)
            assert 20 < asyncio.get_running_loop().time() - begun <= 30
            assert (report.sent, [waiting.count for waiting in report.waiting]) == (1, [8])
            assert report.last_words == {MAIN: "the 30.0 s of outbox deliver_seconds were over"}

    on_virtual_time(main)


def test_a_courier_claims_nothing_that_it_would_soon_have_to_cut_short(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened_post(f"sqlite:{tmp_path / 'test.db'}") as post:
            await post.put(*map(str, range(99)))

            async def steady(message: Message) -> None:
                await asyncio.sleep(3)

            post.channel.does = steady
            report = await post.courier(clock=None).deliver(30)
            assert (report.sent, report.failed, len(post.channel.delivered)) == (9, 0, 9)

    on_virtual_time(main)


@pytest.mark.parametrize(
    ("told", "delivery", "state"),
    [
        (None, "at-least-once", "dead"),
        (DeliveryError("no answer to MAIL"), "at-least-once", "waiting"),
        (DeliveryError("no answer to MAIL"), "at-most-once", "waiting"),
        (DeliveryError("it may have it", uncertain=True), "at-most-once", "dead"),
    ],
)
def test_what_is_cut_short_dies_only_where_the_receiver_may_have_it(
    tmp_path: Path, told: DeliveryError | None, delivery: Delivery, state: str
) -> None:
    """Nobody knows whether a receiver that had too little time would have taken the message."""

    async def main() -> None:
        async with opened_post(f"sqlite:{tmp_path / 'test.db'}", replace(SETTINGS, most_attempts=1)) as post:
            await post.put("hello", delivery=delivery)

            async def hangs(message: Message) -> None:
                with if_cut_short(lambda: told) if told is not None else nullcontext():
                    await asyncio.sleep(10**6)

            post.channel.does = hangs
            report = await post.courier(clock=None).deliver(4)
            entry = await post.only()
            assert (entry.state, report.dead) == (state, int(state == "dead"))
            assert str(told or "") in str(entry.last_error)

    on_virtual_time(main)


@pytest.mark.parametrize("watches", [False, True])
def test_an_interrupted_courier_ends_in_a_moment_and_tells_what_waits(tmp_path: Path, watches: bool) -> None:
    async def main() -> None:
        async with opened_post(f"sqlite:{tmp_path / 'test.db'}") as post:
            await post.put("one", "two")
            called = asyncio.Event()

            async def hangs(message: Message) -> None:
                called.set()
                await asyncio.sleep(10**6)

            post.channel.does = hangs
            courier = post.courier(clock=None)
            task = asyncio.ensure_future(courier.watch() if watches else courier.deliver())
            await called.wait()
            begun = asyncio.get_running_loop().time()
            courier.interrupt()
            report = await task
            assert asyncio.get_running_loop().time() - begun < 5
            assert (report.is_interrupted, [waiting.count for waiting in report.waiting]) == (True, [2])
            assert await post.states() == {"one": "waiting", "two": "waiting"}

    on_virtual_time(main)


@pytest.mark.parametrize("state", ["sent", "waiting", "dead"])
def test_what_a_channel_knows_when_it_is_cut_short_decides(tmp_path: Path, state: str) -> None:
    """A receiver that has answered has taken or refused the message, however little of it was read."""
    known: dict[str, DeliveryError | str] = {
        "sent": "202 Accepted",
        "waiting": DeliveryError("429", retry_after_seconds=1800),
        "dead": DeliveryError("400", final=True),
    }

    async def main() -> None:
        async with opened_post(f"sqlite:{tmp_path / 'test.db'}") as post:
            await post.put("hello")
            courier = post.courier()

            async def hangs(message: Message) -> None:
                courier.interrupt()
                with if_cut_short(lambda: known[state]):
                    await asyncio.sleep(10**6)

            post.channel.does = hangs
            await courier.deliver()
            entry = await post.only()
            assert entry.state == state
            if state == "sent":
                assert (entry.answer, entry.last_error) == ("202 Accepted", None)
            if state == "waiting":
                assert entry.due == NOON + timedelta(seconds=1800)

    on_virtual_time(main)


def test_an_interrupted_courier_still_notes_what_is_answered_in_a_moment(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened_post(f"sqlite:{tmp_path / 'test.db'}") as post:
            await post.put("one", "two")
            courier = post.courier(clock=None)

            async def answers(message: Message) -> None:
                courier.interrupt()
                await asyncio.sleep(1)

            post.channel.does = answers
            assert (await courier.deliver()).sent == 1
            assert await post.states() == {"one": "sent", "two": "waiting"}

    on_virtual_time(main)


def test_a_delivery_ends_before_its_lease_does(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened_post(f"sqlite:{tmp_path / 'test.db'}") as post:
            await post.put("hello")

            async def hangs(message: Message) -> None:
                await asyncio.sleep(10**6)

            post.channel.does = hangs
            begun = asyncio.get_running_loop().time()
            report = await post.courier(clock=None).deliver()
            assert 80 <= asyncio.get_running_loop().time() - begun < 81 < SETTINGS.lease_seconds
            assert report.last_words == {MAIN: "the delivery took longer than 1m 20s"}

    on_virtual_time(main)


def test_a_watching_courier_delivers_what_comes_later_and_survives_a_database_that_is_away(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        async with opened_post(f"sqlite:{tmp_path / 'test.db'}") as post:
            away = [False]

            async def connect() -> Any:
                if away[0]:
                    raise DisconnectedError("the server is away")
                connection = await post.connect()

                async def fetch(sql: str, values: Any = ()) -> Any:
                    if away[0]:
                        raise DisconnectedError("the server is away")
                    return await connection.fetch(sql, values)

                return Changed(connection, fetch=fetch)

            loop = asyncio.get_running_loop()
            courier = post.courier(post.table(connect), clock=lambda: NOON + timedelta(seconds=loop.time()))
            task = asyncio.ensure_future(courier.watch())
            await asyncio.sleep(60)
            post.channel.does = failing(REFUSED)
            await post.put("one")
            await asyncio.sleep(60)
            assert post.channel.subjects == ["one", "one"]
            away[0] = True
            await asyncio.sleep(600)
            await post.put("two")
            away[0] = False
            await asyncio.sleep(10)
            assert post.channel.subjects == ["one", "one", "two"]
            assert post.told == ["the server is away; trying again until it works"]
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    on_virtual_time(main)
