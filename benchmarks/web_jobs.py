"""`python -m aioflow.benchmarks.web_jobs JOB ADDRESS WORKERS …`: one job, in a process of its own.

Prints when each tuple came, as JSON. The clock starts when everything is imported and plans are read: what is
compared is the work, not the start-up.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlencode, urlsplit

if TYPE_CHECKING:
    from aioflow.plan import Program

Found: TypeAlias = Callable[[Any], None]
Job: TypeAlias = Callable[..., Awaitable[None]]
Given: TypeAlias = Mapping[type[Any], Any]  # services in place of the engine's own

PLANS = Path(__file__).parents[1] / "plans"
HOMESEEKERS = PLANS / "homeseekers" / "get_houses.plan"
SEARCH = {"city": "Irvine", "max-price": 550_000}
# What a system without loops can express: one result page and what it links to.
ONE_PAGE = """
USE "homeseekers/wrappers.plan"

PLAN one_page
{
  INPUT: page (next-page-link char)
  OUTPUT: houses, following
  BODY
  {
    wrapper ("result-page", page : results)
    project (results, "house-url" : urls)
    distinct (results, "next-page-link" : following)
    wrapper ("detail", urls : houses)
  }
}
"""
# The plan of plans/contributions, but the third source is on a site of its own, so that it can be slower.
CONTRIBUTIONS = """
USE "contributions/wrappers.plan"

PLAN contributions
{
  INPUT: campaign (year number, site char, crime-site char)
  OUTPUT: contributors
  BODY
  {
    wrapper ("fec", campaign : all-contributions)
    select (all-contributions, "zip < '%(below)s'" : contributions)
    project (contributions, "zip, site, crime-site" : places)
    distinct (places : zips)
    wrapper ("yahoo", zips : neighborhoods) {%(each)s}
    project (zips, "zip, crime-site as site" : crime-zips)
    wrapper ("crime", crime-zips : risks) {%(each)s}
    project (neighborhoods, "zip, income" : incomes)
    project (risks, "zip, crime" : crimes)
    join (contributions, incomes, "left.zip = right.zip" : with-income)
    join (with-income, crimes, "left.zip = right.zip" : joined)
    project (joined, "name, crime, income" : contributors)
  }
}
"""
# Follow every link once, from the pages of the input.
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
# The same from building blocks, with the guards and attributes of a real crawl.
COMPOSED_CRAWL = """
USE "crawl.plan"

PLAN composed
{
  INPUT: start (url char)
  OUTPUT: pages
  PARAM: domains
  BODY
  {
    crawl (start : pages) {DOMAINS: $domains; DEPTH: 1000; MAX_PAGES: 1000000}
  }
}
"""
# What a run would import when it first needs it.
LATE = (
    "aiohttp",
    "selectolax.lexbor",
    "aioflow.crawl.downloads",
    "aioflow.crawl.links",
    "aioflow.operators",
    "aioflow.expressions.calls",
    "aioflow.web.client",
    "aioflow.web.transport",
    "aioflow.wrappers.calls",
    "aioflow.wrappers.readers.html.reader",
)


def configuration(*urls: str, concurrency: int) -> dict[str, Any]:
    """May ask the hosts of these URLs as often as it likes, as all others do that are compared.

    Nor is the health of extraction kept from run to run: no other tool does that.
    """
    hosts = [urlsplit(url).netloc for url in urls]
    return {
        "http": {"allow": hosts, "health": False},
        "host": {host: {"concurrency": concurrency, "robots": False} for host in hosts},
    }


def search_url(site: str) -> str:
    return f"{site}/search?{urlencode(SEARCH)}"


# --- jobs ---------------------------------------------------------------------------------------


async def houses(
    found: Found, site: str, workers: int, mode: Any = "D+S+", services: Given | None = None
) -> None:
    """Homeseekers."""
    from aioflow import Engine

    settings = configuration(site, concurrency=workers)
    async with Engine(workers=workers, configuration=settings, mode=mode, services=services) as engine:
        async for house in engine.stream(_loaded(HOMESEEKERS), criteria=[{**SEARCH, "site": site}]):
            found(house)


async def restarted_houses(found: Found, site: str, workers: int, extra: str, latencies: str) -> None:
    """Homeseekers with restarts; the file `latencies` has what earlier runs learned."""
    from aioflow import Engine

    settings = configuration(site, concurrency=workers)
    settings["http"] |= {"restart": "auto", "restart_extra": float(extra), "latencies": latencies}
    async with Engine(workers=workers, configuration=settings) as engine:
        async for house in engine.stream(_loaded(HOMESEEKERS), criteria=[{**SEARCH, "site": site}]):
            found(house)


async def houses_by_page(found: Found, site: str, workers: int, services: Given | None = None) -> None:
    """Homeseekers as a network query engine would do it: the next page when this one's houses are there."""
    from aioflow import Engine

    settings = configuration(site, concurrency=workers)
    page: str | None = search_url(site)
    async with Engine(workers=workers, configuration=settings, services=services) as engine:
        while page is not None:
            following = None
            stream = engine.stream(_loaded(ONE_PAGE), page=[{"next-page-link": page}])
            async for name, row in stream.named():
                if name == "houses":
                    found(row)
                else:
                    following = row["next-page-link"]
            page = following


async def crawl(found: Found, start: str, workers: int) -> None:
    """All pages that can be reached."""
    from aioflow import Engine

    async with Engine(workers=workers, configuration=configuration(start, concurrency=workers)) as engine:
        async for page in engine.stream(_loaded(CRAWL), pages=[{"url": start}]):
            found(page["url"])


async def composed_crawl(found: Found, start: str, workers: int) -> None:
    """All pages that can be reached, by the blocks of crawlers."""
    from aioflow import Engine

    parameters = {"domains": urlsplit(start).hostname}
    async with Engine(workers=workers, configuration=configuration(start, concurrency=workers)) as engine:
        stream = engine.stream(_loaded(COMPOSED_CRAWL), start=[{"url": start}], parameters=parameters)
        async for page in stream:
            found(page["url"])


async def contributions(
    found: Found,
    site: str,
    workers: int,
    crime_site: str,
    below: str,
    each: str,
    services: Given | None = None,
) -> None:
    """Contributors who live where zip codes are below a bound; `each` is a setting of the index sources."""
    from aioflow import Engine

    settings = configuration(site, crime_site, concurrency=workers)
    campaign = {"year": 2000, "site": site, "crime-site": crime_site}
    plan = _loaded(_contributions(below, each))
    async with Engine(workers=workers, configuration=settings, services=services) as engine:
        async for row in engine.stream(plan, campaign=[campaign]):
            found(row)


def _contributions(below: str, each: str) -> str:
    return CONTRIBUTIONS % {"below": below, "each": each}


JOBS: dict[str, tuple[Job, Path | str]] = {
    "houses": (houses, HOMESEEKERS),
    "restarted_houses": (restarted_houses, HOMESEEKERS),
    "houses_by_page": (houses_by_page, ONE_PAGE),
    "crawl": (crawl, CRAWL),
    "composed_crawl": (composed_crawl, COMPOSED_CRAWL),
    "contributions": (contributions, CONTRIBUTIONS),
}


@cache
def _loaded(plan: Path | str) -> Program:
    import aioflow

    return aioflow.load(plan) if isinstance(plan, Path) else aioflow.loads(plan, "benchmark.plan")


# --- the process --------------------------------------------------------------------------------


def prepared(name: str, more: Sequence[str] = ()) -> Job:
    """Return the job, with all that it needs imported and read: no start-up is measured."""
    job, plan = JOBS[name]
    for module in (*LATE, "aioflow.wrappers.readers.csv") if plan is CONTRIBUTIONS else LATE:
        import_module(module)
    from aioflow import Engine

    Engine().check(_loaded(_contributions(*more[1:]) if plan is CONTRIBUTIONS else plan))
    return job


def main(name: str, address: str, workers: str, *more: str) -> None:
    job = prepared(name, more)
    arrivals: list[float] = []

    async def timed() -> None:
        started = perf_counter()
        await job(lambda found: arrivals.append(perf_counter() - started), address, int(workers), *more)

    asyncio.run(timed())
    print(json.dumps({"count": len(arrivals), "arrivals": [round(seconds, 5) for seconds in arrivals]}))


if __name__ == "__main__":
    main(*sys.argv[1:])
