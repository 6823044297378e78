"""A process that makes the calls it is given, one after the other, until its input ends."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import time
import traceback
from threading import Thread
from typing import BinaryIO

from aioflow.processes.frames import (
    Limits,
    ProcessCall,
    ProcessOutcome,
    UnimportableError,
    receive_call,
    send_outcome,
)

# A process that once needed so much keeps it: another one takes its place.
_RETIRES_AT_BYTES = 256 * 1024 * 1024


def main() -> None:
    # Ctrl-C reaches every process of the terminal; ours ends what it no longer needs itself.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    calls, outcomes = _own_pipes()
    Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    while True:
        try:
            call = receive_call(calls)
        except EOFError:
            return
        outcome = _made(call)
        try:
            _answer(outcomes, outcome)
        except BrokenPipeError:
            return
        if outcome.is_last:
            return


def _end_with(parent: int) -> None:
    """End a call that is still at work when the process is gone that wanted it."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


def _own_pipes() -> tuple[BinaryIO, BinaryIO]:
    """Return the pipes to the parent, out of reach of functions that print or ask for input."""
    calls, outcomes = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return calls, outcomes


def _made(call: ProcessCall) -> ProcessOutcome:
    # Whatever it raises is the caller's to see, with the place where it came up.
    try:
        function, arguments = pickle.loads(call.work)
    except (ImportError, AttributeError) as error:
        return ProcessOutcome(error=UnimportableError(str(error)))
    except BaseException as error:
        return ProcessOutcome(error=_traced(error))
    try:
        _set_limits(call.limits)
        value = function(*arguments)
    except BaseException as error:
        _set_limits(Limits())
        return ProcessOutcome(error=_traced(error), is_last=_is_bloated())
    _set_limits(Limits())
    return ProcessOutcome(value, is_last=_is_bloated())


def _traced(error: BaseException) -> BaseException:
    """Return an exception as it can be sent, with the place where it came up."""
    if not isinstance(error, Exception):  # there it would end more than a call
        error = RuntimeError(f"the function wants to end its process: {error!r}")
    error.add_note("in another process:\n" + "".join(traceback.format_exception(error)))
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # an exception may refuse in any way
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def _answer(outcomes: BinaryIO, outcome: ProcessOutcome) -> None:
    try:
        send_outcome(outcomes, outcome)
    except Exception as error:  # a value may refuse in any way
        reason = TypeError(f"the result cannot be sent from one process to another: {error}")
        send_outcome(outcomes, ProcessOutcome(error=reason, is_last=outcome.is_last))


def _set_limits(limits: Limits) -> None:
    """Have the system see to the limits of processor time and memory, where it can."""
    if sys.platform == "win32":
        return
    import resource

    # Nothing in the process could end it: what takes so long may not let go of Python's lock.
    signal.setitimer(signal.ITIMER_PROF, limits.processor_seconds or 0)
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = limits.memory_bytes or most
    if most != resource.RLIM_INFINITY and wanted != resource.RLIM_INFINITY:
        wanted = min(wanted, most)
    resource.setrlimit(resource.RLIMIT_DATA, (wanted, most))


def _is_bloated() -> bool:
    return _most_bytes() > max(_RETIRES_AT_BYTES, _MOST_BYTES_AT_START)


def _most_bytes() -> int:
    """Return the most memory that the process ever had; that of its parent counts until it began itself."""
    if sys.platform == "win32":
        return 0
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


_MOST_BYTES_AT_START = _most_bytes()


if __name__ == "__main__":
    main()
