"""Rows of the outbox as values, also those that a person, a program or a disk has damaged.

A message is read strictly: a row that is not as it was posted raises a DamageError. Lists show every row.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any, cast, get_args

import msgspec

from aioflow.errors import SettingError
from aioflow.messages.outbox.message import Delivery, Message
from aioflow.messages.timing import read_quiet
from aioflow.relation import Row
from aioflow.state.system_tables import from_stamp

DAMAGED = "damaged in the database"

_SHOWN_CHARACTERS = 40
_MESSAGE_COLUMNS = 11


class DamageError(ValueError):
    """A row of the outbox is not as it was posted."""


class OutboxAccount(msgspec.Struct, frozen=True):
    """The account of a channel that messages go to. One without a name is the default."""

    channel: str
    account: str

    def __str__(self) -> str:
        return f"{self.channel} {self.account}".strip()


class Waiting(msgspec.Struct, frozen=True):
    """The number of messages of an account that wait, the time of the next attempt, and the reason."""

    account: OutboxAccount
    count: int
    due: datetime | None  # None: now
    reason: str | None


class Held(msgspec.Struct, frozen=True):
    """The number of messages of an account that another process is delivering, and the end of its lease."""

    account: OutboxAccount
    count: int
    until: datetime | None


class StuckMessages(msgspec.Struct, frozen=True):
    """Messages that could not leave since a moment, or that were given up, and the reason."""

    count: int
    since: datetime | None
    is_dead: bool
    reason: str | None


class OutboxEntry(msgspec.Struct, frozen=True):
    """A message with its outcome so far. Of one that is damaged it has as much as can be read."""

    message: Message
    state: str
    due: datetime | None
    leased_by: str | None
    leased_until: datetime | None
    last_error: str | None
    answer: str | None
    sent_at: datetime | None


# --- strictly -------------------------------------------------------------------------------------


def message_of(row: Row) -> Message:
    """Return the message of a row; a DamageError says what is wrong with it."""
    names = ("key", "channel", "account", "content", "delivery", "run_id", "statement", "created", "progress")
    attempts = row[8]
    values = dict(zip(names, (*row[:8], row[9]), strict=True))
    for name, value in values.items():
        if not isinstance(value, str):
            raise DamageError(f"its {name} is no text")
    if not isinstance(attempts, int) or not 0 <= attempts < 1_000_000:
        raise DamageError(f"its attempts are {_short(attempts)}")
    if values["delivery"] not in get_args(Delivery):
        raise DamageError(f"its delivery is {_short(values['delivery'])}")
    return Message(
        key=values["key"],
        channel=values["channel"],
        account=values["account"],
        content=_object("content", values["content"]),
        delivery=cast(Delivery, values["delivery"]),
        run_id=values["run_id"],
        statement=values["statement"],
        created=_created(values["created"]),
        attempts=attempts,
        progress=_object("progress", values["progress"]),
        quiet=row[10] if isinstance(row[10], str) else None,
    )


def _created(text: str) -> datetime:
    found = moment_of(text)
    if found is None:
        raise DamageError(f"it was created at {_short(text)}, which is no time")
    return found


def _object(name: str, text: str) -> Mapping[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DamageError(f"its {name} is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise DamageError(f"its {name} is no JSON object")
    return found


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"


# --- for lists ------------------------------------------------------------------------------------


def entry_of(row: Row) -> OutboxEntry:
    """Return a message with its outcome, however damaged the row is."""
    state, due, leased_by, leased_until, last_error, answer, sent_at = row[_MESSAGE_COLUMNS:]
    error = text_of_cell(last_error)
    try:
        message = message_of(row[:_MESSAGE_COLUMNS])
    except DamageError as damage:
        message = _remains(row[:_MESSAGE_COLUMNS])
        if state in ("waiting", "sending"):
            error = f"{DAMAGED}: {damage}; the next delivery gives it up"
    return OutboxEntry(
        message,
        text_of_cell(state) or "",
        moment_of(due),
        text_of_cell(leased_by),
        moment_of(leased_until),
        error,
        text_of_cell(answer),
        moment_of(sent_at),
    )


def waiting_of(row: Row) -> Waiting:
    channel, account, count, due, reason = row
    return Waiting(
        OutboxAccount(text_of_cell(channel) or "", text_of_cell(account) or ""),
        count,
        moment_of(due),
        text_of_cell(reason),
    )


def stuck_of(row: Row) -> StuckMessages:
    state, quiet, count, created, reason = row
    since = moment_of(created)
    with suppress(SettingError):
        since = since if quiet is None or since is None else read_quiet(quiet).end_after(since)
    return StuckMessages(count, since, state == "dead", text_of_cell(reason))


def held_of(row: Row) -> Held:
    channel, account, count, until = row
    return Held(
        OutboxAccount(text_of_cell(channel) or "", text_of_cell(account) or ""), count, moment_of(until)
    )


def _remains(row: Row) -> Message:
    key, channel, account, content, delivery, run_id, statement, created, attempts, _, _ = row
    try:
        kept = _object("content", content) if isinstance(content, str) else {}
    except DamageError:
        kept = {}
    return Message(
        key=text_of_cell(key) or "",
        channel=text_of_cell(channel) or "",
        account=text_of_cell(account) or "",
        content=kept,
        delivery=cast(Delivery, text_of_cell(delivery) or ""),
        run_id=text_of_cell(run_id) or "",
        statement=text_of_cell(statement) or "",
        created=moment_of(created),
        attempts=attempts if isinstance(attempts, int) else 0,
    )


def text_of_cell(value: object) -> str | None:
    """Return a value of a column as text, whatever it is."""
    if value is None or isinstance(value, str):
        return value
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def moment_of(value: object) -> datetime | None:
    """Return the moment of a column, or None if it has none."""
    if not isinstance(value, str) or not value:
        return None
    try:
        return from_stamp(value)
    except ValueError:
        return None
