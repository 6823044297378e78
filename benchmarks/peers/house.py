"""The content of a page about a house, and the form in which it is passed on: the same for all peers.

Imports nothing but the standard library: peers run in environments of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

House = dict[str, Any]

RESULT = "li.house a.title"
NEXT = "a.next"
PHOTO = ".gallery a.photo"


def search_url(site: str) -> str:
    return f"{site}/search?{urlencode({'city': 'Irvine', 'max-price': 550_000})}"


def read_house(url: str, text: Callable[[str], str | None], picture: str | None) -> House:
    """A house from its page; `text` gives that of the first element that a selector finds."""
    return {
        "house-url": url,
        "address": text("h1.address"),
        "city": text(".place .city"),
        "zip": text(".place .zip"),
        "price": _number(text(".asking")),
        "beds": _number(text(".facts .beds .value")),
        "baths": _number(text(".facts .baths .value")),
        "square-feet": _number(text(".facts .area .value")),
        "year-built": _number(text(".facts .built .value")),
        "listed": _day(text(".facts .listed .value")),
        "mls": text(".facts .mls .value"),
        "agent": text(".agent .name"),
        "phone": text(".agent .phone"),
        "picture": picture,
    }


def _number(text: str | None) -> float | None:
    """Of `$ 501,000`, `1,475 sq ft` or `3 + den`."""
    if not text:
        return None
    digits = "".join(character for character in text.split("+")[0] if character.isdigit() or character == ".")
    return float(digits) if digits else None


def _day(text: str | None) -> str | None:
    return datetime.strptime(text, "%B %d, %Y").date().isoformat() if text else None
