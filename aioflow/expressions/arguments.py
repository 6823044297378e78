"""Arguments of functions: checked where their type is known, and read as what the parameter takes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal

from aioflow.errors import SettingError
from aioflow.expressions.code import Code, Evaluate
from aioflow.expressions.counters import (
    BAD_LAYOUT,
    NOT_A_BOOLEAN,
    NOT_A_DATE,
    NOT_A_NUMBER,
    NOT_A_TEXT,
    NOT_WHOLE,
    UNKNOWN_UNIT,
    UncomputableError,
)
from aioflow.expressions.date_functions import check_layout, unit_of
from aioflow.expressions.functions import Function, Parameter
from aioflow.expressions.patterns import compiled
from aioflow.expressions.reading import read_date, read_number
from aioflow.relation import Document, Row, Type, Value

_Read = Callable[[Value], Value]


def check_argument(function: Function, parameter: Parameter, code: Code) -> Code:
    """The argument; a SettingError when it can never be what the parameter takes."""
    wanted = parameter.type
    if wanted is None or code.type is None:
        return code
    readable = code.type is wanted or (code.type in _READ_FROM.get(wanted, ()))
    if not readable:
        hint = "; char(…) makes a text of it" if wanted is Type.CHAR else ""
        raise SettingError(
            f"{function.name}: {parameter.name} is a {wanted}, not {code.shown}{hint}",
            offset=code.node.offset,
        )
    if code.constant:
        _check_constant(function, parameter, code)
    return code


_READ_FROM = {
    Type.NUMBER: (Type.CHAR,),
    Type.DATE: (Type.CHAR,),
    Type.CHAR: (Type.DOCUMENT,),
}


def _check_constant(function: Function, parameter: Parameter, code: Code) -> None:
    """What a constant is read as is known before any row: a mistake in it is one in the plan."""
    try:
        if parameter.kind == "pattern":
            compiled(code.value)
        elif parameter.kind == "unit":
            unit_of(code.value)
        elif parameter.kind in ("layout", "form"):
            check_layout(code.value, repeats=parameter.kind == "layout")
        else:
            _READERS[parameter.kind](code.value)
    except SettingError as error:
        raise SettingError(f"{function.name}: {error.message}", offset=code.node.offset) from None
    except UncomputableError:
        kind = "whole number" if parameter.kind == "whole" else parameter.kind
        raise SettingError(
            f"{function.name}: {code.shown} is not a {kind}", offset=code.node.offset
        ) from None


def readers(parameter: Parameter) -> tuple[frozenset[type], _Read]:
    """The classes whose values the parameter takes as they are, and what reads other values."""
    return _PLAIN.get(parameter.kind, frozenset()), _READERS.get(parameter.kind, lambda value: value)


def read_argument(parameter: Parameter, code: Code) -> Evaluate:
    """A closure that gives the argument as the function takes it, null as null."""
    read = _READERS.get(parameter.kind)
    evaluate = code.evaluate
    if read is None:
        return evaluate
    if code.constant:
        value = None if code.value is None else read(code.value)
        return lambda row: value
    plain = _PLAIN[parameter.kind]

    def argument(row: Row) -> Value:
        value = evaluate(row)
        return value if value is None or value.__class__ in plain else read(value)

    return argument


def _read_text(value: Value) -> str:
    if isinstance(value, str | Document):
        return str(value)
    raise UncomputableError(NOT_A_TEXT)


def _read_number(value: Value) -> Value:
    number = read_number(value) if isinstance(value, str) else value
    if isinstance(number, bool) or not isinstance(number, int | float | Decimal):
        raise UncomputableError(NOT_A_NUMBER)
    return number


def _read_whole(value: Value) -> int:
    number = _read_number(value)
    if isinstance(number, int):
        return number
    try:
        whole = int(number) if abs(number) < 1e15 else None
    except (ArithmeticError, ValueError):
        whole = None
    if whole is None or whole != number:
        raise UncomputableError(NOT_WHOLE)
    return whole


def _read_date(value: Value) -> date:
    found = read_date(str(value)) if isinstance(value, str | Document) else value
    if not isinstance(found, date):
        raise UncomputableError(NOT_A_DATE)
    return found


def _read_boolean(value: Value) -> bool:
    if isinstance(value, bool):
        return value
    raise UncomputableError(NOT_A_BOOLEAN)


def _read_unit(value: Value) -> str:
    try:
        return unit_of(_read_text(value))
    except SettingError:
        raise UncomputableError(UNKNOWN_UNIT) from None


def _read_layout(value: Value, repeats: bool = True) -> str:
    try:
        return check_layout(_read_text(value), repeats)
    except SettingError:
        raise UncomputableError(BAD_LAYOUT) from None


def _read_form(value: Value) -> str:
    return _read_layout(value, repeats=False)


_READERS: dict[str, _Read] = {
    "char": _read_text,
    "pattern": _read_text,
    "number": _read_number,
    "whole": _read_whole,
    "date": _read_date,
    "boolean": _read_boolean,
    "unit": _read_unit,
    "layout": _read_layout,
    "form": _read_form,
}
# Values of these classes are what the function takes already.
_PLAIN: dict[str, frozenset[type]] = {
    "char": frozenset({str}),
    "pattern": frozenset({str}),
    "number": frozenset({int, float, Decimal}),
    "whole": frozenset({int}),
    "date": frozenset({date, datetime}),
    "boolean": frozenset({bool}),
    "unit": frozenset(),
    "layout": frozenset(),
    "form": frozenset(),
}
