"""The processes of an engine: started when there is work for them, used again, and ended with the engine."""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import subprocess
import sys
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Lock, Timer
from typing import Any, BinaryIO, ClassVar, TypeVar, cast

from aioflow.errors import ProcessError
from aioflow.processes.frames import Call, Limits, Outcome, pickled_work, receive, send
from aioflow.services import Scope, ServiceHost

T = TypeVar("T")

# More would only take the processor from each other, and memory from everybody.
_AT_MOST = max(2, os.cpu_count() or 1)
_OUT_OF_TIME = getattr(signal, "SIGPROF", 0)
# Ours end by themselves when their input does; one that is at work is not waited for.
_ENDS_WITHIN_SECONDS = 5.0


class Processes:
    """Makes calls in other processes. A service of the engine."""

    scope: ClassVar[Scope] = "engine"

    def __init__(self) -> None:
        # A thread waits for each process: pipes are then the same on every system and event loop.
        self._threads = ThreadPoolExecutor(_AT_MOST, thread_name_prefix="aioflow-processes")
        self._idle: list[_Process] = []
        # For an engine that nobody closes.
        self._finalizer = weakref.finalize(self, _end_all, self._idle)

    @classmethod
    def open_service(cls, host: ServiceHost) -> Processes:
        return cls()

    async def call(
        self,
        function: Callable[..., T],
        *arguments: Any,
        limits: Limits,
    ) -> T:
        """Return what a function returns in another process, or raise what it raises there.

        An UnimportableError says that no other process can know the function or an argument. A call that is
        cancelled, or takes more than its time, ends with its process; the latter, and a process that ends by
        itself, are ProcessErrors. A call that wants more memory than it may have gets a MemoryError.
        """
        exchange = _Exchange(self._idle, Call(pickled_work(function, arguments), limits))
        answered = asyncio.get_running_loop().run_in_executor(self._threads, exchange.make)
        try:
            outcome = await asyncio.shield(answered)
        except asyncio.CancelledError:
            if exchange.is_stopped():
                with suppress(ProcessError):
                    await answered
            raise
        if outcome.error is not None:
            raise outcome.error
        return cast(T, outcome.value)

    async def close(self) -> None:
        """End all processes."""
        await asyncio.get_running_loop().run_in_executor(self._threads, self._finalizer)
        self._threads.shutdown(wait=False)


class _Exchange:
    """One call on its way to a process and back, in a thread."""

    def __init__(self, idle: list[_Process], call: Call) -> None:
        self._idle = idle
        self._call = call
        self._lock = Lock()
        self._process: _Process | None = None
        self._is_stopped = False

    def make(self) -> Outcome:
        process = self._begin()
        if process is None:
            return Outcome()
        limits = self._call.limits
        timer = None if limits.seconds is None else Timer(limits.seconds, process.kill_late)
        if timer is not None:
            timer.daemon = True
            timer.start()
        try:
            outcome = process.exchange(self._call)
        except (EOFError, OSError, pickle.UnpicklingError) as error:
            raise process.ended(limits) from error
        finally:
            if timer is not None:
                timer.cancel()
        if outcome.is_last or process.is_killed:
            process.end()
        else:
            self._idle.append(process)
        return outcome

    def _begin(self) -> _Process | None:
        """Return the process for this call; None when nobody waits for it any more."""
        with self._lock:
            if self._is_stopped:
                return None
            try:
                self._process = self._idle.pop()
            except IndexError:
                self._process = _Process()
            return self._process

    def is_stopped(self) -> bool:
        """Stop the call; whether it was under way, and now ends at once."""
        with self._lock:
            self._is_stopped = True
            if self._process is not None:
                self._process.kill()
        return self._process is not None


class _Process:
    """A process that takes calls."""

    def __init__(self) -> None:
        # `-P` keeps the folder that we happen to be in from standing before the standard library.
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "aioflow.processes"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)},
        )
        self.is_killed = False
        self._is_late = False

    def exchange(self, call: Call) -> Outcome:
        send(cast(BinaryIO, self._process.stdin), call)
        return cast(Outcome, receive(cast(BinaryIO, self._process.stdout)))

    def kill(self) -> None:
        self.is_killed = True
        self._process.kill()

    def kill_late(self) -> None:
        self._is_late = True
        self.kill()

    def ended(self, limits: Limits) -> ProcessError:
        """Return why there is no outcome."""
        status = self.end()
        if self._is_late:
            return ProcessError(f"it took more than {limits.seconds:.1f} seconds", is_late=True)
        if status == -_OUT_OF_TIME:
            seconds = limits.processor_seconds
            return ProcessError(f"it took more than {seconds:.1f} seconds of processor time", is_late=True)
        how = f"by signal {-status}" if status < 0 else f"with status {status}"
        return ProcessError(f"its process ended {how}")

    def end(self) -> int:
        """Have the process end; return its status."""
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError):  # what could not be written nobody reads
                cast(BinaryIO, pipe).close()
        try:
            return self._process.wait(_ENDS_WITHIN_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()


def _end_all(processes: list[_Process]) -> None:
    while processes:
        processes.pop().end()
