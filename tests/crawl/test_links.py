"""The links of a page, as rows of LINKS."""

from __future__ import annotations

import time
from typing import Any

import pytest

from aioflow.crawl.links import LINKS, LinkReading, PageLinks, links_aside, links_of, unpacked
from aioflow.relation import Document
from aioflow.xml import BadXmlError

PAGE = "http://a.example/dir/page?x=1"


def read(markup: str, url: str = PAGE, kind: Any = "html", **options: Any) -> PageLinks:
    return links_of(Document(markup, kind), url, 2, (), LinkReading(**options))


def found(markup: str, *names: str, kind: Any = "html", **options: Any) -> list[Any]:
    """Some attributes of the links of a page; those alone if there is one."""
    places = [LINKS.position(name) for name in names or ("url",)]
    rows = [tuple(row[place] for place in places) for row in read(markup, kind=kind, **options).rows]
    return [row[0] for row in rows] if len(places) == 1 else rows


def test_a_link_has_address_text_place_and_origin() -> None:
    page = read('<a href="/one">First <b>link</b></a> <a rel="next" href="two#part">Second</a>')
    assert page.rows == [
        ("http://a.example/one", "First link", None, "a", 1, 3, PAGE),
        ("http://a.example/dir/two", "Second", "next", "a", 2, 3, PAGE),
    ]


@pytest.mark.parametrize("has_rest", [True, False])
@pytest.mark.parametrize("has_anchors", [True, False])
@pytest.mark.parametrize("more", ["", "<area href=/area>", "<a rel=nofollow href=/no>x</a>"])
def test_the_addresses_are_the_same_whatever_else_is_read(
    has_rest: bool, has_anchors: bool, more: str
) -> None:
    markup = (
        f"<a href=/b>b</a><a>none</a><a href>empty</a><a href=/c>c</a><a href=' '>x</a><a href=/b>b</a>{more}"
    )
    expected = {"http://a.example/b", "http://a.example/c", PAGE} | (
        {"http://a.example/area"} if "area" in more else set()
    )
    urls = found(markup, has_rest=has_rest, has_anchors=has_anchors)
    assert {url for url in urls if url != PAGE} == expected - {PAGE}
    assert len(urls) == len(set(urls))


def test_the_base_of_the_page_counts() -> None:
    assert found('<head><base href="/other/"></head><a href="x">x</a>') == ["http://a.example/other/x"]
    assert found('<BASE HREF="https://b.example/y/"><a href="x">x</a>') == ["https://b.example/y/x"]
    assert found('<base href="mailto:x"><a href="x">x</a>') == ["http://a.example/dir/x"]


@pytest.mark.parametrize(
    "href",
    [
        "mailto:a@b.example",
        "javascript:void(0)",
        "data:text/html,x",
        "tel:1",
        "ftp://a.example/x",
        "http://[x",
    ],
)
def test_links_to_no_page_are_left_out(href: str) -> None:
    assert found(f'<a href="{href}">x</a><a href="/y">y</a>') == ["http://a.example/y"]


def test_repeated_links_are_one_with_its_first_text() -> None:
    markup = "<a href=/a>first</a><a href=/b>b</a><a href=/a#top>second</a>"
    assert found(markup, "url", "anchor") == [("http://a.example/a", "first"), ("http://a.example/b", "b")]
    assert len(found(markup, is_unique=False)) == 3


def test_the_text_of_a_link_may_be_that_of_its_picture() -> None:
    markup = '<a href=/a><img alt="A house"></a><a href=/b title="By title"></a><area href=/c alt="An area">'
    assert found(markup, "anchor") == ["A house", "By title", "An area"]


def test_only_those_link_elements_count_that_lead_to_pages() -> None:
    markup = (
        '<link rel=stylesheet href=a.css><link rel="alternate stylesheet" href=b.css><link rel=icon href=i>'
        '<link rel=next href=/2><link rel="alternate" type="application/rss+xml" href=/feed><link href=/x>'
    )
    assert found(markup, "url", "tag") == [("http://a.example/2", "link"), ("http://a.example/feed", "link")]
    assert len(found(markup, has_rest=False, has_anchors=False)) == 2


def test_other_elements_are_read_if_asked_for() -> None:
    markup = (
        "<a href=/a>a</a><img src=/i.png><iframe src=/f></iframe><script src=/s.js></script><video src=/v>"
    )
    assert found(markup, "url", "tag") == [("http://a.example/a", "a"), ("http://a.example/f", "iframe")]
    assert found(markup, tags=("img", "script", "video")) == [
        "http://a.example/i.png",
        "http://a.example/s.js",
        "http://a.example/v",
    ]


# --- nofollow -----------------------------------------------------------------------------------


def test_links_that_robots_shall_not_follow_are_left_out_and_counted() -> None:
    markup = '<a href=/a>a</a><a rel="ugc NoFollow" href=/b>b</a><a rel="nofollower" href=/c>c</a>'
    page = read(markup)
    assert ([row[0] for row in page.rows], page.nofollow) == (["http://a.example/a", "http://a.example/c"], 1)
    followed = read(markup, follows_nofollow=True)
    assert (len(followed.rows), followed.nofollow) == (3, 0)


@pytest.mark.parametrize("content", ["nofollow", "noindex, NOFOLLOW", "none"])
def test_a_page_can_ask_that_none_of_its_links_be_followed(content: str) -> None:
    markup = f'<META NAME="Robots" content="{content}"><a href=/a>a</a><a href=/b>b</a>'
    assert (read(markup).rows, read(markup).nofollow) == ([], 2)
    assert len(read(markup, follows_nofollow=True).rows) == 2


def test_words_about_robots_alone_change_nothing() -> None:
    markup = '<meta name=robots content="index, follow"><p>robots: none of them, nofollow</p><a href=/a>a</a>'
    assert found(markup) == ["http://a.example/a"]


# --- XML ----------------------------------------------------------------------------------------


def test_the_links_of_feeds_and_sitemaps() -> None:
    rss = (
        "<rss><channel><title>News</title><link>http://a.example/</link><item><title>One</title>"
        "<link>http://a.example/1</link><guid isPermaLink='false'>x</guid>"
        "<enclosure url='/1.mp3'/></item><item><guid>http://a.example/2</guid></item></channel></rss>"
    )
    assert found(rss, "url", "anchor", kind="xml") == [
        ("http://a.example/", "News"),
        ("http://a.example/1", "One"),
        ("http://a.example/1.mp3", "One"),
        ("http://a.example/2", None),
    ]
    atom = (
        '<feed xmlns="http://www.w3.org/2005/Atom"><link rel="self" href="/feed"/><entry><title>E</title>'
        '<link href="e"/></entry></feed>'
    )
    assert found(atom, "url", "anchor", "rel", "tag", kind="xml") == [
        ("http://a.example/feed", None, "self", "link"),
        ("http://a.example/dir/e", "E", None, "link"),
    ]
    sitemap = "<urlset><url><loc> http://a.example/s </loc></url><url><loc>/t</loc></url></urlset>"
    assert found(sitemap, kind="xml") == ["http://a.example/s", "http://a.example/t"]


def test_bad_xml_is_an_error_and_entities_are_refused() -> None:
    with pytest.raises(BadXmlError):
        read("<a><b></a>", kind="xml")
    with pytest.raises(BadXmlError):
        read('<!DOCTYPE a [<!ENTITY e SYSTEM "file:///etc/passwd">]><a href="&e;"/>', kind="xml")


def test_what_is_no_page_has_no_links() -> None:
    for document in (None, "text", Document("{}", "json")):
        assert links_of(document, PAGE, 0, (), LinkReading()).rows == []
    assert read("<a href=http://b.example/>", url="").rows == []


# --- attributes of the page, long pages, hostile pages ---------------------------------------------


def test_links_get_values_of_their_page() -> None:
    document = Document("<a href=/a>a</a>", "html")
    for reading in (LinkReading(), LinkReading(has_anchors=False, has_rest=False)):
        (row,) = links_of(document, PAGE, 0, ("site", 7), reading).rows
        assert (row[0], row[-2:]) == ("http://a.example/a", ("site", 7))


def test_a_long_page_gives_the_same_links_in_pieces() -> None:
    markup = "".join(f"<a href=/{number}>Link {number}</a>" for number in range(5000))
    aside = links_aside(Document(markup, "html"), PAGE, 2, (), LinkReading())
    assert aside.rows == []
    assert len(aside.packed) > 1
    assert [row for piece in aside.packed for row in unpacked(piece)] == read(markup).rows


@pytest.mark.parametrize(
    ("markup", "kind"),
    [
        ("<a href=/>" * 12_000, "html"),
        ("<a href=/><b>" * 9_000, "html"),
        ("<a href='" + "../" * 40_000 + "x'>", "html"),
        ("<base href=x>" * 12_000, "html"),
        ("<item>" + "<link>/x</link>" * 12_000 + "</item>", "xml"),
        ("<a href='x'>" * 250 + "y" * 200_000 + "</a>" * 250, "xml"),
    ],
)
def test_a_hostile_page_takes_no_time(markup: str, kind: Any) -> None:
    began = time.thread_time()
    read(markup, kind=kind)
    assert time.thread_time() - began < 0.25
