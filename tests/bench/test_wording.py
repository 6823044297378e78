"""Figures in words."""

from dataclasses import replace

import pytest

from aioflow.benchmarks.harness import Curve, Plot, Samples, at_least, at_most
from aioflow.benchmarks.harness.comparison import figures, pair, pairs
from aioflow.benchmarks.harness.experiment import Bench, Experiment, with_figures
from aioflow.benchmarks.harness.results import Claim, Unit
from aioflow.benchmarks.harness.statistics import Interval
from aioflow.benchmarks.harness.wording import (
    bounds,
    goal_text,
    goals_summary,
    mean_text,
    number,
    p_text,
    quantity,
    value_text,
    variant,
    verdict,
)
from tests.bench.made_up import made_up_results


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.0123456, "0.0123"),
        (0.9996, "1.00"),
        (1.345, "1.34"),
        (99.96, "100"),
        (12.34, "12.3"),
        (5120.4, "5,120"),
        (-8.25, "-8.25"),
        (1e-9, "0.000000001"),
    ],
)
def test_numbers_have_three_digits_and_no_exponent(value: float, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (1.04, "x", "1.04×"),
        (1.3, "s", "1.30 s"),
        (12, "us", "12.0 µs"),
        (5119.6, "rows/s", "5,120 rows/s"),
        (84, "requests", "84 requests"),
        (1.018, "power", "n^1.02"),
        (-0.001, "power", "n^0.00"),
    ],
)
def test_quantities_have_their_units(value: float, unit: Unit, text: str) -> None:
    assert quantity(value, unit) == text


def test_goals_are_shown_as_they_were_set() -> None:
    assert goal_text(at_most(1.10), "x") == "at most 1.10×"
    assert goal_text(at_least(5), "x") == "at least 5×"
    assert goal_text(at_most(60), "MB") == "at most 60 MB"
    assert goal_text(at_most(0.0005), "s") == "at most 0.0005 s"
    assert goal_text(at_most(1.2), "power") == "at most n^1.20"
    assert goal_text(None, "x") == ""


def test_a_claim_is_reached_missed_unknown_or_not_judged() -> None:
    reached, missed = Claim("it", 1.0, "x", goal=at_most(1.1)), Claim("it", 1.2, "x", goal=at_most(1.1))
    unknown = Claim("it", None, "x", goal=at_most(1.1), remark="not installed")
    assert [verdict(each, quick=False) for each in (reached, missed, unknown, Claim("it", 1, "x"))] == [
        "✓ reached",
        "✗ missed",
        "– unknown",
        "",
    ]
    assert verdict(missed, quick=True) == "– quick run"
    assert value_text(unknown) == "not found"


def test_a_value_near_its_goal_has_the_digits_that_tell_on_which_side_it_is() -> None:
    near, equal = Claim("it", 1.0523, "x", goal=at_most(1.05)), Claim("it", 1.05, "x", goal=at_most(1.05))
    above = Claim("it", 1.0501, "x", goal=at_most(1.05))
    assert [value_text(each) for each in (near, equal, above)] == ["1.052×", "1.05×", "1.0501×"]


def test_a_spread_that_comes_from_rounding_alone_is_none() -> None:
    assert mean_text((1.0, 1.0, 1.0 + 1e-15)) == "1.00"


def test_points_of_a_curve_are_no_rivals() -> None:
    samples = with_figures(of("workers 1, last tuple", "workers 2, last tuple"))
    measured = Curve("measured", ((1, 2), (2, 1)))
    assert len(pairs(samples)) == 1
    assert pairs(samples, plots=[Plot("Time", "workers", "seconds", (measured,))]) == []
    rivals = Curve("workers 1", ((1, 2), (2, 1)))
    assert len(pairs(samples, plots=[Plot("Time", "seconds", "tuples", (rivals,))])) == 1


def test_intervals_means_and_chances() -> None:
    assert bounds(Interval(1.1, 1.05, 1.234), "x") == "1.05 – 1.23×"
    assert bounds(Interval(1.1, None, None), "s") == ""
    assert mean_text((8.5, 8.52, 8.54)) == "8.520 ± 0.020"
    assert mean_text((2.0,)) == "2.00"
    assert [p_text(p) for p in (0.00001, 0.0024, 0.0513, 0.4)] == ["< 0.0001", "0.0024", "0.051", "0.40"]


def test_a_run_without_goals_says_so() -> None:
    assert goals_summary(replace(made_up_results(), findings=())) == "no goals were set"


def of(*names: str) -> list[Samples]:
    return [Samples(name, "s", (1.0, 2.0, 3.0)) for name in names]


def test_variants_share_what_follows_the_comma() -> None:
    found = with_figures(of("D-, last tuple", "D-, first tuple", "D+S+, last tuple"))
    assert [(variant(each), each.figure) for each in found] == [
        ("D-", "last tuple"),
        ("D-", "first tuple"),
        ("D+S+", "last tuple"),
    ]


def test_a_comma_in_the_name_of_a_variant_makes_no_figure() -> None:
    found = with_figures(of("aioflow", "Scrapy, tuned", "Scrapy, as documented"))
    assert [each.figure for each in found] == ["", "", ""]
    assert [len(each.samples) for each in figures(found)] == [3]


def test_a_figure_that_is_given_stays() -> None:
    bench = Bench()
    bench.sample("Scrapy, tuned", "MB", 97, figure="peak memory")
    (found,) = with_figures([bench._samples["Scrapy, tuned"]])
    assert found.figure == "peak memory"


def test_few_variants_are_all_compared_and_a_series_with_its_first() -> None:
    assert len(pairs(of("a", "b", "c", "d"))) == 6
    series = pairs(of(*map(str, range(8))))
    assert [(each.one.name, each.other.name) for each in series] == [("0", str(n)) for n in range(1, 8)]


def test_measured_and_simulated_variants_are_never_paired() -> None:
    samples = [Samples("a", "s", (1, 2, 3)), Samples("b", "s", (1, 2, 3), origin="simulated")]
    assert pairs(samples) == []


def test_variants_of_different_numbers_of_rounds_are_compared_without_pairing() -> None:
    found = pair(Samples("a", "s", (2, 2, 2, 2, 2, 2)), Samples("b", "s", (1, 1, 1, 1, 1)))
    assert found.ratio is not None
    assert (found.is_paired, found.ratio.value, found.differs) == (False, 2, True)


def test_a_variant_that_is_nothing_has_no_ratio() -> None:
    assert pair(Samples("a", "MB", (2, 2, 2)), Samples("b", "MB", (1, 0, 1))).ratio is None


def test_a_figure_that_is_no_number_fails_its_experiment() -> None:
    with pytest.raises(ValueError, match="it is nan, which is no figure"):
        Bench().sample("it", "s", float("nan"))
    with pytest.raises(ValueError, match="it is inf, which is no figure"):
        Bench().claim("it", float("inf"), "x")


def test_what_takes_less_than_a_clock_can_tell_has_no_ratio() -> None:
    bench = Bench()
    for _ in bench.rounds(2):
        bench.sample("one", "s", 1.0)
        bench.sample("other", "s", 0.0)
    bench.claim_ratio("one, of the other", "one", "other", at_most(2))
    (claim,) = bench.finding(Experiment("it", "How long?", "", "", lambda bench: None)).claims
    assert (claim.value, claim.remark) == (None, "other took less than the clock can tell")
