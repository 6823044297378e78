"""Rows of the outbox that are damaged in any column: they are dead letters, and hold up no others."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aioflow.messages.outbox.message import Message
from aioflow.testing import VirtualLoop
from tests.messages.mails import account as mail_account
from tests.messages.posts import SETTINGS, Post, opened_post

TEXTS = ("''", "'zzz'", "'0'", "'{'", "'[]'", "'null'", "'9999-99-99T99:99:99.999999Z'", "'😀'")
# What only columns of SQLite hold: BLOBs, texts that are no UTF-8, numbers that are none.
ODDITIES = ("x''", "x'ff00'", "CAST(x'ff41' AS text)", "x'fb7b'", "1e300", "12345678901234567890")
NUMBERS = ("-1", "0", "9223372036854775807")
DEEP = f"'{'[' * 100_000}'"

COLUMNS = (
    *("key", "channel", "account", "content", "delivery", "state", "attempts", "created", "place", "due"),
    *("progress", "run_id", "statement", "leased_by", "leased_until", "last_error", "answer", "sent_at"),
    "quiet",
)
MAY_BE_NULL = ("leased_by", "leased_until", "last_error", "answer", "sent_at", "quiet")
# Nothing of the message itself is lost with these: it is delivered.
HARMLESS = ("place", "due", "leased_by", "leased_until", "last_error", "answer", "sent_at", "quiet")


async def damage(post: Post, subject: str, changes: str) -> None:
    connection = await post.connect()
    try:
        sql = f"UPDATE aioflow_outbox SET {changes} WHERE content LIKE '%\"{subject}\"%'"
        assert await connection.run(sql) == 1
    finally:
        await connection.close()


def values_for(column: str, kind: str) -> list[str]:
    found: tuple[str, ...] = NUMBERS if column in ("attempts", "place") else TEXTS
    if kind == "sqlite":
        found = (*found, *TEXTS, *ODDITIES)
    if column == "key":
        found = tuple(value for value in found if value not in ("x''", "''"))  # one is enough, and NULL
    if column in MAY_BE_NULL or (column == "key" and kind == "sqlite"):
        found = (*found, "NULL")
    return list(dict.fromkeys((*found, DEEP) if column in ("content", "progress") else found))


async def expect_others_delivered(post: Post, column: str, state: str, everything: bool) -> None:
    """Damage a column in every way, each in a row of its own among others, and deliver."""
    values = values_for(column, post.address.url.partition(":")[0])
    good = [f"good {number}" for number in range(len(values) + 1)]
    for number, value in enumerate(values):
        await post.put(good[number], f"bad {number}")
        if state == "sending":
            lost = "state = 'sending', leased_by = 'who died', leased_until = '2020-01-01T00:00:00.000000Z'"
            await damage(post, f"bad {number}", lost)
        await damage(post, f"bad {number}", f"{column} = {value}")
    await post.put(good[-1])
    assert len(await post.entries()) == 2 * len(values) + 1
    report = await post.courier(clock=None).deliver(everything=everything)
    assert (report.troubles, report.waiting) == ([], [])
    entries = await post.entries()
    subjects = {entry.message.content.get("subject"): entry for entry in entries}
    assert [subjects[each].state for each in good] == ["sent"] * len(good)
    assert len(entries) == 2 * len(values) + 1
    dead = [entry for entry in entries if entry.state == "dead"]
    assert {entry.state for entry in entries} <= {"sent", "dead"}
    assert (len(dead), all(entry.last_error for entry in dead)) == (report.dead, True)
    if column in HARMLESS:
        assert dead == []


@pytest.mark.parametrize("everything", [False, True])
@pytest.mark.parametrize("column", COLUMNS)
async def test_a_row_that_is_damaged_in_any_column_holds_up_no_other(
    database_url: str, column: str, everything: bool
) -> None:
    async with opened_post(database_url) as post:
        await expect_others_delivered(post, column, "waiting", everything)


@pytest.mark.parametrize("column", COLUMNS)
def test_a_damaged_row_whose_process_died_holds_up_no_other(tmp_path: Path, column: str) -> None:
    async def main() -> None:
        async with opened_post(f"sqlite:{tmp_path / 'test.db'}") as post:
            await expect_others_delivered(post, column, "sending", everything=False)

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(main())


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ("content = '{'", "damaged in the database: its content is no JSON: "),
        ("content = '[1]'", "damaged in the database: its content is no JSON object"),
        ("content = x'ff'", "damaged in the database: its content is no text"),
        ("delivery = 'sometimes'", "damaged in the database: its delivery is 'sometimes'"),
        ("attempts = 'many'", "damaged in the database: its attempts are 'many'"),
        ("created = 'noon'", "damaged in the database: it was created at 'noon', which is no time"),
        ("state = 'lost'", "damaged in the database: it was in no state that there is"),
        ("channel = x'ff'", "damaged in the database: its channel is no text"),
        ("key = x'ff'", "damaged in the database: its key is no text"),
        ("channel = 'fax'", "there is no channel 'fax': nothing that is installed brings one"),
    ],
)
async def test_a_dead_letter_says_what_is_damaged(tmp_path: Path, changes: str, words: str) -> None:
    async with opened_post(f"sqlite:{tmp_path / 'test.db'}") as post:
        await post.put("one", "two")
        await damage(post, "two", changes)
        report = await post.courier().deliver()
        assert (report.sent, report.dead) == (1, 1)
        (dead,) = [entry for entry in await post.entries() if entry.state == "dead"]
        assert str(dead.last_error).startswith(words)
        # Whoever has looked at it can name it.
        assert dead.message.key
        assert await post.table().drop(dead.message.key, post.clock.now)


async def test_a_message_that_was_never_sent_is_not_removed_as_old(tmp_path: Path) -> None:
    async with opened_post(f"sqlite:{tmp_path / 'test.db'}", replace(SETTINGS, keep_days=0)) as post:
        await post.put("one", "two")
        await damage(post, "two", "sent_at = '1999'")
        assert (await post.courier().deliver()).sent == 2


@pytest.mark.parametrize(
    ("channel", "content", "progress"),
    [
        ("email", {}, {}),
        ("email", {"from": 3}, {}),
        ("email", {"from": "a@example.org", "to": 5, "subject": "", "text": ""}, {}),
        ("email", {"from": "a@example.org", "to": ["b@example.org"], "subject": "", "text": ""}, {"sent": 5}),
        ("notify", {}, {}),
        ("notify", {"to": "json://localhost", "subject": None, "text": "x"}, {}),
        ("notify", {"to": "json://localhost", "subject": "x", "text": "x"}, {"parts": "two"}),
        ("phone", {}, {}),
        ("phone", {"to": "+491", "text": ["x"]}, {}),
        ("phone", {"to": "+491", "text": "\ud800"}, {}),
    ],
)
async def test_content_that_no_receiver_can_be_given_is_refused_for_good(
    channel: str, content: dict[str, Any], progress: dict[str, Any]
) -> None:
    from aioflow.messages.channels import Channels
    from aioflow.messages.outbox.message import DeliveryError

    configuration = {
        **mail_account("smtp://127.0.0.1:9"),
        "notify": {"default": {"url": "json://localhost"}},
        "phone": {"default": {"url": "http://127.0.0.1:9/"}},
    }
    channels = Channels(configuration)
    try:
        with pytest.raises(DeliveryError) as failed:
            await channels.get(channel).deliver(Message("k", channel, "default", content, progress=progress))
        assert failed.value.final
    finally:
        await channels.close()
