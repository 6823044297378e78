"""The times of messages, as statements and accounts set them: DIGEST, DEBOUNCE and QUIET.

All times are moments of the database's clock, which `aioflow.messages.outbox` asks for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, time, timedelta
from functools import lru_cache
from typing import Any, ClassVar, TypeVar

import msgspec

from aioflow.errors import InputError, SettingError, suggestion
from aioflow.relation import Schema
from aioflow.values.quantities import seconds

T = TypeVar("T")

# The longest that a debounce holds rows, in debounce times from the first of them on.
MOST_DEBOUNCES = 10

_WORD = re.compile(r"\S+")
_TIME = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])", re.ASCII)
_HOURS = re.compile(r"\s*(?P<start>[0-9:]+)\s*[-–]\s*(?P<end>[0-9:]+)(?:\s+(?P<zone>\S+))?\s*", re.ASCII)
_CRON_FIELDS = 5
_EVERY, _OFF = "every", "off"
_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


class _TextWord(msgspec.Struct, frozen=True):
    text: str
    offset: int


class DigestTimes(msgspec.Struct, frozen=True):
    """The times at which a digest is due: a line that `parse_schedule` reads, and its zone."""

    kind_name: ClassVar[str] = 'the times of a digest, such as hourly, "daily 08:00" or "weekly mon 08:00"'

    line: str
    zone: str

    def __str__(self) -> str:
        return f"{self.line} {self.zone}"

    @classmethod
    def bind(cls, value: Any, inputs: Sequence[Schema | None]) -> DigestTimes:
        if not isinstance(value, str) or not value.strip():
            raise SettingError(f"must be {cls.kind_name}, not {value!r}")
        words = [_TextWord(found[0], found.start()) for found in _WORD.finditer(value)]
        line, rest = _SHORT_FORMS.get(words[0].text.lower(), _schedule_line)(words)
        if rest[1:]:
            raise SettingError(f"{rest[1].text!r} stands after the time zone", offset=rest[1].offset)
        zone = _zone(rest[0] if rest else None)
        cls(line, zone)._check()
        return cls(" ".join(line.split()), zone)

    def next_after(self, moment: datetime) -> datetime | None:
        """Return the first time after a moment, or None if none comes any more."""
        from aioflow.service.schedules.schedule import parse_schedule

        return parse_schedule(self.line, self.zone).next_after(moment)

    def _check(self) -> None:
        try:
            found = self.next_after(datetime.now(UTC))
        except SettingError as error:
            raise SettingError(error.message, offset=error.offset) from None
        if found is None:
            raise SettingError(f"{self.line.strip()!r} never comes")


def _hourly(words: Sequence[_TextWord]) -> tuple[str, Sequence[_TextWord]]:
    return "0 * * * *", words[1:]


def _daily(words: Sequence[_TextWord]) -> tuple[str, Sequence[_TextWord]]:
    at = _time_of_day(words, 1, "daily 08:00")
    return f"{at.minute} {at.hour} * * *", words[2:]


def _weekly(words: Sequence[_TextWord]) -> tuple[str, Sequence[_TextWord]]:
    example = "weekly mon 08:00"
    if not words[1:]:
        raise SettingError(f"the day and the time are missing, as in {example!r}")
    day = words[1].text.lower()
    if day[:3] not in _DAYS:
        hint = suggestion(day, _DAYS) or f" (there are: {', '.join(_DAYS)})"
        raise SettingError(f"unknown day {words[1].text!r}{hint}", offset=words[1].offset)
    at = _time_of_day(words, 2, example)
    return f"{at.minute} {at.hour} * * {day[:3]}", words[3:]


def _schedule_line(words: Sequence[_TextWord]) -> tuple[str, Sequence[_TextWord]]:
    """Return a schedule as it stands. A zone can follow a line of five fields, and `@daily` and the like."""
    first = words[0].text
    if first.isalpha() and first.lower() != _EVERY:
        hint = suggestion(first.lower(), (*_SHORT_FORMS, _EVERY))
        raise SettingError(
            f"must be {DigestTimes.kind_name}, or a schedule, not {first!r}{hint}", offset=words[0].offset
        )
    fields = 1 if first.startswith("@") and first.lower() != f"@{_EVERY}" else _CRON_FIELDS
    has_zone = len(words) > fields and words[-1].text[0].isalpha() and first.lower() != _EVERY
    line, rest = (words[:-1], words[-1:]) if has_zone else (words, [])
    # Blanks stay as they are, since mistakes have their places in the text.
    text = " " * line[0].offset
    for word in line:
        text = f"{text.ljust(word.offset)}{word.text}"
    return text.rstrip(), rest


_SHORT_FORMS: dict[str, Callable[[Sequence[_TextWord]], tuple[str, Sequence[_TextWord]]]] = {
    "hourly": _hourly,
    "daily": _daily,
    "weekly": _weekly,
}


def _time_of_day(words: Sequence[_TextWord], place: int, example: str) -> time:
    if len(words) <= place:
        raise SettingError(f"the time is missing, as in {example!r}")
    return _read_time(words[place].text, words[place].offset)


def _read_time(text: str, offset: int) -> time:
    found = _TIME.fullmatch(text)
    if found is None:
        raise SettingError(f"{text!r} is no time of day like 08:00", offset=offset)
    return time(int(found[1]), int(found[2]))


def _zone(word: _TextWord | None) -> str:
    from aioflow.service.schedules.schedule import find_zone

    try:
        return find_zone(None if word is None else word.text)[1]
    except InputError as error:
        raise SettingError(str(error), offset=None if word is None else word.offset) from None


class Debounce(msgspec.Struct, frozen=True):
    """The time without further rows after which a message is due."""

    kind_name: ClassVar[str] = "a time span such as 90s, 30m or 1h30m"

    seconds: float

    def __str__(self) -> str:
        return f"{self.seconds:g}s"

    @classmethod
    def bind(cls, value: Any, inputs: Sequence[Schema | None]) -> Debounce:
        try:
            if isinstance(value, str | int | float) and not isinstance(value, bool):
                return cls(seconds(str(value)))
        except InputError:
            pass
        raise SettingError(f"must be {cls.kind_name}, not {value!r}")


class QuietHours(msgspec.Struct, frozen=True):
    """The hours in which nothing is delivered, by the clocks of a zone: `22:00-07:00 Europe/Berlin`."""

    kind_name: ClassVar[str] = 'hours such as "22:00-07:00" or "22:00-07:00 Europe/Berlin", or off'

    start: time
    end: time
    zone: str

    def __str__(self) -> str:
        return _OFF if self.is_off else f"{self.start:%H:%M}-{self.end:%H:%M} {self.zone}"

    @property
    def is_off(self) -> bool:
        """True if there are none."""
        return self.start == self.end

    @classmethod
    def bind(cls, value: Any, inputs: Sequence[Schema | None]) -> QuietHours:
        if isinstance(value, str) and value.strip().lower() == _OFF:
            return cls(time(), time(), "UTC")
        found = _HOURS.fullmatch(value) if isinstance(value, str) else None
        if found is None:
            raise SettingError(f"must be {cls.kind_name}, not {value!r}")
        start, end = (_read_time(found[name], found.start(name)) for name in ("start", "end"))
        if start == end:
            raise SettingError("quiet hours end at another time than they begin", offset=found.start("end"))
        zone = None if found["zone"] is None else _TextWord(found["zone"], found.start("zone"))
        return cls(start, end, _zone(zone))

    def end_after(self, moment: datetime) -> datetime:
        """Return the end of the quiet hours that a moment is in; the moment itself if it is in none."""
        from aioflow.service.schedules.local_time import end_of_gap, moments_of
        from aioflow.service.schedules.schedule import find_zone

        if self.is_off:
            return moment
        zone, _ = find_zone(self.zone)
        local = moment.astimezone(zone).replace(tzinfo=None)
        now = local.time()
        if not (self.start <= now < self.end if self.start < self.end else not self.end <= now < self.start):
            return moment
        day = local.date() if now < self.end else local.date() + timedelta(days=1)
        wanted = datetime.combine(day, self.end)
        ends = [each for each in moments_of(wanted, zone) if each > moment]
        # Clocks that are set forward may jump over the end.
        return ends[0] if ends else max(moment, end_of_gap(wanted, zone))


@lru_cache(maxsize=64)
def read_quiet(text: str) -> QuietHours:
    """Return the quiet hours of a text as tables hold it; raise a SettingError for any other."""
    return QuietHours.bind(text, ())


def quiet_setting(text: str) -> str:
    """Return the quiet hours of an account as statements write them, for `refine` of a Section."""
    try:
        QuietHours.bind(text, ())
    except SettingError as error:
        raise InputError(f"{QuietHours.kind_name} ({error.message.removeprefix('must be ')})") from None
    return text


class MessageTiming(msgspec.Struct, frozen=True):
    """All that a statement, or else its account, says about the times of its messages."""

    digest: DigestTimes | None = None
    debounce: Debounce | None = None
    quiet: QuietHours | None = None

    @classmethod
    def of(
        cls,
        digest: DigestTimes | None,
        debounce: Debounce | None,
        quiet: QuietHours | None,
        account_quiet: str | None,
    ) -> MessageTiming:
        """Return the timing of a statement, whose own quiet hours stand in place of those of its account."""
        chosen = read_quiet(account_quiet) if quiet is None and account_quiet is not None else quiet
        return cls(digest, debounce, None if chosen is None or chosen.is_off else chosen)

    @property
    def gathers(self) -> bool:
        """Return whether rows of several runs become one message."""
        return self.digest is not None or self.debounce is not None

    def due(self, now: datetime) -> tuple[datetime, datetime]:
        """Return the time at which rows are due that are gathered now, and the latest due time of any digest
        with them.

        A digest is due at the greatest of its due times, and not after the least of the latest ones.
        """
        if self.debounce is not None:
            wait = timedelta(seconds=self.debounce.seconds)
            due, latest = now + wait, now + MOST_DEBOUNCES * wait
        else:
            due = latest = (self.digest.next_after(now) if self.digest is not None else None) or now
        # Quiet hours never reverse two times, so each can be moved by itself.
        return self.outside_quiet(due), self.outside_quiet(latest)

    def outside_quiet(self, moment: datetime) -> datetime:
        """Return the first moment outside of the quiet hours from another on."""
        return moment if self.quiet is None else self.quiet.end_after(moment)
