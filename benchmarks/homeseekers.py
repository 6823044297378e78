"""Homeseekers beside code by hand with aiohttp and selectolax: time, processor time and memory."""

from __future__ import annotations

from aioflow.bench import Bench, Goal, at_most, experiment
from aioflow.benchmarks.web_runs import LATENCY_SECONDS, PAGES, QUICK_LATENCY_SECONDS, WORKERS
from aioflow.demo.running import running_site

HOUSES = 72
TOOLS = {"aioflow": "benchmarks.peers.by_aioflow", "by hand": "benchmarks.peers.by_hand"}


@experiment(
    "What does Homeseekers cost beside code by hand?",
    work=f"{HOUSES} houses on {PAGES} pages, {WORKERS} workers, 100 ms a request, in D+S+ and by hand with "
    "aiohttp, selectolax and a semaphore; each run and the site in a process of its own",
    limit="12 pages and the houses of the last one: 1.3 s",
    needs_checkout=True,
)
def homeseekers(bench: Bench) -> None:
    from aioflow.benchmarks.peers.running import Job, Peer, expect_same, measure

    latency = bench.size(LATENCY_SECONDS, QUICK_LATENCY_SECONDS)
    with running_site(latency=latency, results=HOUSES) as site:
        job = Job("Homeseekers", "houses", site.url, WORKERS, HOUSES)
        for each in bench.rounds(7):
            runs = {tool: measure(Peer(tool, TOOLS[tool]), job) for tool in each.shuffled(TOOLS)}
            expect_same(runs)
            for tool in TOOLS:
                run = runs[tool]
                bench.sample(f"{tool}, last tuple", "s", run.arrivals[-1], limit=(PAGES + 1) * latency)
                bench.sample(f"{tool}, first tuple", "s", run.arrivals[0], limit=2 * latency)
                bench.sample(f"{tool}, processor time", "s", run.processor_seconds)
                bench.sample(f"{tool}, processor time with start-up", "s", run.process_processor_seconds)
                bench.sample(f"{tool}, peak memory", "MB", run.peak_megabytes)
    _beside_hand(bench, "last tuple", at_most(1.05))
    _beside_hand(bench, "processor time", at_most(1.3))
    _beside_hand(bench, "processor time with start-up", at_most(1.3))
    bench.claim_median("peak memory of the process", "aioflow, peak memory", at_most(60))
    bench.claim_median("the same by hand", "by hand, peak memory")


def _beside_hand(bench: Bench, figure: str, goal: Goal) -> None:
    bench.claim_ratio(f"{figure}, of code by hand", f"aioflow, {figure}", f"by hand, {figure}", goal)
