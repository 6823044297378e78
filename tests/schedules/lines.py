"""Random lines, each written together with its meaning."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import msgspec

MONTH_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
WEEKDAY_NAMES = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
ALL_YEARS = frozenset(range(1970, 2200))
ALL_WEEKDAYS = frozenset(range(7))
FORMS = (
    *(
        "star",
        "star step",
        "value",
        "name",
        "range",
        "names in a range",
        "range step",
        "list",
        "star in a list",
    ),
    *(
        "weekday 7",
        "week over Sunday",
        "day or weekday",
        "day and weekday",
        "year",
        "year as fifth",
        "shorthand",
    ),
    *("interval", "never"),
)


class RandomField(msgspec.Struct, frozen=True):
    """One field: its text, the values that the text means, and the forms that it has."""

    text: str
    values: frozenset[int]
    forms: frozenset[str] = frozenset()


class RandomLine(msgspec.Struct, frozen=True):
    """A schedule: its text, and its meaning as sets of numbers, or as an interval."""

    text: str
    minutes: frozenset[int] = frozenset()
    hours: frozenset[int] = frozenset()
    days: frozenset[int] = frozenset()
    months: frozenset[int] = frozenset()
    weekdays: frozenset[int] = ALL_WEEKDAYS
    years: frozenset[int] = ALL_YEARS
    either_day: bool = False
    fixed_hour: bool = False
    interval_minutes: int | None = None
    forms: frozenset[str] = frozenset()


_EVERY_MINUTE, _EVERY_HOUR = frozenset(range(60)), frozenset(range(24))
_EVERY_DAY, _EVERY_MONTH = frozenset(range(1, 32)), frozenset(range(1, 13))
_ZERO, _FIRST = frozenset([0]), frozenset([1])
_SHORTHAND = frozenset(["shorthand"])
_SHORTHANDS = (
    RandomLine("@yearly", _ZERO, _ZERO, _FIRST, _FIRST, fixed_hour=True, forms=_SHORTHAND),
    RandomLine("@annually", _ZERO, _ZERO, _FIRST, _FIRST, fixed_hour=True, forms=_SHORTHAND),
    RandomLine("@monthly", _ZERO, _ZERO, _FIRST, _EVERY_MONTH, fixed_hour=True, forms=_SHORTHAND),
    RandomLine("@weekly", _ZERO, _ZERO, _EVERY_DAY, _EVERY_MONTH, _ZERO, fixed_hour=True, forms=_SHORTHAND),
    RandomLine("@daily", _ZERO, _ZERO, _EVERY_DAY, _EVERY_MONTH, fixed_hour=True, forms=_SHORTHAND),
    RandomLine("@Midnight", _ZERO, _ZERO, _EVERY_DAY, _EVERY_MONTH, fixed_hour=True, forms=_SHORTHAND),
    RandomLine("@hourly", _ZERO, _EVERY_HOUR, _EVERY_DAY, _EVERY_MONTH, forms=_SHORTHAND),
)


class _Kind(msgspec.Struct, frozen=True):
    first: int
    last: int
    names: tuple[str, ...] = ()


_MINUTE, _HOUR, _DAY, _NIGHT = _Kind(0, 59), _Kind(0, 23), _Kind(1, 31), _Kind(0, 3)
_MONTH, _WEEKDAY = _Kind(1, 12, MONTH_NAMES), _Kind(0, 6, WEEKDAY_NAMES)
_STAR = "star"


def random_lines(seed: int, first_year: int, last_year: int) -> Iterator[RandomLine]:
    """Yield lines without end; their years lie mostly between the two."""
    chance = random.Random(seed)
    while True:
        drawn = chance.random()
        if drawn < 0.03:
            yield chance.choice(_SHORTHANDS)
        elif drawn < 0.06:
            yield _interval(chance)
        elif drawn < 0.07:
            yield _end_of_month(chance)
        else:
            yield _line(chance, first_year, last_year)


def _interval(chance: random.Random) -> RandomLine:
    length, unit, text = chance.choice(
        [
            (chance.randint(10, 90), 1, "m"),
            (chance.randint(1, 30), 60, "h"),
            (chance.randint(1, 9), 1440, "d"),
        ]
    )
    return RandomLine(
        f"{chance.choice(['every', '@every', 'Every'])} {length}{text}",
        interval_minutes=length * unit,
        forms=frozenset(["interval"]),
    )


def _end_of_month(chance: random.Random) -> RandomLine:
    """Return a day that some months do not have; in half of the lines none of the months has it."""
    day = chance.choice([30, 31])
    months = chance.choice([frozenset([2]), frozenset([2, 4]), frozenset([1, 2]), frozenset([4])])
    return RandomLine(
        f"0 6 {day} {','.join(map(str, sorted(months)))} *",
        frozenset([0]),
        frozenset([6]),
        frozenset([day]),
        months,
        fixed_hour=True,
    )


def _line(chance: random.Random, first_year: int, last_year: int) -> RandomLine:
    minute = _some_minutes(chance, _MINUTE) if chance.random() < 0.95 else _field(chance, _MINUTE)
    hour, day, month = _hour(chance), _mostly_any(chance, _DAY), _mostly_any(chance, _MONTH)
    weekday, year = _mostly_any(chance, _WEEKDAY), _years(chance, first_year, last_year)
    fields, forms = [minute, hour, day, month, weekday], set[str]()
    drawn = chance.random()
    if drawn < 0.15 and not year.text.startswith("*"):
        weekday, forms = _any_value(chance, _WEEKDAY), {"year as fifth"}
        fields[4] = year
    elif drawn < 0.3:
        fields.append(year)
        forms = {"year"}
    else:
        year = RandomField("*", ALL_YEARS)
    either_day = not (day.text.startswith("*") or weekday.text.startswith("*"))
    if day.text != "*" and weekday.text != "*":
        forms.add("day or weekday" if either_day else "day and weekday")
    return RandomLine(
        _spaced(chance, fields),
        minute.values,
        hour.values,
        day.values,
        month.values,
        weekday.values,
        year.values,
        either_day=either_day,
        fixed_hour=not ("*" in hour.text or "/" in hour.text),
        forms=frozenset().union(forms, *(each.forms for each in fields)),
    )


def _hour(chance: random.Random) -> RandomField:
    drawn = chance.random()
    if drawn < 0.3:  # the hours in which most clocks change
        return chance.choice((_one_value, _one_value, _range, _range_step, _mixed_list))(chance, _NIGHT)
    return _field(chance, _HOUR) if drawn < 0.7 else _one_value(chance, _HOUR)


def _mostly_any(chance: random.Random, kind: _Kind) -> RandomField:
    return _field(chance, kind) if chance.random() < 0.45 else _any_value(chance, kind)


def _spaced(chance: random.Random, fields: list[RandomField]) -> str:
    text = fields[0].text
    for each in fields[1:]:
        text += chance.choice([" ", " ", " ", "  ", "\t"]) + each.text
    return text + chance.choice(["", "", " "])


def _some_minutes(chance: random.Random, kind: _Kind) -> RandomField:
    """Return few minutes, so that ten years of a line are not millions of times."""
    if chance.random() < 0.6:
        return _one_value(chance, kind)
    if chance.random() < 0.5:
        return _list(chance, kind, (_one_value,))
    step = chance.randint(10, 59)
    return RandomField(f"*/{step}", frozenset(range(0, 60, step)), frozenset(["star step"]))


def _field(chance: random.Random, kind: _Kind) -> RandomField:
    forms = (_any_value, _star_step, _one_value, _one_value, _range, _range_step, _mixed_list, _mixed_list)
    return chance.choice(forms)(chance, kind)


def _any_value(chance: random.Random, kind: _Kind) -> RandomField:
    return RandomField("*", frozenset(range(kind.first, kind.last + 1)), frozenset([_STAR]))


def _star_step(chance: random.Random, kind: _Kind) -> RandomField:
    step = chance.randint(1, kind.last + 2)
    return RandomField(
        f"*/{step}", frozenset(range(kind.first, kind.last + 1, step)), frozenset(["star step"])
    )


def _one_value(chance: random.Random, kind: _Kind) -> RandomField:
    value = chance.randint(kind.first, kind.last)
    text, forms = _value_text(chance, kind, value)
    return RandomField(text, frozenset([value]), frozenset(forms))


def _value_text(chance: random.Random, kind: _Kind, value: int) -> tuple[str, set[str]]:
    if kind.names and chance.random() < 0.5:
        name = kind.names[value - kind.first]
        return chance.choice([name, name.upper(), name.title()]), {"name"}
    if kind is _WEEKDAY and value == 0 and chance.random() < 0.5:
        return "7", {"weekday 7"}
    return chance.choice([str(value), f"{value:02}"]), {"value"}


def _ends(chance: random.Random, kind: _Kind) -> tuple[int, int, str, set[str]]:
    """Return the first and the last number of a range, and its text; a week may go on to the Sunday 7."""
    low = chance.randint(kind.first, kind.last)
    if kind is _WEEKDAY and low > 0 and chance.random() < 0.3:
        first, sunday = chance.choice([kind.names[low], str(low)]), chance.choice(["7", "sun", "SUN"])
        return low, 7, f"{first}-{sunday}", {"week over Sunday"}
    high = chance.randint(low, kind.last)
    if kind.names and chance.random() < 0.5:
        first, last = kind.names[low - kind.first], kind.names[high - kind.first]
        return low, high, f"{first}-{last.upper()}", {"names in a range"}
    return low, high, f"{low}-{high}", {"range"}


def _folded(values: range, kind: _Kind) -> frozenset[int]:
    return frozenset(value % 7 for value in values) if kind is _WEEKDAY else frozenset(values)


def _range(chance: random.Random, kind: _Kind) -> RandomField:
    low, high, text, forms = _ends(chance, kind)
    return RandomField(text, _folded(range(low, high + 1), kind), frozenset(forms))


def _range_step(chance: random.Random, kind: _Kind) -> RandomField:
    low, high, text, forms = _ends(chance, kind)
    step = chance.randint(1, 2 + (kind.last - kind.first) // 2)
    return RandomField(
        f"{text}/{step}", _folded(range(low, high + 1, step), kind), frozenset({*forms, "range step"})
    )


def _mixed_list(chance: random.Random, kind: _Kind) -> RandomField:
    forms = (_one_value, _one_value, _range, _range_step)
    with_star = kind is not _NIGHT and chance.random() < 0.15
    return _list(chance, kind, (*forms, _any_value) if with_star else forms)


def _list(
    chance: random.Random, kind: _Kind, forms: tuple[Callable[[random.Random, _Kind], RandomField], ...]
) -> RandomField:
    parts = [chance.choice(forms)(chance, kind) for _ in range(chance.randint(2, 4))]
    found = {form for part in parts for form in part.forms} | {"list"}
    if _STAR in found:
        found = (found - {_STAR}) | {"star in a list"}
    values = frozenset().union(*(part.values for part in parts))
    return RandomField(",".join(part.text for part in parts), values, frozenset(found))


def _years(chance: random.Random, first_year: int, last_year: int) -> RandomField:
    first, second = sorted(chance.randint(first_year, last_year) for _ in range(2))
    step = chance.randint(1, 4)
    return chance.choice(
        [
            RandomField(f"{first}", frozenset([first])),
            RandomField(f"{second},{first}", frozenset([first, second])),
            RandomField(f"{first}-{second}", frozenset(range(first, second + 1))),
            RandomField(f"{first}-{second}/{step}", frozenset(range(first, second + 1, step))),
            RandomField("*", ALL_YEARS),
            RandomField(f"*/{step}", frozenset(range(1970, 2200, step))),
        ]
    )
