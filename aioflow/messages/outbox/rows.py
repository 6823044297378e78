"""Rows of the outbox as values, also those that a person, a program or a disk has damaged.

A message is read strictly: a row that is not as it was posted raises a DamageError. Lists show every row.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast, get_args

from aioflow.messages.outbox.message import Delivery, Message
from aioflow.relation import Row
from aioflow.state.system_tables import from_stamp

DAMAGED = "damaged in the database"

_SHOWN_CHARACTERS = 40


class DamageError(ValueError):
    """A row of the outbox is not as it was posted."""


@dataclass(frozen=True)
class OutboxAccount:
    """Where messages go to: a channel's account; one without a name is the default."""

    channel: str
    account: str

    def __str__(self) -> str:
        return f"{self.channel} {self.account}".strip()


@dataclass(frozen=True)
class Waiting:
    """The number of messages of an account that wait, the time of the next attempt, and the reason."""

    account: OutboxAccount
    count: int
    due: datetime | None  # None: now
    reason: str | None


@dataclass(frozen=True)
class Held:
    """The number of messages of an account that another process is delivering, and the end of its lease."""

    account: OutboxAccount
    count: int
    until: datetime | None


@dataclass(frozen=True)
class OutboxEntry:
    """A message with what became of it so far. Of one that is damaged it has as much as can be read."""

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
    )


def _created(text: str) -> datetime:
    found = _moment(text)
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
    """Return a message with what became of it, however damaged the row is."""
    state, due, leased_by, leased_until, last_error, answer, sent_at = row[10:]
    error = _text(last_error)
    try:
        message = message_of(row[:10])
    except DamageError as damage:
        message = _remains(row[:10])
        if state in ("waiting", "sending"):
            error = f"{DAMAGED}: {damage}; the next delivery gives it up"
    return OutboxEntry(
        message,
        _text(state) or "",
        _moment(due),
        _text(leased_by),
        _moment(leased_until),
        error,
        _text(answer),
        _moment(sent_at),
    )


def waiting_of(row: Row) -> Waiting:
    channel, account, count, due, reason = row
    return Waiting(
        OutboxAccount(_text(channel) or "", _text(account) or ""), count, _moment(due), _text(reason)
    )


def held_of(row: Row) -> Held:
    channel, account, count, until = row
    return Held(OutboxAccount(_text(channel) or "", _text(account) or ""), count, _moment(until))


def _remains(row: Row) -> Message:
    key, channel, account, content, delivery, run_id, statement, created, attempts, _ = row
    try:
        kept = _object("content", content) if isinstance(content, str) else {}
    except DamageError:
        kept = {}
    return Message(
        key=_text(key) or "",
        channel=_text(channel) or "",
        account=_text(account) or "",
        content=kept,
        delivery=cast(Delivery, _text(delivery) or ""),
        run_id=_text(run_id) or "",
        statement=_text(statement) or "",
        created=_moment(created),
        attempts=attempts if isinstance(attempts, int) else 0,
    )


def _text(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _moment(value: object) -> datetime | None:
    if not isinstance(value, str) or not value:
        return None
    try:
        return from_stamp(value)
    except ValueError:
        return None
