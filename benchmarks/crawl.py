"""A crawl without latency: what a page costs, beside code by hand in the same run, and what it leaves."""

from __future__ import annotations

from statistics import median

from aioflow.bench import Bench, at_least, at_most, experiment
from aioflow.benchmarks.web_runs import run_job
from aioflow.demo.running import running_site
from aioflow.demo.site.farm import LINKS, PAGES

WORKERS = 64
TOOLS = ("aioflow", "by_hand")
# What a crawl must remember of each page is its address; everything else is let go of.
BYTES_A_PAGE = 4000


@experiment(
    "How many pages a second without latency, and how much memory for each?",
    work=f"a crawl of {PAGES:,} pages of two kilobytes with {LINKS} links each, {WORKERS} workers, by "
    "aioflow and by hand with aiohttp, selectolax and cheap resolution of links; each in its own process",
    limit="code by hand",
    needs_checkout=True,
)
def crawl(bench: Bench) -> None:
    with running_site() as site:
        for each in bench.rounds(7):
            start = f"{site.farm_url}/farm/0"
            runs = {
                tool: run_job("crawl", start, WORKERS, tool=tool, expected=PAGES)
                for tool in each.shuffled(TOOLS)
            }
            for tool in TOOLS:
                bench.sample(f"{tool}, speed", "pages/s", PAGES / runs[tool].whole_seconds)
                bench.sample(f"{tool}, memory grown by", "MB", runs[tool].grown_megabytes)
    bench.claim_ratio("speed, of code by hand", "aioflow, speed", "by_hand, speed", at_least(0.8))
    bench.claim_median("speed", "aioflow, speed")
    bench.claim(
        "memory grown by",
        median(bench.values("aioflow, memory grown by")),
        "MB",
        at_most(PAGES * BYTES_A_PAGE / 1e6 + 40),
    )
