"""The kind of items that wrappers are: `WRAPPER name (inputs) LIKE other { … }`."""

from __future__ import annotations

from aioflow.language.kinds import ItemKind
from aioflow.source import Span
from aioflow.wrappers.language import WrapperText, parse_item


def parse(name: str, header: str, body: str, header_span: Span, body_span: Span) -> WrapperText:
    """What the text of a wrapper says; a PlanError lists every mistake in it."""
    return parse_item(name, header_span, body_span, header_is_scanned=True)


KIND = ItemKind("WRAPPER", parse)
