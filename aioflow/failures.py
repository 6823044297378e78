"""Errors as data: where the failure of a firing goes, and in which form."""

from __future__ import annotations

from typing import Protocol

from aioflow.analysis.fitting import FAILED_CALL, FAILURE
from aioflow.errors import OperatorError, SettingError
from aioflow.outlet import Outlet
from aioflow.relation import Relation, Row, Schema

_SHOWN_CHARACTERS = 200


class FailureSink(Protocol):
    """Takes failures from inside a call; sinks nest as calls do."""

    def take(self, where: str, tuples: Relation, error: BaseException, attempts: int) -> None: ...


class CallFailures:
    """The ERRORS of a call: takes what fails inside it and is not taken there."""

    def __init__(self, outlet: Outlet | None) -> None:
        self._outlet = outlet  # None: ERRORS: skip
        if outlet is not None:
            outlet.open(FAILED_CALL)

    def take(self, where: str, tuples: Relation, error: BaseException, attempts: int) -> None:
        if self._outlet is not None:
            self._outlet.push([(where, tuples, *describe(error, attempts))])


def describe(error: BaseException, attempts: int) -> tuple[str, str, int]:
    """The attributes `error`, `error-kind` and `attempts`."""
    return message_of(error) or type(error).__name__, type(error).__name__, attempts


def message_of(error: BaseException) -> str:
    """The text of an exception, also of one that cannot tell it."""
    try:
        return str(error)
    except Exception:
        return ""


def failed_row(schema: Schema, row: Row, error: BaseException, attempts: int) -> Row:
    """A tuple with what it failed for, which replaces attributes of those names."""
    values = dict(zip(schema.names, row, strict=True))
    values.update(zip(FAILURE.names, describe(error, attempts), strict=True))
    return tuple(values.values())


def operator_error(where: str, error: BaseException, schema: Schema | None, row: Row | None) -> OperatorError:
    """The error that ends a run, with place, operator and input tuple."""
    if isinstance(error, SettingError):
        message = f"{where}: {error.message}"
    else:
        message = f"{where}: {type(error).__name__}: {message_of(error)}".removesuffix(": ")
    if row is not None and schema is not None:
        message += f"\n    input tuple: {show_row(schema, row)}"
    wrapped = OperatorError(message)
    wrapped.__cause__ = error
    return wrapped


def show_row(schema: Schema, row: Row) -> str:
    """A tuple on one line, long values cut."""
    parts = []
    for name, value in zip(schema.names, row, strict=False):
        text = repr(value)
        if len(text) > _SHOWN_CHARACTERS:
            text = text[:_SHOWN_CHARACTERS] + "…"
        parts.append(f"{name}={text}")
    return ", ".join(parts)
