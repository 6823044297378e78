"""Closures for calls of functions.

Arguments are checked where their types are known, and converted to the type that the parameter takes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from aioflow.authoring.function import aggregate_functions
from aioflow.errors import SettingError, suggestion
from aioflow.expressions.code import Code, Evaluate
from aioflow.expressions.comparison import case, comparable, comparer, shared_type
from aioflow.expressions.functions import (  # noqa: F401  # each registers its functions
    dates,
    numbers,
    text,
    urls,
)
from aioflow.expressions.functions.dates import check_layout, unit_of
from aioflow.expressions.functions.table import FUNCTIONS, ExpressionFunction, FunctionParameter
from aioflow.expressions.operations import compare
from aioflow.expressions.syntax import Case, FunctionCall
from aioflow.relation import Document, Row, Type, Value
from aioflow.values.counters import (
    BAD_LAYOUT,
    NOT_A_BOOLEAN,
    NOT_A_DATE,
    NOT_A_NUMBER,
    NOT_A_TEXT,
    NOT_WHOLE,
    OUT_OF_RANGE,
    UNKNOWN_UNIT,
    Counters,
    UncomputableError,
)
from aioflow.values.patterns import compiled
from aioflow.values.text import read_date, read_number

if TYPE_CHECKING:
    from aioflow.expressions.compiler import Compiler


_Read = Callable[[Value], Value]


def check_argument(function: ExpressionFunction, parameter: FunctionParameter, code: Code) -> Code:
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


def _check_constant(function: ExpressionFunction, parameter: FunctionParameter, code: Code) -> None:
    """Read a constant before any row comes: a mistake in it is a mistake in the plan."""
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


def readers(parameter: FunctionParameter) -> tuple[frozenset[type], _Read]:
    """The classes whose values the parameter takes as they are, and a reader of other values."""
    return _PLAIN.get(parameter.kind, frozenset()), _READERS.get(parameter.kind, lambda value: value)


def read_argument(parameter: FunctionParameter, code: Code) -> Evaluate:
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


# What other languages call ours.
_OTHER_NAMES = {
    "substring": "substr", "len": "length", "char_length": "length", "strlen": "length", "size": "length",
    "ceiling": "ceil", "pow": "power", "ifnull": "coalesce", "nvl": "coalesce", "isnull": "coalesce",
    "iif": "if", "instr": "position", "strpos": "position", "lcase": "lower", "ucase": "upper",
    "str": "char", "string": "char", "text": "char", "to_char": "char", "int": "number", "float": "number",
    "cast": "number", "to_number": "number", "to_date": "parse_date", "strftime": "format_date",
    "datediff": "date_diff", "dateadd": "date_add", "dayofweek": "weekday", "startswith": "starts_with",
    "endswith": "ends_with", "like_regex": "regexp_extract", "strip": "trim", "split": "split_part",
    "datetime": "timestamp", "typeof": "type", "bool": "boolean",
}  # fmt: skip
_CLOCKS = frozenset(
    {"now", "today", "current_date", "current_timestamp", "current_time", "getdate", "sysdate"}
)
_BUILT_IN_AGGREGATES = frozenset({"count", "sum", "avg", "min", "max", "first", "list"})


def all_functions() -> Mapping[str, ExpressionFunction]:
    """The functions of all families, by name."""
    return FUNCTIONS


def call(compiler: Compiler, node: FunctionCall) -> Code:
    """The code of a call; a SettingError for an unknown function or arguments that it does not take."""
    function = FUNCTIONS.get(node.function)
    if function is None or node.star or node.distinct:
        raise SettingError(_unknown(node), offset=node.offset)
    _check_count(function, node)
    if node.function in _SPECIAL:
        return _SPECIAL[node.function](compiler, node)
    codes = [
        check_argument(function, function.parameter(index), compiler.value(argument))
        for index, argument in enumerate(node.arguments)
    ]
    return Code(_called(function, codes, compiler.counters), function.type, node)


def _unknown(node: FunctionCall) -> str:
    name = node.function
    if name in _BUILT_IN_AGGREGATES or aggregate_functions.get(name) is not None:
        return f"'{name}' is an aggregate function, which only the operator aggregate can call"
    if name in FUNCTIONS:
        return f"'{name}' takes no '{'*' if node.star else 'distinct'}'"
    if name in _CLOCKS:
        return f"unknown function '{name}'; the time at which the run began is timestamp '${{started}}'"
    if name in _OTHER_NAMES:
        return f"unknown function '{name}'; did you mean '{_OTHER_NAMES[name]}'?"
    return f"unknown function '{name}'{suggestion(name, FUNCTIONS)}"


def _check_count(function: ExpressionFunction, node: FunctionCall) -> None:
    given, fewest, most = len(node.arguments), function.fewest, function.most
    if given >= fewest and (most is None or given <= most):
        return
    if most is None:
        wanted = f"{fewest} or more arguments" if fewest != 1 else "one or more arguments"
    elif most == fewest:
        wanted = f"{fewest} argument{'s' * (fewest != 1)}"
    else:
        wanted = f"{fewest} to {most} arguments"
    raise SettingError(
        f"{function.name} takes {wanted}, not {given}: {function.signature}", offset=node.offset
    )


def _called(function: ExpressionFunction, codes: list[Code], counters: Counters) -> Evaluate:
    """A closure that calls the function; null when an argument is, or when it has no result."""
    if len(codes) == 1 and not function.takes_null:
        return _called_with_one(function, codes[0], counters)
    arguments = tuple(read_argument(function.parameter(index), code) for index, code in enumerate(codes))
    compute, takes_null = function.call, function.takes_null

    def evaluate(row: Row) -> Value:
        try:
            values = [argument(row) for argument in arguments]
            return None if None in values and not takes_null else compute(*values)
        except UncomputableError as error:
            counters[str(error)] += 1
        except ArithmeticError:
            counters[OUT_OF_RANGE] += 1
        return None

    return evaluate


def _called_with_one(function: ExpressionFunction, code: Code, counters: Counters) -> Evaluate:
    compute, argument = function.call, code.evaluate
    plain, read = readers(function.parameters[0])

    def evaluate(row: Row) -> Value:
        value = argument(row)
        try:
            if value.__class__ in plain:
                return compute(value)
            return None if value is None else compute(read(value))
        except UncomputableError as error:
            counters[str(error)] += 1
        except ArithmeticError:
            counters[OUT_OF_RANGE] += 1
        return None

    return evaluate


# --- functions that choose ----------------------------------------------------------------------


def _coalesce(compiler: Compiler, node: FunctionCall) -> Code:
    codes = [compiler.value(argument) for argument in node.arguments]
    closures = tuple(code.evaluate for code in codes)

    def evaluate(row: Row) -> Value:
        for closure in closures:
            value = closure(row)
            if value is not None:
                return value
        return None

    return Code(evaluate, shared_type(codes, "the arguments of coalesce"), node)


def _if(compiler: Compiler, node: FunctionCall) -> Code:
    condition, then, otherwise = node.arguments
    return case(compiler, Case(node.offset, None, ((condition, then),), otherwise))


def _nullif(compiler: Compiler, node: FunctionCall) -> Code:
    code = compiler.value(node.arguments[0])
    _, other = comparable("=", code, compiler.value(node.arguments[1]), node.offset)
    first, second, equal = code.evaluate, other.evaluate, comparer("=", compiler.counters)

    def evaluate(row: Row) -> Value:
        value = first(row)
        return None if equal(value, second(row)) else value

    return Code(evaluate, code.type, node)


def _greatest(compiler: Compiler, node: FunctionCall) -> Code:
    return _extreme(compiler, node, ">")


def _least(compiler: Compiler, node: FunctionCall) -> Code:
    return _extreme(compiler, node, "<")


def _extreme(compiler: Compiler, node: FunctionCall, sign: str) -> Code:
    codes = [compiler.value(argument) for argument in node.arguments]
    for code in codes[1:]:
        comparable(sign, codes[0], code, code.node.offset)
    closures, counters = tuple(code.evaluate for code in codes), compiler.counters

    def evaluate(row: Row) -> Value:
        best = closures[0](row)
        for closure in closures[1:]:
            value = closure(row)
            if best is None or value is None:
                return None
            better = compare(sign, value, best, counters)
            if better is None:
                return None
            best = value if better else best
        return best

    kinds = {code.type for code in codes}
    return Code(evaluate, kinds.pop() if len(kinds) == 1 else None, node)


_SPECIAL: dict[str, Callable[[Compiler, FunctionCall], Code]] = {
    "coalesce": _coalesce,
    "if": _if,
    "nullif": _nullif,
    "greatest": _greatest,
    "least": _least,
}
