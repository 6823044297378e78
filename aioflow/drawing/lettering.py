"""How wide a text will be, without asking for the font: the widths of Helvetica, with a reserve."""

from __future__ import annotations

# Advance widths of printable ASCII in thousandths of the font size, from Adobe's metrics of Helvetica.
# fmt: off
_ADVANCES = (
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278,
    556, 556, 556, 556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556,
    1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833, 722, 778,
    667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556,
    333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556,
    556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584,
)
# fmt: on
_WIDTHS = dict(zip(map(chr, range(32, 127)), _ADVANCES, strict=True))
_OTHER, _WIDE = 600, 1000
# Where Helvetica's kin are missing, browsers fall back to wider fonts.
_RESERVE = 1.13
_BOLD = 1.07


def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """The width of a line in the unit of the font size."""
    thousandths = sum(
        _WIDTHS.get(character, _WIDE if ord(character) > 0x1100 else _OTHER) for character in text
    )
    return thousandths / 1000 * size * _RESERVE * (_BOLD if bold else 1)
