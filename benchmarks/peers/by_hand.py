"""Homeseekers and the crawl by hand: aiohttp, selectolax and a semaphore; no waits but the requests'."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from urllib.parse import urljoin

import aiohttp
from selectolax.lexbor import LexborHTMLParser

from .house import NEXT, PHOTO, RESULT, House, read_house, search_url


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
            url: str | None = search_url(site)
            while url is not None:
                page = await fetch(url)
                following = _link(page, NEXT, url)
                for result in page.css(RESULT):
                    tasks.create_task(look_at(urljoin(url, result.attributes["href"])))
                url = following


def _house(page: LexborHTMLParser, url: str) -> House:
    def text(selector: str) -> str | None:
        node = page.css_first(selector)
        return None if node is None else node.text(strip=True)

    return read_house(url, text, _link(page, PHOTO, url))


def _link(page: LexborHTMLParser, selector: str, url: str) -> str | None:
    node = page.css_first(selector)
    return None if node is None else urljoin(url, node.attributes["href"])


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

        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(work()) for _ in range(workers)]
            await waiting.join()
            for task in running:
                task.cancel()
