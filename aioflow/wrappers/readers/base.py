"""The common parts of readers: compiled fields, the layout of rows, options, values of the whole page.

A reader compiles its selectors (of a type of its own, `S`) through `compile_extraction`, and fills rows
through `RowLayout.row` with a Finder that finds them in a page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

import msgspec
from msgspec.structs import replace

from aioflow.errors import SettingError, suggestion
from aioflow.relation import Relation, Row, Schema, Type, Value, is_empty, type_of_value
from aioflow.web.errors import ExtractionError
from aioflow.web.urls import without_userinfo
from aioflow.wrappers.conversions import DocumentKind
from aioflow.wrappers.dates import read_mail_date
from aioflow.wrappers.definition import Extraction, Field, IdentityCache
from aioflow.wrappers.loop_fairness import check
from aioflow.wrappers.page import Page
from aioflow.wrappers.processing import Conversion, compile_field
from aioflow.wrappers.readers.reader import PageHead

S = TypeVar("S")
HEAVY_BYTES = 256 * 1024


class Traits(msgspec.Struct, frozen=True):
    """The kinds of finds of a reader, for `compile_field`."""

    default: Type | None = Type.CHAR
    collapse: bool = False
    document: DocumentKind = "html"


class Slot(Generic[S]):
    """A field, compiled, and its place in the row. One with `nested` embeds a relation."""

    __slots__ = ("conversion", "convert", "field", "name", "nested", "place", "required", "selector")

    def __init__(
        self, place: int, field: Field, selector: S, conversion: Conversion, nested: RowLayout[S] | None
    ) -> None:
        self.place = place
        self.name = field.name
        self.field = field
        self.selector = selector
        self.conversion = conversion
        self.convert = conversion.convert
        self.required = conversion.required
        self.nested = nested

    def found_nothing(self, row: Row) -> bool:
        """Return whether nothing of the page is in the field: it is null, empty, or counts no match."""
        value = row[self.place]
        return is_empty(value) or (self.field.counts and value == 0)

    def missing(self, page: Page) -> ExtractionError:
        """Return the error of a required field that has no value in the row that is being made."""
        where = f"item {page.rows + 1}" if self.field.scope == "item" else "the page"
        selector = f" ({self.field.selector})" if self.field.selector else ""
        unread = " that can be read" if page.unreadable.get(self.name) else ""
        url = without_userinfo(page.head.url)
        return ExtractionError(f"{url}: {where} has no {self.name!r}{selector}{unread}, which is required")


class Finder(Protocol[S]):
    """The search for selectors in the page or in one item of it (`node` is of the reader's own kind)."""

    def find(self, slot: Slot[S], node: Any) -> Value:
        """Return the raw value for `slot.conversion`: None, one value, or a list if `matches` is "all"."""
        ...

    def each(self, slot: Slot[S], node: Any) -> Iterable[Any]:
        """Return the items of an embedded relation."""
        ...


class Frame:
    """The values that all rows of a page share: constant, response and page fields."""

    __slots__ = ("nested", "values")

    def __init__(self, values: list[Value], nested: dict[int, Frame]) -> None:
        self.values = values
        self.nested = nested


class RowLayout(Generic[S]):
    """The fields of a relation, compiled: in the order of the row, and by where their values come from."""

    def __init__(self, slots: Iterable[Slot[S]]) -> None:
        self.slots = tuple(slots)
        self.item = tuple(slot for slot in self.slots if slot.field.scope == "item")
        self.page = tuple(slot for slot in self.slots if slot.field.scope == "page")
        self.constant = tuple(slot for slot in self.slots if slot.field.scope == "constant")
        self.response = tuple(slot for slot in self.slots if slot.field.scope == "response")
        self.schema = Schema(
            tuple(slot.name for slot in self.slots), tuple(slot.conversion.type for slot in self.slots)
        )

    @property
    def needs_page(self) -> bool:
        """True if a field, of this relation or of one embedded in it, is looked for in the whole page."""
        return bool(self.page) or any(
            slot.nested is not None and slot.nested.needs_page for slot in self.slots
        )

    def frame(self, page: Page, root: Any, finder: Finder[S]) -> Frame:
        """Return the values that are the same for all rows; `root` is the page as a node."""
        nested = {
            slot.place: slot.nested.frame(page, root, finder)
            for slot in self.slots
            if slot.nested is not None
        }
        frame = Frame([None] * len(self.slots), nested)
        values = frame.values
        for slot in self.constant:
            values[slot.place] = slot.conversion.default
        for slot in self.response:
            values[slot.place] = self._checked(
                slot, slot.convert(response_value(slot.field, page.head), page), page
            )
        for slot in self.page:
            values[slot.place] = self.value(slot, root, frame, page, finder)
        return frame

    def row(self, node: Any, frame: Frame, page: Page, finder: Finder[S]) -> Row:
        """Return the row of one item; raise an ExtractionError when a required field has no value."""
        check()
        values = frame.values.copy()
        for slot in self.item:
            values[slot.place] = self.value(slot, node, frame, page, finder)
        page.rows += 1
        return tuple(values)

    def value(self, slot: Slot[S], node: Any, frame: Frame, page: Page, finder: Finder[S]) -> Value:
        """Return the value of one field in one item."""
        if slot.nested is not None:
            return self._embedded(slot, slot.nested, node, frame, page, finder)
        value = slot.convert(finder.find(slot, node), page)
        return value if value is not None or not slot.required else self._checked(slot, value, page)

    def _embedded(
        self, slot: Slot[S], nested: RowLayout[S], node: Any, frame: Frame, page: Page, finder: Finder[S]
    ) -> Value:
        inner, before = frame.nested[slot.place], page.rows
        rows = [nested.row(item, inner, page, finder) for item in finder.each(slot, node)]
        page.rows = before
        return Relation(nested.schema, rows) if rows or not slot.required else self._checked(slot, None, page)

    def _checked(self, slot: Slot[S], value: Value, page: Page) -> Value:
        if value is None and slot.required:
            raise slot.missing(page)
        return value


class Compiled(msgspec.Struct, Generic[S], frozen=True):
    """An Extraction, compiled. `each` is None where the page is the only item."""

    each: S | None
    layout: RowLayout[S]
    next_page: Slot[S] | None
    empty: tuple[S, ...] = ()  # selectors that prove that a page has no items

    def selectors(self) -> Iterator[S]:
        """Yield all selectors, including those of embedded relations."""
        if self.each is not None:
            yield self.each
        yield from self.empty
        slots = [*self.layout.slots, *(() if self.next_page is None else (self.next_page,))]
        while slots:
            slot = slots.pop()
            if slot.selector is not None:
                yield slot.selector
            slots += () if slot.nested is None else slot.nested.slots


def compile_extraction(extraction: Extraction, select: Callable[[Field], S], traits: Traits) -> Compiled[S]:
    """Return all selectors and words of an extraction.

    `select` compiles the selector of a field; the iterating element is given to it as a field named EACH.
    A SettingError names the field in `setting`: one of an embedded relation as `outer.inner`, a selector
    of EMPTY as `EMPTY`.
    """
    each = None
    if extraction.each is not None:
        field = Field("EACH", extraction.each, selector_span=extraction.each_span)
        each = _named("EACH", lambda: select(field))
    slots = _slots(extraction.fields, select, traits, "")
    next_page = None
    if extraction.next_page is not None:
        field = replace(extraction.next_page, scope="page")
        next_page = _slot(0, field, select, traits, "")
    return Compiled(each, RowLayout(slots), next_page, tuple(_proofs(extraction, select)))


def inside_items(extraction: Extraction) -> frozenset[int]:
    """Return the identities of the fields that are looked for in an item, and not in the whole page."""
    return frozenset(map(id, _inside(extraction.fields, extraction.each is not None)))


def _inside(fields: Iterable[Field], is_inside: bool) -> Iterator[Field]:
    for field in fields:
        if is_inside and field.scope == "item":
            yield field
        yield from _inside(field.fields, True)


def _proofs(extraction: Extraction, select: Callable[[Field], S]) -> Iterator[S]:
    for text in extraction.empty:
        # It is no field, and so it has no name.
        yield _named("EMPTY", partial(select, Field("", text, "page")))


def _slots(
    fields: tuple[Field, ...], select: Callable[[Field], S], traits: Traits, path: str
) -> Iterator[Slot[S]]:
    for place, field in enumerate(fields):
        yield _slot(place, field, select, traits, path)


def _slot(place: int, field: Field, select: Callable[[Field], S], traits: Traits, path: str) -> Slot[S]:
    name = f"{path}{field.name}"
    if field.fields:
        selector = _named(name, lambda: select(field))
        nested = RowLayout(_slots(field.fields, select, traits, f"{name}."))
        return Slot(place, field, selector, _relation(field), nested)
    if field.scope in ("constant", "response"):
        return Slot(place, field, _NO_SELECTOR, _named(name, lambda: _given(field, traits)), None)
    conversion = _named(
        name,
        lambda: compile_field(field, traits.default, collapse=traits.collapse, document=traits.document),
    )
    return Slot(place, field, _named(name, lambda: select(field)), conversion, None)


_NO_SELECTOR: Any = None
T = TypeVar("T")


def _named(name: str, make: Callable[[], T]) -> T:
    """Return the result of `make`; a SettingError names the field."""
    try:
        return make()
    except SettingError as error:
        raise SettingError(error.message, setting=name, offset=error.offset) from None


def _relation(field: Field) -> Conversion:
    """Return the conversion of an embedded relation, which has only a type."""
    conversion = compile_field(replace(field, fields=(), processing=()))
    conversion.type = Type.RELATION
    return conversion


# --- constants and the response ------------------------------------------------------------------

RESPONSE_PARTS = {"url": Type.CHAR, "status": Type.NUMBER, "date": Type.DATE, "header": Type.CHAR}


def _given(field: Field, traits: Traits) -> Conversion:
    if field.scope == "constant":
        return compile_field(field, type_of_value(field.default))
    part, _, name = field.selector.partition(" ")
    if part not in RESPONSE_PARTS:
        known = ", ".join(RESPONSE_PARTS)
        raise SettingError(
            f"unknown part of the response {part!r}{suggestion(part, RESPONSE_PARTS)} ({known})"
        )
    if part == "header" and not name.strip():
        raise SettingError('a header needs its name: response header "Last-Modified"')
    return compile_field(field, RESPONSE_PARTS[part], collapse=part == "header", document=traits.document)


def response_value(field: Field, head: PageHead) -> Value:
    """Return a field of the scope `response`, by its selector: url, status, date, or `header NAME`."""
    part, _, name = field.selector.partition(" ")
    if part == "url":
        return head.url
    if part == "status":
        return head.status
    return _answered(head) if part == "date" else header(head, name.strip())


class _Given:
    """The row of a response without a page to read: values that are known without one, and nulls."""

    def __init__(self, extraction: Extraction) -> None:
        known = ("constant", "response")
        self._fields = [
            (field, _given(field, Traits()) if field.scope in known and not field.fields else None)
            for field in extraction.fields
        ]

    def row(self, page: Page) -> Row:
        """Return the row; values of the response that cannot be read are noted in the page."""
        return tuple(
            None if conversion is None else self._value(field, conversion, page)
            for field, conversion in self._fields
        )

    def _value(self, field: Field, conversion: Conversion, page: Page) -> Value:
        if field.scope == "constant":
            return conversion.default
        return conversion.convert(response_value(field, page.head), page)


given_row = IdentityCache[Extraction, Callable[[Page], Row]](lambda extraction: _Given(extraction).row)


def header(head: PageHead, name: str) -> str | None:
    """Return a header of the answer, whatever the case of its name."""
    value = head.headers.get(name)
    if value is not None:
        return value
    folded = name.lower()
    return next((text for known, text in head.headers.items() if known.lower() == folded), None)


def _answered(head: PageHead) -> date:
    """Return the date that the response gives, else now."""
    return read_mail_date(header(head, "Date") or "") or datetime.now(UTC)


# --- extractors ----------------------------------------------------------------------------------


class CompiledExtractor(Generic[S]):
    """The part of an Extractor that is the same for all readers.

    It is pickled as its Extraction, without the places in the plan's text, and compiled again: the
    constructor of each takes the Extraction and nothing else.
    """

    is_incremental = False
    # The media types of a reader. A page of another type in which nothing is found is noted.
    content_types: tuple[str, ...] | None = None

    def __init__(self, extraction: Extraction, compiled: Compiled[S]) -> None:
        self.extraction = extraction
        self.compiled = compiled
        self.schema = compiled.layout.schema

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (without_spans(self.extraction),)

    def is_heavy(self, body: bytes) -> bool:
        """Return whether a page is better not read on the event loop."""
        return len(body) >= HEAVY_BYTES

    def note_nothing(self, page: Page) -> None:
        """Note that nothing was found in a page, which may be of another kind."""
        if self.content_types is not None:
            page.note_nothing(self.extraction.reader, self.content_types)

    def found_nothing(self, rows: Sequence[Row]) -> bool:
        """Return whether there are no rows, or a single one with nothing of the page in it."""
        if not rows:
            return True
        looked_for = (*self.compiled.layout.item, *self.compiled.layout.page)
        return len(rows) == 1 and bool(looked_for) and all(slot.found_nothing(rows[0]) for slot in looked_for)


def without_spans(extraction: Extraction) -> Extraction:
    """Return the same extraction, apart from the plan that it was written in."""
    following = extraction.next_page
    return replace(
        extraction,
        options=dict(extraction.options),
        fields=tuple(map(_field_without_spans, extraction.fields)),
        next_page=None if following is None else _field_without_spans(following),
        each_span=None,
        empty_spans=(),
    )


def _field_without_spans(field: Field) -> Field:
    return replace(
        field,
        processing=tuple(replace(word, span=None) for word in field.processing),
        fields=tuple(map(_field_without_spans, field.fields)),
        span=None,
        selector_span=None,
    )


def check_options(
    reader: str, options: Mapping[str, Any], known: Mapping[str, tuple[str, Callable[[Any], bool]]]
) -> None:
    """Raise a SettingError for an option that the reader does not know, or whose value is not right.

    `known` has for each option how it is written, and a test of its value.
    """
    for name, value in options.items():
        if name not in known:
            there = ", ".join(usage for usage, _ in known.values()) or "none"
            hint = suggestion(name, known) or f" (there are: {there})"
            raise SettingError(f"unknown option {name!r} of the reader {reader}{hint}", setting="READ")
        usage, is_right = known[name]
        if not is_right(value):
            raise SettingError(
                f"the option {name!r} of the reader {reader} is written: {usage}", setting="READ"
            )


def is_flag(value: Any) -> bool:
    """Return whether an option stands alone."""
    return value is True
