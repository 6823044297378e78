"""Restarts learned from latencies, other rules, and an oracle: the real client on the virtual clock."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean

from aioflow.benchmarks.harness import Bench, Curve, at_least, at_most, experiment
from aioflow.benchmarks.restart_sources import (
    EVEN,
    LEARNING,
    TAILED,
    CrowdPlan,
    Simulated,
    crowd,
    expected_seconds,
    learned,
    oracle,
    simulate,
)
from aioflow.restart import Distribution

CAP, NO_CAP = 0.05, 100.0
_ORACLE = "oracle"
# What people do: a timeout of three times the median and another try, and the hedge of Dean and Barroso.
_TIMEOUTS = 3.0
_QUICK = ("5 s or 20 s", "5 % are 1 s late")
_SHOWN_PERCENTS = (50.0, 75.0, 90.0, 95.0, 98.0, 99.0, 99.5)


@experiment(
    "How near do learned restarts come to an oracle that knows the distribution?",
    work=f"the real client on the virtual clock, one request after the other: {LEARNING:,} to learn from, "
    "then those that are measured. At most 5 % extra requests, or no cap. The oracle has the best rule for "
    "the true distribution, under the same cap; without one it never keeps the first request running",
    limit="the time that the oracle expects",
    name="simulated-restarts",
)
def simulated_restarts(bench: Bench) -> None:
    count, rounds = bench.size((2_000, 3), (100, 1))
    tailed = {name: TAILED[name] for name in bench.size(tuple(TAILED), _QUICK)}
    for each in bench.rounds(rounds, warm_up=0):
        for name, source in {**tailed, **EVEN}.items():
            best = oracle(source, CAP)
            rules = {
                "no restarts": "off",
                "timeout of 3 medians": f"{_TIMEOUTS * source.quantile(0.5)!r}",
                "hedge at p95": "hedge p95",
                "auto": "auto",
                _ORACLE: best.rule,
            }
            if name in EVEN:
                del rules[_ORACLE]
            found = {
                rule: simulate(source, text, CAP, count, seed=each.number + 1) for rule, text in rules.items()
            }
            for rule, simulated in found.items():
                _sample(bench, f"{rule}, {name}", simulated)
                bench.moved(count)
            if each.number == 0 and name in TAILED:
                _plot(bench, name, found)
    _claim_oracle(bench, tailed)
    _claim_tail(bench)
    for name in EVEN:
        most = _most(bench, f"auto, {name}, extra")
        bench.claim(f"{name}: extra requests of auto", most, "x", at_most(0.0), origin="simulated")


def _sample(bench: Bench, name: str, found: Simulated) -> None:
    bench.sample(f"{name}, mean", "s", found.mean, origin="simulated", figure=f"{name.split(', ')[1]}, mean")
    for percent in (95, 99):
        bench.sample(
            *(f"{name}, p{percent}", "s", found.percentile(percent)),
            origin="simulated",
            figure=f"{name.split(', ')[1]}, p{percent}",
        )
    bench.sample(
        *(f"{name}, extra", "x", found.extra_share),
        origin="simulated",
        figure=f"{name.split(', ')[1]}, extra requests",
    )


def _most(bench: Bench, name: str) -> float:
    return max(bench.values(name))


def _claim_oracle(bench: Bench, tailed: Mapping[str, Distribution]) -> None:
    """Claim the true expected time of what was learned: no luck of the draw is in it."""
    for name, source in tailed.items():
        for cap, said in ((CAP, "at most 5 % extra"), (NO_CAP, "no cap")):
            best = oracle(source, cap)
            ratios = [
                expected_seconds(source, learned(source, cap, seed=seed), cap) / best.seconds
                for seed in range(bench.size(5, 1))
            ]
            remark = f"the oracle: {best.seconds:.4g} s, {100 * best.extra:.3g} % extra requests"
            bench.claim(
                f"{name}, {said}: expected time after {LEARNING:,} requests, of the oracle's",
                *(fmean(ratios), "x", at_most(1.05)),
                f"mean of {len(ratios)} clients, {max(ratios):.3f} at worst; {remark}",
                origin="simulated",
            )


def _claim_tail(bench: Bench) -> None:
    name = _QUICK[-1]
    shares = zip(bench.values(f"auto, {name}, p99"), bench.values(f"no restarts, {name}, p99"), strict=True)
    worst = min(1.0 - one / other for one, other in shares)
    bench.claim(f"{name}: p99 is lower by", worst, "x", at_least(0.6), origin="simulated")
    most = _most(bench, f"auto, {name}, extra")
    # Extra requests that were saved up while it learned come on top of the share.
    bench.claim(f"{name}: extra requests", most, "x", at_most(0.055), origin="simulated")


def _plot(bench: Bench, name: str, found: dict[str, Simulated]) -> None:
    curves = [
        Curve(rule, tuple((percent, each.percentile(percent)) for percent in _SHOWN_PERCENTS))
        for rule, each in found.items()
    ]
    bench.plot(
        f"Percentiles, {name}", "percentile", "seconds", curves, logarithmic_y=True, origin="simulated"
    )


# --- many clients -----------------------------------------------------------------------------


# The rule, the cap on extra requests, and whether the client is one without guards.
_CROWD_RULES = {
    "no restarts": ("off", 0.0, False),
    "timeout of 0.3 s, no guards": ("0.3", NO_CAP, True),
    "auto": ("auto", CAP, False),
    "auto, no cap": ("auto", NO_CAP, False),
}


@experiment(
    "Do restarts stay stable when every client restarts?",
    work="20 clients ask a server with 20 places at 60 % load, at random moments, on the virtual clock. 5 % "
    "of its answers take ten times as long. For 20 s it is 2.5 times slower than usual. Requests that are "
    "given up take their places all the same",
    limit="the clients that send nothing again",
    name="simulated-crowd",
)
def simulated_crowd(bench: Bench) -> None:
    plan = bench.size(CrowdPlan(), CrowdPlan(seconds=40.0, slow_from=10.0, slow_until=14.0))
    for each in bench.rounds(3, warm_up=0):
        curves = []
        for name, (rule, cap, unguarded) in _CROWD_RULES.items():
            found = crowd(plan, rule, cap, seed=each.number + 1, unguarded=unguarded)
            for part, begin, end in plan.parts:
                bench.sample(f"{name}: {part}", "s", found.mean(begin, end), origin="simulated", figure=part)
            curves.append(Curve(name, tuple(found.means(plan.seconds / 60.0))))
            bench.moved(len(found.answered))
        if each.number:
            continue
        bench.plot(
            *("Time of a request, with a crisis of the server", "seconds", "mean seconds", curves),
            logarithmic_y=True,
            origin="simulated",
        )
    for name in list(_CROWD_RULES)[1:]:
        for part, _, _ in plan.parts:
            is_goal = name == "auto" and part != "in the crisis"
            bench.claim_ratio(
                f"{name}, {part}: time of a request, of that without restarts",
                f"{name}: {part}",
                f"no restarts: {part}",
                at_most(1.1) if is_goal else None,
            )
