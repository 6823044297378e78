"""SVG by hand: elements, the width of texts, and the style that makes a drawing readable light and dark.

Colours are CSS variables: the page that shows a drawing sets them, a file of its own brings them along.
"""

from __future__ import annotations

from functools import cache
from html import escape

FONT_SIZE = 12
# Of an em, in the widest of the usual fonts without serifs: too wide rather than too narrow.
_WIDTHS = (
    (frozenset("ijl'|.,:;! "), 0.34),
    (frozenset("ftrI()[]/-"), 0.42),
    (frozenset("mwMW@%—+=<>×≈…"), 0.9),
    (frozenset("ABCDEGHKNOPQRSUVXYZ"), 0.72),
)
_USUAL_WIDTH = 0.625

# Told apart by colour-blind readers, and with enough contrast on their paper (tests compute both); lines and
# marks differ in their form as well.
LIGHT = {
    "paper": "#ffffff",
    "ink": "#1c1e21",
    "muted": "#5c626b",
    "rule": "#d5d9df",
    "series-1": "#135382",
    "series-2": "#b85b0e",
    "series-3": "#12856d",
    "series-4": "#a03bcd",
    "series-5": "#7a4e00",
    "series-6": "#41414a",
}
DARK = {
    "paper": "#15171a",
    "ink": "#e8eaed",
    "muted": "#a3aab4",
    "rule": "#363b42",
    "series-1": "#55a4f7",
    "series-2": "#d8925f",
    "series-3": "#a3eda8",
    "series-4": "#fdbafb",
    "series-5": "#c2cf56",
    "series-6": "#989fa8",
}
SERIES = 6
DASHES = ("", "7 3", "2 3", "10 3 2 3", "", "7 3")

STYLE = """
svg.plot { font: 12px system-ui, -apple-system, "Segoe UI", "Helvetica Neue", Arial, sans-serif;
  font-variant-numeric: tabular-nums; }
.plot text { fill: var(--ink); }
.plot .muted { fill: var(--muted); }
.plot .heading { font-weight: 600; }
.plot .end { text-anchor: end; }
.plot .middle { text-anchor: middle; }
.plot .halo { paint-order: stroke; stroke: var(--paper); stroke-width: 3px; stroke-linejoin: round; }
.plot .label { font-weight: 600; }
.plot .grid { stroke: var(--rule); stroke-width: 1; }
.plot .minor { stroke-opacity: 0.5; stroke-width: 0.5; }
.plot .axis { stroke: var(--muted); stroke-width: 1; }
.plot .curve { fill: none; stroke-width: 2; stroke-linejoin: round; stroke-linecap: round; }
.plot .leader { fill: none; stroke: var(--muted); stroke-width: 0.75; }
.plot .mark { stroke: var(--paper); stroke-width: 1; }
.plot .each { fill-opacity: 0.4; }
.plot .interval { stroke-width: 3; stroke-linecap: round; }
.plot .limit { stroke: var(--ink); stroke-width: 2; }
"""


def series_style() -> str:
    """Rules for the colours of series: as lines, as areas, as texts."""
    rules = []
    for number in range(1, SERIES + 1):
        colour = f"var(--series-{number})"
        rules.append(f".plot .s{number} {{ stroke: {colour}; }}")
        rules.append(f".plot .f{number}, .plot text.f{number} {{ fill: {colour}; }}")
    return "\n".join(rules)


def variables(colours: dict[str, str]) -> str:
    return " ".join(f"--{name}: {value};" for name, value in colours.items())


def colour_scheme(selector: str = ":root") -> str:
    """The variables, light, and dark where the reader wants that."""
    light, dark = variables(LIGHT), variables(DARK)
    return (
        f"{selector} {{ color-scheme: light dark; {light} }}\n"
        f"@media (prefers-color-scheme: dark) {{ {selector} {{ {dark} }} }}\n"
    )


def standalone(drawing: str) -> str:
    """A drawing as a file of its own, which brings its style along and has a paper of its own."""
    style = f"<style>{colour_scheme()}{STYLE}{series_style()} svg {{ background: var(--paper); }}</style>"
    start = drawing.index(">") + 1
    return f"{drawing[:start]}{style}{drawing[start:]}\n"


def element(kind: str, *children: str, css: str = "", **attributes: float | str) -> str:
    """`<kind class=css …>children</kind>`; an underscore in an attribute's name is a hyphen."""
    given = {"class": css, **attributes} if css else attributes
    written = "".join(f' {name.replace("_", "-")}="{_value(value)}"' for name, value in given.items())
    inner = "".join(children)
    return f"<{kind}{written}>{inner}</{kind}>" if inner else f"<{kind}{written}/>"


def _value(value: float | str) -> str:
    if isinstance(value, str):
        return escape(value)
    return f"{value:.1f}".removesuffix(".0")


def text(x: float, y: float, content: str, css: str = "", **attributes: float | str) -> str:
    return element("text", escape(content), css=css, x=x, y=y, **attributes)


def line(x1: float, y1: float, x2: float, y2: float, css: str) -> str:
    return element("line", css=css, x1=x1, y1=y1, x2=x2, y2=y2)


def drawing(width: float, height: float, title: str, *children: str) -> str:
    """The whole, named for those who cannot see it."""
    return element(
        "svg",
        element("title", escape(title)),
        *children,
        css="plot",
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width:.0f} {height:.0f}",
        width=width,
        height=height,
        role="img",
    )


def text_width(content: str, size: float = FONT_SIZE) -> float:
    """About how wide a text is."""
    return size * sum(_letter_width(letter) for letter in content)


@cache
def _letter_width(letter: str) -> float:
    return next((width for letters, width in _WIDTHS if letter in letters), _USUAL_WIDTH)


def mark(form: int, x: float, y: float, css: str, size: float = 4) -> str:
    """A dot, square, triangle or diamond: series differ in form too."""
    kind = form % 4
    if kind == 0:
        return element("circle", css=css, cx=x, cy=y, r=size)
    if kind == 1:
        side = size * 1.8
        return element("rect", css=css, x=x - side / 2, y=y - side / 2, width=side, height=side)
    high = size * 1.25
    corners = {2: ((0, -1.1), (1, 0.8), (-1, 0.8)), 3: ((0, -1.1), (1.1, 0), (0, 1.1), (-1.1, 0))}[kind]
    return element(
        "polygon", css=css, points=" ".join(f"{x + a * high:.1f},{y + b * high:.1f}" for a, b in corners)
    )
