"""Deliveries: leases, retries, dead letters, several couriers at once, and whatever goes wrong in between."""

import asyncio
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from aioflow.config.secrets import Secret
from aioflow.messages.outbox.attempt import shown
from aioflow.messages.outbox.message import Delivery, DeliveryError, Message
from aioflow.messages.outbox.rows import OutboxAccount
from aioflow.state.crash_points import watch
from tests.messages.posts import NOON, SETTINGS, Changed, failing, opened_post

MAIN = OutboxAccount("test", "main")
REFUSED = DeliveryError("refused")


# --- what becomes of a message --------------------------------------------------------------------


async def test_messages_leave_in_their_order_and_are_noted_as_sent(database_url: str) -> None:
    async with opened_post(database_url) as post:
        keys = await post.put("one", "two", "three")
        report = await post.courier().deliver()
        assert (report.sent, report.failed, report.dead, report.waiting) == (3, 0, 0, [])
        assert [message.key for message in post.channel.delivered] == keys
        assert post.channel.delivered[0].attempts == 1
        assert post.channel.delivered[0].created == NOON
        entries = await post.entries()
        assert [(entry.state, entry.answer, entry.sent_at) for entry in entries] == [
            ("sent", "taken", NOON)
        ] * 3
        assert [entry.leased_by for entry in entries] == [None] * 3
        assert (await post.courier().deliver()).sent == 0
        assert post.told == []


async def test_what_fails_waits_with_its_error_and_progress_and_is_tried_when_due(database_url: str) -> None:
    async with opened_post(database_url) as post:
        (key,) = await post.put("hello")
        post.channel.does = failing(DeliveryError("try later", progress={"done": ["a"]}), REFUSED)
        report = await post.courier().deliver()
        assert (report.failed, report.last_words) == (1, {MAIN: "try later"})
        (waiting,) = report.waiting
        assert (waiting.account, waiting.count, waiting.reason) == (MAIN, 1, "try later")
        assert waiting.due == NOON + timedelta(seconds=10)

        post.clock.pass_seconds(9.9)
        assert (await post.courier().deliver()).failed == 0
        post.clock.pass_seconds(0.1)
        assert (await post.courier().deliver()).failed == 1
        entry = await post.only()
        assert (entry.state, entry.message.attempts, entry.last_error) == ("waiting", 2, "refused")
        assert entry.due == post.clock.now + timedelta(seconds=20)
        post.clock.pass_seconds(20)
        assert (await post.courier().deliver()).sent == 1
        assert [message.key for message in post.channel.delivered] == [key] * 3
        # An error that says nothing of progress leaves it as it was.
        assert [message.progress for message in post.channel.delivered] == [{}, *[{"done": ["a"]}] * 2]


@pytest.mark.parametrize(
    ("delivery", "error", "state", "words"),
    [
        ("at-least-once", DeliveryError("no such user", final=True), "dead", "no such user"),
        ("at-least-once", DeliveryError("link lost", uncertain=True), "waiting", "link lost"),
        ("at-most-once", DeliveryError("link lost", uncertain=True), "dead", "may have been delivered"),
        ("at-most-once", DeliveryError("refused"), "waiting", "refused"),
        ("at-least-once", ValueError("a defect"), "waiting", "ValueError: a defect"),
        ("at-most-once", ValueError("a defect"), "dead", "ValueError: a defect"),
        ("at-most-once", asyncio.CancelledError(), "dead", "cancelled from inside"),
    ],
)
async def test_an_error_decides_whether_a_message_is_tried_again(
    tmp_path: Path, delivery: Delivery, error: BaseException, state: str, words: str
) -> None:
    async with opened_post(f"sqlite:{tmp_path / 'test.db'}") as post:
        await post.put("hello", delivery=delivery)
        post.channel.does = failing(error)
        await post.courier().deliver()
        entry = await post.only()
        assert entry.state == state
        assert words in str(entry.last_error)


async def test_a_message_is_given_up_after_the_last_attempt(tmp_path: Path) -> None:
    async with opened_post(f"sqlite:{tmp_path / 'test.db'}") as post:
        await post.put("hello")
        post.channel.does = failing(*[REFUSED] * 9)
        for _ in range(9):
            await post.courier().deliver()
            post.clock.pass_seconds(3600)
        entry = await post.only()
        assert (entry.state, entry.message.attempts, len(post.channel.delivered)) == ("dead", 5, 5)
        assert entry.last_error == "refused (given up after 5 attempts)"


async def test_a_text_in_the_database_that_is_damaged_is_a_dead_letter(database_url: str) -> None:
    async with opened_post(database_url) as post:
        await post.put("bad", "good")
        connection = await post.connect()
        await connection.run("UPDATE aioflow_outbox SET content = '{' WHERE place = 1")
        await connection.close()
        report = await post.courier().deliver()
        assert (report.sent, report.dead) == (1, 1)
        assert "damaged" in report.last_words[MAIN]


async def test_secrets_do_not_reach_the_table(tmp_path: Path) -> None:
    secret = Secret("MAIL", "hunter2 is it").reveal()
    async with opened_post(f"sqlite:{tmp_path / 'test.db'}") as post:
        await post.put("one", "two")
        post.channel.does = failing(DeliveryError(f"bad login with {secret}\n\0"))
        await post.courier().deliver()
        errors = [entry.last_error for entry in await post.entries()]
        assert errors == ["bad login with ********", None]
    assert len(shown("x" * 5000)) == 2000


# --- leases ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("delivery", ["at-least-once", "at-most-once"])
async def test_a_lease_keeps_others_off_until_it_expires(database_url: str, delivery: Delivery) -> None:
    async with opened_post(database_url) as post:
        (key,) = await post.put("hello", delivery=delivery)
        until = NOON + timedelta(seconds=100)
        assert await post.table().claim(key, "somebody who died", NOON, until)
        post.clock.pass_seconds(100)
        report = await post.courier().deliver()
        assert (report.sent, report.dead, post.channel.delivered) == (0, 0, [])
        post.clock.pass_seconds(0.001)
        if delivery == "at-most-once":
            # Nobody claims it, even who has not noticed yet that it is to be given up.
            table, now = post.table(), post.clock.now
            assert await table.accounts(now) == []
            assert await table.claimable(MAIN, now) == []
            assert not await table.claim(key, "another", now, now + timedelta(seconds=100))
        report = await post.courier().deliver()
        if delivery == "at-least-once":
            assert (report.sent, [message.attempts for message in post.channel.delivered]) == (1, [2])
        else:
            assert (report.sent, report.dead, post.channel.delivered) == (0, 1, [])
            entry = await post.only()
            assert (entry.state, "may have been delivered" in str(entry.last_error)) == ("dead", True)
        post.clock.pass_seconds(10**6)
        assert (await post.courier().deliver()).sent == 0


async def test_a_message_over_which_every_process_dies_is_given_up(database_url: str) -> None:
    async with opened_post(database_url) as post:
        key, _ = await post.put("poison", "after it")
        table = post.table()
        for attempt in range(SETTINGS.most_attempts):
            now = post.clock.now
            until = now + timedelta(seconds=100)
            if attempt == 0:
                assert await table.claim(key, "somebody who died", now, until)
            else:
                assert await table.give_notice(key, now, now + timedelta(seconds=3))
                assert await table.take_over(key, now + timedelta(seconds=3), "another who died", until)
            post.clock.pass_seconds(101)
        assert (await post.courier().deliver()).dead == 1
        assert await post.states() == {"poison": "dead", "after it": "sent"}


async def test_who_was_taken_for_dead_and_delivers_after_all_is_believed(database_url: str) -> None:
    async with opened_post(database_url) as post:
        await post.put("hello", delivery="at-most-once")

        async def slow(message: Message) -> None:
            post.clock.pass_seconds(101)
            assert (await post.courier().deliver()).dead == 1

        post.channel.does = slow
        assert (await post.courier().deliver()).sent == 1
        assert (await post.only()).state == "sent"


async def test_who_comes_late_does_not_undo_what_another_noted(database_url: str) -> None:
    async with opened_post(database_url) as post:
        await post.put("hello")

        async def slow(message: Message) -> None:
            if message.attempts == 1:
                post.clock.pass_seconds(101)
                assert (await post.courier().deliver()).sent == 1
                raise REFUSED

        post.channel.does = slow
        assert (await post.courier().deliver()).failed == 0
        assert ((await post.only()).state, len(post.channel.delivered)) == ("sent", 2)


async def test_leases_go_by_the_clock_of_the_database(database_url: str) -> None:
    """Ours is right; the database's, and so everybody else's lease, is an hour ahead."""
    later = {
        "sqlite": "datetime('now', '+1 hour')",
        "postgresql": "current_timestamp + interval '1 hour'",
    }[database_url.partition(":")[0]]
    async with opened_post(database_url) as post:

        async def connect() -> Any:
            connection = await post.connect()
            return Changed(connection, dialect=replace(connection.dialect, now=later))

        await post.put("hello")
        await post.courier(post.table(connect), clock=None).deliver()
        sent_at = (await post.only()).sent_at
        assert sent_at is not None
        assert timedelta(minutes=59) < sent_at - datetime.now(UTC) < timedelta(minutes=61)
        assert await post.table().time_ahead() == timedelta()


# --- accounts and channels ------------------------------------------------------------------------


async def test_an_account_where_nothing_arrives_holds_up_no_other(tmp_path: Path) -> None:
    async with opened_post(f"sqlite:{tmp_path / 'test.db'}") as post:
        await post.put(*(f"bad {number}" for number in range(10)), account="broken")
        await post.put(*(f"good {number}" for number in range(10)), account="main")
        await post.put(*(f"lost {number}" for number in range(2)), channel="fax")

        async def does(message: Message) -> None:
            if message.account == "broken":
                raise REFUSED

        post.channel.does = does
        report = await post.courier().deliver()
        assert report.sent == 10
        # After three in a row the rest is left alone for now.
        assert [name for name in post.channel.subjects if name.startswith("bad")] == [
            "bad 0",
            "bad 1",
            "bad 2",
        ]
        counts = {str(waiting.account): waiting.count for waiting in report.waiting}
        assert (counts, report.dead) == ({"test broken": 10}, 2)


async def test_one_message_that_cannot_be_delivered_now_holds_up_no_other(tmp_path: Path) -> None:
    async with opened_post(f"sqlite:{tmp_path / 'test.db'}") as post:
        await post.put(*map(str, range(70)))
        bad = {"3", "4", "20", "50", "51"}

        async def does(message: Message) -> None:
            if message.content["subject"] in bad:
                raise REFUSED

        post.channel.does = does
        report = await post.courier().deliver()
        assert (report.sent, report.failed) == (65, 5)
        assert post.channel.subjects == [str(number) for number in range(70)]


async def test_an_account_that_is_not_configured_keeps_its_messages_waiting(database_url: str) -> None:
    async with opened_post(database_url) as post:
        await post.put("hello")
        post.channel.missing["main"] = "there is no [test.main]"
        report = await post.courier().deliver()
        assert (report.sent, report.failed, post.channel.delivered) == (0, 0, [])
        assert [waiting.reason for waiting in report.waiting] == ["there is no [test.main]"]
        entry = await post.only()
        assert (entry.state, entry.message.attempts) == ("waiting", 0)
        assert entry.last_error == "there is no [test.main]"
        post.channel.missing.clear()
        assert (await post.courier().deliver()).sent == 1
        assert (await post.only()).last_error is None


async def test_everything_that_waits_is_tried_once_whenever_it_is_due(database_url: str) -> None:
    async with opened_post(database_url) as post:
        keys = await post.put("one", "two", "three", "four", "five", "leased")
        await post.put("other", account="other")
        now, until = post.clock.now, post.clock.now + timedelta(seconds=100)
        assert await post.table().claim(keys[5], "somebody who lives", now, until)
        post.channel.does = failing(*[DeliveryError("greylisted")] * 7)
        await post.courier().deliver()
        # Those that go on failing are the oldest, and keep no other from being tried.
        post.channel.delivered.clear()
        post.channel.does = failing(*[DeliveryError("greylisted")] * 4)
        report = await post.courier().deliver(everything=True)
        assert sorted(post.channel.subjects) == sorted(("one", "two", "three", "four", "five", "other"))
        assert (report.sent, report.failed) == (2, 4)
        assert [(str(held.account), held.count, held.until) for held in report.held] == [
            ("test main", 1, until)
        ]


async def test_a_receiver_that_cannot_be_reached_is_not_tried_with_everything(tmp_path: Path) -> None:
    async with opened_post(f"sqlite:{tmp_path / 'test.db'}") as post:
        await post.put(*map(str, range(9)))
        post.channel.does = failing(*[DeliveryError("no route", unreachable=True)] * 9)
        report = await post.courier().deliver(everything=True)
        assert (report.failed, len(post.channel.delivered)) == (3, 3)


async def test_a_message_for_a_channel_that_nothing_brings_is_a_dead_letter(tmp_path: Path) -> None:
    async with opened_post(f"sqlite:{tmp_path / 'test.db'}") as post:
        await post.put("hello", channel="tst")
        report = await post.courier().deliver()
        assert report.last_words == {
            OutboxAccount("tst", "main"): "there is no channel 'tst': nothing that is installed brings one"
        }
        assert (await post.only()).state == "dead"


async def test_what_was_sent_is_removed_after_some_days(database_url: str) -> None:
    async with opened_post(database_url) as post:
        keys = await post.put("sent", "dropped", "dead", "waiting")
        table = post.table()
        await table.drop(keys[1], NOON)
        post.channel.does = failing(None, DeliveryError("never", final=True), *[REFUSED] * 9)
        await post.courier().deliver()
        post.clock.pass_seconds(29 * 86400)
        await post.courier().deliver()
        assert len(await post.entries()) == 4
        post.clock.pass_seconds(2 * 86400)
        await post.courier().deliver()
        assert await post.states() == {"dead": "dead", "waiting": "waiting"}


# --- several at once ------------------------------------------------------------------------------


async def test_couriers_at_once_deliver_every_message_once(database_url: str) -> None:
    async with opened_post(database_url) as post:
        for account in "abc":
            await post.put(*map(str, range(15)), account=account)

        async def yields(message: Message) -> None:
            await asyncio.sleep(0)

        post.channel.does = yields
        reports = await asyncio.gather(*(post.courier().deliver() for _ in range(4)))
        assert sum(report.sent for report in reports) == 45
        assert set(Counter(message.key for message in post.channel.delivered).values()) == {1}
        assert [report.troubles for report in reports] == [[]] * 4


@pytest.mark.parametrize("delivery", ["at-least-once", "at-most-once"])
async def test_a_courier_that_is_cancelled_before_the_call_leaves_the_message_untouched(
    database_url: str, delivery: Delivery
) -> None:
    async with opened_post(database_url) as post:
        await post.put("hello", delivery=delivery)
        task = asyncio.ensure_future(post.courier().deliver())

        def cancel(name: str) -> None:
            if name == "message claimed":
                task.cancel()

        with watch(cancel), pytest.raises(asyncio.CancelledError):
            await task
        entry = await post.only()
        assert (entry.state, entry.message.attempts, entry.leased_by) == ("waiting", 0, None)
        assert post.channel.delivered == []


@pytest.mark.parametrize(("delivery", "state"), [("at-least-once", "waiting"), ("at-most-once", "dead")])
async def test_a_courier_that_is_cancelled_during_the_call_says_so(
    database_url: str, delivery: Delivery, state: str
) -> None:
    async with opened_post(database_url) as post:
        await post.put("hello", delivery=delivery)
        called = asyncio.Event()

        async def hangs(message: Message) -> None:
            called.set()
            await asyncio.get_running_loop().create_future()

        post.channel.does = hangs
        task = asyncio.ensure_future(post.courier().deliver())
        await called.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        entry = await post.only()
        assert (entry.state, entry.leased_by) == (state, None)
        assert str(entry.last_error).startswith("interrupted")


async def test_a_courier_that_is_cancelled_after_the_call_still_notes_the_outcome(database_url: str) -> None:
    async with opened_post(database_url) as post:
        await post.put("hello", delivery="at-most-once")
        task = asyncio.ensure_future(post.courier().deliver())

        def cancel(name: str) -> None:
            if name == "message handed over":
                task.cancel()

        with watch(cancel), pytest.raises(asyncio.CancelledError):
            await task
        assert (await post.only()).state == "sent"
