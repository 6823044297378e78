"""XML parsing without the features that a source could abuse: no DTD, no entities, no network, no files.

This is the only module that touches lxml's parsers for XML.
"""

from __future__ import annotations

import re
from typing import Any, Literal

from lxml import etree as _etree  # type: ignore[import-untyped]

from aioflow.xml.errors import BadXmlError

DEPTH_LIMIT = 256  # libxml2's own for trees that are not huge
_LONGEST_PROLOG = 1 << 20

etree: Any = _etree

# What may stand before the root element and says nothing.
_IDLE = re.compile(r"\s+|<!--.*?-->|<\?.*?\?>", re.DOTALL)
# A document type as far as it says nothing but its name and where it is defined.
_DOCTYPE = re.compile(r"<!DOCTYPE(?:[^\[\]<>\"']|\"[^\"]*+\"|'[^']*+')*+", re.IGNORECASE)
_NO_LINE_END = re.compile(r"[^\r\n]")
_UNDECIDED = re.compile(
    r"<(?:!(?:-|D(?:O(?:C(?:T(?:Y(?:P)?)?)?)?)?)?)?|<\?.*|<!--.*", re.DOTALL | re.IGNORECASE
)


_REFUSED = "it has a DOCTYPE with declarations, which is refused: document types and entities are not read"


class _Prolog:
    """The part of a text before its root element, until that begins."""

    def __init__(self) -> None:
        self.text = ""
        self.is_over = False

    def past(self, text: str) -> str:
        """Return the text that a parser may see: none before the root element is known to begin."""
        # A declaration is to be the first thing in a text; what stands before it does no harm.
        prolog = self.text = (self.text + text).lstrip("\ufeff \t\r\n")
        position = _past_idle(prolog, 0)
        if doctype := _DOCTYPE.match(prolog, position):
            mark = prolog[doctype.end() : doctype.end() + 1]
            if mark and mark not in "\"'>":
                raise BadXmlError(_REFUSED, *_place(prolog, position))
            if mark == ">":
                blank = _NO_LINE_END.sub(" ", prolog[position : doctype.end() + 1])
                prolog = f"{prolog[:position]}{blank}{prolog[doctype.end() + 1 :]}"
                position = _past_idle(prolog, position)
                if _DOCTYPE.match(prolog, position):
                    raise BadXmlError("it has two DOCTYPEs", *_place(prolog, position))
            else:
                position = len(prolog)  # its end is still to come
        if position == len(prolog) or _UNDECIDED.fullmatch(prolog, position):
            if len(prolog) > _LONGEST_PROLOG:
                raise BadXmlError(f"no element within the first {_LONGEST_PROLOG:,} characters")
            return ""
        self.is_over = True
        return prolog


def plain_xml(text: str) -> str:
    """Return a whole text without its document type; raise a BadXmlError for one with declarations.

    Other parsers than ours may read the result: nothing in it can refer to a file, or define an entity.
    """
    prolog = _Prolog()
    plain = prolog.past(text)
    if not prolog.is_over:
        raise BadXmlError(_no_element(prolog.text))
    return plain


def parse_xml(text: str, *, keeps_comments: bool = False) -> Any:
    """Return the root element of a whole text; raise a BadXmlError when it cannot be read."""
    parser = etree.XMLParser(**_SAFE, remove_comments=not keeps_comments, remove_pis=not keeps_comments)
    try:
        return etree.fromstring(plain_xml(text).encode("utf-8", "surrogatepass"), parser)
    except etree.XMLSyntaxError as error:
        raise BadXmlError(_plain(error.msg), *error.position) from None


def alone(element: Any) -> Any:
    """Return a copy of an element that was parsed here, as the root of a document of its own."""
    return etree.fromstring(etree.tostring(element, with_tail=False), etree.XMLParser(**_SAFE))


# Nothing outside of the text is read, and nothing in it grows.
_SAFE: dict[str, Any] = {
    "encoding": "utf-8",
    "resolve_entities": False,
    "load_dtd": False,
    "dtd_validation": False,
    "attribute_defaults": False,
    "no_network": True,
    "huge_tree": False,
    "recover": False,
}


class SafeParser:
    """A pull parser for text that arrives in pieces.

    A document type is taken out before the parser sees it, so that what it refers to is never loaded; one
    that declares anything itself is refused: entities are defined there and nowhere else. XML Inclusions
    are never processed.
    """

    def __init__(
        self,
        events: tuple[Literal["start", "end"], ...] = (),
        tag: str | None = None,
        *,
        keeps_comments: bool = False,
    ) -> None:
        self._parser = etree.XMLPullParser(
            events=events,
            tag=tag,
            **_SAFE,
            remove_comments=not keeps_comments,
            remove_pis=not keeps_comments,
        )
        self._prolog = _Prolog()

    def feed(self, text: str) -> None:
        """Take in a piece; what it completes waits in `events`."""
        if not self._prolog.is_over:
            text = self._prolog.past(text)
        if not text:
            return
        try:
            self._parser.feed(text.encode("utf-8", "surrogatepass"))
        except etree.XMLSyntaxError as error:
            raise self._mistake(error) from None
        # Some mistakes stop the parser without a word: the next piece would begin a new document.
        if any(entry.level_name == "FATAL" for entry in self._parser.feed_error_log):
            raise self._mistake(None)

    def events(self) -> Any:
        """Pairs of event and element since the last call."""
        return self._parser.read_events()

    def close(self) -> Any:
        """The root element."""
        if not self._prolog.is_over:
            raise BadXmlError(_no_element(self._prolog.text))
        was_wrong = len(self._parser.feed_error_log) > 0
        try:
            return self._parser.close()
        except etree.XMLSyntaxError as error:
            reason = _plain(error.msg)
            if not was_wrong and reason not in _MEANINGS.values():
                reason = f"it ends before its end, it is cut off ({reason})"
            raise BadXmlError(reason, *error.position) from None

    def _mistake(self, error: Any) -> BadXmlError:
        if error is None or not error.lineno:
            first = self._parser.feed_error_log.filter_from_fatals()[0]
            return BadXmlError(_plain(first.message), first.line, first.column)
        return BadXmlError(_plain(error.msg), *error.position)


def _past_idle(text: str, position: int) -> int:
    while match := _IDLE.match(text, position):
        position = match.end()
    return position


def _place(text: str, offset: int) -> tuple[int, int]:
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def _no_element(prolog: str) -> str:
    return "it has no element" if prolog.strip() else "it is empty"


def _plain(message: str) -> str:
    """Return the reason of libxml2, in words for people who do not program it."""
    message = re.sub(r",? line \d+, column \d+$", "", message.strip()).strip()
    for sign, meaning in _MEANINGS.items():
        if sign in message:
            return meaning
    return message[:1].lower() + message[1:]


_MEANINGS = {
    "Excessive depth": f"nested more than {DEPTH_LIMIT} levels deep",
    "XML_PARSE_HUGE": "a text or attribute of more than 10 million characters",
    "xmlParseEntityRef": "an & that is not written &amp;",
    "Start tag expected": "it does not begin with an element",
}
