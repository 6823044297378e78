"""Texts that a spreadsheet would take for formulas: of a page, they may be commands."""

from __future__ import annotations

import re

# Spreadsheets take what begins so for a formula, also after blanks and in the wide forms of East Asia. What
# has no width is like a blank: a byte order mark at the beginning of a file is no part of the first cell.
_FORMULA = re.compile(r"[\s\x00-\x1f\u200b-\u200f\u2060\ufeff]*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n]")
_NUMBER = re.compile(r"[+-]?[0-9]+(?:[.,][0-9]+)*(?:[eE][+-]?[0-9]{1,3})?", re.ASCII)


def neutral(text: str) -> str:
    """Return the text of a cell as no spreadsheet takes it for a formula; a number stays one."""
    if text[:1].isalnum():  # nearly all texts, and this is quick
        return text
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text
