"""The protocol of readers, and the registry: a reader turns the bytes of a page into rows.

A package adds a reader by an entry point in the group `aioflow.readers` that names a `Reader`. It is loaded
on first use.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Protocol

import msgspec

from aioflow.config.entry_points import installed
from aioflow.errors import SettingError, suggestion
from aioflow.relation import Row, Type, Value
from aioflow.wrappers.definition import Extraction, IdentityCache

ENTRY_POINTS = "aioflow.readers"


class PageHead(msgspec.Struct, frozen=True):
    """The head of a page, known before its body: its URL, status and headers."""

    url: str
    status: int = 200
    headers: Mapping[str, str] = msgspec.field(default_factory=dict)

    @property
    def content_type(self) -> str:
        return self.headers.get("Content-Type", "")


class Found(msgspec.Struct, frozen=True):
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


_readers: dict[str, Reader] = {}


def reader(name: str) -> Reader:
    """Return the reader of a name; a SettingError names those that there are when there is none."""
    key = name.lower()
    found = _readers.get(key) or _installed(key)
    if found is None:
        known = reader_names()
        hint = suggestion(name, known) or f" (there are: {', '.join(known) or 'none'})"
        raise SettingError(f"unknown reader {name!r}{hint}")
    _readers[key] = found
    return found


def compiled(extraction: Extraction) -> Extractor:
    """Return the extraction, compiled by its reader; once, however often it is asked for."""
    return _compiled(extraction)


def register_reader(added: Reader | type[Reader], name: str | None = None) -> None:
    """Make a reader known under its name, or another; the latest of one name counts."""
    _readers[(name or added.name).lower()] = _instance(added)


def forget_reader(name: str) -> None:
    """Take back a registration."""
    _readers.pop(name.lower(), None)


def reader_names() -> list[str]:
    """Return all names, those of installed packages included."""
    return sorted({*_readers, *(point.name.lower() for point in installed(ENTRY_POINTS))})


_compiled = IdentityCache[Extraction, Extractor](
    lambda extraction: reader(extraction.reader).compile(extraction)
)


def _installed(key: str) -> Reader | None:
    for point in installed(ENTRY_POINTS):
        if point.name.lower() == key:
            try:
                return _instance(point.load())
            except Exception as error:
                reason = f"{type(error).__name__}: {error}"
                raise SettingError(
                    f"the reader {point.name!r} ({point.value}) cannot be loaded: {reason}"
                ) from error
    return None


def _instance(loaded: Any) -> Reader:
    found: Reader = loaded() if isinstance(loaded, type) else loaded
    if not callable(getattr(found, "compile", None)):
        raise TypeError(f"{loaded!r} is no reader: it has no method 'compile'")
    return found
