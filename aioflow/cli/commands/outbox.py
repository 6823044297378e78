"""`aioflow outbox`: lists, retries, drops and delivers the messages of a database."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar

import typer

from aioflow.cli.config import DatabaseChoice, find_database
from aioflow.cli.exit import FAILED, OK, guarded, print_message, run_interruptibly
from aioflow.cli.options import (
    DatabaseName,
    LogFile,
    LogFormat,
    LogFormatName,
    PlanFile,
    PlanOfDatabase,
    Verbose,
)
from aioflow.cli.output.colour import print_json
from aioflow.cli.output.formats import Table
from aioflow.cli.output.logs import LogOptions, logged
from aioflow.config.masking import mask
from aioflow.errors import InputError
from aioflow.messages.outbox.attempt import DeliveryOutcome
from aioflow.messages.outbox.courier import Report, opened_courier
from aioflow.messages.outbox.digest_table import DigestTable, GatheringDigest
from aioflow.messages.outbox.message import State, summary_of
from aioflow.messages.outbox.rows import Held, OutboxAccount, OutboxEntry, Waiting
from aioflow.messages.outbox.table import OutboxTable
from aioflow.relation import Record, Row, Schema
from aioflow.runtime.shielded import run_shielded
from aioflow.state.databases import DEFAULT
from aioflow.state.driver import Address
from aioflow.state.errors import BusyError, VersionError
from aioflow.state.lock_wait import LockWait
from aioflow.state.system_tables import OWN_TABLES, found_version
from aioflow.values.quantities import count_text, duration_text

T = TypeVar("T")

SHORT_KEY = 8

_DONE: tuple[State, ...] = ("sent", "dropped")
_GATHERING = "gathering"
_COLUMNS = Schema(("key", "state", "account", "message", "tries", "when", "error"))


outbox = typer.Typer(
    help="Look at the messages that plans have sent or will, and deliver those that wait.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@outbox.command("list")
@guarded
def outbox_list(
    plan_path: PlanOfDatabase = None,
    db: DatabaseName = None,
    all: Annotated[bool, typer.Option("--all", help="Also messages that were sent or dropped.")] = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON object for each message.")] = False,
) -> None:
    """List messages that wait, are just being delivered, or could not be delivered (dead), and digests that
    are gathering.
    """
    list_messages(db, plan_path, everything=all, as_json=json)


@outbox.command("retry")
@guarded
def outbox_retry(
    keys: Annotated[
        list[str] | None, typer.Argument(metavar="KEY", help="Messages, by the beginnings of their keys.")
    ] = None,
    all_dead: Annotated[bool, typer.Option("--all-dead", help="All that were given up.")] = False,
    db: DatabaseName = None,
    plan_file: PlanFile = None,
) -> None:
    """Have messages tried again from the beginning, at the next delivery."""
    sys.exit(retry_messages(db, plan_file, keys or (), all_dead=all_dead))


@outbox.command("drop")
@guarded
def outbox_drop(
    keys: Annotated[
        list[str], typer.Argument(metavar="KEY", help="Messages, by the beginnings of their keys.")
    ],
    db: DatabaseName = None,
    plan_file: PlanFile = None,
) -> None:
    """Have messages never tried again."""
    sys.exit(drop_messages(db, plan_file, keys))


@outbox.command("deliver")
@guarded
def outbox_deliver(
    plan_path: PlanOfDatabase = None,
    db: DatabaseName = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Go on until interrupted, with whatever becomes due.")
    ] = False,
    everything: Annotated[
        bool,
        typer.Option("--everything", help="Also digests that are gathering, and messages in quiet hours."),
    ] = False,
    verbose: Verbose = 0,
    log_file: LogFile = None,
    log_format: LogFormat = LogFormatName.TEXT,
) -> None:
    """Deliver all messages that wait, now; with --watch whatever becomes due."""
    if watch and everything:
        raise InputError("--watch waits for the time of digests, and --everything does not: choose one")
    with logged(LogOptions(verbose, log_file, log_format)):
        sys.exit(deliver_messages(db, plan_path, watch=watch, early=everything))


# --- the database ---------------------------------------------------------------------------------


@asynccontextmanager
async def _outbox(choice: DatabaseChoice, *, to_change: bool) -> AsyncIterator[OutboxTable | None]:
    """Open the outbox of a database; it is None if no plan has ever written to the database."""
    databases, address = choice.databases, choice.address
    table = OutboxTable(lambda: databases.connect(address))
    connection = await databases.connect(address)
    try:
        version = await found_version(connection, address, OWN_TABLES)
        if to_change and version:
            await databases.prepare(connection, address, _warn)
    finally:
        await connection.close()
    if 0 < version < OWN_TABLES.version and not to_change:
        raise VersionError(
            f"{address.shown}: an older version of aioflow made its tables there; "
            "`aioflow outbox deliver` upgrades them, after a copy"
        )
    try:
        yield table if version else None
    finally:
        await table.close()


def _warn(message: str) -> None:
    print_message("warning", message)


# --- list -----------------------------------------------------------------------------------------


def list_messages(db: str | None, plan_path: str | None, *, everything: bool, as_json: bool) -> None:
    """Print messages, the oldest first. Nothing is changed."""
    run_interruptibly(_list(find_database(db, plan_path), everything, as_json))


async def _list(choice: DatabaseChoice, everything: bool, as_json: bool) -> None:
    shown = _Json() if as_json else _Lines()
    count = 0
    async with _outbox(choice, to_change=False) as table:
        if table is not None:
            now = datetime.now(UTC) + await table.time_ahead()
            async with aclosing(table.entries(but=() if everything else _DONE)) as entries:
                async for entry in entries:
                    shown.show(_line(entry, now), _described(entry))
                    count += 1
            for digest, about in await _digests(DigestTable(table)):
                shown.show(_digest_line(digest, about, now), _described_digest(digest, about))
                count += 1
    shown.end()
    if not count and not as_json:
        what = "there are no messages" if everything else "no messages wait"
        print_message("note", f"{what} in {choice.address.shown}")


async def _digests(table: DigestTable) -> list[tuple[GatheringDigest, str]]:
    """Return the digests that are gathering, each with its receiver and subject."""
    found = await table.gathering()
    return [(digest, _about(await table.recipe(digest.key))) for digest in found]


def _about(recipe: str) -> str:
    try:
        content = json.loads(recipe)["content"]
        return summary_of(content)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return ""  # it is damaged


class _Json:
    def show(self, line: Row, described: dict[str, Any]) -> None:
        print_json(described)

    def end(self) -> None:
        pass


class _Lines:
    """A table whose column widths are those of the first rows."""

    def __init__(self) -> None:
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        self._table = Table(several_outputs=False, width=width)

    def show(self, line: Row, described: dict[str, Any]) -> None:
        self._write(self._table.rows("outbox", [Record(_COLUMNS, line)]))

    def end(self) -> None:
        self._write(self._table.end())

    def _write(self, data: bytes) -> None:
        sys.stdout.write(mask(data.decode(errors="replace")))


def _line(entry: OutboxEntry, now: datetime) -> Row:
    message = entry.message
    account = str(OutboxAccount(message.channel, message.account))
    return (
        message.key[:SHORT_KEY],
        entry.state,
        account,
        message.summary,
        message.attempts,
        _when(entry, now),
        entry.last_error or "",
    )


def _digest_line(digest: GatheringDigest, about: str, now: datetime) -> Row:
    counted = count_text(digest.row_count, "tuple")
    when = f"in {_span(digest.due, now)}" if digest.due and digest.due > now else "now"
    message = " · ".join(filter(None, (about, counted)))
    account, error = str(digest.account), digest.last_error or ""
    return digest.key[:SHORT_KEY], _GATHERING, account, message, 0, when, error


def _described_digest(digest: GatheringDigest, about: str) -> dict[str, Any]:
    return {
        "key": digest.key,
        "state": _GATHERING,
        "channel": digest.account.channel,
        "account": digest.account.account,
        "message": about,
        "tuples": digest.row_count,
        "bytes": digest.byte_count,
        "contributions": digest.contributions,
        "created": _iso(digest.created),
        "due": _iso(digest.due),
        "error": digest.last_error,
    }


def _when(entry: OutboxEntry, now: datetime) -> str:
    if entry.state == "waiting":
        return f"in {_span(entry.due, now)}" if entry.due and entry.due > now else "now"
    if entry.state == "sending":
        until = entry.leased_until
        return f"for {_span(until, now)}" if until and until > now else "given up"
    moment = entry.sent_at or entry.message.created
    return f"{moment.astimezone():%Y-%m-%d %H:%M:%S}" if moment else ""


def _span(until: datetime, now: datetime) -> str:
    return duration_text((until - now).total_seconds())


def _described(entry: OutboxEntry) -> dict[str, Any]:
    message = entry.message
    return {
        "key": message.key,
        "state": entry.state,
        "channel": message.channel,
        "account": message.account,
        "message": message.summary,
        "delivery": message.delivery,
        "attempts": message.attempts,
        "created": _iso(message.created),
        "due": _iso(entry.due),
        "leased-by": entry.leased_by,
        "leased-until": _iso(entry.leased_until),
        "sent": _iso(entry.sent_at) if entry.state == "sent" else None,
        "error": entry.last_error,
        "answer": entry.answer,
        "run": message.run_id,
        "statement": message.statement,
    }


def _iso(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment else None


# --- retry and drop -------------------------------------------------------------------------------


def retry_messages(db: str | None, plan_path: str | None, keys: Sequence[str], *, all_dead: bool) -> int:
    """Have messages tried again; return the exit code."""
    if bool(keys) == all_dead:
        raise InputError("name the messages by their keys, or say --all-dead")
    choice = find_database(db, plan_path)
    return run_interruptibly(_retry_all_dead(choice) if all_dead else _change(choice, keys, "retry"))


def drop_messages(db: str | None, plan_path: str | None, keys: Sequence[str]) -> int:
    """Have messages never tried again; return the exit code."""
    return run_interruptibly(_change(find_database(db, plan_path), keys, "drop"))


async def _retry_all_dead(choice: DatabaseChoice) -> int:
    async with _outbox(choice, to_change=True) as table:
        count = 0 if table is None else await _when_unlocked(choice, table.retry_dead)
    print(f"{count_text(count, 'message')} will be tried again")
    return OK


async def _change(choice: DatabaseChoice, prefixes: Sequence[str], what: str) -> int:
    """Retry or drop messages; if one of the keys is wrong, none of them."""
    async with _outbox(choice, to_change=True) as table:
        if table is None:
            raise InputError(f"there are no messages in {choice.address.shown}")
        found = dict([await _found(table, prefix) for prefix in prefixes])
        now = datetime.now(UTC) + await table.time_ahead()
        code = OK
        for key, state in found.items():
            change = _digest_change if state == _GATHERING else _message_change
            if await _when_unlocked(choice, lambda key=key, change=change: change(table, key, what, now)):  # type: ignore[misc]
                print(f"{key[:SHORT_KEY]} {_CHANGED[what, state == _GATHERING]}")
            else:
                state = dict(await table.matching(key)).get(key, "composed")
                reason = "is just being delivered" if state == "sending" else f"is {state} already"
                print_message("error", f"message {key[:SHORT_KEY]} {reason}")
                code = FAILED
    return code


_CHANGED = {
    ("retry", False): "will be tried again",
    ("drop", False): "dropped",
    ("retry", True): "will be sent at the next delivery",
    ("drop", True): "dropped",
}


async def _message_change(table: OutboxTable, key: str, what: str, now: datetime) -> bool:
    return await (table.retry if what == "retry" else table.drop)(key, now)


async def _digest_change(table: OutboxTable, key: str, what: str, now: datetime) -> bool:
    digests = DigestTable(table)
    return await (digests.retry if what == "retry" else digests.drop)(key)


async def _found(table: OutboxTable, prefix: str) -> tuple[str, str]:
    """Return the key and the state of the message or digest whose key begins so."""
    digests = await DigestTable(table).matching(prefix)
    found = [*await table.matching(prefix), *((key, _GATHERING) for key in digests)]
    if not found:
        raise InputError(f"there is no message whose key begins with {prefix!r}")
    if len(found) > 1:
        keys = ", ".join(key for key, _ in found)
        raise InputError(f"several keys begin with {prefix!r}: {keys}")
    return found[0]


async def _when_unlocked(choice: DatabaseChoice, work: Callable[[], Awaitable[T]]) -> T:
    """Do work on the database, after a run that is writing to it."""
    lock = LockWait(choice.address, choice.databases.settings(choice.address.name).wait_seconds, _warn)
    while True:
        try:
            return await work()
        except BusyError as error:
            await lock.pause(error)


# --- deliver --------------------------------------------------------------------------------------


def deliver_messages(db: str | None, plan_path: str | None, *, watch: bool, early: bool = False) -> int:
    """Deliver all messages that wait, or with `watch` those that become due; return the exit code.

    With `early` all digests are composed, and quiet hours do not count.
    """
    return run_interruptibly(_deliver(find_database(db, plan_path), watch, early))


async def _deliver(choice: DatabaseChoice, watch: bool, early: bool) -> int:
    async with _outbox(choice, to_change=True) as table:
        if table is None:
            raise InputError(f"there are no messages in {choice.address.shown}")
    opened = opened_courier(
        *(choice.databases, choice.address, choice.configuration, _warn), early=early, listener=_tell_outcome
    )
    async with opened as courier:
        if watch:
            print_message("note", f"delivering the messages of {choice.address.shown}; Ctrl-C ends it")
        try:
            work = courier.watch() if watch else courier.deliver(everything=True)
            # Whoever interrupts is told what is left, too.
            await run_shielded(work, courier.interrupt)
        finally:
            code = _tell_report(courier.report, choice.address)
    return code


def _tell_outcome(key: str, account: OutboxAccount, outcome: DeliveryOutcome) -> None:
    if outcome.state == "quiet":
        return
    words = outcome.answer if outcome.state == "sent" else outcome.error
    state = "failed" if outcome.state == "waiting" else outcome.state
    print(mask(f"{key[:SHORT_KEY]} {state}  {account}  {words}".rstrip()), flush=True)


def _tell_report(report: Report, address: Address) -> int:
    """Print what was done and what is left; return the exit code."""
    now = datetime.now(UTC)
    for trouble in dict.fromkeys(report.troubles):
        print_message("error", trouble)
    for waiting in report.waiting:
        print_message("warning", _waiting_text(waiting, now))
    for held in report.held:
        print_message("warning", _held_text(held, now))
    if report.unnoted:
        print_message("warning", report.unnoted_text)
    for quiet in report.quiet:
        print_message("note", _quiet_text(quiet, now))
    for digest in report.gathering:
        print_message("warning" if digest.last_error else "note", _digest_text(digest, now))
    print(
        f"{count_text(report.sent, 'message')} sent, {report.failed} failed, {report.dead} dead", flush=True
    )
    count = sum(waiting.count for waiting in report.waiting)
    if count and report.is_interrupted:
        command = f"`aioflow outbox deliver{'' if address.name == DEFAULT else f' --db {address.name}'}`"
        print_message("note", f"{command} sends {'it' if count == 1 else 'them'}")
    left = (report.troubles, report.waiting, report.held, report.unnoted, report.dead)
    return FAILED if any(left) or any(digest.last_error for digest in report.gathering) else OK


def _waiting_text(waiting: Waiting, now: datetime) -> str:
    """`2 messages for email home wait, the next for 12.0 s: refused`."""
    is_one = waiting.count == 1
    text = f"{count_text(waiting.count, 'message')} for {waiting.account} wait{'s' if is_one else ''}"
    if waiting.due and waiting.due > now:
        text += f"{'' if is_one else ', the next'} for {_span(waiting.due, now)}"
    return f"{text}: {waiting.reason}" if waiting.reason else text


def _quiet_text(quiet: Waiting, now: datetime) -> str:
    are = "is" if quiet.count == 1 else "are"
    text = f"{count_text(quiet.count, 'message')} for {quiet.account} {are} in quiet hours"
    return f"{text}, for {_span(quiet.due, now)}" if quiet.due else text


def _digest_text(digest: GatheringDigest, now: datetime) -> str:
    """`3 tuples for email home are gathered in a digest, for 7h 12m`."""
    are = "is" if digest.row_count == 1 else "are"
    text = f"{count_text(digest.row_count, 'tuple')} for {digest.account} {are} gathered in a digest"
    text += f", for {_span(digest.due, now)}" if digest.due and digest.due > now else ""
    return f"{text}: {digest.last_error}" if digest.last_error else text


def _held_text(held: Held, now: datetime) -> str:
    are = "is" if held.count == 1 else "are"
    text = f"{count_text(held.count, 'message')} for {held.account} {are} being delivered by another process"
    return f"{text}, for {_span(held.until, now)} at most" if held.until else text
