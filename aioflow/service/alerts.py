"""Alerts to the owner of a service: a cause is reported once it lasts, again until it is gone, then its end.

A message about a task comes at most once an hour and names all causes. It is posted to the outbox of the task
database, in the transaction that notes the cause, so a crash loses none and doubles none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any, Literal, TypeAlias
from uuid import uuid4

import msgspec

from aioflow.config.configuration import Configuration
from aioflow.config.masking import mask, masked_logger
from aioflow.errors import AioflowError
from aioflow.messages.outbox.table import AT_ONCE, STAGED, as_json
from aioflow.service.events import EventHub, ServiceEvent
from aioflow.service.settings import ServiceSettings
from aioflow.service.store.database import ServiceDatabase, Statements
from aioflow.service.store.occurrences import RunOutcome
from aioflow.service.store.tasks import read_tasks
from aioflow.service.task import Task
from aioflow.state.system_tables import OUTBOX, from_stamp, stamp
from aioflow.values.quantities import count_text, duration_text

_LOG = masked_logger("aioflow.service")

AlertKind: TypeAlias = Literal["failing", "paused", "silent", "health", "suspect", "outbox", "disk"]
_Contents: TypeAlias = Iterator[tuple[str, str, dict[str, Any]]]
_Part: TypeAlias = Callable[[str, str], _Contents]
SERVICE_ITSELF = ""  # the task of alerts that concern no single one

_MESSAGE_EACH = timedelta(hours=1)
_CLEARED = "cleared "  # before the kind of an alert whose end was not reported yet
_LAST_MESSAGE = "message"  # the row that has the time of the last message about a task
_ALL_CLEAR = {
    "failing": "runs succeed again",
    "paused": "a run has succeeded again",
    "silent": "a run has succeeded again",
    "health": "its sources bring the usual rows again",
    "suspect": "nothing is held back any more",
    "outbox": "no message is stuck any more",
    "disk": "there is room on the disk again",
}


class Alert(msgspec.Struct, frozen=True):
    """A cause that lasts, and how often its owner was told of it."""

    task_id: str
    kind: str
    since: datetime
    last_sent: datetime | None
    times: int
    message: str


class Alerts:
    """Notes causes and their ends, and posts messages about them."""

    def __init__(
        self,
        settings: ServiceSettings,
        configuration: Configuration,
        database: ServiceDatabase,
        events: EventHub,
    ) -> None:
        self._settings = settings
        self._configuration = configuration
        self._database = database
        self._events = events
        self.has_posted = False  # messages to the outbox of the task database, since somebody looked there

    async def problems(self) -> list[str]:
        """Return the reasons for which alerts could not be sent with the settings as they are."""
        from aioflow.messages.channels import Channels

        channels, found = Channels(self._configuration), []
        for contents in self._parts:
            try:
                receivers = {(channel, account) for channel, account, _ in contents("", "")}
                found += [each for receiver in sorted(receivers) for each in channels.problems(*receiver)]
            except AioflowError as error:
                found.append(str(error))
        await channels.close()
        return found

    # --- causes -------------------------------------------------------------------------------------

    async def after_run(
        self, statements: Statements, task: Task, outcome: RunOutcome, *, pauses: bool = False
    ) -> None:
        """Note the causes that the end of a run shows or ends. `task` has its failures counted already.

        `pauses` says that the task was paused because of this failure. That is reported whatever the task
        says about failures, and stands for them.
        """
        most = task.definition.alert_after_failures
        message = f"{count_text(task.failures, 'run')} in a row failed: {outcome.reason}"
        if outcome.state == "succeeded":
            for kind in ("failing", "paused", "silent"):
                await self.clear(statements, task.task_id, kind)
            await self._look_at_account(statements, task, outcome)
        elif pauses:
            await _forget(statements, task.task_id, "failing")
            await self.raise_alert(statements, task.task_id, "paused", f"the task is paused, since {message}")
        elif most and task.failures >= most:
            await self.raise_alert(statements, task.task_id, "failing", message)
        await self.send(statements, task.task_id, task.name)

    async def _look_at_account(self, statements: Statements, task: Task, outcome: RunOutcome) -> None:
        account = outcome.account or {}
        held: dict[str, str] = account.get("state", {}).get("held", {})
        if held:
            told = "; ".join(f"{table}: {what}" for table, what in held.items())
            message = f"changes are held back because they may not be true: {told}"
            await self.raise_alert(statements, task.task_id, "suspect", message)
        else:
            await self.clear(statements, task.task_id, "suspect")
        partial = [text for each in account.get("outputs", {}).values() for text in each.get("partial", ())]
        worse = account.get("health", {}).get("worse", ())
        health = [*account.get("nothing-found", ()), *worse, *partial]
        if health:
            await self.raise_alert(statements, task.task_id, "health", "; ".join(dict.fromkeys(health)))
        else:
            await self.clear(statements, task.task_id, "health")

    async def check_silence(self, statements: Statements) -> None:
        """Note the tasks that have not succeeded for too long."""
        for task in await read_tasks(statements):
            limit = task.definition.alert_after_silence_seconds
            if limit is None or task.state != "active":
                continue
            since = task.last_success or task.created
            silent = (statements.now - since).total_seconds()
            if silent > limit:
                message = f"no run has succeeded for {duration_text(silent)}"
                await self.raise_alert(statements, task.task_id, "silent", message)
                await self.send(statements, task.task_id, task.name)

    async def set_alert(self, statements: Statements, kind: AlertKind, message: str | None) -> None:
        """Note or end a cause that concerns the service as a whole."""
        if message is None:
            await self.clear(statements, SERVICE_ITSELF, kind)
        else:
            await self.raise_alert(statements, SERVICE_ITSELF, kind, message)

    async def raise_alert(self, statements: Statements, task_id: str, kind: AlertKind, message: str) -> None:
        """Note a cause, or that it lasts."""
        message = mask(message)
        await statements.run(
            "DELETE FROM aioflow_alerts WHERE task_id = {} AND kind = {}", task_id, _CLEARED + kind
        )
        await statements.run(
            "INSERT INTO aioflow_alerts (task_id, kind, since, last_sent, times, message) "
            "VALUES ({}, {}, {}, NULL, 0, {}) "
            "ON CONFLICT (task_id, kind) DO UPDATE SET message = excluded.message",
            *(task_id, kind, stamp(statements.now), message),
        )

    async def clear(self, statements: Statements, task_id: str, kind: AlertKind) -> None:
        """Note that a cause has ended; if its owner was told of it, the end is reported too."""
        rows = await statements.fetch(
            "SELECT times, since FROM aioflow_alerts WHERE task_id = {} AND kind = {}", task_id, kind
        )
        if rows:
            ((times, since),) = rows
            message = f"all clear: {_ALL_CLEAR[kind]} ({_lasted(from_stamp(since), statements.now)})"
            await _end(statements, task_id, kind, message if times else None)

    # --- messages -----------------------------------------------------------------------------------

    async def send_all(self, statements: Statements) -> None:
        """Post the messages that are due, of all tasks."""
        tasks = {task.task_id: task for task in await read_tasks(statements)}
        rows = await statements.fetch(
            "SELECT DISTINCT task_id FROM aioflow_alerts WHERE kind <> {}", _LAST_MESSAGE
        )
        for (task_id,) in rows:
            task = tasks.get(task_id)
            await self.send(statements, task_id, "the service" if task is None else task.name)
            if task is not None and task.state != "active":
                await _forget_told(statements, task_id)

    async def send(self, statements: Statements, task_id: str, name: str) -> None:
        """Post one message about everything that is new or lasts, unless one was posted within the hour."""
        found = {alert.kind: alert for alert in await read_alerts(statements, task_id)}
        last = found.pop(_LAST_MESSAGE, None)
        if last is not None and statements.now - last.since < _MESSAGE_EACH:
            return
        again = timedelta(seconds=self._settings.alert_again_seconds)
        due = [
            alert
            for alert in found.values()
            if alert.last_sent is None or statements.now - alert.last_sent >= again
        ]
        if not due:
            return
        lines = [_line(alert, statements.now) for alert in due]
        subject = f"aioflow: {name or 'the service'}: {due[0].message}"
        messages = list(self._messages(subject[:200], "\n".join(lines), statements.now))
        for values in messages:
            await statements.connection.load(OUTBOX, STAGED, [[values]])
            self.has_posted = True
        await self._note_sent(statements, task_id, due)
        if messages:
            await self._note_message(statements, task_id)
        for line in lines:
            _LOG.warning("alert: task %s: %s", name or "-", line)
        self._events.publish(ServiceEvent("alert", statements.now, task_id, data={"lines": lines}))

    async def _note_sent(self, statements: Statements, task_id: str, sent: list[Alert]) -> None:
        now = stamp(statements.now)
        for alert in sent:
            if alert.kind.startswith(_CLEARED):
                await statements.run(
                    "DELETE FROM aioflow_alerts WHERE task_id = {} AND kind = {}", task_id, alert.kind
                )
            else:
                await statements.run(
                    "UPDATE aioflow_alerts SET last_sent = {}, times = times + 1 "
                    "WHERE task_id = {} AND kind = {}",
                    *(now, task_id, alert.kind),
                )

    async def _note_message(self, statements: Statements, task_id: str) -> None:
        now = stamp(statements.now)
        await statements.run(
            "INSERT INTO aioflow_alerts (task_id, kind, since, last_sent, times, message) "
            "VALUES ({}, {}, {}, {}, 1, '') ON CONFLICT (task_id, kind) DO UPDATE SET since = excluded.since",
            *(task_id, _LAST_MESSAGE, now, now),
        )

    def _messages(self, subject: str, text: str, now: datetime) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of the outbox for each way in which the owner wants to be told."""
        for place, (channel, account, content) in enumerate(self._contents(subject, text)):
            row = {
                "key": uuid4().hex,
                "channel": channel,
                "account": account,
                "content": as_json(content),
                "delivery": "at-least-once",
                "state": "waiting",
                "attempts": 0,
                "created": stamp(now),
                "place": place,
                "due": AT_ONCE,
                "progress": "{}",
                "run_id": "",
                "statement": "alert",
            }
            yield tuple(map(row.get, STAGED))

    @property
    def _parts(self) -> tuple[_Part, ...]:
        return self._mails, self._notices, self._texts

    def _contents(self, subject: str, text: str) -> _Contents:
        """Yield channel, account and content of each message; a wrong account keeps no other from its own."""
        for contents in self._parts:
            try:
                yield from contents(subject, text)
            except AioflowError as error:
                _LOG.warning("an alert could not be posted: %s", error)

    def _mails(self, subject: str, text: str) -> _Contents:
        from aioflow.messages import EmailAccounts

        if self._settings.alert_email:
            account = EmailAccounts(self._configuration).find(None)
            content = {"from": str(account.sender), "to": list(self._settings.alert_email)}
            yield "email", account.name, {**content, "subject": subject, "text": text}

    def _notices(self, subject: str, text: str) -> _Contents:
        from aioflow.messages import NotifyAccounts

        if self._settings.alert_notify:
            name, account = NotifyAccounts(self._configuration).find(self._settings.alert_notify)
            for url in account.url:
                yield "notify", name, {"to": url, "subject": subject, "text": text}

    def _texts(self, subject: str, text: str) -> _Contents:
        for number in self._settings.alert_phone:
            yield "phone", "", {"to": number, "text": f"{subject}\n{text}"[:400]}


async def end_alerts(statements: Statements, task_id: str, reason: str) -> None:
    """Note that the causes of a task do not count any more; the owner is told if they were reported."""
    for alert in await read_alerts(statements, task_id):
        if alert.kind != _LAST_MESSAGE and not alert.kind.startswith(_CLEARED):
            message = f"{reason}, and this is not reported any more: {alert.message}"
            await _end(statements, task_id, alert.kind, message if alert.times else None)


async def _end(statements: Statements, task_id: str, kind: str, message: str | None) -> None:
    """Replace a cause by the message about its end, if there is to be any."""
    await _forget(statements, task_id, kind)
    if message is not None:
        await statements.run(
            "INSERT INTO aioflow_alerts (task_id, kind, since, last_sent, times, message) "
            "VALUES ({}, {}, {}, NULL, 0, {}) ON CONFLICT (task_id, kind) DO NOTHING",
            *(task_id, _CLEARED + kind, stamp(statements.now), message),
        )


async def _forget(statements: Statements, task_id: str, kind: str) -> None:
    await statements.run("DELETE FROM aioflow_alerts WHERE task_id = {} AND kind = {}", task_id, kind)


async def _forget_told(statements: Statements, task_id: str) -> None:
    """Forget the causes of a task that does not run any more, once they were reported.

    A task that was paused because it failed is a cause that lasts.
    """
    for alert in await read_alerts(statements, task_id):
        if alert.times and alert.kind not in (_LAST_MESSAGE, "paused"):
            await _forget(statements, task_id, alert.kind)


def _lasted(since: datetime, now: datetime) -> str:
    return f"this lasted {duration_text((now - since).total_seconds())}"


def _line(alert: Alert, now: datetime) -> str:
    if alert.kind.startswith(_CLEARED):
        return alert.message
    if alert.times:
        lasted = duration_text((now - alert.since).total_seconds())
        return f"still, after {lasted}: {alert.message}"
    return alert.message


async def read_alerts(statements: Statements, task_id: str | None = None) -> list[Alert]:
    """Return the causes that last, of one task or of all, and the ends that are still to be reported."""
    condition = "" if task_id is None else " WHERE task_id = {}"
    rows = await statements.fetch(
        f"SELECT task_id, kind, since, last_sent, times, message FROM aioflow_alerts{condition} "
        "ORDER BY since, kind",
        *(() if task_id is None else (task_id,)),
    )
    return [
        Alert(task, kind, from_stamp(since), None if sent is None else from_stamp(sent), times, message)
        for task, kind, since, sent, times, message in rows
    ]


async def lasting_alerts(statements: Statements) -> list[Alert]:
    """Return the causes that last, for people."""
    found = await read_alerts(statements)
    return [each for each in found if each.kind != _LAST_MESSAGE and not each.kind.startswith(_CLEARED)]
