"""Traps for crawlers: parts of sites that never end. What is remembered of URLs is bounded in memory.

A URL that was let through once is let through again, unless its pattern was forgotten meanwhile. The bounds
are made for real sites to come through whole: see tests/crawl/test_traps.py. Heritrix' rules (a segment three
times in a row, twenty segments) are the model for paths; all else is counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Final, NamedTuple

from aioflow.errors import SettingError, suggestion

TRAPS: Final = ("calendar", "parameters", "path-loops", "path-depth", "sessions")

MOST_SEGMENTS = 20
_MOST_IN_A_ROW = 2
_MOST_EQUAL_SEGMENTS = 4
MOST_DATES = 2_000  # in URLs of one form that belong to a calendar
MOST_DATES_IN_PATHS = 20_000  # a day a page, for 50 years
MOST_QUERIES = 50_000  # of one path, whatever they ask
_FEW_QUERIES = 2_000
_VALUES_PER_QUERY = 20  # more combinations than this for each value of the parameter that has most
_MOST_REMEMBERED = 250_000
_MOST_NAMES = 50
# The years in which real calendars have events, and those in which archives have pages.
_FIRST_YEAR, _FIRST_YEAR_OF_ARCHIVES = 1980, 1900
_YEARS_AHEAD, _YEARS_AHEAD_OF_ARCHIVES = 3, 10

_MONTH, _DAY = "(?:0?[1-9]|1[0-2])", "(?:0?[1-9]|[12][0-9]|3[01])"
# A value such as 2026-05, 2026-05-12 or 20260512. Fewer digits may be any number.
_DATE = re.compile(
    rf"([12][0-9]{{3}})(?:([-/._]){_MONTH}(?:\2{_DAY})?|(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01]))(?![0-9])"
)
_DATED_SEGMENT = re.compile(rf"/([12][0-9]{{3}})([-/]){_MONTH}(?:\2{_DAY})?(?=/|$)")
# Without the word calendar, /2950/10 is rather page 10 of the topic 2950.
_DAY_AT_THE_END = re.compile(r"/([12][0-9]{3})([-/])(?:0[1-9]|1[0-2])\2(?:0[1-9]|[12][0-9]|3[01])/?$")
_CALENDAR = re.compile(
    r"calend|kalend|agenda|(?:^|[^a-z])(?:cal|events?|termine|veranstaltungen|ical|schedule)(?:[^a-z]|$)",
    re.IGNORECASE,
)
_YEAR_NAMES = frozenset({"year", "y", "yr", "jahr", "annee", "calyear"})
_DATE_NAMES = _YEAR_NAMES | {
    *(
        "month",
        "day",
        "week",
        "date",
        "m",
        "d",
        "mon",
        "mo",
        "mnth",
        "monat",
        "tag",
        "woche",
        "datum",
        "mois",
    ),
    *("jour", "cal_date", "caldate", "calmonth", "calday", "eventdate", "event_date", "tribe-bar-date"),
    *("start", "end", "from", "to", "startdate", "start_date", "enddate", "end_date", "datefrom", "dateto"),
    *("date_from", "date_to", "time", "timestamp"),
}
_NUMBER = re.compile(r"(?<![^/])[0-9]+(?![^/])")
_SESSION = re.compile(
    r";(?:jsessionid|phpsessid|sid|sessionid|session)=|/\([a-z]\([a-z0-9]{16,}\)\)(?:/|$)|"
    r"[?&](?:phpsessid|jsessionid|aspsessionid[a-z]*|asp\.net_sessionid|sessionid|session_id|zenid|oscsid)=[^&]{16,}|"
    r"[?&](?:sid|s)=[0-9a-z]{26,}(?:&|$)",
    re.IGNORECASE,
)


class TrapNames(tuple[str, ...]):
    """A setting with the traps that a crawl looks out for: some of them, or none."""

    __slots__ = ()

    kind_name: ClassVar[str] = f"some of {', '.join(TRAPS)}, or none"

    @classmethod
    def bind(cls, value: Any, inputs: Sequence[Any]) -> TrapNames:
        values = value if isinstance(value, tuple) else (value,)
        if not all(isinstance(each, str) for each in values):
            raise SettingError(f"must be {cls.kind_name}, not {value!r}")
        names = [name.lower() for each in values for name in re.split(r"[,\s]+", each.strip()) if name]
        if names == ["none"]:
            return cls()
        for name in names:
            if name not in TRAPS:
                hint = suggestion(name, TRAPS)
                raise SettingError(f"there is no trap {name!r}{hint}; write {cls.kind_name}")
        return cls(names)

    def __str__(self) -> str:
        return ", ".join(self) or "none"


class CrawlTraps:
    """Finds URLs that belong to a trap. It remembers what a crawl has seen of each path, up to a bound."""

    def __init__(self, names: Iterable[str] = TRAPS, *, year: int) -> None:
        chosen = frozenset(names)
        self._calendar = Calendar(year) if "calendar" in chosen else None
        self._parameters = ParameterCounts() if "parameters" in chosen else None
        self._finds_loops = "path-loops" in chosen
        self._finds_depth = "path-depth" in chosen
        self._finds_sessions = "sessions" in chosen

    def reason(self, url: str, host_end: int) -> str | None:
        """Return the trap that a URL belongs to; `host_end` is the place of its path."""
        question = url.find("?", host_end)
        path = url[host_end:] if question < 0 else url[host_end:question]
        if (self._finds_depth or self._finds_loops) and path.count("/") > _MOST_IN_A_ROW:
            segments = path.split("/")[1:]
            if self._finds_depth and len(segments) - (not segments[-1]) > MOST_SEGMENTS:
                return "path-depth"
            if self._finds_loops and len(set(segments)) < len(segments) and is_loop(segments):
                return "path-loops"
        if (
            self._finds_sessions
            and (";" in path or "(" in path or question >= 0)
            and _SESSION.search(url, host_end)
        ):
            return "sessions"
        query = url[question + 1 :] if question >= 0 else ""
        if self._calendar is not None and self._calendar.is_endless(url[:host_end], path, query):
            return "calendar"
        if (
            query
            and self._parameters is not None
            and self._parameters.is_endless(url[:host_end], path, query)
        ):
            return "parameters"
        return None


def is_loop(segments: Sequence[str]) -> bool:
    """Return whether a segment, or a group of them, stands three times in a row; or one often anywhere.

    Groups of numbers are no loops: 11/11/11 is a date, and 0/0/0 a tile of a map.
    """
    names = [each for each in segments if each]
    counts = {name: names.count(name) for name in set(names) if not name.isdecimal()}
    if not counts or max(counts.values()) <= _MOST_IN_A_ROW:
        return False
    if max(counts.values()) > _MOST_EQUAL_SEGMENTS:
        return True
    for length in range(1, len(names) // (_MOST_IN_A_ROW + 1) + 1):
        for start in range(len(names) - (_MOST_IN_A_ROW + 1) * length + 1):
            group = names[start : start + length]
            end = start + (_MOST_IN_A_ROW + 1) * length
            if names[start:end] == group * (_MOST_IN_A_ROW + 1) and not "".join(group).isdecimal():
                return True
    return False


class _Remembered:
    """Sets of hashes by pattern, bounded: the patterns that were not asked for longest are forgotten."""

    def __init__(self) -> None:
        self._known: dict[str, dict[str, set[int]]] = {}
        self._size = 0

    def of(self, pattern: str) -> dict[str, set[int]]:
        """Return the sets of a pattern, by name."""
        sets = self._known.pop(pattern, None)
        if sets is None:
            sets = {}
            self._size += 1
        self._known[pattern] = sets  # now the latest
        return sets

    def grown(self, by: int) -> None:
        """Note that sets have grown, and forget some if they are too many."""
        self._size += by
        while self._size > _MOST_REMEMBERED and len(self._known) > 1:
            oldest = self._known.pop(next(iter(self._known)))
            self._size -= 1 + sum(map(len, oldest.values()))

    @property
    def size(self) -> int:
        return self._size


class _QueryDate(NamedTuple):
    year: int | None
    in_calendar: bool
    text: str


class Calendar:
    """Finds the pages of calendars without end: dates far away, or very many of them."""

    def __init__(self, year: int) -> None:
        self._year = year
        self._dates = _Remembered()

    @property
    def remembered(self) -> int:
        return self._dates.size

    def is_endless(self, site: str, path: str, query: str) -> bool:
        if query and (date := self._date_of_query(path, query)) is not None:
            names = "&".join(sorted({each.partition("=")[0] for each in query.split("&")}))
            return self._is_far(date.year, in_calendar=date.in_calendar) or self._is_too_many(
                f"{site}{path}?{names}", date.text, MOST_DATES
            )
        if not (found := _DATED_SEGMENT.search(path)):
            return False
        in_calendar = _CALENDAR.search(path) is not None
        if not in_calendar and not (found := _DAY_AT_THE_END.search(path)):
            return False
        pattern = f"{site}{path[: found.start()]}/#{path[found.end() :]}"
        most = MOST_DATES if in_calendar else MOST_DATES_IN_PATHS
        return self._is_far(int(found[1]), in_calendar=in_calendar) or self._is_too_many(
            pattern, found[0], most
        )

    def _is_far(self, year: int | None, *, in_calendar: bool) -> bool:
        if year is None:
            return False
        if in_calendar:
            return not _FIRST_YEAR <= year <= self._year + _YEARS_AHEAD
        return not _FIRST_YEAR_OF_ARCHIVES <= year <= self._year + _YEARS_AHEAD_OF_ARCHIVES

    def _date_of_query(self, path: str, query: str) -> _QueryDate | None:
        """Return the date that parameters tell; None if they tell none, or something else as likely."""
        dated: dict[str, str] = {}
        for each in query.split("&"):
            name, _, value = each.partition("=")
            if name.lower() in _DATE_NAMES and value[:1].isdigit():
                dated[name.lower()] = value
        if not dated:
            return None
        whole = [found for value in dated.values() if (found := _DATE.match(value))]
        years = [dated[name] for name in _YEAR_NAMES & dated.keys() if len(dated[name]) == 4]
        in_calendar = _CALENDAR.search(path) is not None
        text = "&".join(f"{name}={dated[name]}" for name in sorted(dated))
        if whole:
            return _QueryDate(int(whole[0][1]), in_calendar, text)
        if years and len(dated) > 1:
            return _QueryDate(int(years[0]) if years[0].isdecimal() else None, in_calendar, text)
        return _QueryDate(None, in_calendar, text) if in_calendar else None

    def _is_too_many(self, pattern: str, date: str, most: int) -> bool:
        dates = self._dates.of(pattern).setdefault("", set())
        code = hash(date)
        if code in dates:
            return False
        if len(dates) >= most:
            return True
        dates.add(code)
        self._dates.grown(1)
        return False


class ParameterCounts:
    """Finds paths whose parameters are combined without end.

    Filters and orders of a shop have few values each, and very many combinations. A page for each number or
    name has as many values as combinations, and comes through up to a far larger bound.
    """

    def __init__(self) -> None:
        self._queries = _Remembered()

    @property
    def remembered(self) -> int:
        return self._queries.size

    def is_endless(self, site: str, path: str, query: str) -> bool:
        sets = self._queries.of(site + _NUMBER.sub("#", path))
        queries = sets.setdefault("", set())
        code = hash(query)
        if code in queries:
            return False
        number = len(queries)
        if number >= MOST_QUERIES:
            return True
        if number >= _FEW_QUERIES:
            most = max((len(values) for name, values in sets.items() if name), default=0)
            if number > most * _VALUES_PER_QUERY:
                return True
        queries.add(code)
        self._queries.grown(1 + self._count_values(sets, query))
        return False

    def _count_values(self, sets: dict[str, set[int]], query: str) -> int:
        """Add the values of a query to those of its parameters; return how many are new."""
        more = 0
        for each in query.split("&"):
            name, _, value = each.partition("=")
            name = f"={name[:100]}"
            if name not in sets and len(sets) > _MOST_NAMES:
                continue
            values = sets.setdefault(name, set())
            if len(values) * _VALUES_PER_QUERY <= MOST_QUERIES:  # more would not change an answer
                before = len(values)
                values.add(hash(value))
                more += len(values) - before
        return more
