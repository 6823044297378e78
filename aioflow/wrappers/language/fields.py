"""Fields: `name: page "selector" number "de" required`, constants, and embedded relations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec.structs import replace

from aioflow.errors import suggestion
from aioflow.language.mistakes import Mistakes
from aioflow.language.scanner import CONSTANT, NAME, Token, show
from aioflow.plan import is_name
from aioflow.source import Span
from aioflow.wrappers.definition import Field, Processing, Scope
from aioflow.wrappers.language.cutting import (
    Line,
    UnexpectedError,
    WrapperEntry,
    is_quoted,
    name_of,
    values_of,
)
from aioflow.wrappers.language.wrapper_text import DIRECTIVES, Removal

_RESPONSE = ("url", "status", "date", "header")
_PRESENCE = ("required", "optional", "default")


class FieldReader:
    """Reads the fields of a body or block, and reports what is wrong with them."""

    def __init__(self, mistakes: Mistakes) -> None:
        self._mistakes = mistakes

    def read(self, entry: WrapperEntry, is_nested: bool = False) -> Field | Removal | None:
        """The field of an entry that has a key and a colon; None when it is beyond understanding."""
        name = self._name(entry.key, is_nested)
        line = Line(entry.tokens, entry.opening or entry.end, 2)
        try:
            return self._read(name, entry, line, is_nested)
        except UnexpectedError as mistake:
            mistake.report(self._mistakes)
            # A mistake in a field does not hide those in its block.
            self.read_block(entry)
            return None

    def read_block(self, entry: WrapperEntry) -> tuple[Field, ...]:
        """The fields of an embedded relation."""
        fields: list[Field] = []
        for inner in entry.block:
            if not inner.is_keyed:
                report_no_key(inner, self._mistakes)
                continue
            read = self.read(inner, is_nested=True)
            if isinstance(read, Field):
                fields.append(read)
        report_repeated(fields, self._mistakes)
        return tuple(fields)

    def _name(self, key: Token, is_nested: bool) -> str:
        name = name_of(key)
        if key.type == NAME and is_nested and key.text.upper() in DIRECTIVES:
            message = f"{key.text!r} is a directive; a field of this name stands in backticks: `{key.text}`"
            self._report(key, message)
        elif not is_quoted(key) and not is_name(name):
            self._report(key, f"the name {name!r} stands in backticks: `{name}`")
        elif not name.strip():
            self._report(key, "the name of a field cannot be empty")
        return name

    def _read(self, name: str, entry: WrapperEntry, line: Line, is_nested: bool) -> Field | Removal:
        if line.is_word("none") and not entry.opening and len(entry.tokens) == 3:
            if is_nested:
                self._report(line.token, "'none' takes back a field that LIKE brings, not one of a block")
            return Removal(name, entry.key.span)
        if line.accept("="):
            return self._read_constant(name, entry, line)
        scope = self._read_scope(line)
        if scope == "response":
            field = self._read_response(name, entry, line)
        elif line.is_word("each"):
            return self._read_relation(name, scope, entry, line)
        else:
            field = self._read_selected(name, scope, entry, line)
        self._refuse_block(entry)
        return field

    def _refuse_block(self, entry: WrapperEntry) -> None:
        if entry.opening is not None:
            message = 'a block belongs to an embedded relation: name: each "selector" { … }'
            raise UnexpectedError(message, entry.opening.start, entry.opening.end)

    # --- the forms of a field -------------------------------------------------------------------

    def _read_constant(self, name: str, entry: WrapperEntry, line: Line) -> Field:
        token, value = line.constant()
        if isinstance(value, tuple):
            raise UnexpectedError("an attribute has one value, not a list", token.start, token.end)
        line.expect_end()
        self._refuse_block(entry)
        return Field(name, scope="constant", default=value, span=entry.key.span)

    def _read_scope(self, line: Line) -> Scope:
        if line.is_word("page"):
            line.take()
            return "page"
        if line.is_word("response"):
            line.take()
            return "response"
        return "item"

    def _read_response(self, name: str, entry: WrapperEntry, line: Line) -> Field:
        part = line.word("url, status, date or header")
        chosen = part.text.lower()
        if chosen not in _RESPONSE:
            hint = suggestion(chosen, _RESPONSE) or f" (there are: {', '.join(_RESPONSE)})"
            raise UnexpectedError(f"unknown part of the response {part.text!r}{hint}", part.start, part.end)
        span = part.span
        if chosen == "header":
            header = line.text("the name of a header in quotes")
            span = header.span
            chosen = f"header {header.value}"
        return self._with_words(
            Field(name, chosen, "response", span=entry.key.span, selector_span=span), line
        )

    def _read_relation(self, name: str, scope: Scope, entry: WrapperEntry, line: Line) -> Field:
        each = line.take()
        selector = line.text("a selector in quotes")
        start = Field(name, self._selector(selector), scope, span=entry.key.span, selector_span=selector.span)
        field = self._with_words(start, line)
        for word in field.processing:
            if word.span is not None:
                message = f"an embedded relation takes no word but 'required', found {word.name!r}"
                self._mistakes.add(message, word.span.start, word.span.end)
        if entry.opening is None:
            line.expect("'{'")
        fields = self.read_block(entry)
        if not fields and not entry.block:
            raise UnexpectedError(f"the relation {name!r} has no fields", each.start, each.end)
        return replace(field, processing=(), default=None, fields=fields)

    def _read_selected(self, name: str, scope: Scope, entry: WrapperEntry, line: Line) -> Field:
        selector, span = "", None
        if not line.at_end and line.token.type == CONSTANT:
            token = line.take()
            if not isinstance(token.value, str):
                hint = f"a constant is written '{entry.key.text}: = {token.text}'"
                message = f"expected a selector in quotes, found {show(token)}; {hint}"
                raise UnexpectedError(message, token.start, token.end)
            selector, span = self._selector(token), token.span
        return self._with_words(Field(name, selector, scope, span=entry.key.span, selector_span=span), line)

    def _selector(self, token: Token) -> str:
        selector = str(token.value)
        if not selector.strip():
            self._report(token, "an empty selector finds nothing")
        return selector

    # --- words ----------------------------------------------------------------------------------

    def _with_words(self, field: Field, line: Line) -> Field:
        required, default, presence = False, None, None
        processing: list[Processing] = []
        for word, arguments in _words(line):
            if word.text.lower() not in _PRESENCE:
                processing.append(_processing(word, arguments))
                continue
            if presence is not None:
                message = f"{presence.text!r} stands here already; {word.text!r} cannot be added"
                self._report(word, message)
            presence = word
            if word.text.lower() == "optional":
                # Some readers make a difference between a field that is not there and one without a value.
                processing.append(_processing(word, []))
            required = required or word.text.lower() == "required"
            default = self._presence(word, arguments, default)
        return replace(field, processing=tuple(processing), required=required, default=default)

    def _presence(self, word: Token, arguments: list[Token], default: Any) -> Any:
        wanted = 1 if word.text.lower() == "default" else 0
        if len(arguments) != wanted:
            takes = "one constant" if wanted else "nothing"
            place = arguments[wanted] if len(arguments) > wanted else word
            self._report(place, f"{word.text!r} takes {takes} behind it")
        elif wanted:
            if arguments[0].value is None:
                self._report(arguments[0], "a field without a value is null anyway; leave out 'default null'")
            return arguments[0].value
        return default

    def _report(self, token: Token, message: str) -> None:
        self._mistakes.add(message, token.start, token.end)


def read_processing(line: Line, until: tuple[str, ...] = ()) -> tuple[Processing, ...]:
    """Words that change a value, up to the end of the line or one of these words."""
    processing = []
    for word, arguments in _words(line, until):
        if word.text.lower() in _PRESENCE:
            raise UnexpectedError(f"{word.text!r} is for fields only", word.start, word.end)
        processing.append(_processing(word, arguments))
    return tuple(processing)


def _words(line: Line, until: tuple[str, ...] = ()) -> Iterator[tuple[Token, list[Token]]]:
    """Words, each with the constants behind it."""
    while not line.at_end and not line.is_word(*until):
        word = line.word("a word such as 'number'")
        yield word, line.scalars()


def _processing(word: Token, arguments: list[Token]) -> Processing:
    end = arguments[-1].end if arguments else word.end
    return Processing(word.text.lower(), values_of(arguments), Span(word.source, word.start, end))


def report_repeated(fields: Iterable[Field | Removal], mistakes: Mistakes) -> None:
    """Two fields of one name."""
    first: dict[str, Field | Removal] = {}
    for field in fields:
        known = first.setdefault(field.name, field)
        if known is not field and field.span is not None and known.span is not None:
            message = f"field {field.name!r} stands here twice; the first is in line {known.span.line}"
            mistakes.add(message, field.span.start, field.span.end)


def report_no_key(entry: WrapperEntry, mistakes: Mistakes) -> None:
    """An entry that does not begin with a name and a colon."""
    for inner in entry.block:
        if not inner.is_keyed:
            report_no_key(inner, mistakes)
    if not entry.tokens:
        if entry.opening is not None:
            mistakes.add("expected a name and ':' before '{'", entry.opening.start, entry.opening.end)
        return
    try:
        line = Line(entry.tokens, entry.opening or entry.end)
        line.name("a directive or the name of a field")
        line.expect("':'")
    except UnexpectedError as mistake:
        mistake.report(mistakes)
