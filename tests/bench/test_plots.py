"""Drawings: what they say, that they are XML, and that their colours can be told apart."""

import re
from itertools import combinations
from xml.etree import ElementTree

import pytest

from aioflow.bench import Bench, Curve, Experiment, Plot
from aioflow.bench.dots import dot_plot
from aioflow.bench.drawings import drawings
from aioflow.bench.pairs import figures
from aioflow.bench.plots import line_plot
from aioflow.bench.results import Samples
from aioflow.bench.svg import DARK, LIGHT, standalone
from tests.bench.made_up import made_up_results

SVG = "{http://www.w3.org/2000/svg}"
EVERY = [
    drawing.svg
    for finding in made_up_results().findings
    for origin in ("measured", "simulated")
    for drawing in drawings(finding, origin)
]


def texts(svg: str) -> list[str]:
    return [each.text or "" for each in ElementTree.fromstring(svg).iter(f"{SVG}text")]


@pytest.mark.parametrize("svg", EVERY)
def test_a_drawing_is_xml_with_its_texts_as_texts_inside_its_edges(svg: str) -> None:
    tree = ElementTree.fromstring(svg)
    assert (tree.find(f"{SVG}title")) is not None
    _, _, width, height = map(float, tree.attrib["viewBox"].split())
    for each in tree.iter(f"{SVG}text"):
        assert 0 <= float(each.attrib["x"]) <= width
        assert 0 <= float(each.attrib["y"]) <= height
    assert "NaN" not in svg
    assert "inf" not in re.sub(r">[^<]*<", "><", svg)


def test_curves_have_their_names_beside_them_and_axes_theirs() -> None:
    curves = (Curve("one", ((0, 0), (1, 5))), Curve("two", ((0, 0), (3, 5))))
    shown = texts(line_plot(Plot("a title", "seconds", "tuples", curves, steps=True)))
    assert {"one", "two", "seconds", "tuples"} <= set(shown)


def test_curves_too_many_to_name_have_a_legend_above() -> None:
    curves = tuple(Curve(f"curve number {n}", ((0, 0), (1, 1 + n / 1000))) for n in range(12))
    tree = ElementTree.fromstring(line_plot(Plot("many", "x", "y", curves)))
    top = min(float(each.attrib["y1"]) for each in tree.iter(f"{SVG}line"))
    named = [each for each in tree.iter(f"{SVG}text") if (each.text or "").startswith("curve number")]
    assert len(named) == 12
    assert all(float(each.attrib["y"]) < top for each in named)


def test_steps_hold_a_value_until_the_next() -> None:
    svg = line_plot(Plot("steps", "x", "y", (Curve("it", ((0, 0), (10, 10))),), steps=True))
    (path,) = re.findall(r' d="M([^"]+)"', svg)
    points = [tuple(map(float, each.split(","))) for each in path.split(" L")]
    assert len(points) == 3
    assert points[0][1] == points[1][1]
    assert points[1][0] == points[2][0]


def test_dots_show_every_round_the_median_and_the_limit_of_each_variant() -> None:
    samples = [
        Samples("D-, last", "s", (8.5, 8.6, 8.4), 8.4, figure="last"),
        Samples("D+S+, last", "s", (1.4, 1.3, 1.5), 1.3, figure="last"),
    ]
    (figure,) = figures(samples)
    svg = dot_plot(figure)
    assert svg.count('class="each f1"') == svg.count('class="each f2"') == 3
    assert {"D-", "D+S+", "last (s)", "8.50 s = 1.01 × limit", "1.40 s = 1.08 × limit"} <= set(texts(svg))
    assert svg.count('class="limit"') == 3  # two, and one that explains the sign


def test_a_variant_keeps_its_colour_and_place_in_all_drawings_of_an_experiment() -> None:
    bench = Bench()
    for figure in ("first", "last"):
        for name in ("D+S+", "D-") if figure == "first" else ("D-", "D+S+"):
            bench.sample(f"{name}, {figure}", "s", 1.0 if name == "D-" else 2.0)
    bench.plot("over time", "x", "y", [Curve("D-", ((0, 0), (1, 1))), Curve("D+S+", ((0, 0), (2, 1)))])
    found = bench.finding(Experiment("it", "How long?", "", "", lambda bench: None))
    curves, first, last = (drawing.svg for drawing in drawings(found, "measured"))
    assert re.findall(r"label halo (f\d)[^>]*>([^<]+)", curves) == [("f1", "D-"), ("f2", "D+S+")]
    for svg in (first, last):
        assert [text for text in texts(svg) if text.startswith("D")] == ["D-", "D+S+"]
        assert re.findall(r'<(\w+) class="mark (f\d)"', svg) == [("circle", "f1"), ("rect", "f2")]


def test_a_name_that_would_be_markup_is_a_text() -> None:
    svg = line_plot(Plot("<&>", "x < y", "y", (Curve("<b>", ((0, 0), (1, 1))),)))
    assert "x < y" in texts(svg)
    assert "<b>" in texts(svg)


def test_a_drawing_of_its_own_brings_colours_for_both_schemes() -> None:
    svg = standalone(EVERY[0])
    ElementTree.fromstring(svg)
    assert LIGHT["series-1"] in svg
    assert f"@media (prefers-color-scheme: dark) {{ :root {{ --paper: {DARK['paper']};" in svg


# --- colours ------------------------------------------------------------------------------------


def linear_light(colour: str) -> tuple[float, float, float]:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return red, green, blue


def luminance(colour: str) -> float:
    red, green, blue = linear_light(colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_texts_and_series_stand_out_from_their_paper(colours: dict[str, str]) -> None:
    for name, colour in colours.items():
        if name not in ("paper", "rule"):
            # The names of curves are texts in the colours of series: 4.5 is what texts need.
            assert contrast(colour, colours["paper"]) >= 4.5, name


# How red-blind, green-blind and blue-blind readers see light (Machado and others, 2009, whole blindness).
BLINDNESS = {
    "none": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "red": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "green": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "blue": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}


def seen(colour: str, blindness: str) -> tuple[float, float, float]:
    """A colour as a reader sees it, in a space in which distances are differences (Oklab)."""
    light = linear_light(colour)
    red, green, blue = (
        min(1.0, max(0.0, sum(weight * part for weight, part in zip(row, light, strict=True))))
        for row in BLINDNESS[blindness]
    )
    long = (0.4122214708 * red + 0.5363325363 * green + 0.0514459929 * blue) ** (1 / 3)
    middle = (0.2119034982 * red + 0.6806995451 * green + 0.1073969566 * blue) ** (1 / 3)
    short = (0.0883024619 * red + 0.2817188376 * green + 0.6299787005 * blue) ** (1 / 3)
    return (
        0.2104542553 * long + 0.7936177850 * middle - 0.0040720468 * short,
        1.9779984951 * long - 2.4285922050 * middle + 0.4505937099 * short,
        0.0259040371 * long + 0.7827717662 * middle - 0.8086757660 * short,
    )


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("blindness", BLINDNESS)
def test_the_first_series_are_told_apart_by_colour_blind_readers(
    colours: dict[str, str], blindness: str
) -> None:
    series = [colours[f"series-{number}"] for number in range(1, 5)]
    for one, other in combinations(series, 2):
        pair = zip(seen(one, blindness), seen(other, blindness), strict=True)
        assert sum((a - b) ** 2 for a, b in pair) ** 0.5 >= 0.1, (one, other)
