"""Digests: rows of many runs are told in one message, once, by one of the processes that deliver."""

from __future__ import annotations

import asyncio
import email
import email.policy
from collections.abc import AsyncGenerator, Awaitable, Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from email.message import EmailMessage
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from aioflow import (
    Context,
    Engine,
    PlanError,
    Result,
    Row,
    RunError,
    Stream,
    loads,
    operator,
    same_as_input,
)
from aioflow.authoring.context import RunIdentity
from aioflow.messages.channels import Channels
from aioflow.messages.outbox.composing import DigestComposer
from aioflow.messages.outbox.contributions import DigestContribution
from aioflow.messages.outbox.courier import Report, deliver_due, next_due
from aioflow.messages.outbox.digest_table import DigestTable, GatheringDigest
from aioflow.messages.outbox.message import Message
from aioflow.messages.outbox.service import OutboxClock
from aioflow.messages.outbox.settings import OutboxSettings
from aioflow.state.crash_points import watch
from aioflow.state.databases import Databases
from aioflow.state.driver import Connection
from aioflow.wholeness import Marks, Reason
from tests.messages.posts import NOON, Clock, Post, opened_post

TELL = 'email (x, to="me@example.org", subject="{{count}} new") {{{0}}}'
DAILY = 'DIGEST: "daily 18:00 UTC"'
DEBOUNCED = 'DEBOUNCE: "30m"'
FAILING = 'email (x, to="me@example.org", subject="fails") {BODY: "{{ 1 / 0 }}"}'


class World:
    """A database and a Maildir, and a clock by which runs write and deliver."""

    def __init__(self, url: str, folder: Path, **outbox: Any) -> None:
        self.post = Post(url)
        self.clock = Clock()
        self.mail = folder / "mail"
        self.configuration: dict[str, Any] = {
            "database": {"default": {"url": url}},
            "email": {"default": {"url": f"maildir:{self.mail}", "from": "watch@example.org"}},
            "outbox": outbox,
        }

    async def run(
        self,
        *rows: dict[str, Any],
        statement: str = TELL.format(DAILY),
        task: str = "task",
        more: str = "",
        **settings: Any,
    ) -> Result:
        columns = "x" if rows else "x (n number)"
        plan = f"PLAN p {{ INPUT: {columns} BODY {{ {statement} {more} }} }}"
        services = {OutboxClock: OutboxClock(self.clock)}
        configuration = {**self.configuration, **settings}
        async with Engine(configuration=configuration, services=services) as engine:
            return await engine.run(loads(plan), x=list(rows), identity=RunIdentity(uuid4().hex, task))

    async def deliver(self, seconds: float | None = None) -> Report:
        databases = Databases(self.configuration)
        address = databases.address(None, Path())
        return await deliver_due(
            *(databases, address, self.configuration, self.post.told.append, seconds), clock=self.clock
        )

    async def on(self, work: Callable[[Connection], Awaitable[Any]]) -> Any:
        connection = await self.post.connect()
        try:
            return await work(connection)
        finally:
            await connection.close()

    @property
    def has_database(self) -> bool:
        return not self.post.address.is_missing

    async def next_due(self) -> datetime | None:
        found: datetime | None = await self.on(lambda connection: next_due(connection, now=self.clock.now))
        return found

    async def gathering(self) -> list[GatheringDigest]:
        table = self.post.table()
        try:
            return await DigestTable(table).gathering()
        finally:
            await table.close()

    @property
    def mails(self) -> list[EmailMessage]:
        paths = sorted(self.mail.glob("new/*"), key=lambda path: path.stat().st_mtime_ns)
        policy = email.policy.default
        return [email.message_from_bytes(path.read_bytes(), policy=policy) for path in paths]

    @property
    def subjects(self) -> list[str]:
        return [str(each["Subject"]) for each in self.mails]


@pytest.fixture
def world(database_url: str, tmp_path: Path) -> World:
    return World(database_url, tmp_path)


@pytest.fixture
def small(tmp_path: Path) -> World:
    return World(f"sqlite:{tmp_path / 'test.db'}", tmp_path)


def text_of(mail: EmailMessage) -> str:
    body = mail.get_body(["plain"])
    assert body is not None
    return str(body.get_content()).partition("\n-- \n")[0].strip()


# --- when ---------------------------------------------------------------------------------------


async def test_tuples_of_many_runs_are_told_at_the_time_of_the_digest(world: World) -> None:
    assert (await world.run({"n": 1}, {"n": 2})).warnings == ()
    world.clock.pass_seconds(3600)
    await world.run({"n": 3})
    assert world.subjects == []
    (digest,) = await world.gathering()
    assert (digest.row_count, digest.contributions, digest.due) == (3, 2, NOON + timedelta(hours=6))
    assert await world.next_due() == digest.due
    world.clock.now = NOON + timedelta(hours=6) - timedelta(microseconds=1)
    assert (await world.deliver()).gathering == [digest]
    world.clock.pass_seconds(0.000001)
    report = await world.deliver()
    assert (report.sent, report.gathering, report.waiting) == (1, [], [])
    assert world.subjects == ["3 new"]
    assert text_of(world.mails[0]) == "n\n-\n1\n2\n3"
    assert await world.next_due() is None
    await world.deliver()
    assert world.subjects == ["3 new"]


async def test_a_digest_that_is_due_goes_out_with_the_next_run_of_any_plan(world: World) -> None:
    await world.run({"n": 1})
    world.clock.pass_seconds(7 * 3600)
    await world.run(statement='email (x, to="you@example.org", subject="other")', task="another")
    assert world.subjects == ["1 new"]


async def test_what_comes_after_the_time_of_a_digest_is_told_with_it_or_with_the_next(small: World) -> None:
    await small.run({"n": 1}, outbox={"deliver_seconds": 0})
    small.clock.pass_seconds(7 * 3600)
    await small.run({"n": 2}, outbox={"deliver_seconds": 0})
    await small.deliver()
    assert small.subjects == ["2 new"]


async def test_each_further_tuple_puts_a_debounced_message_off(world: World) -> None:
    statement = TELL.format(DEBOUNCED)
    for _ in range(3):
        await world.run({"n": 1}, statement=statement)
        world.clock.pass_seconds(29 * 60)
    assert await world.next_due() == world.clock.now + timedelta(minutes=1)
    await world.deliver()
    assert world.subjects == []
    world.clock.pass_seconds(60)
    await world.deliver()
    assert world.subjects == ["3 new"]


async def test_a_debounced_message_is_not_put_off_for_ever(small: World) -> None:
    statement = TELL.format(DEBOUNCED)
    for _ in range(15):
        await small.run({"n": 1}, statement=statement)
        small.clock.pass_seconds(20 * 60)
    assert small.subjects == []
    # Ten debounce times are over.
    assert small.clock.now == NOON + timedelta(hours=5)
    await small.run({"n": 1}, statement=statement)
    assert small.subjects == ["16 new"]


async def test_runs_without_tuples_contribute_nothing_unless_they_say_so(small: World) -> None:
    result = await small.run()
    assert not small.has_database
    assert not [entry for entry in result.account.entries if entry.name == "messages"]
    await small.run(statement=TELL.format(f"{DAILY}; EVEN_IF_EMPTY"))
    small.clock.pass_seconds(6 * 3600)
    await small.deliver()
    assert small.subjects == ["0 new"]


async def test_a_digest_that_grows_too_large_is_composed_early(small: World) -> None:
    small.configuration["outbox"] = {"digest_rows": 3}
    await small.run({"n": 1}, {"n": 2})
    await small.run({"n": 3})
    assert small.subjects == []
    await small.run({"n": 4})
    assert (small.subjects, await small.gathering()) == (["4 new"], [])
    # What one run has too much of does not even wait for others.
    await small.run(*({"n": number} for number in range(4)))
    assert small.subjects == ["4 new", "4 new"]
    small.configuration["outbox"] = {"digest_bytes": "1kB"}
    await small.run({"n": "long" * 300})
    assert small.subjects == ["4 new", "4 new", "1 new"]


# --- what ---------------------------------------------------------------------------------------


async def test_a_run_that_fails_contributes_nothing(world: World) -> None:
    both = f'{TELL.format(DAILY)} dbappend (x, "stored")'
    await world.run({"n": 1}, statement=both)
    with pytest.raises(RunError):
        await world.run({"n": "two", "other": 1}, statement=f"{both} {FAILING}")
    (digest,) = await world.gathering()
    assert (digest.row_count, digest.contributions) == (1, 1)
    assert await world.on(lambda connection: connection.fetch("SELECT n FROM stored")) == [(1,)]


async def test_rows_with_other_attributes_are_one_table_with_all_of_them(world: World) -> None:
    await world.run({"n": 1, "a": "x"}, statement=TELL.format(f"{DAILY}; ATTACH: json"))
    values = {"n": Decimal("2.50"), "b": date(2026, 1, 31)}
    world.clock.pass_seconds(1)
    await world.run(values, statement=TELL.format(f"{DAILY}; ATTACH: json"))
    world.clock.pass_seconds(6 * 3600)
    await world.deliver()
    (mail,) = world.mails
    head, _, *rows = (line.split() for line in text_of(mail).splitlines())
    assert (head, rows) == (["n", "a", "b"], [["1", "x"], ["2.50", "2026-01-31"]])
    (file,) = mail.iter_attachments()
    assert file.get_content() == (
        b'[\n{"n": 1, "a": "x", "b": null},\n{"n": 2.50, "a": null, "b": "2026-01-31"}\n]\n'
    )


async def test_several_relations_stay_sections(small: World) -> None:
    statement = (
        'select (x, "n < 10" : low) select (x, "n >= 10" : high) '
        'email (low, high, to="me@example.org", subject="{count} in all") '
        f'{{{DAILY}; BODY: "{{{{ low|length }}}} + {{{{ high|length }}}}\\n{{{{ table }}}}"}}'
    )
    await small.run({"n": 1}, {"n": 11}, statement=statement)
    small.clock.pass_seconds(1)
    await small.run({"n": 12}, {"n": 13}, statement=statement)
    small.clock.pass_seconds(6 * 3600)
    await small.deliver()
    (mail,) = small.mails
    assert mail["Subject"] == "4 in all"
    assert text_of(mail).split("\n\n") == [
        "1 + 3\nLow (1)\n=======",
        "n\n-\n1",
        "High (3)\n========",
        " n\n--\n11\n12\n13",
    ]


@operator(schema=same_as_input)
async def doubted(rel: Stream, *, context: Context) -> AsyncGenerator[Row, None]:
    """Passes tuples on, and doubts them if one is 2."""
    async for row in rel:
        yield row
        if row[0] == 2:
            context.mark(Marks(doubtful=(Reason("two was seen"),)))


async def test_a_doubt_about_some_rows_is_told_of_the_digest(small: World) -> None:
    statement = "doubted (x : y) " + TELL.format(DAILY).replace("(x", "(y")
    for number in (1, 2, 3):
        await small.run({"n": number}, statement=statement)
    small.clock.pass_seconds(6 * 3600)
    await small.deliver()
    (mail,) = small.mails
    assert mail["Subject"] == "May be wrong: 3 new"
    assert text_of(mail).startswith("This may be wrong: ")
    assert "two was seen" in text_of(mail)


async def test_a_changed_recipe_lets_older_rows_go_out_under_their_own(small: World) -> None:
    await small.run({"n": 1})
    await small.run({"n": 2}, statement=TELL.format(DAILY).replace("new", "very new"))
    await small.run({"n": 3}, task="another task")
    small.clock.pass_seconds(6 * 3600)
    report = await small.deliver()
    assert report.sent == 3
    assert sorted(small.subjects) == ["1 new", "1 new", "1 very new"]


async def test_two_statements_alike_have_digests_of_their_own(small: World) -> None:
    await small.run({"n": 1}, more=TELL.format(DAILY))
    await small.run({"n": 2}, more=TELL.format(DAILY))
    small.clock.pass_seconds(6 * 3600)
    await small.deliver()
    assert small.subjects == ["2 new", "2 new"]


async def test_a_template_that_fails_is_an_error_of_the_run(small: World) -> None:
    statement = TELL.format(f'{DAILY}; BODY: "{{{{ 1 / (count - 1) }}}}"').replace("{{{{", "{{")
    with pytest.raises(RunError, match="division by zero"):
        await small.run({"n": 1}, statement=statement)


async def test_a_digest_that_cannot_be_one_message_becomes_several(small: World) -> None:
    small.configuration["email"]["default"]["most_bytes"] = 20_000
    long = {"n": "long " * 2000}
    statement = TELL.format(f"{DAILY}; ATTACH: csv")
    for _ in range(3):
        await small.run(long, statement=statement)
    small.clock.pass_seconds(6 * 3600)
    await small.deliver()
    assert sorted(small.subjects) == ["1 new", "1 new", "1 new"]


async def test_a_digest_that_cannot_be_composed_waits_and_says_why(small: World) -> None:
    await small.run({"n": 1}, statement=TELL.format(f"{DAILY}; ATTACH: csv"))
    small.clock.pass_seconds(6 * 3600)
    small.configuration["email"]["default"]["most_bytes"] = 10
    report = await small.deliver()
    (digest,) = report.gathering
    assert "larger than 10 bytes" in str(digest.last_error)
    assert digest.due == small.clock.now + timedelta(hours=1)
    assert "a digest for email default could not be composed" in small.post.told[0]
    del small.configuration["email"]["default"]["most_bytes"]
    small.clock.pass_seconds(3600)
    await small.deliver()
    assert small.subjects == ["1 new"]


async def test_a_digest_of_an_account_that_is_not_configured_waits(small: World) -> None:
    await small.run({"n": 1})
    small.clock.pass_seconds(6 * 3600)
    account = small.configuration.pop("email")
    (digest,) = (await small.deliver()).gathering
    assert "no mail account is configured" in str(digest.last_error)
    small.configuration["email"] = account
    await small.deliver()
    assert small.subjects == ["1 new"]


async def test_a_damaged_contribution_holds_up_no_other(small: World) -> None:
    await small.run({"n": 1})
    await small.run({"n": 2})
    damage = "UPDATE aioflow_digests SET content = '{' WHERE content LIKE '%[[1]]%'"
    assert await small.on(lambda connection: connection.run(damage)) == 1
    small.clock.pass_seconds(6 * 3600)
    (digest,) = (await small.deliver()).gathering
    assert "damaged in the database" in str(digest.last_error)
    assert small.subjects == ["1 new"]


async def composed(world: World, *, early: bool = True) -> list[Message]:
    """The messages that are composed of all digests, which nothing delivers."""
    table = world.post.table()
    channels = Channels(world.configuration)
    try:
        composer = DigestComposer(
            DigestTable(table), channels, OutboxSettings(), world.post.told.append, early=early
        )
        for digest in await composer.due(world.clock.now):
            await composer.compose(digest, world.clock.now)
        return [entry.message async for entry in table.entries()]
    finally:
        await channels.close()
        await table.close()


async def test_notices_and_texts_have_digests_too(small: World) -> None:
    small.configuration |= {
        "notify": {"default": {"url": "json://127.0.0.1:1/hook"}},
        "phone": {"default": {"url": "http://127.0.0.1:1/sms"}},
    }
    statement = (
        f'notify (x, "{{count}} alarms") {{{DAILY}; DELIVERY: at-most-once}} '
        f'phone (x, to="+49 151 12345678") {{{DEBOUNCED}; BODY: "{{{{ count }}}} alarms"}}'
    )
    await small.run({"n": 1}, {"n": 2}, statement=statement)
    small.clock.pass_seconds(1)
    await small.run({"n": 3}, statement=statement)
    notice, text = sorted(await composed(small), key=lambda message: message.channel)
    assert notice.content == {"to": "json://127.0.0.1:1/hook", "subject": "3 alarms", "text": "1\n2\n3"}
    assert (notice.delivery, text.delivery) == ("at-most-once", "at-least-once")
    assert text.content == {"to": "+4915112345678", "subject": "3 alarms", "text": "3 alarms"}


@pytest.mark.parametrize(
    ("clause", "words"),
    [
        ('EACH; DIGEST: "hourly"', "1:95: with EACH there is a message for each tuple, and DIGEST makes one"),
        ('EACH; DEBOUNCE: "5m"', "and DEBOUNCE makes one of many"),
        ('DIGEST: hourly; DEBOUNCE: "5m"', "by DIGEST or by DEBOUNCE, not by both"),
        ('DIGEST: "daily 08:00 Berlin"', "1:102: unknown time zone 'Berlin'"),
        ('DEBOUNCE: "soon"', "must be a time span such as 90s"),
        ('QUIET: "22:00-25:00"', "1:95: '25:00' is no time of day"),
    ],
)
async def test_a_wrong_time_is_a_mistake_of_the_plan(small: World, clause: str, words: str) -> None:
    with pytest.raises(PlanError) as caught:
        await small.run({"n": 1}, statement=TELL.format(clause))
    assert words in str(caught.value)


# --- who ----------------------------------------------------------------------------------------


async def contributions(table: DigestTable, digest: GatheringDigest) -> list[DigestContribution]:
    return [each for each in await table.contributions(digest.key) if isinstance(each, DigestContribution)]


async def test_of_two_processes_one_composes_a_digest(world: World) -> None:
    await world.run({"n": 1})
    await world.run({"n": 2})
    world.clock.pass_seconds(6 * 3600)
    first, second = world.post.table(), world.post.table()
    channels = Channels(world.configuration)
    settings, told = OutboxSettings(), world.post.told.append
    composers = [DigestComposer(DigestTable(table), channels, settings, told) for table in (first, second)]
    try:
        # Both have seen it, and the second has read it, before the first commits.
        (seen,), (also_seen,) = [await each.due(world.clock.now) for each in composers]
        late = DigestTable(second)
        read = await contributions(late, also_seen)
        await composers[0].compose(seen, world.clock.now)
        assert not await late.compose(read, [])
        await composers[1].compose(also_seen, world.clock.now)
    finally:
        await channels.close()
        for table in (first, second):
            await table.close()
    await asyncio.gather(*(world.deliver() for _ in range(3)))
    assert world.subjects == ["2 new"]


async def test_rows_that_come_while_a_digest_is_composed_wait_for_the_next(world: World) -> None:
    await world.run({"n": 1})
    world.clock.pass_seconds(6 * 3600)
    table = world.post.table()
    try:
        digests = DigestTable(table)
        (digest,) = await digests.gathering()
        read = await contributions(digests, digest)
        await world.run({"n": 2}, outbox={"deliver_seconds": 0})
        assert await digests.compose(read, [])
        (left,) = await digests.gathering()
        assert (left.key, left.row_count, left.due) == (digest.key, 1, NOON + timedelta(hours=30))
    finally:
        await table.close()


class _KilledError(Exception):
    """Stands in for the end of a process."""


@pytest.mark.parametrize(("moment", "left"), [("digest composed", (1, 0)), ("digest committed", (0, 1))])
async def test_a_kill_while_a_digest_is_composed_loses_and_doubles_nothing(
    world: World, moment: str, left: tuple[int, int]
) -> None:
    await world.run({"n": 1})
    world.clock.pass_seconds(6 * 3600)

    def killing(name: str) -> None:
        if name == moment:
            raise _KilledError

    with watch(killing), pytest.raises(_KilledError):
        await world.deliver()
    waiting = [entry.message.key for entry in await world.post.entries()]
    assert (len(await world.gathering()), len(waiting)) == left
    assert world.subjects == []
    assert (await world.deliver()).sent == 1
    assert world.subjects == ["1 new"]
    (key,) = [entry.message.key for entry in await world.post.entries()]
    assert not waiting or waiting == [key]
    assert world.mails[0]["Message-ID"] == f"<{key}@example.org>"


# --- quiet hours --------------------------------------------------------------------------------


async def test_a_message_waits_for_the_end_of_its_quiet_hours(world: World) -> None:
    world.clock.now = NOON + timedelta(hours=11)
    result = await world.run({"n": 1}, statement=TELL.format('QUIET: "22:00-07:00 UTC"'))
    assert result.warnings == ()
    (entry,) = [each for each in result.account.entries if each.name == "messages"]
    assert entry.lines == ("1 message in quiet hours",)
    assert await world.next_due() == NOON + timedelta(hours=19)
    report = await world.deliver()
    assert (report.sent, report.waiting, [each.count for each in report.quiet]) == (0, [], [1])
    world.clock.now = NOON + timedelta(hours=19)
    assert (await world.deliver()).sent == 1
    assert world.subjects == ["1 new"]


async def test_the_due_time_of_a_message_is_the_end_of_its_quiet_hours_from_the_commit_on(
    world: World,
) -> None:
    quiet = 'QUIET: "11:00-13:00 UTC"'
    await world.run({"n": 1}, statement=TELL.format(quiet), outbox={"deliver_seconds": 0})
    assert await world.next_due() == NOON + timedelta(hours=1)
    hourly = f"DIGEST: hourly; {quiet}"
    await world.run({"n": 2}, statement=TELL.format(hourly), outbox={"deliver_seconds": 0})
    world.clock.now = NOON + timedelta(hours=23, minutes=30)
    await composed(world, early=False)
    dues = {entry.message.content["text"][0:5]: entry.due for entry in await world.post.entries()}
    assert dues == {"n\n-\n1": NOON + timedelta(hours=1), "n\n-\n2": NOON + timedelta(hours=25)}


async def test_quiet_hours_of_an_account_are_for_statements_that_set_none(small: World) -> None:
    small.configuration["email"]["default"]["quiet"] = "11:00-13:00 UTC"
    await small.run({"n": 1}, statement=TELL.format(""))
    assert small.subjects == []
    await small.run({"n": 2}, {"n": 3}, statement=TELL.format("QUIET: off"))
    assert small.subjects == ["2 new"]
    small.clock.pass_seconds(3600)
    await small.deliver()
    assert small.subjects == ["2 new", "1 new"]


async def test_a_digest_is_not_due_in_quiet_hours_nor_delivered_in_them(small: World) -> None:
    statement = TELL.format(f'{DAILY}; QUIET: "17:00-20:00 UTC"')
    await small.run({"n": 1}, statement=statement)
    assert await small.next_due() == NOON + timedelta(hours=8)
    # Nothing delivers until the quiet hours of the next day.
    small.clock.now = NOON + timedelta(hours=30)
    await small.deliver()
    assert (small.subjects, await small.gathering()) == ([], [])
    assert await small.next_due() == NOON + timedelta(hours=32)
    small.clock.now = NOON + timedelta(hours=32)
    await small.deliver()
    assert small.subjects == ["1 new"]


async def test_a_retry_waits_for_the_end_of_quiet_hours(small: World) -> None:
    statement = TELL.format('QUIET: "12:30-13:00 UTC"')
    await small.run({"n": 1}, statement=statement, outbox={"deliver_seconds": 0})
    change = "UPDATE aioflow_outbox SET channel = 'test', due = '2026-01-31T12:40:00.000000Z'"
    await small.on(lambda connection: connection.run(change))
    async with opened_post(small.post.address.url) as post:
        post.clock.now = NOON + timedelta(minutes=45)
        report = await post.courier().deliver()
        assert (report.sent, report.failed, post.channel.delivered) == (0, 0, [])
        entry = await post.only()
        assert (entry.state, entry.message.attempts) == ("waiting", 0)
        assert entry.due == NOON + timedelta(hours=1)
        assert (await post.courier(early=True).deliver(everything=True)).sent == 1


# --- a service ----------------------------------------------------------------------------------


async def test_an_outbox_that_was_never_used_has_nothing_due(small: World) -> None:
    assert (await small.deliver()).sent == 0
    assert not small.has_database
    assert await small.next_due() is None


async def test_a_message_that_is_due_is_due_now(world: World) -> None:
    world.configuration["email"]["default"]["url"] = "smtp://127.0.0.1:1"
    await world.run({"n": 1}, statement=TELL.format(""), outbox={"deliver_seconds": 0})
    assert await world.next_due() == world.clock.now
    await world.deliver()
    due = await world.next_due()
    assert due is not None
    assert due > world.clock.now
