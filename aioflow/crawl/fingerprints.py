"""Near duplicates: fingerprints of texts (simhash), and an index that finds near ones without comparing all.

Charikar's simhash over pairs of words, in the form of Manku et al., Detecting Near-Duplicates for Web
Crawling (2007). The package simhash was considered: it needs numpy, and has no index that can go to disk.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from hashlib import blake2b
from typing import Any

BITS = 64
MOST_DISTANCE = 7
_RUN = 2  # words of a shingle; with three, one changed word changes half as many bits again
_MOST_WORDS = 20_000  # of a text; more of them hardly change a fingerprint
_LONGEST_TEXT = 1 << 20
_KEPT_WORDS = 1 << 16
_WORD_BYTES = 8

# Scripts without spaces between words have a word for each character.
_WORD = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff]|[^\W\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff]+")


def simhash64(text: str) -> int:
    """Return a fingerprint of 64 bits: similar texts differ in few bits. It is 0 for a text without words."""
    words = _WORD.findall(text[:_LONGEST_TEXT].lower())[:_MOST_WORDS]
    if not words:
        return 0
    hashes = list(map(_hashes, words))
    # Fewer words than a shingle has are one shingle.
    number = max(len(hashes) - _RUN + 1, 1)
    shingles = 0
    for place in range(min(_RUN, len(hashes))):
        column = b"".join([each[place] for each in hashes[place : place + number]])
        shingles ^= int.from_bytes(column, "little")
    # One bit of all shingles at a time, so that the counting is done by long integers.
    first_bits = int.from_bytes(b"\1\0\0\0\0\0\0\0" * number, "little")
    fingerprint = 0
    for bit in range(BITS):
        if (shingles >> bit & first_bits).bit_count() * 2 > number:
            fingerprint |= 1 << bit
    return fingerprint or 1


@lru_cache(_KEPT_WORDS)
def _hashes(word: str) -> tuple[bytes, ...]:
    """Return a hash of a word for each place in a shingle: words in another order are another shingle."""
    digest = blake2b(word.encode("utf-8", "replace")[:1000], digest_size=_WORD_BYTES * _RUN).digest()
    return tuple(digest[start : start + _WORD_BYTES] for start in range(0, len(digest), _WORD_BYTES))


def distance(first: int, second: int) -> int:
    """Return the number of bits in which two fingerprints differ."""
    return (first ^ second).bit_count()


class FingerprintBands:
    """The parts of fingerprints by which near ones are found: two within `most` bits share one part."""

    def __init__(self, most: int) -> None:
        self._most = most
        width, wider = divmod(BITS, most + 1)
        starts = [band * width + min(band, wider) for band in range(most + 1)]
        ends = [*starts[1:], BITS]
        self._bands = [
            (band, start, (1 << (end - start)) - 1)
            for band, (start, end) in enumerate(zip(starts, ends, strict=True))
        ]

    def keys(self, fingerprint: int) -> list[tuple[int, int]]:
        """Return the parts, each with its place."""
        return [(band, fingerprint >> start & mask) for band, start, mask in self._bands]

    def nearest(self, fingerprint: int, pages: Iterable[tuple[Any, ...]]) -> tuple[Any, int] | None:
        """Return URL and distance of the first near page, of pages as number, fingerprint and URL."""
        most = self._most
        near = [page for page in pages if (fingerprint ^ page[1]).bit_count() <= most]
        if not near:
            return None
        first = min(near, key=lambda page: int(page[0]))
        return first[2], distance(fingerprint, first[1])
