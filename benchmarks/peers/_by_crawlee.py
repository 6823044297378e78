"""Homeseekers and the crawl by Crawlee with Parsel: tuned, and idiomatic.

Both have all storages in memory and a fixed concurrency. Tuned means moreover that links which were seen are
never made requests, which Crawlee validates one by one, and that what these jobs do not need is switched off.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any
from urllib.parse import urljoin

from crawlee import ConcurrencySettings, Request  # type: ignore[import-not-found]  # only in an own environment
from crawlee.crawlers import ParselCrawler  # type: ignore[import-not-found]
from crawlee.storage_clients import MemoryStorageClient  # type: ignore[import-not-found]
from parsel import Selector  # type: ignore[import-not-found]

from .house import NEXT, PHOTO, RESULT, House, read_house, search_url

Found = Callable[[Any], None]

_DETAIL = "detail"


async def houses(site: str, workers: int, found: Found) -> None:
    crawler = _tuned(workers)

    async def read_results(context: Any) -> None:
        page, url = context.selector, context.request.url
        following = page.css(f"{NEXT}::attr(href)").get()
        if following is not None:
            # What leads to more comes first, and at once: the context would wait until this function ends.
            await crawler.add_requests([_absolute(following, url)], forefront=True)
        links = page.css(f"{RESULT}::attr(href)").getall()
        await context.add_requests([Request.from_url(_absolute(link, url), label=_DETAIL) for link in links])

    async def read_detail(context: Any) -> None:
        found(_house(context.selector, context.request.url))

    crawler.router.default_handler(read_results)
    crawler.router.handler(_DETAIL)(read_detail)
    await crawler.run([search_url(site)])


async def crawl(start: str, workers: int, found: Found) -> None:
    crawler = _tuned(workers)
    seen = {start}

    async def follow(context: Any) -> None:
        url = context.request.url
        found(url)
        new = []
        for link in context.selector.xpath("//a/@href").getall():
            target = _absolute(link, url)
            if target not in seen:
                seen.add(target)
                new.append(target)
        if new:
            await context.add_requests(new)

    crawler.router.default_handler(follow)
    await crawler.run([start])


async def idiomatic_houses(site: str, workers: int, found: Found) -> None:
    crawler = _crawler(workers)

    async def read_results(context: Any) -> None:
        await context.enqueue_links(selector=RESULT, label=_DETAIL)
        await context.enqueue_links(selector=NEXT)

    async def read_detail(context: Any) -> None:
        house = _house(context.selector, context.request.url)
        await context.push_data(house)
        found(house)

    crawler.router.default_handler(read_results)
    crawler.router.handler(_DETAIL)(read_detail)
    await crawler.run([search_url(site)])


async def idiomatic_crawl(start: str, workers: int, found: Found) -> None:
    crawler = _crawler(workers)

    async def follow(context: Any) -> None:
        await context.push_data({"url": context.request.url})
        await context.enqueue_links()
        found(context.request.url)

    crawler.router.default_handler(follow)
    await crawler.run([start])


def _crawler(workers: int, **more: Any) -> ParselCrawler:
    logging.getLogger().setLevel(logging.ERROR)  # failures are told
    return ParselCrawler(
        # From the first moment to the last: else it begins with 10 and adapts to what the machine bears.
        concurrency_settings=ConcurrencySettings(
            min_concurrency=workers, max_concurrency=workers, desired_concurrency=workers
        ),
        # The default writes every request and every result to a file.
        storage_client=MemoryStorageClient(),
        configure_logging=False,
        **more,
    )


def _tuned(workers: int) -> ParselCrawler:
    return _crawler(
        workers,
        # Neither cookies nor identities are needed, nor a search of each page for signs of being blocked.
        use_session_pool=False,
        retry_on_blocked=False,
        # It fails never.
        max_request_retries=0,
    )


def _absolute(link: str, url: str) -> str:
    """As by hand: resolving in full only what needs it."""
    if link.startswith("/"):
        return url[: url.index("/", len("http://"))] + link
    return urljoin(url, link)


def _house(page: Selector, url: str) -> House:
    def text(selector: str) -> str | None:
        found = page.css(selector).xpath("string()").get()
        return None if found is None else found.strip()

    return read_house(url, text, _absolute(page.css(PHOTO).attrib["href"], url))
