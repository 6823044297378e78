"""Learned restarts against an oracle that knows the distribution, on even sources, and by a whole crowd.

The long form, with more sources, seeds and requests, is `aioflow bench simulated-restarts simulated-crowd`.
"""

from __future__ import annotations

import pytest

from aioflow.benchmarks.restart_sources import (
    EVEN,
    TAILED,
    CrowdPlan,
    crowd,
    expected_seconds,
    learned,
    oracle,
    simulate,
)

CAP, NO_CAP = 0.05, 100.0
# Extra requests that were saved up while nothing was known come on top of the share.
SAVED_UP = 20


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize(
    ("name", "cap"),
    [
        *(("5 s or 20 s", cap) for cap in (CAP, NO_CAP)),
        *(("bimodal", cap) for cap in (CAP, NO_CAP)),
        ("5 % are 1 s late", CAP),
        ("lognormal", NO_CAP),
    ],
)
def test_after_1000_requests_the_time_is_within_5_percent_of_the_oracle(
    name: str, cap: float, seed: int
) -> None:
    source = TAILED[name]
    decision = learned(source, cap, seed=seed)
    assert expected_seconds(source, decision, cap) <= 1.05 * oracle(source, cap).seconds


def test_without_a_cap_the_source_of_the_paper_takes_67_percent_more_requests() -> None:
    source = TAILED["5 s or 20 s"]
    found = simulate(source, "auto", NO_CAP, 2000)
    assert found.extra_share == pytest.approx(0.66, abs=0.04)
    assert found.mean == pytest.approx(oracle(source, NO_CAP).seconds, rel=0.05)


def test_a_late_tail_is_cut_for_few_extra_requests() -> None:
    source, count = TAILED["5 % are 1 s late"], 2000
    found, waiting = (simulate(source, rule, CAP, count) for rule in ("auto", "off"))
    assert found.percentile(99) <= 0.4 * waiting.percentile(99)
    assert found.extra <= CAP * count + SAVED_UP


@pytest.mark.parametrize("name", EVEN)
def test_even_sources_are_never_asked_again(name: str) -> None:
    assert simulate(EVEN[name], "auto", CAP, 1000).extra == 0


CRISIS = CrowdPlan(seconds=90.0, slow_from=30.0, slow_until=36.0)


def test_a_crowd_that_restarts_recovers_from_a_crisis_of_the_server() -> None:
    waiting, found = crowd(CRISIS, "off", 0.0), crowd(CRISIS, "auto", CAP)
    calm = CRISIS.parts[-1][1:]
    assert found.mean(*calm) <= 1.1 * waiting.mean(*calm)
    assert found.extra > 0


def test_without_guards_a_crowd_does_not_recover() -> None:
    """What is sent again is what the server is busy with, for good."""
    waiting, found = crowd(CRISIS, "off", 0.0), crowd(CRISIS, "0.3", NO_CAP, unguarded=True)
    calm = CRISIS.parts[-1][1:]
    assert found.mean(*calm) > 10 * waiting.mean(*calm)
