"""Errors as data: the destination and the form of the failure of a firing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Protocol

from aioflow.authoring.operator import BatchFunction
from aioflow.compiler.fitting import FAILED_CALL, FAILURE
from aioflow.config.masking import mask
from aioflow.errors import OperatorError, SettingError, message_of
from aioflow.relation import Batch, Relation, Row, Schema
from aioflow.runtime.memory import MemoryBudget
from aioflow.runtime.outlet import Outlet
from aioflow.runtime.spill import RowBuffer, walk
from aioflow.wholeness import Marks

_TURN_ROWS = 1024

_SHOWN_CHARACTERS = 200


class FailureSink(Protocol):
    """Takes failures from inside a call; sinks nest as calls do."""

    def take(self, where: str, tuples: Relation, error: BaseException, attempts: int) -> None: ...
    def mark(self, marks: Marks) -> None: ...


class CallFailures:
    """The ERRORS of a call: takes failures inside the call that are not taken there."""

    def __init__(self, outlet: Outlet | None, skip: Callable[[BaseException], None]) -> None:
        self._outlet = outlet  # None for ERRORS: skip
        self._skip = skip
        if outlet is not None:
            outlet.open(FAILED_CALL)

    def take(self, where: str, tuples: Relation, error: BaseException, attempts: int) -> None:
        if self._outlet is not None:
            self._outlet.push([(where, tuples, *describe(error, attempts))])
        else:
            self._skip(error)

    def mark(self, marks: Marks) -> None:
        """Take note that failures may be missing, since a statement lacked tuples that might have failed."""
        if self._outlet is not None:
            self._outlet.mark(marks)


class HeldResults:
    """The results of a statement whose failure may be taken: none leaves before it has ended successfully."""

    def __init__(self, outlets: Sequence[Outlet], memory: MemoryBudget) -> None:
        self._rows = {outlet: RowBuffer(memory) for outlet in outlets}
        self._endings: dict[Outlet, bool] = {}
        self._since_turn = 0

    def add(self, outlet: Outlet, rows: Sequence[Row]) -> bool:
        """Keep rows for an outlet; return whether it is time to let other tasks run."""
        self._rows[outlet].append(rows)
        self._since_turn += len(rows)
        is_time = self._since_turn >= _TURN_ROWS
        if is_time:
            self._since_turn = 0
        return is_time

    def end(self, outlet: Outlet, dead: bool) -> None:
        """End the outlet once its rows have left."""
        self._endings[outlet] = dead

    def outlets(self) -> Iterator[tuple[Outlet, AsyncIterator[Batch]]]:
        """Yield each outlet and its rows, to be passed on; end outlets that the operator had ended."""
        for outlet, rows in self._rows.items():
            yield outlet, walk(rows, rows.batches())
            if outlet in self._endings:
                outlet.end(self._endings[outlet])

    def close(self) -> None:
        for rows in self._rows.values():
            rows.close()


def describe(error: BaseException, attempts: int) -> tuple[str, str, int]:
    """Return the attributes `error`, `error-kind` and `attempts`."""
    kind = getattr(error, "kind_name", None) or type(error).__name__
    return message_of(error) or kind, kind, attempts


def failed_row(schema: Schema, row: Row, error: BaseException, attempts: int) -> Row:
    """Return a tuple with the attributes of its failure, which replace attributes of the same names."""
    values = dict(zip(schema.names, row, strict=True))
    values.update(zip(FAILURE.names, describe(error, attempts), strict=True))
    return tuple(values.values())


def batch_error(
    where: str, error: Exception, schema: Schema | None, function: BatchFunction, rows: Sequence[Row]
) -> OperatorError:
    """Return the error that ends a run when a batch failed, with the first tuple that fails by itself."""
    for row in rows:
        try:
            function([row])
        except Exception as own:
            return operator_error(where, own, schema, row)
    return operator_error(where, error, None, None)


def operator_error(where: str, error: BaseException, schema: Schema | None, row: Row | None) -> OperatorError:
    """Return the error that ends a run, with place, operator and input tuple."""
    if isinstance(error, SettingError):
        message = f"{where}: {error.message}"
    else:
        message = f"{where}: {type(error).__name__}: {message_of(error)}".removesuffix(": ")
    if row is not None and schema is not None:
        message += f"\n    input tuple: {show_row(schema, row)}"
    wrapped = OperatorError(message)
    wrapped.__cause__ = error
    wrapped.where = where
    return wrapped


def show_row(schema: Schema, row: Row) -> str:
    """Return a tuple on one line, with long values cut."""
    parts = []
    for name, value in zip(schema.names, row, strict=False):
        text = mask(repr(value))
        if len(text) > _SHOWN_CHARACTERS:
            text = text[:_SHOWN_CHARACTERS] + "…"
        parts.append(f"{name}={text}")
    return ", ".join(parts)
