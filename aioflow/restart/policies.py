"""Rules for slow requests as users write them: `auto`, `off`, seconds, a percentile, or a hedge."""

from __future__ import annotations

import re

import msgspec

from aioflow.errors import InputError

RESTART_EXPECTED = (
    "auto, off, seconds like 2.5, a percentile like p95, or one of these after hedge, like 'hedge p95'"
)
_PERCENTILE = re.compile(r"p(\d{1,2}(?:\.\d+)?)")
_SECONDS_AT_MOST = 86_400.0


class RestartPolicy(msgspec.Struct, frozen=True):
    """A rule for slow requests. With neither `after` nor `percentile` it is derived from what was seen.

    If `keeps_first`, the first request is kept running beside the second: a hedge.
    """

    is_on: bool = True
    keeps_first: bool = False
    after: float | None = None
    percentile: float | None = None

    @property
    def is_learned(self) -> bool:
        return self.is_on and self.after is None and self.percentile is None

    def __str__(self) -> str:
        if not self.is_on:
            return "off"
        when = "auto"
        if self.after is not None:
            when = f"{self.after:g}"
        elif self.percentile is not None:
            when = f"p{self.percentile:g}"
        if not self.keeps_first:
            return when
        return "hedge" if when == "auto" else f"hedge {when}"


OFF = RestartPolicy(is_on=False)


def read_policy(text: str) -> RestartPolicy:
    """Return the policy for a text such as `auto`, `2.5` or `hedge p95`."""
    words = text.lower().split()
    keeps_first = words[:1] == ["hedge"]
    when = words[1:] if keeps_first else words
    if keeps_first and not when:
        when = ["auto"]
    if len(when) != 1:
        raise _unknown(text)
    word = when[0]
    if word == "off" and not keeps_first:
        return OFF
    if word == "auto":
        return RestartPolicy(keeps_first=keeps_first)
    if found := _PERCENTILE.fullmatch(word):
        share = float(found[1])
        if not 0.0 < share < 100.0:
            raise _unknown(text)
        return RestartPolicy(keeps_first=keeps_first, percentile=share)
    try:
        seconds = float(word.removesuffix("s"))
    except ValueError:
        raise _unknown(text) from None
    if not 0.0 < seconds <= _SECONDS_AT_MOST:
        raise _unknown(text)
    return RestartPolicy(keeps_first=keeps_first, after=seconds)


def _unknown(text: str) -> InputError:
    return InputError(f"{text!r} is no rule for slow requests; it is {RESTART_EXPECTED}")
