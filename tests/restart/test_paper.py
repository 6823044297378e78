"""Every number that the paper prints, from the library; with the two slips of the paper mended."""

from math import exp, inf, pi, sqrt
from statistics import NormalDist

import pytest

from aioflow.restart import (
    Discrete,
    Distribution,
    Exponential,
    HalfNormal,
    Piecewise,
    Uniform,
    best_restart,
    conditions,
    g,
    k_restart,
    optimal_strategy,
    residual,
)

INTRODUCTION = Discrete({5: 0.6, 20: 0.4})
FIGURE_3 = Piecewise([(0, 1, 8 / 12), (1, 5, 1 / 12)])


def two_valued(c: float, p: float = 0.5) -> Discrete:
    return Discrete({1: p, c: 1 - p})


def deviation(c: float, restarts: int | None) -> float:
    return sqrt(k_restart(two_valued(c), 1, restarts).variance)


def test_the_example_of_the_introduction_counts_the_time_waited() -> None:
    assert INTRODUCTION.mean == pytest.approx(11)
    assert k_restart(INTRODUCTION, 5, 1).mean == pytest.approx(9.4)
    assert k_restart(INTRODUCTION, 5, 2).mean == pytest.approx(8.76)
    assert best_restart(INTRODUCTION, restarts=None).mean == pytest.approx(8 + 1 / 3)
    # The paper's own figures, 7.4 and 5.96, leave the five seconds of each query that was given up out.
    forgotten = 0.6 * 5 + 0.4 * INTRODUCTION.mean
    assert forgotten == pytest.approx(7.4)
    assert 0.6 * 5 + 0.4 * forgotten == pytest.approx(5.96)


def test_restarts_of_a_two_valued_source_with_c_6() -> None:
    source = two_valued(6)
    means = [k_restart(source, 1, restarts).mean for restarts in (0, 1, 5, None)]
    assert [round(mean, 3) for mean in means] == [3.5, 2.75, 2.047, 2.0]
    assert [round(deviation(6, restarts), 3) for restarts in (0, 1, 5, None)] == [2.5, 2.487, 1.634, 1.414]
    # What is printed for one restart, 10 + (30 - 15)/4, is a misprint of 2 + (5 - 2)/4.
    assert means[1] == 2 + (5 - 2) / 4


def test_with_c_3_5_the_mean_falls_and_the_variance_rises() -> None:
    means = [k_restart(two_valued(3.5), 1, restarts).mean for restarts in range(20)]
    assert means == sorted(means, reverse=True)
    assert all(deviation(3.5, restarts) > deviation(3.5, 0) for restarts in range(1, 40))


def test_with_c_2_the_mean_rises_with_each_restart() -> None:
    means = [k_restart(two_valued(2), 1, restarts).mean for restarts in range(20)]
    assert means == sorted(means)
    assert best_restart(two_valued(2), restarts=None).after is None


@pytest.mark.parametrize("p", [0.1, 0.3, 0.5, 0.8])
def test_the_thresholds_of_theorem_1(p: float) -> None:
    mean, variance = 1 + 1 / p, 1 + 1 / p**1.5
    assert best_restart(two_valued(mean * 0.999, p)).after is None
    assert best_restart(two_valued(mean * 1.001, p)).after == 1
    many = 4000  # restarts: "for all sufficiently large k"
    below, above = two_valued(variance * 0.999, p), two_valued(variance * 1.001, p)
    assert k_restart(below, 1, many).variance > below.variance
    assert k_restart(above, 1, many).variance < above.variance


@pytest.mark.parametrize("c", [1.5, 3.5, 6, 40])
@pytest.mark.parametrize("p", [0.2, 0.5, 0.9])
def test_the_formulas_of_theorem_1(c: float, p: float) -> None:
    q = 1 - p
    for k in range(8):
        gain = c - 1 - 1 / p
        mean = 1 / p + q ** (k + 1) * gain
        variance = (
            q / p**2
            + q ** (k + 1) * (c**2 + 1 / p - 1 - 2 * c / p)
            + 2 * k * q ** (k + 1) * gain
            - q ** (2 * k + 2) * gain**2
        )
        found = k_restart(two_valued(c, p), 1, k)
        assert found.mean == pytest.approx(mean)
        assert found.variance == pytest.approx(variance)
        assert found.queries == pytest.approx(sum(q**i for i in range(k + 1)))


def test_figure_3() -> None:
    assert FIGURE_3.mean == pytest.approx(4 / 3)
    assert g(FIGURE_3, 1) == pytest.approx(10 / 9)
    best = best_restart(FIGURE_3)
    assert best.after == 1
    assert best.mean == pytest.approx(10 / 9)


def test_the_best_time_of_figure_3_is_at_a_jump_where_theorem_2_has_no_equation() -> None:
    found = conditions(FIGURE_3, 1)
    for density in (8 / 12, 1 / 12):
        assert FIGURE_3.cdf(1) + FIGURE_3.mean * density != pytest.approx(1)
    assert found.improves
    assert found.is_stationary
    assert found.slope_before < 0 < found.slope_after
    assert not conditions(FIGURE_3, 0.5).is_stationary


@pytest.mark.parametrize(
    "source",
    [Uniform(1), Uniform(4), Uniform(1, 3), Exponential(1), Exponential(0.2), HalfNormal(1), HalfNormal(3)],
    ids=repr,
)
@pytest.mark.parametrize("restarts", [1, 2, 7, None])
def test_no_restart_helps_uniform_exponential_and_one_sided_normal(
    source: Distribution, restarts: int | None
) -> None:
    best = best_restart(source, restarts)
    assert best.after is None
    assert best.mean == source.mean


def test_g_of_the_uniform_distribution() -> None:
    for b in (0.0, 0.5, 2.0, 4.0):
        assert g(Uniform(4), b) == pytest.approx((b + 4) / 2 - b * b / 8)


def test_g_of_the_exponential_distribution_is_its_mean() -> None:
    for b in (0.0, 0.1, 2.0, 30.0):
        assert g(Exponential(2), b) == pytest.approx(2)


def test_g_of_the_one_sided_normal_distribution() -> None:
    source, mu = HalfNormal(1), sqrt(2 / pi)
    assert source.mean == pytest.approx(mu)
    for b in (0.0, 0.3, 1.0, 2.5):
        printed = (1 - exp(-b * b / 2)) * mu + 2 * (1 - NormalDist().cdf(b)) * (b + mu)
        assert g(source, b) == pytest.approx(printed)
        assert g(source, b) >= mu


@pytest.mark.parametrize("b", [0.5, 1.0, 2.0, 4.0])
def test_condition_6_says_when_a_restart_helps(b: float) -> None:
    assert (residual(FIGURE_3, b) > FIGURE_3.mean) == (g(FIGURE_3, b) < FIGURE_3.mean)


def test_the_shape_that_users_rely_on() -> None:
    other = Discrete({8: 1.0})
    assert g(INTRODUCTION, 5) == pytest.approx(9.4)
    assert g(INTRODUCTION, 5, then=other) == pytest.approx(3 + 0.4 * 13)
    best = best_restart(INTRODUCTION, restarts=1, then=None, price=0)
    assert best.after == 5
    assert best.mean == pytest.approx(9.4)
    plan = optimal_strategy([INTRODUCTION, Discrete({9: 1.0})], queries=3)
    assert plan.steps == ((0, 5.0), (0, 5.0), (1, None))
    assert plan.mean == pytest.approx(5 + 0.4 * (5 + 0.4 * 9))
    assert optimal_strategy([INTRODUCTION, other], queries=3).steps == ((1, None),)


def test_where_every_mean_is_infinite_an_answer_comes_first() -> None:
    risky, steady = Discrete({1: 0.5}), Discrete({30: 0.9})
    assert risky.mean == inf
    plan = optimal_strategy([risky, steady], queries=2)
    # Two answers of the steady source are the most likely; after thirty seconds it will not answer.
    assert plan.steps == ((1, 30.0), (1, None))
    assert plan.answered == pytest.approx(0.99)
    assert plan.mean == inf
    assert optimal_strategy([risky, Discrete({40: 1.0})], queries=2).steps == ((0, 1.0), (1, None))
    assert best_restart(risky).after == 1
    assert best_restart(risky, restarts=None).mean == pytest.approx(2)


def test_ties_go_to_never_giving_up_and_to_the_lower_index() -> None:
    sure = Discrete({2: 1.0})
    assert optimal_strategy([sure, sure], queries=3).steps == ((0, None),)
    # g(1) is the mean: c is the threshold 1 + 1/p.
    assert best_restart(two_valued(3)).after is None
    same = [two_valued(6), two_valued(6)]
    assert optimal_strategy(same, queries=3).steps == ((0, 1.0), (0, 1.0), (0, None))
