"""Homeseekers and the crawl by aioflow, in the form that the peers have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aioflow.benchmarks.web_jobs import Job, prepared

_jobs: dict[str, Job] = {}


def prepare(job: str) -> None:
    """Import what the job needs, and read its plan."""
    _jobs[job] = prepared("aioflow", job, ())


async def houses(site: str, workers: int, found: Callable[[Any], None]) -> None:
    await _jobs["houses"](found, site, workers)


async def crawl(start: str, workers: int, found: Callable[[str], None]) -> None:
    await _jobs["crawl"](lambda page: found(page["url"]), start, workers)
