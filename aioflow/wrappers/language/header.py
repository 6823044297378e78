"""The header of a wrapper: `(city char, max-price number optional) LIKE other`."""

from __future__ import annotations

from aioflow.errors import suggestion
from aioflow.language.mistakes import Mistakes
from aioflow.language.scanner import NAME, Token
from aioflow.language.words import show
from aioflow.plan import Scalar, is_name
from aioflow.relation import Type, type_of_value
from aioflow.wrappers.definition import WrapperInput
from aioflow.wrappers.language.cutting import Line, UnexpectedError, is_quoted, name_of

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
