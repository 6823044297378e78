"""Kinds of items besides plans. Packages bring them; the language only finds where items begin and end."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import TypeAlias

import msgspec

from aioflow.config.entry_points import installed
from aioflow.language.literals import RAW_STRING
from aioflow.source import Span

ENTRY_POINTS = "aioflow.items"
_CLOSING_OR_SKIPPED = re.compile(
    rf"""[{{}}]
    | (?<![\w-]){RAW_STRING}
    | \"\"\"(?:[^"\\]|\\[\s\S]|"(?!\"\"))*+\"\"\"
    | "(?:[^"\\\n]|\\.)*+" | '(?:[^'\\\n]|\\.)*+' | `[^`\n]*+`
    | \#[^\n]*+ | //[^\n]*+ | /\*(?:[^*]|\*(?!/))*+\*/""",
    re.VERBOSE,
)

# Name, header text, body text and the spans of the two -> what the item means.
ParseItem: TypeAlias = Callable[[str, str, str, Span, Span], object]
# The whole text and the offset after the opening brace -> the offset of the closing one, or -1.
EndOfBody: TypeAlias = Callable[[str, int], int]


def end_of_body(text: str, start: int) -> int:
    """Return the closing brace of an open one, past strings, names in backticks, comments and pairs."""
    depth = 0
    for match in _CLOSING_OR_SKIPPED.finditer(text, start):
        if match[0] == "{":
            depth += 1
        elif match[0] == "}":
            if depth == 0:
                return match.start()
            depth -= 1
    return -1


class ItemKind(msgspec.Struct, frozen=True):
    """A kind of items: `KEYWORD name header { body }`.

    `parse` raises SettingError (its `offset` counts in the body, or in the header when its `setting`
    is "header") or PlanError for what is wrong. `end_of_body` is for bodies in which braces, quotes or
    comments mean something of their own. A file whose name ends with `suffix` is the body of one item, which
    has the name of the file.
    """

    keyword: str
    parse: ParseItem
    end_of_body: EndOfBody = end_of_body
    suffix: str = ""


class ItemKinds:
    """Kinds by keyword: those registered here, and those of installed packages when first asked for."""

    def __init__(self) -> None:
        self._kinds: dict[str, ItemKind] = {}
        self._missing: set[str] = set()

    def add(self, kind: ItemKind) -> None:
        keyword = kind.keyword.upper()
        if keyword in ("PLAN", "USE", "BODY"):
            raise TypeError(f"an item kind cannot be called {kind.keyword!r}: the language has that word")
        self._kinds[keyword] = kind
        self._missing.discard(keyword)

    def remove(self, keyword: str) -> None:
        self._kinds.pop(keyword.upper(), None)

    def get(self, keyword: str) -> ItemKind | None:
        folded = keyword.upper()
        if folded not in self._kinds and folded not in self._missing:
            self._load(folded)
        return self._kinds.get(folded)

    def keywords(self) -> list[str]:
        """Return all keywords, those of installed packages included."""
        return sorted({*self._kinds, *(name.upper() for name in _installed())})

    def of_file(self, name: str) -> ItemKind | None:
        """Return the kind of item whose body a file of that name is, if it is one."""
        suffix = PurePosixPath(name).suffix.lower()
        if suffix in ("", ".plan"):
            return None
        kinds = (self.get(keyword) for keyword in self.keywords())
        return next((kind for kind in kinds if kind is not None and kind.suffix == suffix), None)

    def _load(self, keyword: str) -> None:
        for name, load in _installed().items():
            if name.upper() == keyword:
                kind = load()
                if not isinstance(kind, ItemKind):
                    raise TypeError(
                        f"entry point {name!r} of {ENTRY_POINTS!r} must give an ItemKind, not {kind!r}"
                    )
                self.add(kind)
                return
        self._missing.add(keyword)


def _installed() -> dict[str, Callable[[], object]]:
    return {point.name: point.load for point in installed(ENTRY_POINTS)}


item_kinds = ItemKinds()


def item_kind(keyword: str, parse: ParseItem, *, end_of_body: EndOfBody = end_of_body) -> ItemKind:
    """Register a kind of items, so that plan files may hold `KEYWORD name … { … }`."""
    kind = ItemKind(keyword, parse, end_of_body)
    item_kinds.add(kind)
    return kind
