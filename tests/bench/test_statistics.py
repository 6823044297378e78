"""Figures of samples against values that textbooks and other programs give."""

import random
from math import comb

import pytest

from aioflow.benchmarks.harness import statistics
from aioflow.benchmarks.harness.statistics import (
    corrected,
    median_of,
    paired_ratio,
    paired_t_test,
    ratio_of_medians,
    ratio_to,
    t_test,
)

# Hours of sleep gained with two drugs, from which Student's paper of 1908 and R's manual take their example.
ONE_DRUG = (0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0)
OTHER_DRUG = (1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4)


def test_the_t_test_agrees_with_the_textbook() -> None:
    found = t_test(ONE_DRUG, OTHER_DRUG)
    assert found is not None
    assert found.difference == pytest.approx(-1.58)
    assert found.t == pytest.approx(-1.8608, abs=5e-5)
    assert found.degrees == pytest.approx(17.776, abs=5e-4)
    assert found.p == pytest.approx(0.07939, abs=5e-6)
    assert not found.is_significant


def test_equal_samples_do_not_differ_and_constant_ones_that_differ_do() -> None:
    same, other = t_test((2, 2, 2), (2, 2, 2)), t_test((2, 2, 2), (3, 3, 3))
    assert same is not None
    assert other is not None
    assert (same.p, other.p) == (1.0, 0.0)


def test_the_paired_t_test_agrees_with_the_textbook() -> None:
    found = paired_t_test(ONE_DRUG, OTHER_DRUG)
    assert found is not None
    assert found.t == pytest.approx(-4.0621, abs=5e-5)
    assert found.degrees == 9
    assert found.p == pytest.approx(0.002833, abs=5e-7)


def test_a_constant_sample_is_compared_with_one_that_varies() -> None:
    found = t_test((2.0, 2.0, 2.0), (3.0, 3.1, 2.9))
    assert found is not None
    assert found.is_significant


def test_pairs_that_differ_by_a_constant_differ_for_certain() -> None:
    same, other = paired_t_test((1.0, 2.0), (1.0, 2.0)), paired_t_test((1.0, 2.0), (2.0, 3.0))
    assert same is not None
    assert other is not None
    assert (same.p, other.p, other.difference) == (1.0, 0.0, -1.0)


def test_one_value_tells_nothing_of_its_spread() -> None:
    assert t_test((1.0,), (2.0, 3.0)) is None


def test_the_interval_of_a_median_is_that_of_the_exact_distribution_of_resamples() -> None:
    values = [float(each) for each in range(1, 22)]
    found = median_of(values)

    def at_most(value: int) -> float:
        """How likely the median of a resample is at most this: most of its values are."""
        share, size = value / 21, 21
        return sum(comb(size, k) * share**k * (1 - share) ** (size - k) for k in range(11, size + 1))

    # Student's t of 20 degrees is 2.086 and not 1.960: of the normal distribution 1.63 % are beyond
    # 2.086 · √(21/20).
    low = next(value for value in range(1, 22) if at_most(value) >= 0.0163)
    high = next(value for value in range(1, 22) if at_most(value) >= 1 - 0.0163)
    assert (found.low, found.value, found.high) == (low, 11, high)


def test_the_same_samples_always_give_the_same_interval() -> None:
    values = (3.0, 1.0, 4.0, 1.5, 9.0, 2.6)
    assert ratio_of_medians(values, values) == ratio_of_medians(values, values)


@pytest.mark.parametrize("rounds", [5, 7, 10])
def test_an_interval_of_few_rounds_holds_the_true_median_as_often_as_it_says(rounds: int) -> None:
    chance, tries, held = random.Random(rounds), 200, 0
    for _ in range(tries):
        found = median_of([chance.lognormvariate(0, 0.3) for _ in range(rounds)])
        assert found.low is not None
        assert found.high is not None
        held += found.low <= 1 <= found.high
    assert held / tries > 0.92


def test_four_values_have_no_interval() -> None:
    assert median_of((1.0, 3.0, 2.0, 4.0)) == statistics.Interval(2.5, None, None)


def test_a_paired_ratio_does_not_see_what_slows_both() -> None:
    others = (1.0, 5.0, 2.0, 30.0, 1.5)
    found = paired_ratio([2 * each for each in others], others)
    assert (found.low, found.value, found.high) == (2.0, 2.0, 2.0)


def test_a_ratio_to_a_limit_is_of_the_median() -> None:
    assert ratio_to((2.0, 3.0, 4.0), 2.0).value == 1.5


def test_a_ratio_of_medians_needs_no_pairs() -> None:
    found = ratio_of_medians((4.0, 4.1, 3.9, 4.0, 4.2, 4.0), (2.0, 2.0, 2.1, 1.9, 2.0))
    assert found.low is not None
    assert found.high is not None
    assert found.low <= found.value == 2.0 <= found.high


def test_chances_are_corrected_for_their_number() -> None:
    assert corrected([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert corrected([0.4, 0.9]) == pytest.approx([0.8, 0.9])
    assert corrected([]) == []
