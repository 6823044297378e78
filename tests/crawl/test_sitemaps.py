"""Sitemaps are read piece by piece, whatever the pieces are, and bad ones say where."""

from __future__ import annotations

import gzip
import tracemalloc
from contextlib import suppress
from datetime import UTC, date, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aioflow.crawl import SitemapEntry, SitemapError, SitemapReader
from aioflow.crawl.sitemaps import MOST_BYTES, MOST_ENTRIES

URL = "http://a.example/sitemap.xml"
XML = """<?xml version="1.0" encoding="{encoding}"?>
<!-- made by hand -->
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:image="urn:image">
  <url><loc> http://a.example/1?a=1&amp;b=2 </loc><lastmod>2026-05</lastmod></url>
  <url><loc>http://a.example/é</loc><image:image><image:loc>http://a.example/i.png</image:loc></image:image></url>
  <other/>
  <url><lastmod>2026-05-01T10:00:00Z</lastmod><priority>1.0</priority><loc>/relative</loc></url>
</urlset>
"""
ENTRIES = [
    SitemapEntry("http://a.example/1?a=1&b=2", lastmod=date(2026, 5, 1)),
    SitemapEntry("http://a.example/é"),
    SitemapEntry("http://a.example/relative", lastmod=datetime(2026, 5, 1, 10, tzinfo=UTC), priority=1.0),
]


def read(body: bytes, url: str = URL, step: int = 1 << 20) -> list[SitemapEntry]:
    reader = SitemapReader(url)
    found = [
        entry
        for start in range(0, len(body), step)
        for entries in reader.feed(body[start : start + step])
        for entry in entries
    ]
    return found + reader.end()


def urls(body: bytes, url: str = URL) -> list[str]:
    return [entry.url for entry in read(body, url)]


@pytest.mark.parametrize("step", [1, 7, 1000, 1 << 20])
@pytest.mark.parametrize(
    "body",
    [
        XML.format(encoding="UTF-8").encode(),
        b"\xef\xbb\xbf" + XML.format(encoding="UTF-8").encode(),
        XML.format(encoding="ISO-8859-1").encode("latin-1"),
        XML.format(encoding="UTF-16").encode("utf-16"),
        XML.format(encoding="no-such-thing").encode(),
        XML.format(encoding="zlib").encode(),
        gzip.compress(XML.format(encoding="UTF-8").encode()),
    ],
    ids=["utf-8", "bom", "latin-1", "utf-16", "unknown", "no text", "gzip"],
)
def test_the_entries_of_a_sitemap(body: bytes, step: int) -> None:
    assert read(body, step=step) == ENTRIES


def test_a_gzip_file_of_several_members_and_padding() -> None:
    text = XML.format(encoding="UTF-8").encode()
    assert read(gzip.compress(text[:100]) + gzip.compress(text[100:]) + b"\0" * 512) == ENTRIES


def test_an_index_leads_to_sitemaps() -> None:
    body = (
        b"<sitemapindex><sitemap><loc>/a.xml.gz</loc><lastmod>2026-01-01</lastmod></sitemap></sitemapindex>"
    )
    assert read(body) == [SitemapEntry("http://a.example/a.xml.gz", True, date(2026, 1, 1))]


def test_texts_and_robots() -> None:
    assert urls(b"http://a.example/1\r\nhttp://a.example/2\rhttp://a.example/3\n\n") == [
        f"http://a.example/{number}" for number in (1, 2, 3)
    ]
    robots = b"User-agent: *\nDisallow: /\nSITEMAP : https://b.example/s.xml\nSitemap: javascript:x\n"
    assert read(robots, "http://a.example/robots.txt") == [SitemapEntry("https://b.example/s.xml", True)]
    assert urls(b"", "http://a.example/robots.txt") == []
    assert urls(b"") == []


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"<urlset><url><loc>http://a/</loc></url>", "it is cut off"),
        (b"<urlset><url><loc>http://a/</lo></url></urlset>", "line 1, column"),
        (b"<rss><channel/></rss>", "<rss> is neither"),
        (b"<urlset><url><loc>mailto:x</loc></url></urlset>", "without <loc> that is a URL: 'mailto:x'"),
        (b"<!DOCTYPE x [<!ENTITY a 'b'>]><urlset/>", "entities are not read"),
        (b"http://a.example/\nhello\n", "line 2 is no URL: 'hello'"),
        (b"x" * 100_000, "line 1 is no URL"),
        (b"http://a.example/\n" * 100 + b"\xff", "byte 1,800 is no text"),
        (b"\x1f\x8bxxxxxxxxxxxx", "the gzip file is damaged"),
        (gzip.compress(b"http://a.example/")[:-3], "the gzip file is cut off"),
        (b"http://a.example/\n" * (MOST_ENTRIES + 1), "more than 50,000 URLs"),
        (gzip.compress(b"\n" * (MOST_BYTES + 1)), "larger than 52.4 MB"),
        (b"<urlset>" + b"<url>" * 300, "nested more than"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_bad_sitemap_says_where(body: bytes, message: str) -> None:
    with pytest.raises(
        SitemapError, match=r"^the sitemap http://a.example/sitemap.xml cannot be read: "
    ) as told:
        read(body)
    assert message in str(told.value)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=300) | st.text(max_size=300).map(lambda text: f"<urlset>{text}</urlset>".encode()))
def test_any_bytes_are_entries_or_a_sitemap_error(body: bytes) -> None:
    with suppress(SitemapError):
        read(body, step=50)


def test_memory_does_not_grow_with_the_file() -> None:
    entry = b"<url><loc>http://a.example/" + b"x" * 500 + b"</loc></url>"
    tracemalloc.start()
    reader = SitemapReader(URL)
    number = 0
    for piece in (b"<urlset>", *[entry * 40] * 1000, b"</urlset>"):
        number += sum(map(len, reader.feed(piece)))
    assert number + len(reader.end()) == 40_000
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 5_000_000
