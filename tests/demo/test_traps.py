"""The traps of the demonstration's site: each goes on without end, and the articles are all there."""

from __future__ import annotations

import re
from urllib.error import HTTPError
from urllib.parse import urljoin
from urllib.request import urlopen

import pytest
from selectolax.lexbor import LexborHTMLParser

from aioflow.demo.running import Site
from aioflow.demo.site.traps import ARTICLES, article_path
from tests.clocks import PATIENCE_SECONDS


def links_at(url: str) -> dict[str, str]:
    """The links of a page by their texts."""
    with urlopen(url, timeout=PATIENCE_SECONDS) as answer:
        page = LexborHTMLParser(answer.read())
        return {link.text(): urljoin(answer.url, link.attributes["href"]) for link in page.css("a")}


def test_lists_lead_to_all_articles_but_one_that_has_moved(site: Site) -> None:
    pages = [f"{site.url}/traps/articles/?page={page}" for page in (1, 2, 3)]
    found = [url for page in pages for url in links_at(page).values() if "page=" not in url]
    wanted = [site.url + article_path(number) for number in range(1, ARTICLES + 1)]
    assert found == wanted[:-1]
    with urlopen(links_at(f"{site.url}/traps/")["An article that has moved"]) as answer:
        assert answer.url == wanted[-1]


@pytest.mark.parametrize(
    ("start", "text"),
    [
        ("calendar/2026/05/", "Next month"),
        ("calendar/2026/05/", "Previous month"),
        ("a/b/", "Here"),
        ("lost/offers", "Or this"),
        ("lost/offers", "You may like this"),
        ("session/1", "First, id as a parameter"),
        ("session/1", "Second, id of a segment"),
        ("session/1", "Third, id as a segment"),
        ("shop", "colour: red"),
        ("shop?size=large", "order: price"),
    ],
)
def test_a_trap_leads_on_and_on(site: Site, start: str, text: str) -> None:
    url, seen = f"{site.url}/traps/{start}", set()
    for step in range(6):
        seen.add(url)
        links = links_at(url)
        url = links[text] if text in links else links["colour: blue"]
        assert url not in seen, step


@pytest.mark.parametrize("path", ["circle/1", "hops/1"])
def test_redirects_never_arrive(site: Site, path: str) -> None:
    with pytest.raises(HTTPError, match="redirect"):
        urlopen(f"{site.url}/traps/{path}", timeout=PATIENCE_SECONDS)


def test_the_story_has_ten_addresses_and_one_text(site: Site) -> None:
    links = links_at(f"{site.url}/traps/")
    urls = {url for text, url in links.items() if text.startswith("Story")}
    assert len(urls) == 10
    texts = set()
    for url in urls:
        with urlopen(url, timeout=PATIENCE_SECONDS) as answer:
            texts.update(re.findall(r"<p>.*</p>", answer.read().decode()))
    assert len(texts) == 1


def test_bodies_are_too_large(site: Site) -> None:
    for path in ("endless", "huge"):
        with urlopen(f"{site.url}/traps/{path}", timeout=PATIENCE_SECONDS) as answer:
            assert len(answer.read(11_000_000)) == 11_000_000


def test_nothing_else_of_the_site_knows_of_the_traps(site: Site) -> None:
    for path in ("/", "/sitemap.xml", "/robots.txt", "/feed.xml"):
        with urlopen(site.url + path, timeout=PATIENCE_SECONDS) as answer:
            assert b"/traps" not in answer.read()
    with pytest.raises(HTTPError, match="404"):
        urlopen(f"{site.url}/traps/nothing", timeout=PATIENCE_SECONDS)
    with pytest.raises(HTTPError, match="404"):
        urlopen(f"{site.url}/traps/articles/1-no-such", timeout=PATIENCE_SECONDS)


def test_robots_txt_may_change_unlogged(site: Site) -> None:
    before = len(site.log())
    site.change_robots("User-agent: *\nDisallow: /traps/{x}\n")
    try:
        with urlopen(f"{site.url}/robots.txt", timeout=PATIENCE_SECONDS) as answer:
            assert answer.read() == b"User-agent: *\nDisallow: /traps/{x}\n"
    finally:
        site.change_robots("")
    with urlopen(f"{site.url}/robots.txt", timeout=PATIENCE_SECONDS) as answer:
        assert b"Disallow: /_log" in answer.read()
    assert [entry.path for entry in site.log()[before:]] == ["/robots.txt"] * 2
