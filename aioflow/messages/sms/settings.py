"""`[phone.NAME]` of the configuration: the gateway that sends text messages, and to which numbers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from aioflow.config.sections import Section, at_least, more_than_nothing
from aioflow.errors import InputError
from aioflow.messages.timing import quiet_setting

_URL = re.compile(r"secret:[A-Za-z_][\w-]*|[A-Za-z][\w+.-]*://\S*")
_METHOD = re.compile(r"[A-Z]+")
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_STATUS = re.compile(r"[2-5](xx|[0-9][0-9])")
_ALLOWED = re.compile(r"\+(?:[1-9][0-9]{0,13}\*|[1-9][0-9]{6,14}|\*)")
_NUMBER = re.compile(r"\+[1-9][0-9]{6,14}")
_BETWEEN = re.compile(r"[ \u00a0./()-]+")


@dataclass(frozen=True)
class PhoneSettings:
    """A gateway: an http(s) address, or a URL of apprise with `{to}` in it.

    In `url`, `form`, `json` and `body` stand `{to}`, `{text}` and `{key}`; there and in headers
    `secret:NAME`. Without any of form, json and body, `to`, `text` and `key` are sent as JSON.
    """

    url: str = ""
    method: str = "POST"
    form: Mapping[str, str] = field(default_factory=dict)
    json: str | None = None
    body: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    success: tuple[str, ...] = ("2xx",)
    key_header: str | None = "Idempotency-Key"
    connect_seconds: float = 10.0
    total_seconds: float = 60.0
    allow: tuple[str, ...] = ()  # numbers that may come from data: `+49*` or whole ones
    most_segments: int = 4
    too_long: Literal["cut", "split"] = "cut"
    quiet: str | None = None  # hours in which nothing is delivered

    @property
    def is_plain(self) -> bool:
        """True if it is an ordinary http(s) gateway, none of apprise's."""
        return self.url.startswith(("http://", "https://"))

    def allows(self, number: str) -> bool:
        """Return whether a number that comes from data may be sent to."""
        return any(
            number.startswith(each[:-1]) if each.endswith("*") else number == each for each in self.allow
        )


def phone_number(text: str) -> str:
    """Return a number as E.164 has it, `+4915112345678`, without what people write between digits."""
    number = _BETWEEN.sub("", text)
    if "(0)" in text or not _NUMBER.fullmatch(number):
        raise InputError(
            f"{text!r} is no phone number: + and the code of the country, then 7 to 15 digits in all, "
            "like '+49 151 12345678'"
        )
    return number


def _text(pattern: re.Pattern[str], expected: str) -> Callable[[str], str]:
    def refine(text: str) -> str:
        if not pattern.fullmatch(text):
            raise InputError(expected)
        return text

    return refine


def _texts(pattern: re.Pattern[str], expected: str) -> Callable[[tuple[str, ...]], tuple[str, ...]]:
    def refine(texts: tuple[str, ...]) -> tuple[str, ...]:
        if not all(map(pattern.fullmatch, texts)):
            raise InputError(expected)
        return texts

    return refine


def _numbers(texts: tuple[str, ...]) -> tuple[str, ...]:
    return _texts(_ALLOWED, "a list of numbers like '+4915112345678', or how they begin, like '+49*'")(
        tuple(_BETWEEN.sub("", text) for text in texts)
    )


def _json(text: str) -> str:
    try:
        json.loads(text)
    except ValueError as error:
        raise InputError(f'JSON with {{to}} and {{text}} inside of its texts ("{error}")') from None
    return text


def _line(text: str) -> str:
    if not text.isprintable():
        raise InputError("a text on one line")
    return text


PHONE = Section[Any](
    "phone",
    PhoneSettings,
    named=True,
    refine={
        "url": _text(_URL, "the https:// address of a gateway, a URL of apprise with {to}, or 'secret:NAME'"),
        "method": _text(_METHOD, "a method of HTTP, like POST"),
        "json": _json,
        "headers": _line,
        "success": _texts(_STATUS, "a list of statuses, like '200' or '2xx'"),
        "key_header": _text(_HEADER, "the name of a header"),
        "connect_seconds": more_than_nothing("a time"),
        "total_seconds": more_than_nothing("a time"),
        "allow": _numbers,
        "most_segments": at_least(1, "a whole number"),
        "quiet": quiet_setting,
    },
)
