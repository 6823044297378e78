"""download, content_filter, extract_links, extract_text and store: a scripted network, and a real site."""

from __future__ import annotations

import asyncio
import gc
import json
import sqlite3
import time
from collections.abc import AsyncIterator, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from aioflow import Document, Engine, InputError, Record, Result, RunError, loads
from aioflow.demo.running import Site, running_site
from aioflow.runtime.session import MODES, Mode
from aioflow.testing import Answer, ScriptedSite, run_plan
from aioflow.web import Client
from tests.operators.running import plan

SITE = "http://a.example"
HTML = {"Content-Type": "text/html; charset=utf-8"}
PAGE = "<!DOCTYPE html><html lang=en><head><title>One</title></head><body><p>Text</p><a href=/two>Two</a>"


def fetched(
    statements: str, answers: Any, rows: list[dict[str, Any]], outputs: str = "out", **keywords: Any
) -> tuple[Result, ScriptedSite]:
    """Run statements on the relation `x`, over a scripted network without retries."""
    site = ScriptedSite({f"{SITE}{path}": answer for path, answer in answers.items()})
    http = {"retries": 0, "concurrency": 100, **keywords.pop("http", {})}
    services = {Client: site.client({"http": http})}
    configuration = {"http": {"health": False, **{name: http[name] for name in http if name == "body_bytes"}}}
    text = plan(statements, ["x"], outputs)
    return run_plan(text, services=services, configuration=configuration, x=rows, **keywords), site


def urls(*paths: str) -> list[dict[str, Any]]:
    return [{"url": f"{SITE}{path}", "depth": 1} for path in paths]


def counters(result: Result) -> dict[str, int]:
    return {name: number for step in result.statistics.steps for name, number in step.counters.items()}


def is_whole(result: Result) -> bool:
    return "out" not in result.statistics.marks or result.statistics.marks["out"].is_whole


# --- download -----------------------------------------------------------------------------------


def test_a_page_is_added_to_its_tuple() -> None:
    result, _ = fetched("download (x : out)", {"/": PAGE}, urls("/"))
    (row,) = result
    assert row["body"] == Document(PAGE, "html")
    assert (row["url"], row["depth"], row["final-url"]) == (f"{SITE}/", 1, f"{SITE}/")
    assert (row["status"], row["mime"], row["charset"], row["language"]) == (200, "text/html", "utf-8", "en")
    assert row["size"] == len(PAGE)
    assert isinstance(row["fetched"], datetime)
    assert row["fetched"].tzinfo is not None
    assert row["seconds"] >= 0


def test_redirects_lead_to_the_final_url() -> None:
    result, _ = fetched(
        "download (x : out)",
        {"/old": Answer(status=302, headers={"Location": "/new"}), "/new": PAGE},
        urls("/old"),
    )
    assert [(row["url"], row["final-url"]) for row in result] == [(f"{SITE}/old", f"{SITE}/new")]


def test_no_tuples_and_null_urls_make_no_requests() -> None:
    result, site = fetched("download (x : out)", {}, [])
    assert (list(result), site.urls) == ([], [])
    result, site = fetched("download (x : out)", {"/": PAGE}, [{"url": None}, {"url": f"{SITE}/"}])
    assert (len(list(result)), len(site.urls), counters(result)["null urls"]) == (1, 1, 1)


def test_a_missing_page_lacks_no_rows_and_outer_keeps_its_tuple() -> None:
    answers = {"/a": 404, "/b": 410, "/c": PAGE}
    result, _ = fetched("download (x : out)", answers, urls("/a", "/b", "/c"))
    assert [row["status"] for row in result] == [200]
    assert is_whole(result)
    assert counters(result)["missing pages"] == 2
    kept, _ = fetched("download (x : out) {OUTER}", answers, urls("/a", "/c"))
    assert sorted((row["status"], row["body"] is None) for row in kept) == [(200, False), (404, True)]


def test_failures_are_those_of_their_tuples_and_mark_the_relation() -> None:
    answers = {"/ok": PAGE, "/error": 500, "/large": Answer(b"x" * 2000, headers=HTML)}
    statement = 'download (x : out) {MAX_BYTES: "1kB"; ERRORS: failed}'
    result, _ = fetched(
        statement, answers, [*urls("/ok", "/error", "/large"), {"url": "ftp://x/"}], "out, failed"
    )
    assert [row["url"] for row in result.outputs["out"]] == [f"{SITE}/ok"]
    failures = {row["url"]: row["error-kind"] for row in result.outputs["failed"]}
    assert failures == {
        f"{SITE}/error": "HttpStatusError",
        f"{SITE}/large": "ResponseTooLargeError",
        "ftp://x/": "AddressRefusedError",
    }
    assert not is_whole(result)


def test_without_errors_a_failure_ends_the_run_and_names_the_page() -> None:
    with pytest.raises(RunError, match=r"download: HttpStatusError: http://a.example/error: 500"):
        fetched("download (x : out)", {"/error": 500}, urls("/error"))


def test_bodies_of_refused_types_are_null_and_counted() -> None:
    answers = {
        "/page": Answer(PAGE, headers=HTML),
        "/film": Answer(b"\x00" * 50, headers={"Content-Type": "video/mp4", "Content-Length": "50"}),
        "/liar": Answer(b"%PDF-1.7 not a page", headers=HTML),
        "/plain": Answer(PAGE, headers={"Content-Type": "text/plain"}),
    }
    result, _ = fetched('download (x : out) {TYPES: "text/html"}', answers, urls(*answers))
    found = {row["url"].removeprefix(SITE): (row["mime"], row["body"] is not None) for row in result}
    assert found == {
        "/page": ("text/html", True),
        "/film": ("video/mp4", False),
        "/liar": ("application/pdf", False),
        "/plain": ("text/html", True),
    }
    assert counters(result)["bodies refused"] == 2


def test_a_binary_body_is_null() -> None:
    result, _ = fetched("download (x : out)", {"/i": Answer(b"\x89PNG\r\n\x1a\n", headers={})}, urls("/i"))
    assert [(row["mime"], row["body"], row["size"]) for row in result] == [("image/png", None, 8)]


@pytest.mark.parametrize("mode", MODES)
def test_max_pages_bounds_the_requests_of_all_levels_exactly(mode: Mode) -> None:
    answers = {f"/{n}": f"<a href=/{2 * n}>x</a><a href=/{2 * n + 1}>x</a>" for n in range(1, 200)}
    text = """
    PLAN follow {
      INPUT: x (url char)  OUTPUT: pages  ONCE: "url"
      BODY {
        download (x : here) {MAX_PAGES: 10}
        extract_links (here : links)
        project (links, "url" : next)
        project (here, "url" : found)
        follow (next : rest)
        union (found, rest : pages) {ALL}
      }
    }"""
    site = ScriptedSite({f"{SITE}{path}": answer for path, answer in answers.items()})
    result = run_plan(
        text,
        services={Client: site.client({"http": {"retries": 0, "concurrency": 9}})},
        mode=mode,
        x=[{"url": f"{SITE}/1"}],
    )
    assert len(site.urls) == len(list(result)) == 10
    assert counters(result)["urls beyond MAX_PAGES"] > 0
    assert any("stopped at MAX_PAGES: 10" in note for note in result.statistics.notes)


@pytest.mark.parametrize("keys", ["score desc", "-score", "0, score desc"])
def test_waiting_tuples_are_asked_for_by_priority(keys: str) -> None:
    """The first one does not wait, so it cannot be overtaken."""
    rows = [{"url": f"{SITE}/{number}", "score": number} for number in range(1, 9)]
    answers = {f"/{number}": Answer(PAGE, seconds=1) for number in range(1, 9)}
    statement = f'download (x : out) {{PRIORITY: "{keys}"}}'
    _, site = fetched(statement, answers, rows, http={"concurrency": 1})
    assert [url.rpartition("/")[2] for url in site.urls] == ["1", "8", "7", "6", "5", "4", "3", "2"]


def test_without_a_priority_the_first_is_asked_for_first() -> None:
    rows = urls(*(f"/{number}" for number in range(9)))
    answers = {f"/{number}": Answer(PAGE, seconds=1) for number in range(9)}
    _, site = fetched("download (x : out)", answers, rows, http={"concurrency": 1})
    assert site.urls == [row["url"] for row in rows]


def test_an_early_end_gives_up_the_pages_on_their_way() -> None:
    site = ScriptedSite(lambda request: PAGE, seconds=1.0)
    text = plan("download (x : pages) limit (pages, 1 : out)", ["x"])
    client = site.client({"http": {"retries": 0, "concurrency": 3}})
    result = run_plan(text, services={Client: client}, x=urls(*(f"/{n}" for n in range(50))))
    assert len(list(result)) == 1
    assert len(site.urls) <= 6


async def _failing() -> AsyncIterator[dict[str, Any]]:
    yield {"url": f"{SITE}/"}
    await asyncio.sleep(1)
    raise OSError("the source broke")


@pytest.mark.parametrize(
    "statements",
    [
        "download (x : out)",
        "download (x : p) content_filter (p : out)",
        "download (x : p) soft_404_filter (p : out)",
        "download (x : p) extract_links (p : out)",
        "download (x : p) extract_text (p : out)",
    ],
)
def test_a_failure_upstream_ends_the_run_and_leaves_nothing_behind(statements: str) -> None:
    site = ScriptedSite({f"{SITE}/": PAGE})
    text = plan(statements, ["x (url char)"])
    with pytest.raises(InputError, match="the source broke"):
        run_plan(text, services={Client: site.client({})}, x=_failing())


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ('download (x : out) {TYPES: "html"}', "no media type"),
        ('download (x : out) {MAX_BYTES: "much"}', "must be a size"),
        ("download (x : out) {SECONDS: 0}", "above 0"),
        ('extract_links (x : out) {TAGS: "p"}', "no element with a link"),
        ("soft_404_filter (x : out)", "unknown attribute 'body'"),
        ("extract_links (x : out)", "unknown attribute 'body'"),
        ('content_filter (x : out) {LANGUAGES: ""}', "list of languages"),
        ("store (x : out)", "a table, or to a FOLDER"),
        ('store (x, "pages" : out) {FOLDER: "f"}', "a table, or to a FOLDER"),
    ],
)
def test_mistakes_are_found_before_the_run(statement: str, message: str) -> None:
    mistakes = Engine().check(loads(plan(statement, ["x (url char, depth number)"])))
    assert any(message in each.message for each in mistakes if each.severity == "error")


# --- content_filter -----------------------------------------------------------------------------


def page(**values: Any) -> dict[str, Any]:
    known = {"url": "u", "mime": "text/html", "size": 100, "language": None, "body": Document("<p>", "html")}
    return {**known, **values}


def filtered(options: str, *rows: dict[str, Any]) -> tuple[list[str], dict[str, str]]:
    """The URLs of the pages that are kept, and the reasons of the others."""
    text = plan(f"content_filter (x : kept, refused) {options}", ["x"], "kept, refused")
    result = run_plan(text, x=[{**row, "url": str(number)} for number, row in enumerate(rows)])
    refused = {row["url"]: row["reason"] for row in result.outputs["refused"]}
    return [row["url"] for row in result.outputs["kept"]], refused


def test_markup_is_kept_and_other_pages_leave_with_the_reason() -> None:
    kept, refused = filtered(
        "",
        page(),
        page(mime="application/xhtml+xml"),
        page(mime="application/rss+xml"),
        page(mime="application/pdf", body=None),
        page(mime="text/html", body=None),
        page(mime=None, body="<!DOCTYPE html><p>"),
        page(mime=None, body="words"),
    )
    assert kept == ["0", "1", "2", "5"]
    assert refused == {
        "3": "the type is application/pdf",
        "4": "there is no body",
        "6": "the type is text/plain",
    }


def test_sizes_and_languages_can_be_bounded() -> None:
    kept, refused = filtered(
        '{MIN_SIZE: 10; MAX_SIZE: "1kB"; LANGUAGES: "en, de-AT"}',
        page(size=9),
        page(size=10),
        page(size=1001),
        page(language="EN-gb"),
        page(language="de"),
        page(language="de-at"),
        page(size=None),
    )
    assert kept == ["1", "3", "5"]
    assert refused == {
        "0": "it is too small",
        "2": "it is too large",
        "4": "the language is de",
        "6": "it is too small",
    }


def test_a_filter_counts_by_reason_and_takes_nothing_from_nothing() -> None:
    text = plan("content_filter (x : kept, out)", ["x"])
    result = run_plan(text, x=[page(mime="image/png", body=None)] * 3)
    assert counters(result)["refused: the type is image/png"] == 3
    assert list(run_plan(text, x=[])) == []


# --- extract_links ------------------------------------------------------------------------------


def test_links_are_tuples_of_their_own() -> None:
    statements = 'download (x : p) extract_links (p : out) {KEEP: "charset"}'
    result, _ = fetched(statements, {"/": PAGE}, urls("/"))
    assert [dict(row) for row in result] == [
        {
            "url": f"{SITE}/two",
            "anchor": "Two",
            "rel": None,
            "tag": "a",
            "position": 1,
            "depth": 2,
            "parent": f"{SITE}/",
            "charset": "utf-8",
        }
    ]


def test_columns_that_nobody_reads_are_not_made() -> None:
    both = 'extract_links (x : links) project (links, "url, anchor" : out)'
    (row,) = run_plan(plan(both, ["x"]), x=[{"url": SITE + "/", "body": Document(PAGE, "html")}])
    assert dict(row) == {"url": f"{SITE}/two", "anchor": "Two"}


def test_bad_xml_is_a_failure_of_its_tuple() -> None:
    rows = [
        {"url": f"{SITE}/", "body": Document("<feed><link href='/e'/></feed>", "xml")},
        {"url": f"{SITE}/bad", "body": Document("<feed><link></feed>", "xml")},
    ]
    text = plan("extract_links (x : out) {ERRORS: failed}", ["x"], "out, failed")
    result = run_plan(text, x=rows)
    assert [row["url"] for row in result.outputs["out"]] == [f"{SITE}/e"]
    assert [row["url"] for row in result.outputs["failed"]] == [f"{SITE}/bad"]
    with pytest.raises(RunError, match="extract_links"):
        run_plan(plan("extract_links (x : out)", ["x"]), x=rows)


def test_a_page_that_nests_too_deeply_makes_the_links_partial() -> None:
    rows = [{"url": f"{SITE}/", "body": Document("<div>" * 5000 + "<a href=/x>x</a>", "html")}]
    result = run_plan(plan("extract_links (x : out)", ["x"]), x=rows)
    assert [row["url"] for row in result] == [f"{SITE}/x"]
    assert not is_whole(result)


LONG = "".join(
    f'<p>Some words of a long page</p><a href="/p/{number}">Link {number}</a>' for number in range(90_000)
)


@pytest.fixture
def young_heap() -> Iterator[None]:
    """Objects of other tests are out of sight for the garbage collector: it would take its time with them."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("young_heap")
async def test_a_long_page_does_not_keep_the_event_loop_waiting() -> None:
    assert len(LONG) > 5_000_000
    longest = 0.0

    async def watch() -> None:
        nonlocal longest
        while True:
            # Of the processor: on a busy machine others take the rest.
            began = time.thread_time()
            await asyncio.sleep(0.005)
            longest = max(longest, time.thread_time() - began)

    text = plan("extract_links (x : out) extract_text (x : texts)", ["x"], "out, texts")
    watching = asyncio.create_task(watch())
    async with Engine(configuration={"http": {"health": False}}) as engine:
        result = await engine.run(loads(text), x=[{"url": f"{SITE}/", "body": Document(LONG, "html")}])
    watching.cancel()
    await asyncio.wait([watching])
    assert len(result.outputs["out"]) == 90_000
    assert len(result.outputs["texts"][0]["text"]) > 2_000_000
    assert longest < 0.25


# --- extract_text -------------------------------------------------------------------------------


def test_titles_and_texts_are_added() -> None:
    rows: list[dict[str, Any]] = [{"url": "1", "body": Document(PAGE, "html")}, {"url": "2", "body": None}]
    result = run_plan(plan("extract_text (x : out)", ["x"]), x=rows)
    assert [(row["url"], row["title"], row["text"]) for row in result] == [
        ("1", "One", "Text Two"),
        ("2", None, None),
    ]


def test_a_title_alone_needs_no_text_that_could_fail() -> None:
    rows = [{"body": Document("<feed><title>T</title>", "xml")}]
    titles = 'extract_text (x : texts) project (texts, "title" : out)'
    assert [row["title"] for row in run_plan(plan(titles, ["x"]), x=rows)] == ["T"]
    failed = run_plan(plan("extract_text (x : out) {ERRORS: failed}", ["x"], "out, failed"), x=rows)
    assert [row["error-kind"] for row in failed.outputs["failed"]] == ["BadXmlError"]


# --- store --------------------------------------------------------------------------------------


def pages_of(*texts: str) -> list[dict[str, Any]]:
    return [
        {
            "url": f"{SITE}:80/{number}?b=1&a=2#top",
            "final-url": f"{SITE}/{number}",
            "status": 200,
            "mime": "text/html",
            "language": "en",
            "size": len(text),
            "depth": 1,
            "fetched": datetime(2026, 1, 2, 3, 4, 5),
            "body": Document(f"<title>{text}</title><p>{text} text", "html"),
        }
        for number, text in enumerate(texts)
    ]


def table(path: Path) -> list[tuple[Any, ...]]:
    with sqlite3.connect(path) as connection:
        return list(connection.execute("select url, title, text, depth from pages order by url"))


@pytest.mark.parametrize("mode", MODES)
def test_pages_are_stored_under_their_canonical_urls_and_again_without_harm(
    tmp_path: Path, mode: Mode
) -> None:
    configuration = {"database": {"default": {"url": f"sqlite:{tmp_path / 'p.db'}"}}}
    text = plan('store (x, "pages" : out)', ["x"])
    for first in ("One", "Uno"):
        result = run_plan(text, configuration=configuration, x=pages_of(first, "Two"), mode=mode)
        assert [row["title"] for row in result] == [first, "Two"]
        assert table(tmp_path / "p.db") == [
            (f"{SITE}/0?a=2&b=1", first, f"{first} text", 1),
            (f"{SITE}/1?a=2&b=1", "Two", "Two text", 1),
        ]


def test_a_failed_run_stores_nothing(tmp_path: Path) -> None:
    configuration = {"database": {"default": {"url": f"sqlite:{tmp_path / 'p.db'}"}}}
    rows = pages_of("One")
    rows[0]["body"] = Document("<a><b></a>", "xml")
    with pytest.raises(RunError):
        run_plan(
            plan('store (x, "pages" : out)', ["x"]), configuration=configuration, x=[*pages_of("Two"), *rows]
        )
    with sqlite3.connect(tmp_path / "p.db") as connection:
        assert list(connection.execute("select name from sqlite_master where name = 'pages'")) == []


def in_folder(tmp_path: Path, rows: Any, folder: str = "pages") -> Result:
    program = loads(
        plan(f'store (x : out) {{FOLDER: "{folder}"}}', ["x"]), folder=tmp_path, name=str(tmp_path / "p")
    )
    return run_plan(program, x=rows)


def index(tmp_path: Path) -> dict[str, dict[str, Any]]:
    lines = (tmp_path / "pages" / "index.jsonl").read_text().splitlines()
    entries = [json.loads(line) for line in lines]
    assert len({entry["url"] for entry in entries}) == len(entries)
    return {entry["title"]: entry for entry in entries}


def test_pages_become_files_with_an_index(tmp_path: Path) -> None:
    assert len(list(in_folder(tmp_path, pages_of("One", "Zwei")))) == 2
    entries = index(tmp_path)
    assert set(entries) == {"One", "Zwei"}
    one = entries["One"]
    assert (tmp_path / "pages" / one["file"]).read_text() == "<title>One</title><p>One text"
    assert one["file"].endswith(".html")
    assert (one["url"], one["status"], one["fetched"]) == (f"{SITE}/0?a=2&b=1", 200, "2026-01-02T03:04:05")
    assert "text" not in one
    assert not list((tmp_path / "pages").rglob("*.part"))


def test_a_folder_keeps_the_pages_of_earlier_crawls_and_replaces_those_that_come_again(
    tmp_path: Path,
) -> None:
    list(in_folder(tmp_path, pages_of("One", "Two")))
    list(in_folder(tmp_path, [*pages_of("Uno"), *pages_of("again")]))
    entries = index(tmp_path)
    assert set(entries) == {"Uno", "Two"}
    assert "Uno" in (tmp_path / "pages" / entries["Uno"]["file"]).read_text()
    list(in_folder(tmp_path, []))
    assert set(index(tmp_path)) == {"Uno", "Two"}


def test_a_folder_outside_of_that_of_the_plan_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="leads out of the folder"):
        in_folder(tmp_path, pages_of("One"), "../elsewhere")


def test_a_failed_run_leaves_the_index_as_it_was(tmp_path: Path) -> None:
    list(in_folder(tmp_path, pages_of("One")))
    before = (tmp_path / "pages" / "index.jsonl").read_bytes()
    bad = pages_of("x", "Two")[1:]
    bad[0]["body"] = Document("<a><b></a>", "xml")
    with pytest.raises(RunError):
        in_folder(tmp_path, bad)
    assert (tmp_path / "pages" / "index.jsonl").read_bytes() == before
    assert not list((tmp_path / "pages").rglob("*.part"))


# --- empty relations ----------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "statement",
    [
        "download (x : out)",
        "content_filter (x : out)",
        "content_filter (x : _, out)",
        "soft_404_filter (x : out)",
        "soft_404_filter (x : _, out)",
        "extract_links (x : out)",
        'extract_links (x : out) {KEEP: "site"}',
        "extract_text (x : out)",
        'store (x : out) {FOLDER: "pages"}',
    ],
)
def test_nothing_comes_of_nothing_even_if_its_attributes_are_unknown(
    tmp_path: Path, statement: str, mode: Mode
) -> None:
    program = loads(plan(statement, ["x"]), folder=tmp_path, name=str(tmp_path / "p"))
    assert list(run_plan(program, x=[], mode=mode)) == []


# --- a real site --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with running_site() as running:
        yield running


@pytest.mark.parametrize("mode", MODES)
async def test_the_blocks_work_on_a_real_site_in_every_mode(site: Site, mode: Mode) -> None:
    text = plan(
        "download (x : all) content_filter (all : pages, refused) extract_links (pages : links) "
        "extract_text (pages : texts)",
        ["x"],
        "links, texts, refused",
    )
    given = [
        {"url": f"{site.farm_url}/farm/0"},
        {"url": f"{site.url}/api/houses?offset=0"},
        {"url": f"{site.url}/no"},
    ]
    async with Engine(configuration=site.configuration()) as engine:
        result = await engine.run(loads(text), x=given, mode=mode)
    assert len(result.outputs["links"]) == 20
    assert result.outputs["links"][0]["anchor"] == "Page 1 of the farm"
    assert [row["title"] for row in result.outputs["texts"]] == ["Farm, page 0"]
    assert [row["reason"] for row in result.outputs["refused"]] == ["the type is application/json"]


async def test_a_reader_that_leaves_early_leaves_no_connection_open(site: Site) -> None:
    text = plan("download (x : out)", ["x"])
    async with Engine(configuration=site.configuration()) as engine:
        rows = [{"url": f"{site.farm_url}/farm/{number}"} for number in range(100)]
        async with engine.stream(loads(text), x=rows) as stream:
            async for row in stream:
                assert isinstance(row, Record)
                break
        # The next run of the engine finds all permits and turns free.
        assert len(await engine.run(loads(text), x=rows)) == 100
