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

from aioflow.authoring.services import Scope, ServiceHost
from aioflow.errors import ProcessError
from aioflow.processes.frames import (
    Limits,
    ProcessCall,
    ProcessOutcome,
    pickled_work,
    receive_outcome,
    send_call,
)

T = TypeVar("T")

# More would only take the processor from each other, and memory from everybody.
_AT_MOST = max(2, os.cpu_count() or 1)
_OUT_OF_TIME = getattr(signal, "SIGPROF", 0)
# Without an environment, the places of modules are arguments.
_BARE_START = "import sys; sys.path[:] = sys.argv[1:]; from aioflow.processes.__main__ import main; main()"
_NEEDED = ("SYSTEMROOT",)  # Windows starts no program without it
# Ours end by themselves when their input does; one that is at work is not waited for.
_ENDS_WITHIN_SECONDS = 5.0


class Processes:
    """Makes calls in other processes. A service of the engine.

    Processes that are `is_bare` get no environment variables, and what they print is dropped. A function in
    them may `seal` its process.
    """

    scope: ClassVar[Scope] = "engine"

    def __init__(self, most: int = _AT_MOST, *, is_bare: bool = False) -> None:
        # A thread waits for each process: pipes are then the same on every system and event loop.
        self._threads = ThreadPoolExecutor(most, thread_name_prefix="aioflow-processes")
        self._is_bare = is_bare
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
        call = ProcessCall(pickled_work(function, arguments), limits)
        exchange = _Exchange(self._idle, call, self._is_bare)
        answered = asyncio.get_running_loop().run_in_executor(self._threads, exchange.make)
        try:
            outcome = await asyncio.shield(answered)
        except asyncio.CancelledError:
            answered.add_done_callback(_forget)
            if exchange.stop():
                await _ended(answered)
            raise
        if outcome.error is not None:
            raise outcome.error
        return cast(T, outcome.value)

    async def close(self) -> None:
        """End all processes."""
        await asyncio.get_running_loop().run_in_executor(self._threads, self._finalizer)
        self._threads.shutdown(wait=False)


def call_once(function: Callable[..., T], *arguments: Any, limits: Limits, is_bare: bool = False) -> T:
    """Return what a function returns in a process of its own, and block until then; as `Processes.call`."""
    idle: list[_Process] = []
    try:
        outcome = _Exchange(idle, ProcessCall(pickled_work(function, arguments), limits), is_bare).make()
    finally:
        _end_all(idle)
    if outcome.error is not None:
        raise outcome.error
    return cast(T, outcome.value)


def _forget(answered: asyncio.Future[ProcessOutcome]) -> None:
    """Take the exception of a call without a caller."""
    if not answered.cancelled():
        answered.exception()


async def _ended(answered: asyncio.Future[ProcessOutcome]) -> None:
    """Wait for a call whose process was killed, which takes no time; also when cancelled once more."""
    while not answered.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait([answered])


class _Exchange:
    """One call on its way to a process and back, in a thread.

    A process is attached to the exchange as long as that may end it, and no longer: then it serves others.
    """

    def __init__(self, idle: list[_Process], call: ProcessCall, is_bare: bool) -> None:
        self._idle = idle
        self._call = call
        self._is_bare = is_bare
        self._lock = Lock()
        self._process: _Process | None = None
        self._is_stopped = False
        self._is_late = False

    def make(self) -> ProcessOutcome:
        """Return the outcome of the call. Raise a ProcessError if it is not known."""
        process = self._idle_process() or self._new_process()
        if not self._attach(process):
            self._idle.append(process)
            return ProcessOutcome()
        limits = self._call.limits
        timer = None if limits.seconds is None else Timer(limits.seconds, self._be_late)
        if timer is not None:
            timer.daemon = True
            timer.start()
        try:
            outcome = process.exchange(self._call)
        except (EOFError, OSError, pickle.UnpicklingError) as error:
            self._detach()
            raise self._ended(process.end()) from error
        finally:
            if timer is not None:
                timer.cancel()
        if self._detach() or outcome.is_last:
            process.end()
        else:
            self._idle.append(process)
        return outcome

    def _idle_process(self) -> _Process | None:
        """Return a process that waits for a call; one that has died meanwhile, being killed, is no use."""
        while self._idle:
            with suppress(IndexError):  # another thread was quicker
                process = self._idle.pop()
                if process.is_alive:
                    return process
                process.end()
        return None

    def _new_process(self) -> _Process:
        try:
            return _Process(self._is_bare)
        except OSError as error:
            raise ProcessError(f"no process could be started for it: {error.strerror or error}") from error

    def _attach(self, process: _Process) -> bool:
        """Have the process end with this call; whether anybody waits for it at all."""
        with self._lock:
            if not self._is_stopped:
                self._process = process
            return not self._is_stopped

    def _detach(self) -> bool:
        """Let go of the process; whether it was killed."""
        with self._lock:
            self._process = None
            return self._is_stopped or self._is_late

    def stop(self) -> bool:
        """Stop the call; whether it was under way, and now ends at once."""
        with self._lock:
            self._is_stopped = True
            if self._process is not None:
                self._process.kill()
            return self._process is not None

    def _be_late(self) -> None:
        with self._lock:
            if self._process is not None:
                self._is_late = True
                self._process.kill()

    def _ended(self, status: int) -> ProcessError:
        """Return why there is no outcome, when the process ended with a status."""
        limits = self._call.limits
        if self._is_late:
            return ProcessError(f"it took more than {limits.seconds:.1f} seconds", is_late=True)
        if status == -_OUT_OF_TIME:
            seconds = limits.processor_seconds
            return ProcessError(f"it took more than {seconds:.1f} seconds of processor time", is_late=True)
        how = f"by signal {-status}" if status < 0 else f"with status {status}"
        return ProcessError(f"its process ended {how}", status=status)


class _Process:
    """A process that takes calls."""

    def __init__(self, is_bare: bool) -> None:
        paths = [os.path.abspath(path) for path in sys.path]
        # `-P` keeps the folder that we happen to be in from standing before the standard library.
        arguments = ["-I", "-c", _BARE_START, *paths] if is_bare else ["-P", "-m", "aioflow.processes"]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
        self._process = subprocess.Popen(
            [sys.executable, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL if is_bare else None,
            cwd=os.sep if is_bare else None,
            env={name: environment[name] for name in _NEEDED if name in environment}
            if is_bare
            else environment,
        )

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def exchange(self, call: ProcessCall) -> ProcessOutcome:
        send_call(cast(BinaryIO, self._process.stdin), call)
        return receive_outcome(cast(BinaryIO, self._process.stdout))

    def kill(self) -> None:
        self._process.kill()

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
