"""Decisions from observations: when a gain is certain, what is forgotten, and what is said about it."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

import pytest

from aioflow.restart import Distribution, Exponential, LogNormal, Mixture, Uniform
from aioflow.restart.learning import FEWEST, Decision, Latencies, Observation, RestartLimits, decide
from aioflow.restart.policies import read_policy

AUTO = read_policy("auto")
LIMITS = RestartLimits(extra=10.0)
NOON = 1_700_000_000.0 // 86_400 * 86_400 + 12.5 * 3600
NIGHT = NOON - 10 * 3600
DAY = 86_400.0
BIMODAL = Mixture([(0.9, Uniform(0.9, 1.1)), (0.1, Uniform(18.0, 22.0))])
NARROW = Uniform(0.9, 1.1)


def seen(
    source: Distribution, count: int, *, at: float = NOON, seed: int = 1, into: Latencies | None = None
) -> Latencies:
    """Return latencies with so many observations, one a millisecond."""
    random, latencies = Random(seed), into or Latencies()
    for number in range(count):
        latencies.add(Observation(at + number / 1000, source.sample(random)))
    return latencies


def decided(latencies: Latencies, *, now: float = NOON + 60, rule: str = "auto") -> Decision:
    return decide(read_policy(rule), [latencies], LIMITS, now)


def again(latencies: Latencies, seconds: Iterable[float]) -> None:
    for each in seconds:
        latencies.add(Observation(NOON, each), again=True)


def test_nothing_is_decided_from_too_few_requests() -> None:
    found = decided(seen(BIMODAL, FEWEST - 1))
    assert not found.restarts
    assert found.why == f"too little was seen: {FEWEST - 1} of {FEWEST} requests"


def test_a_slow_request_is_given_up_after_the_slowest_of_the_fast_ones() -> None:
    found = decided(seen(BIMODAL, 1000))
    after = found.steps[0][1]
    assert after is not None
    assert 1.0 < after <= 1.1
    assert found.seconds == pytest.approx(1.12, abs=0.03)
    assert found.waiting == pytest.approx(2.9, rel=0.15)
    assert 0.0 < found.left_running < 0.03


@pytest.mark.parametrize("seed", range(12))
def test_a_gain_by_chance_is_not_believed(seed: int) -> None:
    latencies, random = Latencies(), Random(seed)
    for number in range(600):
        latencies.add(Observation(NOON, Exponential(1.0).sample(random)))
        if number % 100 == 99:
            assert not decided(latencies).restarts


@pytest.mark.parametrize("seed", range(6))
def test_a_heavy_tail_is_seen_within_a_thousand_requests(seed: int) -> None:
    assert decided(seen(LogNormal(0.1, 1.5), 1000, seed=seed)).restarts


def test_the_time_of_day_counts_where_it_matters() -> None:
    latencies = seen(BIMODAL, 400, at=NOON)
    seen(NARROW, 400, at=NIGHT, into=latencies)
    assert decided(latencies, now=NOON + DAY).restarts
    assert not decided(latencies, now=NIGHT + DAY).restarts


def test_where_it_does_not_all_times_of_the_day_count() -> None:
    latencies = seen(BIMODAL, 400, at=NOON, seed=1)
    seen(BIMODAL, 400, at=NIGHT, seed=2, into=latencies)
    assert decided(latencies, now=NIGHT + DAY + 4 * 3600).restarts  # nothing was seen at that time


def test_old_observations_do_not_count() -> None:
    latencies = seen(BIMODAL, 400)
    assert decided(latencies, now=NOON + 29 * DAY).restarts
    assert not decided(latencies, now=NOON + 31 * DAY).restarts


def test_restarts_end_when_a_source_gets_even() -> None:
    latencies = seen(BIMODAL, 400)
    before = decided(latencies)
    seen(NARROW, 1500, at=NOON + 10, into=latencies)
    assert before.restarts
    assert not decide(AUTO, [latencies], LIMITS, NOON + 60, before).restarts


def test_restarts_go_on_while_all_that_is_slow_is_given_up() -> None:
    latencies = seen(NARROW, 400)
    for number in range(40):
        latencies.add(Observation(NOON + number, 1.2, answered=False))
    before = Decision(((0, 1.2), (0, None)))
    assert decide(AUTO, [latencies], LIMITS, NOON + 60, before).steps == before.steps
    assert not decided(latencies).restarts


def test_second_attempts_that_are_as_slow_end_restarts() -> None:
    latencies = seen(BIMODAL, 1000)
    again(latencies, [20.0] * 20)
    found = decided(latencies)
    assert not found.restarts
    assert found.why == "second attempts are as slow as first ones"


def test_one_slow_second_attempt_of_many_is_chance() -> None:
    latencies = seen(BIMODAL, 1000)
    again(latencies, [1.0] * 18 + [20.0, 20.0])
    assert decided(latencies).restarts


def test_a_hedge_is_no_more_than_restarts_would_be() -> None:
    latencies = seen(BIMODAL, 1000)
    hedge, restart = decided(latencies, rule="hedge"), decided(latencies)
    assert hedge.keeps_first
    assert not restart.keeps_first or restart.seconds == hedge.seconds
    assert hedge.extra <= restart.extra + 1e-9


def test_a_cap_lets_a_share_of_the_gain_through() -> None:
    free = decided(seen(BIMODAL, 1000))
    assert free.seconds is not None
    assert free.waiting is not None
    capped = free.under(free.extra / 2)
    assert capped.seconds == pytest.approx((free.seconds + free.waiting) / 2)
    assert capped.extra == free.extra / 2
    assert free.under(10.0) == free


def test_no_extra_requests_mean_no_restarts() -> None:
    latencies = seen(BIMODAL, 1000)
    for limits in (RestartLimits(extra=0.0), RestartLimits(restarts=0)):
        assert decide(AUTO, [latencies], limits, NOON + 60).why == "no extra requests are allowed"


def test_the_faster_mirror_is_asked_first_and_the_other_one_next() -> None:
    slow = seen(Uniform(3.0, 4.0), 400)
    found = decide(AUTO, [slow, seen(BIMODAL, 400, seed=3)], LIMITS, NOON + 60)
    assert [index for index, _ in found.steps[:2]] == [1, 1]
    assert found.waiting == pytest.approx(3.5, rel=0.05)
    steady = decide(
        AUTO, [slow, seen(Mixture([(0.5, NARROW), (0.5, Uniform(30.0, 40.0))]), 400)], LIMITS, NOON
    )
    assert steady.steps[0][0] == 1
    assert steady.steps[-1] == (0, None)
