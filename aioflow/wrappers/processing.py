"""The processing of a field: from the finds of a selector to the value of an attribute.

Readers call `compile_field` once for each field, and `Conversion.convert` for each value. The words work in
the order in which they stand: on one value, or on each of several (`all`, `join`, `count`, `split`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal, TypeAlias

from aioflow.errors import SettingError
from aioflow.relation import Relation, Type, Value
from aioflow.wrappers.conversions import (
    ConversionWord,
    DocumentKind,
    Step,
    as_text,
    constant_of,
    join_step,
    resolve_url,
    split_step,
    word_named,
)
from aioflow.wrappers.definition import Field, Processing
from aioflow.wrappers.loop_fairness import check
from aioflow.wrappers.page import Page

Matches: TypeAlias = Literal["first", "last", "all"]
Source: TypeAlias = Literal["text", "markup"]
# The matches of a reader (None: nothing; a list if every match was asked for) and its page -> the value.
Convert: TypeAlias = Callable[[Value, Page], Value]


class Conversion:
    """A field's words, compiled.

    The reader looks at `matches` and `source` to know what to find: the first, the last or every match,
    given as a list; its text, or its source text (outer HTML, an XML element, JSON) for a document.
    `convert` turns that into the value: None when nothing was found and there is no default. A match
    that cannot be read is None too, and noted in the page under the field's name. Where it
    `only_counts` matches, it does not look at them.
    """

    __slots__ = (
        "collapse",
        "convert",
        "default",
        "is_plain",
        "matches",
        "name",
        "only_counts",
        "required",
        "source",
        "type",
    )

    def __init__(self, field: Field, words: _Compiled, default: Value, required: bool) -> None:
        self.name = field.name
        self.type = words.type
        self.matches: Matches = words.matches
        self.source: Source = words.source
        self.default = default
        self.required = required
        self.collapse = words.collapse
        self.only_counts = words.only_counts
        # Nothing is to be done to what was found, but whitespace collapsed if `collapse` says so.
        self.is_plain = not words.steps and not words.many and default is None
        self.convert: Convert = _converter(self, words)


def compile_field(
    field: Field, default: Type | None = None, *, collapse: bool = False, document: DocumentKind = "html"
) -> Conversion:
    """Return the conversion of a field; a SettingError for a mistake in its words has the field as `setting`.

    `default` is the type of a field without a type word. A reader that says char gives texts only; one
    that says None gives numbers and booleans as well. With `collapse` runs of whitespace become one
    space and a blank text is null, unless the field says `raw`. `document` is what the reader reads.
    """
    for _, mistake in processing_mistakes(field, default, document=document):
        raise mistake
    words = _Compiled(field, default, collapse, document)
    constant, required = _presence(field)
    return Conversion(field, words, constant_of(constant, words.type), required)


def field_type(field: Field, default: Type | None = None) -> Type | None:
    """Return the type of a field's attribute; None where only the page knows it."""
    if field.fields:
        return Type.RELATION
    return compile_field(field, default).type


def check_processing(field: Field) -> None:
    """Raise a SettingError for the first mistake in a field's words."""
    for _, mistake in processing_mistakes(field):
        raise mistake


def processing_mistakes(
    field: Field, default: Type | None = None, *, document: DocumentKind = "html"
) -> Iterator[tuple[Processing | None, SettingError]]:
    """Yield every mistake in a field's words, each with the word (None: the field as a whole)."""
    sound = True
    for word in field.processing:
        try:
            word_named(word).check(word.arguments)
        except SettingError as error:
            sound = False
            yield word, _of_field(field, error)
    if not sound:
        return
    yield from _doubled_types(field)
    try:
        words = _Compiled(field, default, False, document)
        constant_of(_presence(field)[0], words.type)
    except _WordError as error:
        yield error.word, _of_field(field, error)
    except SettingError as error:
        yield None, _of_field(field, error)


class _WordError(SettingError):
    """A word that does not go with those around it."""

    def __init__(self, word: Processing, message: str) -> None:
        super().__init__(message)
        self.word = word


def _of_field(field: Field, error: SettingError) -> SettingError:
    return SettingError(f"field {field.name!r}: {error.message}", setting=field.name)


def _doubled_types(field: Field) -> Iterator[tuple[Processing, SettingError]]:
    typed = [word for word in field.processing if word_named(word).is_type]
    for word in typed[1:]:
        message = f"field {field.name!r}: it is {typed[0].name!r} already, {word.name!r} cannot be added"
        yield word, SettingError(message, setting=field.name)


def _presence(field: Field) -> tuple[Value, bool]:
    """Default and whether the field is required, which may be said among the words as well."""
    default, required = field.default, field.required
    for word in field.processing:
        name = word.name.lower()
        if name == "default":
            default = word.arguments[0]
        elif name == "required":
            required = True
        elif name == "optional" and required:
            raise _WordError(word, "it is required already, 'optional' cannot be added")
    return default, required


# --- the words of one field ----------------------------------------------------------------------


class _Compiled:
    """The steps that the words of a field make, and what is known of the value between them."""

    def __init__(self, field: Field, default: Type | None, collapse: bool, document: DocumentKind) -> None:
        names = [word.name.lower() for word in field.processing]
        self.steps: list[Step] = []
        self.collapse = collapse and "raw" not in names
        self.matches: Matches = "first"
        self.source: Source = "text"
        self.type = default
        self.many = self._begins_with_many(field)
        self._field = field
        self._document = document
        self._reduced = False
        self.only_counts = False
        if self.many:
            self.matches = "all"
        for word in field.processing:
            self._add(word)
        if self.many:
            self._embed()

    def _begins_with_many(self, field: Field) -> bool:
        """Return whether every match is wanted: for `all`, and for what works on several before any split."""
        for word in field.processing:
            name = word.name.lower()
            if name in ("all", "relation"):
                return True
        for word in field.processing:
            name = word.name.lower()
            if name in ("join", "count"):
                return True
            if name in ("first", "last") or _splits(word):
                return False
        return False

    def _add(self, word: Processing) -> None:
        name = word.name.lower()
        if name in _REDUCERS:
            self._reduce(word, name)
        elif _splits(word):
            self._split(word)
        else:
            self._convert(word, word_named(word))

    def _convert(self, word: Processing, meaning: ConversionWord) -> None:
        if meaning.make is None:
            return
        if meaning.takes_text and self.type is not Type.CHAR:
            self._step(as_text)
            self.type = Type.CHAR
        if meaning.document is not None:
            self._read_document(meaning.document)
        self._step(meaning.make(word.arguments, self._document))
        self.type = meaning.type or self.type

    def _read_document(self, kind: str) -> None:
        self.collapse = False
        if kind in ("any", self._document):
            self.source = "markup"

    def _split(self, word: Processing) -> None:
        if self.type is not Type.CHAR:
            self._step(as_text)
            self.type = Type.CHAR
        split = split_step(word.arguments)
        if self.many:
            self.steps.append(lambda values, page: [part for value in values for part in split(value, page)])
        else:
            self.steps.append(split)
            self.many = True

    def _reduce(self, word: Processing, name: str) -> None:
        if not self.many:
            if name in ("join", "count") or self._reduced:
                raise _WordError(word, f"{name!r} stands where there is one value only")
            self._reduced = True
            self.matches = "last" if name == "last" else "first"
            return
        self.many, self._reduced = False, True
        if name == "count":
            self.only_counts = not self.steps
            self.steps.append(lambda values, page: len(values))
            self.type = Type.NUMBER
        elif name == "join":
            if self.type is not Type.CHAR:
                self.many = True
                self._step(as_text)
                self.many = False
            self.steps.append(join_step(word.arguments))
            self.type = Type.CHAR
        else:
            place = -1 if name == "last" else 0
            self.steps.append(lambda values, page: values[place] if values else None)

    def _step(self, step: Step) -> None:
        self.steps.append(_each(step, self._field.name) if self.many else step)

    def _embed(self) -> None:
        """Several values to the end: a list of them."""
        kind = self.type
        self.steps.append(lambda values, page: Relation.of_values(values, kind))
        self.type = Type.RELATION


_REDUCERS = frozenset({"join", "count", "first", "last"})


def _splits(word: Processing) -> bool:
    """Return whether the word makes several values of one."""
    return word.name.lower() == "split" and len(word.arguments) < 2


def _each(step: Step, name: str) -> Step:
    """Return the step on each of several values; those that cannot be read are left out, and noted."""

    def on_each(values: Value, page: Page) -> Value:
        kept = []
        for value in values:
            check()
            result = step(value, page)
            if result is None:
                page.note_unreadable(name)
            else:
                kept.append(result)
        return kept

    return on_each


# --- converting ----------------------------------------------------------------------------------


def collapsed(text: str) -> str | None:
    """Return the text with one space for each run of whitespace; None when nothing is left."""
    return " ".join(text.split()) or None


def _converter(conversion: Conversion, words: _Compiled) -> Convert:
    steps, default, name = tuple(words.steps), conversion.default, conversion.name
    if conversion.matches == "all":
        return _converter_of_many(conversion, steps)
    if conversion.is_plain:
        return _plain_collapsed if words.collapse else _plain
    if steps == (resolve_url,) and default is None:
        return _url
    collapses = words.collapse
    if len(steps) == 1:
        return _converter_by_one(conversion, steps[0], collapses)

    def convert(raw: Value, page: Page) -> Value:
        if collapses and raw is not None:
            raw = " ".join(raw.split()) or None
        if raw is None:
            return default
        for step in steps:
            raw = step(raw, page)
            if raw is None:
                page.note_unreadable(name)
                return default
        return raw

    return convert


def _converter_by_one(conversion: Conversion, step: Step, collapses: bool) -> Convert:
    """Return a faster conversion for most fields."""
    default, name = conversion.default, conversion.name

    def convert(raw: Value, page: Page) -> Value:
        if raw is None or (collapses and not (raw := " ".join(raw.split()))):
            return default
        value = step(raw, page)
        if value is None:
            page.note_unreadable(name)
            return default
        return value

    return convert


def _converter_of_many(conversion: Conversion, steps: tuple[Step, ...]) -> Convert:
    default, required = conversion.default, conversion.required
    collapses = conversion.collapse and not conversion.only_counts
    counts = conversion.type is Type.NUMBER and not conversion.required

    def convert(raw: Value, page: Page) -> Value:
        values = [] if raw is None else [value for value in raw if value is not None]
        if collapses:
            values = [text for value in values if (text := collapsed(value)) is not None]
        if not values and (required or (default is not None and not counts)):
            return default
        value: Value = values
        for step in steps:
            value = step(value, page)
            if value is None:
                return default
        return value

    return convert


def is_only_url(conversion: Conversion) -> bool:
    """Return whether a conversion does nothing but resolve one link."""
    return conversion.convert is _url


def _plain(raw: Value, page: Page) -> Value:
    return raw


def _plain_collapsed(raw: Value, page: Page) -> Value:
    return None if raw is None else " ".join(raw.split()) or None


def _url(raw: Value, page: Page) -> Value:
    """Return a link, resolved; a link that leads nowhere is null, but no mistake in the page."""
    return None if raw is None else page.resolve(raw)
