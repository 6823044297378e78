"""Histograms: every time is counted once, between edges that people read."""

from __future__ import annotations

from itertools import pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioflow.drawing.histogram import Mark, histogram, histogram_svg, histogram_text

times = st.lists(st.floats(0.0, 100_000.0), min_size=1, max_size=60)


@given(times)
def test_every_time_is_counted_once_between_its_edges(seconds: list[float]) -> None:
    drawn = histogram(seconds)
    assert sum(drawn.counts) == len(seconds)
    assert len(drawn.edges) == len(drawn.counts) + 1
    assert all(low < high for low, high in pairwise(drawn.edges))
    assert max(seconds) <= drawn.edges[-1]
    for (low, high), count in list(zip(pairwise(drawn.edges), drawn.counts, strict=True))[1:]:
        assert count == sum(low < each <= high for each in seconds)


@given(times, st.lists(st.floats(0.0, 1000.0), max_size=3))
def test_marks_are_shown_whatever_the_times_are(seconds: list[float], marks: list[float]) -> None:
    drawn = histogram(seconds, [Mark(each, "here") for each in marks])
    text = histogram_text(drawn)
    assert text.count("here") == len(marks)
    assert len(text.splitlines()) == len(drawn.counts) + len(marks)
    assert histogram_svg(drawn, "<title>").count("here") == len(marks)


@pytest.mark.parametrize(
    ("seconds", "edges"),
    [
        ([0.1, 0.2, 0.35, 2.0], (0.1, 0.15, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0)),
        ([1.0, 1.1, 1.3], (1.0, 1.025, 1.05, 1.075, 1.1, 1.125, 1.15, 1.175, 1.2, 1.225, 1.25, 1.275, 1.3)),
    ],
)
def test_edges_are_round(seconds: list[float], edges: tuple[float, ...]) -> None:
    assert histogram(seconds).edges == pytest.approx(edges)


def test_a_bar_is_there_for_a_single_time_among_many() -> None:
    text = histogram_text(histogram([0.1] * 10_000 + [1.0]))
    assert text.splitlines()[-1].rstrip().endswith("▏")


def test_a_drawing_is_xml_with_its_title_and_counts() -> None:
    drawn = ElementTree.fromstring(histogram_svg(histogram([0.1, 0.2, 3.0]), "a < b"))
    texts = [each.text for each in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert texts[0] == "a < b"
    assert texts.count("1") >= 3
