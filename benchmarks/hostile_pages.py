"""How long pages that are made to keep the event loop busy block it, and how much memory they take."""

from __future__ import annotations

import asyncio
import gc
import resource
from collections.abc import Mapping
from contextlib import suppress
from time import perf_counter
from typing import Any

import aioflow
from aioflow import Engine, RunError
from aioflow.benchmarks.harness import Bench, at_most, experiment
from aioflow.testing import Answer, ScriptedSite
from aioflow.web.client import Client

URL = "http://homes.example/"
SETTINGS: Mapping[str, Any] = {"http": {"health": False, "retries": 0, "robots": False, "read_seconds": 2}}
MILLISECONDS, MEGABYTE_KIB = 1000, 1000
_BEAT_SECONDS = 0.002


def pages() -> Mapping[str, tuple[str, str, str]]:
    """The body of a wrapper, the page, and what that says it is, by what is odd about the page."""
    pairs = "<r>" + "".join(f"<i id='{n}'/><sel ref='x{n}'/>" for n in range(5000)) + "</r>"
    nested = "{" + '"a":[{' * 60 + '"a":1' + "}]" * 60 + "}"
    return {
        "XPath over pairs": ('READ: xml; EACH: "//i[@id = //sel/@ref]"; id: "@id"', pairs, "application/xml"),
        "JSONPath, nested": ('READ: json; EACH: "$..a..a..a..a"; v: "$"', nested, "application/json"),
        "JSON, a bare word": ('READ: json; v: "a"', "y" * 8_000_000, "application/json"),
        "JSON, one long item": ('READ: json; v: "a"', '[{"a": [' + "[]," * 4_000_000 + "1]}]", "text/json"),
        "CSV, nothing but commas": ('READ: csv header no; v: "1"', "," * 20_000_000, "text/csv"),
        "text, one line": ('READ: text lines; v: "^(x)"', "x" * 20_000_000, "text/plain"),
        "digits": ('READ: html; n: "p" number', "<p>" + "7." * 2_000_000, "text/html"),
        "replace at every letter": ('READ: html; t: "p" replace "" "-"', "<p>" + "x" * 250_000, "text/html"),
        "all, one inside the other": ('READ: html; t: "div" all', "<div>" * 200 + "x" * 250_000, "text/html"),
        "CSS, deep": ('READ: html; t: "b div div div div p"', "<div>" * 450 + "<p>x</p>", "text/html"),
        "many tags": ('READ: html; EACH: "b"; t: "@text"', "<b>x</b>" * 31_000, "text/html"),
        "many rows": ('READ: json; EACH: "$..a"; v: "$"', "[" + '{"a":1},' * 500_000 + "1]", "text/json"),
    }


async def longest_wait(declaration: str, page: str, kind: str) -> float:
    """Return the longest time that the loop let a task wait while a page was read."""
    text = f'WRAPPER page {{ GET: "{URL}"; {declaration} }}'
    plan = aioflow.loads(f'{text}\nPLAN p {{ OUTPUT: out BODY {{ wrapper ("page" : out) }} }}')
    site = ScriptedSite({URL: Answer(page, headers={"Content-Type": kind})})
    waits: list[float] = []

    async def beat() -> None:
        while True:
            before = perf_counter()
            await asyncio.sleep(_BEAT_SECONDS)
            waits.append(perf_counter() - before - _BEAT_SECONDS)

    async with Engine(services={Client: site.client(SETTINGS)}, configuration=SETTINGS) as engine:
        beating = asyncio.ensure_future(beat())
        await asyncio.sleep(0)
        with suppress(RunError):  # given up within its limits
            async for _ in engine.stream(plan):
                pass
        await asyncio.sleep(_BEAT_SECONDS)
        beating.cancel()
    return max(waits)


@experiment(
    "How long does a hostile page keep everything else waiting?",
    work="pages that are cheap to send and dear to read, through the readers of wrappers; a task that wants "
    "to run every 2 ms tells how long it waited",
    limit="none: other work should not notice",
)
def hostile_pages(bench: Bench) -> None:
    for _ in bench.rounds(3):
        for name, (declaration, page, kind) in pages().items():
            gc.collect()
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            seconds = asyncio.run(longest_wait(declaration, page, kind))
            after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            bench.moved(1)
            bench.sample(name, "ms", seconds * MILLISECONDS, figure="longest wait")
            bench.sample(f"{name}: memory", "MB", (after - before) / MEGABYTE_KIB, figure="growth")
    for name in pages():
        bench.claim_median(f"longest wait: {name}", name, at_most(250))
