"""The vocabulary of processing: the arguments, effect and resulting type of each word.

Modules of their own read numbers and dates.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import msgspec

from aioflow.errors import SettingError, suggestion
from aioflow.relation import Document, Type, Value, type_of_value
from aioflow.values.counters import UncomputableError
from aioflow.values.patterns import Pattern, compiled
from aioflow.values.text import read_date, to_text
from aioflow.wrappers.dates import date_reader
from aioflow.wrappers.definition import Processing
from aioflow.wrappers.loop_fairness import check, weigh
from aioflow.wrappers.numbers import number_reader
from aioflow.wrappers.page import Page

DocumentKind: TypeAlias = Literal["html", "xml", "json"]
Arguments: TypeAlias = tuple[str | int | float | bool | None, ...]
# A value that is not null and its page -> the next value; None when it cannot be read so.
Step: TypeAlias = Callable[[Value, Page], Value]
Make: TypeAlias = Callable[[Arguments, DocumentKind], Step]


class ConversionWord(msgspec.Struct, frozen=True):
    """A word of the vocabulary. `make` is None for words that only choose matches or require one."""

    usage: str
    check: Callable[[Arguments], None]
    make: Make | None = None
    type: Type | None = None
    is_type: bool = False
    takes_text: bool = False
    document: Literal["html", "json", "any"] | None = None


def word_named(word: Processing) -> ConversionWord:
    """The meaning of a word; a SettingError with a suggestion when there is none of that name."""
    known = WORDS.get(word.name.lower())
    if known is None:
        raise SettingError(f"unknown word {word.name!r}{suggestion(word.name, WORDS) or _hint()}")
    return known


def _hint() -> str:
    return f" (there are: {', '.join(WORDS)})"


# --- arguments -----------------------------------------------------------------------------------


def _texts(usage: str, least: int = 0, most: int = 0) -> Callable[[Arguments], None]:
    """A check that there are so many arguments, all of them texts."""

    def check(arguments: Arguments) -> None:
        if not least <= len(arguments) <= most or not all(isinstance(each, str) for each in arguments):
            raise SettingError(f"{usage.split()[0]!r} is written: {usage}")

    return check


def _wrong(usage: str) -> SettingError:
    return SettingError(f"{usage.split()[0]!r} is written: {usage}")


_SPLIT, _MATCH, _DEFAULT = 'split "," [part]', 'match "pattern" [group]', "default constant"


def _check_split(arguments: Arguments) -> None:
    if len(arguments) > 2 or (arguments and not isinstance(arguments[0], str)):
        raise _wrong(_SPLIT)
    if arguments and arguments[0] == "":
        raise SettingError("'split' needs a separator that is not empty")
    if len(arguments) == 2 and (not _is_whole(arguments[1]) or arguments[1] == 0):
        raise SettingError("'split' counts the parts from 1, or from -1 at the end")


def _check_match(arguments: Arguments) -> None:
    if not 1 <= len(arguments) <= 2 or not isinstance(arguments[0], str):
        raise _wrong(_MATCH)
    pattern = compiled(arguments[0])
    if len(arguments) == 2:
        _group(pattern, arguments[1])


def _check_replace(arguments: Arguments) -> None:
    _texts('replace "pattern" "with"', 2, 2)(arguments)
    _replacement(compiled(str(arguments[0])), str(arguments[1]))


def _check_default(arguments: Arguments) -> None:
    if len(arguments) != 1 or arguments[0] is None:
        raise _wrong(_DEFAULT)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


# --- steps on one text ---------------------------------------------------------------------------


def as_text(value: Value, page: Page) -> Value:
    """A value that may be native as text."""
    return value if value.__class__ is str else to_text(value)


def _strip(value: str, page: Page) -> Value:
    return " ".join(value.split())


def resolve_url(value: str, page: Page) -> Value:
    """The whole address of a link."""
    return page.resolve(value)


def _match(arguments: Arguments, document: DocumentKind) -> Step:
    pattern = compiled(str(arguments[0]))
    group = _group(pattern, arguments[1]) if len(arguments) == 2 else min(pattern.regexp.groups, 1)

    def match(value: str, page: Page) -> Value:
        weigh(pattern.steps(value))
        try:
            found = pattern.search(value)
        except UncomputableError:
            return None
        return found and found.group(group)

    return match


def _group(pattern: Pattern, group: object) -> int | str:
    names, count = pattern.regexp.groupindex, pattern.regexp.groups
    if isinstance(group, str) and group in names:
        return group
    if isinstance(group, int) and not isinstance(group, bool) and 0 <= group <= count:
        return group
    known = ", ".join([*map(str, range(count + 1)), *map(repr, names)])
    raise SettingError(f"the pattern has no group {group!r} (there are: {known})")


def _replace(arguments: Arguments, document: DocumentKind) -> Step:
    pattern = compiled(str(arguments[0]))
    replacement = _replacement(pattern, str(arguments[1]))

    def replace(value: str, page: Page) -> Value:
        weigh(pattern.steps(value))
        try:
            return pattern.regexp.sub(replacement, pattern.checked(value))
        except UncomputableError:
            return None

    return replace


def _replacement(pattern: Pattern, template: str) -> Callable[[Any], str]:
    r"""Return the function that makes the replacement of a match, in which `\1` and `\g<name>` are groups.

    RE2's own expansion spoils characters that are not ASCII.
    """
    pieces: list[tuple[str, int | str | None]] = []  # a text, and the group behind it
    place = 0
    for found in _GROUP_IN_TEMPLATE.finditer(template):
        text, place = template[place : found.start()], found.end()
        if found[0] == "\\\\":
            pieces.append((text + "\\", None))
            continue
        name = found[1] or found[2] or ""
        pieces.append((text, _group(pattern, int(name) if name.isdigit() else name)))
    rest = template[place:]

    def replaced(match: Any) -> str:
        check()
        groups = (text + ((match.group(group) or "") if group is not None else "") for text, group in pieces)
        return "".join(groups) + rest

    return replaced


_GROUP_IN_TEMPLATE = re.compile(r"\\\\|\\(\d)|\\g<([^>]*)>")


def split_step(arguments: Arguments) -> Step:
    """The parts of a text, without the blanks around them; empty ones are left out."""
    separator = str(arguments[0]) if arguments else None

    def split(value: str, page: Page) -> Value:
        return [text for part in value.split(separator) if (text := part.strip())]

    return split


def _part(arguments: Arguments, document: DocumentKind) -> Step:
    """One part of a text, counted from 1 or backwards from -1."""
    separator, number = str(arguments[0]), int(arguments[1] or 0)
    place = number - 1 if number > 0 else number

    def part(value: str, page: Page) -> Value:
        parts = value.split(separator)
        return parts[place].strip() or None if -len(parts) <= place < len(parts) else None

    return part


def join_step(arguments: Arguments) -> Step:
    """Several texts as one; None when there are none."""
    glue = str(arguments[0]) if arguments else ", "
    return lambda values, page: glue.join(values) if values else None


# --- types ---------------------------------------------------------------------------------------

_YES, _NO = frozenset({"yes", "true", "1", "on"}), frozenset({"no", "false", "0", "off"})


def _boolean(arguments: Arguments, document: DocumentKind) -> Step:
    """With one word given, everything else is false; with two, everything else is null."""
    words = [" ".join(str(word).lower().split()) for word in arguments]
    yes = frozenset(words[:1]) or _YES
    no = frozenset(words[1:]) if words else _NO
    otherwise = False if len(words) == 1 else None

    def read(value: Value, page: Page) -> Value:
        if value.__class__ is bool:
            return value
        text = " ".join(str(value).lower().split())
        return True if text in yes else False if text in no else otherwise

    return read


def _document(kind: Literal["html", "json", "any"]) -> Make:
    def make(arguments: Arguments, document: DocumentKind) -> Step:
        meant: DocumentKind = document if kind == "any" else kind
        if meant == "json" and document != "json":
            return _json_document
        return lambda value, page: Document(value, meant)

    return make


def _json_document(value: str, page: Page) -> Value:
    try:
        json.loads(value)
    except (ValueError, RecursionError):
        return None
    return Document(value, "json")


def constant_of(value: Value, kind: Type | None) -> Value:
    """A default as a value of that type; a SettingError when it is not one."""
    if value is None or kind is None:
        return value
    if kind is Type.DATE and isinstance(value, str):
        read = read_date(value)
        if read is None:
            raise SettingError(f"the default {value!r} is no date (write it like 2024-12-31)")
        return read
    if kind is Type.DOCUMENT and isinstance(value, str):
        return Document(value)
    if type_of_value(value) is not kind:
        raise SettingError(f"the default {value!r} is no {kind}")
    return value


# --- the table -----------------------------------------------------------------------------------


def _plain(step: Step) -> Make:
    return lambda arguments, document: step


def _text_word(name: str, make: Make) -> ConversionWord:
    return ConversionWord(name, _texts(name), make, Type.CHAR, takes_text=True)


def _check_by(make: Callable[[Arguments], object]) -> Callable[[Arguments], None]:
    """Arguments are right when something can be made of them."""

    def check(arguments: Arguments) -> None:
        make(arguments)

    return check


def _number(arguments: Arguments, document: DocumentKind) -> Step:
    return number_reader(arguments)


def _date(arguments: Arguments, document: DocumentKind) -> Step:
    read = date_reader(arguments)
    return lambda value, page: read(value)


def _part_or_parts(arguments: Arguments, document: DocumentKind) -> Step:
    return _part(arguments, document)


def _affix(before: bool) -> Make:
    def make(arguments: Arguments, document: DocumentKind) -> Step:
        text = str(arguments[0])
        return (lambda value, page: text + value) if before else (lambda value, page: value + text)

    return make


WORDS: dict[str, ConversionWord] = {
    "char": ConversionWord("char", _texts("char"), _plain(as_text), Type.CHAR, is_type=True),
    "text": ConversionWord("text", _texts("text"), _plain(as_text), Type.CHAR, is_type=True),
    "number": ConversionWord("number", _check_by(number_reader), _number, Type.NUMBER, is_type=True),
    "boolean": ConversionWord(
        "boolean", _texts('boolean ["yes" ["no"]]', 0, 2), _boolean, Type.BOOLEAN, is_type=True
    ),
    "date": ConversionWord("date", _check_by(date_reader), _date, Type.DATE, is_type=True),
    "url": ConversionWord(
        "url", _texts("url"), _plain(resolve_url), Type.CHAR, is_type=True, takes_text=True
    ),
    "document": ConversionWord(
        "document", _texts("document"), _document("any"), Type.DOCUMENT, is_type=True, document="any"
    ),
    "html": ConversionWord(
        "html", _texts("html"), _document("html"), Type.DOCUMENT, is_type=True, document="html"
    ),
    "json": ConversionWord(
        "json", _texts("json"), _document("json"), Type.DOCUMENT, is_type=True, document="json"
    ),
    "relation": ConversionWord("relation", _texts("relation")),
    "strip": _text_word("strip", _plain(_strip)),
    "raw": ConversionWord("raw", _texts("raw")),
    "lower": _text_word("lower", _plain(lambda value, page: value.lower())),
    "upper": _text_word("upper", _plain(lambda value, page: value.upper())),
    "split": ConversionWord(_SPLIT, _check_split, _part_or_parts, Type.CHAR, takes_text=True),
    "match": ConversionWord(_MATCH, _check_match, _match, Type.CHAR, takes_text=True),
    "replace": ConversionWord(
        'replace "pattern" "with"', _check_replace, _replace, Type.CHAR, takes_text=True
    ),
    "prefix": ConversionWord(
        'prefix "text"', _texts('prefix "text"', 1, 1), _affix(True), Type.CHAR, takes_text=True
    ),
    "suffix": ConversionWord(
        'suffix "text"', _texts('suffix "text"', 1, 1), _affix(False), Type.CHAR, takes_text=True
    ),
    "all": ConversionWord("all", _texts("all")),
    "join": ConversionWord('join ", "', _texts('join ", "', 0, 1)),
    "count": ConversionWord("count", _texts("count")),
    "first": ConversionWord("first", _texts("first")),
    "last": ConversionWord("last", _texts("last")),
    "required": ConversionWord("required", _texts("required")),
    "optional": ConversionWord("optional", _texts("optional")),
    "default": ConversionWord(_DEFAULT, _check_default),
}
