"""The kind of items that wrappers are: `WRAPPER name (inputs) LIKE other { … }`."""

from __future__ import annotations

import re

from aioflow.language.kinds import ItemKind
from aioflow.source import Span
from aioflow.wrappers.language import WrapperText, parse_item

_CLOSING_OR_SKIPPED = re.compile(
    r"""[{}]
    | \"\"\"(?:[^"\\]|\\[\s\S]|"(?!\"\"))*+\"\"\"
    | "(?:[^"\\\n]|\\.)*+" | '(?:[^'\\\n]|\\.)*+' | `[^`\n]*+`
    | \#[^\n]*+ | //[^\n]*+ | /\*(?:[^*]|\*(?!/))*+\*/""",
    re.VERBOSE,
)


def parse(name: str, header: str, body: str, header_span: Span, body_span: Span) -> WrapperText:
    """What the text of a wrapper says; a PlanError lists every mistake in it."""
    return parse_item(name, header_span, body_span, header_is_scanned=True)


def end_of_body(text: str, start: int) -> int:
    """The closing brace of a wrapper; names of fields may stand in backticks, and hold braces."""
    depth = 0
    for match in _CLOSING_OR_SKIPPED.finditer(text, start):
        if match[0] == "{":
            depth += 1
        elif match[0] == "}":
            if depth == 0:
                return match.start()
            depth -= 1
    return -1


KIND = ItemKind("WRAPPER", parse, end_of_body)
