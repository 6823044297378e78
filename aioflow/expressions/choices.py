"""Closures for `in` and `case`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aioflow.errors import SettingError
from aioflow.expressions.code import Code, Evaluate
from aioflow.expressions.comparison import comparable, comparer
from aioflow.expressions.syntax import Between, Case, In, Literal
from aioflow.relation import Row, Type, Value

if TYPE_CHECKING:
    from aioflow.expressions.compiler import Compiler


def membership(compiler: Compiler, node: In) -> Evaluate:
    """`a in (b, …)`: true when equal to one, else null when it or one of them is null."""
    operand = compiler.value(node.operand)
    choices = tuple(
        comparable("=", operand, compiler.value(choice), choice.offset)[1].evaluate for choice in node.choices
    )
    evaluate, equal = operand.evaluate, comparer("=", compiler.counters)

    def among(row: Row) -> bool | None:
        value = evaluate(row)
        if value is None:
            return None
        result: bool | None = False
        for choice in choices:
            found = equal(value, choice(row))
            if found:
                return True
            if found is None:
                result = None
        return result

    return among


def between(compiler: Compiler, node: Between) -> Evaluate:
    """`a between low and high`: `a >= low and a <= high`."""
    operand = compiler.value(node.operand)
    low = comparable(">=", operand, compiler.value(node.low), node.offset)[1].evaluate
    high = comparable("<=", operand, compiler.value(node.high), node.offset)[1].evaluate
    evaluate = operand.evaluate
    at_least, at_most = comparer(">=", compiler.counters), comparer("<=", compiler.counters)

    def inside(row: Row) -> bool | None:
        value = evaluate(row)
        above = at_least(value, low(row))
        if above is False:
            return False
        below = at_most(value, high(row))
        return below if above else None if below else below

    return inside


def case(compiler: Compiler, node: Case) -> Code:
    """The result of the first branch whose condition is true, else the default."""
    if node.subject is not None:
        return _case_of(compiler, node, compiler.value(node.subject))
    tests = [compiler.condition(condition).evaluate for condition, _ in node.branches]
    results, default = _results(compiler, node)
    branches = tuple(zip(tests, (result.evaluate for result in results), strict=True))
    otherwise = default.evaluate

    def choose(row: Row) -> Value:
        for test, result in branches:
            if test(row) is True:
                return result(row)
        return otherwise(row)

    return Code(choose, shared_type([*results, default], "the results of 'case'"), node)


def _case_of(compiler: Compiler, node: Case, subject: Code) -> Code:
    values = [
        comparable("=", subject, compiler.value(value), value.offset)[1].evaluate
        for value, _ in node.branches
    ]
    results, default = _results(compiler, node)
    branches = tuple(zip(values, (result.evaluate for result in results), strict=True))
    evaluate, otherwise, equal = subject.evaluate, default.evaluate, comparer("=", compiler.counters)

    def choose(row: Row) -> Value:
        given = evaluate(row)
        for value, result in branches:
            if equal(given, value(row)):
                return result(row)
        return otherwise(row)

    return Code(choose, shared_type([*results, default], "the results of 'case'"), node)


def _results(compiler: Compiler, node: Case) -> tuple[list[Code], Code]:
    results = [compiler.value(result) for _, result in node.branches]
    return results, compiler.value(node.default or Literal(node.offset, None))


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
