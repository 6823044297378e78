"""Durations and amounts of memory as people write them: `90s`, `1h30m`, `64MB`."""

from __future__ import annotations

import re

from aioflow.errors import InputError

_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_BYTES = {"b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?) ?([a-z]*)")


def seconds(text: str) -> float:
    """Return the seconds of a text such as `5m`, `1h30m`, `500ms`, or a plain number of seconds."""
    written = text.strip().lower()
    try:
        total = float(written)
    except ValueError:
        parts = _DURATION_PART.findall(written)
        if not parts or "".join(number + unit for number, unit in parts) != written:
            raise InputError(f"not a duration: {text!r} (like 90s, 5m or 1h30m)") from None
        total = sum(float(number) * _SECONDS[unit] for number, unit in parts)
    if not 0 < total < float("inf"):
        raise InputError(f"a duration must be more than nothing, and finite: {text!r}")
    return total


def byte_count(text: str) -> int:
    """Return the bytes of a text such as `64MB`, `1GiB`, or a plain number of bytes."""
    match = _AMOUNT.fullmatch(text.strip().lower())
    unit = match and (match[2] or "b")
    if not match or unit not in _BYTES:
        raise InputError(f"not an amount of memory: {text!r} (like 64MB, 1GiB or 65536)")
    return round(float(match[1]) * _BYTES[unit])


def byte_text(count: int) -> str:
    """Return an amount of memory for people: `32 MiB`, `64 MB`, `1,500 bytes`."""
    for unit, name in ((2**30, "GiB"), (10**9, "GB"), (2**20, "MiB"), (10**6, "MB"), (2**10, "KiB")):
        if count >= unit and count % unit == 0:
            return f"{count // unit:,} {name}"
    return f"{count:,} bytes"


def size_text(count: int) -> str:
    """Return a rounded number of bytes for people: `1.2 MB`, `310 kB`, `1 byte`."""
    for unit, name in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if count >= unit * 0.9995:
            return f"{count / unit:.3g} {name}" if count < 999.5 * unit else f"{count / unit:,.0f} {name}"
    return count_text(count, "byte")


def duration_text(elapsed: float) -> str:
    """Return a time span for people: `0.42 s`, `12.3 s`, `4m 05s`, `2h 07m`."""
    if elapsed < 10:
        return f"{elapsed:.2f} s"
    if elapsed < 60:
        return f"{elapsed:.1f} s"
    minutes, rest = divmod(round(elapsed), 60)
    if minutes < 60:
        return f"{minutes}m {rest:02}s"
    return f"{minutes // 60}h {minutes % 60:02}m"


def count_text(count: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun: `1 row`, `1,200 rows`."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"
