"""Names of attributes as names of elements, and back.

Attributes may be called anything, elements may not. The escapes are those of SQL/XML (ISO/IEC 9075-14): a
character that a name must not have is written `_x` with its code in hexadecimal digits, four or six of them,
and `_`. So `price (EUR)` becomes `price_x0020__x0028_EUR_x0029_`.
"""

from __future__ import annotations

import re
from functools import lru_cache

# Characters of names in XML 1.0, fifth edition, without the colon, which separates prefixes.
_FIRST = (
    "A-Z_a-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c-\u200d\u2070-\u218f"
    "\u2c00-\u2fef\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
_FURTHER = f"{_FIRST}\\-.0-9\u00b7\u0300-\u036f\u203f-\u2040"
_NAME = re.compile(f"[{_FIRST}][{_FURTHER}]*")
_BAD_FIRST = re.compile(f"^[^{_FIRST}]")
_BAD_FURTHER = re.compile(f"[^{_FURTHER}]")
# An underscore with which an escape may begin, whatever follows, and the names that XML keeps for itself.
_LOOKS_ESCAPED = re.compile(r"_(?=x[0-9A-Fa-f]{4}|x_$)")
_RESERVED = re.compile(r"^[xX](?=[mM][lL])")
_ESCAPE = re.compile(r"_x([0-9A-Fa-f]{6}|[0-9A-Fa-f]{4})_")
_EMPTY = "_x_"


def is_element_name(text: str) -> bool:
    """Return whether a text is a name of an element, without a prefix."""
    return _NAME.fullmatch(text) is not None


@lru_cache(1024)
def element_name(attribute: str) -> str:
    """Return the name of the element for an attribute; `attribute_name` reverses it."""
    if not attribute:
        return _EMPTY
    name = _LOOKS_ESCAPED.sub("_x005F_", attribute)
    name = _BAD_FURTHER.sub(_escape, name)
    for pattern in (_BAD_FIRST, _RESERVED):
        name = pattern.sub(_escape, name)
    return name


@lru_cache(1024)
def attribute_name(element: str) -> str:
    """Return the name of the attribute for an element."""
    return "" if element == _EMPTY else _ESCAPE.sub(_unescape, element)


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"_x{code:04X}_" if code <= 0xFFFF else f"_x{code:06X}_"


def _unescape(found: re.Match[str]) -> str:
    code = int(found[1], 16)
    return chr(code) if code <= 0x10FFFF else found[0]
