"""From bytes to text and from text to tokens, and tokens as messages name them.

Comments are kept apart; a faulty token is reported only when it is read.
"""

from __future__ import annotations

import re
import unicodedata
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TypeAlias

from aioflow.language.literals import RAW_STRING, TIME_PATTERN, Problem, read_number, read_string, shorten
from aioflow.language.mistakes import Mistakes
from aioflow.plan import NAME_LENGTH_AT_MOST, NAME_PATTERN, RESERVED_WORDS, ParameterReference
from aioflow.source import Source, Span

SIZE_AT_MOST = 5_000_000
_BYTE_ORDER_MARK = "\ufeff"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
# Bytes that are not UTF-8 decode to lone surrogates, so they are found together with the rest.
_FORBIDDEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]|[\ud800-\udfff]+")
_ESCAPED_BYTES = range(0xDC80, 0xDD00)


def open_source(content: str | bytes, name: str) -> tuple[Source, Mistakes]:
    """Return a text ready to be read, and what is wrong with its characters.

    Line ends become "\\n" and forbidden characters "\\ufffd", so places stay as an editor shows them.
    """
    if len(content) > SIZE_AT_MOST:
        unit = "characters" if isinstance(content, str) else "bytes"
        return _refused(name, f"the file has {len(content):,} {unit}; at most {SIZE_AT_MOST:,} are allowed")
    if isinstance(content, bytes) and content.startswith(_UTF16_MARKS):
        return _refused(name, "this is UTF-16; save the file as UTF-8")
    text = content if isinstance(content, str) else content.decode("utf-8", errors="surrogateescape")
    text = plain_text(text)
    found = list(_FORBIDDEN.finditer(text))
    source = Source(name, _FORBIDDEN.sub(lambda match: "\ufffd" * len(match[0]), text) if found else text)
    mistakes = Mistakes(source)
    for match in found:
        mistakes.add(_describe(match[0]), match.start(), match.end())
    return source, mistakes


def plain_text(text: str) -> str:
    """Return a text without a byte order mark, and with Unix line ends in place of those of other systems."""
    return text.removeprefix(_BYTE_ORDER_MARK).replace("\r\n", "\n").replace("\r", "\n")


def _refused(name: str, message: str) -> tuple[Source, Mistakes]:
    mistakes = Mistakes(Source(name, ""))
    mistakes.add(message, 0)
    return mistakes.source, mistakes


def _describe(characters: str) -> str:
    codes = [ord(character) for character in characters]
    if codes[0] not in _ESCAPED_BYTES:
        return f"{name_character(characters[0])} cannot stand in a plan"
    shown = " ".join(f"{code & 0xFF:02X}" for code in codes[:4])
    if len(codes) == 1:
        return f"byte {shown} is not UTF-8"
    return f"bytes {shown}{' …' if len(codes) > 4 else ''} are not UTF-8"


def name_character(character: str) -> str:
    """Return a character that cannot be seen, in words: `character U+200B (ZERO WIDTH SPACE)`."""
    name = unicodedata.name(character, "") or _CONTROL_NAMES.get(character, "")
    return f"character U+{ord(character):04X}" + (f" ({name})" if name else "")


_CONTROL_NAMES = {"\0": "NUL", "\r": "CARRIAGE RETURN", "\f": "FORM FEED", "\x1b": "ESCAPE", "\x7f": "DELETE"}


# The terminals of plan.lark. KEY is a NAME that the structure around it makes one: `WAIT` in `{WAIT: e}`.
PUNCTUATION = {
    "(": "_OPEN",
    ")": "CLOSE",
    "{": "_LEFT_BRACE",
    "}": "RIGHT_BRACE",
    "[": "LEFT_BRACKET",
    "]": "RIGHT_BRACKET",
    ",": "_COMMA",
    ":": "_COLON",
    ";": "SEMICOLON",
    "=": "_EQUALS",
}
NAME, KEY, CONSTANT, PARAMETER, BACKTICKED = "NAME", "KEY", "CONSTANT", "PARAMETER", "BACKTICKED"
BAD, END = "BAD", "$END"

# Possessive quantifiers: a string that is not closed fails at once instead of trying every length.
_TOKEN = re.compile(
    rf"""[ \t]*+(?:
      (?P<NEWLINE>\n\s*+)
    | (?P<RAW>{RAW_STRING})
    | (?P<TIME>{TIME_PATTERN})
    | (?P<NAME>{NAME_PATTERN})
    | (?P<PUNCTUATION>[(){{}}\[\],:;=])
    | (?P<STRING>\"\"\"(?:[^"\\]|\\[\s\S]|"(?!\"\"))*+\"\"\"
        | (?!\"\"\")"(?:[^"\\\n]|\\.)*+"
        | '(?:[^'\\\n]|\\.)*+')
    | (?P<COMMENT>\#[^\n]*+ | //[^\n]*+ | /\*(?:[^*]|\*(?!/))*+\*/)
    | (?P<NUMBER>-?\.?[0-9][\w.+-]*+)
    | (?P<PARAMETER>\${NAME_PATTERN})
    | (?P<BACKTICKED>`[^`\n]*+`)
    | (?P<LOST>\"\"\" | /\*)
    | (?P<UNCLOSED>["'`][^\n]*+)
    | (?P<SPACE>\s++)
    | (?P<OTHER>[^\s\w"'`\#(){{}}\[\],:;=$/-]++ | [\s\S])
    )""",
    re.VERBOSE,
)
_BETWEEN_TOKENS = frozenset({"NEWLINE", "SPACE", "COMMENT"})


class Token:
    """A word, constant or mark. `first` tells that it is the first on its line."""

    __slots__ = ("end", "first", "problems", "source", "start", "text", "type", "value")

    def __init__(
        self, kind: str, text: str, start: int, source: Source, first: bool = False, value: object = None
    ) -> None:
        self.type = kind
        self.text = text
        self.start = start
        self.end = start + len(text)
        self.source = source
        self.first = first
        self.value = value
        self.problems: tuple[Problem, ...] = ()

    @property
    def span(self) -> Span:
        return Span(self.source, self.start, self.end)

    @property
    def is_word(self) -> bool:
        return self.type == NAME or self.text.lower() in RESERVED_WORDS

    @property
    def column(self) -> int:
        return self.source.position(self.start)[1]

    def is_keyword(self, keyword: str) -> bool:
        return self.type == NAME and self.text.upper() == keyword

    def __repr__(self) -> str:
        return f"Token({self.type}, {self.text!r}, {self.start})"


class Scanner:
    """The tokens of a source from an offset on, without end, and the comments between them."""

    def __init__(self, source: Source, start: int = 0) -> None:
        self.source = source
        self.comments: list[tuple[int, int]] = []
        # A string or comment that is never closed takes the rest of the text with it.
        self.lost = False
        self.tokens = self._scan(start)

    def _scan(self, start: int) -> Iterator[Token]:
        source, first = self.source, True
        for match in _TOKEN.finditer(source.text, start):
            kind = match.lastgroup or ""
            text = match[kind]
            if kind in _BETWEEN_TOKENS:
                first = first or "\n" in text
                if kind == "COMMENT":
                    self.comments.append(match.span(kind))
                continue
            begin = match.start(kind)
            if kind == "PUNCTUATION":
                token = Token(PUNCTUATION[text], text, begin, source, first)
            elif kind == "TIME" or (kind == "NAME" and _is_plain(text)):
                token = Token(NAME, text, begin, source, first)
            else:
                token = _special_token(kind, text, begin, source)
                token.first = first
            first = False
            self.lost = kind == "LOST"
            yield token
            if self.lost:
                break
        end = Token(END, "", len(source.text), source, first=True)
        while True:
            yield end


def _is_plain(name: str) -> bool:
    return name.lower() not in RESERVED_WORDS and len(name) <= NAME_LENGTH_AT_MOST


def _special_token(kind: str, text: str, start: int, source: Source) -> Token:
    if kind == "NAME" and text.lower() in RESERVED_WORDS:
        return Token(CONSTANT, text, start, source, value=RESERVED_WORDS[text.lower()])
    if kind in ("STRING", "RAW"):
        value, problems = read_string(text)
        token = Token(CONSTANT, text, start, source, value=value)
        token.problems = problems
        return token
    if kind == "NUMBER":
        number, problem = read_number(text)
        token = Token(CONSTANT, text, start, source, value=number)
        token.problems = ((problem, 0, len(text)),) if problem else ()
        return token
    if kind == "BACKTICKED":
        return _attribute_token(text, start, source)
    if kind in ("NAME", "PARAMETER"):
        reference = ParameterReference(text[1:]) if kind == "PARAMETER" else None
        token = Token(kind, text, start, source, value=reference)
        if len(text.removeprefix("$")) > NAME_LENGTH_AT_MOST:
            token.problems = ((_too_long(text), 0, len(text)),)
        return token
    token = Token(BAD, text, start, source)
    token.problems = ((_describe_bad(kind, text), 0, 1 if kind == "UNCLOSED" else len(text)),)
    return token


def _attribute_token(text: str, start: int, source: Source) -> Token:
    token = Token(BACKTICKED, text, start, source, value=text[1:-1])
    if len(text) == 2:
        token.problems = (("an attribute's name cannot be empty", 0, 2),)
    return token


def _too_long(name: str) -> str:
    return (
        f"the name {shorten(name)!r} has {len(name.removeprefix('$'))} characters; "
        f"at most {NAME_LENGTH_AT_MOST} are allowed"
    )


def _describe_bad(kind: str, text: str) -> str:
    if kind == "LOST":
        return (
            "the comment is never closed by '*/'" if text == "/*" else 'the string is never closed by \'"""\''
        )
    if kind == "UNCLOSED":
        if text[0] == "`":
            return "the name in backticks is not closed on its line"
        hint = '; text over several lines stands in """…"""' if text[0] == '"' else ""
        return f"the string is not closed on its line{hint}"
    if text[0] in "“”„«»‘’‚":
        return f"unexpected '{text[0]}'; strings stand in \"…\" or '…'"
    if text == "$":
        return "'$' must be followed by a parameter's name"
    if text.isprintable():
        return f"unexpected '{shorten(text)}'"
    return f"unexpected {name_character(next(each for each in text if not each.isprintable()))}"


# Called with a message and the offsets it concerns.
Report: TypeAlias = Callable[[str, int, int], None]


class Cursor:
    """Reads tokens one by one with a view ahead, and reports what is wrong with those that are read."""

    def __init__(self, source: Source, report: Report) -> None:
        self.source = source
        self.comments: list[tuple[int, int]] = []
        self._report = report
        self._start(0)
        self.previous: Token | None = None

    def _start(self, offset: int) -> None:
        self._scanner = Scanner(self.source, offset)
        self.token = next(self._scanner.tokens)
        self._ahead: deque[Token] = deque()

    @property
    def lost(self) -> bool:
        """True if the rest of the text vanished in a string or comment that is never closed."""
        return self._scanner.lost

    def peek(self, distance: int = 1) -> Token:
        """Return the token so many places after the next one."""
        while len(self._ahead) < distance:
            self._ahead.append(next(self._scanner.tokens))
        return self._ahead[distance - 1]

    def take(self) -> Token:
        token = self.token
        self.token = self._ahead.popleft() if self._ahead else next(self._scanner.tokens)
        if token.problems:
            for message, start, end in token.problems:
                self._report(message, token.start + start, token.start + end)
        self.previous = token
        return token

    def skip(self) -> None:
        """Pass a token without a word about it, in what is reported already."""
        self.token.problems = ()
        self.take()

    def give_back(self, token: Token) -> None:
        """Make the token taken last the next one again."""
        self._ahead.appendleft(self.token)
        self.token = token

    def jump(self, offset: int) -> None:
        """Go on reading at an offset; comments seen ahead of it belong to what is jumped over."""
        here = self.token.start
        self.comments += [comment for comment in self._scanner.comments if comment[0] < here]
        self._start(offset)

    def forget_comments(self, start: int, end: int) -> None:
        """Comments in this stretch belong to a text that is kept as it is."""
        comments = self._scanner.comments
        comments[:] = [comment for comment in comments if not start <= comment[0] < end]

    def leave(self) -> None:
        """Read nothing more, and count the rest as lost."""
        self.jump(len(self.source.text))
        self._scanner.lost = True

    def all_comments(self) -> list[tuple[int, int]]:
        return self.comments + self._scanner.comments


_MARKS = {terminal: f"'{mark}'" for mark, terminal in PUNCTUATION.items()}
_CONSTANTS = frozenset({CONSTANT, PARAMETER, "LEFT_BRACKET"})
# In the order in which a message lists them.
_LISTED = ("_OPEN", "_COMMA", "_COLON", "_EQUALS", "SEMICOLON", "CLOSE", "RIGHT_BRACKET", "RIGHT_BRACE")


def show(token: Token) -> str:
    """Return a token as it is quoted in a message."""
    if token.type == END:
        return "the end of the file"
    if token.type != NAME and token.text.lower() in RESERVED_WORDS:
        return f"the constant {token.text}"
    text = shorten(token.text.replace("\n", " "))
    return text if token.type in (CONSTANT, BACKTICKED) else f"'{text}'"


def found_after(previous: Token, token: Token) -> tuple[str, int, int]:
    """Return the text that follows a gap, and where to point: after the line when it ends there."""
    if token.type == END:
        return show(token), previous.end, previous.end + 1
    if token.first:
        return "the end of the line", previous.end, previous.end + 1
    return show(token), token.start, token.end


def expected(terminals: Collection[str], name: str, value: str) -> str:
    """Return the expected tokens in words; `name` and `value` are the words for names and constants."""
    wanted = []
    names = NAME in terminals or KEY in terminals
    if names and set(terminals) >= _CONSTANTS:
        wanted.append(value)
    elif names:
        wanted.append(name)
    elif CONSTANT in terminals:
        wanted.append("a constant")
    wanted += [_MARKS[terminal] for terminal in _LISTED if terminal in terminals]
    return enumerate_words(wanted) or "nothing more"


def enumerate_words(words: Sequence[str]) -> str:
    """`a, b or c`."""
    return " or ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))
