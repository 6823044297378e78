"""The grammar reader: records by a GRAMMAR item of the plan's files, `READ: grammar goods start list`.

Items are the records of the start rule, or the values of the variable that EACH names; fields name variables
of a record. Records that are settled leave while the rest of the page arrives, if no code of the start rule
may still change them, and no field needs the page.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import IncrementalNewlineDecoder
from typing import Any, ClassVar, NoReturn

from aioflow.errors import SettingError, suggestion
from aioflow.grammars import (
    GrammarError,
    GrammarRecords,
    GrammarText,
    ParsedSource,
    ParseError,
    ParseLimitError,
    ParseLimits,
    ParseStream,
    RuleMatch,
    SettledRecord,
    ValueCarrier,
    ValueShape,
)
from aioflow.relation import Row, Schema, Type, Value
from aioflow.wrappers.charsets import Charset, TextDecoder, check_charset
from aioflow.wrappers.definition import Extraction, Field
from aioflow.wrappers.loop_fairness import LOOP_SECONDS, HeavyPageError, is_limited
from aioflow.wrappers.page import Page
from aioflow.wrappers.readers.base import (
    CompiledExtractor,
    RowLayout,
    Slot,
    Traits,
    check_options,
    compile_extraction,
)
from aioflow.wrappers.readers.incremental import BadPageError, PieceReading, explained, unreadable, whole_text
from aioflow.wrappers.readers.reader import Found, PageHead

# A page of this size takes the matcher some milliseconds, and more if it has seen none like it.
_HEAVY_BYTES = 64 * 1024
# Less than reading a page may take by default, so that the parser says where it was.
_SECONDS = 9.0
_MEMORY_BYTES = 500_000_000
_OPTIONS = {
    "name": ("NAME, the name of a GRAMMAR item", lambda value: isinstance(value, GrammarText)),
    "start": ("start RULE", lambda value: isinstance(value, str)),
    "seconds": ("seconds 9", lambda value: isinstance(value, int | float) and value > 0),
    "solutions": ("solutions 2000", lambda value: isinstance(value, int) and value > 0),
}
_UNKNOWN = ValueShape("unknown")


class GrammarReader:
    """Reads pages with a grammar."""

    name: ClassVar[str] = "grammar"
    content_types: ClassVar[tuple[str, ...]] = ()
    default_type: ClassVar[Type | None] = None

    def compile(self, extraction: Extraction) -> GrammarExtractor:
        return GrammarExtractor(extraction)


class VariablePath:
    """The way from a record to a value: `price`, or `seller.name`; lists on the way are gone through."""

    __slots__ = ("shape", "steps")

    def __init__(self, steps: Sequence[str], shape: ValueShape) -> None:
        self.steps = steps
        self.shape = shape

    def found(self, value: Any) -> Any:
        """Return the value at the end; None if there is none."""
        for step in self.steps:
            if isinstance(value, list):
                value = [found for each in value if (found := _member(each, step)) is not None]
            else:
                value = _member(value, step)
        return value

    def every(self, value: Any) -> list[Any]:
        """Return the values at the end, those of a list one by one."""
        found = self.found(value)
        if isinstance(found, list):
            return found
        return [] if found is None or found == "" else [found]


def _member(value: Any, name: str) -> Any:
    if isinstance(value, Mapping):
        return value.get(name)
    return value if name == GrammarRecords.TEXT_ATTRIBUTE else None


class GrammarExtractor(CompiledExtractor[VariablePath]):
    """The variables of a grammar's records, as fields name them."""

    def __init__(self, extraction: Extraction) -> None:
        check_options("grammar", extraction.options, _OPTIONS)
        if extraction.charset is not None:
            check_charset(extraction.charset)
        self.grammar, self.records = _grammar_of(extraction)
        paths = _Paths(self.records, extraction.fields)
        compiled = compile_extraction(extraction, paths.of_field, Traits(None))
        _declare(compiled.layout)
        super().__init__(extraction, compiled)
        needs_page = compiled.layout.needs_page or compiled.next_page is not None or bool(compiled.empty)
        self.is_incremental = self.records.are_early and not needs_page

    def open(self, page: PageHead) -> GrammarReading:
        return GrammarReading(self, page)

    def explain(self, page: PageHead, body: bytes) -> Iterator[Found]:
        return _explained(self, page, body)

    def is_heavy(self, body: bytes) -> bool:
        text: GrammarText = self.extraction.options["name"]
        return text.blocks or len(body) >= _HEAVY_BYTES

    @property
    def limits(self) -> ParseLimits:
        """The limits of a parse here and now."""
        options = self.extraction.options
        seconds = min(LOOP_SECONDS, options.get("seconds", _SECONDS)) if is_limited() else None
        return ParseLimits(
            options.get("solutions", ParseLimits().live_solutions),
            options.get("seconds", _SECONDS) if seconds is None else seconds,
            _MEMORY_BYTES,
        )


def _grammar_of(extraction: Extraction) -> tuple[Any, GrammarRecords]:
    text = extraction.options.get("name")
    if not isinstance(text, GrammarText):
        raise SettingError("the reader grammar needs the name of a GRAMMAR item", setting="READ")
    try:
        grammar = text.grammar()
    except GrammarError as error:
        raise SettingError(f"the grammar {text.name!r} has mistakes:\n{error}", setting="READ") from None
    try:
        return grammar, GrammarRecords(grammar, extraction.options.get("start"), extraction.each)
    except SettingError as error:
        setting = {"start": "READ", "each": "EACH"}.get(error.setting or "")
        raise SettingError(error.message, setting=setting) from None


class _Paths:
    """Finds the variables that fields name, each in the record that it is a field of."""

    def __init__(self, records: GrammarRecords, fields: Iterable[Field]) -> None:
        self._records = records
        self._inner: dict[int, ValueShape] = {}
        self._note(fields, records.shape)

    def _note(self, fields: Iterable[Field], shape: ValueShape) -> None:
        for field in fields:
            self._inner[id(field)] = shape
            if field.fields:
                try:
                    found = self.of_field(field).shape
                except SettingError:
                    found = _UNKNOWN  # reported when the field is compiled
                self._note(field.fields, found.element or found)

    def of_field(self, field: Field) -> VariablePath:
        text = field.selector or field.name
        steps = text.split(".") if field.selector else [text]
        if field.name == "EACH" and id(field) not in self._inner:
            return VariablePath((), self._records.shape)
        is_page = field.scope == "page"
        shape = self._records.page_shape if is_page else self._inner.get(id(field), self._records.shape)
        offset = 0
        for step in steps:
            shape = self._member(shape, step, offset if field.selector else None)
            offset += len(step) + 1
        return VariablePath(steps, shape)

    def _member(self, shape: ValueShape, name: str, offset: int | None) -> ValueShape:
        shape = shape.element or shape
        if shape.kind == "unknown":
            return _UNKNOWN
        if shape.kind != "record":
            if name != GrammarRecords.TEXT_ATTRIBUTE:
                message = f"there is no {name!r}: the record is a text, and its only variable is 'value'"
                raise SettingError(message, offset=offset)
            return shape
        members = self._records.shapes.members(shape.rule)
        if name not in members:
            hint = suggestion(name, members) or f" (there are: {', '.join(members) or 'none'})"
            raise SettingError(f"the rule {shape.rule!r} has no variable {name!r}{hint}", offset=offset)
        return members[name]


def _declare(layout: RowLayout[VariablePath]) -> None:
    """Give the fields without a type that of their variables."""
    for slot in layout.slots:
        if slot.nested is not None:
            _declare(slot.nested)
        elif slot.selector is not None and slot.conversion.type is None:
            slot.conversion.type = slot.selector.shape.type
    layout.schema = Schema(layout.schema.names, tuple(slot.conversion.type for slot in layout.slots))


# --- finding -------------------------------------------------------------------------------------


class _Finder:
    """Values of variables as relations carry them."""

    def __init__(self, records: GrammarRecords) -> None:
        self._carrier = ValueCarrier(records.shapes)

    def find(self, slot: Slot[VariablePath], node: Any) -> Value:
        conversion = slot.conversion
        if conversion.matches == "first" and _is_whole(slot):
            return self._read(slot, slot.selector.found(node))
        every = [self._read(slot, each) for each in slot.selector.every(node)]
        if conversion.matches == "all":
            return [each for each in every if each is not None]
        if not every:
            return None
        return every[-1] if conversion.matches == "last" else every[0]

    def _read(self, slot: Slot[VariablePath], value: Any) -> Value:
        if isinstance(value, str):
            is_raw = any(word.name.lower() == "raw" for word in slot.field.processing)
            return (value if is_raw else " ".join(value.split())) or None
        return self._carrier.carried(value, slot.selector.shape)

    def each(self, slot: Slot[VariablePath], node: Any) -> list[Any]:
        return slot.selector.every(node)


def _is_whole(slot: Slot[VariablePath]) -> bool:
    """Return whether a list is the value, not the first of its values."""
    return slot.conversion.is_plain and not any(
        word.name.lower() == "first" for word in slot.field.processing
    )


# --- reading -------------------------------------------------------------------------------------


class _Decoder:
    """From the bytes of a page to its text, whose lines end with \\n."""

    def __init__(self, head: PageHead, charset: str | None) -> None:
        is_plain = head.content_type.startswith("text/plain")
        self._bytes = TextDecoder(head.content_type, charset, markup=not is_plain)
        self._lines = IncrementalNewlineDecoder(None, translate=True)

    @property
    def charset(self) -> Charset | None:
        return self._bytes.charset

    def feed(self, data: bytes) -> str:
        return self._lines.decode(self._bytes.feed(data))

    def end(self) -> str:
        return self._lines.decode(self._bytes.end(), final=True)


class GrammarReading(PieceReading[VariablePath]):
    """One page on its way in."""

    def __init__(self, extractor: GrammarExtractor, head: PageHead) -> None:
        decoder = _Decoder(head, extractor.extraction.charset)
        super().__init__(extractor, head, decoder, _Finder(extractor.records))
        self._grammar = extractor.grammar
        self._records = extractor.records
        self._read_by = extractor
        self._parts: list[str] = []
        self._stream: ParseStream | None = None
        self._root: dict[str, Any] = {}

    def _taken(self, text: str) -> list[Row]:
        if not self._read_by.is_incremental:
            self._parts.append(text)
            return []
        try:
            return self._settled(self._parse().feed(text))
        except ParseError as error:
            _fail(error)

    def _settled(self, records: Iterable[SettledRecord]) -> list[Row]:
        return self._rows([each.value for each in records if each.variable == self._records.variable])

    def _parse(self) -> ParseStream:
        """Return the parse of a page that is read as it comes."""
        if self._stream is None:
            # Only now it is known whether the page is read on the event loop.
            limits = self._read_by.limits
            self._stream = self._grammar.stream(self._records.start, limits=limits, keeps=False)
            self._know_page({})
        return self._stream

    def _rest(self) -> list[Row]:
        try:
            if self._read_by.is_incremental:
                stream = self._parse()
                stream.finish()
                return self._settled(stream.last_records())
            text = "".join(self._parts)
            parsed = self._grammar.parse(text, self._records.start, limits=self._read_by.limits)
            self._root = parsed.variables
            self._know_page(self._root)
            self._find_next(self._root)
            return self._rows(self._records.values(parsed))
        except ParseError as error:
            _fail(error)

    def _shows(self, proof: VariablePath) -> bool:
        return bool(proof.every(self._root))


def _fail(error: ParseError) -> NoReturn:
    """Have a page read elsewhere that takes too long on the event loop; no other can be read."""
    if isinstance(error, ParseLimitError) and is_limited():
        raise HeavyPageError from None
    raise BadPageError(error.message) from None


# --- explaining ----------------------------------------------------------------------------------


class _Traced:
    """A value, with the match of the rule that it is the record of, or where its text stands."""

    __slots__ = ("match", "span", "value")

    def __init__(self, value: Any, match: RuleMatch | None, span: tuple[int, int] | None = None) -> None:
        self.value = value
        self.match = match
        self.span = span


class _Origins:
    """Where in a page the values of variables stand."""

    def __init__(self, extractor: GrammarExtractor, text: str, parsed: ParsedSource) -> None:
        self._finder = _Finder(extractor.records)
        self._text = text
        # Values stay where they are while `parsed` has them. The innermost rule of a record has made it.
        self._matches = {id(each.value): each for each in _matches(parsed) if isinstance(each.value, dict)}
        self.root = _Traced(parsed.variables, parsed.match)

    def items(self, values: list[Any], variable: str) -> list[_Traced]:
        return self._traced(values, self.root, variable)

    def _traced(self, values: list[Any], owner: _Traced, variable: str) -> list[_Traced]:
        match = owner.match
        bindings = [each for each in match.bindings if each.variable == variable] if match else []
        spans: list[tuple[int, int] | None] = [(each.start, each.end) for each in bindings]
        if len(spans) != len(values):
            spans = [None] * len(values)
        found = [
            _Traced(each, self._matches.get(id(each)), span) for each, span in zip(values, spans, strict=True)
        ]
        if len(found) == 1 and found[0].match is None and found[0].value is owner.value:
            return [owner]
        return found

    def _owners(self, path: VariablePath, node: _Traced) -> list[_Traced]:
        """Return the records whose variable is the last step of a path."""
        owners = [node]
        for step in path.steps[:-1]:
            owners = [
                inner
                for owner in owners
                for inner in self._traced(VariablePath([step], _UNKNOWN).every(owner.value), owner, step)
            ]
        return owners

    def found(self, slot: Slot[VariablePath], node: _Traced) -> list[tuple[str, str]]:
        step = slot.selector.steps[-1]
        places: list[tuple[str, str]] = []
        for owner in self._owners(slot.selector, node):
            if not isinstance(owner.value, Mapping):
                places += [self._place("text", owner.span)] if owner.span else []
            elif owner.match is not None:
                bound = [each for each in owner.match.bindings if each.variable == step]
                name = f"{owner.match.rule}: {step}"
                places += [self._place(name, (each.start, each.end)) for each in bound]
                if not bound and step in owner.value:
                    places.append((f"{name}, computed by code", ""))
            elif step in owner.value:
                places.append((f"{step}, computed by code", ""))
        return places

    def _place(self, name: str, span: tuple[int, int]) -> tuple[str, str]:
        start, end = span
        line = self._text.count("\n", 0, start) + 1
        column = start - self._text.rfind("\n", 0, start)
        return f"{name}, line {line}, column {column}", self._text[start:end]

    def inner(self, slot: Slot[VariablePath], node: _Traced) -> list[_Traced]:
        return [
            each
            for owner in self._owners(slot.selector, node)
            for each in self._traced(
                VariablePath(slot.selector.steps[-1:], _UNKNOWN).every(owner.value),
                owner,
                slot.selector.steps[-1],
            )
        ]

    def value(self, slot: Slot[VariablePath], node: _Traced) -> Value:
        return self._finder.find(slot, node.value)


def _matches(parsed: ParsedSource) -> Iterator[RuleMatch]:
    waiting = [parsed.match] if parsed.match is not None else []
    while waiting:
        each = waiting.pop()
        yield each
        waiting.extend(each.children)


def _explained(extractor: GrammarExtractor, head: PageHead, body: bytes) -> Iterator[Found]:
    text = whole_text(_Decoder(head, extractor.extraction.charset), body)
    records = extractor.records
    try:
        parsed = extractor.grammar.parse(text, records.start, limits=extractor.limits, traces=True)
        origins = _Origins(extractor, text, parsed)
        items = origins.items(records.values(parsed), records.variable)
        yield from explained(extractor.compiled.layout, Page(head), origins, origins.root, items)
    except ParseError as error:
        raise unreadable(head, BadPageError(error.message)) from None
