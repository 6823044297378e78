"""Pages as documents: bodies decoded, and what people read in them: title, language and visible text.

Long pages are left to other processes: `is_heavy` says which.
"""

from __future__ import annotations

import asyncio
import re
from threading import local
from typing import TYPE_CHECKING

import msgspec

from aioflow.crawl.media_types import kind_of
from aioflow.relation import Document, Value
from aioflow.wrappers.charsets import (
    UTF8,
    Charset,
    TextDecoder,
    decode_as,
    detect,
    says_utf8,
)
from aioflow.wrappers.readers.html.deep_markup import flattened, has_long_tag, tags_about
from aioflow.wrappers.readers.html.nodes import find_first, text_of

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser

# A page of so many bytes or tags is better not read on the event loop.
HEAVY_BYTES = 256 * 1024
_MANY_TAGS = 20_000
_LIGHT_CHARACTERS = 8 * 1024  # so few can do no harm
_SLICE_BYTES = 256 * 1024
_SEARCHED_CHARACTERS = 64 * 1024  # for the title
_LANGUAGE_CHARACTERS = 4096  # in which the first element has begun
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_HTML_LANGUAGE = re.compile(
    r"""<html\b[^<>]*?\s(?:xml:)?lang\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""", re.IGNORECASE
)
_FIRST_TAG = re.compile(r"<[A-Za-z_][^<>]*")
_XML_LANGUAGE = re.compile(r"""\sxml:lang\s*=\s*(?:"([^"]*)"|'([^']*)')""")
_NAME_OF_LANGUAGE = re.compile(r"[A-Za-z]{2,8}(?:[-_][A-Za-z0-9]{1,8})*")
_UTF8_MARK = b"\xef\xbb\xbf"


class PageText(msgspec.Struct, frozen=True):
    """The title and the visible text of a page, each with single spaces; `is_cut` if it nests too deeply."""

    title: str | None
    text: str | None
    is_cut: bool = False


# --- bodies -------------------------------------------------------------------------------------


async def decoded(body: bytes, content_type: str, mime: str) -> tuple[Value, str | None]:
    """Return a body as a document or a text, and its charset; null for what is no text.

    A long body is decoded bit by bit, so that everything else goes on.
    """
    kind = kind_of(mime)
    if kind == "binary":
        return None, None
    if says_utf8(content_type) and len(body) < HEAVY_BYTES and not body.startswith(_UTF8_MARK):
        return _as_kind(body.decode(UTF8, "replace"), kind), UTF8
    is_markup = kind in ("html", "xml")
    charset = detect(body, content_type, markup=is_markup)
    if len(body) < HEAVY_BYTES:
        return _as_kind(decode_as(body, charset), kind), _shown(charset, body)
    decoder = TextDecoder(content_type, markup=is_markup)
    pieces = []
    for start in range(0, len(body), _SLICE_BYTES):
        pieces.append(decoder.feed(body[start : start + _SLICE_BYTES]))
        await asyncio.sleep(0)
    pieces.append(decoder.end())
    return _as_kind("".join(pieces), kind), _shown(decoder.charset or charset, b"")


def _as_kind(text: str, kind: str) -> Value:
    return text if kind == "text" else Document(text, kind)  # type: ignore[arg-type]  # one of the three


def _shown(charset: Charset, body: bytes) -> str:
    """Return the name of a charset as the web knows it."""
    codec = charset.codec
    if charset.said_by == "nobody" and codec == UTF8 and not _is_utf8(body):
        codec = "cp1252"
    return codec.replace("cp125", "windows-125") if codec.startswith("cp125") else codec


def _is_utf8(body: bytes) -> bool:
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True


# --- HTML ---------------------------------------------------------------------------------------


def is_heavy(document: Value, *, has_links: bool = False) -> bool:
    """Return whether reading a page may keep the event loop waiting; with `has_links`, only for its links."""
    if has_links and (not isinstance(document, Document) or document.kind == "json"):
        return False
    text = document.text if isinstance(document, Document) else document
    if not isinstance(text, str) or len(text) <= _LIGHT_CHARACTERS:
        return False
    if len(text) >= HEAVY_BYTES:
        return True
    markup = utf8(text)
    size = len(markup)
    if size >= HEAVY_BYTES:
        return True
    return (size > 3 * _MANY_TAGS and tags_about(markup) > _MANY_TAGS) or has_long_tag(markup)


class _Latest(local):
    """The tree that a thread made last.

    If it were let go of before the next one is there, the memory for every single page would be given back to
    the system and asked for again, which takes as long as parsing.
    """

    tree: LexborHTMLParser | None = None


_latest = _Latest()


def parse_html(markup: bytes) -> tuple[LexborHTMLParser, bool]:
    """Return the tree of a page, and whether elements were left out of one that nests too deeply."""
    from selectolax.lexbor import LexborHTMLParser, SelectolaxError

    flat = flattened(markup)
    try:
        tree = LexborHTMLParser(markup if flat is None else flat)
    except SelectolaxError as error:  # all pages are HTML to Lexbor: it fails only for want of memory
        raise MemoryError from error
    _latest.tree = tree if len(markup) < HEAVY_BYTES else None
    return tree, flat is not None


def utf8(text: str) -> bytes:
    return text.encode("utf-8", "replace")


# --- what people read ---------------------------------------------------------------------------


def page_title(document: Value) -> str | None:
    """Return the title of a page, if it is near its beginning; null for what has none."""
    if not isinstance(document, Document) or document.kind == "json":
        return None
    if document.kind == "xml":
        return _xml_title(document.text)
    plain = _PLAIN_TITLE.match(document.text)
    if plain is not None:
        return collapsed(plain[1])
    beginning = document.text[:_SEARCHED_CHARACTERS]
    end = beginning.find("</title")
    if end < 0:
        end = beginning.lower().find("</title")
    if end < 0:
        return None
    # No more than that has to be parsed, unless it was in a script or a comment.
    for markup in (beginning[: end + len("</title>")], beginning):
        found = _title_in(utf8(markup))
        if found is not None:
            return found
    return None


# The beginning of most pages: nothing in it could hide a title. The rest is parsed.
_PLAIN_TITLE = re.compile(
    r"\s*+(?:<!doctype[^<>]*+>\s*+)?(?:<html(?:\s[^<>]*+)?+>\s*+)?<head(?:\s[^<>]*+)?+>\s*+"
    r"(?:<(?:meta|link|base)\s[^<>]*+>\s*+){0,50}+<title>([^<&]*+)</title>",
    re.IGNORECASE,
)


def _title_in(markup: bytes) -> str | None:
    if has_long_tag(markup):
        return None
    root = parse_html(markup)[0].root
    node = None if root is None else find_first("head > title", root) or find_first("title", root)
    return None if node is None else collapsed(node.text())


def _xml_title(text: str) -> str | None:
    """Return the first title in the text of a feed or another XML document."""
    found = _XML_TITLE.search(text, 0, _SEARCHED_CHARACTERS)
    if found is None:
        return None
    from html import unescape

    inner = found[1]
    cdata = _CDATA.fullmatch(inner)
    return collapsed(cdata[1] if cdata else unescape(inner))


# Bounded: a page may begin a thousand titles and end none.
_XML_TITLE = re.compile(
    r"<(?:[A-Za-z][\w.-]{0,50}:)?title(?:\s[^<>]*)?>(<!\[CDATA\[.{0,2000}?\]\]>|[^<]{0,2000})</", re.DOTALL
)
_CDATA = re.compile(r"<!\[CDATA\[(.*)\]\]>", re.DOTALL)


def page_text(document: Value) -> PageText:
    """Return the title and the visible text of a page, whole; a BadXmlError for XML that is none."""
    if document is None:
        return PageText(None, None)
    if isinstance(document, Document) and document.kind == "html":
        tree, is_cut = parse_html(utf8(document.text))
        body = tree.body
        return PageText(page_title(document), collapsed("" if body is None else text_of(body)), is_cut)
    if isinstance(document, Document) and document.kind == "xml":
        from aioflow.xml.guard import parse_xml

        root = parse_xml(document.text)
        return PageText(page_title(document), collapsed(" ".join(root.itertext())))
    return PageText(None, collapsed(str(document)))


def collapsed(text: str) -> str:
    """Return a text without white space at its ends, and with single spaces inside."""
    return " ".join(text.split())


def page_language(document: Value, said: str | None) -> str | None:
    """Return the language of a page, such as `en` or `de-AT`: that of its root element, or else the header's.

    Languages are not guessed: the libraries that could are large models, or are no longer kept.
    """
    text = None
    if isinstance(document, Document) and document.kind != "json":
        text = _root_language(document)
    if text is None:
        text = said or ""
        if "," in text:  # a header may list the languages of several audiences
            return None
    name = _NAME_OF_LANGUAGE.match(text.strip())
    return None if name is None else name[0].replace("_", "-")


def _root_language(document: Document) -> str | None:
    beginning = document.text[:_LANGUAGE_CHARACTERS]
    if "<!--" in beginning:
        beginning = _COMMENT.sub("", beginning)
    if document.kind == "xml":
        tag = _FIRST_TAG.search(beginning)
        found = None if tag is None else _XML_LANGUAGE.search(tag[0])
    else:
        place = beginning.find("<html")
        found = _HTML_LANGUAGE.match(beginning, place) if place >= 0 else _HTML_LANGUAGE.search(beginning)
    return None if found is None else found[1] or found[2] or found[found.lastindex or 0]
