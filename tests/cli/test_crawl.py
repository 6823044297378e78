"""`aioflow crawl`: a crawl of some URLs, shown as `aioflow run` shows rows."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from aioflow.demo.running import running_site
from tests.cli.conftest import Ended
from tests.cli.site import Site, served

Command = Callable[..., Ended]


@pytest.fixture
def site(folder: Path) -> Iterator[Site]:
    with served() as running:
        (folder / "aioflow.toml").write_text(f'[http]\nallow = ["{running.host}"]\nhealth = false\n')
        yield running


def rows(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_the_pages_of_a_site_are_shown_as_json_lines(site: Site, command: Command) -> None:
    done = command("crawl", site.url("/houses"))
    assert (done.code, done.messages) == (0, "")
    found = rows(done.output)
    assert [row["url"].removeprefix(site.url("")) for row in found] == [
        "/houses",
        "/houses?page=2",
        "/houses?page=3",
    ]
    assert [row["depth"] for row in found] == [0, 1, 2]
    assert [row["title"] for row in found] == ["Houses 1", "Houses 2", "Houses 3"]


def test_depth_and_max_pages_bound_a_crawl(site: Site, command: Command) -> None:
    assert len(rows(command("crawl", site.url("/houses"), "--depth", "1").output)) == 2
    site.requests.clear()
    done = command("crawl", site.url("/houses"), "--max-pages", "1")
    assert len(rows(done.output)) == 1
    assert site.requests == ["GET /robots.txt", "GET /houses"]
    assert "stopped at MAX_PAGES: 1" in done.messages


def test_patterns_choose_the_links(site: Site, command: Command) -> None:
    found = rows(command("crawl", site.url("/houses"), "--skip", "*page=3").output)
    assert len(found) == 2
    assert "GET /house/1" in site.requests
    site.requests.clear()
    command("crawl", site.url("/houses"), "--follow", "/page=/")
    assert "GET /house/1" not in site.requests


def test_rows_go_to_a_file_in_its_format(site: Site, command: Command, folder: Path) -> None:
    done = command("crawl", site.url("/houses"), "--fields", "url, title", "-O", "out.csv")
    assert (done.code, done.output) == (0, "")
    lines = (folder / "out.csv").read_text().splitlines()
    assert lines[:2] == ["url,title", f"{site.url('/houses')},Houses 1"]


def test_links_and_refusals_are_shown_if_asked_for(site: Site, command: Command) -> None:
    links = rows(command("crawl", site.url("/houses"), "--depth", "0", "--show", "links").output)
    assert [link["anchor"] for link in links] == ["1 Oak Street", "2 Elm Street", "3 Ash Avenue", "Next"]
    refused = rows(command("crawl", site.url("/data.json"), "--show", "refused").output)
    assert [row["reason"] for row in refused] == ["the type is application/json"]


def test_robots_txt_is_obeyed(site: Site, command: Command) -> None:
    done = command("crawl", site.url("/private"), "--show", "refused")
    (row,) = rows(done.output)
    assert "robots.txt" in row["reason"]
    assert "GET /private" not in site.requests


def test_the_account_and_the_report_are_those_of_a_run(
    site: Site, command: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AIOFLOW_ACCOUNT")
    done = command("crawl", site.url("/houses"), "--report", "report.json")
    assert "3 rows in" in done.messages
    assert "from 1 host" in done.messages
    report = json.loads((folder / "report.json").read_text())
    assert (report["plan"], report["outcome"]) == ("crawl", "ended")
    assert report["parameters"]["domains"] == "127.0.0.1"


def test_the_account_names_the_traps(command: Command, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AIOFLOW_ACCOUNT")
    with running_site() as site:
        (folder / "aioflow.toml").write_text(f'[http]\nallow = ["{site.host}"]\nhealth = false\n')
        done = command("crawl", f"{site.url}/traps/", "--report", "report.json")
    assert done.code == 0
    assert "left out 4 links: sessions 3, path-loops 1" in done.messages
    assert "left out 2 pages: soft 404 2" in done.messages
    assert "4 failures: 2 ResponseTooLargeError, 2 BadResponseError" in done.messages
    assert json.loads((folder / "report.json").read_text())["crawl"] == {
        "left-out": {"sessions": 3, "path-loops": 1},
        "pages-left-out": {"soft 404": 2},
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("example.org",), "did you mean https://example.org?"),
        (("ftp://example.org/",), "is no http(s) URL"),
        (("http://a.example/", "--show", "pgaes"), "did you mean 'pages'?"),
        (("http://a.example/", "--depth", "-1"), "--depth"),
        (("http://a.example/", "-o", "a", "-O", "b"), "give one of them"),
        (("http://a.example/", "--fields", "ulr"), "ulr"),
    ],
)
def test_mistakes_are_told(command: Command, arguments: tuple[str, ...], message: str) -> None:
    done = command("crawl", *arguments)
    assert done.code == 2
    assert message in done.messages


def test_an_address_that_no_plan_may_reach_is_refused_with_the_reason(command: Command) -> None:
    done = command("crawl", "http://127.0.0.1:9/", "--show", "refused")
    assert "127.0.0.1" in rows(done.output)[0]["reason"]


def test_without_pages_the_way_to_the_reasons_is_told(command: Command) -> None:
    done = command("crawl", "http://127.0.0.1:9/")
    assert done.code == 3
    assert "`--show refused` lists the addresses of which no page came, and why" in done.messages
