"""The strategies against what cannot be wrong: enumeration of all strategies, and simulation."""

from itertools import product
from math import inf, isfinite, sqrt
from random import Random
from statistics import fmean, stdev, variance

import pytest

from aioflow.errors import InputError
from aioflow.restart import (
    Discrete,
    Distribution,
    Empirical,
    Exponential,
    HalfNormal,
    LogNormal,
    Mixture,
    Piecewise,
    Uniform,
    best_hedge,
    best_restart,
    g,
    hedge,
    k_restart,
    optimal_strategy,
)

BIMODAL = Mixture([(0.8, LogNormal(1, 0.3)), (0.2, LogNormal(12, 0.3))])
SOURCES: list[Distribution] = [
    Discrete({5: 0.6, 20: 0.4}),
    Piecewise([(0, 1, 8 / 12), (1, 5, 1 / 12)]),
    LogNormal(1, 1.2),
    BIMODAL,
    Exponential(2),
    HalfNormal(1.5),
    Uniform(1, 3),
    Mixture([(0.9, Uniform(1)), (0.1, Discrete({7: 1}))]),
]


# --- the dynamic programme against all strategies ---------------------------------------------


def random_source(random: Random, *, may_fail: bool) -> dict[int, float]:
    values = random.sample(range(1, 30), random.randint(1, 3))
    weights = [random.randint(1, 6) for _ in values]
    total = sum(weights) + (random.randint(0, 3) if may_fail else 0)
    return {value: weight / total for value, weight in zip(values, weights, strict=True)}


def cost(
    sources: list[dict[int, float]], steps: list[tuple[int, float | None]], price: float
) -> tuple[float, float]:
    """Return (probability of no answer, expected time and price) by following each possible course."""
    unanswered = total = 0.0
    courses = [(1.0, 0.0)]  # probability, time so far
    for index, after in steps:
        total += price * sum(share for share, _ in courses)
        waiting = []
        for share, time in courses:
            for value, probability in sources[index].items():
                if after is None or value <= after:
                    total += share * probability * (time + value)
                else:
                    waiting.append((share * probability, time + after))
            never = 1 - sum(sources[index].values())
            if never > 1e-12 and after is not None:
                waiting.append((share * never, time + after))
            elif never > 1e-12:
                unanswered += share * never
        courses = waiting
    return unanswered, total


def all_strategies(sources: list[dict[int, float]], queries: int) -> list[list[tuple[int, float | None]]]:
    ends: list[list[tuple[int, float | None]]] = [[(index, None)] for index in range(len(sources))]
    choices = [(index, float(value)) for index, source in enumerate(sources) for value in source]
    return [
        [*beginning, *end]
        for length in range(queries)
        for beginning in product(choices, repeat=length)
        for end in ends
    ]


@pytest.mark.parametrize("may_fail", [False, True], ids=["answered", "failing"])
def test_the_dynamic_programme_equals_the_enumeration_of_all_strategies(may_fail: bool) -> None:
    random = Random(16)
    for _ in range(1500):
        sources = [random_source(random, may_fail=may_fail) for _ in range(random.randint(1, 3))]
        queries = random.randint(1, 3)
        price = random.choice([0, 0, 1.5])
        plan = optimal_strategy([Discrete(source) for source in sources], queries, price)
        found = cost(sources, list(plan.steps), price)
        costs = [cost(sources, steps, price) for steps in all_strategies(sources, queries)]
        least = min(unanswered for unanswered, _ in costs)
        best = min(total for unanswered, total in costs if unanswered <= least + 1e-9)
        assert found == pytest.approx((least, best))
        if least < 1e-12:
            assert plan.mean + price * plan.queries == pytest.approx(best)
        assert plan.answered == pytest.approx(1 - least)
        assert all(after is not None for _, after in plan.steps[:-1])
        assert plan.steps[-1][1] is None


def test_the_best_restart_is_the_best_of_all_times() -> None:
    random = Random(4)
    for _ in range(1000):
        values = random_source(random, may_fail=False)
        source = Discrete(values)
        restarts = random.choice([1, 2, 5, None])
        price = random.choice([0, 2])
        best = best_restart(source, restarts, price=price)
        means = {after: k_restart(source, after, restarts) for after in (None, *values)}
        least = min(each.mean + price * each.queries for each in means.values())
        assert best.mean + price * best.queries == pytest.approx(least)


@pytest.mark.parametrize("source", SOURCES, ids=repr)
def test_no_time_beats_the_best_restart(source: Distribution) -> None:
    best = best_restart(source)
    times = [source.quantile(share / 500) for share in range(1, 500)]
    assert best.mean <= min(g(source, after) for after in times) + 1e-9


# --- the formulas against simulation ----------------------------------------------------------

RUNS = 20_000
SIGMAS = 4.5


def agrees(mean: float, times: list[float]) -> bool:
    return abs(fmean(times) - mean) <= SIGMAS * stdev(times) / sqrt(len(times))


@pytest.mark.parametrize("source", SOURCES, ids=repr)
def test_moments_and_cdf_agree_with_samples(source: Distribution) -> None:
    random = Random(1)
    times = [source.sample(random) for _ in range(RUNS)]
    assert agrees(source.mean, times)
    assert agrees(source.variance, [(time - source.mean) ** 2 for time in times])
    for share in (0.1, 0.5, 0.9):
        b = source.quantile(share)
        assert agrees(source.cdf(b), [float(time <= b) for time in times] + [0.0, 1.0])
        assert agrees(source.until(b).first, [time if time <= b else 0.0 for time in times])


@pytest.mark.parametrize("restarts", [1, 3, None])
@pytest.mark.parametrize("source", SOURCES, ids=repr)
def test_k_restarts_agree_with_simulation(source: Distribution, restarts: int | None) -> None:
    random = Random(2)
    after = source.quantile(0.7)

    def one() -> float:
        total, left = 0.0, inf if restarts is None else restarts
        while (time := source.sample(random)) > after and left > 0:
            total, left = total + after, left - 1
        return total + time

    times = [one() for _ in range(RUNS)]
    found = k_restart(source, after, restarts)
    assert agrees(found.mean, times)
    assert agrees(found.variance, [(time - found.mean) ** 2 for time in times])


@pytest.mark.parametrize("source", SOURCES, ids=repr)
def test_a_hedge_agrees_with_simulation(source: Distribution) -> None:
    random = Random(3)
    after = source.quantile(0.6)
    pairs = [(source.sample(random), after + source.sample(random)) for _ in range(RUNS)]
    found = hedge(source, after)
    assert agrees(found.mean, [min(pair) for pair in pairs])
    assert agrees(found.extra, [float(first > after) for first, _ in pairs] + [0.0, 1.0])
    busy = [min(pair) + max(0.0, min(pair) - after) for pair in pairs]
    assert agrees(found.busy, busy)


def test_the_best_hedge_uses_its_budget_and_no_more() -> None:
    found = best_hedge(LogNormal(1, 1.2), extra=0.05)
    assert found.extra == pytest.approx(0.05)
    assert found.mean < LogNormal(1, 1.2).mean
    assert best_hedge(Discrete({5: 0.6, 20: 0.4}), extra=0.5).after == 5
    assert best_hedge(Discrete({2: 1.0})).after is None
    dear = best_hedge(LogNormal(1, 1.2), extra=0.5, price=3)
    assert dear.after is not None
    assert dear.extra < 0.5


def test_a_hedge_is_never_slower_than_a_restart_at_the_same_time() -> None:
    for source in SOURCES:
        for share in (0.3, 0.6, 0.9):
            after = source.quantile(share)
            assert hedge(source, after).mean <= k_restart(source, after).mean * (1 + 1e-6)


# --- observations -----------------------------------------------------------------------------


def test_queries_that_were_given_up_count_as_longer() -> None:
    found = Empirical([1, 2, 3], censored=[2.5])
    assert [found.cdf(x) for x in (0.5, 1, 2, 2.9, 3)] == pytest.approx([0, 0.25, 0.5, 0.5, 1])
    assert found.mean == pytest.approx(2.25)
    assert Empirical([5, 1, 1]).cdf(1) == pytest.approx(2 / 3)


def test_the_longest_query_given_up_makes_the_mean_a_lower_bound() -> None:
    found = Empirical([1, 2], censored=[10])
    assert found.mean == pytest.approx((1 + 2 + 10) / 3)
    assert isfinite(found.variance)


def test_censoring_does_not_bend_the_distribution() -> None:
    random = Random(5)
    answered: list[float] = []
    given_up: list[float] = []
    for _ in range(RUNS):
        time, limit = BIMODAL.sample(random), random.choice([1.5, 3.0, inf])
        (answered if time <= limit else given_up).append(min(time, limit))
    found = Empirical(answered, given_up)
    assert found.mean == pytest.approx(BIMODAL.mean, rel=0.05)
    assert found.cdf(2) == pytest.approx(BIMODAL.cdf(2), abs=0.02)
    assert Empirical(answered).mean < 0.7 * BIMODAL.mean


def test_samples_without_censoring_are_their_own_distribution() -> None:
    times = [1.0, 2.0, 2.0, 5.0]
    found = Empirical(times)
    assert found.mean == pytest.approx(fmean(times))
    assert found.variance == pytest.approx(variance(times) * 3 / 4)


def test_weights_count_observations_more_than_once() -> None:
    found = Empirical([1, 4], weights=[3, 1])
    assert found.mean == pytest.approx(1.75)


def test_a_thousand_samples_show_a_gain_by_chance() -> None:
    """An exponential source gains nothing: that is why a policy needs a confidence bound."""
    random = Random(8)
    gains = []
    for _ in range(20):
        found = Empirical([random.expovariate(1) for _ in range(1000)])
        gains.append(1 - best_restart(found).mean / found.mean)
    assert 0.01 < max(gains) < 0.06


# --- bad input --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Discrete({1: 0.7, 2: 0.5}), "1.2 in all"),
        (lambda: Discrete({}), "0 in all"),
        (lambda: Discrete({-1: 1}), "no time"),
        (lambda: Discrete({inf: 0.5, 1: 0.5}), "never answered"),
        (lambda: Empirical([]), "no observation"),
        (lambda: Exponential(0), "more than 0"),
        (lambda: Uniform(3, 1), "no span"),
        (lambda: Piecewise([(0, 2, 0.2), (1, 3, 0.2)]), "of its own"),
        (lambda: Mixture([(0.5, Exponential(1)), (0.7, Exponential(2))]), "1.2 in all"),
        (lambda: optimal_strategy([], 1), "no source"),
        (lambda: optimal_strategy([Exponential(1)], 0), "at least one"),
        (lambda: k_restart(Exponential(1), -1), "no time"),
        (lambda: k_restart(Exponential(1), 1, -1), "-1 restarts"),
        (lambda: best_restart(Exponential(1), price=-1), "no price"),
        (lambda: best_hedge(Exponential(1), extra=-0.1), "no number"),
    ],
)
def test_bad_input_is_refused(make: object, says: str) -> None:
    assert callable(make)
    with pytest.raises(InputError, match=says):
        make()
