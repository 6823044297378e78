"""Homeseekers beside code by hand with aiohttp and selectolax: time, processor time and memory."""

from __future__ import annotations

from aioflow.benchmarks.harness import Bench, Goal, at_most, experiment
from aioflow.benchmarks.web_runs import (
    LATENCY_SECONDS,
    PAGES,
    PER_PAGE,
    QUICK_LATENCY_SECONDS,
    UNLIKE_DEFAULTS,
    WORKERS,
)
from aioflow.demo.running import running_site

HOUSES = PAGES * PER_PAGE


@experiment(
    "What does Homeseekers cost beside code by hand?",
    work=f"{HOUSES} houses on {PAGES} pages, {WORKERS} workers, 100 ms a request, in D+S+ and by hand with "
    "aiohttp, selectolax and a semaphore; each run and the site in a process of its own",
    limit="12 pages and the houses of the last one: 1.3 s",
)
def homeseekers(bench: Bench) -> None:
    from aioflow.benchmarks.peers.running import AIOFLOW, BY_HAND, Job, measure_all

    latency = bench.size(LATENCY_SECONDS, QUICK_LATENCY_SECONDS)
    with running_site(latency=latency, results=HOUSES) as site:
        job = Job("Homeseekers", "houses", site.url, WORKERS, HOUSES)
        for each in bench.rounds(7):
            runs = measure_all(each.shuffled((AIOFLOW, BY_HAND)), job)
            for name in (AIOFLOW.name, BY_HAND.name):
                run = runs[name]
                bench.sample(f"{name}, last tuple", "s", run.last, limit=(PAGES + 1) * latency)
                bench.sample(f"{name}, first tuple", "s", run.first, limit=2 * latency)
                bench.sample(f"{name}, processor time with start-up", "s", run.process_processor_seconds)
                bench.sample(f"{name}, processor time of the job", "s", run.processor_seconds)
                bench.sample(f"{name}, peak memory", "MB", run.peak_megabytes)
    _beside_hand(bench, "last tuple", at_most(1.05))
    _beside_hand(bench, "processor time with start-up", at_most(1.3))
    _beside_hand(bench, "processor time of the job")
    bench.claim_median("peak memory of the process", "aioflow, peak memory", at_most(60))
    bench.claim_median("the same by hand", "by hand, peak memory")
    bench.note(
        "Processor time with start-up is what a user pays: of the whole process, with the interpreter and "
        "all imports. That of the job begins when everything is imported and plans are read."
    )
    bench.note(UNLIKE_DEFAULTS)


def _beside_hand(bench: Bench, figure: str, goal: Goal | None = None) -> None:
    bench.claim_ratio(f"{figure}, of code by hand", f"aioflow, {figure}", f"by hand, {figure}", goal)
