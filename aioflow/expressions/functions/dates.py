"""Functions on dates and timestamps."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable
from datetime import date, datetime, timedelta

from aioflow.errors import SettingError, suggestion
from aioflow.expressions.functions.table import expression_function
from aioflow.relation import since_epoch
from aioflow.values.counters import DATE_OUT_OF_RANGE, NOT_A_DATE, UncomputableError
from aioflow.values.text import midnight


@expression_function("date", "date(value date) date", "date('2026-01-31T08:30') = date '2026-01-31'")
def date_of(value: date) -> date:
    """A text or timestamp as a date, without the time of day."""
    return value.date() if isinstance(value, datetime) else value


@expression_function(
    "date", "timestamp(value date) date", "timestamp('2026-01-31') = timestamp '2026-01-31T00:00'"
)
def timestamp(value: date) -> datetime:
    """A text or date as a timestamp; a date is its midnight."""
    return midnight(value)


@expression_function("date", "year(value date) number", "year('2026-01-31') = 2026")
def year(value: date) -> int:
    """The year."""
    return value.year


@expression_function("date", "month(value date) number", "month('2026-01-31') = 1")
def month(value: date) -> int:
    """The month, from 1."""
    return value.month


@expression_function("date", "day(value date) number", "day('2026-01-31') = 31")
def day(value: date) -> int:
    """The day of the month."""
    return value.day


@expression_function("date", "hour(value date) number", "hour('2026-01-31T08:30') = 8")
def hour(value: date) -> int:
    """The hour of a timestamp; 0 for a date."""
    return midnight(value).hour


@expression_function("date", "minute(value date) number", "minute('2026-01-31T08:30') = 30")
def minute(value: date) -> int:
    """The minute of a timestamp; 0 for a date."""
    return midnight(value).minute


@expression_function("date", "second(value date) number", "second('2026-01-31T08:30:05') = 5")
def second(value: date) -> int:
    """The second of a timestamp, without its fraction; 0 for a date."""
    return midnight(value).second


@expression_function("date", "weekday(value date) number", "weekday('2026-01-31') = 6")
def weekday(value: date) -> int:
    """The day of the week, from 1 for Monday to 7 for Sunday."""
    return value.isoweekday()


# --- distances ----------------------------------------------------------------------------------

_SECONDS = {"weeks": 604_800, "days": 86_400, "hours": 3_600, "minutes": 60, "seconds": 1}
_MONTHS = {"years": 12, "months": 1}
UNITS = (*_MONTHS, *_SECONDS)


def unit_of(text: str) -> str:
    """`days` for `day` or `days`; a SettingError for what is no unit."""
    folded = text.strip().lower()
    unit = folded if folded.endswith("s") else f"{folded}s"
    if unit not in UNITS:
        raise SettingError(
            f"unknown unit of time {text!r}{suggestion(text, UNITS)} (there are: {', '.join(UNITS)})"
        )
    return unit


@expression_function(
    "date",
    "date_add(value date, count number, unit unit) date",
    "date_add('2026-01-31', 1, 'month') = date '2026-02-28'",
    "date_add('2026-01-31', 36, 'hours') = timestamp '2026-02-01T12:00'",
)
def date_add(value: date, count: int | float, unit: str) -> date:
    """The date moved by that many units; by months to the same day, or the month's last.

    A date moved by hours, minutes or seconds becomes a timestamp.
    """
    try:
        if unit in _MONTHS:
            return _add_months(value, int(count * _MONTHS[unit]))
        moved = timedelta(seconds=float(count * _SECONDS[unit]))
        if unit not in ("weeks", "days") or moved % timedelta(days=1):
            value = midnight(value)
        return value + moved
    except (ArithmeticError, ValueError):
        raise UncomputableError(DATE_OUT_OF_RANGE) from None


def _add_months(value: date, months: int) -> date:
    years, month_index = divmod(value.year * 12 + value.month - 1 + months, 12)
    last = monthrange(years, month_index + 1)[1]
    return value.replace(year=years, month=month_index + 1, day=min(value.day, last))


@expression_function(
    "date",
    "date_diff(later date, earlier date, unit unit) number",
    "date_diff('2026-03-01', '2026-01-31', 'days') = 29",
    "date_diff('2026-03-01', '2026-01-31', 'months') = 1",
)
def date_diff(later: date, earlier: date, unit: str) -> int:
    """How many whole units lie between the two; negative if the first is the earlier."""
    if unit in _MONTHS:
        return _whole(_months_between(earlier, later), _MONTHS[unit])
    elapsed = since_epoch(later) - since_epoch(earlier)
    return _whole(elapsed // timedelta(microseconds=1), _SECONDS[unit] * 1_000_000)


def _whole(amount: int, size: int) -> int:
    return amount // size if amount >= 0 else -(-amount // size)


def _months_between(earlier: date, later: date) -> int:
    if since_epoch(later) < since_epoch(earlier):
        return -_months_between(later, earlier)
    months = (later.year - earlier.year) * 12 + later.month - earlier.month
    incomplete = _within_month(later) < _within_month(earlier)
    return months - 1 if months > 0 and incomplete else max(months, 0)


def _within_month(value: date) -> tuple[int, timedelta]:
    moment = midnight(value)
    return moment.day, timedelta(hours=moment.hour, minutes=moment.minute, seconds=moment.second)


# --- layouts ------------------------------------------------------------------------------------

_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTH_NAMES = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
    "November", "December",
)  # fmt: skip

# Written out, since those of the C library depend on the machine and its language.
_DIRECTIVES: dict[str, Callable[[datetime], str]] = {
    "Y": lambda moment: f"{moment.year:04}",
    "y": lambda moment: f"{moment.year % 100:02}",
    "m": lambda moment: f"{moment.month:02}",
    "d": lambda moment: f"{moment.day:02}",
    "H": lambda moment: f"{moment.hour:02}",
    "I": lambda moment: f"{(moment.hour - 1) % 12 + 1:02}",
    "M": lambda moment: f"{moment.minute:02}",
    "S": lambda moment: f"{moment.second:02}",
    "f": lambda moment: f"{moment.microsecond:06}",
    "p": lambda moment: "AM" if moment.hour < 12 else "PM",
    "j": lambda moment: f"{moment.timetuple().tm_yday:03}",
    "B": lambda moment: _MONTH_NAMES[moment.month - 1],
    "b": lambda moment: _MONTH_NAMES[moment.month - 1][:3],
    "A": lambda moment: _DAYS[moment.weekday()],
    "a": lambda moment: _DAYS[moment.weekday()][:3],
    "z": lambda moment: moment.isoformat()[26:] if moment.microsecond else moment.isoformat()[19:],
    "%": lambda moment: "%",
}
_OF_TIME = frozenset("HIMSfpz")
_DIRECTIVE = re.compile(r"%(.?)", re.DOTALL)
_LONGEST_DATE = 200


def check_layout(layout: str, repeats: bool = True) -> str:
    """The layout itself; a SettingError for a directive that there is not, or not twice."""
    seen: set[str] = set()
    for found in _DIRECTIVE.finditer(layout):
        if not repeats and found[1] in seen - {"%"}:
            raise SettingError(f"'{found[0]}' appears twice in {layout!r}")
        seen.add(found[1])
        if found[1] not in _DIRECTIVES:
            known = " ".join(f"%{directive}" for directive in _DIRECTIVES)
            raise SettingError(f"unknown directive '{found[0]}' in {layout!r} (there are: {known})")
    return layout


@expression_function(
    "date",
    "format_date(value date, layout layout) char",
    "format_date('2026-01-31', '%d.%m.%Y') = '31.01.2026'",
    "format_date('2026-01-31', '%B %d') = 'January 31'",
)
def format_date(value: date, layout: str) -> str:
    """The date as text: %Y %m %d %H %M %S and the other directives of Python, names in English."""
    moment = midnight(value)
    return _DIRECTIVE.sub(lambda found: _DIRECTIVES[found[1]](moment), layout)


@expression_function(
    "date",
    "parse_date(text char, form form) date",
    "parse_date('31.01.2026', '%d.%m.%Y') = date '2026-01-31'",
)
def parse_date(text: str, form: str) -> date:
    """The date that a text is, read by the directives of format_date; a timestamp if they have a time."""
    if len(text) > _LONGEST_DATE:
        raise UncomputableError(NOT_A_DATE)
    try:
        moment = datetime.strptime(text.strip(), form)
    except ValueError:
        raise UncomputableError(NOT_A_DATE) from None
    has_time = any(found[1] in _OF_TIME for found in _DIRECTIVE.finditer(form))
    return moment if has_time else moment.date()
