"""The protocol of readers: a reader turns the bytes of a page into rows. Each kind of page is a plug-in.

A package adds a reader by an entry point in the group `aioflow.readers` that names a `Reader`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

from aioflow.relation import Row, Type, Value
from aioflow.wrappers.definition import Extraction

ENTRY_POINTS = "aioflow.readers"


@dataclass(frozen=True)
class PageHead:
    """The head of a page, known before its body: its URL, status and headers."""

    url: str
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def content_type(self) -> str:
        return self.headers.get("Content-Type", "")


@dataclass(frozen=True)
class Found:
    """The origin of a value in a page, for people: the path to its element, and its text there."""

    row: int
    field: str
    path: str
    excerpt: str
    value: Value


class Reading(Protocol):
    """One page on its way in. Rows have a value for each field of the Extraction, in order."""

    def feed(self, data: bytes) -> list[Row]:
        """Rows that are complete; none while a reader needs the page whole."""
        ...

    def end(self) -> list[Row]:
        """Return the rest. Raises ExtractionError for a page that cannot be read."""
        ...

    @property
    def next_page(self) -> Value:
        """The value of `Extraction.next_page`, once the page has ended."""
        ...

    @property
    def unreadable(self) -> Mapping[str, int]:
        """The number of values that were found but could not be converted, by field."""
        ...

    @property
    def notes(self) -> Sequence[str]:
        """Remarks about oddities of the page, for people."""
        ...

    @property
    def cuts(self) -> Sequence[str]:
        """Remarks for people about built-in limits that cut the page, so that rows may be missing."""
        ...

    @property
    def has_items(self) -> bool:
        """True if the page had any item, once it has ended; a tuple that OUTER makes is none."""
        ...

    @property
    def is_proven_empty(self) -> bool:
        """True if a page without items matches one of `Extraction.empty`, once it has ended."""
        ...


class Extractor(Protocol):
    """A compiled Extraction. It can be pickled: heavy pages are read in another process."""

    is_incremental: bool  # whether rows leave before the page has ended

    def is_heavy(self, body: bytes) -> bool:
        """Return whether reading a page as a whole may block the event loop."""
        ...

    def open(self, page: PageHead) -> Reading: ...
    def explain(self, page: PageHead, body: bytes) -> Iterator[Found]: ...


class Reader(Protocol):
    """A kind of pages. `compile` raises SettingError, with `setting` naming the field ("EACH" for it)
    and `offset` the place in its selector."""

    name: ClassVar[str]
    content_types: ClassVar[tuple[str, ...]]
    default_type: ClassVar[Type | None]  # of a field without a word that says it

    def compile(self, extraction: Extraction) -> Extractor: ...
