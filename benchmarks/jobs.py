"""What a job costs: the records of a crawl, and going on with one that has finished most of its work."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from time import perf_counter, process_time

import aioflow
from aioflow import Engine
from aioflow.authoring.context import RunIdentity
from aioflow.benchmarks.harness import Bench, at_most, experiment
from aioflow.benchmarks.web_jobs import CRAWL, configuration
from aioflow.demo.running import running_site
from aioflow.demo.site.farm import LINKS, PAGES
from aioflow.jobs import JobStore

WORKERS = 64
MILLISECONDS = 1000


class Crawl:
    """Crawls of the link farm, without a job or as one."""

    def __init__(self, farm_url: str) -> None:
        self._plan = aioflow.loads(CRAWL)
        self._start = [{"url": f"{farm_url}/farm/0"}]
        self._settings = configuration(farm_url, concurrency=WORKERS)

    async def run(self, folder: Path | None) -> tuple[float, float]:
        """Crawl all; return the processor time of a page, and the time until the first row."""
        store = None if folder is None else await JobStore.open(folder)
        identity = None if store is None else RunIdentity("benchmark", None, job=store)
        begun, started, first = perf_counter(), process_time(), 0.0
        try:
            async with Engine(workers=WORKERS, configuration=self._settings) as engine:
                stream = engine.stream(self._plan, {"pages": self._start}, identity=identity)
                pages = 0
                async with stream:
                    async for _, records in stream.batches():
                        first = first or perf_counter() - begun
                        pages += len(records)
        finally:
            if store is not None:
                await store.close()
        assert pages == PAGES, pages
        return (process_time() - started) / pages * MILLISECONDS, first


@experiment(
    "What does it cost that a crawl can go on after a crash?",
    work=f"a crawl of {PAGES:,} pages with {LINKS} links each, without a job, as a job, and as a job whose "
    "records are all there",
    limit="the crawl without a job",
)
def jobs(bench: Bench) -> None:
    with running_site() as site:
        asyncio.run(_measured(bench, Crawl(site.farm_url)))
    extra = [
        job - plain
        for job, plain in zip(bench.values("as a job"), bench.values("without a job"), strict=True)
    ]
    bench.claim("extra processor time a page", sorted(extra)[len(extra) // 2], "ms", at_most(0.1))
    bench.claim_median("processor time of a page that is known", "going on")
    bench.claim_median("first row when all is known", "first row, going on", at_most(5))


async def _measured(bench: Bench, crawl: Crawl) -> None:
    for each in bench.rounds(7):
        with tempfile.TemporaryDirectory() as folder:
            job = Path(folder) / "j"
            for name in each.shuffled(["without a job", "as a job"]):
                cost, _ = await crawl.run(job if name == "as a job" else None)
                bench.moved(PAGES)
                bench.sample(name, "ms", cost, figure="processor time a page")
            cost, first = await crawl.run(job)
            bench.sample("going on", "ms", cost, figure="processor time a page")
            bench.sample("first row, going on", "s", first)
