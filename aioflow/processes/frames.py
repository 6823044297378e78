"""The data on the pipes: pickled calls one way, their outcomes the other, each after its length.

Both ends are this program: nobody else writes there.
"""

from __future__ import annotations

import io
import pickle
import struct
from collections.abc import Callable
from typing import Any, BinaryIO, NamedTuple

_LENGTH = struct.Struct("<Q")
_MAIN = "__main__"


class Limits(NamedTuple):
    """The limits of a call: on elapsed time, on the processor's time, and on memory."""

    seconds: float | None = None
    processor_seconds: float | None = None
    memory_bytes: int | None = None


class ProcessCall(NamedTuple):
    """A function with its arguments, pickled: a process that lacks their modules can say so."""

    work: bytes
    limits: Limits


class ProcessOutcome(NamedTuple):
    """The outcome of a call: its result or its exception. The process ends after one that `is_last`."""

    value: Any = None
    error: BaseException | None = None
    is_last: bool = False


class UnimportableError(Exception):
    """Something cannot be found by the name of its module in another process."""


class _Pickler(pickle.Pickler):
    """Refuses what the main module defines: another process would have to run that to know it."""

    def reducer_override(self, value: Any) -> Any:
        if getattr(value, "__module__", None) == _MAIN or type(value).__module__ == _MAIN:
            raise UnimportableError
        return NotImplemented


def pickled_work(function: Callable[..., Any], arguments: tuple[Any, ...]) -> bytes:
    """Return a call for another process; an UnimportableError when only this process can make it."""
    buffer = io.BytesIO()
    try:
        _Pickler(buffer, protocol=5).dump((function, arguments))
    # The first three are said of local functions, the last of values that are too deep.
    except (pickle.PicklingError, AttributeError, TypeError, RecursionError) as error:
        raise UnimportableError from error
    return buffer.getvalue()


def send_call(pipe: BinaryIO, call: ProcessCall) -> None:
    # One after the other: the work may be large, and needs no copy.
    _write(pipe, pickle.dumps(call.limits, protocol=5))
    _write(pipe, call.work)
    pipe.flush()


def send_outcome(pipe: BinaryIO, outcome: ProcessOutcome) -> None:
    _write(pipe, pickle.dumps(outcome, protocol=5))
    pipe.flush()


def receive_call(pipe: BinaryIO) -> ProcessCall:
    """Return the call that comes next; an EOFError when the other side has ended."""
    limits = pickle.loads(_read_frame(pipe))
    return ProcessCall(_read_frame(pipe), limits)


def receive_outcome(pipe: BinaryIO) -> ProcessOutcome:
    """Return the outcome that comes next; an EOFError when the other side has ended."""
    outcome: ProcessOutcome = pickle.loads(_read_frame(pipe))
    return outcome


def _write(pipe: BinaryIO, data: bytes) -> None:
    pipe.write(_LENGTH.pack(len(data)))
    pipe.write(data)


def _read_frame(pipe: BinaryIO) -> bytes:
    (length,) = _LENGTH.unpack(_read(pipe, _LENGTH.size))
    return _read(pipe, length)


def _read(pipe: BinaryIO, length: int) -> bytes:
    data = pipe.read(length)
    if len(data) < length:
        raise EOFError
    return data
