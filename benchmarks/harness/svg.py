"""Matplotlib's figures as SVG for pages: texts stay texts, and colours are light or dark as the reader wants.

Figures are drawn in the colours of `LIGHT`. In the SVG they are CSS variables: the page that shows a drawing
sets them, a file of its own brings them along.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from itertools import count
from typing import Any
from xml.etree import ElementTree

from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

# Colour-blind readers can tell the series apart, and they have enough contrast on their paper (tests compute
# both); lines and marks differ in their form as well.
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
STYLE = """
.plot { stroke-linejoin: round; font-variant-numeric: tabular-nums;
  font-family: system-ui, -apple-system, "Segoe UI", "Helvetica Neue", Arial, sans-serif; }
.plot .name text { paint-order: stroke; stroke: var(--paper); stroke-width: 4px; }
"""

# The ids of artists that become classes of the SVG; Matplotlib's own ids would be alike in all drawings.
CLASSES = frozenset({"curve", "each", "interval", "limit", "median", "name"})

_SVG, _XLINK = "http://www.w3.org/2000/svg", "{http://www.w3.org/1999/xlink}href"
_HEX_COLOUR = re.compile("#[0-9a-f]{6}")
_FAMILY = re.compile(r"font-family: [^;]+; ?")
_DIGITS = re.compile(r"\d+\.\d{2,}")
_SETTINGS: dict[Any, Any] = {
    "font.size": 12,
    "svg.fonttype": "none",
    "svg.hashsalt": "aioflow",  # the same figure is always the same file
    "text.parse_math": False,
    "text.color": LIGHT["ink"],
    "axes.labelcolor": LIGHT["ink"],
    "axes.labelpad": 7,
    "xtick.major.pad": 6,
    "ytick.major.pad": 8,
    "axes.labelweight": "bold",
    "axes.titleweight": "bold",
    "axes.titlesize": 12,
    "axes.titlecolor": LIGHT["ink"],
    "axes.edgecolor": LIGHT["muted"],
    "axes.axisbelow": True,
    "axes.spines.left": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": LIGHT["rule"],
    "grid.linewidth": 1,
    "xtick.color": LIGHT["muted"],
    "ytick.color": LIGHT["muted"],
    "legend.frameon": False,
    "legend.borderpad": 0,
    "legend.borderaxespad": 0.7,
    "legend.handletextpad": 0.5,
    "legend.columnspacing": 1.6,
}


@contextmanager
def new_figure(width: float, height: float) -> Iterator[Figure]:
    """A figure in our style, whose units are those of the SVG: 72 of them are an inch."""
    with rc_context(_SETTINGS):
        layout = ConstrainedLayoutEngine(w_pad=2 / 72, h_pad=5 / 72)
        figure = Figure(figsize=(width / 72, height / 72), dpi=72, layout=layout)
        figure.patch.set_visible(False)
        yield figure


def svg_of(figure: Figure, title: str, prefix: str) -> str:
    """Return a figure as SVG, whose ids begin with a prefix: they are unique in a page if the prefix is."""
    written = StringIO()
    no_metadata = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    figure.savefig(written, format="svg", metadata=no_metadata)
    root = ElementTree.fromstring(written.getvalue())
    _name_elements(root, prefix)
    for parent in list(root.iter()):
        for style in parent.findall(f"{{{_SVG}}}defs/{{{_SVG}}}style/.."):
            parent.remove(style)  # its rules are for every element of a page
        _restyle(parent)
    _, _, width, height = root.attrib["viewBox"].split()
    root.attrib |= {"class": "plot", "role": "img", "width": width, "height": height}
    root.attrib.pop("version", None)
    named = ElementTree.Element(f"{{{_SVG}}}title")
    named.text = title
    root.insert(0, named)
    ElementTree.register_namespace("", _SVG)
    return re.sub(r"\n\s*", "", ElementTree.tostring(root, encoding="unicode"))


def _name_elements(root: ElementTree.Element, prefix: str) -> None:
    """Give elements that others refer to an id of this drawing, and artists that we named a class."""
    numbers = count(1)
    referred = {
        each.attrib[_XLINK]: f"{prefix}-{next(numbers)}" for each in root.iter() if _XLINK in each.attrib
    }
    for each in root.iter():
        old = each.attrib.pop("id", "")
        if f"#{old}" in referred:
            each.set("id", referred[f"#{old}"])
        elif old in CLASSES:
            each.set("class", old)
        if _XLINK in each.attrib:
            each.set("href", f"#{referred[each.attrib.pop(_XLINK)]}")


def _restyle(element: ElementTree.Element) -> None:
    """Have colours by their variables and the font of the page, and no digits beyond what can be seen."""
    if style := element.get("style"):
        element.set("style", _HEX_COLOUR.sub(_variable, _FAMILY.sub("", style)))
    if element.get("transform", "").startswith("rotate(-0 "):
        del element.attrib["transform"]
    for name in ("d", "x", "y", "transform"):
        if value := element.get(name):
            element.set(name, _DIGITS.sub(lambda number: f"{float(number[0]):.1f}", value))


def _variable(colour: re.Match[str]) -> str:
    names = [name for name, value in LIGHT.items() if value == colour[0]]
    return f"var(--{names[0]})" if names else colour[0]


def variables(colours: dict[str, str]) -> str:
    return " ".join(f"--{name}: {value};" for name, value in colours.items())


def colour_scheme(selector: str = ":root") -> str:
    """Return the rules that set the variables: light, and dark where the reader wants that."""
    light, dark = variables(LIGHT), variables(DARK)
    return (
        f"{selector} {{ color-scheme: light dark; {light} }}\n"
        f"@media (prefers-color-scheme: dark) {{ {selector} {{ {dark} }} }}\n"
    )


def standalone(drawing: str) -> str:
    """Return a drawing as a file of its own, which brings its style and its paper along."""
    style = f"<style>{colour_scheme()}{STYLE} svg {{ background: var(--paper); }}</style>"
    start = drawing.index(">") + 1
    return f"{drawing[:start]}{style}{drawing[start:]}\n"
