"""Colours, lines of JSON, and texts that are too long."""

from __future__ import annotations

import json
import sys
from typing import Any, TextIO

from aioflow.cli.exit import has_colours
from aioflow.config.masking import masked
from aioflow.values.display import visible_json

_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36"}


class Colour:
    """Paints texts for a file, if it is a terminal whose user wants that."""

    def __init__(self, file: TextIO | None = None) -> None:
        self.is_on = has_colours(sys.stdout if file is None else file)

    def __call__(self, style: str, text: str) -> str:
        """Return a text in a style: `bold`, `dim` or a colour, or several: `bold green`."""
        if not self.is_on or not text:
            return text
        codes = ";".join(_CODES[word] for word in style.split())
        return f"\x1b[{codes}m{text}\x1b[0m"


def print_json(content: Any, file: TextIO | None = None) -> None:
    """Print a line of JSON; on a terminal, with escapes for control characters."""
    output = sys.stdout if file is None else file
    text = json.dumps(masked(content), ensure_ascii=False, default=lambda value: masked(str(value)))
    print(visible_json(text) if output.isatty() else text, file=output)


def shortened(text: str, most: int, *, keep_end: bool = False) -> str:
    """Return a text of at most so many characters."""
    if len(text) <= most:
        return text
    return "…" + text[len(text) - most + 1 :] if keep_end else text[: most - 1] + "…"
