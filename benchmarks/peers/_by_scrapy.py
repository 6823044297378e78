"""Homeseekers and the crawl by Scrapy: tuned as its documentation on optimization says, and idiomatic.

Tuned means that what these jobs do not need is switched off, that pages which lead to more come first, and
that links which were seen are never made requests. The handler for aiohttp, which would save a seventh of the
crawl's processor time, is still experimental in this version.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from typing import Any

import scrapy  # type: ignore[import-not-found]  # only in an environment of its own
from scrapy.crawler import AsyncCrawlerProcess  # type: ignore[import-not-found]
from scrapy.settings import Settings  # type: ignore[import-not-found]
from scrapy.utils.misc import load_object  # type: ignore[import-not-found]
from scrapy.utils.reactor import install_reactor  # type: ignore[import-not-found]

from .house import NEXT, PHOTO, RESULT, House, read_house, search_url

Found = Callable[[Any], None]

_MIDDLEWARES = "scrapy.downloadermiddlewares"
_COMPONENTS = ("DOWNLOADER_MIDDLEWARES", "SPIDER_MIDDLEWARES", "EXTENSIONS", "DOWNLOAD_HANDLERS")

TUNED: Mapping[str, Any] = {
    # The default is to tell of every request and item; failures are still told.
    "LOG_LEVEL": "ERROR",
    # No waits between requests; this is the default, but not that of new projects.
    "DOWNLOAD_DELAY": 0,
    "ROBOTSTXT_OBEY": False,
    # What a callback yields is handled by so many tasks, made anew for every response; the default is 100.
    "CONCURRENT_ITEMS": 4,
    # The spiders remember the URLs that they saw: the filter would parse, normalise and hash each link again.
    "DUPEFILTER_CLASS": "scrapy.dupefilters.BaseDupeFilter",
    # One site: nothing is to be balanced between domains.
    "SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.ScrapyPriorityQueue",
    # The site sets no cookies, fails never, redirects nowhere, compresses nothing and needs no proxy.
    "COOKIES_ENABLED": False,
    "RETRY_ENABLED": False,
    "REDIRECT_ENABLED": False,
    "METAREFRESH_ENABLED": False,
    "COMPRESSION_ENABLED": False,
    "HTTPPROXY_ENABLED": False,
    "REFERER_ENABLED": False,
    # Nobody reads what is counted, watches from a console or over the network.
    "DOWNLOADER_STATS": False,
    "STATS_CLASS": "scrapy.statscollectors.DummyStatsCollector",
    "MEMUSAGE_ENABLED": False,
    "TELNETCONSOLE_ENABLED": False,
    "REMOTE_CONTROL_ENABLED": False,
    "EXTENSIONS": {
        "scrapy.extensions.corestats.CoreStats": None,
        "scrapy.extensions.logcount.LogCount": None,
        "scrapy.extensions.logstats.LogStats": None,
    },
    # What has no switch of its own and would look at every request or link.
    "DOWNLOADER_MIDDLEWARES": {
        f"{_MIDDLEWARES}.offsite.OffsiteMiddleware": None,
        f"{_MIDDLEWARES}.httpauth.HttpAuthMiddleware": None,
        f"{_MIDDLEWARES}.downloadtimeout.DownloadTimeoutMiddleware": None,
    },
    "SPIDER_MIDDLEWARES": {
        "scrapy.spidermiddlewares.start.StartSpiderMiddleware": None,
        "scrapy.spidermiddlewares.urllength.UrlLengthMiddleware": None,
        "scrapy.spidermiddlewares.depth.DepthMiddleware": None,
        "scrapy.spidermiddlewares.metacopy.MetaCopyDetectionMiddleware": None,
    },
    # Schemes that are not used need not be imported.
    "DOWNLOAD_HANDLERS": {"https": None, "data": None, "file": None, "ftp": None, "s3": None},
}
# All defaults but the concurrency; the log would else go to the terminal.
IDIOMATIC: Mapping[str, Any] = {"LOG_LEVEL": "INFO"}


def prepare(job: str) -> None:
    """Import what a crawl would import when it starts."""
    install_reactor("twisted.internet.asyncioreactor.AsyncioSelectorReactor")
    settings = Settings(dict(IDIOMATIC if job.startswith("idiomatic") else TUNED))
    for components in _COMPONENTS:
        for component, value in settings.getwithbase(components).items():
            if value is not None:
                load_object(value if components == "DOWNLOAD_HANDLERS" else component)


def houses(site: str, workers: int, found: Found) -> None:
    _run(TunedHouses, TUNED, search_url(site), workers, found)


def crawl(start: str, workers: int, found: Found) -> None:
    _run(TunedCrawl, TUNED, start, workers, lambda item: found(item["url"]))


def idiomatic_houses(site: str, workers: int, found: Found) -> None:
    _run(IdiomaticHouses, IDIOMATIC, search_url(site), workers, found)


def idiomatic_crawl(start: str, workers: int, found: Found) -> None:
    _run(IdiomaticCrawl, IDIOMATIC, start, workers, lambda item: found(item["url"]))


def _run(spider: type[Any], settings: Mapping[str, Any], start: str, workers: int, found: Found) -> None:
    class HandOn:
        def process_item(self, item: Any) -> Any:
            found(item)
            return item

    process = AsyncCrawlerProcess(
        {
            **settings,
            # Both: the limit for one domain is 8, that for all 16, unless told otherwise.
            "CONCURRENT_REQUESTS": workers,
            "CONCURRENT_REQUESTS_PER_DOMAIN": workers,
            "ITEM_PIPELINES": {HandOn: 0},
        }
    )
    process.crawl(spider, start_url=start)
    process.start()


def _house(response: Any) -> House:
    def text(selector: str) -> str | None:
        found = response.css(selector).xpath("string()").get()
        return None if found is None else found.strip()

    return read_house(response.url, text, response.urljoin(response.css(PHOTO).attrib["href"]))


class StartSpider(scrapy.Spider):  # type: ignore[misc]  # not known here
    start_url: str

    async def start(self) -> AsyncGenerator[Any, None]:
        # Unlike `start_urls`, which is not filtered and thus asked for again when a page links to it.
        yield scrapy.Request(self.start_url)


class TunedHouses(StartSpider):
    name = "tuned-houses"

    def parse(self, response: Any) -> Iterator[Any]:
        following = response.css(f"{NEXT}::attr(href)").get()
        if following is not None:
            # What leads to more comes first.
            yield scrapy.Request(response.urljoin(following), priority=1)
        for link in response.css(f"{RESULT}::attr(href)").getall():
            yield scrapy.Request(response.urljoin(link), self.parse_house)

    def parse_house(self, response: Any) -> Iterator[House]:
        yield _house(response)


class TunedCrawl(StartSpider):
    name = "tuned-crawl"

    def __init__(self, start_url: str) -> None:
        super().__init__(start_url=start_url)
        self.origin = start_url[: start_url.index("/", len("http://"))]
        self.seen = {start_url}

    def parse(self, response: Any) -> Iterator[Any]:
        yield {"url": response.url}
        for link in response.xpath("//a/@href").getall():
            # As by hand: resolving in full only what needs it.
            target = self.origin + link if link.startswith("/") else response.urljoin(link)
            if target not in self.seen:
                self.seen.add(target)
                yield scrapy.Request(target)


class IdiomaticHouses(StartSpider):
    name = "idiomatic-houses"

    def parse(self, response: Any) -> Iterator[Any]:
        yield from response.follow_all(css=RESULT, callback=self.parse_house)
        yield from response.follow_all(css=NEXT, callback=self.parse)

    def parse_house(self, response: Any) -> Iterator[House]:
        yield _house(response)


class IdiomaticCrawl(StartSpider):
    name = "idiomatic-crawl"

    def parse(self, response: Any) -> Iterator[Any]:
        yield {"url": response.url}
        yield from response.follow_all(css="a", callback=self.parse)
