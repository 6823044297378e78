"""Dates as people write them, by the formats of strptime. Month names are English in every locale."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

from aioflow.errors import SettingError
from aioflow.relation import Value
from aioflow.values.text import read_date

_MONTHS = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
]
_DAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]


def _names(names: list[str], extra: str = "") -> str:
    """Any of the names, whole or as its first three letters with or without a full stop."""
    shorter = "|".join(f"{name[:3]}(?:{name[3:]}|\\.)?" if name[3:] else name for name in names)
    return f"(?:{extra}{shorter})"


_MONTH = _names(_MONTHS, r"sept\.?|")
_DIRECTIVES = {
    "Y": r"(?P<Y>\d{4})",
    "y": r"(?P<y>\d{2})",
    "m": r"(?P<m>1[0-2]|0?[1-9])",
    "B": rf"(?P<B>{_MONTH})",
    "b": rf"(?P<B>{_MONTH})",
    "h": rf"(?P<B>{_MONTH})",
    "d": r"(?P<d>3[01]|[12]\d|0?[1-9])(?:st|nd|rd|th)?",
    "e": r"(?P<d>3[01]|[12]\d|0?[1-9])(?:st|nd|rd|th)?",
    "j": r"(?P<j>\d{1,3})",
    "A": _names(_DAYS, r"tues\.?|thurs?\.?|"),
    "a": _names(_DAYS, r"tues\.?|thurs?\.?|"),
    "H": r"(?P<H>2[0-3]|[01]?\d)",
    "I": r"(?P<I>1[0-2]|0?[1-9])",
    "p": r"(?P<p>[ap]\.?\s?m\.?)",
    "M": r"(?P<M>[0-5]?\d)",
    "S": r"(?P<S>[0-5]?\d)",
    "f": r"(?P<f>\d{1,6})",
    "z": r"(?P<z>Z|[+\-\u2212]\d{2}:?\d{2}|[+\-\u2212]\d{2})",
    "Z": r"(?P<Z>UTC|GMT|Z)",
    "s": r"(?P<s>-?\d{1,11})",
    "%": "%",
}
_SHORT = {"F": "%Y-%m-%d", "T": "%H:%M:%S", "R": "%H:%M", "D": "%m/%d/%y"}
_DIRECTIVE = re.compile(r"%[-#]?(.?)|(\s+)", re.DOTALL)
_TIMES = frozenset("HIMSfps")
_MAIL_DATE = re.compile(
    r"(?:[a-z]{3}, ?)?\d{1,2} [a-z]{3} \d{4} \d{2}:\d{2}(?::\d{2})? (?:[+-]\d{4}|[a-z]{1,5})", re.IGNORECASE
)


def date_reader(arguments: tuple[Any, ...]) -> Callable[[Value], date | None]:
    """A function that reads a value as a date, by the first of the formats that fits; None when none does.

    Without a format it reads ISO 8601 and the dates of mail, HTTP and RSS. A format with a time gives a
    datetime, with a zone where the format has one.
    """
    if not all(isinstance(each, str) for each in arguments):
        raise SettingError("'date' is written: date [\"%d %B %Y\" …]")
    if not arguments:
        return _read_standard
    formats = [_Format(each) for each in arguments]

    def read(value: Value) -> date | None:
        if isinstance(value, date):
            return value
        text = " ".join(str(value).split())
        for each in formats:
            if (found := each.read(text)) is not None:
                return found
        return None

    return read


def _read_standard(value: Value) -> date | None:
    if isinstance(value, date):
        return value
    if not isinstance(value, str):
        return None
    return read_date(value) or read_mail_date(value)


def read_mail_date(text: str) -> datetime | None:
    """A date as mail, HTTP and RSS have it; None when it is none."""
    text = text.strip()
    if not _MAIL_DATE.fullmatch(text):
        return None
    from email.utils import parsedate_to_datetime  # takes 10 ms to load

    try:
        return parsedate_to_datetime(text)
    except ValueError:
        return None


class _Format:
    """One format, as a pattern with a group for each directive."""

    def __init__(self, text: str) -> None:
        pieces, names = _translated(text)
        if "Y" not in names and "y" not in names and "s" not in names:
            raise SettingError(f"the format {text!r} has no year (%Y or %y)")
        for name in names:
            if names.count(name) > 1:
                raise SettingError(f"the format {text!r} says %{name} twice")
        self._pattern = re.compile("".join(pieces), re.IGNORECASE)
        self._has_time = not _TIMES.isdisjoint(names)

    def read(self, text: str) -> date | None:
        found = self._pattern.fullmatch(text)
        if found is None:
            return None
        try:
            return _moment(found.groupdict(), self._has_time)
        except (ValueError, OverflowError):
            return None


def _translated(text: str) -> tuple[list[str], list[str]]:
    """The pattern of a format, in pieces, and the directives in it."""
    for short, long in _SHORT.items():
        text = text.replace(f"%{short}", long)
    pieces: list[str] = []
    names: list[str] = []
    place = 0
    for found in _DIRECTIVE.finditer(text):
        pieces.append(re.escape(text[place : found.start()]))
        place = found.end()
        if found[2]:
            pieces.append(r"\s+")
            continue
        if found[1] not in _DIRECTIVES:
            known = " ".join(f"%{each}" for each in (*_DIRECTIVES, *_SHORT))
            raise SettingError(f"unknown directive {found[0]!r} in the format {text!r} (there are: {known})")
        pieces.append(_DIRECTIVES[found[1]])
        names += _GROUP.findall(pieces[-1])
    pieces.append(re.escape(text[place:]))
    return pieces, names


_GROUP = re.compile(r"\(\?P<(\w)>")


def _moment(parts: dict[str, str | None], has_time: bool) -> date:
    if parts.get("s"):
        return datetime.fromtimestamp(int(parts["s"] or 0), UTC)
    day = _day(parts)
    if not has_time:
        return day
    fraction = (parts.get("f") or "").ljust(6, "0")
    return datetime(
        day.year,
        day.month,
        day.day,
        _hour(parts),
        int(parts.get("M") or 0),
        int(parts.get("S") or 0),
        int(fraction),
        tzinfo=_zone(parts),
    )


def _day(parts: dict[str, str | None]) -> date:
    year = int(parts.get("Y") or 0)
    if short := parts.get("y"):
        # As POSIX has it: 69 to 99 are of the last century.
        year = int(short) + (1900 if int(short) >= 69 else 2000)
    if number := parts.get("j"):
        return date(year, 1, 1) + timedelta(days=int(number) - 1)
    month = int(parts.get("m") or 1)
    if name := parts.get("B"):
        month = 1 + next(place for place, known in enumerate(_MONTHS) if known[:3] == name[:3].lower())
    return date(year, month, int(parts.get("d") or 1))


def _hour(parts: dict[str, str | None]) -> int:
    if (hour := parts.get("I")) is None:
        return int(parts.get("H") or 0)
    afternoon = (parts.get("p") or "a")[0].lower() == "p"
    return int(hour) % 12 + (12 if afternoon else 0)


def _zone(parts: dict[str, str | None]) -> timezone | None:
    text = parts.get("z")
    if text is None:
        return UTC if parts.get("Z") else None
    if text.upper() == "Z":
        return UTC
    digits = text[1:].replace(":", "").ljust(4, "0")
    offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return timezone(offset if text[0] == "+" else -offset)
