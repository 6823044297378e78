"""Closures for `in` and `case`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aioflow.errors import SettingError
from aioflow.expressions.code import Code, Evaluate
from aioflow.expressions.comparison import any_of, comparable, comparison
from aioflow.expressions.syntax import Case, In
from aioflow.relation import Row, Type, Value

if TYPE_CHECKING:
    from aioflow.expressions.compiler import Compiler


def membership(compiler: Compiler, node: In) -> Evaluate:
    """`a in (b, …)`: true when equal to one, else null when it or one of them is null."""
    operand = compiler.value(node.operand)
    equals = []
    for choice in node.choices:
        pair = comparable("=", operand, compiler.value(choice), choice.offset)
        equals.append(comparison("=", *pair, compiler.counters))
    return any_of(tuple(equals))


def case(compiler: Compiler, node: Case) -> Code:
    """The result of the first branch whose condition is true, else the default."""
    subject = compiler.value(node.subject) if node.subject is not None else None
    branches = []
    for condition, result in node.branches:
        if subject is None:
            test = compiler.condition(condition).evaluate
        else:
            pair = comparable("=", subject, compiler.value(condition), condition.offset)
            test = comparison("=", *pair, compiler.counters)
        branches.append((test, compiler.value(result)))
    default = compiler.value(node.default) if node.default is not None else None
    results = [result for _, result in branches] + ([default] if default is not None else [])
    closures = tuple((test, result.evaluate) for test, result in branches)
    otherwise = default.evaluate if default is not None else _null

    def choose(row: Row) -> Value:
        for test, result in closures:
            if test(row) is True:
                return result(row)
        return otherwise(row)

    return Code(choose, shared_type(results, "the results of 'case'"), node)


def _null(row: Row) -> Value:
    return None


def shared_type(results: list[Code], what: str) -> Type | None:
    """The type that all results have; None when one is not known. Null has any type."""
    known = [code for code in results if not (code.constant and code.value is None)]
    types = {code.type for code in known}
    if None in types or not types:
        return None
    if len(types) > 1:
        first = known[0]
        other = next(code for code in known if code.type is not first.type)
        raise SettingError(
            f"{what} have different types: {first.type} and {other.type}", offset=other.node.offset
        )
    return types.pop()
