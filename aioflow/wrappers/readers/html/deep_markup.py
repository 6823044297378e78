"""A guard before the HTML parser: pages that would cost it far more than their size are flattened.

Lexbor builds the tree that the HTML Standard asks for, and that takes time that grows with the square of
the depth (100,000 nested <div>, half a megabyte, take a minute), and memory where formatting elements are
left open (22 KB can make a million nodes). Browsers flatten pages beyond 512 levels; so does this, before
the parser sees them: start tags too many are left out, with their end tags; all text stays.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from enum import IntEnum

DEEPEST = 512
# With fewer tags than this no page is too deep, or makes too many nodes, to be parsed at once.
_FEW_TAGS = 1500
_MANY_TAGS = 4000
_FEW_BYTES = 3 * _FEW_TAGS
# Each attribute of a tag is compared with all before it.
_LONG_TAG_BYTES = 32 << 10
_MANY_FORMATS = 100
_MOST_FORMATS = 32  # left open behind the element that they stood in; each is made again in what follows
_MOST_LIKE_FORMATS = 3  # of those that are the same; the parser makes no more of them
_MOST_LOOKED_AT = 2 * DEEPEST

_COMMENT = rb"<!--.*?(?:-->|\Z)"
_RAW = rb"<(?i:(script|style|textarea|xmp|iframe|noembed|noframes))(?=[\s/>]).*?</(?i:\1)(?=[\s/>])"
_TAG = rb"<(?P<end>/?)(?P<name>[a-zA-Z][^\s/>]*+)(?P<rest>(?:[^>=]++|=\s*+(?:\"[^\"]*+\"|'[^']*+')?)*+)>"
_TAGS = re.compile(b"|".join((_COMMENT, _TAG)), re.DOTALL)
_TAGS_AND_RAW = re.compile(b"|".join((_COMMENT, _RAW, _TAG)), re.DOTALL)


class _Kind(IntEnum):
    """The properties of an element that follow from its name."""

    FLAT = 0  # has no inside, or is closed by the next of its kind: cannot be nested without another
    CELL = 1
    ITEM = 2  # closed by the next of its kind, unless another block stands between the two
    FORMAT = 3
    BLOCK = 4
    OTHER = 5


_NAMES = {
    _Kind.FLAT: "area base basefont bgsound br col embed frame hr img input keygen link meta param source "
    "track wbr p option colgroup a nobr button html head body select",
    _Kind.CELL: "td th tr tbody thead tfoot caption",
    _Kind.ITEM: "li dd dt",
    _Kind.FORMAT: "b big code em font i s small strike strong tt u",
    _Kind.BLOCK: "address applet article aside blockquote center details dialog dir div dl fieldset "
    "figcaption figure footer form header hgroup listing main marquee menu nav object ol pre search section "
    "summary table template ul h1 h2 h3 h4 h5 h6",
}
_KINDS = {name: kind for kind, names in _NAMES.items() for name in names.encode().split()}
# Start tags of all that can be nested.
_NESTABLE = re.compile(
    rb"<(?!(?i:"
    + b"|".join(name for name, kind in _KINDS.items() if kind <= _Kind.CELL)
    + rb")[\s/>])[a-zA-Z]"
)
_FORMAT_WITH_ATTRIBUTES = re.compile(
    rb"<(?:[bisu]|tt|em|big|code|font|nobr|small|strike|strong)[\s/]", re.IGNORECASE
)
# Start tags that end SVG and MathML, and elements of these in which HTML goes on.
_BREAKOUTS = frozenset(
    b"b big blockquote body br center code dd div dl dt em embed font h1 h2 h3 h4 h5 h6 head hr i img li "
    b"listing menu meta nobr ol p pre ruby s small span strong strike sub sup table tt u ul var".split()
)
_CLOSED_ITSELF = re.compile(rb"(?:^|[\s\"'])/$")
_HTML_INSIDE = b"foreignobject desc title mi mo mn ms mtext annotation-xml".split()
_HEADINGS = frozenset((b"h1", b"h2", b"h3", b"h4", b"h5", b"h6"))


def flattened(body: bytes) -> bytes | None:
    """The page without the start tags that nest too deeply; None when there are none of them."""
    if len(body) < _FEW_BYTES or not _may_be_deep(body):
        return None
    return _Flattening(body).run()


def tags_about(body: bytes) -> int:
    """About how many tags a page has, never too few: from a sample, tags could be hidden."""
    return body.count(b"<")


def has_long_tag(body: bytes) -> bool:
    """Return whether something that may be a tag is so long that its attributes take the parser seconds."""
    if len(body) <= _LONG_TAG_BYTES:
        return False
    long = (piece for piece in body.split(b">") if len(piece) > _LONG_TAG_BYTES)
    return any(0 <= piece.find(b"<") < len(piece) - _LONG_TAG_BYTES for piece in long)


def _may_be_deep(body: bytes) -> bool:
    about = tags_about(body)
    if about <= _FEW_TAGS:
        return False
    if about > _MANY_TAGS and len(_NESTABLE.findall(body)) > _FEW_TAGS:
        return True
    return len(_FORMAT_WITH_ATTRIBUTES.findall(body)) > _MANY_FORMATS


class _Flattening:
    """One walk over the tags of a page, with a simple model of the parser's stack of open elements.

    Where the model is wrong it takes a page for deeper than it is.
    """

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._open: list[tuple[bytes, bytes, bool]] = []  # name, the tag of a format, whether it is kept
        self._counts: defaultdict[bytes, int] = defaultdict(int)
        self._depth = 0
        # The formats that are open, or were left open by the end of what they stood in.
        self._formats: Counter[bytes] = Counter()
        self._cut: list[tuple[int, int]] = []

    def run(self) -> bytes | None:
        self._walk(_TAGS_AND_RAW, 0, len(self._body))
        return self._without_cuts() if self._cut else None

    def _walk(self, tags: re.Pattern[bytes], start: int, end: int) -> None:
        kinds, opened, counts = _KINDS, self._open, self._counts
        for found in tags.finditer(self._body, start, end):
            name = found["name"]
            if name is None:
                self._raw(found)
                continue
            name = name.lower()
            kind = kinds.get(name, _Kind.OTHER)
            if not found["end"]:
                if kind is not _Kind.FLAT or counts[b"svg"] or counts[b"math"]:
                    self._start(name, kind, found)
            elif opened and opened[-1] == (name, b"", True):  # as it should be
                opened.pop()
                counts[name] -= 1
                self._depth -= 1
            elif kind is not _Kind.FLAT or counts[name]:
                self._end(name, kind, found)

    def _raw(self, found: re.Match[bytes]) -> None:
        """A comment, or an element whose inside is no markup; in SVG it would be."""
        if found.re is _TAGS_AND_RAW and found[1] and (self._counts[b"svg"] or self._counts[b"math"]):
            self._walk(_TAGS, found.start(), found.end())

    def _is_foreign(self) -> bool:
        """Return whether the parser is in SVG or MathML, where other rules hold."""
        counts = self._counts
        return bool(counts[b"svg"] or counts[b"math"]) and not any(counts[name] for name in _HTML_INSIDE)

    # --- tags ------------------------------------------------------------------------------------

    def _start(self, name: bytes, kind: _Kind, found: re.Match[bytes]) -> None:
        if self._is_foreign():
            if name in _BREAKOUTS:
                self._pop_foreign()
            else:
                kind = _Kind.OTHER
        if (self._is_foreign() or name in (b"svg", b"math")) and _CLOSED_ITSELF.search(found["rest"]):
            return
        if kind is _Kind.FLAT:
            return
        if kind is _Kind.CELL:
            self._pop_cell()
            if name not in _WITH_CONTENT or not self._counts[b"table"]:
                return
        elif kind is _Kind.ITEM:
            self._pop_item(name)
        elif kind is _Kind.FORMAT:
            self._start_format(name, found)
            return
        self._push(name, b"", found)

    def _start_format(self, name: bytes, found: re.Match[bytes]) -> None:
        if self._formats.total() >= _MOST_FORMATS:
            self._cut.append(found.span())
            return
        tag = found[0] if self._formats[found[0]] < _MOST_LIKE_FORMATS else b""
        if tag:
            self._formats[tag] += 1
        self._push(name, tag, found)

    def _push(self, name: bytes, tag: bytes, found: re.Match[bytes]) -> None:
        kept = self._depth < DEEPEST
        if not kept:
            self._cut.append(found.span())
        self._depth += kept
        self._open.append((name, tag, kept))
        self._counts[name] += 1

    def _end(self, name: bytes, kind: _Kind, found: re.Match[bytes]) -> None:
        if kind is _Kind.CELL:
            self._pop_cell()
            return
        is_open = self._counts[name] or name in _HEADINGS
        place = self._place_of(name, kind) if is_open else None
        if place is not None:
            self._forget(self._open[place][1])
            if not self._pop_to(place):
                self._cut.append(found.span())
        elif kind is _Kind.FORMAT and not is_open:
            like = (tag for tag in self._formats if _NAME.match(tag)[1].lower() == name)  # type: ignore[index]
            self._forget(next(like, b""))

    def _place_of(self, name: bytes, kind: _Kind) -> int | None:
        """Where the element that an end tag closes stands; None when the parser would ignore the tag."""
        names = _HEADINGS if name in _HEADINGS else (name,)
        last = len(self._open) - 1
        for place in range(last, max(-1, last - _MOST_LOOKED_AT), -1):
            known = self._open[place][0]
            if known in names:
                return place
            if known == b"table" or (
                kind not in (_Kind.BLOCK, _Kind.ITEM) and _KINDS.get(known) in (_Kind.BLOCK, _Kind.ITEM)
            ):
                return None
        return None

    # --- the stack -------------------------------------------------------------------------------

    def _pop_to(self, place: int) -> bool:
        """Close the element there and all in it; whether its start tag was kept."""
        in_cell = False
        for name, tag, kept in self._open[place:]:
            self._counts[name] -= 1
            self._depth -= kept
            in_cell = in_cell or name in _WITH_CONTENT
            if in_cell:  # no format leaves its cell
                self._forget(tag)
        kept = self._open[place][2]
        del self._open[place:]
        return kept

    def _forget(self, tag: bytes) -> None:
        if tag and self._formats[tag] > 1:
            self._formats[tag] -= 1
        else:
            self._formats.pop(tag, None)

    def _pop_cell(self) -> None:
        """A cell or row begins or ends: what its table has open is closed."""
        if not self._counts[b"table"]:
            return
        place = len(self._open)
        while self._open[place - 1][0] != b"table":
            place -= 1
        if place < len(self._open):
            self._pop_to(place)

    def _pop_item(self, name: bytes) -> None:
        """An item of a list begins: the one before it is closed."""
        names = (b"li",) if name == b"li" else (b"dd", b"dt")
        last = len(self._open) - 1
        for place in range(last, max(-1, last - _MOST_LOOKED_AT), -1):
            known = self._open[place][0]
            if known in names:
                self._pop_to(place)
                return
            if known not in (b"div", b"address") and _KINDS.get(known) in _STOP_ITEMS:
                return

    def _pop_foreign(self) -> None:
        for place in range(len(self._open) - 1, -1, -1):
            if self._open[place][0] in (b"svg", b"math"):
                self._pop_to(place)
                return

    def _without_cuts(self) -> bytes:
        pieces, place = [], 0
        for start, end in self._cut:
            pieces.append(self._body[place:start])
            place = end
        pieces.append(self._body[place:])
        return b"".join(pieces)


_WITH_CONTENT = frozenset((b"td", b"th", b"caption"))
_STOP_ITEMS = (_Kind.ITEM, _Kind.BLOCK, _Kind.CELL)
_NAME = re.compile(rb"<([a-zA-Z][^\s/>]*)")
