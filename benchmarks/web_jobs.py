"""`python -m benchmarks.web_jobs TOOL JOB …`: one job by one tool, in a process of its own; prints JSON.

The clock starts when everything is imported: what is compared is the work, not the start-up.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import aiohttp  # noqa: F401  # imported before the clock starts, for all tools
import selectolax.lexbor  # noqa: F401

from benchmarks.processes import peak_megabytes, resident_megabytes

HOMESEEKERS = Path(__file__).parents[1] / "plans" / "homeseekers" / "get_houses.plan"
SEARCH = {"city": "Irvine", "max-price": 550_000}
CRAWL = """
WRAPPER page (url char)
{
  GET: "{+url}"
  EACH: "a"
  link: "@href" url
}

PLAN crawl
{
  INPUT: pages (url char)
  OUTPUT: found
  ONCE: "url"
  BODY
  {
    wrapper ("page", pages : links)
    project (links, "link as url" : following)
    crawl (following : further)
    union (pages, further : found) {ALL}
  }
}
"""


def configuration(*hosts: str, concurrency: int) -> dict[str, Any]:
    """May ask these hosts as often as it likes."""
    return {
        "http": {"allow": list(hosts), "health": False},
        "host": {host: {"concurrency": concurrency, "robots": False} for host in hosts},
    }


async def houses_by_aioflow(
    site: str, workers: int, found: Callable[[Any], None], mode: Any = "D+S+"
) -> None:
    import aioflow

    settings = configuration(site.removeprefix("http://"), concurrency=workers)
    async with aioflow.Engine(workers=workers, configuration=settings, mode=mode) as engine:
        async for house in engine.stream(_loaded(HOMESEEKERS), criteria=[{**SEARCH, "site": site}]):
            found(house)


async def crawl_by_aioflow(start: str, workers: int, found: Callable[[Any], None]) -> None:
    import aioflow

    host = start.split("/")[2]
    settings = configuration(host, concurrency=workers)
    async with aioflow.Engine(workers=workers, configuration=settings) as engine:
        async for page in engine.stream(_loaded(CRAWL), pages=[{"url": start}]):
            found(page)


@cache
def _loaded(plan: Path | str) -> Any:
    import aioflow

    return aioflow.load(plan) if isinstance(plan, Path) else aioflow.loads(plan, "crawl.plan")


def job(tool: str, name: str) -> Callable[..., Any]:
    if tool == "by_hand":
        from benchmarks.peers import by_hand

        jobs: dict[str, Callable[..., Any]] = {"houses": by_hand.houses, "crawl": by_hand.crawl}
        return jobs[name]
    for module in (
        "operators",
        "expressions.calls",
        "web.client",
        "web.transport",
        "wrappers.calls",
        "wrappers.readers.html",
    ):
        import_module(f"aioflow.{module}")
    from aioflow import Engine

    # Plans are read before the clock starts, as code by hand is.
    Engine().check(_loaded(HOMESEEKERS if name == "houses" else CRAWL))
    return houses_by_aioflow if name == "houses" else crawl_by_aioflow


def main(tool: str, name: str, address: str, workers: str, *more: str) -> None:
    work = job(tool, name)
    before = resident_megabytes()
    arrivals: list[float] = []

    async def timed() -> tuple[float, float]:
        started, used = perf_counter(), process_time()
        await work(address, int(workers), lambda found: arrivals.append(perf_counter() - started), *more)
        return perf_counter() - started, process_time() - used

    whole, processor = asyncio.run(timed())
    print(
        json.dumps(
            {
                "count": len(arrivals),
                "first": arrivals[0],
                "last": arrivals[-1],
                "whole": whole,
                "processor": processor,
                "grown": peak_megabytes() - before,
            }
        )
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
