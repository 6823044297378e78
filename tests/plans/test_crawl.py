"""plans/crawl.plan: the pages that are asked for, their order, and the reasons for those that are missing."""

from __future__ import annotations

from typing import Any

import pytest

from aioflow import Engine, Result, loads
from aioflow.crawl import PageLinks
from aioflow.demo.running import Site, running_site
from aioflow.demo.site.farm import farm_links
from aioflow.runtime.session import MODES, Mode
from aioflow.testing import Answer, ScriptedSite, run_plan
from aioflow.web import Client

SITE = "http://a.example"


def crawl(options: str, outputs: str = "pages") -> str:
    return f"""
    USE "crawl.plan"
    PLAN docs
    {{
      INPUT: start (url char)
      OUTPUT: {outputs}
      BODY {{ crawl (start : {outputs}) {{{options}}} }}
    }}
    """


async def crawled(site: Site, options: str, mode: Mode = "D+S+", outputs: str = "pages") -> Result:
    options = f'DOMAINS: "127.0.0.1"; {options}'
    async with Engine(configuration=site.configuration()) as engine:
        start = [{"url": f"{site.farm_url}/farm/0"}]
        return await engine.run(loads(crawl(options, outputs)), start=start, mode=mode)


def scripted(
    options: str, answers: Any, *starts: str, outputs: str = "pages, links, refused", **keywords: Any
) -> tuple[Result, ScriptedSite]:
    site = ScriptedSite({f"{SITE}{path}": answer for path, answer in answers.items()})
    client = site.client({"http": {"retries": 0, "concurrency": 100}})
    result = run_plan(
        loads(crawl(f'DOMAINS: "a.example"; {options}', outputs)),
        services={Client: client},
        configuration={"http": {"health": False}},
        start=[{"url": f"{SITE}{path}"} for path in starts or ("/",)],
        **keywords,
    )
    return result, site


def links_to(*paths: str) -> str:
    return "<!DOCTYPE html><title>Page</title>" + "".join(f'<a href="{path}">to {path}</a>' for path in paths)


def shortest_paths(most_depth: int) -> dict[int, int]:
    """The depth of each page of the farm."""
    depths, level = {0: 0}, [0]
    for depth in range(1, most_depth + 1):
        level = list(dict.fromkeys(to for page in level for to in farm_links(page) if to not in depths))
        depths |= dict.fromkeys(level, depth)
    return depths


@pytest.mark.parametrize("mode", MODES)
async def test_every_page_within_a_depth_is_found_once_by_the_shortest_way(site: Site, mode: Mode) -> None:
    result = await crawled(site, "DEPTH: 2", mode)
    found = [(int(row["url"].rpartition("/")[2]), row["depth"]) for row in result]
    assert len(found) == len(set(found)) > 100
    assert dict(found) == shortest_paths(2)


async def test_a_page_has_its_attributes(site: Site) -> None:
    (row,) = await crawled(site, "DEPTH: 0")
    values = dict(row)
    assert values.pop("fetched").tzinfo is not None
    assert values == {
        "url": f"{site.farm_url}/farm/0",
        "final-url": f"{site.farm_url}/farm/0",
        "status": 200,
        "mime": "text/html",
        "language": "en",
        "title": "Farm, page 0",
        "size": 1945,
        "depth": 0,
        "parent": None,
    }


async def test_fields_choose_the_attributes(site: Site) -> None:
    (row,) = await crawled(site, 'DEPTH: 0; FIELDS: "url, text"')
    assert list(dict(row)) == ["url", "text"]
    assert row["text"].startswith("Page 0 Every page of this farm")


@pytest.mark.parametrize("mode", MODES)
async def test_max_pages_is_the_number_of_pages_that_are_asked_for(mode: Mode) -> None:
    with running_site() as site:
        result = await crawled(site, "MAX_PAGES: 37", mode)
        assert len(list(result)) == 37
        assert any("stopped at MAX_PAGES: 37" in note for note in result.statistics.notes)


async def test_the_first_pages_of_a_bounded_crawl_are_the_nearest(site: Site) -> None:
    result = await crawled(site, "MAX_PAGES: 60; DEPTH: 9")
    depths = sorted(row["depth"] for row in result)
    nearest = sorted(shortest_paths(3).values())[:60]
    assert depths == nearest


def test_a_crawl_stays_on_its_domains_and_says_why_pages_are_missing() -> None:
    answers = {
        "/": links_to("/a", "/gone", "/broken", "/paper", "http://b.example/", "mailto:x@a.example"),
        "/a": links_to("/", "/a#top", "/b"),
        "/b": links_to(),
        "/broken": 500,
        "/paper": Answer(b"%PDF-1.7", headers={"Content-Type": "application/pdf"}),
    }
    result, site = scripted("DEPTH: 5", answers)
    assert sorted(site.urls) == [f"{SITE}{path}" for path in ("/", "/a", "/b", "/broken", "/gone", "/paper")]
    assert {row["url"]: row["depth"] for row in result.outputs["pages"]} == {
        f"{SITE}/": 0,
        f"{SITE}/a": 1,
        f"{SITE}/b": 2,
    }
    refused = {row["url"]: row["reason"] for row in result.outputs["refused"]}
    assert refused == {
        f"{SITE}/broken": f"{SITE}/broken: 500 Internal Server Error",
        f"{SITE}/paper": "the type is application/pdf",
        "http://b.example/": "domain",
    }
    links = [(row["parent"], row["url"], row["anchor"]) for row in result.outputs["links"]]
    assert (f"{SITE}/", "http://b.example/", "to http://b.example/") in links
    assert len(links) == 5 + 3


def test_patterns_choose_the_links_that_are_followed() -> None:
    answers = {"/": links_to("/docs/1", "/docs/print/2", "/shop"), "/docs/1": "1", "/shop": "2"}
    _, site = scripted('FOLLOW: "/docs/*"; SKIP: "/print/"', answers, outputs="pages")
    assert site.urls == [f"{SITE}/", f"{SITE}/docs/1"]


def test_without_start_there_is_nothing() -> None:
    result = run_plan(loads(crawl('DOMAINS: "a.example"')), start=[])
    assert list(result) == []


def test_a_failing_start_is_told_of() -> None:
    result, _ = scripted("DEPTH: 5", {"/": 503})
    assert list(result.outputs["pages"]) == []
    assert [row["url"] for row in result.outputs["refused"]] == [f"{SITE}/"]
    assert not result.statistics.marks["pages"].is_whole


def test_a_reader_that_has_enough_ends_the_crawl() -> None:
    site = ScriptedSite(lambda request: links_to(*(f"{request.url}/{n}" for n in range(5))), seconds=1.0)
    text = (
        crawl('DOMAINS: "a.example"; DEPTH: 100', "pages")
        .replace("crawl (start : pages)", "crawl (start : all)")
        .replace("} }\n    }", "} limit (all, 3 : pages) }\n    }")
    )
    client = site.client({"http": {"retries": 0, "concurrency": 2}})
    result = run_plan(loads(text), services={Client: client}, start=[{"url": f"{SITE}/"}])
    assert len(list(result)) == 3
    assert len(site.urls) < 10


def test_the_recursion_is_a_tail_call_so_that_depth_costs_nothing() -> None:
    answers = {f"/{n}": links_to(f"/{n + 1}") for n in range(400)}
    result, _ = scripted("DEPTH: 100000", answers, "/0", outputs="pages")
    assert len(list(result)) == 400


def test_a_slow_page_does_not_make_the_way_longer() -> None:
    answers = {
        "/": links_to("/slow", "/a"),
        "/slow": Answer(links_to("/x"), seconds=60.0),
        "/a": links_to("/b"),
        "/b": links_to("/x"),
        "/x": links_to(),
    }
    result, _ = scripted("DEPTH: 9", answers, outputs="pages")
    assert {row["url"]: row["depth"] for row in result}[f"{SITE}/x"] == 2


def test_links_that_nobody_takes_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    from aioflow.operators import fetching

    read: list[Any] = []

    def links_of(*about: Any) -> PageLinks:
        read.append(about)
        return PageLinks([])

    monkeypatch.setattr(fetching, "links_of", links_of)
    scripted("DEPTH: 0", {"/": links_to("/a")}, outputs="pages")
    assert not read
    scripted("DEPTH: 0", {"/": links_to("/a")}, outputs="pages, links")
    assert len(read) == 1
