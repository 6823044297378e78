"""Ticks at round values, around all values."""

import pytest

from aioflow.bench.scales import linear, logarithmic, tick_text


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ([0, 72], (0, 20, 40, 60, 80)),
        ([0, 1.0], (0, 0.2, 0.4, 0.6, 0.8, 1.0)),
        ([3, 8.5], (0, 2, 4, 6, 8, 10)),
        ([0], (0, 0.2, 0.4, 0.6, 0.8, 1.0)),
        ([-4, 5], (-4, -2, 0, 2, 4, 6)),
        ([], (0, 0.2, 0.4, 0.6, 0.8, 1.0)),
    ],
)
def test_linear_ticks_are_round_and_enclose_the_values(values: list[float], ticks: tuple[float, ...]) -> None:
    assert linear(values, 0, 100).ticks == pytest.approx(ticks)


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ([0.26, 8.6], (0.2, 0.5, 1, 2, 5, 10)),
        ([1e3, 1e6], (1e3, 1e4, 1e5, 1e6)),
        ([1, 2, 4, 8, 16, 32, 64, 128], (1, 2, 4, 8, 16, 32, 64, 128)),
        ([3, 3], (1, 2, 5, 10)),
    ],
)
def test_logarithmic_ticks_are_powers_that_enclose_the_values(
    values: list[float], ticks: tuple[float, ...]
) -> None:
    assert logarithmic(values, 0, 100).ticks == pytest.approx(ticks)


@pytest.mark.parametrize("low", [0.0003, 0.04, 1.0, 7.0, 900.0])
@pytest.mark.parametrize("factor", [1.01, 3, 40, 1e4, 1e9])
@pytest.mark.parametrize("kind", [linear, logarithmic])
def test_there_are_never_many_ticks_and_every_value_has_a_place(
    low: float, factor: float, kind: object
) -> None:
    make = linear if kind is linear else logarithmic
    scale = make([low, low * factor], 100, 600)
    assert 2 <= len(scale.ticks) <= 9
    assert scale.ticks == tuple(sorted(set(scale.ticks)))
    for value in (low, low * factor):
        assert 100 - 1e-6 <= scale(value) <= 600 + 1e-6


def test_values_lie_between_the_ends_in_proportion() -> None:
    assert linear([0, 10], 0, 100)(5) == pytest.approx(50)
    assert logarithmic([1, 100], 0, 100)(10) == pytest.approx(50)
    assert linear([0, 10], 300, 100)(10) == pytest.approx(100)  # upwards, as in a drawing


def test_what_has_no_place_on_a_logarithmic_scale_lies_at_its_beginning() -> None:
    assert logarithmic([0, 1, 100], 0, 100)(0) == 0


def test_ticks_of_an_axis_have_as_many_places_as_one_of_them_needs() -> None:
    half = linear([0, 1.5], 0, 1)
    assert [tick_text(tick, half) for tick in half.ticks] == [
        "0.00",
        "0.25",
        "0.50",
        "0.75",
        "1.00",
        "1.25",
        "1.50",
    ]
    decades = logarithmic([0.01, 1e7], 0, 1)
    assert [tick_text(tick, decades) for tick in (0.01, 0.5, 10, 1000, 20_000, 1e6)] == [
        "0.01",
        "0.5",
        "10",
        "1,000",
        "20k",
        "1M",
    ]
