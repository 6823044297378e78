"""Scripted sources: rows, pauses, failures and silence, in the virtual time of the loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from string import ascii_lowercase
from typing import Any, TypeAlias

from aioflow.relation import Relation, Row, Schema


def rows(*tuples: Row, schema: Schema | str | None = None) -> Relation:
    """Return a relation of these tuples; `schema` as names in one text ("city price"), by default a, b, c, …

    Without tuples and schema the relation has one attribute, `a`.
    """
    if isinstance(schema, str):
        schema = Schema(tuple(schema.replace(",", " ").split()))
    if schema is None:
        schema = Schema(tuple(ascii_lowercase[: len(tuples[0]) if tuples else 1]))
    return Relation(schema, list(tuples))


@dataclass(frozen=True)
class _Wait:
    seconds: float


@dataclass(frozen=True)
class _Until:
    time: float


@dataclass(frozen=True)
class _Fail:
    error: Exception


@dataclass(frozen=True)
class _Hang:
    pass


_Act: TypeAlias = Mapping[str, Any] | _Wait | _Until | _Fail | _Hang


class Script:
    """An input of a plan that plays a script: `Script().row(n=1).wait(2.5).row(n=2).fail(OSError("gone"))`.

    `given` counts the rows that were taken from it. `closed` is true once its reader has left or seen its
    end. A script can be played many times; `given` then counts the rows of all.
    """

    def __init__(self, *given_at_once: Mapping[str, Any]) -> None:
        self._acts: list[_Act] = list(given_at_once)
        self.given = 0
        self.closed = False

    def row(self, values: Mapping[str, Any] | None = None, /, **attributes: Any) -> Script:
        """Give a row."""
        return self._then({**(values or {}), **attributes})

    def rows(self, *values: Mapping[str, Any]) -> Script:
        """Give rows, one after the other without a pause."""
        self._acts.extend(values)
        return self

    def wait(self, seconds: float) -> Script:
        """Give no rows for some seconds."""
        return self._then(_Wait(seconds))

    def at(self, time: float, /, **attributes: Any) -> Script:
        """Give a row when the loop's clock shows this time, or at once if it has passed."""
        return self._then(_Until(time))._then(attributes)

    def fail(self, error: Exception) -> Script:
        """Raise an exception; nothing comes after it."""
        return self._then(_Fail(error))

    def hang(self) -> Script:
        """Give no more rows, and never end."""
        return self._then(_Hang())

    def _then(self, act: _Act) -> Script:
        self._acts.append(act)
        return self

    async def __aiter__(self) -> AsyncIterator[Mapping[str, Any]]:
        self.closed = False
        try:
            for act in tuple(self._acts):
                if isinstance(act, Mapping):
                    self.given += 1
                    yield act
                else:
                    await _pause(act)
        finally:
            self.closed = True


async def _pause(act: _Wait | _Until | _Fail | _Hang) -> None:
    loop = asyncio.get_running_loop()
    match act:
        case _Wait(seconds):
            await asyncio.sleep(seconds)
        case _Until(time):
            await asyncio.sleep(max(0.0, time - loop.time()))
        case _Fail(error):
            raise error
        case _Hang():
            await loop.create_future()
