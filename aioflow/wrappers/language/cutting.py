"""The cutter of wrapper bodies: it finds the entries, and gives each a reader for its tokens."""

from __future__ import annotations

import re
from typing import Any, NoReturn

import msgspec

from aioflow.language.mistakes import Mistakes
from aioflow.language.scanner import BACKTICKED, BAD, CONSTANT, END, NAME, Scanner, Token, found_after, show
from aioflow.plan import NAME_LENGTH_AT_MOST, Scalar
from aioflow.source import Span

_OPENING = {"(": ")", "[": "]"}
_LONGEST_NESTING = 50
_REST_OF_LINE = re.compile(r"[^\S\n]*")


class UnexpectedError(Exception):
    """Ends the reading of one entry; the mistake, unless it is reported already."""

    def __init__(self, message: str = "", start: int = 0, end: int = 0) -> None:
        super().__init__(message)
        self.message, self.start, self.end = message, start, end

    def report(self, mistakes: Mistakes, hint: str = "") -> None:
        if self.message:
            mistakes.add(self.message + hint, self.start, self.end)


class WrapperEntry(msgspec.Struct):
    """The tokens of an entry, its block if it has one, and the token that ends it."""

    tokens: list[Token]
    end: Token
    opening: Token | None = None
    block: list[WrapperEntry] = msgspec.field(default_factory=list)

    @property
    def key(self) -> Token:
        return self.tokens[0]

    @property
    def is_keyed(self) -> bool:
        return len(self.tokens) > 1 and self.tokens[1].text == ":" and is_key(self.key)


def is_key(token: Token) -> bool:
    """Return whether a token can name a field: a name, or anything in backticks or quotes."""
    if token.type == CONSTANT:
        return isinstance(token.value, str) or token.text.isalpha()
    return token.type in (NAME, BACKTICKED)


def is_quoted(token: Token) -> bool:
    """Return whether a name stands in backticks or quotes, and may so be anything."""
    return token.type == BACKTICKED or (token.type == CONSTANT and isinstance(token.value, str))


def name_of(token: Token) -> str:
    """The name that a token is, without backticks or quotes."""
    return token.value if isinstance(token.value, str) else token.text


# --- tokens --------------------------------------------------------------------------------------


def tokens_of(span: Span, *, dotted: bool = False) -> list[Token]:
    """The tokens of a stretch; with `dotted`, `a.b` is one name."""
    tokens: list[Token] = []
    for token in Scanner(span.source, span.start).tokens:
        if token.type == END or token.start >= span.end:
            return tokens
        if dotted and _joins(tokens, token):
            _join(tokens, token)
            continue
        tokens.append(token)
    raise AssertionError("a scanner never ends")


def report_bad(tokens: list[Token], mistakes: Mistakes) -> None:
    """Report what is wrong with the tokens themselves."""
    previous = ""
    for token in tokens:
        for message, start, end in token.problems:
            is_bare = previous in (":", "=") and message == f"unexpected '{token.text}'"
            hint = "; texts and selectors stand in quotes" if is_bare else ""
            mistakes.add(message + hint, token.start + start, token.start + end)
        previous = token.text


def _joins(tokens: list[Token], token: Token) -> bool:
    """Return whether a name follows a point that follows a name, without a gap."""
    return (
        len(tokens) > 1
        and token.type == NAME
        and tokens[-1].text == "."
        and tokens[-1].end == token.start
        and tokens[-2].type == NAME
        and tokens[-2].end == tokens[-1].start
        and len(tokens[-2].text) <= NAME_LENGTH_AT_MOST
    )


def _join(tokens: list[Token], token: Token) -> None:
    tokens.pop()
    first = tokens.pop()
    tokens.append(Token(NAME, f"{first.text}.{token.text}", first.start, first.source, first.first))


def closing_token(span: Span, mark: str) -> Token:
    """The brace behind a stretch, which ends its last entry."""
    gap = _REST_OF_LINE.match(span.source.text, span.end)
    behind = gap.end() if gap else span.end
    first = span.source.text[behind : behind + 1] != mark
    return Token("RIGHT_BRACE", mark, behind, span.source, first)


# --- entries -------------------------------------------------------------------------------------


def entries_of(tokens: list[Token], closing: Token, mistakes: Mistakes) -> list[WrapperEntry]:
    """The entries of a body: one a line, or several with `;` between them."""
    return _Cutter(tokens, closing, mistakes).read()


class _Cutter:
    def __init__(self, tokens: list[Token], closing: Token, mistakes: Mistakes) -> None:
        self._tokens = tokens
        self._closing = closing
        self._mistakes = mistakes
        self._position = 0
        self._is_lost = False  # past blocks that are nested too deep

    def read(self) -> list[WrapperEntry]:
        entries: list[WrapperEntry] = []
        while self._position < len(self._tokens):
            entries += self._block(0)
            if self._position < len(self._tokens):
                token = self._take()
                self._mistakes.add("'}' closes nothing", token.start, token.end)
        return entries

    @property
    def _token(self) -> Token:
        return self._tokens[self._position] if self._position < len(self._tokens) else self._closing

    def _take(self) -> Token:
        token = self._token
        self._position += 1
        return token

    def _block(self, depth: int) -> list[WrapperEntry]:
        """Entries up to the brace that closes the block, or the end."""
        entries: list[WrapperEntry] = []
        while self._token.text != "}":
            if self._token.text == ";":
                self._take()
                continue
            entries.append(self._entry(depth))
        return entries

    def _entry(self, depth: int) -> WrapperEntry:
        tokens: list[Token] = []
        open_brackets: list[str] = []
        while not self._ends(tokens, open_brackets):
            token = self._take()
            if token.text == "{":
                return self._with_block(WrapperEntry(tokens, token, token), depth)
            tokens.append(token)
            if token.text in _OPENING:
                open_brackets.append(_OPENING[token.text])
            elif open_brackets and token.text == open_brackets[-1]:
                open_brackets.pop()
        return WrapperEntry(tokens, self._token)

    def _ends(self, tokens: list[Token], open_brackets: list[str]) -> bool:
        token = self._token
        if token.text in (";", "}"):
            return True
        if not tokens or not token.first or token.text == "{":
            return False
        # A line goes on behind a comma or '=', and within brackets unless a new entry begins.
        if tokens[-1].text in (",", "="):
            return False
        following = self._tokens[self._position + 1 : self._position + 2]
        return not open_brackets or bool(following and following[0].text == ":")

    def _with_block(self, entry: WrapperEntry, depth: int) -> WrapperEntry:
        opening = entry.end
        if depth == _LONGEST_NESTING:
            self._mistakes.add(
                f"blocks are nested deeper than {_LONGEST_NESTING}", opening.start, opening.end
            )
            self._position = len(self._tokens)
            self._is_lost = True
            return entry
        entry.block = self._block(depth + 1)
        if self._position >= len(self._tokens):
            if not self._is_lost:
                self._mistakes.add("'{' is never closed", opening.start, opening.end)
            entry.end = self._closing
            return entry
        self._take()
        entry.end = self._token
        if self._token.text not in (";", "}") and not self._token.first:
            token = self._token
            message = f"expected the end of the line after '}}', found {show(token)}"
            if token.type != BAD:
                self._mistakes.add(message, token.start, token.end)
            while not self._ends([opening], []):
                self._take()
        return entry


# --- reading one entry ---------------------------------------------------------------------------


class Line:
    """Reads the tokens of an entry, or of a header, one by one."""

    def __init__(self, tokens: list[Token], end: Token, start: int = 0) -> None:
        self._tokens = tokens
        self._position = start
        self.end = end

    @property
    def token(self) -> Token:
        """The next token; behind the last one the token that ends the entry."""
        return self._tokens[self._position] if self._position < len(self._tokens) else self.end

    @property
    def at_end(self) -> bool:
        return self._position >= len(self._tokens)

    @property
    def previous(self) -> Token:
        return self._tokens[max(0, self._position - 1)]

    def peek(self) -> Token:
        following = self._position + 1
        return self._tokens[following] if following < len(self._tokens) else self.end

    def take(self) -> Token:
        token = self.token
        self._position += 1
        return token

    def accept(self, mark: str) -> bool:
        """Pass a mark if it is next."""
        if self.at_end or self.token.text != mark:
            return False
        self.take()
        return True

    def is_word(self, *words: str) -> bool:
        """Return whether the next token is one of these words, in any case."""
        return not self.at_end and self.token.type == NAME and self.token.text.lower() in words

    def expect(self, expected: str) -> NoReturn:
        """Report that something else was expected here."""
        token = self.token
        if token.type == BAD and not self.at_end:
            raise UnexpectedError
        if not self._position:
            raise UnexpectedError(f"expected {expected}, found {show(token)}", token.start, token.end)
        shown, start, end = found_after(self.previous, token)
        raise UnexpectedError(f"expected {expected} after {show(self.previous)}, found {shown}", start, end)

    def expect_end(self, expected: str = "the end of the line") -> None:
        if not self.at_end:
            self.expect(expected)

    def text(self, expected: str) -> Token:
        """A string."""
        if self.at_end or self.token.type != CONSTANT or not isinstance(self.token.value, str):
            self.expect(expected)
        return self.take()

    def name(self, expected: str) -> Token:
        """A name, or anything in backticks or quotes."""
        if self.at_end or not is_key(self.token):
            self.expect(expected)
        return self.take()

    def word(self, expected: str) -> Token:
        """A bare name."""
        if self.at_end or self.token.type != NAME:
            self.expect(expected)
        return self.take()

    def constant(self, expected: str = "a constant") -> tuple[Token, object]:
        """A scalar or a list of them, with its first token."""
        if not self.at_end and self.token.text == "[":
            return self._list()
        if self.at_end or self.token.type != CONSTANT:
            self.expect(expected)
        token = self.take()
        return token, token.value

    def _list(self) -> tuple[Token, object]:
        opening = self.take()
        values: list[object] = []
        while not self.accept("]"):
            if values and not self.accept(","):
                self.expect("',' or ']'")
            if self.at_end or self.token.type != CONSTANT:
                self.expect("a constant")
            values.append(self.take().value)
        return opening, tuple(values)

    def constants_since(self, first: Token) -> list[Token]:
        """The constants that were taken, from that token on."""
        taken = self._tokens[: self._position]
        return [token for token in taken if token.start >= first.start and token.type == CONSTANT]

    def scalars(self) -> list[Token]:
        """All constants that follow, as the arguments of a word."""
        found = []
        while not self.at_end and self.token.type == CONSTANT:
            found.append(self.take())
        return found


def values_of(tokens: list[Token]) -> tuple[Scalar, ...]:
    """The values of constants."""
    values: list[Any] = [token.value for token in tokens]
    return tuple(values)


_CHARACTER = re.compile(r"\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[\s\S])|[\s\S]")


def place_in(literal: Span, start: int, end: int | None = None) -> Span:
    """The place of characters of the value of a string literal; that of all of it when it is no string."""
    text = literal.source.text[literal.start : literal.end]
    is_raw = text[:1] in ("r", "R")
    start_of_quotes = 1 if is_raw else 0
    if text[start_of_quotes : start_of_quotes + 1] not in ("'", '"'):
        return literal
    width = 3 if text.startswith('"""', start_of_quotes) else 1
    begin, last = start_of_quotes + width, len(text) - width
    characters = (
        range(begin, last) if is_raw else (each.start() for each in _CHARACTER.finditer(text, begin, last))
    )
    offsets = [*characters, last]
    wanted_end = start + 1 if end is None else max(end, start + 1)
    first = offsets[min(start, len(offsets) - 1)]
    behind = offsets[min(wanted_end, len(offsets) - 1)]
    return Span(literal.source, literal.start + first, literal.start + max(behind, first + 1))
