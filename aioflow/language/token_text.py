"""Tokens as messages name them: the one that was found, and those that were expected."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from aioflow.language.literals import shorten
from aioflow.language.scanner import BACKTICKED, CONSTANT, END, KEY, NAME, PARAMETER, PUNCTUATION, Token
from aioflow.plan import RESERVED_WORDS

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
