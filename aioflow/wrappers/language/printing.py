"""The printer of wrappers: the text it writes parses to an equal wrapper."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from aioflow.language.literals import write_constant, write_string
from aioflow.plan import is_name
from aioflow.wrappers.definition import Field, Processing, WrapperInput
from aioflow.wrappers.language.directives import variable
from aioflow.wrappers.language.wrapper_text import (
    DIRECTIVES,
    Directive,
    PagingText,
    Part,
    ReaderChoice,
    Removal,
    WrapperText,
    near_directive,
)


def print_wrapper(wrapper: WrapperText) -> str:
    """The wrapper as an item of a plan file."""
    header = " ".join(["WRAPPER", wrapper.name, *_header(wrapper)])
    entries = [*map(_directive, wrapper.directives), *_fields(wrapper.fields)]
    body = "".join(f"  {entry}\n" for entry in entries)
    return f"{header}\n{{\n{body}}}\n"


def _header(wrapper: WrapperText) -> Iterator[str]:
    if wrapper.inputs is not None:
        yield f"({', '.join(map(_input, wrapper.inputs))})"
    if wrapper.like is not None:
        yield f"LIKE {wrapper.like}"


def _input(given: WrapperInput) -> str:
    words = [_name(given.name), *([str(given.type)] if given.type else [])]
    if given.default is not None:
        words.append(f"= {write_constant(given.default)}")
    elif given.optional:
        words.append("optional")
    return " ".join(words)


def _name(name: str) -> str:
    """A name as it stands before a colon or in a list."""
    if is_name(name) and name.upper() not in DIRECTIVES and not near_directive(name):
        return name
    return _quoted(name)


def _quoted(name: str) -> str:
    return f"`{name}`" if "`" not in name and "\n" not in name else write_string(name)


# --- fields --------------------------------------------------------------------------------------


def _fields(fields: Iterable[Field | Removal], indent: str = "") -> Iterator[str]:
    for field in fields:
        if isinstance(field, Removal):
            yield f"{indent}{_name(field.name)}: none"
        elif field.fields:
            yield f"{indent}{_named(field, ['each', write_string(field.selector)])} {{"
            yield from _fields(field.fields, f"{indent}  ")
            yield f"{indent}}}"
        else:
            yield f"{indent}{_field(field)}"


def _field(field: Field) -> str:
    if field.scope == "constant":
        return f"{_name(field.name)}: = {write_constant(field.default)}"
    if field.scope == "response":
        part, _, header = field.selector.partition(" ")
        return _named(field, [part, *([write_string(header)] if header else [])])
    return _named(field, [write_string(field.selector)] if field.selector else [])


def _named(field: Field, selector: list[str]) -> str:
    scope = [field.scope] if field.scope in ("page", "response") else []
    words = [*scope, *selector, *_words(field.processing)]
    if field.required:
        words.append("required")
    elif field.default is not None and field.scope != "constant":
        words += ["default", write_constant(field.default)]
    return " ".join([f"{_name(field.name)}:", *words])


def _words(processing: Iterable[Processing]) -> Iterator[str]:
    for word in processing:
        yield word.name
        yield from map(write_constant, word.arguments)


# --- directives ----------------------------------------------------------------------------------


def _directive(directive: Directive) -> str:
    value = directive.value
    if directive.name == "REQUEST":
        return f"{value.method}: {write_string(value.url)}"
    if value is None:
        return f"{directive.name}: none"
    if isinstance(value, bool) and directive.name != "ROBOTS":
        return directive.name if value else f"{directive.name}: off"
    return f"{directive.name}: {_WRITERS[directive.name](value)}"


def _parts(parts: tuple[Part, ...]) -> str:
    return ", ".join(
        _part_name(part.name)
        if part.value == variable(part.name)
        else f"{_part_name(part.name)} = {write_constant(part.value)}"
        for part in parts
    )


def _headers(parts: tuple[Part, ...]) -> str:
    return ", ".join(f"{_part_name(part.name)} = {write_constant(part.value)}" for part in parts)


def _part_name(name: str) -> str:
    return name if is_name(name) else _quoted(name)


def _auth(value: tuple[str, ...]) -> str:
    return " ".join([value[0], *map(write_string, value[1:])])


def _reader(choice: ReaderChoice) -> str:
    words = [choice.name]
    for option in choice.options:
        if choice.name == "grammar" and option.name in ("name", "start"):
            words += [*(["start"] if option.name == "start" else []), _part_name(str(option.arguments[0]))]
            continue
        words += [option.name, *map(write_constant, option.arguments)]
    return " ".join(words)


def _paging(paging: PagingText) -> str:
    words: list[str] = [paging.kind]
    if paging.found is not None:
        words += [write_string(paging.found.selector), *_words(paging.found.processing)]
    if paging.parameter is not None:
        words += [*(["as"] if paging.kind == "cursor" else []), write_string(paging.parameter)]
    words += [] if paging.start is None else ["from", str(paging.start)]
    words += [] if paging.step is None else ["by", str(paging.step)]
    return " ".join(words)


_WRITERS: dict[str, Callable[[Any], str]] = {
    "FORM": _parts,
    "JSON": _parts,
    "HEADERS": _headers,
    "BODY": write_string,
    "EACH": write_string,
    "CHARSET": write_string,
    "AUTH": _auth,
    "READ": _reader,
    "PAGING": _paging,
    "MAX_PAGES": str,
    "EMPTY": lambda signs: ", ".join(map(write_constant, signs)),
    "ROBOTS": lambda value: "on" if value else "off",
    "TIMEOUT": write_constant,
    "RESTART": str,
}
