"""Rules about lines as expressions: texts in any case, and regular expressions between slashes."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from aioflow.errors import SettingError
from aioflow.values.patterns import compiled

_SLASHES = re.compile(r"/(.*?)/([a-z]*)", re.DOTALL)
_OVER_LINES = frozenset("sm")


class LineRules(msgspec.Struct, frozen=True):
    """An expression that is true for lines that one of the rules finds, and notes on rules left out."""

    expression: str
    notes: tuple[str, ...] = ()


def matching_lines(rules: Iterable[str], setting: str) -> LineRules:
    """Return an expression over `line` for texts and `/patterns/`; it is empty if no rule is left."""
    parts, notes = [], []
    for rule in rules:
        try:
            parts.append(_condition(rule))
        except SettingError as error:
            notes.append(f"The rule {rule!r} of {setting} was left out: {error}.")
    return LineRules(" or ".join(dict.fromkeys(parts)), tuple(notes))


def extraction(rules: Iterable[str]) -> LineRules:
    """Return an expression for the part of `line` that the first fitting rule extracts."""
    parts, notes = [], []
    for rule in rules:
        try:
            parts.append(f"regexp_extract(line, {_text(_pattern(rule))})")
        except SettingError as error:
            notes.append(f"The rule {rule!r} of extract_text was left out: {error}.")
    if parts:
        notes.append("Of each line, extract_text takes the first match of the first rule that fits.")
    return LineRules(
        parts[0] if len(parts) == 1 else f"coalesce({', '.join(parts)})" if parts else "", tuple(notes)
    )


def containing(texts: Iterable[str]) -> str:
    """Return an expression that is true for lines with one of the texts, in any case."""
    return " or ".join(_contains(text) for text in texts)


def _condition(rule: str) -> str:
    if _SLASHES.fullmatch(rule) is None:
        return _contains(rule)
    return f"line matches {_text(_pattern(rule))}"


def _contains(text: str) -> str:
    return f"contains(lower(line), {_text(text.lower())})"


def _pattern(rule: str) -> str:
    """Return a rule as a pattern of RE2; without flags, a pattern ignores case."""
    found = _SLASHES.fullmatch(rule)
    if found is None:
        return f"(?i){re.escape(rule)}"
    flags = found[2] or "i"
    if _OVER_LINES & set(flags):
        raise SettingError("it goes over several lines, and lines are compared one by one")
    pattern = f"(?i){found[1]}" if "i" in flags else found[1]
    compiled(pattern)
    return pattern


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
