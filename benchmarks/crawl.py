"""A crawl without latency: what a page costs, beside code by hand in the same run, and what it leaves."""

from __future__ import annotations

from statistics import median

from aioflow.demo.running import running_site
from aioflow.demo.site.farm import PAGES
from benchmarks.experiment import Effort, Line, at_least, at_most, experiment
from benchmarks.processes import run_apart

WORKERS = 64
TOOLS = ("aioflow", "by_hand")
# What a crawl must remember of each page is its address; everything else is let go of.
BYTES_A_PAGE = 4000


@experiment("How many pages a second without latency, and how much memory for each?")
def measure(effort: Effort) -> list[Line]:
    rates: dict[str, list[float]] = {tool: [] for tool in TOOLS}
    grown: list[float] = []
    with running_site() as site:
        for _ in range(effort.rounds(7)):
            for tool in TOOLS:
                found = run_apart("benchmarks.web_jobs", tool, "crawl", f"{site.farm_url}/farm/0", WORKERS)
                if found["count"] != PAGES:
                    raise AssertionError(f"{tool} found {found['count']} of {PAGES} pages")
                rates[tool].append(found["count"] / found["whole"])
                if tool == "aioflow":
                    grown.append(found["grown"])
    ours, hand = rates["aioflow"], rates["by_hand"]
    ratio = median(mine / other for mine, other in zip(ours, hand, strict=True))
    return [
        Line(f"{PAGES:,} pages with 20 links, of code by hand", ratio, "x", at_least(0.8)),
        Line("pages a second", median(ours), "rows/s"),
        Line("pages a second by hand", median(hand), "rows/s"),
        Line("memory, grown by", median(grown), "MB", at_most(PAGES * BYTES_A_PAGE / 1e6 + 40)),
    ]
