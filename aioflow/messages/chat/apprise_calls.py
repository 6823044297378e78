"""Calls to apprise, each in a process that is killed when it takes too long or nobody waits any more."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from contextlib import suppress
from dataclasses import asdict
from importlib.util import find_spec
from types import TracebackType

from aioflow.config.masking import mask
from aioflow.errors import MissingExtraError
from aioflow.messages.chat.apprise_child import ChildAnswer, ChildCall
from aioflow.messages.outbox.message import DeliveryError, if_cut_short
from aioflow.state.crash_points import VARIABLE as KILL_VARIABLE
from aioflow.state.crash_points import moment

EXTRA = "notify"

_CALLING = moment("apprise-called", "apprise is about to send a message")
_ANSWERED = moment("apprise-answered", "apprise has sent a message, and nobody has noted it yet")

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
