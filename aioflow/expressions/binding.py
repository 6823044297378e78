"""What the setting kinds share: the constant must be text, and an unbound one must not be called."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeVar

from aioflow.errors import SettingError
from aioflow.relation import Schema

_Result = TypeVar("_Result")


def text_of(value: Any, kind_name: str) -> str:
    """The text of a setting; a SettingError when the constant is something else."""
    if isinstance(value, str):
        return value
    shown = "null" if value is None else repr(value)
    raise SettingError(f"must be {kind_name} in quotes, not {shown}")


def first_schema(inputs: Sequence[Schema | None]) -> Schema | None:
    return inputs[0] if inputs else None


def unbound(*arguments: Any) -> NoReturn:
    """Stands in for the closures of what was bound while the schema was not known."""
    raise TypeError("this setting was bound without a schema: it was checked, but cannot be evaluated")


def shallow(build: Callable[[], _Result]) -> _Result:
    """What `build` makes; when the caller's stack is nearly used up, a message and no traceback."""
    try:
        return build()
    except RecursionError:
        raise SettingError("the expression is nested too deeply") from None
