"""XPath in HTML pages: beside CSS, on the same tree."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioflow.errors import SettingError
from aioflow.wrappers.definition import Extraction, Field, Processing
from aioflow.wrappers.page_reader import read_page
from aioflow.wrappers.readers.html.reader import HtmlExtractor
from aioflow.wrappers.readers.reader import PageHead

PAGE = """<!doctype html><title>Homes</title>
<ul><li class=house id=a><a href=/a>One &amp; only</a> <b>Price</b> 10<br>20</li>
<li class=house id=b><a href=/b>Two</a> <b>Rooms</b> 3</li></ul>
<table><tr><td>x<td>y</table><a rel=next href="?page=2" @click=z>next</a>"""
HEAD = PageHead("http://homes.example/list", headers={"Content-Type": "text/html"})


def field(name: str, selector: str, *words: str, **keywords: Any) -> Field:
    return Field(name, selector, processing=tuple(map(Processing, words)), **keywords)


def rows(*fields: Field, each: str | None = None, page: str = PAGE, **keywords: Any) -> list[tuple[Any, ...]]:
    return read_page(
        HtmlExtractor(Extraction(each=each, fields=fields, **keywords)), HEAD, page.encode()
    ).rows


@pytest.mark.parametrize(
    "each", ["li.house", "//li", "//li[@class='house']", "(//ul/li)", "/html/body/ul/li"]
)
def test_items_and_fields_are_found_by_css_and_xpath_alike(each: str) -> None:
    fields = (
        field("id", "@id"),
        field("css", "a @href", "url"),
        field("path", "./a/@href", "url"),
        field("text", ".//a"),
        field("after", "./b/following-sibling::text()[1]", "number"),
        field("up", "../@nothing", "optional"),
    )
    one, two = rows(*fields, each=each)
    assert one == ("a", "http://homes.example/a", "http://homes.example/a", "One & only", 10, None)
    assert two == ("b", "http://homes.example/b", "http://homes.example/b", "Two", 3, None)


def test_every_selector_is_an_xpath_where_the_wrapper_says_so() -> None:
    fields = (field("link", "a/@href"), field("n", "count(b)", "number"), field("own", ""))
    found = rows(*fields, each="//li", options={"xpath": True})
    assert found == [("/a", 1, "One & only Price 10 20"), ("/b", 1, "Two Rooms 3")]


def test_a_dot_alone_is_the_item_itself() -> None:
    assert rows(field("text", "."), each="//li/a") == [("One & only",), ("Two",)]


def test_all_last_and_documents() -> None:
    (row,) = rows(
        field("all", "//li/a", "all", "join"),
        field("last", "//li/@id", "last"),
        field("count", "//li", "count"),
        field("html", "//li[2]/a", "html"),
        field("truth", "(count(//td) = 2)", "boolean"),
    )
    assert row[:3] == ("One & only, Two", "b", 2)
    assert row[3].text == '<a href="/b">Two</a>'
    assert row[4] is True


def test_the_page_is_seen_as_html_5_sees_it() -> None:
    assert rows(field("cell", "./td[2]"), each="//table/tbody/tr") == [("y",)]


def test_what_xml_cannot_carry_is_left_out() -> None:
    page = "<p @click=x :to=y ok=z>a\x01b<my:tag>c</my:tag><1a>d</p>"
    assert rows(field("t", "//p"), field("ok", "//p/@ok"), field("tag", "//tag"), page=page)[0][1:] == (
        "z",
        "c",
    )


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        ("//a", "field 'x': '//a' is looked for in the whole page; write .//a, or say page"),
        ("./a[", "bad XPath"),
        ("./a/@@b", "bad XPath"),
        ("./a[foo()]", "bad XPath: unknown function foo()"),
    ],
)
def test_mistakes_are_told_when_the_wrapper_is_compiled(selector: str, message: str) -> None:
    with pytest.raises(SettingError) as caught:
        rows(field("x", selector), each="//li")
    assert message.removeprefix("field 'x': ") in caught.value.message
    assert caught.value.setting == "x"


def test_a_value_is_no_item() -> None:
    with pytest.raises(SettingError, match="leads to a value and not to elements"):
        rows(field("x", "./a"), each="(count(//a))")


def test_what_was_found_where_is_explained() -> None:
    extraction = Extraction(each="//li", fields=(field("link", "./a/@href"), field("n", "./b")))
    found = [(each.path, each.value) for each in HtmlExtractor(extraction).explain(HEAD, PAGE.encode())]
    assert found[0] == ("li#a > a (./a/@href)", "/a")
    assert [value for _, value in found] == ["/a", "Price", "/b", "Rooms"]


@given(st.text(alphabet="<>/&;\"'= abdivpsctyle!-#x0\x00:@", max_size=80))
def test_any_page_can_be_searched(page: str) -> None:
    """Elements by CSS and by XPath are the same, whatever the page."""
    css = rows(field("t", "", "raw"), each="*", page=page)
    paths = rows(field("t", ".", "raw"), each="//*", page=page, options={"xpath": True})
    assert paths == css
