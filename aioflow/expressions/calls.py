"""Closures for calls of functions: arguments checked and read as what the function takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from aioflow.errors import SettingError, suggestion
from aioflow.expressions import (  # noqa: F401  # each registers its functions
    date_functions,
    general_functions,
    number_functions,
    text_functions,
    url_functions,
)
from aioflow.expressions.arguments import check_argument, read_argument, readers
from aioflow.expressions.choices import case, shared_type
from aioflow.expressions.code import Code, Evaluate
from aioflow.expressions.comparison import comparable, comparer
from aioflow.expressions.counters import OUT_OF_RANGE, Counters, UncomputableError
from aioflow.expressions.functions import FUNCTIONS, Function
from aioflow.expressions.syntax import Call, Case
from aioflow.expressions.values import compare
from aioflow.function import aggregate_functions
from aioflow.relation import Row, Value

if TYPE_CHECKING:
    from aioflow.expressions.compiler import Compiler

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


def all_functions() -> Mapping[str, Function]:
    """The functions of all families, by name."""
    return FUNCTIONS


def call(compiler: Compiler, node: Call) -> Code:
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


def _unknown(node: Call) -> str:
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


def _check_count(function: Function, node: Call) -> None:
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


def _called(function: Function, codes: list[Code], counters: Counters) -> Evaluate:
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


def _called_with_one(function: Function, code: Code, counters: Counters) -> Evaluate:
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


def _coalesce(compiler: Compiler, node: Call) -> Code:
    codes = [compiler.value(argument) for argument in node.arguments]
    closures = tuple(code.evaluate for code in codes)

    def evaluate(row: Row) -> Value:
        for closure in closures:
            value = closure(row)
            if value is not None:
                return value
        return None

    return Code(evaluate, shared_type(codes, "the arguments of coalesce"), node)


def _if(compiler: Compiler, node: Call) -> Code:
    condition, then, otherwise = node.arguments
    return case(compiler, Case(node.offset, None, ((condition, then),), otherwise))


def _nullif(compiler: Compiler, node: Call) -> Code:
    code = compiler.value(node.arguments[0])
    _, other = comparable("=", code, compiler.value(node.arguments[1]), node.offset)
    first, second, equal = code.evaluate, other.evaluate, comparer("=", compiler.counters)

    def evaluate(row: Row) -> Value:
        value = first(row)
        return None if equal(value, second(row)) else value

    return Code(evaluate, code.type, node)


def _greatest(compiler: Compiler, node: Call) -> Code:
    return _extreme(compiler, node, ">")


def _least(compiler: Compiler, node: Call) -> Code:
    return _extreme(compiler, node, "<")


def _extreme(compiler: Compiler, node: Call, sign: str) -> Code:
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


_SPECIAL: dict[str, Callable[[Compiler, Call], Code]] = {
    "coalesce": _coalesce,
    "if": _if,
    "nullif": _nullif,
    "greatest": _greatest,
    "least": _least,
}
