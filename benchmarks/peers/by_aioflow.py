"""Homeseekers and the crawl by aioflow: plans, as `web_jobs` runs them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aioflow.benchmarks import web_jobs


def prepare(job: str) -> None:
    """Import what the job needs, and read its plan, which in the other tools is code."""
    web_jobs.prepared(job)


async def houses(site: str, workers: int, found: Callable[[Any], None]) -> None:
    await web_jobs.houses(found, site, workers)


async def crawl(start: str, workers: int, found: Callable[[str], None]) -> None:
    await web_jobs.crawl(found, start, workers)


async def composed_crawl(start: str, workers: int, found: Callable[[str], None]) -> None:
    await web_jobs.composed_crawl(found, start, workers)
