"""Types of settings that are quantities: numbers within limits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

from aioflow import InputError, Schema, SettingError
from aioflow.values.quantities import seconds


def _refuse(kind_name: str, value: Any) -> SettingError:
    return SettingError(f"must be {kind_name}, not {'null' if value is None else repr(value)}")


class Count(int):
    """A number of tuples, which may be zero."""

    kind_name: ClassVar[str] = "a whole number, 0 or more"
    least: ClassVar[int] = 0

    @classmethod
    def bind(cls, value: Any, inputs: Sequence[Schema | None]) -> Self:
        if isinstance(value, bool) or not isinstance(value, int) or value < cls.least:
            raise _refuse(cls.kind_name, value)
        return cls(value)


class PositiveCount(Count):
    """A number of tuples, at least one."""

    kind_name: ClassVar[str] = "a whole number, 1 or more"
    least: ClassVar[int] = 1


class Positive(float):
    """A number above zero, such as a time in seconds."""

    kind_name: ClassVar[str] = "a number above 0"

    @classmethod
    def bind(cls, value: Any, inputs: Sequence[Schema | None]) -> Self:
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
            raise _refuse(cls.kind_name, value)
        return cls(value)


class Duration(float):
    """A time span in seconds, written as `90s`, `5m` or `1h30m`."""

    kind_name: ClassVar[str] = "a time span such as 90s, 5m or 1h30m"

    def __str__(self) -> str:
        for unit, size in (("h", 3600), ("m", 60)):
            if self >= size and not self % size:
                return f"{self // size:g}{unit}"
        return f"{float(self):g}s"

    @classmethod
    def bind(cls, value: Any, inputs: Sequence[Schema | None]) -> Self:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise _refuse(cls.kind_name, value)
        try:
            return cls(seconds(str(value)))
        except InputError:
            raise _refuse(cls.kind_name, value) from None


class Share(float):
    """A part of a whole."""

    kind_name: ClassVar[str] = "a number from 0 to 1"

    @classmethod
    def bind(cls, value: Any, inputs: Sequence[Schema | None]) -> Self:
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
            raise _refuse(cls.kind_name, value)
        return cls(value)
