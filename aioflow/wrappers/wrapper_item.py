"""The item kind WRAPPER, and the setting by which a statement names a wrapper."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, ClassVar, TypeAlias

from aioflow.errors import SettingError, suggestion
from aioflow.language.kinds import ItemKind
from aioflow.plan import Program
from aioflow.relation import Schema
from aioflow.source import Span
from aioflow.values.coercion import can_fit
from aioflow.wrappers.definition import Wrapper
from aioflow.wrappers.language import WrapperText, parse_item
from aioflow.wrappers.python import PythonWrapper, python_wrapper, python_wrapper_names

AnyWrapper: TypeAlias = Wrapper | PythonWrapper


class WrapperName:
    """A setting that names a wrapper of the program, or one registered in Python."""

    kind_name: ClassVar[str] = "the name of a wrapper"

    @classmethod
    def bind_item(cls, value: Any, inputs: Sequence[Schema | None], program: Program | None) -> AnyWrapper:
        found = find_wrapper(value, program)
        schema = inputs[0] if inputs else Schema(())
        if schema is not None:
            check_inputs(found, schema)
        return found


def find_wrapper(name: Any, program: Program | None) -> AnyWrapper:
    """Return the wrapper of that name; raise a SettingError with a suggestion when there is none."""
    if not isinstance(name, str):
        raise SettingError(f"must be the name of a wrapper, not {name!r}")
    if program is not None and program.item("wrapper", name) is not None:
        from aioflow.wrappers.inheritance import resolve

        found = resolve(name, program)
        _prepare(found)
        return found
    registered = python_wrapper(name)
    if registered is not None:
        return registered
    items = program.items if program is not None else ()
    known = [item.name for item in items if item.kind.lower() == "wrapper"] + python_wrapper_names()
    listed = f" (there are: {', '.join(known)})" if known else "; the program has none"
    raise SettingError(f"unknown wrapper {name!r}{suggestion(name, known) or listed}")


def _prepare(wrapper: Wrapper) -> None:
    """Compile a wrapper now, so that the first request of a run need not wait for it."""
    from aioflow.wrappers.readers.reader import compiled
    from aioflow.wrappers.requests import compile_request

    with suppress(SettingError):  # mistakes in the item are reported at its own place
        compiled(wrapper.extraction)
        compile_request(wrapper)


def check_inputs(wrapper: AnyWrapper, schema: Schema) -> None:
    """Every input that must be there is an attribute of the tuples, and none is of a type that cannot fit."""
    for given in wrapper.inputs:
        if not given.optional and given.name not in schema and not schema.open:
            has = ", ".join(schema.names) or "no attributes"
            raise SettingError(
                f"wrapper {wrapper.name!r} needs the attribute {given.name!r}"
                f"{suggestion(given.name, schema.names)} (the tuples have: {has})"
            )
        is_there = given.name in schema or (schema.open and not given.optional)
        known = schema.type_of(given.name) if is_there else None
        if known is not None and given.type is not None and not can_fit(known, given.type):
            raise SettingError(
                f"wrapper {wrapper.name!r} needs the attribute {given.name!r} as a {given.type}, "
                f"and it is a {known}"
            )


def parse(name: str, header: str, body: str, header_span: Span, body_span: Span) -> WrapperText:
    """Return the parsed text of a wrapper; a PlanError lists every mistake in it."""
    return parse_item(name, header_span, body_span, header_is_scanned=True)


KIND = ItemKind("WRAPPER", parse)
