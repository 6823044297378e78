"""The tables of a report, as texts: pages and Markdown show the same."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from aioflow.benchmarks.harness.comparison import VariantPair, figures, pairs
from aioflow.benchmarks.harness.results import Claim, Finding, Origin, Results, Samples
from aioflow.benchmarks.harness.statistics import median_of
from aioflow.benchmarks.harness.wording import (
    MULTIPLY,
    bounds,
    difference_text,
    goal_text,
    mean_text,
    number,
    quantity,
    unit_sign,
    value_text,
    variant,
    verdict,
)


@dataclass(frozen=True)
class ReportTable:
    """Headings and rows; `numeric` columns are aligned to the right.

    In a grouped table, rows with equal first cells follow each other and belong together.
    """

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: frozenset[int] = frozenset()
    is_grouped: bool = False

    def without_empty_columns(self) -> ReportTable:
        kept = [place for place in range(len(self.headings)) if any(row[place] for row in self.rows)]
        return ReportTable(
            tuple(self.headings[place] for place in kept),
            tuple(tuple(row[place] for place in kept) for row in self.rows),
            frozenset(new for new, place in enumerate(kept) if place in self.numeric),
            self.is_grouped and 0 in kept,
        )


def claims_table(claims: Iterable[Claim], *, quick: bool) -> ReportTable:
    """Return the claims of an experiment."""
    rows = [
        (
            claim.what,
            value_text(claim),
            bounds(claim, claim.unit),
            goal_text(claim.goal, claim.unit),
            verdict(claim, quick=quick),
            claim.remark,
        )
        for claim in claims
    ]
    headings = ("figure", "found", "95 % interval", "goal", "verdict", "remark")
    return ReportTable(headings, tuple(rows), frozenset({1, 2, 3})).without_empty_columns()


def goals(results: Results, origin: Origin) -> list[tuple[Finding, Claim]]:
    """Return every claim with a goal, and its finding."""
    return [
        (finding, claim)
        for finding in results.findings
        for claim in finding.claims
        if claim.goal is not None and claim.origin == origin
    ]


def goals_table(results: Results, origin: Origin) -> ReportTable:
    """Return every goal of every experiment."""
    rows = [
        (
            finding.name,
            claim.what,
            value_text(claim),
            bounds(claim, claim.unit),
            goal_text(claim.goal, claim.unit),
            verdict(claim, quick=results.quick),
        )
        for finding, claim in goals(results, origin)
    ]
    headings = ("experiment", "figure", "found", "95 % interval", "goal", "verdict")
    return ReportTable(headings, tuple(rows), frozenset({2, 3, 4}), is_grouped=True)


def all_claims_table(results: Results) -> ReportTable:
    """Return every claim of every experiment, and a row for each experiment that failed."""
    rows: list[tuple[str, ...]] = []
    for finding in results.findings:
        rows += [
            (
                finding.name,
                claim.what + (" (simulated)" if claim.origin == "simulated" else ""),
                value_text(claim),
                bounds(claim, claim.unit),
                goal_text(claim.goal, claim.unit),
                verdict(claim, quick=results.quick),
                claim.remark,
            )
            for claim in finding.claims
        ]
        if finding.failure:
            rows.append((finding.name, "", "", "", "", "✗ failed", ""))
    headings = ("experiment", "figure", "found", "95 % interval", "goal", "verdict", "remark")
    return ReportTable(headings, tuple(rows), frozenset({2, 3, 4})).without_empty_columns()


def samples_table(samples: Sequence[Samples], origin: Origin) -> ReportTable:
    """Return every variant: our figures and the paper's, beside the limit."""
    headings = (
        "figure",
        "variant",
        "unit",
        "n",
        "median",
        "95 % interval",
        "mean ± s.d.",
        "least – most",
        "limit",
        "of limit",
    )
    rows = tuple(_samples_row(each) for figure in figures(samples, origin) for each in figure.samples)
    return ReportTable(headings, rows, frozenset(range(3, 10)), is_grouped=True).without_empty_columns()


def _samples_row(samples: Samples) -> tuple[str, ...]:
    values, found = samples.values, median_of(samples.values)
    return (
        samples.figure,
        variant(samples),
        unit_sign(samples.unit),
        str(len(values)),
        number(found.value),
        bounds(found),
        mean_text(values),
        f"{number(min(values))} – {number(max(values))}" if len(values) > 1 else "",
        number(samples.limit) if samples.limit is not None else "",
        f"{number(found.value / samples.limit)}{MULTIPLY}" if samples.limit else "",
    )


def pairs_table(finding: Finding, origin: Origin) -> ReportTable:
    """Return the comparisons of variants: the paper's test beside our ratio."""
    rows = tuple(_pair_row(each) for each in pairs(finding.samples, origin, finding.plots) if each.test)
    headings = (
        "figure",
        "variant",
        "against",
        "difference of means",
        "unpaired t-test",
        "ratio of a round",
        "95 % interval",
        "differ",
    )
    return ReportTable(headings, rows, frozenset({3, 4, 5, 6}), is_grouped=True).without_empty_columns()


def _pair_row(pair: VariantPair) -> tuple[str, ...]:
    ratio = pair.ratio
    return (
        pair.one.figure,
        variant(pair.one),
        variant(pair.other),
        quantity(pair.test.difference, pair.one.unit) if pair.test else "",
        difference_text(pair.test) if pair.test else "",
        (number(ratio.value) + MULTIPLY + ("" if pair.is_paired else " (of medians)")) if ratio else "",
        bounds(ratio, "x") if ratio else "",
        _differ(pair),
    )


def _differ(pair: VariantPair) -> str:
    """Return whether the ratio and the test show a difference."""
    if pair.differs is None or pair.test is None:
        return "too few rounds"
    ours, theirs = pair.differs, pair.test.is_significant
    if ours == theirs:
        return "yes" if ours else "not shown"
    return "by the ratio only" if ours else "by the t-test only"


def of_origin(finding: Finding, origin: Origin) -> Finding:
    """Return the part of a finding that was measured, or that was simulated."""
    return Finding(
        **vars(finding)
        | {
            "samples": tuple(each for each in finding.samples if each.origin == origin),
            "plots": tuple(each for each in finding.plots if each.origin == origin),
            "claims": tuple(each for each in finding.claims if each.origin == origin),
        }
    )


def parts(results: Results, origin: Origin) -> list[Finding]:
    """Return the findings of an origin; an empty one counts as measured, so that it is shown."""
    kept = []
    for finding in results.findings:
        part = of_origin(finding, origin)
        has_any = bool(part.samples or part.plots or part.claims)
        is_empty = not (finding.samples or finding.plots or finding.claims)
        if has_any or (is_empty and origin == "measured"):
            kept.append(part)
    return kept
