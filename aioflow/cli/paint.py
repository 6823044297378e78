"""Colours, and texts from the web made fit for a terminal."""

from __future__ import annotations

import re
import sys
from typing import TextIO

from aioflow.cli.ending import colours
from aioflow.secrets import mask

# Text from the web must not move the cursor, change colours or turn the direction of writing.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]+")
_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36"}


class Paint:
    """Paints texts for a file, if it is a terminal whose user wants that."""

    def __init__(self, file: TextIO | None = None) -> None:
        self.is_on = colours(sys.stdout if file is None else file)

    def __call__(self, style: str, text: str) -> str:
        """A text in a style: `bold`, `dim` or a colour, or several: `bold green`."""
        if not self.is_on or not text:
            return text
        codes = ";".join(_CODES[word] for word in style.split())
        return f"\x1b[{codes}m{text}\x1b[0m"


def plain(text: str) -> str:
    """A text on one line, without secrets and without anything that a terminal would obey."""
    return _CONTROL.sub(" ", mask(text))


def shortened(text: str, most: int, *, keep_end: bool = False) -> str:
    """A text of at most so many characters."""
    if len(text) <= most:
        return text
    return "…" + text[len(text) - most + 1 :] if keep_end else text[: most - 1] + "…"
