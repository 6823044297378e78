"""The media type of a page: what its host says, unless its first bytes show that it is something else.

The bytes are judged as the WHATWG MIME Sniffing Standard does where it matters to crawlers: files that are no
text, feeds that are sent as HTML, and pages that are sent as plain text or without a type.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from aioflow.errors import SettingError
from aioflow.wrappers.media import SNIFFED_BYTES, medium_of

HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})
_SAYS_LITTLE = frozenset(
    {"", "text/plain", "application/octet-stream", "binary/octet-stream", "unknown/unknown", "text/unknown"}
)
_XML_TYPES = frozenset({"application/xml", "text/xml"})
_JSON_TYPES = frozenset({"application/json", "text/json"})
# What may stand before the first element.
_PROLOG = re.compile(rb"(?:\xef\xbb\xbf)?(?:\s+|<\?.*?\?>|<!--.*?-->|<!DOCTYPE[^>\[]*>)*", re.DOTALL | re.I)
_IS_PROLOG = (b"<?", b"<!", b"\xef\xbb\xbf", b" ", b"\t", b"\r", b"\n")
_ROOT = re.compile(rb"<(?:[A-Za-z][\w.-]*:)?([A-Za-z][\w.-]*)")
_ROOTS_OF_FEEDS = {
    b"rss": "application/rss+xml",
    b"feed": "application/atom+xml",
    b"RDF": "application/rdf+xml",
    b"urlset": "application/xml",
    b"sitemapindex": "application/xml",
}
_ROOTS_OF_HTML = frozenset(
    {b"html", b"head", b"body", b"title", b"script", b"div", b"h1", b"table", b"p", b"a"}
)
_XHTML_NAMESPACE = b"http://www.w3.org/1999/xhtml"
_TYPE_NAME = re.compile(r"[\w!#$&^.+*-]+/[\w!#$&^.+*-]+")


@lru_cache(maxsize=256)
def said_type(content_type: str) -> str:
    """Return the type of a Content-Type header, in lower case and without parameters."""
    return content_type.partition(";")[0].strip().lower()


def media_type(content_type: str, start: bytes) -> str:
    """Return the type of a body that begins so."""
    said = said_type(content_type)
    if not start and said not in _SAYS_LITTLE:
        return said  # an empty body, or one that was left where it is
    if said == "text/html" and start[:1] == b"<":
        return said if start[1:2] not in b"?rfsRu" else _of_markup(said, start)
    medium = medium_of(start, content_type)
    if medium is not None:
        return medium.type
    if said in HTML_TYPES or said in _XML_TYPES:
        return _of_markup(said, start)
    if said in _SAYS_LITTLE or said.startswith(("image/", "audio/", "video/", "font/")):
        return _of_text(said, start)
    return said


def _of_markup(said: str, start: bytes) -> str:
    """Return the type of something that is said to be HTML or XML."""
    root = _root(start)
    if said == "text/html":
        return _ROOTS_OF_FEEDS.get(root, said)
    if root == b"html" and said in _XML_TYPES:
        return "application/xhtml+xml" if _XHTML_NAMESPACE in start[:SNIFFED_BYTES] else "text/html"
    return said


def _of_text(said: str, start: bytes) -> str:
    """Return the type of a text about which its host says little."""
    root = _root(start)
    if root in _ROOTS_OF_FEEDS:
        return _ROOTS_OF_FEEDS[root]
    if root.lower() in _ROOTS_OF_HTML or b"<!doctype html" in start[:SNIFFED_BYTES].lower():
        return "text/html"
    if start.lstrip().startswith((b"<?xml", b"\xef\xbb\xbf<?xml")):
        return "application/xml"
    if said != "text/plain" and start.lstrip()[:1] in (b"{", b"["):
        return "application/json"
    return "text/plain"


def _root(start: bytes) -> bytes:
    """Return the name of the first element, without its prefix; empty if the text does not begin with one."""
    place = 0
    if start.startswith(_IS_PROLOG):
        found = _PROLOG.match(start)
        place = found.end() if found else 0
    root = _ROOT.match(start, place)
    return root[1] if root else b""


def kind_of(mime: str) -> str:
    """Return how a body of a type is read: html, xml, json, text, or binary."""
    if mime in HTML_TYPES:
        return "html"
    if mime in _XML_TYPES or mime.endswith("+xml"):
        return "xml"
    if mime in _JSON_TYPES or mime.endswith("+json"):
        return "json"
    return "text" if mime.startswith("text/") or mime in _TEXTS else "binary"


_TEXTS = frozenset(
    {
        "application/javascript",
        "application/ecmascript",
        "application/x-javascript",
        "application/yaml",
        "application/toml",
        "application/sql",
        "application/x-sh",
        "application/x-ndjson",
        "application/x-tex",
    }
)


class MediaTypes:
    """A setting that lists media types: `text/html, application/*+xml, image/*`."""

    kind_name = "a list of media types"
    __slots__ = ("_known", "_pattern", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        names = [name.strip().lower() for name in text.split(",") if name.strip()]
        patterns = (re.escape(name).replace(r"\*", "[^/]*") for name in names)
        self._pattern = re.compile("|".join(patterns))
        self._known: dict[str, bool] = {}

    @classmethod
    def bind(cls, value: Any, inputs: Any) -> MediaTypes:
        if not isinstance(value, str) or not value.strip():
            raise SettingError(f"must be {cls.kind_name}, such as 'text/html, image/*', not {value!r}")
        for name in filter(None, map(str.strip, value.split(","))):
            if not _TYPE_NAME.fullmatch(name):
                raise SettingError(f"{name!r} is no media type, such as text/html or image/*")
        return cls(value)

    def __str__(self) -> str:
        return self.text

    def __contains__(self, mime: str) -> bool:
        known = self._known.get(mime)
        if known is None:
            known = self._pattern.fullmatch(mime) is not None
            if len(self._known) < _MOST_KNOWN:
                self._known[mime] = known
        return known

    def accepts(self, content_type: str, start: bytes) -> bool:
        """Return whether a body is to be read; without its first bytes, whether it may turn out so."""
        said = said_type(content_type)
        if start:
            return media_type(content_type, start) in self
        return said in self or said in _SAYS_LITTLE or said in HTML_TYPES or said in _XML_TYPES


_MOST_KNOWN = 1000
# As in the crawler of the paper: HTML, XHTML and XML.
MARKUP_TYPES = MediaTypes("text/html, application/xhtml+xml, application/xml, text/xml, application/*+xml")
