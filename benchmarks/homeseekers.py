"""Homeseekers against a site of its own process: how near to the latencies' limit, and to code by hand."""

from __future__ import annotations

from statistics import median
from typing import Any

from aioflow.demo.running import running_site
from benchmarks.experiment import Effort, Line, at_most, experiment
from benchmarks.processes import run_apart

WORKERS = 15
PAGES = 12
LATENCY_SECONDS = 0.1
QUICK_LATENCY_SECONDS = 0.005
TOOLS = ("aioflow", "by_hand")


def runs(per_page: int, effort: Effort) -> dict[str, list[dict[str, Any]]]:
    """What each tool measured, round by round against the same site."""
    latency = QUICK_LATENCY_SECONDS if effort.quick else LATENCY_SECONDS
    measured: dict[str, list[dict[str, Any]]] = {tool: [] for tool in TOOLS}
    with running_site(latency=latency, results=PAGES * per_page, per_page=per_page) as site:
        for _ in range(effort.rounds(7)):
            for tool in TOOLS:
                found = run_apart("benchmarks.web_jobs", tool, "houses", site.url, WORKERS)
                if found["count"] != PAGES * per_page:
                    raise AssertionError(f"{tool} found {found['count']} houses")
                measured[tool].append(found)
    return measured


def typical(measured: list[dict[str, Any]], what: str) -> float:
    return float(median(run[what] for run in measured))


def lines(per_page: int, last_limit: float, effort: Effort) -> list[Line]:
    measured = runs(per_page, effort)
    ours, hand = measured["aioflow"], measured["by_hand"]
    pairs = zip(ours, hand, strict=True)
    job = f"{PAGES} x {per_page} houses"
    first_limit = 2 * LATENCY_SECONDS
    beside_hand = median(mine["last"] / other["last"] for mine, other in pairs)
    return [
        Line(
            f"{job}, last tuple, of the limit of {last_limit:.1f} s",
            typical(ours, "last") / last_limit,
            "x",
            at_most(1.10),
        ),
        Line(
            f"{job}, first tuple, of the limit of {first_limit:.1f} s",
            typical(ours, "first") / first_limit,
            "x",
            at_most(1.15),
        ),
        Line(f"{job}, last tuple, of code by hand", beside_hand, "x", at_most(1.05)),
        Line(f"{job}, last tuple by hand, of the limit", typical(hand, "last") / last_limit, "x"),
        Line(
            f"{job}, processor time, of code by hand",
            typical(ours, "processor") / typical(hand, "processor"),
            "x",
        ),
    ]


@experiment("How near does Homeseekers come to what the latencies allow, and to code by hand?")
def measure(effort: Effort) -> list[Line]:
    # 12 pages one after the other, then the last page's houses; or 372 requests by 15 workers.
    return [*lines(6, (PAGES + 1) * LATENCY_SECONDS, effort), *lines(30, 2.6, effort)]
