"""The links of a page, column by column: HTML, XHTML, feeds, sitemaps and other XML.

What every link of a crawl passes is done for a whole page at once, since a crawl meets twenty links a page.
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import count, islice, repeat
from typing import TYPE_CHECKING, Any

import msgspec

from aioflow.crawl.documents import collapsed, parse_html, utf8
from aioflow.relation import Batch, Document, Row, Schema, Type, Value
from aioflow.web.urls import Base
from aioflow.wrappers.readers.html.nodes import find_all, find_first

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

LINKS = Schema(
    ("url", "anchor", "rel", "tag", "position", "depth", "parent"),
    (Type.CHAR, Type.CHAR, Type.CHAR, Type.CHAR, Type.NUMBER, Type.NUMBER, Type.CHAR),
)
# The attribute with the address, of elements that may have one.
ADDRESSES = {
    "a": "href",
    "area": "href",
    "audio": "src",
    "embed": "src",
    "frame": "src",
    "iframe": "src",
    "img": "src",
    "link": "href",
    "object": "data",
    "script": "src",
    "source": "src",
    "track": "src",
    "video": "src",
}
# To other pages. Of <link>, those that lead to pages: a style sheet is none.
PAGE_TAGS = ("a", "area", "frame", "iframe", "link")
_PAGE_RELATIONS = frozenset(
    {"alternate", "amphtml", "author", "canonical", "contents", "first", "glossary", "help", "index", "last"}
    | {"license", "next", "prev", "previous", "search", "start", "up"}
)
# Rows that come from another process at a time.
PIECE_ROWS = 2000


class LinkReading(msgspec.Struct, frozen=True):
    """The links to read: those of some elements, each once in a page, without those that robots shall not
    follow. The columns that nobody reads are left null.
    """

    tags: tuple[str, ...] = PAGE_TAGS  # without repetitions
    is_unique: bool = True
    follows_nofollow: bool = False
    has_anchors: bool = True
    has_rest: bool = True  # rel, tag and position


class PageLinks(msgspec.Struct):
    """The links of one page; `packed` are rows that another process read."""

    rows: Batch
    nofollow: int = 0  # that were left out
    is_cut: bool = False  # the page nests too deeply: links may be missing
    packed: Sequence[bytes] = ()


class _Columns:
    """The links as they stand in a page, in its order."""

    def __init__(self, hrefs: list[str | None]) -> None:
        self.hrefs = hrefs
        self.anchors: Iterable[str | None] = repeat(None)
        self.rels: Iterable[str | None] = repeat(None)
        self.tags: Iterable[str | None] = repeat(None)


def links_of(document: Value, url: str, depth: int, kept: Row, reading: LinkReading) -> PageLinks:
    """Return the links of a page at `url`, as rows of LINKS, each followed by the values in `kept`.

    Raises a BadXmlError for XML that cannot be read.
    """
    if not isinstance(document, Document) or document.kind == "json":
        return PageLinks([])
    try:
        base = Base(url)
    except ValueError:
        return PageLinks([])
    if document.kind == "xml":
        columns, without, is_cut = _of_xml(document.text, reading), 0, False
    else:
        columns, base, without, is_cut = _of_html(document.text, base, reading)
    rows = _rows(columns, base, depth, url, kept, reading)
    return PageLinks(rows, without, is_cut)


def links_aside(document: Document, url: str, depth: int, kept: Row, reading: LinkReading) -> PageLinks:
    """As `links_of`, in another process: the rows come packed in pieces."""
    page = links_of(document, url, depth, kept, reading)
    rows = page.rows
    page.packed = [
        pickle.dumps(rows[start : start + PIECE_ROWS], protocol=5)
        for start in range(0, len(rows), PIECE_ROWS)
    ]
    page.rows = []
    return page


def unpacked(piece: bytes) -> Batch:
    rows: Batch = pickle.loads(piece)  # made by `links_aside`
    return rows


def _rows(columns: _Columns, base: Base, depth: int, parent: str, kept: Row, reading: LinkReading) -> Batch:
    """Resolve all links of a page, and make rows of them."""
    hrefs = columns.hrefs
    if all(hrefs) and not any(map(str.isspace, hrefs)):  # type: ignore[arg-type]  # all are texts
        urls = base.resolve_all(hrefs)  # type: ignore[arg-type]
    else:
        urls = [base.resolve(href) if href and not href.isspace() else None for href in hrefs]
    more = [repeat(value) for value in kept]
    if not reading.has_rest and not reading.has_anchors:
        found = dict.fromkeys(urls) if reading.is_unique else urls
        nothing = (None, None, None, None, depth + 1, parent, *kept)
        return [(each, *nothing) for each in found if each is not None]
    positions: Iterable[int | None] = count(1) if reading.has_rest else repeat(None)
    rows: Iterable[Row] = zip(
        urls,
        columns.anchors,
        columns.rels,
        columns.tags,
        positions,
        repeat(depth + 1),
        repeat(parent),
        *more,
        strict=False,  # the shortest is that of the URLs
    )
    if reading.is_unique:
        first: dict[Value, Row] = {}
        for row in rows:
            first.setdefault(row[0], row)
        first.pop(None, None)
        return list(first.values())
    return [row for row in rows if row[0] is not None]


# --- HTML ---------------------------------------------------------------------------------------


def _of_html(text: str, base: Base, reading: LinkReading) -> tuple[_Columns, Base, int, bool]:
    markup = utf8(text)
    tree, is_cut = parse_html(markup)
    lower = markup.lower()
    if b"<base" in lower and (href := _base_href(tree)):
        base = base.rebased(href)
    root = tree.root
    tags = tuple([tag for tag in reading.tags if tag == "a" or b"<" + tag.encode() in lower])
    if root is None or not tags:
        return _Columns([]), base, 0, is_cut
    says_nofollow = b"nofollow" in lower or (b"none" in lower and b"robots" in lower)
    without = 0
    if says_nofollow and not reading.follows_nofollow and b"robots" in lower and _says_nofollow(tree):
        return _Columns([]), base, len(find_all(_selector(tags), root)), is_cut
    if b"nofollow" in lower or (tags != ("a",) and (reading.has_rest or reading.has_anchors)):
        nodes, columns, without = _mixed(find_all(_selector(tags), root), reading.follows_nofollow)
    else:
        nodes, columns = _plain(root, tags, has_rest=reading.has_rest)
    if reading.has_anchors:
        columns.anchors = [_anchor(node) for node in nodes]
    return columns, base, without, is_cut


def _plain(root: LexborNode, tags: tuple[str, ...], *, has_rest: bool) -> tuple[list[LexborNode], _Columns]:
    """Return the links of <a> by the shortest way, followed by those of other elements."""
    nodes = find_all("a[href]", root) if "a" in tags else []
    columns = _Columns([node.attrs["href"] for node in nodes])
    others = tuple([tag for tag in tags if tag != "a"])
    if others:
        nodes, other_columns, _ = _mixed(find_all(_selector(others), root), follows_nofollow=True)
        columns.hrefs += other_columns.hrefs
    elif has_rest:
        columns.rels = [node.attributes.get("rel") for node in nodes]
        columns.tags = repeat("a")
    return nodes, columns


def _mixed(nodes: list[LexborNode], follows_nofollow: bool) -> tuple[list[LexborNode], _Columns, int]:
    """Return the nodes that are links to follow, with their columns, and the number of those that are not."""
    kept, hrefs, rels, tags = [], [], [], []
    without = 0
    for node in nodes:
        tag = node.tag or ""
        attributes = node.attributes
        rel = attributes.get("rel")
        if tag == "link" and not _leads_to_page(rel):
            continue
        if rel and not follows_nofollow and "nofollow" in rel.lower().split():
            without += 1
            continue
        kept.append(node)
        hrefs.append(attributes.get(ADDRESSES[tag]))
        rels.append(rel)
        tags.append(tag)
    columns = _Columns(hrefs)
    columns.rels, columns.tags = rels, tags
    return kept, columns, without


def _leads_to_page(rel: str | None) -> bool:
    relations = set((rel or "").lower().split())
    return not relations.isdisjoint(_PAGE_RELATIONS) and "stylesheet" not in relations


@lru_cache(maxsize=64)
def _selector(tags: tuple[str, ...]) -> str:
    return ",".join(f"{tag}[{ADDRESSES[tag]}]" for tag in tags)


def _base_href(tree: LexborHTMLParser) -> str | None:
    found = None if tree.root is None else find_first("base[href]", tree.root)
    return None if found is None else found.attributes.get("href")


def _says_nofollow(tree: LexborHTMLParser) -> bool:
    """Return whether <meta name="robots"> asks that no link be followed."""
    for node in tree.css("meta[name][content]"):
        attributes = node.attributes
        if (attributes["name"] or "").strip().lower() == "robots":
            words = {word.strip() for word in (attributes["content"] or "").lower().split(",")}
            if words & {"nofollow", "none"}:
                return True
    return False


_LONGEST_ANCHOR = 1000


def _anchor(node: LexborNode) -> str:
    """Return the text of a link, or that of the picture in it."""
    text = collapsed(node.text()) or (node.attributes.get("title") or node.attributes.get("alt") or "")
    if not text and (picture := node.css_first("img[alt]")) is not None:
        text = picture.attributes.get("alt") or ""
    return collapsed(text)[:_LONGEST_ANCHOR]


# --- XML ----------------------------------------------------------------------------------------

_XLINK = "{http://www.w3.org/1999/xlink}href"
# Elements of feeds and sitemaps whose text is an address.
_TEXTS = frozenset({"link", "loc", "comments", "docs"})
_ITEMS = frozenset({"item", "entry", "channel", "feed", "url"})
_LOCAL = re.compile(r"\{.*\}")
_LOOKED_AT = 20  # children of an item, for its title


def _of_xml(text: str, reading: LinkReading) -> _Columns:
    """The addresses in attributes named href, and in elements of feeds and sitemaps."""
    from aioflow.xml.guard import parse_xml

    root = parse_xml(text)
    hrefs, anchors, rels, tags = [], [], [], []
    for element in root.iter("*"):
        name = _LOCAL.sub("", element.tag)
        href = element.get("href") or element.get(_XLINK)
        if href is None and name == "enclosure":
            href = element.get("url")
        if href is None and name == "guid" and element.get("isPermaLink", "true") == "true":
            href = _web_address(element)
        if href is None and name in _TEXTS:
            href = _web_address(element)
        if not href:
            continue
        hrefs.append(href)
        rels.append(element.get("rel"))
        tags.append(name)
        anchors.append(_xml_anchor(element) if reading.has_anchors else None)
    columns = _Columns(hrefs)
    columns.anchors, columns.rels, columns.tags = anchors, rels, tags
    return columns


def _web_address(element: Any) -> str | None:
    text = (element.text or "").strip()
    return text if text.startswith(("http://", "https://", "/")) else None


def _xml_anchor(element: Any) -> str | None:
    """Return the title of a link, or of the item of a feed that it belongs to, or else its text."""
    title = element.get("title")
    around = element.getparent()
    if title is None and around is not None and _LOCAL.sub("", around.tag) in _ITEMS:
        title = next(
            (each.text for each in islice(around, _LOOKED_AT) if _LOCAL.sub("", str(each.tag)) == "title"),
            None,
        )
    elif title is None:
        title = element.text
    return collapsed(title)[:_LONGEST_ANCHOR] if title else None
