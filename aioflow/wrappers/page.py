"""The page that is being read, as conversions see it: its address, and its unreadable values."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from aioflow.relation import Value
from aioflow.web.urls import Base
from aioflow.wrappers.readers.reader import PageHead

# The types that servers send if they know nothing of a page.
_SAY_NOTHING = ("", "text/plain", "application/octet-stream", "binary/octet-stream")


class Page:
    """One page on its way in.

    `unreadable` counts, by field, the matches that could not be converted: the attribute is null, as it is
    without a match. `notes` are for people, on oddities of the page as a whole. `cuts` are such notes on
    limits that took something away, so that rows may be missing. `rows` counts the rows so far.
    `has_items` and `is_proven_empty` are known at its end.
    """

    __slots__ = (
        "_base",
        "cuts",
        "find_base",
        "has_items",
        "head",
        "is_proven_empty",
        "notes",
        "rows",
        "unreadable",
    )

    def __init__(self, head: PageHead) -> None:
        self.head = head
        self.rows = 0
        self.unreadable: dict[str, int] = {}
        self.notes: list[str] = []
        self.cuts: list[str] = []
        self.has_items = True
        self.is_proven_empty = False
        # Returns the base that the page itself declares; called once, before the first link.
        self.find_base: Callable[[], str | None] | None = None
        self._base: Base | None = None

    def resolve(self, link: str) -> str | None:
        """Return the http(s) address of a link; None for a blank one, and for one that leads elsewhere."""
        if self._base is None:
            self._base = self._make_base()
        return self._base.resolve(link) if link and not link.isspace() else None

    @property
    def resolver(self) -> Base:
        """The base that resolves many links of this page; unlike `resolve`, it takes a blank link for the
        page.
        """
        if self._base is None:
            self._base = self._make_base()
        return self._base

    def _make_base(self) -> Base:
        try:
            base = Base(self.head.url)
        except ValueError:
            base = _Nowhere()
        said = self.find_base() if self.find_base is not None else None
        return base.rebased(said) if said else base

    def note_nothing(self, reader: str, content_types: Sequence[str]) -> None:
        """Nothing was found: say so of a page that calls itself something else than it was read as."""
        said = self.head.content_type.partition(";")[0].strip().lower()
        if said in _SAY_NOTHING or said in content_types or said.endswith(f"+{reader}"):
            return
        self.notes.append(f"nothing was found: the page is {said}, and was read as {reader}")

    def note_unreadable(self, name: str) -> None:
        self.unreadable[name] = self.unreadable.get(name, 0) + 1


class PageFindings:
    """The findings of a Reading beside its rows; a base for readings that have a `_page`."""

    _page: Page
    _next_page: Value = None

    @property
    def unreadable(self) -> dict[str, int]:
        """The number of values that were found but could not be read, by field."""
        return self._page.unreadable

    @property
    def notes(self) -> list[str]:
        """Remarks about oddities of the page, for people."""
        return self._page.notes

    @property
    def cuts(self) -> list[str]:
        """Remarks about limits that cut the page, so that rows may be missing."""
        return self._page.cuts

    @property
    def has_items(self) -> bool:
        return self._page.has_items

    @property
    def is_proven_empty(self) -> bool:
        return self._page.is_proven_empty

    @property
    def next_page(self) -> Value:
        return self._next_page


class _Nowhere(Base):
    """The base of a saved page of unknown origin: only absolute links can be resolved."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__("http://localhost/")

    def resolve(self, link: str) -> str | None:
        return super().resolve(link) if link.lstrip().lower().startswith(("http:", "https:")) else None
