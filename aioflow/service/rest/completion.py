"""Completions in the text of a plan: the words that may stand at a place.

The text may be unfinished, so it is not parsed. Tokens up to the place tell whether it is in a statement, its
clauses, or outside of a plan. Names are those that stand anywhere in the text, and those that are installed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Literal, TypeAlias

import msgspec

from aioflow.authoring.function import functions
from aioflow.authoring.operator import Operator, Registry
from aioflow.authoring.setting import SettingPort
from aioflow.compiler.resolution import UNIVERSAL_OPTIONS

CompletionKind: TypeAlias = Literal[
    "keyword", "operator", "plan", "variable", "option", "wrapper", "function"
]

_TOKEN = re.compile(
    r"""(?P<skip>\s+|/\*.*?(?:\*/|\Z)|//[^\n]*|\#[^\n]*)"""
    r"""|(?P<text>\"\"\".*?(?:\"\"\"|\Z)|"(?:\\.|[^"\\\n])*(?:"|(?=\n)|\Z)|'(?:\\.|[^'\\\n])*(?:'|(?=\n)|\Z))"""
    r"""|(?P<name>[^\W\d][\w-]*)|(?P<other>.)""",
    re.DOTALL,
)
# Each of these looks at a character a bounded number of times: anybody may send a text.
_ITEM = re.compile(r"^[^\S\n]*(PLAN|WRAPPER)\s+([^\W\d][\w-]*)", re.MULTILINE | re.IGNORECASE)
_OUTPUTS = re.compile(r":\s*([^\W\d][\w-]*(?:\s*,\s*[^\W\d][\w-]*)*)\s*\)")
_INPUTS = re.compile(r"\bINPUT\s*:([^\n]*)", re.IGNORECASE)
_DECLARED = re.compile(r"([^\W\d][\w-]*)\s*(?:\([^()]*\))?")
_ITEM_WORDS = ("PLAN", "WRAPPER", "USE")
_HEADER_WORDS = ("INPUT", "OUTPUT", "PARAM", "MAX_DEPTH", "ONCE", "COMMIT", "BODY")
_NAMED = {"wrapper": "wrapper", "apply": "function"}
_COMPLETIONS_AT_MOST = 500


class PlanCompletion(msgspec.Struct, frozen=True):
    """A word that may stand there. `start` is the offset from which the text is replaced by it."""

    text: str
    kind: CompletionKind
    start: int
    detail: str = ""


class _Place(msgspec.Struct):
    """Where an offset is: the braces and parentheses around it, and the statement that they belong to."""

    around: list[str]
    statement: str = ""
    prefix: str = ""
    start: int = 0
    in_text: bool = False
    before: str = ""  # the token before the word


def complete_plan(text: str, offset: int, registry: Registry) -> list[PlanCompletion]:
    """Return the words that may stand at an offset of a text."""
    place = _place(text[:offset])
    found: Iterable[tuple[str, CompletionKind, str]]
    if place.in_text:
        found = _names_in_text(text, place)
    elif not place.around:
        found = ((word, "keyword", "") for word in _ITEM_WORDS)
    elif place.around[-1] == "(":
        found = ((name, "variable", "") for name in _variables(text))
    elif place.around[-1] == "clauses":
        found = _clauses(text, place, registry)
    elif len(place.around) == 1:
        found = ((word, "keyword", "") for word in _HEADER_WORDS)
    else:
        found = _statements(text, registry)
    wanted = place.prefix.lower()
    chosen = [
        PlanCompletion(word, kind, place.start, detail)
        for word, kind, detail in found
        if word.lower().startswith(wanted)
    ]
    return sorted(set(chosen), key=lambda each: (each.kind, each.text))[:_COMPLETIONS_AT_MOST]


def _place(text: str) -> _Place:
    place = _Place([])
    last_name, last = "", ""
    for found in _TOKEN.finditer(text):
        token = found[0]
        is_at_end = found.end() == len(text)
        if found["skip"]:
            continue
        if found["text"]:
            if is_at_end and not _is_closed(token):
                place.in_text, place.start = True, found.start() + 1
                place.prefix, place.before = token[1:], last
        elif found["name"]:
            if is_at_end:
                place.prefix, place.start, place.before = token, found.start(), last
            else:
                last_name = token
        else:
            _enter(place, token, last_name, last)
        last = token
    if not place.prefix and not place.in_text:
        place.start, place.before = len(text), last
    return place


def _enter(place: _Place, token: str, last_name: str, last: str) -> None:
    if token == "(":
        place.statement = last_name
        place.around.append("(")
    elif token == "{":
        place.around.append("clauses" if last == ")" and len(place.around) > 1 else "{")
    elif token in ")}" and place.around:
        place.around.pop()


def _is_closed(token: str) -> bool:
    quote = '"""' if token.startswith('"""') else token[0]
    return len(token) >= 2 * len(quote) and token.endswith(quote)


def _names_in_text(text: str, place: _Place) -> Iterator[tuple[str, CompletionKind, str]]:
    kind = _NAMED.get(place.statement.lower()) if place.before == "(" else None
    if kind == "wrapper":
        for keyword, name in _ITEM.findall(text):
            if keyword.upper() == "WRAPPER":
                yield name, "wrapper", ""
    elif kind == "function":
        for each in functions:
            yield each.name, "function", each.doc.split("\n")[0]


def _variables(text: str) -> Iterator[str]:
    for names in _OUTPUTS.findall(text):
        yield from (name.strip() for name in names.split(","))
    for line in _INPUTS.findall(text):
        yield from _DECLARED.findall(line)


def _clauses(text: str, place: _Place, registry: Registry) -> Iterator[tuple[str, CompletionKind, str]]:
    operator = registry.get(place.statement)
    if place.before == ":":
        yield from ((name, "variable", "") for name in _variables(text))
        return
    for port in operator.settings if operator is not None else ():
        yield port.name.upper(), "option", _described(port)
    yield from ((name.upper(), "option", "") for name in UNIVERSAL_OPTIONS)


def _described(port: SettingPort) -> str:
    return f"{port.doc} ({port.type_name})" if port.doc else port.type_name


def _statements(text: str, registry: Registry) -> Iterator[tuple[str, CompletionKind, str]]:
    for operator in registry:
        yield operator.name, "operator", _summary(operator)
    for keyword, name in _ITEM.findall(text):
        if keyword.upper() == "PLAN":
            yield name, "plan", ""


def _summary(operator: Operator) -> str:
    return " ".join(operator.doc.split("\n\n")[0].split())
