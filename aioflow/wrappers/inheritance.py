"""Resolution of wrappers: from the texts of a program to a whole Wrapper, with all that LIKE inherits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import zip_longest
from typing import Any

import msgspec

from aioflow.errors import SettingError, suggestion
from aioflow.plan import Item, Program
from aioflow.relation import Schema, Type, type_of_value
from aioflow.source import Span
from aioflow.wrappers.definition import (
    Extraction,
    Field,
    IdentityCache,
    Paging,
    RequestTemplate,
    Wrapper,
    WrapperInput,
    whole_path,
)
from aioflow.wrappers.language import WrapperText, parse_wrapper
from aioflow.wrappers.language.wrapper_text import Directive, PagingText, ReaderChoice, Removal, RequestLine

DEFAULT_READER = "html"
GRAMMAR_READER = "grammar"
MOST_PAGES = 1000
LIKE_AT_MOST = 20
BODIES = ("FORM", "JSON", "BODY")
_RESPONSE_TYPES = {"url": Type.CHAR, "status": Type.NUMBER, "date": Type.DATE, "header": Type.CHAR}


def resolve(name: str, program: Program) -> Wrapper:
    """Return the wrapper of that name, whole; raise a SettingError with a suggestion when there is none."""
    known = _wrappers_of(program)
    key = name.lower()
    if key not in known:
        text = text_named(name, program)
        try:
            known[key] = build(merge(text, program))
        except SettingError as error:
            raise SettingError(f"LIKE of wrapper {text.name!r} is wrong: {error.message}") from None
    return known[key]


def _nothing_yet(program: Program) -> dict[str, Wrapper]:
    return {}


_wrappers_of = IdentityCache[Program, dict[str, Wrapper]](_nothing_yet)


def text_named(name: str, program: Program) -> WrapperText:
    """Return the text of a wrapper of the program."""
    item = program.item("wrapper", name)
    if item is None:
        known = [each.name for each in program.items if each.kind.lower() == "wrapper"]
        listed = f" (there are: {', '.join(known)})" if known else "; the program has none"
        raise SettingError(f"unknown wrapper {name!r}{suggestion(name, known) or listed}")
    return _text_of(item)


def _text_of(item: Item) -> WrapperText:
    if isinstance(item.content, WrapperText):
        return item.content
    # An item that was built in Python has texts only.
    return parse_wrapper(item.name, item.header, item.body)


# --- LIKE ----------------------------------------------------------------------------------------


class MergedWrapper(msgspec.Struct, frozen=True):
    """A wrapper with all that LIKE brings; removals have been carried out."""

    text: WrapperText
    inputs: tuple[WrapperInput, ...]
    directives: Mapping[str, Directive]
    fields: tuple[Field, ...]
    program: Program

    def value(self, name: str) -> Any:
        directive = self.directives.get(name)
        return None if directive is None else directive.value


def like_chain(text: WrapperText, program: Program) -> Iterator[WrapperText]:
    """Return the wrapper, the one that it is LIKE, and so on; raise a SettingError for a gap or a circle."""
    seen = [text.name]
    yield text
    while text.like is not None:
        if text.like.lower() in map(str.lower, seen):
            way = " LIKE ".join([*seen, text.like])
            raise SettingError(f"LIKE leads back to {text.like!r}: {way}")
        if len(seen) > LIKE_AT_MOST:
            raise SettingError(f"LIKE goes through more than {LIKE_AT_MOST} wrappers")
        text = text_named(text.like, program)
        seen.append(text.name)
        yield text


def merge(text: WrapperText, program: Program) -> MergedWrapper:
    """Return the wrapper, completed by the one that it is LIKE."""
    directives: dict[str, Directive] = {}
    fields: dict[str, Field] = {}
    inputs: tuple[WrapperInput, ...] = ()
    for each in reversed(list(like_chain(text, program))):
        inputs = inputs if each.inputs is None else each.inputs
        _take_over(directives, each)
        for field in each.fields:
            if isinstance(field, Removal):
                fields.pop(field.name, None)
            else:
                fields[field.name] = field
    said = {name: directive for name, directive in directives.items() if directive.value is not None}
    return MergedWrapper(text, inputs, said, tuple(fields.values()), program)


def _take_over(directives: dict[str, Directive], text: WrapperText) -> None:
    own = text.by_name
    if any(name in own for name in BODIES) or ("REQUEST" in own and own["REQUEST"].value.method == "GET"):
        # One kind of body replaces another, and a GET has none.
        for name in BODIES:
            directives.pop(name, None)
    if "REQUEST" in own:
        directives.pop("SAFE", None)
    directives.update(own)


# --- building ------------------------------------------------------------------------------------


def build(merged: MergedWrapper) -> Wrapper:
    """Return the wrapper of these texts; `checking` finds its mistakes."""
    extraction = extraction_of(merged)
    return Wrapper(
        merged.text.name,
        merged.inputs,
        request_of(merged),
        extraction,
        _paging_of(merged),
        _compiled_schema(extraction) or _schema_of(merged),
        file=whole_path(merged.text.body_span.source.name) if merged.text.body_span else "",
    )


def request_of(merged: MergedWrapper) -> RequestTemplate:
    line: RequestLine = merged.value("REQUEST") or RequestLine("GET", "")
    auth = merged.value("AUTH")
    robots = merged.value("ROBOTS")
    given = merged.directives.get("REQUEST")
    return RequestTemplate(
        line.method,
        line.url,
        headers=_pairs(merged.value("HEADERS")) or (),
        form=_pairs(merged.value("FORM")),
        json=_pairs(merged.value("JSON")),
        body=merged.value("BODY"),
        auth=None if auth is None else " ".join(auth),
        safe=bool(merged.value("SAFE")),
        robots=True if robots is None else robots,
        timeout_seconds=merged.value("TIMEOUT"),
        restart=merged.value("RESTART"),
        empty=tuple(sign for sign in merged.value("EMPTY") or () if isinstance(sign, int)),
        url_span=given.value_span if given else None,
    )


def _pairs(parts: Any) -> Any:
    return None if parts is None else tuple((part.name, part.value) for part in parts)


def extraction_of(merged: MergedWrapper) -> Extraction:
    choice: ReaderChoice = merged.value("READ") or ReaderChoice(DEFAULT_READER)
    paging: PagingText | None = merged.value("PAGING")
    each = merged.directives.get("EACH")
    proofs = _proofs(merged.directives.get("EMPTY"))
    return Extraction(
        choice.name,
        _options_in(choice, merged.program),
        each.value if each else None,
        merged.fields,
        paging.found if paging else None,
        merged.value("CHARSET"),
        bool(merged.value("OUTER")),
        tuple(text for text, _ in proofs),
        each.value_span if each else None,
        tuple(span for _, span in proofs),
    )


def _proofs(given: Directive | None) -> list[tuple[str, Span | None]]:
    """Return the selectors among what EMPTY says, each with its place."""
    if given is None:
        return []
    signs = zip_longest(given.value, given.spans[: len(given.value)])
    return [(sign, span) for sign, span in signs if isinstance(sign, str)]


def _options_in(choice: ReaderChoice, program: Program) -> dict[str, Any]:
    """Return the options of a reader; that of grammars gets the grammar in place of its name."""
    options = options_of(choice)
    if choice.name == GRAMMAR_READER:
        from aioflow.grammars import find_grammar

        with suppress(SettingError):  # reported where the wrapper is checked
            options["name"] = find_grammar(options.get("name"), program)
    return options


def options_of(choice: ReaderChoice) -> dict[str, Any]:
    """Return the words after a reader's name.

    One without argument is True, one with one is that argument; one with two, which may stand more than
    once, is a mapping from the first to the second.
    """
    options: dict[str, Any] = {}
    for option in choice.options:
        if len(option.arguments) == 2:
            key, value = option.arguments
            options.setdefault(option.name, {})[key] = value
        else:
            options[option.name] = option.arguments[0] if option.arguments else True
    return options


def _paging_of(merged: MergedWrapper) -> Paging | None:
    paging: PagingText | None = merged.value("PAGING")
    if paging is None:
        return None
    first = 0 if paging.kind == "offset" else 1
    return Paging(
        paging.kind,
        paging.parameter,
        first if paging.start is None else paging.start,
        1 if paging.step is None else paging.step,
        merged.value("MAX_PAGES") or MOST_PAGES,
        merged.value("MAX_PAGES") is not None,
    )


# --- schema --------------------------------------------------------------------------------------


def _compiled_schema(extraction: Extraction) -> Schema | None:
    """Return the types that a reader declares, if it can compile the extraction."""
    from aioflow.wrappers.readers.reader import compiled

    try:
        return getattr(compiled(extraction), "schema", None)
    except SettingError:
        return None  # reported where the wrapper is checked


def _schema_of(merged: MergedWrapper) -> Schema:
    from aioflow.wrappers.readers.reader import reader

    choice: ReaderChoice = merged.value("READ") or ReaderChoice(DEFAULT_READER)
    try:
        default = reader(choice.name).default_type
    except SettingError:
        default = None  # reported where the wrapper is checked
    names = tuple(field.name for field in merged.fields)
    return Schema(names, tuple(_type_of(field, default) for field in merged.fields))


def _type_of(field: Field, default: Type | None) -> Type | None:
    from aioflow.wrappers.processing import field_type

    if field.scope == "constant":
        return type_of_value(field.default)
    if field.scope == "response":
        default = _RESPONSE_TYPES[field.selector.partition(" ")[0]]
    try:
        return field_type(field, default)
    except SettingError:
        return None
