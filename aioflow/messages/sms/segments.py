"""Text messages: how long a text is on the air, and how one that is too long is cut or split.

The alphabet is that of 3GPP TS 23.038: 7-bit characters, some of which take two places, and UCS-2 (UTF-16 on
every phone of today) for a text with any other character in it. One segment holds 160 or 70 places; a text of
several loses 7 or 3 in each, by which the phone joins them again.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from itertools import accumulate, takewhile
from typing import Literal, TypeAlias

import msgspec

Encoding: TypeAlias = Literal["GSM-7", "UCS-2"]

_BASIC = (
    "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?"
    "¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà"
)
_EXTENSION = "\f^{}\\[~]|€"  # each behind an escape, which takes a place as well
_PLACES = {**dict.fromkeys(_BASIC, 1), **dict.fromkeys(_EXTENSION, 2)}
_JOINER = "\u200d"
_CONTROLS = re.compile(r"[\x00-\x09\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")


class _Room(msgspec.Struct, frozen=True):
    """The places of a segment that is alone, and of one of several."""

    alone: int
    joined: int


_ROOM: dict[Encoding, _Room] = {"GSM-7": _Room(160, 153), "UCS-2": _Room(70, 67)}


def clean(text: str) -> str:
    """A text as it can be sent: composed characters, line feeds, no controls and no halves of characters.

    An accent that stands by itself would make the whole text take more than twice the room.
    """
    composed = unicodedata.normalize("NFC", text.replace("\r\n", "\n").replace("\r", "\n"))
    return _CONTROLS.sub(" ", composed)


def encoding_of(text: str) -> Encoding:
    return "GSM-7" if all(character in _PLACES for character in text) else "UCS-2"


def places(text: str, encoding: Encoding) -> int:
    """Return how many places of a segment a text takes."""
    if encoding == "GSM-7":
        return sum(_PLACES[character] for character in text)
    return sum(2 if character > "\uffff" else 1 for character in text)


def segments(text: str) -> list[str]:
    """A text as the segments in which it is sent; joined they are the text.

    What a reader sees as one character stays in one segment, unless it does not fit into any.
    """
    encoding = encoding_of(text)
    room = _ROOM[encoding]
    if places(text, encoding) <= room.alone:
        return [text]
    found, rest = [], _pieces(text, encoding, room.joined)
    segment, taken = "", 0
    for piece in rest:
        size = places(piece, encoding)
        if taken + size > room.joined:
            found.append(segment)
            segment, taken = "", 0
        segment, taken = segment + piece, taken + size
    return [*found, segment]


def cut(text: str, most_segments: int) -> str:
    """The text, or so many words of it as fit, and a mark: `…`, or `...` where that keeps it in GSM-7."""
    if len(segments(text)) <= most_segments:
        return text
    beginning = _beginning(text, most_segments, "...").rstrip() + "..."
    if encoding_of(beginning) == "GSM-7":
        return beginning
    return _beginning(text, most_segments, "…").rstrip() + "…"


def split(text: str, most_segments: int) -> list[str]:
    """The text in parts of at most so many segments each, which end behind a word where they can."""
    parts = []
    while len(segments(text)) > most_segments:
        part = _beginning(text, most_segments)
        parts.append(part)
        text = text[len(part) :]
    return [*parts, text]


def _beginning(text: str, most_segments: int, mark: str = "") -> str:
    """The longest beginning of a longer text that fits with the mark behind it; whole words if any fit."""
    clusters = list(_clusters(text[: _ROOM["GSM-7"].alone * most_segments + 1]))  # no more can fit
    low, high = 0, len(clusters)
    while low < high:
        middle = (low + high + 1) // 2
        if len(segments("".join(clusters[:middle]) + mark)) <= most_segments:
            low = middle
        else:
            high = middle - 1
    if low == 0:
        # One character that takes more than all of the room: as much of it as fits.
        sizes = accumulate(text, initial="")
        fitting = takewhile(lambda each: len(segments(each + mark)) <= most_segments, sizes)
        return max(fitting, key=len)
    whole = "".join(clusters[:low])
    if text[len(whole)].isspace():
        return whole
    words = re.match(r"(?s).*\s", whole)
    return words[0] if words and words[0].strip() else whole


def _pieces(text: str, encoding: Encoding, most: int) -> Iterator[str]:
    """Yield the pieces that should not be divided, and the characters of those longer than a segment."""
    for cluster in _clusters(text):
        if places(cluster, encoding) <= most:
            yield cluster
        else:
            yield from cluster


def _clusters(text: str) -> Iterator[str]:
    """Yield the characters as readers see them, near enough to Unicode's UAX 29."""
    start, flags = 0, 0
    for place in range(1, len(text)):
        before, character = text[place - 1], text[place]
        flags = flags + 1 if _is_flag_letter(before) else 0
        second_of_flag = _is_flag_letter(character) and flags % 2 == 1
        if second_of_flag or _extends(character) or before == _JOINER or (before, character) == ("\r", "\n"):
            continue
        yield text[start:place]
        start = place
    if text:
        yield text[start:]


def _is_flag_letter(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _extends(character: str) -> bool:
    """Return whether a character is drawn with the one before it."""
    return character > "\u02ff" and (
        character == _JOINER
        or unicodedata.category(character) in ("Mn", "Me", "Mc")
        or "\u1160" <= character <= "\u11ff"  # the later letters of a Korean syllable
        or "\U0001f3fb" <= character <= "\U0001f3ff"  # colours of skin
        or "\U000e0020" <= character <= "\U000e007f"  # flags of regions
    )
