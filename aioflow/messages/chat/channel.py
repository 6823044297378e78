"""The channel `notify`: messages to chats, push services, webhooks and desktops, through apprise.

Each call to apprise is made in a process that is killed when it takes too long or its caller no longer waits.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from importlib.util import find_spec
from types import TracebackType
from typing import Any, ClassVar

from aioflow.authoring.services import Scope, ServiceHost
from aioflow.config.configuration import as_configuration
from aioflow.config.masking import mask
from aioflow.config.secrets import Secrets
from aioflow.errors import AioflowError, InputError, MissingExtraError
from aioflow.messages.accounts import choose, fill_in_address, referred_secrets
from aioflow.messages.chat.apprise_child import ChildAnswer, ChildCall
from aioflow.messages.chat.settings import NOTIFY, NotifySettings, has_password
from aioflow.messages.outbox.contributions import kept_rows
from aioflow.messages.outbox.message import (
    SAMPLE_TEXT,
    SAMPLE_TITLE,
    ComposedContents,
    DeliveryError,
    Message,
    if_cut_short,
    text_of,
)
from aioflow.relation import Relation
from aioflow.state.crash_points import VARIABLE as KILL_VARIABLE
from aioflow.state.crash_points import moment
from aioflow.web.retry_after import retry_after_seconds

KIND = "notify"
_EXAMPLE = 'url = "ntfy://ntfy.sh/some-topic"'


class NotifyAccounts:
    """The accounts of a configuration; a service of the engine."""

    scope: ClassVar[Scope] = "engine"

    def __init__(self, configuration: Mapping[str, Any], secrets: Secrets | None = None) -> None:
        self._accounts = as_configuration(configuration).sections(NOTIFY)
        self.secrets = secrets or Secrets()

    @classmethod
    def open_service(cls, host: ServiceHost) -> NotifyAccounts:
        return cls(host.configuration)

    async def close(self) -> None:
        """Nothing is open."""

    def find(self, name: str | None) -> tuple[str, NotifySettings]:
        """The account of a name, or the default one, and that name; an InputError says what is missing."""
        chosen, settings = choose(KIND, self._accounts, name, _EXAMPLE)
        if not settings.url:
            raise InputError(f"[{KIND}.{chosen}] has no url: write {_EXAMPLE}, or any other of apprise's")
        return chosen, settings

    def problems(self, account: str | None) -> list[str]:
        """Return the obstacles to the use of an account, as far as they show without asking its services."""
        try:
            name, settings = self.find(account)
            check_installed("notify")
        except AioflowError as error:
            return [str(error)]
        found = []
        for url in settings.url:
            if has_password(url):
                found.append(
                    f"[{KIND}.{name}]: a password stands in its url; keep the url as a secret and write "
                    'url = "secret:NAME"'
                )
            found += unknown_secrets(f"[{KIND}.{name}]", [url], self.secrets)
        return found


class NotifyChannel:
    """Delivers what `notify` said; the content of its messages has `to`, `subject` and `text`.

    `to` is a URL as it stands in the configuration, so without any secret. A long text goes in parts, and
    `progress` has how many of them were delivered.
    """

    def __init__(self, configuration: Mapping[str, Any], *, secrets: Secrets | None = None) -> None:
        self._accounts = NotifyAccounts(configuration, secrets)
        self._calls = AppriseCalls()

    def problems(self, account: str | None) -> list[str]:
        """Return the settings that are missing before this account can be used."""
        return self._accounts.problems(account)

    def samples(self, account: str, to: str | None) -> list[dict[str, Any]]:
        """Return the content of a sample for each service of the account."""
        if to is not None:
            raise InputError(f"--to {to}: the recipients of {KIND}.{account} are in its url")
        _, settings = self._accounts.find(account)
        return [{"to": url, "subject": SAMPLE_TITLE, "text": SAMPLE_TEXT} for url in settings.url]

    def compose(
        self, account: str, recipe: Mapping[str, Any], relations: Sequence[Relation], doubt: str
    ) -> ComposedContents:
        """Return the contents for each service about a relation that was gathered."""
        from aioflow.messages.content.short_text import Notices

        _, settings = self._accounts.find(account)
        notices = Notices.of_recipe(settings, recipe)
        notices.doubt = doubt
        with kept_rows(relations) as kept:
            return ComposedContents(notices.for_relation(*kept[0]), notices.warnings)

    async def deliver(self, message: Message) -> str:
        """Hand a message over to one service."""
        try:
            name, settings = self._accounts.find(message.account or None)
            url = fill_in_address(_url_of(message, name, settings), self._accounts.secrets)
            check_installed("notify")
        except AioflowError as error:
            raise DeliveryError(str(error), final=True) from None
        text, subject = text_of(message, "text"), text_of(message, "subject")
        call = ChildCall(url, text, subject, message.key, settings.total_seconds)
        call.most_parts, call.done = settings.most_parts, _parts_done(message)
        return answered(f"[{KIND}.{name}]", await self._calls.send(call), call.done)

    async def close(self) -> None:
        await self._calls.close()


def _parts_done(message: Message) -> int:
    done = message.progress.get("parts", 0)
    if not isinstance(done, int):
        raise DeliveryError("it is no longer known which parts of it were delivered", final=True)
    return done


def _url_of(message: Message, name: str, settings: NotifySettings) -> str:
    """The URL that a message is for, also when the only one there is was changed meanwhile."""
    wanted = text_of(message, "to")
    if wanted in settings.url:
        return wanted
    if len(settings.url) == 1:
        return settings.url[0]
    raise InputError(f"[{KIND}.{name}] has no url {wanted!r} any more; put it back, or drop the message")


def answered(label: str, answer: ChildAnswer, done_before: int = 0) -> str:
    """Return the receiver's answer. Raise a DeliveryError if it did not take the message."""
    if answer.error is None:
        return answer.said
    wait = None
    if answer.retry_after is not None:
        wait = retry_after_seconds({"Retry-After": answer.retry_after})
    raise DeliveryError(
        f"{label}: {answer.error}",
        final=answer.final,
        uncertain=answer.uncertain,
        retry_after_seconds=wait,
        progress={"parts": answer.done} if answer.done != done_before else None,
    )


def unknown_secrets(label: str, texts: list[str], secrets: Secrets) -> list[str]:
    """Return a problem for each secret that texts of the configuration refer to and that is not set."""
    found = []
    for name in dict.fromkeys(each for text in texts for each in referred_secrets(text)):
        try:
            secrets.get(name)
        except InputError as error:
            found.append(f"{label}: {error}")
    return found


# --- calls to apprise ---------------------------------------------------------------------------

EXTRA = "notify"

_CALLING = moment("apprise-called", "apprise is about to send a message")
_ANSWERED = moment("apprise-answered", "apprise has sent a message, and that is not noted yet")

_PROCESSES = 4
_START_SECONDS = 60.0
# For apprise to notice by itself that the time is over, and to say what was going on.
_GRACE_SECONDS = 2.0


def check_installed(feature: str) -> None:
    """Raise a MissingExtraError when there is no apprise."""
    if find_spec("apprise") is None:
        raise MissingExtraError(feature, EXTRA)


class AppriseCalls:
    """A few processes in which apprise sends, started when they are needed; an `async with`."""

    def __init__(self) -> None:
        self._idle: list[_Child] = []
        self._turns = asyncio.Semaphore(_PROCESSES)

    async def send(self, call: ChildCall) -> ChildAnswer:
        """Have a call made. A DeliveryError when there was no answer; what the answer says is not judged."""
        with if_cut_short(lambda: DeliveryError("apprise had not begun to send")):
            async with self._turns:
                child = self._idle.pop() if self._idle else await _Child.start()
                with if_cut_short(lambda: DeliveryError("apprise was sending", uncertain=True)):
                    return await self._ask(child, call)

    async def _ask(self, child: _Child, call: ChildCall) -> ChildAnswer:
        try:
            _CALLING()
            answer = await child.ask(call)
            _ANSWERED()
        except BaseException:
            await child.kill()
            raise
        if answer.is_stuck:
            await child.kill()
        else:
            self._idle.append(child)
        return answer

    async def close(self) -> None:
        while self._idle:
            await self._idle.pop().kill()

    async def __aenter__(self) -> AppriseCalls:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class _Child:
    """One of those processes."""

    def __init__(self, process: Process) -> None:
        self._process = process

    @classmethod
    async def start(cls) -> _Child:
        # A session of its own: Ctrl-C is for us to notice.
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            "-m",
            "aioflow.messages.chat.apprise_child",
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,
            env=_environment(),
            start_new_session=True,
        )
        child = cls(process)
        try:
            async with asyncio.timeout(_START_SECONDS):
                await child._read()
        except TimeoutError:
            await child.kill()
            raise DeliveryError(f"apprise did not load within {_START_SECONDS:g} s") from None
        except BaseException:
            await child.kill()
            raise
        return child

    async def ask(self, call: ChildCall) -> ChildAnswer:
        assert self._process.stdin is not None
        try:
            async with asyncio.timeout(call.seconds + _GRACE_SECONDS):
                self._process.stdin.write(json.dumps(asdict(call)).encode() + b"\n")
                await self._process.stdin.drain()
                line = await self._read()
        except TimeoutError:
            raise DeliveryError(f"no answer within {call.seconds:g} s", uncertain=True) from None
        except OSError:
            raise DeliveryError("the process that sends has ended", uncertain=True) from None
        answer = ChildAnswer(**json.loads(line))
        answer.said, answer.error = mask(answer.said), answer.error and mask(answer.error)
        return answer

    async def _read(self) -> bytes:
        assert self._process.stdout is not None
        line = await self._process.stdout.readline()
        if not line.endswith(b"\n"):
            raise DeliveryError("the process in which apprise sends has ended", uncertain=True)
        return line

    async def kill(self) -> None:
        with suppress(ProcessLookupError):
            self._process.kill()
        if self._process.stdin is not None:
            self._process.stdin.close()
        await self._process.wait()


def _environment() -> dict[str, str]:
    """Ours, without what is not for others to know, and with the packages that we can import."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("AIOFLOW_SECRET") and name != KILL_VARIABLE
    }
    return {**kept, "PYTHONPATH": os.pathsep.join(os.path.abspath(folder) for folder in sys.path)}
