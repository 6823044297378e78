"""From bytes to a Source: encodings, line ends, forbidden characters, and the limit of size."""

from __future__ import annotations

import re
import unicodedata

from aioflow.language.mistakes import Mistakes
from aioflow.source import Source

SIZE_AT_MOST = 5_000_000
_BYTE_ORDER_MARK = "\ufeff"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
# Bytes that are not UTF-8 decode to lone surrogates, so they are found together with the rest.
_FORBIDDEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]|[\ud800-\udfff]+")
_ESCAPED_BYTES = range(0xDC80, 0xDD00)


def open_source(content: str | bytes, name: str) -> tuple[Source, Mistakes]:
    """Return a text ready to be read, and what is wrong with its characters.

    Line ends become "\\n" and forbidden characters "\\ufffd", so places stay as an editor shows them.
    """
    if len(content) > SIZE_AT_MOST:
        unit = "characters" if isinstance(content, str) else "bytes"
        return _refused(name, f"the file has {len(content):,} {unit}; at most {SIZE_AT_MOST:,} are allowed")
    if isinstance(content, bytes) and content.startswith(_UTF16_MARKS):
        return _refused(name, "this is UTF-16; save the file as UTF-8")
    text = content if isinstance(content, str) else content.decode("utf-8", errors="surrogateescape")
    text = plain_text(text)
    found = list(_FORBIDDEN.finditer(text))
    source = Source(name, _FORBIDDEN.sub(lambda match: "\ufffd" * len(match[0]), text) if found else text)
    mistakes = Mistakes(source)
    for match in found:
        mistakes.add(_describe(match[0]), match.start(), match.end())
    return source, mistakes


def plain_text(text: str) -> str:
    """Return a text without a byte order mark, and with Unix line ends in place of those of other systems."""
    return text.removeprefix(_BYTE_ORDER_MARK).replace("\r\n", "\n").replace("\r", "\n")


def _refused(name: str, message: str) -> tuple[Source, Mistakes]:
    mistakes = Mistakes(Source(name, ""))
    mistakes.add(message, 0)
    return mistakes.source, mistakes


def _describe(characters: str) -> str:
    codes = [ord(character) for character in characters]
    if codes[0] not in _ESCAPED_BYTES:
        return f"{name_character(characters[0])} cannot stand in a plan"
    shown = " ".join(f"{code & 0xFF:02X}" for code in codes[:4])
    if len(codes) == 1:
        return f"byte {shown} is not UTF-8"
    return f"bytes {shown}{' …' if len(codes) > 4 else ''} are not UTF-8"


def name_character(character: str) -> str:
    """Return a character that cannot be seen, in words: `character U+200B (ZERO WIDTH SPACE)`."""
    name = unicodedata.name(character, "") or _CONTROL_NAMES.get(character, "")
    return f"character U+{ord(character):04X}" + (f" ({name})" if name else "")


_CONTROL_NAMES = {"\0": "NUL", "\r": "CARRIAGE RETURN", "\f": "FORM FEED", "\x1b": "ESCAPE", "\x7f": "DELETE"}
