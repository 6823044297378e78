"""Pages as documents: their media types, charsets, titles, languages and visible texts."""

from __future__ import annotations

import time

import pytest

from aioflow.crawl.documents import decoded, is_heavy, page_language, page_text, page_title
from aioflow.crawl.media_types import MARKUP_TYPES, MediaTypes, media_type
from aioflow.errors import SettingError
from aioflow.relation import Document
from aioflow.xml import BadXmlError

HTML, PLAIN = "text/html; charset=utf-8", "text/plain"


# --- media types --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "start", "found"),
    [
        (HTML, b"<!DOCTYPE html><html>", "text/html"),
        ("TEXT/HTML", b"<p>", "text/html"),
        ("application/xhtml+xml", b"<html xmlns='http://www.w3.org/1999/xhtml'>", "application/xhtml+xml"),
        # bodies that were left where they are
        ("image/png", b"", "image/png"),
        # headers that lie
        (HTML, b"%PDF-1.7\n", "application/pdf"),
        (HTML, b"\x89PNG\r\n\x1a\n", "image/png"),
        (HTML, b'<?xml version="1.0"?>\n<rss version="2.0">', "application/rss+xml"),
        (
            HTML,
            b'<?xml version="1.0"?><!-- a --><feed xmlns="http://www.w3.org/2005/Atom">',
            "application/atom+xml",
        ),
        (HTML, b"<urlset>", "application/xml"),
        (PLAIN, b"<!DOCTYPE html>\n<title>x</title>", "text/html"),
        (PLAIN, b"\n <html><body>", "text/html"),
        ("", b"<html>", "text/html"),
        ("application/octet-stream", b'{"a": 1}', "application/json"),
        ("image/png", b"<html>no such picture", "text/html"),
        ("application/xml", b'<html xmlns="http://www.w3.org/1999/xhtml">', "application/xhtml+xml"),
        ("text/xml", b"<html><body>", "text/html"),
        # headers that do not
        (PLAIN, b"just words", "text/plain"),
        (PLAIN, b'{"a": 1}', "text/plain"),
        ("text/xml", b"<?xml version='1.0'?><houses>", "text/xml"),
        ("application/json", b"[]", "application/json"),
        ("text/csv", b"a,b\n1,2\n", "text/csv"),
        ("", b"", "text/plain"),
        (HTML, b"", "text/html"),
    ],
)
def test_the_type_is_what_the_first_bytes_show_else_what_the_host_says(
    said: str, start: bytes, found: str
) -> None:
    assert media_type(said, start) == found


@pytest.mark.parametrize(
    ("mime", "is_in"),
    [
        ("text/html", True),
        ("application/rss+xml", True),
        ("application/xml", True),
        ("image/svg+xml", False),
        ("text/htmlx", False),
        ("application/json", False),
    ],
)
def test_markup_is_html_xhtml_and_xml(mime: str, is_in: bool) -> None:
    assert (mime in MARKUP_TYPES) is is_in


def test_a_list_of_media_types_is_shown_as_it_is_written() -> None:
    assert str(MediaTypes("text/html, image/*")) == "text/html, image/*"


@pytest.mark.parametrize("text", ["", "html", "text/html; charset=utf-8", "a/b, c"])
def test_what_is_no_media_type_is_a_mistake(text: str) -> None:
    with pytest.raises(SettingError):
        MediaTypes.bind(text, ())


# --- charsets -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "said", "text", "charset"),
    [
        ("<p>schön".encode(), HTML, "<p>schön", "utf-8"),
        ("<p>schön".encode("latin-1"), "text/html", "<p>schön", "windows-1252"),
        ("<p>schön".encode("latin-1"), "text/html; charset=iso-8859-1", "<p>schön", "windows-1252"),
        (b"\xef\xbb\xbf<p>a", HTML, "<p>a", "utf-8"),
        ("<meta charset=koi8-r><p>да".encode("koi8-r"), "text/html", "<meta charset=koi8-r><p>да", "koi8-r"),
        (b"<p>\xff\xfe broken", HTML, "<p>\ufffd\ufffd broken", "utf-8"),
    ],
)
async def test_bodies_are_decoded_as_browsers_do(body: bytes, said: str, text: str, charset: str) -> None:
    assert await decoded(body, said, "text/html") == (Document(text, "html"), charset)


async def test_a_long_body_is_decoded_like_a_short_one_and_lets_others_go_on() -> None:
    text = "<p>" + "schön und gut " * 200_000
    body = text.encode()
    assert await decoded(body, "text/html", "text/html") == (Document(text, "html"), "utf-8")


@pytest.mark.parametrize(
    ("mime", "kind"),
    [("text/html", "html"), ("application/atom+xml", "xml"), ("application/ld+json", "json")],
)
async def test_documents_have_the_kind_of_their_type(mime: str, kind: str) -> None:
    found, _ = await decoded(b"x", "", mime)
    assert isinstance(found, Document)
    assert found.kind == kind


async def test_other_texts_are_texts_and_binary_bodies_null() -> None:
    assert await decoded(b"a,b", "text/csv", "text/csv") == ("a,b", "utf-8")
    assert await decoded(b"\x89PNG", "image/png", "image/png") == (None, None)


# --- titles -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("markup", "title"),
    [
        ("<!DOCTYPE html><html><head><meta charset=utf-8><title> A \n page </title>", "A page"),
        ("<title>Fish &amp; chips</title>", "Fish & chips"),
        ("<head><!-- <title>old</title> --><title>new</title>", "new"),
        ("<head><script>'<title>script</title>'</script><TITLE lang=en>true</TITLE>", "true"),
        ("<html><head></head><body><svg><title>a picture</title></svg>", "a picture"),
        ("<p>none</p>", None),
        ("<title>never ends", None),
        ("<head><title></title></head>", ""),
    ],
)
def test_the_title_of_html(markup: str, title: str | None) -> None:
    assert page_title(Document(markup, "html")) == title


@pytest.mark.parametrize(
    ("markup", "title"),
    [
        ("<rss><channel><title>News &amp; more</title></channel></rss>", "News & more"),
        ("<feed><title type='html'><![CDATA[a < b]]></title></feed>", "a < b"),
        ("<a:feed xmlns:a='x'><a:title>Prefixed</a:title></a:feed>", "Prefixed"),
        ("<houses/>", None),
    ],
)
def test_the_title_of_xml(markup: str, title: str | None) -> None:
    assert page_title(Document(markup, "xml")) == title


def test_what_is_no_page_has_no_title() -> None:
    assert [page_title(each) for each in (None, "text", Document("{}", "json"))] == [None, None, None]


# --- languages ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("markup", "said", "language"),
    [
        ('<!DOCTYPE html><html lang="en-GB">', None, "en-GB"),
        ("<html class=a lang=de>", "en", "de"),
        ("<HTML LANG='fr_CA'>", None, "fr-CA"),
        ("<!-- <html lang=xx> --><html lang=nl>", None, "nl"),
        ("<html><body lang=en>", "pt", "pt"),
        ("<html>", "en, de", None),
        ("<html lang=''>", "en", None),
        ("<p>", None, None),
        ("<html lang='{{ language }}'>", None, None),
    ],
)
def test_the_language_is_that_of_the_root_element_else_the_header(
    markup: str, said: str | None, language: str | None
) -> None:
    assert page_language(Document(markup, "html"), said) == language


def test_the_language_of_xml_is_that_of_its_root() -> None:
    assert page_language(Document("<feed xml:lang='it'><title xml:lang='en'/></feed>", "xml"), None) == "it"
    assert page_language(Document("<feed><title xml:lang='en'/></feed>", "xml"), None) is None


# --- texts --------------------------------------------------------------------------------------


def test_the_text_is_what_people_see() -> None:
    page = page_text(
        Document(
            "<html><head><title>T</title><style>p {}</style></head><body><script>1</script>"
            "<h1>One</h1><p>two\n\n  three<br>four &lt;five&gt;</p><template>six</template><!-- 7 --></body>",
            "html",
        )
    )
    assert (page.title, page.text, page.is_cut) == ("T", "One two three four <five>", False)


def test_the_text_of_xml_and_of_other_texts() -> None:
    assert page_text(Document("<a>one<b>two</b></a>", "xml")).text == "one two"
    assert page_text("  a\n b ").text == "a b"
    assert page_text(None).text is None
    with pytest.raises(BadXmlError):
        page_text(Document("<a><b></a>", "xml"))


# --- hostile pages ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "markup",
    [
        "<div>" * 60_000,
        "<title>" * 40_000,
        "<b a>" * 12_000,
        "<html lang" * 25_000,
        "<x " + "a=b " * 60_000 + ">",
        "<!--" * 60_000,
        "<title " * 35_000,
    ],
)
def test_a_hostile_page_takes_no_time_where_it_is_read_on_the_event_loop(markup: str) -> None:
    markup = markup[: 255 * 1024]
    document, feed = Document(markup, "html"), Document(markup, "xml")
    began = time.thread_time()
    page_title(document)
    page_language(document, None)
    page_title(feed)
    page_language(feed, None)
    if not is_heavy(document):
        page_text(document)
    assert time.thread_time() - began < 0.25


def test_a_page_that_nests_too_deeply_is_cut() -> None:
    assert page_text(Document("<div>" * 5000 + "deep", "html")) == page_text(
        Document("<div>" * 5000 + "deep", "html")
    )
    assert page_text(Document("<div>" * 5000 + "deep", "html")).is_cut


def test_pages_of_many_bytes_or_tags_are_heavy() -> None:
    assert not is_heavy(Document("<p>" * 1000, "html"))
    assert is_heavy(Document("x" * 300_000, "html"))
    assert is_heavy(Document("<p>" * 30_000, "html"))
    assert is_heavy(Document("<x " + "a " * 30_000 + ">", "html"))
