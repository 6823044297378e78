"""`like` and `matches`: every pattern takes time linear in the length of the text."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import lru_cache
from typing import Any, TypeAlias

from aioflow.errors import SettingError
from aioflow.values.counters import BAD_PATTERN, TEXT_TOO_LONG, UncomputableError

LONGEST_PATTERN = 10_000
# Matching costs at most about (size of the compiled pattern) x (length of the text) steps; this many take
# about a second in the slowest engine that re2 falls back to.
MOST_STEPS = 80_000_000
_PATTERN_MEMORY = 1 << 20

Test: TypeAlias = Callable[[str], bool]


class Pattern:
    """A compiled regular expression (RE2 syntax)."""

    __slots__ = ("_size", "regexp")

    def __init__(self, pattern: str, ignore_case: bool = False) -> None:
        import re2  # takes 10 ms to load, which plans without patterns save

        options = re2.Options()
        options.log_errors = False
        options.max_mem = _PATTERN_MEMORY
        options.case_sensitive = not ignore_case
        try:
            self.regexp: Any = re2.compile(well_formed(pattern), options)
        except re2.error as error:
            raise SettingError(f"bad pattern {pattern!r}: {_reason(error)}") from None
        self._size: int = max(1, self.regexp.programsize)

    def search(self, text: str) -> Any:
        """Return the first match, or None."""
        return self.regexp.search(self.checked(text))

    def found(self, text: str) -> bool:
        return self.regexp.search(self.checked(text)) is not None

    def steps(self, text: str) -> int:
        """Return the greatest number of steps that matching takes."""
        return len(text) * self._size

    def checked(self, text: str) -> str:
        """Return the text as re2 can read it, if it is not too long for this pattern."""
        if self.steps(text) > MOST_STEPS:
            raise UncomputableError(TEXT_TOO_LONG)
        return text if text.isascii() else well_formed(text)


def _check_length(pattern: str) -> None:
    if len(pattern) > LONGEST_PATTERN:
        raise SettingError(
            f"the pattern is too long: {len(pattern):,} characters, {LONGEST_PATTERN:,} at most"
        )


def _reason(error: Exception) -> str:
    reason = error.args[0] if error.args else error
    return reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)


def well_formed(text: str) -> str:
    """Return the text without lone surrogates, which JSON can carry and UTF-8 cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


@lru_cache(maxsize=256)
def compiled(pattern: str, ignore_case: bool = False) -> Pattern:
    """Return a pattern, compiled once however often it is used; raise a SettingError when it is bad."""
    _check_length(pattern)
    return Pattern(pattern, ignore_case)


def pattern_of(text: str) -> Pattern:
    """Return a pattern that comes from a row; a bad one makes the result null, and is counted."""
    try:
        return compiled(text)
    except SettingError:
        raise UncomputableError(BAD_PATTERN) from None


# --- like ---------------------------------------------------------------------------------------


class _Wildcard(Enum):
    ANY = "%"
    ONE = "_"


@lru_cache(maxsize=256)
def like_test(pattern: str, escape: str = "", ignore_case: bool = False) -> Test:
    """Return the test that a `like` pattern makes: `%` is any text, `_` any one character."""
    _check_length(pattern)
    pieces = _pieces(pattern, escape)
    texts = [piece for piece in pieces if isinstance(piece, str)]
    if ignore_case or _Wildcard.ONE in pieces or len(texts) > 1:
        return _general_like(pieces, ignore_case)
    text = texts[0] if texts else ""
    if _Wildcard.ANY not in pieces:
        return lambda value: value == text
    before, after = pieces[0] is _Wildcard.ANY, pieces[-1] is _Wildcard.ANY
    if before and after:
        return lambda value: text in value
    return (lambda value: value.endswith(text)) if before else (lambda value: value.startswith(text))


def _pieces(pattern: str, escape: str) -> list[str | _Wildcard]:
    """Return the literal texts and the wildcards between them."""
    pieces: list[str | _Wildcard] = []
    literal = ""
    characters = iter(pattern)
    for character in characters:
        if escape and character == escape:
            literal += _escaped(next(characters, ""), pattern, escape)
        elif character in "%_":
            pieces += [literal, _Wildcard(character)] if literal else [_Wildcard(character)]
            literal = ""
        else:
            literal += character
    return [*pieces, literal] if literal else pieces


def _escaped(character: str, pattern: str, escape: str) -> str:
    if character and character in f"%_{escape}":
        return character
    raise SettingError(
        f"bad like pattern {pattern!r}: the escape character {escape!r} stands before '%', '_' or itself"
    )


def _general_like(pieces: list[str | _Wildcard], ignore_case: bool) -> Test:
    import re2

    wild = {_Wildcard.ANY: "(?s:.*)", _Wildcard.ONE: "(?s:.)"}
    texts = (re2.escape(well_formed(piece)) if isinstance(piece, str) else wild[piece] for piece in pieces)
    pattern = Pattern("^(?:" + "".join(texts) + r")\z", ignore_case)
    return pattern.found
