"""Figures in words, alike in all reports: quantities with units, intervals, goals, tests, method."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean, stdev
from typing import Any

from aioflow.benchmarks.harness.results import Claim, Finding, Goal, Results, Samples, Unit
from aioflow.benchmarks.harness.statistics import Interval, TTest

METHOD = (
    (
        "Same work, same run.",
        "The variants of an experiment do the same work in the same run, and take turns in every round, so "
        "that what disturbs the machine disturbs all of them. What computes in the harness's own process is "
        "warmed up by a round that is forgotten. What has a process of its own starts anew each time; where "
        "it is timed, a run before the first round has files and sites warm for all. Web sites and other "
        "sources run in processes of their own on the same machine. Each variant's result is checked: a "
        "fast wrong answer fails the experiment.",
    ),
    (
        "Our statistics.",
        "A figure is the median of its rounds with a 95 % bootstrap interval: percentiles of 2,000 "
        "resamples, expanded as Student's distribution demands of so few rounds. Of fewer than five rounds "
        "none is given, for not even their least and most would hold the median so surely. Two variants are "
        "compared by the ratio of each round, whose median and interval are given: what slowed both in one "
        "round cancels out. They differ when the interval leaves out 1.",
    ),
    (
        "The paper's statistics.",
        "Beside them stand those of the paper that the experiments repeat: means, standard deviations, "
        "and an unpaired two-tailed t-test, in Welch's form, which does not take the spreads for equal. "
        "The paper made three rounds; here what repeats it makes more, and each table says how many (n).",
    ),
    (
        "Limits.",
        "A limit is what no program could beat: the latencies that must follow one another, or the "
        "requests that the workers allowed at once need, with nothing else taking any time. Of queries it "
        "is n/k, since no answer has more than k of the n tuples, or a bound that the paper proves.",
    ),
    (
        "Goals.",
        "A goal was set before the measurement and is judged by the median. One that is missed stays in the "
        "report.",
    ),
    (
        "Conditions.",
        "Garbage is collected as often as Python does by default, and that is counted, here and in the "
        "processes measured. Only the command aioflow run does it less often of itself, every 10,000 "
        "objects, and so do all programs that are compared with each other, by whatever tool. The load "
        "of the machine before and after each experiment and the share of its processors that other "
        "programs took are written beside it.",
    ),
)

SIMULATED = (
    "These figures were not measured. They come from a virtual clock: the plans really ran, but every "
    "request took a latency drawn from a seeded distribution, and computing took no time at all. They "
    "show what schedules allow, not how fast a machine is, and are never mixed with measurements."
)
QUICK = (
    "This was a quick run: sizes are tiny and rounds are few. It shows that the experiments work; its "
    "figures mean little, and its goals are not judged."
)


MULTIPLY = "×"
_SIGNS: Mapping[str, str] = {"us": "µs"}
_SIGNIFICANT, _MOST_DIGITS = 3, 6
_DISTURBING_SHARE = 0.1
# Of a mean: a smaller spread comes from the rounding of numbers, not from the measurement.
_NO_SPREAD = 1e-6


def number(value: float, digits: int = _SIGNIFICANT) -> str:
    """Return three significant digits, never an exponent: `0.201`, `12.3`, `5,120`."""
    if value == 0 or not math.isfinite(value):
        return f"{value:.0f}"
    if round(abs(value), 1) >= 10 ** (digits - 1):
        return f"{value:,.0f}"
    places = digits - 1 - math.floor(math.log10(abs(value)))
    rounded = round(value, places)
    # 0.9996 is 1.00, not 1.000.
    places = digits - 1 - math.floor(math.log10(abs(rounded)))
    return f"{rounded:.{max(0, min(places, 9))}f}"


def quantity(value: float, unit: Unit, digits: int = _SIGNIFICANT) -> str:
    """Return `1.04×`, `1.34 s`, `5,120 rows/s` or `n^1.02`."""
    if unit == "x":
        return number(value, digits) + MULTIPLY
    if unit == "power":
        return f"n^{round(value, 2) + 0.0:.2f}"  # never -0.00
    if unit in ("rows", "requests", "queries", "tuples", "bytes"):
        shown = f"{value:,.0f}" if value == round(value) or abs(value) >= 100 else number(value, digits)
        return f"{shown} {unit}"
    return f"{number(value, digits)} {unit_sign(unit)}"


def unit_sign(unit: Unit) -> str:
    return MULTIPLY if unit == "x" else _SIGNS.get(unit, unit)


def bounds(found: Interval | Claim, unit: Unit | None = None) -> str:
    """Return `1.32 – 1.36`, or nothing without an interval."""
    if found.low is None or found.high is None:
        return ""
    sign = {"x": MULTIPLY, "power": "", None: ""}.get(unit, f" {unit_sign(unit)}" if unit else "")
    return f"{number(found.low)} – {number(found.high)}{sign}"


def mean_text(values: Sequence[float]) -> str:
    """Return `8.531 ± 0.011`: the deviation with two digits, and the mean with the same precision."""
    mean = fmean(values)
    deviation = stdev(values) if len(values) > 1 else 0.0
    if deviation <= abs(mean) * _NO_SPREAD:
        return number(mean)
    places = max(0, 1 - math.floor(math.log10(deviation)))
    return f"{mean:,.{places}f} ± {deviation:,.{places}f}"


def goal_text(goal: Goal | None, unit: Unit) -> str:
    """Return `at most 1.10×`: as it was set, not rounded."""
    if goal is None:
        return ""
    value = goal.value
    exact = (
        f"{value:,.0f}"
        if value == round(value)
        else f"{value:.2f}"
        if round(value, 2) == value
        else f"{value:g}"
    )
    if unit == "power":
        return f"{goal.direction} n^{exact}"
    return f"{goal.direction} {exact}{MULTIPLY if unit == 'x' else f' {unit_sign(unit)}'}"


def value_text(claim: Claim) -> str:
    """Return the value of a claim, with enough digits to see on which side of its goal it is."""
    value, goal = claim.value, claim.goal
    if value is None:
        return "not found"
    digits = _SIGNIFICANT
    if goal is not None and value != goal.value:
        shown = range(_SIGNIFICANT, _MOST_DIGITS)
        digits = next((n for n in shown if number(value, n) != number(goal.value, n)), _SIGNIFICANT)
    return quantity(value, claim.unit, digits)


def verdict(claim: Claim, *, quick: bool) -> str:
    """Return whether the goal is reached, as a word with a sign: never by colour alone."""
    if claim.goal is None:
        return ""
    if claim.reached is None:
        return "– unknown"
    if quick:
        return "– quick run"
    return "✓ reached" if claim.reached else "✗ missed"


def p_text(p: float) -> str:
    """Return a probability as papers write it."""
    if p < 0.0001:
        return "< 0.0001"
    return f"{p:.4f}" if p < 0.01 else f"{p:.3f}" if p < 0.1 else f"{p:.2f}"


def difference_text(test: TTest) -> str:
    """Return `t(17.3) = 5.21, p = 0.0024`."""
    if math.isinf(test.degrees):
        return f"no spread, p {_equals(p_text(test.p))}"
    return f"t({number(test.degrees)}) = {number(test.t)}, p {_equals(p_text(test.p))}"


def _equals(text: str) -> str:
    return text if text.startswith("<") else f"= {text}"


def variant(samples: Samples) -> str:
    """Return the name without the part that it shares with the other variants of its figure."""
    short = samples.name.removesuffix(f", {samples.figure}") if samples.figure else samples.name
    return short or samples.name


def goals_summary(results: Results) -> str:
    """Return `17 of 18 goals reached, 1 missed`, or that there are none."""
    claims = [claim for finding in results.findings for claim in finding.claims if claim.goal is not None]
    if not claims:
        return "no goals were set"
    reached = sum(claim.reached is True for claim in claims)
    missed = sum(claim.reached is False for claim in claims)
    unknown = len(claims) - reached - missed
    parts = [f"{reached} of {len(claims)} goals reached"]
    parts += [f"{missed} missed"] if missed else []
    parts += [f"{unknown} unknown"] if unknown else []
    return ", ".join(parts)


def has_missed_goals(results: Results) -> bool:
    return any(claim.reached is False for finding in results.findings for claim in finding.claims)


def commit_text(results: Results) -> str:
    if not results.commit:
        return "none: no Git repository"
    return results.commit[:12] + (", with changes" if results.dirty else "")


def machine_lines(results: Results) -> list[tuple[str, str]]:
    """Return the properties of the machine, as names and values."""
    machine, lines = results.machine, []
    if "processor" in machine:
        lines.append(("processor", f"{machine['processor']}, {machine.get('cores', '?')} cores"))
    if machine.get("memory_megabytes"):
        lines.append(("memory", f"{machine['memory_megabytes'] / 1000:.1f} GB"))
    if "system" in machine:
        lines.append(("system", f"{machine['system']}, {machine.get('architecture', '')}".rstrip(", ")))
    lines.append(("commit", commit_text(results)))
    lines.append(("started", results.started.replace("T", " ")))
    return lines


def is_disturbed(finding: Finding) -> bool:
    """Return whether other programs took so much of the machine that they may have changed the figures."""
    told = finding.conditions
    return float(told.get("others_share", 0)) + float(told.get("stolen_share", 0)) > _DISTURBING_SHARE


def disturbed_text(results: Results) -> str:
    """Return a warning to show before any figure; empty when the machine was quiet or the run is quick."""
    disturbed = [each.name for each in results.findings if is_disturbed(each)]
    if results.quick or not disturbed:
        return ""
    which = f"{len(disturbed)} of {len(results.findings)} experiments: {', '.join(disturbed)}"
    if len(disturbed) == len(results.findings):
        which = "all experiments"
    return (
        f"Other programs took more than {_DISTURBING_SHARE:.0%} of the processors during {which}. "
        "These figures tell of them as well."
    )


def condition_lines(finding: Finding) -> list[str]:
    """Return the conditions under which an experiment ran."""
    told: Mapping[str, Any] = finding.conditions
    lines = [f"took {finding.seconds:.1f} s"]
    if "load_before" in told:
        lines.append(f"load {told['load_before']} before, {told.get('load_after', '?')} after")
    if "others_share" in told:
        sign = "⚠ " if is_disturbed(finding) else ""
        lines.append(f"{sign}other programs took {told['others_share']:.0%} of the processors")
    if told.get("stolen_share", 0) >= 0.01:
        lines.append(f"the host below took {told['stolen_share']:.0%}")
    if "collections" in told:
        apart = told.get("collections_apart", [0])
        more = f", in processes measured {_slashed(apart)}" if any(apart) else ""
        lines.append(f"garbage collections here {_slashed(told['collections'])}{more}")
    if "megahertz" in told:
        low, high = told["megahertz"]
        lines.append(f"{low} MHz" if low == high else f"{low} – {high} MHz")
    return lines


def _slashed(counts: Sequence[int]) -> str:
    return " / ".join(map(str, counts))
