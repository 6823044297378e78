"""HTML pages: selectors, texts, links, items in items, and pages that real sites and bad ones serve."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aioflow.errors import SettingError
from aioflow.relation import Document, Row, Type
from aioflow.wrappers.definition import Extraction
from aioflow.wrappers.readers.html.reader import HtmlExtractor, HtmlReader
from aioflow.wrappers.readers.reader import PageHead
from tests.wrappers.feeding import URL, Feed, embedded, field, mistake

HTML = HtmlReader()
PAGES = Path(__file__).parents[1] / "data" / "pages"
HOUSES = """
<html lang=en><head><title>Homes</title></head><body>
<h1>2 houses</h1>
<ul class="results">
  <li class="house new" data-id=7><a class="title" href="/house/7"> Elm
    Street </a> <span class="price">$ 1,250,000</span>
    <ul><li class=room>Kitchen <b>12</b> m</li><li class=room>Bath <b>5</b> m</li></ul></li>
  <li class="house" data-id=8><a class="title" href="house/8">Oak Street</a>
    <span class="price">on request</span></li>
</ul>
<a class="next" href="?page=2">Next</a>
</body></html>
"""


def read(page: str | bytes, *fields: Any, **how: Any) -> list[Row]:
    return Feed(HTML, *fields, **how).read(page)


def value(page: str, selector: str, *words: Any, **how: Any) -> Any:
    """The only value of a page."""
    ((only,),) = read(page, field("it", selector, *words, **how))
    return only


# --- fields --------------------------------------------------------------------------------------


def test_items_have_texts_attributes_numbers_and_links() -> None:
    rows = read(
        HOUSES,
        field("id", "@data-id", "number"),
        field("url", "a.title @href", "url"),
        field("title", "a.title"),
        field("price", ".price", "number"),
        field("next", "a.next @href", "url", scope="page"),
        each="li.house",
    )
    following = "https://feeds.example/page?page=2"
    assert rows == [
        (7, "https://feeds.example/house/7", "Elm Street", 1_250_000, following),
        (8, "https://feeds.example/house/8", "Oak Street", None, following),
    ]


def test_what_was_there_but_could_not_be_read_is_counted() -> None:
    extractor = HTML.compile(Extraction(each="li.house", fields=(field("price", ".price", "number"),)))
    reading = extractor.open(PageHead(URL))
    reading.feed(HOUSES.encode())
    assert reading.end() == [(1_250_000,), (None,)]
    assert reading.unreadable == {"price": 1}


def test_a_page_without_each_is_the_only_item() -> None:
    assert read(HOUSES, field("n", "h1", "number"), field("language", "html @lang")) == [(2, "en")]


def test_constants_and_the_response_are_the_same_for_all_items() -> None:
    fields = (
        field("kind", scope="constant", default="house"),
        field("from", "url", scope="response"),
        field("status", "status", scope="response"),
        field("type", "header content-type", scope="response"),
        field("seen", "date", scope="response"),
        field("id", "@data-id"),
    )
    extractor = HTML.compile(Extraction(each="li.house", fields=fields))
    headers = {"Content-Type": "text/html", "Date": "Tue, 15 Nov 1994 12:45:26 GMT"}
    reading = extractor.open(PageHead(URL, 203, headers))
    reading.feed(HOUSES.encode())
    seen = datetime(1994, 11, 15, 12, 45, 26, tzinfo=UTC)
    assert reading.end() == [
        ("house", URL, 203, "text/html", seen, "7"),
        ("house", URL, 203, "text/html", seen, "8"),
    ]
    assert extractor.schema.types == (Type.CHAR, Type.CHAR, Type.NUMBER, Type.CHAR, Type.DATE, Type.CHAR)


def test_embedded_relations_have_items_of_their_own() -> None:
    rooms = field("rooms", "li.room", fields=(field("name", "@text"), field("size", "b", "number")))
    rows = read(HOUSES, field("id", "@data-id"), rooms, each="li.house")
    assert embedded(rows[0][1]) == [("Kitchen m", 12), ("Bath m", 5)]
    assert embedded(rows[1][1]) == []
    assert rows[0][1].schema.types == (Type.CHAR, Type.NUMBER)


def test_relations_nest_and_know_page_and_constant_fields() -> None:
    page = "<h1>T</h1><div><p>1<i>a</i><i>b</i></p><p>2</p></div>"
    inner = field("letters", "i", fields=(field("letter"), field("title", "h1", scope="page")))
    outer = field("numbers", "p", fields=(field("n", "@text"), inner))
    ((numbers,),) = read(page, outer, each="div")
    (first, letters), (second, none) = embedded(numbers)
    assert (first, second) == ("1", "2")
    assert embedded(letters) == [("a", "T"), ("b", "T")]
    assert embedded(none) == []


def test_a_relation_can_be_of_the_page() -> None:
    links = field("links", "a", scope="page", fields=(field("to", "@href"),))
    rows = read("<a href=x></a><a href=y></a><p>1</p><p>2</p>", field("p"), links, each="p")
    assert [(p, embedded(relation)) for p, relation in rows] == [
        ("1", [("x",), ("y",)]),
        ("2", [("x",), ("y",)]),
    ]


def test_a_selector_finds_what_is_inside_the_item_not_the_item() -> None:
    page = "<div id=a><div id=b><div id=c></div></div></div>"
    assert read(page, field("inner", "div @id"), each="div") == [("b",), ("c",), (None,)]
    every = read(page, field("inner", "div @id", "all"), each="div")
    assert [embedded(row[0]) for row in every] == [[("b",), ("c",)], [("c",)], []]


def test_a_selector_that_begins_with_a_combinator_starts_at_the_item() -> None:
    page = "<ul id=o><li>1<ul><li>2</li></ul></li><li>3</li></ul><p>4</p>"
    assert read(page, field("own", "> li @text", "join"), each="#o") == [("1, 3",)]
    assert read(page, field("own", "> li @text"), field("next", "+ p"), each="#o") == [("1", "4")]
    assert read(page, field("html", "@html", "char"), field("x", "> li"), each="p") == [("<p>4</p>", None)]


def test_an_element_that_matches_twice_is_one_item() -> None:
    page = "<p class=a>1</p><p class=b>2</p>"
    assert read(page, field("t"), each=".a, p, .b") == [("1",), ("2",)]
    assert value(page, ".a, p", "count") == 2
    assert value(page, "p, .a", "last") == "2"


def test_matches_are_counted_whatever_is_in_them() -> None:
    page = "<img alt=''><img alt=x><img><p> </p>"
    assert value(page, "img", "count") == 3
    assert value(page, "img @alt", "count") == 2
    assert value(page, "p", "count") == 1
    assert value(page, "img @alt", ("match", "x"), "count") == 1
    assert value(page, "b", "count") == 0


def test_page_fields_and_the_next_page_are_found_without_items() -> None:
    following = field("n", "a @href", "url")
    title = field("h", "h1", scope="page")
    feed = Feed(HTML, "t", title, each=".none", outer=True, next_page=following)
    assert feed.read("<h1>Sorry</h1><a href=/2></a>") == [(None, "Sorry")]
    assert feed.next_page == "https://feeds.example/2"
    assert read("<h1>Sorry</h1>", "t", field("h", "h1", scope="page"), each=".none") == []


def test_a_required_field_that_is_missing_fails_the_page() -> None:
    feed = Feed(HTML, field("a", "a.title", required=True), field("b", "b", "number"), each="li")
    assert feed.refusal("<li><a class=title>x</a><li>y") == "item 2 has no 'a' (a.title), which is required"
    priced = Feed(HTML, field("p", ".price", "number", required=True), each="li.house")
    assert priced.refusal(HOUSES) == "item 2 has no 'p' (.price) that can be read, which is required"
    of_page = Feed(HTML, field("h", "h2", scope="page", required=True), "t", each="li")
    assert of_page.refusal("<li>x") == "the page has no 'h' (h2), which is required"
    links = Feed(HTML, field("u", "@href", "url", required=True), each="a")
    assert links.refusal("<a href=x></a><a></a>") == "item 2 has no 'u' (@href), which is required"
    rooms = Feed(HTML, field("r", "i", required=True, fields=(field("t"),)), each="p")
    assert rooms.refusal("<p><i>1</i></p><p></p>") == "item 2 has no 'r' (i), which is required"


def test_defaults_stand_for_what_is_missing() -> None:
    rows = read(HOUSES, field("beds", ".beds", "number", default=0), each="li.house")
    assert rows == [(0,), (0,)]


# --- texts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("<p> a \n b\t</p>", "a b"),
        ("<p>1 Elm<br>Springfield</p>", "1 Elm Springfield"),
        ("<p>Wor<b>l</b>d</p>", "World"),
        ("<p>a<span>b</span><my-tag>c</my-tag></p>", "abc"),
        ("<p>a<!-- not this -->b</p>", "ab"),
        ("<p>x &lt; y &amp;&nbsp;z</p>", "x < y & z"),
        ("<p>&amp;lt;</p>", "&lt;"),
        ("<p>a<script>var b = '<i>';</script><style>c</style>d</p>", "ad"),
        ('<p>a<i title="b > c < d">e</i></p>', "ae"),
        ("<p>a<textarea>b</textarea></p>", "a b"),
        ("<p></p>", None),
        ("<p> \n </p>", None),
        ("<p>&nbsp;</p>", None),
    ],
)
def test_the_text_of_an_element_is_what_a_reader_sees(markup: str, text: str | None) -> None:
    assert value(markup, "p") == text


def test_blocks_part_words() -> None:
    page = "<div><h2>a</h2><p>b</p>c<ul><li>d<li>e</ul><table><tr><td>f<td>g</table></div>"
    assert value(page, "div") == "a b c d e f g"


def test_raw_text_keeps_its_whitespace_and_has_line_breaks() -> None:
    assert value("<pre>a\n  b<br>c</pre>", "pre", "raw") == "a\n  b\nc"
    assert value("<p>a<br>b</p>", "p", "raw", ("split", "\n", 2)) == "b"
    assert value("<p> </p>", "p", "raw") == " "


def test_own_text_leaves_out_what_is_inside() -> None:
    assert value("<p>a <b>bold</b> c</p>", "p @text") == "a c"


def test_a_script_that_is_selected_gives_its_text() -> None:
    page = '<script type="application/ld+json">{"a": "<b> &amp;  x"}</script>'
    assert value(page, "script", "json") == Document('{"a": "<b> &amp;  x"}', "json")
    assert value("<script>a && b</script>", "script") == "a && b"


def test_markup_is_a_document() -> None:
    assert value("<p><b>x</b></p>", "p @html") == Document("<p><b>x</b></p>", "html")
    assert value("<p><b>x</b></p>", "b", "html") == Document("<b>x</b>", "html")
    extractor = HTML.compile(Extraction(fields=(field("it", "p @html"),)))
    assert extractor.schema.types == (Type.DOCUMENT,)


def test_an_attribute_is_taken_whatever_its_case_and_null_when_it_is_blank() -> None:
    page = "<a HREF='x' data-Id=1 hidden title=' a  b '>t</a>"
    assert value(page, "a @Href") == "x"
    assert value(page, "a @data-id", "number") == 1
    assert value(page, "a @title") == "a b"
    assert value(page, "a @hidden") is None
    assert value(page, "a @hidden", "raw") == ""
    assert value(page, "a @none", "raw") is None


def test_very_long_texts_are_read_in_slices() -> None:
    page = "<div>" + "<p>word &amp; <b>b</b>old</p>" * 20_000 + "<img src='" + "x" * 300_000 + "'>end</div>"
    text = value(page, "div")
    assert text == "word & bold " * 20_000 + "end"


# --- links and charsets --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("base", "expected"),
    [
        ("<base href='/deep/er/'>", "https://feeds.example/deep/er/a"),
        ("<BASE HREF='https://other.example/x'>", "https://other.example/a"),
        ("<base target=_blank>", "https://feeds.example/a"),
        ("<base href='mailto:x'>", "https://feeds.example/a"),
        ("", "https://feeds.example/a"),
    ],
)
def test_links_are_relative_to_the_base_of_the_page(base: str, expected: str) -> None:
    page = f"<html><head>{base}</head><body><a href=a></a></body></html>"
    assert value(page, "a @href", "url") == expected
    assert read(page, field("u", "@href", "url"), each="a") == [(expected,)]


def test_links_that_lead_nowhere_are_null() -> None:
    page = (
        "<a href=''>1</a><a href=' '>2</a><a>3</a><a href>4</a><a href='javascript:x()'>5</a><a href=y>6</a>"
    )
    assert read(page, field("u", "@href", "url"), each="a") == [(None,)] * 5 + [("https://feeds.example/y",)]


def test_the_charset_of_header_page_and_wrapper_is_kept() -> None:
    p = field("p", "p")
    assert Feed(HTML, p).read("<p>ü".encode("latin-1")) == [("ü",)]
    assert Feed(HTML, p).read("<p>я".encode("koi8-r"), content_type="text/html; charset=koi8-r") == [("я",)]
    assert Feed(HTML, p).read("<meta charset=utf-8><p>ü") == [("ü",)]
    assert Feed(HTML, p, charset="koi8-r").read(b"<p>\xd1", content_type="x; charset=utf-8") == [("я",)]
    assert Feed(HTML, p).read(b"<p>\xff!", content_type="text/html; charset=utf-8") == [("\ufffd!",)]
    assert Feed(HTML, p).read("<p>ü".encode("utf-16")) == [("ü",)]
    assert Feed(HTML, p).read(b"\xef\xbb\xbf<p>\xc3\xbc") == [("ü",)]


def test_a_page_may_come_in_pieces_or_be_empty() -> None:
    assert Feed(HTML, field("n", "h1", "number")).read(HOUSES, sizes=[1, 2, 3, 50]) == [(2,)]
    assert Feed(HTML, field("t", "p")).read(b"") == [(None,)]
    assert Feed(HTML, "t", each="p").read(b"") == []


# --- mistakes ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("selector", "offset", "message"),
    [
        ("li[class=", 9, "an attribute's value that is no plain word stands in quotes"),
        ("li[class='a]", 9, "the quote is not closed"),
        ("li[class=a", 2, "'[' is not closed"),
        ("li:not(.a", 2, "'(' is not closed"),
        ("li..a", 2, "'.' needs a name behind it"),
        ("p, li:frist-child", 5, "unknown pseudo-class ':frist-child'; did you mean 'first-child'?"),
        ("li:hover", 2, "':hover' matches nothing in a page that is not displayed"),
        ("li:nth-child(x)", 13, ":nth-child(…) takes a place: 2, odd, even, 2n+1, -n+3"),
        (
            "li:contains('x')",
            2,
            "':contains' is unknown; :lexbor-contains(\"text\") looks at an element's own",
        ),
        ("a::attr(href)", 1, "'::attr(href)' is written '@href' here"),
        ("a::text", 1, "'::text' is written '@text' here"),
        ("li >", 3, "the selector ends where an element is expected"),
        ("li,", 2, "the selector ends where an element is expected"),
        ("a|b", 1, "'|' is not understood"),
        ("li\\", 2, "'\\\\' is not expected here"),
        ("a @href b", 2, "'@' and an attribute's name stand at the end of a selector"),
        ("li!", 2, "'!' is not expected here"),
    ],
)
def test_a_bad_selector_is_found_with_its_place(selector: str, offset: int, message: str) -> None:
    setting, place, text = mistake(HTML, field("it", selector), each="p")
    assert (setting, place) == ("it", offset)
    assert text.startswith(message)


def test_every_place_of_a_selector_is_named() -> None:
    assert mistake(HTML, "t", each="li[")[:2] == ("EACH", 2)
    assert mistake(HTML, "t", each="a @href")[0] == "EACH"
    nested = field("rooms", "li", fields=(field("size", "b.."),))
    assert mistake(HTML, nested, each="p")[:2] == ("rooms.size", 1)
    assert mistake(HTML, "t", each="p", next_page=field("next", "a["))[:2] == ("next", 1)


def test_other_mistakes_are_found_before_a_page_is_read() -> None:
    assert mistake(HTML, field("t"))[2] == "field 't' needs a selector: only an item has a text of its own"
    assert mistake(HTML, field("t", "p", "numbr"))[0] == "t"
    assert mistake(HTML, field("t", "p"), lines=True)[0] == "READ"
    assert mistake(HTML, field("t", "p"), charset="klingon")[0] == "CHARSET"
    assert "unknown part of the response" in mistake(HTML, field("t", "body", scope="response"))[2]


@given(st.text(alphabet="ab.#[]()='\"\\:,>+~ *@-_1|ntchild", max_size=25))
@settings(max_examples=400, deadline=None)
def test_any_text_is_a_selector_or_a_mistake(text: str) -> None:
    offset: int | None = None
    try:
        assert len(Feed(HTML, field("it", text), each="p").read("<p class=a id=b>x</p>")) == 1
    except SettingError as error:
        offset = error.offset
    assert offset is None or 0 <= offset <= len(text)


# --- where it came from --------------------------------------------------------------------------


def test_explain_names_the_place_of_each_value() -> None:
    rooms = field("rooms", ".room", fields=(field("size", "b", "number"),))
    feed = Feed(
        HTML,
        field("url", "a.title @href", "url"),
        field("beds", ".beds", "number"),
        field("found", "h1", scope="page"),
        rooms,
        each="li.house",
    )
    found = [(each.row, each.field, each.path, each.value) for each in feed.explain(HOUSES)]
    first, second = "ul.results > li.house.new:nth-of-type(1)", "ul.results > li.house:nth-of-type(2)"
    assert found == [
        (0, "url", f"{first} > a.title @href", "https://feeds.example/house/7"),
        (0, "beds", "", None),
        (0, "found", "h1", "2 houses"),
        (0, "rooms.size", f"{first} > ul > li.room:nth-of-type(1) > b", 12),
        (0, "rooms.size", f"{first} > ul > li.room:nth-of-type(2) > b", 5),
        (1, "url", f"{second} > a.title @href", "https://feeds.example/house/8"),
        (1, "beds", "", None),
        (1, "found", "h1", "2 houses"),
    ]
    excerpts = [each.excerpt for each in feed.explain(HOUSES)]
    assert excerpts[0] == '<a class="title" href="/house/7"> Elm Street </a>'


def test_explained_paths_lead_back_to_the_element() -> None:
    for found in Feed(HTML, field("t", "a.title"), field("b", "li b"), each="li.house").explain(HOUSES):
        if found.path:
            assert value(HOUSES, found.path) == found.value


# --- pages of real sites -------------------------------------------------------------------------


def test_a_hand_edited_table() -> None:
    rows = read(
        (PAGES / "armfor.html").read_bytes(),
        field("name", "td:nth-child(1)"),
        field("docket", "td:nth-child(2)", ("match", r"[\d-]+/\w+")),
        field("pdf", "td:nth-child(2) a @href", "url"),
        field("date", "td:nth-child(3)", ("date", "%b %d, %Y")),
        field("citation", "td:nth-child(4)"),
        each="table table tr:has(a[href$='.pdf'])",
    )
    assert len(rows) == 25
    assert all(None not in row for row in rows)
    assert rows[3] == (
        "U.S. v. Harrington*",
        "22-0100/AF",
        "https://feeds.example/2022OctTerm/220100.pdf",
        date(2023, 8, 10),
        "83 MJ 408",
    )


def test_a_page_that_is_mostly_navigation() -> None:
    rows = read(
        (PAGES / "okla.html").read_bytes(),
        field("title", "h4.style a", required=True),
        field("citation", "a.citation"),
        field("number", ".caseNumber", ("match", r",\s*(.+)")),
        field("decided", ".decidedDate", ("date", "Decided %m/%d/%Y")),
        field("summary", ".summaryParagraph", "required"),
        each="li.decision",
    )
    assert len(rows) == 7
    assert rows[6][:4] == ("MATHIS v. KERR", "2024 OK 52", "120246", date(2024, 6, 25))
    assert rows[0][4].startswith("¶1 On June 5, 2024, the Oklahoma Bar Association notified the Court")


def test_filings_whose_links_hide_in_scripts() -> None:
    rows = read(
        (PAGES / "ncctapp.html").read_bytes(),
        field("title", ".title", ("match", r"^(.*?)\s*\([\d-]+ - ")),
        field("docket", ".title", ("match", r"\(([\d-]+) - ")),
        field("status", ".title", ("match", r"- (\w+)\)$")),
        field("url", ".title @onclick", ("match", '"(http[^"]+)"'), "url"),
        field("author", ".author i"),
        field(
            "filed",
            "table.main strong",
            ("match", r"Filed: (\d+ \w+ \d+)"),
            ("date", "%d %B %Y"),
            scope="page",
        ),
        field("topics", ".desc", ("split", ";")),
        each="table.main tr:has(.author)",
    )
    assert len(rows) == 37
    assert [sum(row[2] == status for row in rows) for status in ("Published", "Unpublished")] == [20, 17]
    assert rows[0][:6] == (
        "CL Howard Invs. I, LLC v. Wilmington Sav. Fund Soc'y, FSB",
        "24-466",
        "Published",
        "http://appellate.nccourts.org/opinions/?c=2&pdf=44116",
        "Judge Fred Gore",
        date(2024, 12, 31),
    )
    assert len(embedded(rows[0][6])) == 5


def test_links_in_a_page_of_preformatted_text() -> None:
    rows = read(
        (PAGES / "ca8.html").read_bytes(), field("pdf", "@href", "url"), "name", each="pre a[href$='.pdf']"
    )
    assert len(rows) == 76
    assert rows[0] == ("https://ecf.ca8.uscourts.gov/opndir/25/08/241882P.pdf", "241882P.pdf")


# --- pages that want to do harm ------------------------------------------------------------------


@pytest.mark.parametrize(
    "page",
    [
        b"<div>" * 100_000 + b"<p>deep</p>",
        b"<div></x>" * 20_000 + b"<p>deep</p>",
        b"<span><div></span>" * 12_000 + b"<p>deep</p>",
        b"<div title='></div>'>" * 12_000 + b"<p>deep</p>",
        b"<svg>" + b"<g>" * 20_000 + b"</svg><p>deep</p>",
        b"<svg>" + b"<div/>" * 20_000 + b"<p>deep</p>",
        b"<table><tr><td>" * 12_000 + b"<p>deep</p>",
        b"<ul><li>" * 15_000 + b"<p>deep</p>",
        b"<dl><dt><li>" * 12_000 + b"<p>deep</p>",
    ],
    ids=lambda page: page[:20].decode(),
)
def test_pages_nested_without_end_are_flattened(page: bytes) -> None:
    extractor = HTML.compile(Extraction(fields=(field("p", "p"), field("all", "body", "all"))))
    reading = extractor.open(PageHead(URL))
    reading.feed(page)
    rows = reading.end()  # for which the parser takes minutes where this is not flattened
    assert rows[0][0] == "deep"
    assert reading.notes == ["nested more than 512 levels deep; deeper elements were flattened"]


@pytest.mark.parametrize(
    "opening",
    ["<div>{}</div>", "<table>{}</table>", "<p>{}<p>", "<ul><li>{}</ul>"],
    ids=lambda opening: opening[:6],
)
def test_formatting_left_open_does_not_multiply(opening: str) -> None:
    formats = "".join(f"<b id=n{number}>" for number in range(400))
    page = opening.format(formats) + "<div>x</div>" * 3000
    # More than a million, unflattened: what was left open is made again in each element that follows.
    assert value(page, "b", "count") < 150_000


def test_an_ordinary_large_page_is_not_flattened() -> None:
    row = "<tr><td><a href=x><b class=n>1</b></a><td><ul><li>a<li>b</ul><p>c<p>d<svg><path d='m'/></svg></tr>"
    cells = "".join(f"<td><font id=f{number}>y" for number in range(3000))
    unclosed = f"<ul>{'<li><span>x</span>' * 3000}</ul><table>{cells}</table>"
    page = f"<table id=rows>{row * 3000}</table>{unclosed}"
    extractor = HTML.compile(
        Extraction(each="#rows tr", fields=(field("n", "b", "number"), field("li", "li", "count")))
    )
    reading = extractor.open(PageHead(URL))
    reading.feed(page.encode())
    assert reading.end() == [(1, 2)] * 3000
    assert reading.notes == []


def test_heavy_pages_are_better_read_elsewhere() -> None:
    plain = HtmlExtractor(Extraction(each="p", fields=(field("t"),)))
    counting = HtmlExtractor(Extraction(each="p:nth-child(2)", fields=(field("t"),)))
    siblings = b"<p>" * 10_000
    assert not plain.is_heavy(siblings)
    assert counting.is_heavy(siblings)
    assert not counting.is_heavy(b"<p>" + b"x" * 100_000)
    assert plain.is_heavy(b"x" * 300_000)


@given(st.text(alphabet="<>/&;\"'= abdivpsctyle!-#x0", max_size=120))
@settings(max_examples=300, deadline=None)
def test_any_text_is_a_page(page: str) -> None:
    rows = read(
        page, field("text", "body"), field("raw", "body", "raw"), field("links", "a @href", "all", "url")
    )
    assert len(rows) == 1


def test_a_plan_knows_that_markup_is_a_document() -> None:
    from aioflow import loads
    from aioflow.wrappers import resolve

    text = 'WRAPPER w { GET: "http://a.example/"; whole: "p @html"; n: "b" number } PLAN p { BODY { } }'
    assert [str(kind) for kind in resolve("w", loads(text)).schema.types] == ["document", "number"]


def test_tags_cannot_hide_between_the_places_that_are_looked_at() -> None:
    body = bytearray()
    while len(body) < 200_000:  # none begins in the first half of any twenty bytes
        body += b"x" * 10 + b"<p>xx<p>xx"
    assert HtmlExtractor(Extraction(each="p:nth-child(2)", fields=(field("t"),))).is_heavy(bytes(body))


def test_a_tag_of_thousands_of_attributes_is_not_read_on_the_loop() -> None:
    attributes = " ".join(f"a{number}='<'" for number in range(20_000))
    heavy = HtmlExtractor(Extraction(each="p", fields=(field("t"),))).is_heavy
    assert heavy(f"<body {attributes}><p>x</p>".encode())
    assert not heavy(b"<p>" + b"word " * 20_000 + b"</p>")


# --- selectors that a deep page makes slow -------------------------------------------------------


STEEP = "b div div div p"
DEEP = b"<div>" * 400 + b"<p>x</p>"


def extractor(*selectors: str, each: str | None = None) -> HtmlExtractor:
    fields = tuple(field(f"f{place}", selector) for place, selector in enumerate(selectors))
    return HtmlReader().compile(Extraction("html", {}, each, fields))


@pytest.mark.parametrize(
    "page",
    [
        DEEP,
        b"<div></x>" * 400 + b"<p>x</p>",  # end tags that end nothing
        b"<DIV\nclass='a>b'>" * 400 + b"<p>x</p>",
        b"<ul>" + b"<li></li>" * 300 + b"</ul>" + DEEP + b"</div>" * 400,
        DEEP.decode().encode("utf-16"),
        b"<div>" * 3000 + b"<p>x</p>",
    ],
    ids=["open", "bogus ends", "attributes", "a branch", "utf-16", "flattened"],
)
def test_a_deep_page_is_not_read_on_the_loop_by_selectors_with_many_steps(page: bytes) -> None:
    for steep in (extractor(STEEP), extractor("p", each=STEEP), extractor("x:not(b div div div *)")):
        assert steep.is_heavy(page)


def test_many_elements_in_a_deep_page_need_two_steps_only() -> None:
    page = b"<div>" * 400 + b"<p>x</p>" * 1000
    assert extractor("b div p").is_heavy(page)
    assert not extractor("b p").is_heavy(page)


@pytest.mark.parametrize("selector", ["div", "b p", "b > div > div > div > p"])
def test_other_selectors_read_deep_pages_at_once(selector: str) -> None:
    assert not extractor(selector).is_heavy(DEEP)


def test_ordinary_pages_are_read_at_once_by_selectors_with_many_steps() -> None:
    item = b"<li><div><span><b><i>x</i></b></span></div></li>"
    page = b"<html><body>" + b"<div>" * 30 + b"<ul>" + item * 300 + b"</ul>" + b"</div>" * 30
    assert not extractor("html body div ul li i").is_heavy(page)


def test_a_page_that_was_parsed_to_know_its_depth_is_read_as_any_other() -> None:
    steep = extractor("ul li b i", each="body")
    pages = [b"<body><ul>" + b"<li><b><i>%d</i></b></li>" % number * 100 for number in range(3)]
    for page in pages:
        assert not steep.is_heavy(page)
    for page, value in ((pages[1], "1"), (pages[2], "2"), (pages[2], "2"), (pages[0], "0")):
        reading = steep.open(PageHead("http://a.example/"))
        reading.feed(page)
        assert reading.end() == [(value,)]
