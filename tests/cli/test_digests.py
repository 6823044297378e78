"""`aioflow outbox` with digests that are gathering, and with messages in quiet hours."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.cli.conftest import Ended

CONFIGURATION = '[email.default]\nurl = "maildir:mail"\nfrom = "Watcher <watcher@example.org>"\n'


@pytest.fixture
def plan(folder: Path) -> Path:
    (folder / "aioflow.toml").write_text(CONFIGURATION)
    return folder / "told.plan"


def gather(command: Callable[..., Ended], plan: Path, clauses: str = 'DEBOUNCE: "2h"') -> None:
    """Have two runs gather two tuples each."""
    email = f'email (rows, to="me@example.org", subject="{{count}} new") {{{clauses}}}'
    read = 'read ("rows.jsonl" : rows)'
    plan.write_text(f"PLAN told {{ BODY {{ {read} {email} }} }}")
    (plan.parent / "rows.jsonl").write_text('{"n": 1}\n{"n": 2}\n')
    for _ in range(2):
        assert command("run", str(plan)) == Ended(0, "", "")


def mails(plan: Path) -> list[str]:
    return [path.read_text() for path in (plan.parent / "mail").glob("new/*")]


def test_list_shows_digests_that_are_gathering(command: Callable[..., Ended], plan: Path) -> None:
    gather(command, plan)
    listed = command("outbox", "list")
    (line,) = [" ".join(line.split()) for line in listed.output.splitlines()[2:]]
    pattern = (
        r"[0-9a-f]{8} gathering email default me@example.org · {count} new · 4 tuples 0 in (1h 59m|2h 00m)"
    )
    assert re.fullmatch(pattern, line)
    entry = json.loads(command("outbox", "list", "--json").output)
    assert (entry["state"], entry["tuples"], entry["contributions"]) == ("gathering", 4, 2)
    assert entry["message"] == "me@example.org · {count} new"


def test_deliver_leaves_digests_to_their_time_unless_everything_is_wanted(
    command: Callable[..., Ended], plan: Path
) -> None:
    gather(command, plan)
    delivered = command("outbox", "deliver")
    assert (delivered.code, delivered.output) == (0, "0 messages sent, 0 failed, 0 dead\n")
    note = "note: 4 tuples for email default are gathered in a digest, for (1h 59m|2h 00m)\n"
    assert re.fullmatch(note, delivered.messages)
    delivered = command("outbox", "deliver", "--everything")
    assert (delivered.code, delivered.messages) == (0, "")
    assert delivered.output.endswith("1 message sent, 0 failed, 0 dead\n")
    (mail,) = mails(plan)
    assert "Subject: 4 new" in mail
    assert command("outbox", "list").output == ""


def test_retry_sends_a_digest_at_the_next_delivery(command: Callable[..., Ended], plan: Path) -> None:
    gather(command, plan)
    key = json.loads(command("outbox", "list", "--json").output)["key"]
    assert command("outbox", "retry", key[:10]).output == f"{key[:8]} will be sent at the next delivery\n"
    assert command("outbox", "deliver").code == 0
    assert len(mails(plan)) == 1


def test_drop_deletes_a_digest(command: Callable[..., Ended], plan: Path) -> None:
    gather(command, plan)
    key = json.loads(command("outbox", "list", "--json").output)["key"]
    assert command("outbox", "drop", key[:10]).output == f"{key[:8]} dropped\n"
    assert command("outbox", "deliver", "--everything").output == "0 messages sent, 0 failed, 0 dead\n"
    assert mails(plan) == []
    assert command("outbox", "drop", key).code == 2


def test_messages_in_quiet_hours_are_delivered_only_if_everything_is_wanted(
    command: Callable[..., Ended], plan: Path
) -> None:
    # All of the day is quiet but a minute, which was an hour ago.
    minute = datetime.now(UTC) - timedelta(hours=1)
    end = minute - timedelta(minutes=1)
    gather(command, plan, f'QUIET: "{minute:%H:%M}-{end:%H:%M} UTC"')
    assert mails(plan) == []
    assert command("outbox", "list").output.count("waiting") == 2
    delivered = command("outbox", "deliver")
    assert (delivered.code, delivered.output) == (0, "0 messages sent, 0 failed, 0 dead\n")
    assert delivered.messages.startswith("note: 2 messages for email default are in quiet hours, for 2")
    assert command("outbox", "deliver", "--everything").code == 0
    assert len(mails(plan)) == 2


def test_watching_and_everything_exclude_each_other(command: Callable[..., Ended], plan: Path) -> None:
    ended = command("outbox", "deliver", "--watch", "--everything")
    assert (ended.code, ended.output) == (2, "")
    assert "choose one" in ended.messages
