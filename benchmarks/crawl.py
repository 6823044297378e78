"""A crawl without latency: the cost of a page, beside code by hand in the same run, and its memory."""

from __future__ import annotations

from aioflow.benchmarks.harness import Bench, at_least, at_most, experiment
from aioflow.benchmarks.web_runs import UNLIKE_DEFAULTS
from aioflow.demo.running import running_site
from aioflow.demo.site.farm import LINKS, PAGES

WORKERS = 64
# What a crawl must remember of each page is its address; everything else is let go of.
BYTES_A_PAGE = 4000
PROCESS_MEGABYTES = 100
# Of the processor time of code by hand, what the blocks may take: they keep to every guard.
MOST_OF_HAND = 1.25


@experiment(
    "How many pages a second without latency, and how much memory for them?",
    work=f"a crawl of {PAGES:,} pages of two kilobytes with {LINKS} links each, {WORKERS} workers, by "
    "aioflow (a wrapper, and the blocks of crawlers) and by hand with aiohttp, selectolax and cheap "
    "resolution of links; each in its own process",
    limit="code by hand",
)
def crawl(bench: Bench) -> None:
    from aioflow.benchmarks.peers.running import AIOFLOW, BLOCKS, BY_HAND, Job, measure_all

    tools = bench.size((AIOFLOW, BLOCKS, BY_HAND), (AIOFLOW, BLOCKS))
    with running_site() as site:
        job = Job("crawl", "crawl", f"{site.farm_url}/farm/0", WORKERS, PAGES)
        for each in bench.rounds(7):
            runs = measure_all(each.shuffled(tools), job)
            for name in (tool.name for tool in tools):
                bench.sample(f"{name}, speed", "pages/s", PAGES / runs[name].whole_seconds)
                bench.sample(f"{name}, processor time", "s", runs[name].processor_seconds)
                bench.sample(f"{name}, peak memory", "MB", runs[name].peak_megabytes)
    if not bench.quick:
        bench.claim_ratio("speed, of code by hand", "aioflow, speed", "by hand, speed", at_least(0.8))
        bench.claim_ratio(
            "processor time, of code by hand", "aioflow, processor time", "by hand, processor time"
        )
        bench.claim_ratio(
            "processor time of the blocks, of code by hand",
            f"{BLOCKS.name}, processor time",
            "by hand, processor time",
            at_most(MOST_OF_HAND),
        )
    bench.claim_median("speed", "aioflow, speed")
    most = PROCESS_MEGABYTES + PAGES * BYTES_A_PAGE / 1e6
    bench.claim_median("peak memory of the process", "aioflow, peak memory", at_most(most))
    bench.note("Each asks for every page once, and resolves and compares all of its links.")
    bench.note(
        "The blocks also read titles, check types, sizes and domains, and keep to levels: breadth first."
    )
    bench.note(UNLIKE_DEFAULTS)
