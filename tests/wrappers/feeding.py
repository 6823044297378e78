"""Pages read without a network: extractions in few words, and bodies that come in pieces."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from aioflow.errors import SettingError
from aioflow.relation import Relation, Row, Value
from aioflow.web.errors import ExtractionError
from aioflow.wrappers.definition import Extraction, Field, Processing, Scope
from aioflow.wrappers.readers.reader import Extractor, Found, PageHead, Reader

FEEDS = Path(__file__).parents[1] / "data" / "feeds"
URL = "https://feeds.example/page"


def field(
    name: str,
    selector: str = "",
    *words: str | tuple[Any, ...],
    scope: Scope = "item",
    required: bool = False,
    default: Value = None,
    fields: Sequence[Field] = (),
) -> Field:
    """`field("price", ".price", ("number", "de"), "all")`."""
    processing = tuple(
        Processing(word) if isinstance(word, str) else Processing(word[0], tuple(word[1:])) for word in words
    )
    return Field(name, selector, scope, processing, required, default, tuple(fields))


class Feed:
    """A wrapper's reading part, compiled; it was pickled on its way, as for a page that is read elsewhere."""

    def __init__(
        self,
        reader: Reader,
        *fields: Field | str,
        each: str | None = None,
        next_page: Field | None = None,
        charset: str | None = None,
        outer: bool = False,
        **options: Any,
    ) -> None:
        given = tuple(Field(each) if isinstance(each, str) else each for each in fields)
        named = {name.replace("_", "-"): value for name, value in options.items()}
        extraction = Extraction(reader.name, named, each, given, next_page, charset, outer)
        self.extractor: Extractor = pickle.loads(pickle.dumps(reader.compile(extraction)))
        self.next_page: Value = None

    def read(self, body: bytes | str, *, sizes: Sequence[int] = (), content_type: str = "") -> list[Row]:
        """All rows of a page that comes in pieces of these sizes, then the rest at once."""
        data = body.encode() if isinstance(body, str) else body
        reading = self.extractor.open(_head(content_type))
        rows: list[Row] = []
        start = 0
        for size in sizes:
            rows += reading.feed(data[start : start + size])
            start += size
        rows += reading.feed(data[start:])
        rows += reading.end()
        self.next_page = reading.next_page
        return rows

    def arriving(self, *pieces: bytes | str) -> list[list[Row]]:
        """The rows that each piece completes, and those of the end."""
        reading = self.extractor.open(_head(""))
        given = [piece.encode() if isinstance(piece, str) else piece for piece in pieces]
        return [*(reading.feed(piece) for piece in given), reading.end()]

    def explain(self, body: bytes | str) -> list[Found]:
        data = body.encode() if isinstance(body, str) else body
        return list(self.extractor.explain(_head(""), data))

    def refusal(self, body: bytes | str, **how: Any) -> str:
        """What is said about a page that cannot be read."""
        with pytest.raises(ExtractionError) as caught:
            self.read(body, **how)
        message = str(caught.value)
        assert message.startswith(f"{URL}: ")
        return message.removeprefix(f"{URL}: ")


def _head(content_type: str) -> PageHead:
    return PageHead(URL, 200, {"Content-Type": content_type})


def mistake(reader: Reader, *fields: Field | str, **settings: Any) -> tuple[str | None, int | None, str]:
    """The setting, the offset and the message of a mistake that is found before a page is read."""
    with pytest.raises(SettingError) as caught:
        Feed(reader, *fields, **settings)
    return caught.value.setting, caught.value.offset, caught.value.message


def embedded(value: Value) -> list[Row]:
    """The rows of an embedded relation."""
    assert isinstance(value, Relation)
    return list(value.rows)
