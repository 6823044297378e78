"""Homeseekers and the crawl by hand: aiohttp, selectolax and a semaphore; no waits but the requests'."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode, urljoin

import aiohttp
from selectolax.lexbor import LexborHTMLParser, LexborNode

House = dict[str, Any]


async def houses(site: str, workers: int, found: Callable[[House], None]) -> None:
    """Follow the Next links of a search and look at every house: a page's link before its houses."""
    permits = asyncio.Semaphore(workers)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def fetch(url: str) -> LexborHTMLParser:
            async with permits, session.get(url) as response:
                return LexborHTMLParser(await response.read())

        async def look_at(url: str) -> None:
            found(_house(await fetch(url), url))

        async with asyncio.TaskGroup() as tasks:
            url: str | None = f"{site}/search?{urlencode({'city': 'Irvine', 'max-price': 550_000})}"
            while url is not None:
                page = await fetch(url)
                following = page.css_first("a.next")
                details = [urljoin(url, link.attributes["href"]) for link in page.css("li.house a.title")]
                for detail in details:
                    tasks.create_task(look_at(detail))
                url = None if following is None else urljoin(url, following.attributes["href"])


def _house(page: LexborHTMLParser, url: str) -> House:
    return {
        "house-url": url,
        "address": _text(page, "h1.address"),
        "city": _text(page, ".place .city"),
        "zip": _text(page, ".place .zip"),
        "price": _number(_text(page, ".asking")),
        "beds": _number(_text(page, ".facts .beds .value")),
        "baths": _number(_text(page, ".facts .baths .value")),
        "square-feet": _number(_text(page, ".facts .area .value")),
        "year-built": _number(_text(page, ".facts .built .value")),
        "listed": _text(page, ".facts .listed .value"),
        "mls": _text(page, ".facts .mls .value"),
        "agent": _text(page, ".agent .name"),
        "phone": _text(page, ".agent .phone"),
        "picture": _attribute(page, ".gallery a.photo", "href"),
    }


def _text(page: LexborHTMLParser, selector: str) -> str | None:
    node: LexborNode | None = page.css_first(selector)
    return None if node is None else node.text(strip=True)


def _attribute(page: LexborHTMLParser, selector: str, name: str) -> str | None:
    node: LexborNode | None = page.css_first(selector)
    return None if node is None else node.attributes.get(name)


def _number(text: str | None) -> float | None:
    if not text:
        return None
    digits = "".join(character for character in text.split("+")[0] if character.isdigit() or character == ".")
    return float(digits) if digits else None


async def crawl(start: str, workers: int, found: Callable[[str], None]) -> None:
    """Follow every link once; links are resolved without urljoin, which would take a third of the time."""
    origin = start[: start.index("/", len("http://"))]
    seen = {start}
    waiting: asyncio.Queue[str] = asyncio.Queue()
    waiting.put_nowait(start)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def work() -> None:
            while True:
                url = await waiting.get()
                async with session.get(url) as response:
                    page = LexborHTMLParser(await response.read())
                for node in page.css("a"):
                    link = node.attributes.get("href")
                    if not link:
                        continue
                    target = origin + link if link.startswith("/") else urljoin(url, link)
                    if target not in seen:
                        seen.add(target)
                        waiting.put_nowait(target)
                found(url)
                waiting.task_done()

        tasks = [asyncio.create_task(work()) for _ in range(workers)]
        await waiting.join()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
