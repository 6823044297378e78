"""What is wrong with the reading part of a wrapper: the reader, its selectors, paging."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from aioflow.errors import AioflowError, SettingError
from aioflow.source import Span
from aioflow.wrappers.definition import Extraction, Field
from aioflow.wrappers.findings import Findings
from aioflow.wrappers.language.pieces import PagingText, ReaderChoice
from aioflow.wrappers.language.places import place_in
from aioflow.wrappers.reading import Reader
from aioflow.wrappers.registry import reader
from aioflow.wrappers.resolving import Merged, extraction_of, request_of

_COUNTING = ("number", "offset")
# Their pages are one item unless EACH says otherwise; pages of other kinds are made of items.
_WHOLE_PAGES = ("html", "xml")


def check_reading(merged: Merged, findings: Findings) -> None:
    """Add every mistake and warning in what a wrapper reads."""
    _check_paging(merged, findings)
    _check_shape(merged, findings)
    read = merged.directives.get("READ")
    choice = read.value if read else None
    extraction = extraction_of(merged)
    try:
        chosen = reader(extraction.reader)
    except AioflowError as error:
        findings.add(str(error), choice.span if choice else None)
        return
    _ReaderCheck(chosen, extraction, choice or ReaderChoice(extraction.reader), findings).run()


def _check_paging(merged: Merged, findings: Findings) -> None:
    paging, most = merged.directives.get("PAGING"), merged.directives.get("MAX_PAGES")
    if most is not None and paging is None:
        findings.add("MAX_PAGES limits PAGING, and there is none", most.span)
    if paging is None:
        return
    text: PagingText = paging.value
    if text.kind in _COUNTING:
        ends = f"PAGING {text.kind} ends at a page without items"
        if _is_one_item(merged):
            findings.add(f"{ends}, and without EACH every page is one", text.span)
        elif merged.value("OUTER"):
            findings.add(f"{ends}, and OUTER makes one of it", text.span)


def _is_one_item(merged: Merged) -> bool:
    extraction = extraction_of(merged)
    is_whole = extraction.reader in _WHOLE_PAGES or (extraction.reader == "text" and not extraction.options)
    return extraction.each is None and is_whole


def _check_shape(merged: Merged, findings: Findings) -> None:
    outer = merged.directives.get("OUTER")
    is_one_item, extraction = _is_one_item(merged), extraction_of(merged)
    if outer is not None and outer.value and is_one_item and not request_of(merged).empty:
        findings.warn("OUTER is for pages without items, and without EACH every page is one", outer.span)
    if extraction.empty and is_one_item:
        message = "a selector in EMPTY is for pages without items, and without EACH every page is one"
        findings.warn(message, extraction.empty_spans[0])
    request = merged.value("REQUEST")
    if not merged.fields and request is not None and request.method == "GET":
        findings.warn(f"wrapper {merged.text.name!r} has no fields", merged.text.span)


class _ReaderCheck:
    """Has the reader compile what is wrong selector by selector, so that each wrong one is found."""

    def __init__(
        self, chosen: Reader, extraction: Extraction, choice: ReaderChoice, findings: Findings
    ) -> None:
        self._reader = chosen
        self._whole = extraction
        self._bare = replace(extraction, each=None, fields=(), next_page=None, empty=(), empty_spans=())
        self._choice = choice
        self._findings = findings

    def run(self) -> None:
        # Nearly all are sound, and then there is no need to look at each part.
        if self._error(self._whole) is not None:
            self._find_mistakes()

    def _find_mistakes(self) -> None:
        options_are_sound = self._check_options()
        bare, each_is_sound = self._bare, True
        if self._whole.each is not None:
            bare = replace(self._bare, each=self._whole.each)
            element = Field("EACH", self._whole.each, selector_span=self._whole.each_span)
            each_is_sound = self._compiles(bare, {"EACH": element}, self._whole.each_span)
            bare = bare if each_is_sound else self._bare
        sound = each_is_sound and options_are_sound
        for field in self._whole.fields:
            if each_is_sound or field.selector:
                sound = self._check_field(bare, field) and sound
        following = self._whole.next_page
        if following is not None:
            with_next = replace(bare, next_page=following)
            sound = self._compiles(with_next, {following.name: following}, following.selector_span) and sound
        for text, span in zip(self._whole.empty, self._whole.empty_spans, strict=True):
            proof = Field("EMPTY", text, selector_span=span)
            sound = self._compiles(replace(bare, empty=(text,)), {"EMPTY": proof}, span) and sound
        if sound:
            fields = {path: field for each in self._whole.fields for path, field in _paths(each)}
            self._compiles(self._whole, fields, self._choice.span)

    def _check_options(self) -> bool:
        """Find the options that are wrong, and go on without them."""
        error = self._error(self._bare)
        if error is None:
            return True
        sound: dict[str, Any] = {}
        reported = False
        for option in self._choice.options:
            candidate = {**sound, option.name: self._whole.options[option.name]}
            if self._compiles(replace(self._bare, options=candidate), {}, option.span):
                sound = candidate
            else:
                reported = True
        if not reported:
            self._report(error, None, self._choice.span)
        self._bare = replace(self._bare, options=sound)
        return False

    def _check_field(self, bare: Extraction, field: Field) -> bool:
        sound = True
        for variant in _variants(field):
            paths = dict(_paths(variant))
            *_, (path, leaf) = paths.items()
            place = leaf.selector_span or leaf.span
            error = self._error(replace(bare, fields=(variant,)))
            if error is None:
                continue
            sound = False
            self._report(error, paths.get(_setting(error)), place)
            if path.startswith(f"{_setting(error)}."):
                # What is around it hides what may be wrong with the field itself.
                self._compiles(replace(bare, fields=(leaf,)), {leaf.name: leaf}, place)
        return sound

    def _compiles(self, extraction: Extraction, fields: dict[str, Field], place: Span | None) -> bool:
        error = self._error(extraction)
        if error is not None:
            self._report(error, fields.get(_setting(error)), place)
        return error is None

    def _error(self, extraction: Extraction) -> AioflowError | None:
        try:
            self._reader.compile(extraction)
        except AioflowError as error:
            return error
        return None

    def _report(self, error: AioflowError, field: Field | None, place: Span | None) -> None:
        message = str(error)
        offset = error.offset if isinstance(error, SettingError) else None
        if field is not None:
            message = message.removeprefix(f"field {field.name!r}: ")
            place = field.selector_span or field.span or place
            if offset is not None and field.selector_span is not None:
                place = place_in(field.selector_span, offset)
        self._findings.add(message, place)


def _setting(error: AioflowError) -> str:
    return (error.setting or "") if isinstance(error, SettingError) else ""


def _variants(field: Field) -> Iterator[Field]:
    """The field itself, or for an embedded relation one for each field in it."""
    if not field.fields:
        yield field
    for inner in field.fields:
        for variant in _variants(inner):
            yield replace(field, fields=(variant,))


def _paths(field: Field, path: str = "") -> Iterator[tuple[str, Field]]:
    yield f"{path}{field.name}", field
    for inner in field.fields:
        yield from _paths(inner, f"{path}{field.name}.")
