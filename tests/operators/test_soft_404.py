"""soft_404_filter: pages that are not there, whatever their status says, and pages that only sound so."""

from __future__ import annotations

from typing import Any

import pytest

from aioflow import Document, Result
from aioflow.crawl.soft_404 import _MOST_PROBES, address_beside, sounds_missing
from aioflow.runtime.session import MODES, Mode
from aioflow.testing import Answer, ScriptedSite, run_plan
from aioflow.web import Client
from aioflow.web.errors import ConnectionFailedError
from tests.operators.running import plan

SITE = "http://a.example"
STATEMENTS = "download (x : all) soft_404_filter (all : kept, refused)"


def missing(request: Any) -> str:
    return (
        f"<title>Page not found</title><p>There is no {request.url} here. Please check the address, or go to "
        f"our first page. You may like <a href='{hash(request.url)}'>this one</a>, too."
    )


def article(title: str) -> str:
    return f"<title>{title}</title><p>A text about something else, and with many other words in it."


def checked(answers: Any, *paths: str, mode: Mode = "D+S+", **keywords: Any) -> tuple[Result, ScriptedSite]:
    site = ScriptedSite(answers)
    text = plan(keywords.pop("statements", STATEMENTS), ["x"], keywords.pop("outputs", "kept, refused"))
    services = {Client: site.client({"http": {"retries": 0, "concurrency": 100}})}
    rows = [{"url": f"{SITE}{path}"} for path in paths]
    configuration = {"http": {"health": False}}
    return run_plan(text, services=services, configuration=configuration, x=rows, mode=mode, **keywords), site


def paths(result: Result, output: str) -> list[str]:
    return sorted(row["url"].removeprefix(SITE) for row in result.outputs[output])


def counters(result: Result) -> dict[str, int]:
    return {name: number for step in result.statistics.steps for name, number in step.counters.items()}


@pytest.mark.parametrize("mode", MODES)
def test_pages_that_are_like_those_that_cannot_exist_are_refused(mode: Mode) -> None:
    def answer(request: Any) -> Any:
        return article("Here") if request.url.endswith("/here") else missing(request)

    result, site = checked(answer, "/a/1", "/a/2", "/a/here", "/b/3/", "/b/here", mode=mode)
    assert paths(result, "kept") == ["/a/here", "/b/here"]
    assert paths(result, "refused") == ["/a/1", "/a/2", "/b/3/"]
    assert {row["reason"] for row in result.outputs["refused"]} == {"soft 404"}
    assert counters(result)["refused: soft 404"] == 3
    assert len(site.urls) == 5 + 1


def test_a_page_about_missing_pages_is_kept_where_missing_pages_have_their_status() -> None:
    answers = {f"{SITE}/blog/404": article("The page was not found: a history of 404")}
    result, site = checked(answers, "/blog/404")
    assert (paths(result, "kept"), paths(result, "refused")) == (["/blog/404"], [])
    assert site.urls == [f"{SITE}/blog/404", address_beside(f"{SITE}/blog/404")]


def test_a_page_about_missing_pages_is_kept_if_missing_pages_look_otherwise() -> None:
    def answer(request: Any) -> Any:
        return article("Not found: a history") if request.url.endswith("/history") else missing(request)

    result, _ = checked(answer, "/history", "/no")
    assert (paths(result, "kept"), paths(result, "refused")) == (["/history"], ["/no"])


def test_a_redirect_to_a_page_of_errors_is_refused() -> None:
    def answer(request: Any) -> Any:
        if request.url.endswith("/error.html"):
            return "<title>Error 404</title><p>Our pages are elsewhere."
        return Answer(status=302, headers={"Location": "/error.html"})

    assert paths(checked(answer, "/x/y")[0], "refused") == ["/x/y"]


@pytest.mark.parametrize(
    "failure", [500, 403, ConnectionFailedError("no route"), Answer(b"%PDF-1.7", headers={})]
)
def test_a_page_is_kept_if_the_answer_beside_it_tells_nothing(failure: Any) -> None:
    def answer(request: Any) -> Any:
        return failure if "no-such-page" in request.url else missing(request)

    result, _ = checked(answer, "/a/1")
    assert paths(result, "kept") == ["/a/1"]
    assert not result.statistics.marks


def test_requests_are_one_for_a_folder_and_few_for_a_host() -> None:
    def answer(request: Any) -> Any:
        return 404 if "no-such-page" in request.url else missing(request)

    result, site = checked(answer, *(f"/{n // 2}/{n % 2}" for n in range(4 * _MOST_PROBES)))
    assert len(result.outputs["kept"]) == 4 * _MOST_PROBES
    assert len(site.urls) == 5 * _MOST_PROBES
    assert counters(result)["probes"] == _MOST_PROBES


def test_a_page_that_takes_long_to_read_is_kept() -> None:
    page = "<title>Not found</title><p>not found" + "<b>" * 100 + "<i " + "a=1 " * 100_000
    result, _ = checked(lambda request: page, "/a/1")
    assert paths(result, "kept") == ["/a/1"]


def test_the_first_page_of_a_site_is_always_there() -> None:
    result, site = checked(missing, "/")
    assert (paths(result, "kept"), len(site.urls)) == (["/"], 1)


def test_nothing_comes_of_nothing() -> None:
    result, site = checked(missing)
    assert (list(result.outputs["kept"]), list(result.outputs["refused"]), site.urls) == ([], [], [])


def test_an_early_end_asks_for_nothing_more() -> None:
    statements = "download (x : all) soft_404_filter (all : _, refused) limit (refused, 1 : out)"
    result, site = checked(missing, *(f"/{n}/a" for n in range(50)), statements=statements, outputs="out")
    assert len(list(result)) == 1
    assert sum("no-such-page" in url for url in site.urls) == 1


@pytest.mark.parametrize(
    ("page", "is_missing"),
    [
        ("<title>404</title>", True),
        ("<title>Peugeot 404,5</title>", False),
        ("<h1>Seite nicht gefunden</h1>", True),
        ("<h1>PAGE NOT FOUND</h1>", True),
        ("<p>Cette page est introuvable.", True),
        ("<p>ページが見つかりません", True),
        ("<script>x = 'not found'</script><p>All is well", False),
        ("<p>" + "words " * 200 + "not found", False),
        ("", False),
    ],
)
def test_what_sounds_missing(page: str, is_missing: bool) -> None:
    assert sounds_missing(Document(page, "html")) is is_missing
    assert not sounds_missing(Document(page, "xml"))
    assert not sounds_missing(page)
    assert not sounds_missing(None)


@pytest.mark.parametrize(
    ("url", "start", "end"),
    [
        ("/a/b.html?c=/d#e", "/a/no-such-page-", ".html"),
        ("/a/b/", "/a/no-such-page-", ""),
        ("/a", "/no-such-page-", ""),
    ],
)
def test_the_address_beside_a_page(url: str, start: str, end: str) -> None:
    found = address_beside(SITE + url)
    assert found is not None
    assert found.startswith(SITE + start)
    assert found.endswith(end)
    assert found == address_beside(SITE + url)
