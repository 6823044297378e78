"""Sitemaps (sitemaps.org): XML, indexes of sitemaps, text, gzip, and the Sitemap lines of robots.txt.

A reader gets the body piece by piece and gives entries as they are complete, so that memory does not grow
with the file. It makes no requests. ultimate-sitemap-parser was considered: it brings a client of its own,
and reads whole files.
"""

from __future__ import annotations

import codecs
import re
import zlib
from collections.abc import Iterator
from datetime import date, datetime
from typing import Any
from urllib.parse import urlsplit

import msgspec

from aioflow.errors import InputError
from aioflow.values.quantities import size_text
from aioflow.web.urls import resolve, without_userinfo
from aioflow.xml.errors import BadXmlError
from aioflow.xml.items import ItemParser, SimpleSteps

# The limits of the protocol, for one file without compression.
MOST_ENTRIES = 50_000
MOST_BYTES = 50 * 1024 * 1024
_PIECE_BYTES = 1 << 16
_LONGEST_VALUE = 16 * 1024
_GZIP = b"\x1f\x8b"
_DECLARED = re.compile(rb"<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([A-Za-z0-9._-]{1,40})[\"']")
_BEGINNINGS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_ITEM = SimpleSteps(("{*}*", "{*}*"), is_anywhere=False)
_ROOTS = {"urlset": "url", "sitemapindex": "sitemap"}
_ROBOTS_LINE = re.compile(r"\s*sitemap\s*:\s*(\S+)", re.IGNORECASE)
_PARTIAL_DATE = re.compile(r"([0-9]{4})(?:-([0-9]{2}))?")


class SitemapError(InputError):
    """A sitemap cannot be read, or is larger than the protocol allows; the message says where."""


class SitemapEntry(msgspec.Struct, frozen=True):
    """A page, or if it `is_sitemap` another sitemap. Values that are missing or wrong are None."""

    url: str
    is_sitemap: bool = False
    lastmod: date | None = None
    changefreq: str | None = None
    priority: float | None = None


class SitemapReader:
    """Reads one file. `url` is its address, which links of robots.txt may be relative to."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._unpacker: Any = None
        self._is_packed: bool | None = None
        self._bytes = 0
        self._entries = 0
        self._beginning = b""
        self._decoder: codecs.IncrementalDecoder | None = None
        self._lines: _Lines | _Xml | None = None

    def feed(self, data: bytes) -> Iterator[list[SitemapEntry]]:
        """Take in a piece of the body, and yield the entries that it completes, a few hundred at a time.

        All calls are to be made in one thread: the parser of XML does not bear another.
        """
        for piece in self._unpacked(data):
            self._bytes += len(piece)
            if self._bytes > MOST_BYTES:
                raise self._error(f"it is larger than {size_text(MOST_BYTES)}")
            yield self._read(piece)

    def end(self) -> list[SitemapEntry]:
        """Return the last entries; raise a SitemapError if the file is cut off."""
        if self._unpacker is not None and not self._unpacker.eof:
            raise self._error("the gzip file is cut off")
        found = self._read(b"", is_end=True)
        assert self._lines is not None
        return found + self._count(self._guarded(self._lines.end))

    # --- bytes ----------------------------------------------------------------------------------

    def _unpacked(self, data: bytes) -> Iterator[bytes]:
        if self._is_packed is None:
            self._beginning += data
            if len(self._beginning) < len(_GZIP):
                return
            data, self._beginning = self._beginning, b""
            self._is_packed = data.startswith(_GZIP)
        if not self._is_packed:
            yield from (data[start : start + _PIECE_BYTES] for start in range(0, len(data), _PIECE_BYTES))
            return
        while data:
            if self._unpacker is None or self._unpacker.eof:
                if not data.strip(b"\0"):
                    return  # padding after the last member
                self._unpacker = zlib.decompressobj(wbits=31)
            try:
                piece = self._unpacker.decompress(data, _PIECE_BYTES)
            except zlib.error as error:
                raise self._error(f"the gzip file is damaged ({error})") from None
            data = self._unpacker.unconsumed_tail or self._unpacker.unused_data
            yield piece

    def _read(self, piece: bytes, *, is_end: bool = False) -> list[SitemapEntry]:
        if self._decoder is None:
            self._beginning += piece
            if len(self._beginning) < 512 and not is_end:
                return []
            piece = self._beginning
            self._decoder = codecs.getincrementaldecoder(_encoding(piece))()
        try:
            text = self._decoder.decode(piece, is_end)
        except UnicodeDecodeError as error:
            raise self._error(
                f"byte {self._bytes - len(piece) + error.start:,} is no text: {error.reason}"
            ) from None
        if self._lines is None:
            self._lines = self._kind(text)
        lines = self._lines
        return self._count(self._guarded(lambda: lines.feed(text)))

    def _kind(self, text: str) -> _Lines | _Xml:
        if urlsplit(self._url).path.endswith("/robots.txt"):
            return _Lines(self._url, is_robots=True)
        return (
            _Xml(self._url) if text.lstrip("\ufeff \t\r\n")[:1] == "<" else _Lines(self._url, is_robots=False)
        )

    # --- entries --------------------------------------------------------------------------------

    def _guarded(self, read: Any) -> list[SitemapEntry]:
        try:
            return list(read())
        except BadXmlError as error:
            raise self._error(str(error)) from None

    def _count(self, entries: list[SitemapEntry]) -> list[SitemapEntry]:
        self._entries += len(entries)
        if self._entries > MOST_ENTRIES:
            raise self._error(f"it has more than {MOST_ENTRIES:,} URLs")
        return entries

    def _error(self, reason: str) -> SitemapError:
        return SitemapError(f"the sitemap {without_userinfo(self._url)} cannot be read: {reason}")


def _encoding(beginning: bytes) -> str:
    for mark, encoding in _BEGINNINGS.items():
        if beginning.startswith(mark):
            return encoding
    declared = _DECLARED.match(beginning.lstrip())
    if declared is not None:
        try:
            found = codecs.lookup(declared[1].decode())
        except LookupError:
            return "utf-8"
        if found.name != "utf-16" and getattr(found, "_is_text_encoding", False):
            return found.name
    return "utf-8"


class _Lines:
    """A URL on each line; or the Sitemap lines of robots.txt."""

    def __init__(self, url: str, *, is_robots: bool) -> None:
        self._url = url
        self._is_robots = is_robots
        self._rest = ""
        self._number = 0

    def feed(self, text: str) -> Iterator[SitemapEntry]:
        *lines, self._rest = re.split(r"\r\n?|\n", self._rest + text)
        if len(self._rest) > _LONGEST_VALUE:
            raise self._error(self._number + 1, self._rest)
        for line in lines:
            yield from self._entry(line)

    def end(self) -> Iterator[SitemapEntry]:
        yield from self._entry(self._rest)

    def _entry(self, line: str) -> Iterator[SitemapEntry]:
        self._number += 1
        if self._is_robots:
            found = _ROBOTS_LINE.match(line)
            link = None if found is None else resolve(self._url, found[1])
            if link is not None:
                yield SitemapEntry(link, is_sitemap=True)
        elif text := line.strip("\ufeff \t"):
            if "://" not in text or len(text) > _LONGEST_VALUE or " " in text:
                raise self._error(self._number, text)
            yield SitemapEntry(text)

    def _error(self, number: int, text: str) -> SitemapError:
        where = f"the sitemap {without_userinfo(self._url)} cannot be read"
        return SitemapError(f"{where}: line {number} is no URL: {text[:80]!r}")


class _Xml:
    """`urlset` or `sitemapindex`, in any namespace."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._parser = ItemParser(_ITEM, only_outermost=True, when_kept=self._check_length)
        self._root = ""

    def feed(self, text: str) -> Iterator[SitemapEntry]:
        for element in self._parser.feed(text):
            yield from self._entry(element)

    def end(self) -> Iterator[SitemapEntry]:
        for element in self._parser.end():
            yield from self._entry(element)
        self._check_root(_local(self._parser.root.tag))

    def _check_length(self, characters: int) -> None:
        if characters > 20 * _PIECE_BYTES:
            raise BadXmlError("an entry has more than a megabyte")

    def _check_root(self, root: str) -> None:
        if root not in _ROOTS:
            raise BadXmlError(f"its element <{root[:40]}> is neither <urlset> nor <sitemapindex>")
        self._root = root

    def _entry(self, element: Any) -> Iterator[SitemapEntry]:
        if not self._root:
            self._check_root(_local(element.getparent().tag))
        if _local(element.tag) != _ROOTS[self._root]:
            return
        values = {_local(child.tag): (child.text or "").strip() for child in reversed(element)}
        link = resolve(self._url, values.get("loc", "")) if values.get("loc") else None
        if link is None:
            raise BadXmlError(
                f"a <{_ROOTS[self._root]}> without <loc> that is a URL: {values.get('loc', '')[:80]!r}"
            )
        yield SitemapEntry(
            link,
            self._root == "sitemapindex",
            _date(values.get("lastmod", "")),
            values.get("changefreq", "").lower()[:20] or None,
            _number(values.get("priority", "")),
        )


def _local(tag: str) -> str:
    return tag.rpartition("}")[2]


def _date(text: str) -> date | None:
    """Return a W3C date: a day, or a moment; a year or month is its first day."""
    try:
        if found := _PARTIAL_DATE.fullmatch(text):
            return date(int(found[1]), int(found[2] or 1), 1)
        return date.fromisoformat(text) if len(text) == 10 else datetime.fromisoformat(text)
    except ValueError:
        return None


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if 0 <= number <= 1 else None
