"""`aioflow outbox`: what it lists, retries, drops and delivers, and what it says when it cannot."""

import asyncio
import json
import re
import sqlite3
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest

from aioflow.messages.outbox.message import DeliveryError
from aioflow.messages.outbox.table import OutboxTable
from tests.cli.conftest import Ended
from tests.cli.test_terminal import in_terminal, plain
from tests.messages.posts import Post, ScriptedChannel, failing, opened_post

T = TypeVar("T")


@pytest.fixture
def channel(monkeypatch: pytest.MonkeyPatch) -> ScriptedChannel:
    """What the entry points bring: one channel, called `test`."""
    made = ScriptedChannel()
    point = SimpleNamespace(name="test", load=lambda: lambda configuration: made)
    monkeypatch.setattr("aioflow.messages.channels.installed", lambda group: (point,))
    return made


@pytest.fixture
def url(folder: Path) -> str:
    return f"sqlite:{folder / 'aioflow.db'}"


def with_post(url: str, work: Callable[[Post], Coroutine[Any, Any, T]]) -> T:
    async def main() -> T:
        async with opened_post(url) as post:
            return await work(post)

    return asyncio.run(main())


def put(url: str, *subjects: str, **more: Any) -> list[str]:
    return with_post(url, lambda post: post.put(*subjects, **more))


def states(url: str) -> dict[str, str]:
    return with_post(url, lambda post: post.states())


def lines(ended: Ended) -> list[str]:
    return [" ".join(line.split()) for line in ended.output.splitlines()]


# --- list -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("no_color", ["", "1"])
def test_a_list_on_a_terminal_is_cut_to_its_width(folder: Path, url: str, no_color: str) -> None:
    put(url, "A subject that goes on " * 10)
    code, shown = in_terminal("outbox", "list", cwd=folder, NO_COLOR=no_color)
    assert code == 0
    assert max(map(len, plain(shown).splitlines())) <= 80


def test_list_shows_what_waits_and_why(
    command: Callable[..., Ended], url: str, channel: ScriptedChannel
) -> None:
    keys = put(url, "one", "two", "three")
    channel.does = failing(None, DeliveryError("refused"), DeliveryError("no such user", final=True))
    assert command("outbox", "deliver").code == 1
    ended = command("outbox", "list")
    head, _, second, third = lines(ended)
    assert (ended.code, ended.messages) == (0, "")
    assert head == "key state account message tries when error"
    assert second.startswith(f"{keys[1][:8]} waiting test main a@example.org · two 1 in ")
    assert second.endswith(" s refused")
    assert third.startswith(f"{keys[2][:8]} dead test main a@example.org · three 1 ")
    assert third.endswith(" no such user")
    assert len(lines(command("outbox", "list", "--all"))) == 5


def test_list_as_json_has_one_object_a_message(command: Callable[..., Ended], url: str) -> None:
    (key,) = put(url, "one")
    ended = command("outbox", "list", "--json")
    entry = json.loads(ended.output)
    assert entry == {
        "key": key,
        "state": "waiting",
        "channel": "test",
        "account": "main",
        "message": "a@example.org · one",
        "delivery": "at-least-once",
        "attempts": 0,
        "created": "2026-01-31T12:00:00+00:00",
        "due": None,
        "leased-by": None,
        "leased-until": None,
        "sent": None,
        "error": None,
        "answer": None,
        "run": "run",
        "statement": "plan:3",
    }


def test_list_of_an_outbox_without_messages_says_so(command: Callable[..., Ended], url: str) -> None:
    put(url)
    assert command("outbox", "list") == Ended(0, "", "note: no messages wait in aioflow.db\n")
    assert command("outbox", "list", "--json") == Ended(0, "", "")


def test_a_text_of_a_message_does_not_move_the_cursor(command: Callable[..., Ended], url: str) -> None:
    put(url, "\x1b[2Jgone\n")
    assert "\x1b" not in command("outbox", "list").output


@pytest.mark.parametrize(
    "arguments", [("list",), ("deliver",), ("retry", "a"), ("retry", "--all-dead"), ("drop", "a")]
)
def test_a_database_that_is_not_there_is_not_made(
    command: Callable[..., Ended], folder: Path, arguments: tuple[str, ...]
) -> None:
    ended = command("outbox", *arguments)
    message = "error: there is no database aioflow.db; --db names another one\n"
    assert ended == Ended(2, "", message)
    assert not (folder / "aioflow.db").exists()


@pytest.mark.parametrize("arguments", [("list",), ("deliver",), ("retry", "--all-dead")])
def test_a_file_that_is_no_database_is_told(
    command: Callable[..., Ended], folder: Path, arguments: tuple[str, ...]
) -> None:
    (folder / "aioflow.db").write_text("no database\n" * 100)
    ended = command("outbox", *arguments)
    assert (ended.code, ended.output) == (1, "")
    assert ended.messages.startswith("error: ")
    assert "no SQLite database" in ended.messages


def test_a_database_of_others_is_not_changed(command: Callable[..., Ended], folder: Path) -> None:
    connection = sqlite3.connect(folder / "aioflow.db")
    connection.execute("CREATE TABLE houses (url text)")
    connection.close()
    assert command("outbox", "list").code == 0
    assert command("outbox", "deliver").messages == "error: there are no messages in aioflow.db\n"
    connection = sqlite3.connect(folder / "aioflow.db")
    assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("houses",)]
    connection.close()


def test_the_database_is_named_by_url_name_or_plan(command: Callable[..., Ended], folder: Path) -> None:
    other = folder / "elsewhere"
    other.mkdir()
    put(f"sqlite:{other / 'aioflow.db'}", "by plan")
    put(f"sqlite:{folder / 'houses.db'}", "by name")
    (folder / "aioflow.toml").write_text('[database.houses]\nurl = "sqlite:houses.db"\n')
    (other / "a.plan").write_text("")
    for arguments, found in (
        (("--db", "sqlite:houses.db"), "by name"),
        (("--db", "houses"), "by name"),
        (("--db", "homes=sqlite:houses.db"), "by name"),
        ((), "by name"),  # the only one that is configured
        (("--db", "sqlite:elsewhere/aioflow.db"), "by plan"),
    ):
        assert found in command("outbox", "list", *arguments).output, arguments
    (folder / "aioflow.toml").unlink()
    assert "by plan" in command("outbox", "list", "elsewhere/a.plan").output
    assert command("outbox", "list", "--db", "homes").code == 2
    assert command("outbox", "list", "none.plan").messages == "error: there is no file none.plan\n"


# --- retry and drop -------------------------------------------------------------------------------


def test_retry_and_drop_take_the_beginnings_of_keys(
    command: Callable[..., Ended], url: str, channel: ScriptedChannel
) -> None:
    one, two, three = put(url, "one", "two", "three")
    channel.does = failing(*[DeliveryError("never", final=True)] * 3)
    command("outbox", "deliver")
    assert command("outbox", "retry", one[:12]) == Ended(0, f"{one[:8]} will be tried again\n", "")
    assert command("outbox", "drop", two, three[:20]).output == f"{two[:8]} dropped\n{three[:8]} dropped\n"
    assert states(url) == {"one": "waiting", "two": "dropped", "three": "dropped"}
    assert command("outbox", "retry", two).code == 0
    told = "".join(f"{key[:8]} sent  test main  taken\n" for key in (one, two))
    assert command("outbox", "deliver") == Ended(0, f"{told}2 messages sent, 0 failed, 0 dead\n", "")
    assert channel.delivered[-1].attempts == 1
    for what in ("retry", "drop"):
        assert command("outbox", what, one) == Ended(1, "", f"error: message {one[:8]} is sent already\n")


def test_retry_can_take_all_that_are_dead(
    command: Callable[..., Ended], url: str, channel: ScriptedChannel
) -> None:
    put(url, "one", "two", "three")
    channel.does = failing(*[DeliveryError("never", final=True)] * 2)
    command("outbox", "deliver")
    assert command("outbox", "retry", "--all-dead") == Ended(0, "2 messages will be tried again\n", "")
    assert states(url) == {"one": "waiting", "two": "waiting", "three": "sent"}


def test_a_key_that_is_unknown_or_not_the_only_one_changes_nothing(
    command: Callable[..., Ended], url: str
) -> None:
    (key,) = put(url, "one")
    with_post(url, lambda post: _put_twin(post, key))
    assert "there is no message whose key begins with 'zz'" in command("outbox", "drop", key, "zz").messages
    ended = command("outbox", "drop", key[:10])
    assert (ended.code, "several keys begin with" in ended.messages) == (2, True)
    assert set(states(url).values()) == {"waiting"}
    assert command("outbox", "retry").code == command("outbox", "retry", key, "--all-dead").code == 2


async def _put_twin(post: Post, key: str) -> None:
    (twin,) = await post.put("twin")
    connection = await post.connect()
    await connection.run("UPDATE aioflow_outbox SET key = ? WHERE key = ?", (key[:-1] + "z", twin))
    await connection.close()


def test_a_message_that_is_being_delivered_is_left_alone(command: Callable[..., Ended], url: str) -> None:
    (key,) = put(url, "one")

    async def claim(post: Post) -> bool:
        now = datetime.now(UTC)
        table: OutboxTable = post.table()
        return await table.claim(key, "another", now, now + timedelta(hours=1))

    assert with_post(url, claim)
    assert command("outbox", "drop", key).messages == f"error: message {key[:8]} is just being delivered\n"
    assert "sending" in command("outbox", "list").output
    ended = command("outbox", "deliver")
    assert (ended.code, ended.output) == (1, "0 messages sent, 0 failed, 0 dead\n")
    warning = "warning: 1 message for test main is being delivered by another process, for (59m|1h 00m)"
    assert re.search(warning, ended.messages)


# --- deliver --------------------------------------------------------------------------------------


def test_deliver_tells_what_still_waits(
    command: Callable[..., Ended], url: str, channel: ScriptedChannel
) -> None:
    put(url, "one", "two", account="other")
    (key,) = put(url, "three")
    channel.missing["other"] = "there is no [test.other]"
    channel.does = failing(DeliveryError("refused"))
    ended = command("outbox", "deliver")
    assert (ended.code, ended.output) == (
        1,
        f"{key[:8]} failed  test main  refused\n0 messages sent, 1 failed, 0 dead\n",
    )
    assert "warning: 2 messages for test other wait: there is no [test.other]\n" in ended.messages
    assert re.search(r"warning: 1 message for test main waits for \d\S* s: refused\n", ended.messages)


def test_deliver_does_not_wait_for_the_time_of_the_next_try(
    command: Callable[..., Ended], url: str, channel: ScriptedChannel
) -> None:
    (key,) = put(url, "one")
    channel.does = failing(DeliveryError("refused", retry_after_seconds=3000))
    assert command("outbox", "deliver").code == 1
    assert command("outbox", "deliver") == Ended(
        0, f"{key[:8]} sent  test main  taken\n1 message sent, 0 failed, 0 dead\n", ""
    )


def test_a_damaged_message_is_listed_and_becomes_a_dead_letter(
    command: Callable[..., Ended], url: str, folder: Path, channel: ScriptedChannel
) -> None:
    put(url, "one", "two")
    database = sqlite3.connect(folder / "aioflow.db")
    with database:
        database.execute("UPDATE aioflow_outbox SET content = x'ff', account = x'ff' WHERE place = 1")
    database.close()
    listed = command("outbox", "list")
    assert (listed.code, len(lines(listed))) == (0, 4)
    assert "damaged in the database: its account is no text; the next delivery gives it up" in listed.output
    delivered = command("outbox", "deliver")
    assert (delivered.code, delivered.output.endswith("1 message sent, 0 failed, 1 dead\n")) == (1, True)
    assert "dead" in command("outbox", "list").output
    assert '"state": "dead"' in command("outbox", "list", "--json").output


def test_deliver_logs_every_attempt(
    command: Callable[..., Ended], url: str, channel: ScriptedChannel, folder: Path
) -> None:
    (key,) = put(url, "one")
    channel.does = failing(DeliveryError("refused"))
    line = f"message {key} to test main, attempt 1, waiting: refused"
    assert f"messages: {line}\n" in command("outbox", "deliver", "-v", "--log-file", "d.log").messages
    assert f" DEBUG aioflow.messages {line}\n" in (folder / "d.log").read_text()


def test_a_newer_database_is_refused(command: Callable[..., Ended], url: str) -> None:
    async def make_newer(post: Post) -> None:
        connection = await post.connect()
        await connection.run("UPDATE aioflow_meta SET version = 99")
        await connection.close()

    with_post(url, make_newer)
    for arguments in (("list",), ("deliver",), ("retry", "--all-dead")):
        ended = command("outbox", *arguments)
        assert (ended.code, ended.output) == (1, "")
        assert "a newer version of aioflow" in ended.messages


def test_mail_that_a_run_left_waiting_is_delivered(
    command: Callable[..., Ended], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "aioflow.toml").write_text(
        '[email.default]\nurl = "maildir:mail"\nfrom = "Watcher <watcher@example.org>"\n'
    )
    (folder / "told.plan").write_text(
        'PLAN told { INPUT: rows BODY { email (rows, to="me@example.org", subject="News") } }'
    )
    monkeypatch.setenv("AIOFLOW_OUTBOX_DELIVER_SECONDS", "0")
    assert command("run", "told.plan", "-i", '[{"n": 1}]').code == 0
    assert "me@example.org · News" in command("outbox", "list").output
    delivered = command("outbox", "deliver", "told.plan")
    assert (delivered.code, delivered.messages) == (0, "")
    assert delivered.output.endswith("1 message sent, 0 failed, 0 dead\n")
    (mail,) = (folder / "mail" / "new").iterdir()
    assert "Subject: News" in mail.read_text()
