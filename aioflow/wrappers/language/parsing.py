"""The parser of WRAPPER items: it returns a WrapperText, or raises every mistake of the text at once."""

from __future__ import annotations

from collections.abc import Iterator

from aioflow.errors import PlanError, suggestion
from aioflow.language.mistakes import Mistakes
from aioflow.language.scanner import NAME, Token, show
from aioflow.plan import Scalar, is_name
from aioflow.relation import Type, type_of_value
from aioflow.source import Source, Span
from aioflow.wrappers.definition import Field, WrapperInput
from aioflow.wrappers.language.cutting import (
    Line,
    UnexpectedError,
    WrapperEntry,
    closing_token,
    entries_of,
    is_quoted,
    name_of,
    report_bad,
    tokens_of,
)
from aioflow.wrappers.language.directives import DirectiveReader
from aioflow.wrappers.language.fields import FieldReader, report_no_key, report_repeated
from aioflow.wrappers.language.wrapper_text import DIRECTIVES, Directive, Removal, WrapperText, near_directive

_TYPES = tuple(map(str, Type))
_WORDS = (*_TYPES, "optional")


class HeaderReader:
    """Reads inputs and LIKE; all mistakes of the header are reported."""

    def __init__(self, line: Line, mistakes: Mistakes) -> None:
        self._line = line
        self._mistakes = mistakes
        self.inputs: tuple[WrapperInput, ...] | None = None
        self.like: Token | None = None

    def read(self) -> None:
        try:
            if self._line.accept("("):
                self.inputs = tuple(self._read_inputs())
            if self._line.is_word("like"):
                self._line.take()
                self.like = self._line.word("the name of a wrapper")
            opening = "" if self.inputs is not None or self.like else "'(', "
            self._line.expect_end("'{'" if self.like else f"{opening}LIKE or '{{'")
        except UnexpectedError as mistake:
            mistake.report(self._mistakes)

    def _read_inputs(self) -> list[WrapperInput]:
        inputs: dict[str, WrapperInput] = {}
        while not self._line.accept(")"):
            if inputs and not self._line.accept(","):
                self._line.expect("',' or ')'")
            given = self._read_input(self._line.name("the name of an input"))
            if given.name in inputs:
                self._report(given, f"input {given.name!r} stands here twice")
            inputs[given.name] = given
        return list(inputs.values())

    def _read_input(self, token: Token) -> WrapperInput:
        name = name_of(token)
        kind: Type | None = None
        optional = False
        while not self._line.at_end and self._line.token.type == NAME and not self._line.is_word("like"):
            word = self._line.take()
            if word.text.lower() == "optional":
                optional = True
            elif word.text.lower() in _TYPES and kind is None:
                kind = Type(word.text.lower())
            else:
                self._report_word(word, kind)
        default: Scalar = None
        if self._line.accept("="):
            default = self._read_default(name, kind)
            optional = True
        given = WrapperInput(name, kind, optional, default, token.span)
        if not is_quoted(token) and not is_name(name):
            self._report(given, f"the name {name!r} stands in backticks: `{name}`")
        elif not name.strip() or set(name) & set("{}`\n"):
            self._report(given, "the name of an input cannot be empty or hold braces, backticks or line ends")
        return given

    def _read_default(self, name: str, kind: Type | None) -> Scalar:
        token, value = self._line.constant()
        found = None if isinstance(value, tuple) else type_of_value(value)
        if isinstance(value, tuple) or (kind and found and kind is not found):
            shown = "a list" if isinstance(value, tuple) else show(token)
            wanted = kind or "string, number, true, false or null"
            message = f"the default of {name!r} must be a {wanted}, not {shown}"
            self._mistakes.add(message, token.start, token.end)
            return None
        return value  # type: ignore[return-value]  # constants that are no list are scalars

    def _report_word(self, word: Token, kind: Type | None) -> None:
        hint = suggestion(word.text, _WORDS) or f" (there are: {', '.join(_WORDS)})"
        message = f"unknown type {word.text!r}{hint}"
        if kind is not None:
            message = f"expected ',', ')', 'optional' or '=' after the type, found {show(word)}"
        self._mistakes.add(message, word.start, word.end)

    def _report(self, given: WrapperInput, message: str) -> None:
        if given.span is not None:
            self._mistakes.add(message, given.span.start, given.span.end)


def parse_wrapper(name: str, header: str = "", body: str = "") -> WrapperText:
    """The wrapper that a header and a body say; a PlanError lists every mistake in them."""
    text = f"{header}\n{{\n{body}\n}}"
    source = Source(f"<WRAPPER {name}>", text)
    start = len(header) + 3
    return parse_item(name, Span(source, 0, len(header)), Span(source, start, start + len(body)))


def parse_item(name: str, header: Span, body: Span, *, header_is_scanned: bool = False) -> WrapperText:
    """The same for stretches of a source; `header_is_scanned` says that its bad tokens are reported."""
    mistakes, scanned = Mistakes(body.source), Mistakes(body.source)
    tokens = tokens_of(header)
    report_bad(tokens, scanned)
    reader = HeaderReader(Line(tokens, closing_token(header, "{")), mistakes)
    reader.read()
    directives, fields = _read_body(body, mistakes)
    found = mistakes.diagnostics()
    if not header_is_scanned:
        found = scanned.diagnostics() + found
    if found or scanned:
        raise PlanError(found)
    like = reader.like
    return WrapperText(
        name,
        reader.inputs,
        like.text if like else None,
        directives,
        fields,
        like_span=like.span if like else None,
        header_span=header,
        body_span=body,
    )


def _read_body(body: Span, mistakes: Mistakes) -> tuple[tuple[Directive, ...], tuple[Field | Removal, ...]]:
    tokens = tokens_of(body, dotted=True)
    report_bad(tokens, mistakes)
    entries = entries_of(tokens, closing_token(body, "}"), mistakes)
    directive_reader, field_reader = DirectiveReader(mistakes), FieldReader(mistakes)
    directives: list[Directive] = []
    fields: list[Field | Removal] = []
    for entry in entries:
        if _is_directive(entry):
            directive = directive_reader.read(entry) if entry.is_keyed else directive_reader.read_flag(entry)
            directives += [directive] if directive else []
        elif not entry.is_keyed:
            report_no_key(entry, mistakes)
        elif not _report_unknown(entry, mistakes):
            field = field_reader.read(entry)
            fields += [field] if field else []
    report_repeated(fields, mistakes)
    _report_words(fields, mistakes)
    return tuple(directives), tuple(fields)


def _is_directive(entry: WrapperEntry) -> bool:
    if not entry.tokens or entry.key.type != NAME or entry.key.text.upper() not in DIRECTIVES:
        return False
    return entry.is_keyed or (len(entry.tokens) == 1 and entry.opening is None)


def _report_unknown(entry: WrapperEntry, mistakes: Mistakes) -> bool:
    """A name in capitals that is nearly a directive is taken for one that is misspelt."""
    key = entry.key
    near = near_directive(key.text) if key.type == NAME else ""
    if not near:
        return False
    message = f"unknown directive {key.text!r}{near} A field of this name stands in backticks: `{key.text}`"
    mistakes.add(message, key.start, key.end)
    return True


# --- the words of fields -------------------------------------------------------------------------


def _report_words(fields: list[Field | Removal], mistakes: Mistakes) -> None:
    if not any(field.processing for field in _leaves(fields)):
        return
    # Imported late: most of the time goes into what a text without words does not need.
    from aioflow.wrappers.processing import processing_mistakes

    for field in _leaves(fields):
        for word, error in processing_mistakes(field):
            span = word.span if word is not None else field.span
            if span is not None:
                message = error.message.removeprefix(f"field {field.name!r}: ")
                is_unknown = word is not None and message.startswith("unknown word")
                end = span.start + len(word.name) if word is not None and is_unknown else span.end
                mistakes.add(message, span.start, end)


def _leaves(fields: tuple[Field, ...] | list[Field | Removal]) -> Iterator[Field]:
    for field in fields:
        if isinstance(field, Field):
            yield from _leaves(field.fields) if field.fields else (field,)
