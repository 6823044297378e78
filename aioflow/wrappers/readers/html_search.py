"""Elements by CSS. What selects serves all pages of a thread: Lexbor would make one for every page, and take
as long as for parsing a small one.
"""

from __future__ import annotations

from threading import local
from typing import TYPE_CHECKING, Any

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
