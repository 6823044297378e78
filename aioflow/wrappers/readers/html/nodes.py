"""Elements of an HTML page: selection by CSS and its cost, texts, attributes, and paths for people.

One selector object serves all pages of a thread. Lexbor would make one for every page, which takes as long as
parsing a small page.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from html import unescape
from math import comb
from threading import local
from typing import TYPE_CHECKING, Any, TypeAlias

from aioflow.wrappers.loop_fairness import check, weigh_texts
from aioflow.wrappers.processing import Conversion
from aioflow.wrappers.readers.html.css import ITEM, MARKUP, OWN_TEXT, Selector

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode


class _Search(local):
    """A thread's own: while one searches, what it was asked for is in it."""

    def __init__(self) -> None:
        from selectolax.lexbor import LexborCSSSelector

        # Its stubs lack types, and find_first.
        selector: Any = LexborCSSSelector()  # type: ignore[no-untyped-call]
        self.find = selector.find
        self.find_first = selector.find_first


_search = _Search()


def find_all(css: str, node: LexborNode) -> list[LexborNode]:
    """The node itself, if it matches, and all that match inside of it, in the order of the page."""
    found: list[LexborNode] = _search.find(css, node)
    return found


def find_first(css: str, node: LexborNode) -> LexborNode | None:
    """The first of these."""
    found: list[LexborNode] = _search.find_first(css, node)
    return found[0] if found else None


# A node of the page -> what a conversion wants of it.
Take: TypeAlias = "Callable[[LexborNode], str | list[str] | None]"
NodeValue: TypeAlias = "Callable[[LexborNode], str | None]"

# Elements whose ends part words, as they begin a line of their own in a browser.
_BLOCKS = (
    "address|article|aside|blockquote|body|br|button|caption|center|dd|details|dialog|dir|div|dl|dt|fieldset|"
    "figcaption|figure|footer|form|frameset|h[1-6]|head|header|hgroup|hr|html|legend|li|link|listing|main|menu|"
    "meta|nav|noscript|ol|optgroup|option|p|pre|search|section|select|summary|table|tbody|td|textarea|tfoot|th|"
    "thead|title|tr|ul|xmp"
)
# The serializer writes `<` and `>` only where markup begins and ends, outside of what is unseen anyway.
_UNSEEN = re.compile(
    r"<(script|style|template|iframe|noembed|noframes)\b[^>]*>.*?</\1>|<!--.*?-->", re.DOTALL
)
_MAY_BE_UNSEEN = re.compile(r"<[stin!]")
_BLOCK_TAG = re.compile(rf"</?(?:{_BLOCKS})(?:\s[^>]*)?>")
_TAG = re.compile(r"<[^>]*>")
_RAW_TEXT = frozenset({"script", "style", "xmp", "iframe", "noembed", "noframes", "plaintext"})
# Work on longer texts is done in slices, so that other threads come to their turn.
_SLICE = 1 << 17


def text_of(node: LexborNode) -> str:
    """The text of an element and all in it, without scripts and styles; line breaks where blocks end."""
    markup = node.inner_html
    if markup is None:
        return ""
    if "<" not in markup and "&" not in markup:
        return markup
    if node.tag in _RAW_TEXT:
        return node.text_lexbor()
    markup = markup.replace("<br>", "\n")
    if "<" in markup:
        return _text_of_markup(markup)
    return unescape(markup) if "&" in markup else markup


def _text_of_markup(markup: str) -> str:
    if _MAY_BE_UNSEEN.search(markup):
        markup = _UNSEEN.sub("", markup)
    pieces = _slices(markup) if len(markup) > _SLICE else (markup,)
    text = "".join([_TAG.sub("", _BLOCK_TAG.sub("\n", piece)) for piece in pieces])
    return unescape(text) if "&" in text else text


def _slices(markup: str) -> Iterator[str]:
    """The same in pieces, each of whole tags."""
    start = 0
    while (end := markup.find("<", start + _SLICE)) >= 0:
        yield markup[start:end]
        start = end
    yield markup[start:]


# --- what is taken of a node ---------------------------------------------------------------------


def _own_text(node: LexborNode) -> str:
    return node.text(deep=False)


def _something(node: LexborNode) -> str:
    return ""


def _markup(node: LexborNode) -> str | None:
    return node.html


def _attribute(name: str) -> NodeValue:
    def attribute(node: LexborNode) -> str | None:
        try:
            value = node.attrs[name]
        except KeyError:
            return None
        return "" if value is None else value  # None: the attribute stands without a value

    return attribute


def value_taker(selector: Selector, conversion: Conversion) -> NodeValue:
    """Return the function that takes a field's value from the element that it selects."""
    if selector.attribute is not None:
        return _attribute(selector.attribute)
    if conversion.only_counts:
        return _something
    if selector.taken == MARKUP or conversion.source == "markup":
        return _markup
    return _own_text if selector.taken == OWN_TEXT else text_of


# --- finding -------------------------------------------------------------------------------------


def every(selector: Selector, node: LexborNode, *, in_page: bool) -> list[LexborNode]:
    """All that a selector finds inside a node, in the order of the page; in a page its root as well."""
    if not selector.css:
        return [node]
    if selector.is_relative:
        return _relative(selector, node)
    found = find_all(selector.css, node)
    if selector.may_repeat and len(found) > 1:
        found = list({each.mem_id: each for each in found}.values())
    if not in_page and found and found[0].mem_id == node.mem_id:
        del found[0]
    return found


def _relative(selector: Selector, node: LexborNode) -> list[LexborNode]:
    """Return the matches from the item on: in it, or beside it."""
    start = node.parent if selector.looks_beside else node
    attributes = node.attrs
    attributes[ITEM] = ""
    try:
        return find_all(selector.css, start or node)
    finally:
        del attributes[ITEM]


def first(selector: Selector, node: LexborNode, *, in_page: bool) -> LexborNode | None:
    """The first that a selector finds inside a node."""
    if not selector.css:
        return node
    if not selector.is_relative:
        found = find_first(selector.css, node)
        if found is None or in_page or found.mem_id != node.mem_id:
            return found
    several = every(selector, node, in_page=in_page)
    return several[0] if several else None


def taker(selector: Selector, conversion: Conversion, *, in_page: bool) -> Take:
    """A function from a node to what the conversion wants, with as few calls in between as can be."""
    value, css = value_taker(selector, conversion), selector.css
    if conversion.matches == "all":
        return lambda node: _values(every(selector, node, in_page=in_page), value)
    if not css:
        return value
    if conversion.matches == "last":
        return lambda node: value(found[-1]) if (found := every(selector, node, in_page=in_page)) else None
    if selector.is_relative:
        return lambda node: (
            None if (found := first(selector, node, in_page=in_page)) is None else value(found)
        )
    if in_page:
        return lambda node: None if (found := find_first(css, node)) is None else value(found)

    def of_first(node: LexborNode) -> str | None:
        found = find_first(css, node)
        if found is not None and found.mem_id == node.mem_id:  # it is about what is inside
            found = first(selector, node, in_page=False)
        return None if found is None else value(found)

    return of_first


def _values(nodes: list[LexborNode], value: NodeValue) -> list[str]:
    values = []
    characters = 0
    for node in nodes:
        check()
        if (text := value(node)) is not None:
            values.append(text)
            # One inside of the other, elements may have far more text than their page.
            characters += len(text)
            weigh_texts(characters)
    return values


# --- for people ----------------------------------------------------------------------------------

_LEVELS = 6
_EXCERPT = 200


def css_path(node: LexborNode) -> str:
    """A selector that a reader of the page can follow: `ul.results > li:nth-of-type(3) > a.title`."""
    parts: list[str] = []
    current: LexborNode | None = node
    while current is not None and len(parts) < _LEVELS:
        if current.tag in ("html", "body") and parts:
            break
        parts.append(_step(current))
        if current.id or current.tag in ("html", "body"):
            break
        current = current.parent
    return " > ".join(reversed(parts))


def _step(node: LexborNode) -> str:
    tag = node.tag or "*"
    if node.id and re.fullmatch(r"[A-Za-z_][\w-]*", node.id):
        return f"{tag}#{node.id}"
    classes = (node.attributes.get("class") or "").split()
    name = tag + "".join(f".{each}" for each in classes[:2] if re.fullmatch(r"[A-Za-z_][\w-]*", each))
    number, several = _place_among_siblings(node, tag)
    return f"{name}:nth-of-type({number})" if several else name


def _place_among_siblings(node: LexborNode, tag: str) -> tuple[int, bool]:
    """Return which of its kind it is, and whether it is the only one."""
    number, before, after = 1, node.prev, node.next
    while before is not None:
        number += before.tag == tag
        before = before.prev
    while after is not None and after.tag != tag:
        after = after.next
    return number, number > 1 or after is not None


def excerpt_of(node: LexborNode) -> str:
    """The beginning of an element's source."""
    markup = " ".join((node.html or "").split())
    return markup if len(markup) <= _EXCERPT else f"{markup[: _EXCERPT - 1]}…"


# So many ways take a fifth of a second.
_MOST_WAYS = 20_000_000
_HARMLESS_STEPS = 1
# Levels that a page is compared with; hardly any page has more than the first.
_PAGE_LEVELS = (40, 64, 100)


class SelectorCost:
    """The depth that pages may have for the selectors of an extraction with several descendant steps.

    Lexbor matches from right to left, and where a step fails it tries every other ancestor for the step
    before: with k steps and d ancestors up to d over k ways for one element. `b div div div p` on 400 nested
    <div>, two kilobytes, takes seconds, and holds Python's lock meanwhile.
    """

    def __init__(self, steep: Sequence[Selector]) -> None:
        self._steps = max(selector.steps for selector in steep)
        self._few_tags = _few_tags(self._steps)
        ends = tuple(dict.fromkeys(end for selector in steep for end in selector.ends))
        self._deeper = [
            (_MOST_WAYS // comb(level, self._steps), _deeper(level, ends)) for level in reversed(_PAGE_LEVELS)
        ]

    @classmethod
    def of(cls, selectors: Iterable[Selector]) -> SelectorCost | None:
        """None when no page can be too deep for any of them."""
        steep = [selector for selector in selectors if selector.steps > _HARMLESS_STEPS]
        return cls(steep) if steep else None

    def tags(self, body: bytes) -> int:
        """Return how many tags a page has at most, 0 if there are so few that it cannot be too deep."""
        if len(body) < 3 * self._few_tags:
            return 0
        tags = body.count(b"<")
        return tags if tags > self._few_tags else 0

    def is_exceeded_by(self, root: LexborNode, tags: int) -> bool:
        """Return whether an element that a selector could mean is too deep in a page of so many tags."""
        fitting = (deeper for most_tags, deeper in self._deeper if tags <= most_tags)
        return find_first(next(fitting, self._deeper[-1][1]), root) is not None


@cache
def _few_tags(steps: int) -> int:
    """The most tags that are harmless however they are nested."""
    tags = steps
    # The worst is about so much depth, and all others at the end of it.
    while (tags - (depth := tags * steps // (steps + 1))) * comb(depth, steps) <= _MOST_WAYS:
        tags += 1
    return tags


def _deeper(level: int, ends: tuple[str, ...]) -> str:
    """A selector for what has more ancestors: it climbs from parent to parent, in one way only."""
    return ",".join(f"{'*>' * level}{end}" for end in ends)
