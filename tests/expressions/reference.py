"""The functions in Markdown: `python -m tests.expressions.reference FILE` writes them into a page."""

from __future__ import annotations

import sys
from pathlib import Path

from aioflow.expressions.calls import all_functions

_BEGIN, _END = "<!-- functions: begin -->", "<!-- functions: end -->"
_TITLES = {"text": "Text", "number": "Numbers", "date": "Dates", "url": "URLs", "general": "Any value"}


def function_reference() -> str:
    """A table for each family of functions."""
    return "\n\n".join(f"### {title}\n\n{_table(family)}" for family, title in _TITLES.items())


def _table(family: str) -> str:
    lines = ["| function | gives | example |", "|---|---|---|"]
    for _, function in sorted(all_functions().items()):
        if function.family != family:
            continue
        examples = "<br>".join(f"`{_cell(example)}`" for example in function.examples)
        lines.append(f"| `{_cell(function.signature)}` | {_cell(function.doc)} | {examples} |")
    return "\n".join(lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def with_reference(page: str) -> str:
    """The page with the reference between its two marks."""
    before, _, rest = page.partition(_BEGIN)
    _, _, after = rest.partition(_END)
    return f"{before}{_BEGIN}\n\n{function_reference()}\n\n{_END}{after}"


if __name__ == "__main__":
    file = Path(sys.argv[1])
    file.write_text(with_reference(file.read_text(encoding="utf-8")), encoding="utf-8")
