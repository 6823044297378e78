"""Numbers as people write them: grouped, signed, in several locales, inside other text."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any, TypeAlias

import msgspec

from aioflow.errors import SettingError, suggestion
from aioflow.relation import Value
from aioflow.values.text import LONGEST_NUMBER, exact_number, read_number

Number: TypeAlias = int | float | Decimal

_SPACES = "\u0020\u00a0\u2009\u202f"
_APOSTROPHES = "'\u2019"
_CURRENCIES = "$£€¥¢\u20a1-\u20c0\u0e3f"
_HYPHENS = r"\-\u2212\uff0d"
_DASHES = rf"{_HYPHENS}\u2013"
_CURRENCY = rf"(?:[{_CURRENCIES}]|[A-Z]{{2,3}}\.?)"
# A dash is a minus when it touches the number or its currency, and no word before it: `A-5` is 5.
_MINUS_BEFORE = re.compile(rf"(?:^|[^\w)\]])[{_DASHES}](?:{_CURRENCY}[{_SPACES}]?)?$")
_FAR_MINUS = re.compile(rf"\s*(?:{_CURRENCY})?\s*[{_HYPHENS}]\s*(?:{_CURRENCY})?\s*")
_MINUS_AFTER = re.compile(rf"[{_DASHES}]\s*(?:{_CURRENCY})?\s*")
_ONLY_SIGNS = re.compile(rf"[\s%‰]*(?:{_CURRENCY})?[\s%‰]*")
_OPENED = re.compile(rf"\s*({_CURRENCY}?)\s*\(\s*({_CURRENCY}?)\s*")
_CLOSED = re.compile(rf"[\s%]*({_CURRENCY}?)\s*\)\s*({_CURRENCY}?)\s*")
_SCALE = re.compile(rf"[{_SPACES}]?(k|mio|m|bn|b)\b", re.IGNORECASE)
_SCALES = {"k": 10**3, "m": 10**6, "mio": 10**6, "b": 10**9, "bn": 10**9}
_EXPONENT = re.compile(r"[eE][+-]?\d")
_DIGIT = re.compile(r"\d")
_MOST_SIGNS = 64  # characters of signs and currencies around a number
_NEAR = 12  # characters before a number in which its sign stands


class _Locale(msgspec.Struct, frozen=True):
    """The signs that part thousands, and the decimal sign."""

    groups: str
    decimal: str
    grouped: str = r"\d{1,3}(?P<group>[GROUPS])\d{3}(?:(?P=group)\d{3})*"


_EVERY_GROUP = f"{_APOSTROPHES}{_SPACES}"
LOCALES = {
    "en": _Locale(",", "."),
    "de": _Locale(".", ","),
    "fr": _Locale(_SPACES, ","),
    "ch": _Locale(_APOSTROPHES, "."),
    "in": _Locale(",", ".", r"\d{1,3}(?:(?:,\d{2})*|(?:,\d{3})*),\d{3}"),
    # A decimal sign alone: whatever else parts digits parts thousands.
    ".": _Locale(f",{_EVERY_GROUP}", "."),
    ",": _Locale(f".{_EVERY_GROUP}", ","),
}
_SETTINGS = ("k", "accounting")


def number_reader(arguments: tuple[Any, ...]) -> Callable[..., Number | None]:
    """A function that reads a value as the first number in it; None when there is none.

    Arguments are a locale ("en", "de", "fr", "ch", "in") or a decimal sign, "k" for suffixes (12k, 3.5m),
    and "accounting" for parentheses that mean minus even without a currency. The result is an int when it
    is whole, else a float, or a Decimal where a float would lose digits. Digits that the locale would not
    group like this give None, never another number.
    """
    chosen = [name for name in arguments if name not in _SETTINGS]
    for name in chosen:
        if name not in LOCALES:
            raise _unknown(name)
    if len(chosen) > 1:
        raise SettingError(f"'number' takes one locale or decimal sign, not {len(chosen)}")
    return _Reader(LOCALES[chosen[0] if chosen else "en"], "k" in arguments, "accounting" in arguments).read


def _unknown(name: object) -> SettingError:
    known = (*LOCALES, *_SETTINGS)
    hint = suggestion(name, known) if isinstance(name, str) else ""
    listed = ", ".join(f'"{each}"' for each in known)
    return SettingError(f"unknown form of numbers {name!r}{hint} (there are: {listed})")


class _Reader:
    """Reads numbers of one form."""

    def __init__(self, locale: _Locale, scales: bool, accounting: bool) -> None:
        self._is_plain = locale.decimal == "."
        self._scales = scales
        self._accounting = accounting
        decimal = re.escape(locale.decimal)
        # All that may belong to one number in any locale: what only looks like a part must not be one.
        more = rf"[{_SPACES}]\d{{3}}(?!\d)|[.,{_APOSTROPHES}]\d+"
        self._run = re.compile(rf"(?:(?<![\w.,]){decimal})?\d+(?:{more})*")
        other = "," if locale.decimal == "." else "."
        # The decimal sign of others before the digits, or an exponent behind them: another number is meant.
        self._foreign_before = re.compile(rf"(?<![\w.,])[{other}]$")
        grouped = locale.grouped.replace("GROUPS", locale.groups)
        self._form = re.compile(rf"(?P<whole>{grouped}|\d*)(?:{decimal}(?P<fraction>\d+))?")
        self._simple = _simple(locale, decimal)

    def read(self, value: Value, page: object = None) -> Number | None:
        kind = value.__class__
        if kind is not str:
            return value if kind in (int, float, Decimal) else None
        if not self._scales and (simple := self._simple.match(value)) is not None:
            whole, sign, fraction = simple.groups()
            if sign is not None:
                whole = whole.replace(sign, "")
            return int(whole) if fraction is None else _whole(float(f"{whole}.{fraction}"))
        if self._is_plain and (number := read_number(value)) is not None:
            return _whole(number)
        run = self._found(value)
        form = None if run is None else self._form.fullmatch(run[0])
        if run is None or form is None:
            return None
        start, end = run.span()
        if (start and self._foreign_before.search(value, start - 1, start)) or _EXPONENT.match(value, end):
            return None
        return self._number(value, start, end, form)

    def _found(self, text: str) -> re.Match[str] | None:
        """The first number in a text; None when there is none, or a longer one than anybody wrote."""
        digit = _DIGIT.search(text)
        if digit is None:
            return None
        start = digit.start()
        # The decimal sign may stand before it. No more is looked at than a number can have.
        run = self._run.search(text, max(0, start - 1), start + LONGEST_NUMBER + 1)
        return None if run is None or len(run[0]) > LONGEST_NUMBER else run

    def _number(self, text: str, start: int, end: int, form: re.Match[str]) -> Number:
        digits = "".join(filter(str.isdigit, form["whole"]))
        fraction = form["fraction"]
        scale = _SCALE.match(text, end) if self._scales else None
        number: Number = int(digits or 0)
        if scale is not None:
            exact = Decimal(f"{digits or 0}.{fraction or 0}") * _SCALES[scale[1].lower()]
            number = exact_number(format(exact, "f"))
        elif fraction is not None:
            number = exact_number(f"{digits or 0}.{fraction}")
        if self._is_negative(text, start, end if scale is None else scale.end()):
            number = -number
        return _whole(number)

    def _is_negative(self, text: str, start: int, end: int) -> bool:
        if start and _MINUS_BEFORE.search(text, max(0, start - _NEAR), start):
            return True
        before, after = _signs(text[:start]), _signs(text[end:])
        if before is None or after is None:
            return False
        if _FAR_MINUS.fullmatch(before) and _ONLY_SIGNS.fullmatch(after):
            return True
        if _MINUS_AFTER.fullmatch(after) and _ONLY_SIGNS.fullmatch(before):
            return True
        opened, closed = _OPENED.fullmatch(before), _CLOSED.fullmatch(after)
        if opened is None or closed is None:
            return False
        # (25) alone is mostly a count in parentheses.
        return self._accounting or any((*opened.groups(), *closed.groups()))


def _signs(text: str) -> str | None:
    """Return the text beside a number, with one blank for many; None if it is too long for signs."""
    if len(text) <= _MOST_SIGNS:
        return text
    signs = " ".join(text.split(maxsplit=_MOST_SIGNS))
    if len(signs) > _MOST_SIGNS:
        return None
    return f"{text[:1] if text[:1].isspace() else ''}{signs}{text[-1:] if text[-1:].isspace() else ''}"


def _simple(locale: _Locale, decimal: str) -> re.Pattern[str]:
    """Most numbers in pages: nothing about them says minus, and a float holds their digits."""
    separators = rf".,{_APOSTROPHES}"
    before = rf"[^\d{separators}{_DASHES}(]*+"
    after = rf"(?![\d{separators}{_DASHES}%)]|[{_SPACES}]\d|[eE][+-]?\d)"
    whole = rf"[0-9]{{1,3}}([{locale.groups}])[0-9]{{3}}(?:\2[0-9]{{3}})?|[0-9]{{1,9}}"
    return re.compile(rf"{before}({whole})(?:{decimal}([0-9]{{1,6}}))?{after}")


def _whole(number: Number) -> Number:
    """An int where that is the same number."""
    if isinstance(number, int):
        return number
    if isinstance(number, float):
        return int(number) if number.is_integer() else number
    # Beyond so many digits an integer costs more than it tells.
    is_whole = number.adjusted() < LONGEST_NUMBER and number == number.to_integral_value()
    return int(number) if is_whole else number
