"""Operators with no behaviour, whose declarations the checker reads: so its tests depend on no other part."""

from collections.abc import AsyncGenerator, Sequence
from typing import Any, Literal

from aioflow.authoring.operator import Registry, describe, same_as_input
from aioflow.errors import SettingError
from aioflow.relation import Row, Schema
from aioflow.runtime.stream import Stream


class Names:
    """A list of attributes that must exist: `a, b`."""

    kind_name = "a list of attributes"

    @classmethod
    def bind(cls, value: Any, inputs: Sequence[Schema | None]) -> tuple[str, ...]:
        if not isinstance(value, str):
            raise SettingError(f"must be text, not {value!r}")
        offset = 0
        names = []
        for part in value.split(","):
            name = part.strip()
            if inputs and inputs[0] is not None:
                try:
                    inputs[0].position(name)
                except SettingError as error:
                    place = offset + len(part) - len(part.lstrip())
                    raise SettingError(error.message, offset=place) from None
            names.append(name)
            offset += len(part) + 1
        return tuple(names)


def picked(inputs: Sequence[Schema | None], settings: Any) -> Schema | None:
    return inputs[0].pick(settings["attributes"]) if inputs[0] is not None else None


def merged(inputs: Sequence[Schema | None], settings: Any) -> Schema | None:
    known = [schema for schema in inputs if schema is not None]
    if any(set(schema.names) != set(known[0].names) for schema in known):
        raise SettingError("the inputs differ in their attributes")
    return known[0] if known else None


def suffixed(inputs: Sequence[Schema | None], settings: Any) -> Schema | None:
    if inputs[0] is None:
        return None
    return Schema(tuple(name + settings["suffix"] for name in inputs[0].names), inputs[0].types)


def null_lint(inputs: Sequence[str], outputs: Sequence[str | None], settings: Any) -> list[str]:
    return ["t can never have a tuple"] if inputs[0] == inputs[1] and outputs[0] else []


async def keep(rows: Stream, *, attributes: Names) -> AsyncGenerator[Row, None]:
    yield ()


async def merge(*rows: Stream, all_: bool = False) -> AsyncGenerator[Row, None]:
    yield ()


async def same(rows: Stream, extra: Stream | None = None, *, note: str = "") -> AsyncGenerator[Row, None]:
    yield ()


async def suffix(rows: Stream, *, suffix: str) -> AsyncGenerator[Row, None]:
    yield ()


async def subtract(lhs: Stream, rhs: Stream) -> AsyncGenerator[Row, None]:
    yield ()


async def decide(d: Stream, dt: Stream, df: Stream) -> AsyncGenerator[Row, None]:
    yield ()


async def fetch(
    rows: Stream, *, source: str, tries: int = 1, kind: Literal["html", "json"] = "html"
) -> AsyncGenerator[Row, None]:
    yield ()


async def store(rows: Stream, *, table: str, dry: bool = False) -> AsyncGenerator[Row, None]:
    yield ()


async def load(*, table: str) -> AsyncGenerator[Row, None]:
    yield ()


def fakes() -> Registry:
    """A fresh registry with all of them."""
    return Registry(
        [
            describe(keep, schema=picked),
            describe(merge, schema=merged),
            describe(same, schema=same_as_input),
            describe(suffix, schema=suffixed),
            describe(subtract, schema=same_as_input, blocking_input=1),
            describe(
                decide,
                outputs=("t", "f"),
                schema=lambda inputs, settings: (inputs[1], inputs[2]),
                lint=null_lint,
            ),
            describe(fetch, firing="tuple"),
            describe(store, schema=same_as_input, effects=lambda settings: not settings["dry"]),
            describe(load),
        ]
    )
