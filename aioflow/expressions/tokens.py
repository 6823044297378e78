"""The words of an expression: names, numbers, texts and signs, each with its place."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple, TypeAlias

from aioflow.errors import SettingError
from aioflow.pattern import pattern

LONGEST_EXPRESSION = 100_000

Kind: TypeAlias = Literal["name", "quoted", "number", "string", "sign", "end"]

KEYWORDS = frozenset({
    "and", "or", "not", "in", "between", "like", "ilike", "matches", "is", "null", "true", "false",
    "case", "when", "then", "else", "end", "as",
})  # fmt: skip

# `a-b` is one name. Names in backticks and both kinds of strings double their quote to contain it.
_TOKEN = pattern(
    r"""\s*(?:
      (?P<name>[^\W\d][\w-]*)
    | (?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
    | (?P<string>'(?:[^']|'')*'|"(?:[^"]|"")*")
    | (?P<quoted>`(?:[^`]|``)+`)
    | (?P<sign><=|>=|<>|!=|==|\|\||//|[-+*/%=<>(),.])
    | (?P<end>\Z)
    )""",
    re.VERBOSE,
)

_CLOSERS = {"'": "text", '"': "text", "`": "name"}
_HINTS = {
    "&": "; for both conditions write 'and'",
    "!": "; write 'not' or '!='",
    "|": "; write 'or', or '||' to join texts",
    "^": "; write power(a, b)",
    "“": "; strings stand in straight quotes",
    "”": "; strings stand in straight quotes",
    "‘": "; strings stand in straight quotes",
    "’": "; strings stand in straight quotes",
    "[": "; names of other characters stand in backticks",
    ";": "; an expression is not a statement",
    "\\": "; a quote inside a text is doubled",
}


class Token(NamedTuple):
    """A word; `keyword` is its lower-case form when it is one that has a meaning of its own."""

    kind: Kind
    text: str
    start: int
    end: int
    keyword: str

    @property
    def shown(self) -> str:
        """How a message names it."""
        if self.kind == "end":
            return "the end"
        return self.text if self.kind in ("string", "quoted") else f"'{self.text}'"

    @property
    def name(self) -> str:
        """The name that a plain or quoted name stands for."""
        return self.text[1:-1].replace("``", "`") if self.kind == "quoted" else self.text

    @property
    def string(self) -> str:
        """The text that a string stands for."""
        quote = self.text[0]
        return self.text[1:-1].replace(quote * 2, quote)


def tokenize(text: str) -> list[Token]:
    """All words of an expression, the last of kind `end`; a SettingError for what is no word."""
    if len(text) > LONGEST_EXPRESSION:
        raise SettingError(
            f"the expression is too long: {len(text):,} characters, {LONGEST_EXPRESSION:,} at most"
        )
    tokens: list[Token] = []
    place = 0
    while not tokens or tokens[-1].kind != "end":
        found = _TOKEN.match(text, place)
        if found is None:
            raise _no_word(text, place)
        kind: Kind = found.lastgroup  # type: ignore[assignment]  # the groups are the kinds
        word = found[kind]
        keyword = word if kind == "sign" else word.lower() if kind == "name" else ""
        place = found.end()
        tokens.append(Token(kind, word, place - len(word), place, keyword))
        if kind == "number" and (wrong := _WORD_CHARACTER.match(text, place)):
            raise _number_in_name(tokens[-1], text, wrong.end())
    return tokens


_WORD_CHARACTER = pattern(r"[\w.]+")
_SPACE = pattern(r"\s*")


def _no_word(text: str, place: int) -> SettingError:
    start = _SPACE.match(text, place).end()  # type: ignore[union-attr]  # matches anything
    character = text[start]
    if character in _CLOSERS:
        if text.startswith("``", start):
            return SettingError("a name in backticks is empty", offset=start)
        return SettingError(f"the {_CLOSERS[character]} that begins here has no end", offset=start)
    hint = _HINTS.get(character, "")
    return SettingError(f"unexpected character {character!r}{hint}", offset=start)


def _number_in_name(number: Token, text: str, end: int) -> SettingError:
    word = text[number.start : end]
    hint = "" if "." in word else f"; a name that begins with a digit stands in backticks: `{word}`"
    return SettingError(f"'{word}' is not a number{hint}", offset=number.start)
