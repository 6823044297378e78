"""Makes foreign texts safe for a terminal: control characters are shown, and have no effect."""

from __future__ import annotations

import re

# Controls, which move the cursor, change colours or send keys; marks that turn the direction of writing; line
# ends of other kinds; and halves of surrogate pairs, which no terminal can be sent.
_OBEYED = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_BLANKS = re.compile("[\t\n\r\x0b\x0c\x85\u2028\u2029]+")
_LINE_END = re.compile("\r\n?")


def visible(text: str) -> str:
    """Return a text on one line, with blanks for line ends and tabs, and escapes for control characters."""
    return _OBEYED.sub(_escape, _BLANKS.sub(" ", text))


def visible_lines(text: str) -> str:
    """Return a text with its lines and tabs, and with escapes for all other control characters."""
    return _OBEYED.sub(_escape_within, _LINE_END.sub("\n", text))


def visible_json(text: str) -> str:
    """Return a JSON text with the same meaning, with JSON escapes for control characters."""
    return _OBEYED.sub(_escape_json, text)


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def _escape_within(found: re.Match[str]) -> str:
    return found[0] if found[0] in "\n\t" else _escape(found)


def _escape_json(found: re.Match[str]) -> str:
    # Between values these are blanks; within texts JSON escapes them anyway.
    return found[0] if found[0] in "\t\n\r" else f"\\u{ord(found[0]):04x}"
