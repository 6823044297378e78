"""Drawings: what they say, that they are XML, and that their colours can be told apart."""

import re
from itertools import combinations
from xml.etree import ElementTree

import pytest

from aioflow.benchmarks.harness import Bench, Curve, Experiment, Plot
from aioflow.benchmarks.harness.comparison import figures
from aioflow.benchmarks.harness.plots import (
    Drawing,
    dot_plot,
    drawings,
    line_plot,
    linear_ticks,
    logarithmic_ticks,
    tick_text,
)
from aioflow.benchmarks.harness.results import Samples
from aioflow.benchmarks.harness.svg import DARK, LIGHT, standalone
from tests.bench.made_up import made_up_results

SVG = "{http://www.w3.org/2000/svg}"
EVERY = [
    drawing
    for finding in made_up_results().findings
    for origin in ("measured", "simulated")
    for drawing in drawings(finding, origin)
]
COLOUR = re.compile(r"fill: var\(--(series-\d)\)")


def texts(svg: str) -> list[str]:
    return [each.text or "" for each in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def of_class(svg: str, name: str) -> list[ElementTree.Element]:
    return [each for each in ElementTree.fromstring(svg).iter() if each.get("class") == name]


def points(curve: ElementTree.Element) -> list[tuple[float, float]]:
    """The corners of a curve, without its marks."""
    path = curve.find(f"{SVG}path")
    assert path is not None
    numbers = [float(each) for each in re.findall(r"-?[\d.]+", path.attrib["d"])]
    return list(zip(numbers[::2], numbers[1::2], strict=True))


def box(text: ElementTree.Element) -> tuple[float, float, float, float]:
    """About where a bold text is."""
    width, height = 8.0 * len(text.text or ""), 9.0
    left = float(text.attrib["x"]) - (width if "text-anchor: end" in text.attrib["style"] else 0)
    bottom = float(text.attrib["y"])
    return left, bottom - height, left + width, bottom


@pytest.mark.parametrize("drawing", EVERY, ids=lambda drawing: drawing.name)
def test_a_drawing_is_xml_with_its_texts_as_texts_inside_its_edges(drawing: Drawing) -> None:
    svg = drawing.svg
    tree = ElementTree.fromstring(svg)
    assert (tree.find(f"{SVG}title")) is not None
    _, _, width, height = map(float, tree.attrib["viewBox"].split())
    assert texts(svg)
    for each in tree.iter(f"{SVG}text"):
        assert 0 <= float(each.attrib["x"]) <= width
        assert 0 <= float(each.attrib["y"]) <= height
    assert "NaN" not in svg
    assert "inf" not in re.sub(r">[^<]*<", "><", svg)


@pytest.mark.parametrize("drawing", EVERY, ids=lambda drawing: drawing.name)
def test_a_drawing_leaves_fonts_and_colours_to_the_page(drawing: Drawing) -> None:
    assert "font-family" not in drawing.svg
    assert not re.search("#[0-9a-f]{6}", drawing.svg)
    assert "<style" not in drawing.svg
    assert "matplotlib" not in drawing.svg


def test_ids_of_drawings_differ() -> None:
    ids = [found for each in EVERY for found in re.findall(r' id="([^"]+)"', each.svg)]
    assert ids
    assert len(set(ids)) == len(ids)


def test_the_same_plot_is_always_the_same_drawing() -> None:
    plot = made_up_results().findings[0].plots[0]
    assert line_plot(plot) == line_plot(plot)


def test_curves_have_their_names_beside_them_and_axes_theirs() -> None:
    curves = (Curve("one", ((0, 0), (1, 5))), Curve("two", ((0, 0), (3, 5))))
    shown = line_plot(Plot("a title", "seconds", "tuples", curves, steps=True))
    assert {"one", "two", "seconds", "tuples"} <= set(texts(shown))
    assert len(of_class(shown, "name")) == 2


def test_names_cover_neither_curves_nor_each_other() -> None:
    ends = {"D+S+": 180, "D+S-": 230, "Telegraph baseline": 400, "D-": 640}
    curves = tuple(Curve(name, ((0, 0), (end, 300))) for name, end in ends.items())
    svg = line_plot(Plot("it", "x", "y", curves))
    boxes = [box(text) for each in of_class(svg, "name") for text in each.iter(f"{SVG}text")]
    assert len(boxes) == 4
    for one, other in combinations(boxes, 2):
        assert one[2] < other[0] or other[2] < one[0] or one[3] < other[1] or other[3] < one[1]
    for curve in of_class(svg, "curve"):
        (start_x, start_y), (end_x, end_y) = points(curve)
        for left, top, right, bottom in boxes:
            for height in (top, bottom):
                at = start_x + (end_x - start_x) * (height - start_y) / (end_y - start_y)
                assert not (left < at < right and end_y < height)


def test_curves_too_many_to_name_have_a_legend_above() -> None:
    curves = tuple(Curve(f"curve number {n}", ((0, 0), (1, 1 + n / 1000))) for n in range(12))
    svg = line_plot(Plot("many", "x", "y", curves))
    top = min(y for curve in of_class(svg, "curve") for _, y in points(curve))
    named = [
        each
        for each in ElementTree.fromstring(svg).iter(f"{SVG}text")
        if (each.text or "").startswith("curve number")
    ]
    assert len(named) == 12
    assert all(float(each.attrib["y"]) < top for each in named)


def test_steps_hold_a_value_until_the_next() -> None:
    svg = line_plot(Plot("steps", "x", "y", (Curve("it", ((0, 0), (10, 10))),), steps=True))
    (curve,) = of_class(svg, "curve")
    first, second, third = points(curve)
    assert first[1] == second[1]
    assert second[0] == third[0]


def test_dots_show_every_round_the_median_and_the_limit_of_each_variant() -> None:
    samples = [
        Samples("D-, last", "s", (8.5, 8.6, 8.4), 8.4, figure="last"),
        Samples("D+S+, last", "s", (1.4, 1.3, 1.5), 1.3, figure="last"),
    ]
    (figure,) = figures(samples)
    svg = dot_plot(figure)
    assert [len(list(each.iter(f"{SVG}use"))) for each in of_class(svg, "each")] == [3, 3]
    assert {"D-", "D+S+", "last (s)", "8.50 s = 1.01 × limit", "1.40 s = 1.08 × limit"} <= set(texts(svg))
    assert {"each round", "median", "limit: what no program could beat"} <= set(texts(svg))
    assert len(of_class(svg, "limit")) == 2
    assert of_class(svg, "interval") == []  # three rounds have none


def test_a_variant_keeps_its_colour_and_place_in_all_drawings_of_an_experiment() -> None:
    bench = Bench()
    for figure in ("first", "last"):
        for name in ("D+S+", "D-") if figure == "first" else ("D-", "D+S+"):
            bench.sample(f"{name}, {figure}", "s", 1.0 if name == "D-" else 2.0)
    bench.plot("over time", "x", "y", [Curve("D-", ((0, 0), (1, 1))), Curve("D+S+", ((0, 0), (2, 1)))])
    found = bench.finding(Experiment("it", "How long?", "", "", lambda bench: None))
    curves, first, last = (drawing.svg for drawing in drawings(found, "measured"))
    named = [text for each in of_class(curves, "name") for text in each.iter(f"{SVG}text")]
    assert [(each.text, *COLOUR.findall(each.attrib["style"])) for each in named] == [
        ("D-", "series-1"),
        ("D+S+", "series-2"),
    ]
    for svg in (first, last):
        assert [text for text in texts(svg) if text.startswith("D")] == ["D-", "D+S+"]
        medians = [ElementTree.tostring(each, encoding="unicode") for each in of_class(svg, "median")]
        assert [COLOUR.findall(each)[0] for each in medians] == ["series-1", "series-2"]


def test_a_long_name_of_a_variant_has_two_lines() -> None:
    name = "a variant whose name says all that it does and some things more, and more, and more"
    shown = texts(dot_plot(figures([Samples(name, "s", (1.0, 2.0), 1.0)])[0]))
    assert "a variant whose name says all that" in shown
    assert name not in shown


def test_a_name_that_would_be_markup_is_a_text() -> None:
    svg = line_plot(Plot("<&>", "x < y", "$y_1$", (Curve("<b>", ((0, 0), (1, 1))),)))
    assert {"x < y", "<b>", "$y_1$"} <= set(texts(svg))


def test_a_drawing_of_its_own_brings_colours_for_both_schemes() -> None:
    svg = standalone(EVERY[0].svg)
    ElementTree.fromstring(svg)
    assert LIGHT["series-1"] in svg
    assert f"@media (prefers-color-scheme: dark) {{ :root {{ --paper: {DARK['paper']};" in svg


# --- ticks --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ([0, 72], (0, 20, 40, 60, 80)),
        ([0, 1.0], (0, 0.2, 0.4, 0.6, 0.8, 1.0)),
        ([3, 8.5], (0, 2, 4, 6, 8, 10)),
        ([0], (0, 0.2, 0.4, 0.6, 0.8, 1.0)),
        ([-4, 5], (-4, -2, 0, 2, 4, 6)),
    ],
)
def test_linear_ticks_are_round_and_enclose_the_values(values: list[float], ticks: tuple[float, ...]) -> None:
    assert linear_ticks(values) == pytest.approx(ticks)


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ([0.26, 8.6], (0.2, 0.5, 1, 2, 5, 10)),
        ([1e3, 1e6], (1e3, 1e4, 1e5, 1e6)),
        ([1, 2, 4, 8, 16, 32, 64, 128], (1, 2, 4, 8, 16, 32, 64, 128)),
        ([3, 3], (1, 2, 5, 10)),
        ([0], (1, 2, 5, 10)),
    ],
)
def test_logarithmic_ticks_are_powers_that_enclose_the_values(
    values: list[float], ticks: tuple[float, ...]
) -> None:
    assert logarithmic_ticks(values)[0] == pytest.approx(ticks)


@pytest.mark.parametrize("low", [0.0003, 0.04, 1.0, 7.0, 900.0])
@pytest.mark.parametrize("factor", [1.01, 3, 40, 1e4, 1e9])
@pytest.mark.parametrize("logarithmic", [False, True])
def test_there_are_never_many_ticks_and_every_value_has_a_place(
    low: float, factor: float, logarithmic: bool
) -> None:
    values = [low, low * factor]
    ticks, minor = logarithmic_ticks(values) if logarithmic else (linear_ticks(values), [])
    every = [*ticks, *minor]
    assert 2 <= len(ticks) <= 9
    assert ticks == sorted(set(ticks))
    assert min(every) <= values[0] * 1.0001
    assert max(every) >= values[1] * 0.9999


def test_what_has_no_place_on_a_logarithmic_axis_lies_at_its_beginning() -> None:
    svg = line_plot(Plot("it", "x", "y", (Curve("it", ((0, 1), (1, 1), (100, 2))),), logarithmic_x=True))
    (curve,) = of_class(svg, "curve")
    first, second, _ = points(curve)
    assert first == second


def test_ticks_of_an_axis_have_as_many_places_as_one_of_them_needs() -> None:
    half = linear_ticks([0, 1.5])
    assert [tick_text(tick, half) for tick in half] == [
        "0.00",
        "0.25",
        "0.50",
        "0.75",
        "1.00",
        "1.25",
        "1.50",
    ]
    decades = (0.01, 0.5, 10, 1000, 20_000, 1e6)
    assert [tick_text(tick, [tick]) for tick in decades] == ["0.01", "0.5", "10", "1,000", "20k", "1M"]


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
