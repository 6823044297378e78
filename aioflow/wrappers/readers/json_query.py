"""python-jsonpath as JSON pages need it: RFC 9535 to the letter, patterns in linear time."""

from __future__ import annotations

from functools import lru_cache

from jsonpath import JSONPathEnvironment
from jsonpath.function_extensions import ExpressionType, FilterFunction

from aioflow.errors import SettingError
from aioflow.expressions.counters import UncomputableError
from aioflow.expressions.patterns import compiled


class _Environment(JSONPathEnvironment):
    max_recursion_depth = 1000  # pages are not deeper than the reader's own limit, which is lower


class _Matching(FilterFunction):
    """`match` and `search`: the library's own use patterns that a page could make run for hours."""

    arg_types = [ExpressionType.VALUE, ExpressionType.VALUE]  # noqa: RUF012  # as the base class has it
    return_type = ExpressionType.LOGICAL

    def __init__(self, form: str) -> None:
        self._form = form

    def __call__(self, value: object, pattern: object) -> bool:
        if not isinstance(value, str) or not isinstance(pattern, str):
            return False
        try:
            return compiled(self._form.replace("*", pattern)).found(value)
        except (SettingError, UncomputableError):
            return False  # a bad pattern matches nothing, says the RFC


@lru_cache(maxsize=1)
def environment() -> JSONPathEnvironment:
    made = _Environment(strict=True)
    made.function_extensions["match"] = _Matching(r"\A(?:*)\z")
    made.function_extensions["search"] = _Matching("(?:*)")
    return made
