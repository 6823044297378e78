"""Homeseekers and the crawl by aioflow, as a program that uses it as a library."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import aioflow

_ROOT = Path(__file__).parents[2]
_PLANS = {
    "houses": _ROOT / "plans" / "homeseekers" / "get_houses.plan",
    "crawl": Path(__file__).with_name("crawl.plan"),
}
# What a run would import when it first needs it.
_LATE = (
    "operators",
    "expressions.calls",
    "web.client",
    "web.transport",
    "wrappers.calls",
    "wrappers.readers.html",
)
_loaded: dict[str, Any] = {}


def prepare(job: str) -> None:
    """Import what the job needs, and read its plan, which in the other tools is code."""
    for module in _LATE:
        import_module(f"aioflow.{module}")
    _loaded[job] = aioflow.load(_PLANS[job])
    aioflow.Engine().check(_loaded[job])


async def houses(site: str, workers: int, found: Callable[[Any], None]) -> None:
    criteria = {"city": "Irvine", "max-price": 550_000, "site": site}
    async with _engine(site, workers) as engine:
        async for house in engine.stream(_loaded["houses"], criteria=[criteria]):
            found(house)


async def crawl(start: str, workers: int, found: Callable[[str], None]) -> None:
    async with _engine(start, workers) as engine:
        async for page in engine.stream(_loaded["crawl"], pages=[{"url": start}]):
            found(page["url"])


def _engine(url: str, workers: int) -> aioflow.Engine:
    host = url.split("/")[2]
    settings = {
        "http": {"allow": [host], "health": False},
        "host": {host: {"concurrency": workers, "robots": False}},
    }
    return aioflow.Engine(workers=workers, configuration=settings)
