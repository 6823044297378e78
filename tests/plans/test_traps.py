"""Crawls of the bundled site's traps: they end, find all articles, and say what they left out."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from aioflow import Engine, Result, loads
from aioflow.demo.running import Site, running_site
from aioflow.demo.site.traps import ARTICLES, article_path
from aioflow.testing import Answer, ScriptedSite, run_plan
from aioflow.web import Client

A = "http://a.example"
OUTPUTS = "pages, refused"
# The requests for the traps and for the articles, by what comes after /traps/, and their reasons.
REQUESTS = {
    "": 1,
    "articles": 3 + ARTICLES,
    "moved": 3,
    "calendar": 5,  # the first month, and two before and after it: pages are three links away
    "session": 2,  # one for each page: the ids are left out of their addresses
    "circle": 3,  # each page of the circle once
    "hops": 11,  # the first page and ten redirects
    "lost": 2 + 1,  # the pages with links on the home page, and one that cannot exist
    "story": 6,  # without fragments and tracking parameters
    "a": 2,  # a path is repeated once
    "shop": 1 + 13 + 13 * 12,
    "endless": 1,
    "huge": 1,
}
# Where nothing else bounds a crawl: the months of a calendar, and the combinations of parameters.
MONTHS = 12 * (datetime.now(UTC).year + 3 - 1980 + 1)
COMBINATIONS = 2_000


def plan(options: str = "", statements: str = "", outputs: str = OUTPUTS) -> str:
    return f"""
    USE "crawl.plan"
    PLAN traps
    {{
      INPUT: start (url char)
      OUTPUT: {outputs}
      BODY {{ crawl (start : pages, _, refused) {{DOMAINS: "127.0.0.1"; {options}}} {statements} }}
    }}
    """


async def crawled(site: Site, text: str) -> Result:
    site.clear_log()
    async with Engine(configuration=site.configuration()) as engine:
        return await engine.run(loads(text), start=[{"url": f"{site.url}/traps/"}])


def requests(site: Site) -> Counter[str]:
    """The number of requests for each trap."""
    paths = [entry.path for entry in site.log() if entry.path != "/robots.txt"]
    assert all(path.startswith("/traps/") for path in paths)
    return Counter(re.split(r"[/?;]", path.removeprefix("/traps/"))[0] for path in paths)


def reasons(result: Result) -> Counter[str]:
    """The reasons of refusals without the addresses in them."""
    texts = [row["reason"].rpartition(": ")[2] for row in result.outputs["refused"]]
    return Counter(re.sub(r"of [0-9]+ bytes, which is ", "of ", text) for text in texts)


def articles(result: Result, site: Site) -> set[str]:
    wanted = {site.url + article_path(number) for number in range(1, ARTICLES + 1)}
    return wanted & {row["final-url"] for row in result.outputs["pages"]}


async def test_the_defaults_come_through(site: Site) -> None:
    result = await crawled(site, plan())
    assert len(articles(result, site)) == ARTICLES
    assert requests(site) == REQUESTS
    assert not result.statistics.notes, "it ended by itself"


async def test_a_crawl_says_what_it_left_out(site: Site) -> None:
    result = await crawled(site, plan())
    assert reasons(result) == {
        "sessions": 3,
        "path-loops": 1,
        "soft 404": 2,
        "redirected in a circle": 1,
        "redirected more often than 10 times": 1,
        "a body of more than 10000000 bytes": 2,
    }
    assert not result.statistics.marks["pages"].is_whole
    counted = {name: number for step in result.statistics.steps for name, number in step.counters.items()}
    assert counted == {"refused: sessions": 3, "refused: path-loops": 1, "refused: soft 404": 2, "probes": 1}


async def test_traps_end_where_the_depth_has_no_end(site: Site) -> None:
    result = await crawled(site, plan("DEPTH: 100000; MAX_PAGES: 100000"))
    assert len(articles(result, site)) == ARTICLES
    assert requests(site) == REQUESTS | {"calendar": MONTHS, "shop": 1 + COMBINATIONS}
    found = reasons(result)
    assert found["calendar"] == 2
    assert found["parameters"] > COMBINATIONS
    assert not result.statistics.notes


async def test_pages_under_several_addresses_are_marked(site: Site) -> None:
    text = plan(
        'FIELDS: "url, text"; FOLLOW: "/story/"',
        "near_duplicates (pages : marked)",
        outputs="marked",
    )
    marked = (await crawled(site, text)).outputs["marked"]
    stories = [row for row in marked if "/story" in row["url"]]
    assert len(stories) == REQUESTS["story"]
    (first,) = [row["url"] for row in stories if row["duplicate-of"] is None]
    assert [row["duplicate-of"] for row in stories].count(first) == len(stories) - 1


# --- robots.txt ---------------------------------------------------------------------------------


@pytest.fixture
def own_site() -> Iterator[Site]:
    with running_site() as running:
        yield running


async def test_a_robots_txt_that_has_changed_counts_for_the_next_client(own_site: Site) -> None:
    site = own_site
    configuration: dict[str, Any] = {"http": {"allow": [site.host], "health": False}}
    text = plan('FOLLOW: "/articles/"', outputs="pages, refused")

    async def crawl(engine: Engine) -> tuple[int, int]:
        result = await engine.run(loads(text), start=[{"url": f"{site.url}/traps/articles/"}])
        refusals = [row["reason"] for row in result.outputs["refused"]]
        return len(result.outputs["pages"]), sum("robots.txt forbids it" in each for each in refusals)

    async with Engine(configuration=configuration) as engine:
        assert await crawl(engine) == (3 + ARTICLES - 1, 0)
        site.change_robots("User-agent: *\nDisallow: /traps/articles/2\n")
        assert await crawl(engine) == (3 + ARTICLES - 1, 0)
    async with Engine(configuration=configuration) as engine:
        assert await crawl(engine) == (3 + ARTICLES - 1 - 11, 11)


def test_a_crawl_of_days_reads_robots_txt_again() -> None:
    def answer(request: Any) -> Any:
        if request.url.endswith("/robots.txt"):
            asked = sum(each.url == request.url for each in site.requests)
            return Answer(b"" if asked == 1 else b"User-agent: *\nDisallow: /", headers={})
        number = int(request.url.rpartition("/")[2])
        return Answer(f"<!DOCTYPE html><title>{number}</title><a href=/{number + 1}>on", seconds=3600.0)

    site = ScriptedSite(answer)
    result = run_plan(
        loads(plan("DEPTH: 1000; SECONDS: 7200").replace("127.0.0.1", "a.example")),
        services={Client: site.client({"http": {"retries": 0, "robots": True}})},
        configuration={"http": {"health": False}},
        start=[{"url": f"{A}/0"}],
    )
    assert len(result.outputs["pages"]) == 24
    (refused,) = result.outputs["refused"]
    assert refused["url"] == f"{A}/24"
    assert "robots.txt forbids it" in refused["reason"]
    assert site.urls.count(f"{A}/robots.txt") == 2
