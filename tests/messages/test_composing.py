"""What mails say: tables as text and HTML, templates in their sandbox, files that go with them."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable
from datetime import UTC, date, datetime
from decimal import Decimal
from html.parser import HTMLParser
from typing import Any, Literal
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aioflow import Document, Relation, Row, Schema, SettingError
from aioflow.files import neutral
from aioflow.messages.content.attachments import TooLargeError, ValueEncoding, make_file
from aioflow.messages.content.sandbox import LoopBudget, RowsView, RowView
from aioflow.messages.content.tables import (
    Excerpt,
    html_message,
    html_table,
    text_message,
    text_table,
    value_text,
)
from aioflow.messages.content.templates import (
    BodyTemplate,
    HtmlTemplate,
    TemplateError,
    identifiers,
    safe_links,
)
from aioflow.values.cells import cell, json_text

HOUSES = Schema.of("address", "price", "house-url")
ENCODING = ValueEncoding(cell, json_text)


def excerpt(*rows: Row, schema: Schema = HOUSES, count: int | None = None, **more: Any) -> Excerpt:
    return Excerpt(schema, rows, len(rows) if count is None else count, **more)


# --- text ---------------------------------------------------------------------------------------


def test_a_table_of_text_is_aligned() -> None:
    assert text_table(excerpt(("Elm St\n12", 549000, None), ("東京", Decimal("1.50"), "x"))) == (
        "address     price  house-url\n---------  ------  ---------\nElm St 12  549000\n東京         1.50  x"
    )


def test_a_wide_relation_is_written_in_blocks() -> None:
    link = "https://homes.example/" + "x" * 80
    assert text_table(excerpt(("Elm St", 1, link), ("Oak St", None, link))) == (
        f"address    Elm St\nprice      1\nhouse-url  {link}\n\naddress    Oak St\nhouse-url  {link}"
    )


@pytest.mark.parametrize(
    ("shown", "count", "attached", "said"),
    [
        (1, 1, True, ""),
        (1, 2, False, "… and 1 more row"),
        (1, 9901, False, "… and 9,900 more rows"),
        (1, 9901, True, "… and 9,900 more rows; all are attached"),
    ],
)
def test_what_is_not_shown_is_told(shown: int, count: int, attached: bool, said: str) -> None:
    rows = [("Elm St", 1, "x")] * shown
    found = excerpt(*rows, count=count, attached=attached, plan="watch")
    assert found.more == said
    assert said in text_message(found)
    assert said in html_message(found, "")
    assert f"{count:,} row{'s' * (count > 1)}, sent by the plan watch" in text_message(found)


def test_an_empty_relation_says_so() -> None:
    assert text_message(excerpt()).startswith("No rows.")
    assert "No rows." in html_message(excerpt(), "")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        (True, "true"),
        (1.5, "1.5"),
        (float("nan"), "NaN"),
        (float("-inf"), "-∞"),
        (Decimal("1E+3"), "1000"),
        pytest.param(10**5000, "(a very long number)", id="long"),
        (date(2026, 1, 31), "2026-01-31"),
        (datetime(2026, 1, 31, 10, tzinfo=UTC), "2026-01-31 10:00:00+00:00"),
        (Document("<p>x</p>"), "<p>x</p>"),
        (Relation(Schema.of("a"), [("x",), ("y",)]), "x, y"),
        (Relation(Schema.of("a", "b"), [(1, None), (2, "z")]), "1;  / 2; z"),
        (Relation(Schema.of("a"), [("x",)] * 22), "x, " * 20 + "… and 2 more"),
    ],
)
def test_values_for_people(value: Any, text: str) -> None:
    assert value_text(value) == text


# --- HTML ---------------------------------------------------------------------------------------


class Reader(HTMLParser):
    """The cells of a page, its links, and all elements."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.cells: list[str] = []
        self.links: list[dict[str, str | None]] = []
        self.elements: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add(tag)
        assert not any(name.startswith("on") for name, _ in attrs)
        if tag in ("td", "th"):
            self.cells.append("")
        if tag == "a":
            self.links.append(dict(attrs))

    def handle_data(self, data: str) -> None:
        if self.cells and data.strip():
            self.cells[-1] += data


KNOWN = {"html", "head", "meta", "title", "style", "body", "div", "p", "a"}
KNOWN |= {"table", "thead", "tbody", "tr", "th", "td"}


def test_a_table_of_html_shows_what_the_text_shows() -> None:
    found = Reader(html_table(excerpt(("Elm St", 549000, "https://homes.example/1?a=1&b=<2>"[:31]))))
    assert [text.strip() for text in found.cells] == [
        *HOUSES.names,
        "Elm St",
        "549000",
        "https://homes.example/1?a=1&b=<"[:30] + "<",
    ]


def test_only_links_of_the_web_are_links() -> None:
    links = ["https://homes.example/1", "javascript:alert(1)", 'http://x.example/" onclick="x', "data:x"]
    found = Reader(html_table(excerpt(*((None, None, link) for link in links))))
    assert found.links == [{"href": "https://homes.example/1", "rel": "noopener noreferrer"}]


ODD = ["<", ">", '"', "'", "&", "<script>", "</td>", "-->", "<!--", " onx=", "https://x.example/", "a"]
MARKUP = st.lists(st.sampled_from(ODD)).map("".join) | st.text(max_size=20)


@given(MARKUP, MARKUP, MARKUP)
@settings(max_examples=150)
def test_no_value_or_name_becomes_markup(value: str, name: str, title: str) -> None:
    schema = Schema(("n", f"m{name}"))
    for is_tuple in (False, True):
        page = html_message(excerpt((value, 1), schema=schema, is_tuple=is_tuple), title)
        found = Reader(page)
        assert found.elements <= KNOWN
        assert len(found.cells) == 4
        assert all(str(link["href"]).startswith("https://") for link in found.links)


def test_long_cells_are_cut_and_their_links_are_not() -> None:
    link = "https://homes.example/" + "x" * 600
    found = Reader(html_table(excerpt(("y" * 600, 1, link))))
    assert found.links[0]["href"] == link
    assert [len(text) for text in found.cells[3:]] == [500, 1, 60]


def test_a_hundred_rows_are_not_cut_by_mail_programs() -> None:
    rows = [("12 Elm Street, Springfield", 549000, f"https://homes.example/houses/{n}") for n in range(100)]
    assert len(html_message(excerpt(*rows), "New houses").encode()) < 102_000


# --- templates ----------------------------------------------------------------------------------

ROWS: list[Row] = [("Elm St", 549000, "https://x/1"), ("<b>Oak</b>", None, "javascript:alert(1)")]


def filled(template: str, rows: Iterable[Row] = ROWS, kind: type[BodyTemplate] = BodyTemplate) -> str:
    bound = kind.bind(template, [HOUSES])
    bound.check(each=False)
    known = list(rows)
    budget = LoopBudget()
    view = RowsView(HOUSES, lambda: known, len(known), budget)
    return bound.render({"rows": view, "count": len(known)}, budget)


def filled_each(template: str, row: Row = ROWS[0], kind: type[BodyTemplate] = BodyTemplate) -> str:
    bound = kind.bind(template, [HOUSES])
    bound.check(each=True)
    budget = LoopBudget()
    view = RowView(HOUSES, row, budget)
    variables = {name: view[attribute] for name, attribute in identifiers(HOUSES).items()}
    return bound.render({**variables, "row": view}, budget)


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{{ count }} houses", "2 houses"),
        (
            "{% for house in rows %}{{ house.address }}: {{ house.price }};{% endfor %}",
            "Elm St: 549000;<b>Oak</b>: ;",
        ),
        ('{% for h in rows %}{{ h["house-url"][:9] }} {% endfor %}', "https://x javascrip "),
        ("{% for h in rows %}{{ h.house_url[:9] }} {% endfor %}", "https://x javascrip "),
        ("{{ rows|sum(attribute='price') if false else rows[0].price|number }}", "549,000"),
        ("{{ rows|map(attribute='address')|join(', ') }}", "Elm St, <b>Oak</b>"),
        ("{{ rows|selectattr('price')|list|length }} of {{ rows|length }}", "1 of 2"),
        ("{% for h in rows %}{{ loop.index }}/{{ loop.length }} {% endfor %}", "1/2 2/2 "),
        ("{% set s = namespace(n=0) %}{% for h in rows %}{% set s.n = s.n + 1 %}{% endfor %}{{ s.n }}", "2"),
        ("{{ 'a' ~ 1 ~ none ~ true }}", "a1true"),
        ("{{ rows|map(attribute='price')|list }}", "549000, "),
        ("{{ rows|first }}", "address: Elm St; price: 549000; house-url: https://x/1"),
        ("line 1\n{% if count %}\nline 2\n{% endif %}\n", "line 1\nline 2\n"),
        ("{{ 'Elm'|replace('E', 'e')|upper }}", "ELM"),
        ("{{ '2026-01-31'|date('%d.%m.%Y') }}", "31.01.2026"),
        ("{% macro m(x) %}[{{ x }}]{% endmacro %}{{ m(1) }}", "[1]"),
    ],
)
def test_templates_over_rows(template: str, text: str) -> None:
    assert filled(template) == text


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{{ address }} {{ price }} {{ house_url }}", "Elm St 549000 https://x/1"),
        ("{{ row['house-url'] }} {{ row.price }}", "https://x/1 549000"),
        ("{% for name, value in row|items %}{{ name }} {% endfor %}", "address price house-url "),
        ("{{ address.upper() }}", "ELM ST"),
    ],
)
def test_templates_over_a_tuple(template: str, text: str) -> None:
    assert filled_each(template) == text


def test_values_are_escaped_in_html() -> None:
    template = "{% for h in rows %}<li>{{ h.address }}</li>{% endfor %}{{ '<i>' ~ rows[1].address }}"
    assert filled(template, kind=HtmlTemplate) == (
        "<li>Elm St</li><li>&lt;b&gt;Oak&lt;/b&gt;</li>&lt;i&gt;&lt;b&gt;Oak&lt;/b&gt;"
    )


def test_links_that_data_made_lead_to_the_web_or_nowhere() -> None:
    template = (
        """{% for h in rows %}<a href='{{ h.house_url }}'>x</a><img src={{ h.house_url }}>{% endfor %}"""
    )
    assert filled(template, kind=HtmlTemplate) == (
        '<a href="https://x/1">x</a><img src="https://x/1"><a href="#">x</a><img src="#">'
    )
    assert safe_links('<a href="&#106;ava&#9;script:x">') == '<a href="#">'
    assert safe_links('<a href="#top"><a href="/x">') == '<a href="#top"><a href="/x">'


@pytest.mark.parametrize(
    ("template", "message", "offset"),
    [
        ("{{ cuont }}", "unknown name 'cuont' in the template; did you mean 'count'?", 3),
        ("x {{ price }}", "say EACH for a message a tuple", 5),
        ("{% for h in rows %}{{ h.pirce }}{% endfor %}", "'pirce'; did you mean 'price'?", 24),
        ("{% for h in rows %}{{ h['pirce'] }}{% endfor %}", "unknown attribute 'pirce'", 25),
        ("one\n  {% for %}", "Expected an expression", 6),
        ("{{ count|shout }}", "No filter named 'shout'", 0),
        ("{{ count is shouting }}", "No test named 'shouting'", 0),
        ("{% include 'x' %}", "a template stands alone", 0),
        ("{% extends 'x' %}", "a template stands alone", 0),
        ("{% import 'x' as y %}", "a template stands alone", 0),
        ("{{ count|safe }}", "No filter named 'safe'", 0),
        ("{% autoescape false %}{% endautoescape %}", "values are always escaped in HTML", 0),
        ("{% for h in rows recursive %}{% endfor %}", "a recursive loop is not for messages", 0),
        pytest.param("{{ " + "(" * 3000 + "1" + ")" * 3000 + " }}", "nested too deeply", None, id="deep"),
    ],
)
def test_mistakes_in_templates_are_found_before_anything_runs(
    template: str, message: str, offset: int | None
) -> None:
    with pytest.raises(SettingError) as caught:
        filled(template)
    assert message in str(caught.value)
    assert caught.value.offset == offset


@pytest.mark.parametrize("template", ["{{ adress }}", "{{ row.adress }}", "{{ rows }}"])
def test_names_that_a_tuple_does_not_have_are_mistakes(template: str) -> None:
    with pytest.raises(SettingError, match="unknown"):
        filled_each(template)


@pytest.mark.parametrize(
    "template",
    [
        "{{ ''.__class__.__mro__ }}",
        "{{ rows._walk }}",
        "{{ rows[0]._schema }}",
        "{{ count.__init__.__globals__ }}",
        "{{ range.__globals__ }}",
        "{{ 'x' * 100000000 }}",
        "{{ [1] * 100000000 }}",
        "{{ 9 ** 999999 }}",
        "{{ 2 ** 4000 * 2 ** 4000 }}",
        "{{ '%1000000000d' % 1 }}",
        "{{ '{:1000000000}'.format(1) }}",
        "{{ 'x'.ljust(1000000000) }}",
        "{{ 'x'.replace('x', 'yy') }}",
        "{{ range(1000000000) }}",
        "{% for a in range(1000) %}{% for b in range(1000) %}{% endfor %}{% endfor %}",
        "{% for a in range(90000) %}xxxxxxxxxxxxxxxxxxxxxxxxxxxxx{% endfor %}",
        "{% macro m(x) %}{{ m(x ~ x) }}{% endmacro %}{{ m('xxxxxxxx') }}",
        "{% macro m(x) %}{{ m(x + x) }}{% endmacro %}{{ m('xxxxxxxx') }}",
        "{% macro m(x) %}{{ m(x * x) }}{% endmacro %}{{ m(99999) }}",
        "{% macro m(x) %}{{ m(x) }}{% endmacro %}{{ m(1) }}",
        "{{ ('x' * 1000000)|replace('x', 'yyyyyyyyyy') }}",
        "{{ range(90000)|join('xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx') }}",
        "{{ '2026-01-31'|date('%1000000000d') }}",
        "{{ count / 0 }}",
        "{{ rows[7] .price }}",
        "{{ rows|map(attribute='x')|list }}",
    ],
)
def test_templates_neither_reach_out_nor_grow_without_end(template: str) -> None:
    with pytest.raises(TemplateError):
        filled(template)


def test_a_template_that_fails_names_its_line() -> None:
    with pytest.raises(TemplateError, match="the template, line 3: division by zero"):
        filled("one\ntwo\n{{ count / (count - 2) }}\n")


def test_a_template_cannot_change_the_rows() -> None:
    with pytest.raises(TemplateError):
        filled("{% set x = rows.append(1) %}")


# --- files --------------------------------------------------------------------------------------

VALUES = Schema.of("a", "price-info", "odd name")


def attached(kind: Literal["csv", "json", "xml"], *rows: Row, schema: Schema = VALUES) -> str:
    return make_file(kind, "houses", schema, [list(rows)], ENCODING, 1 << 20).data.decode("utf-8-sig")


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("=1+1", "'=1+1"),
        ("+1+1", "'+1+1"),
        ("-1+1", "'-1+1"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1", "'\t=1"),
        ("\r=1", "'\r=1"),
        ("\ttab", "'\ttab"),
        ("  =1", "'  =1"),
        ("＝1", "'＝1"),
        ("＠x", "'＠x"),
        ("\ufeff=1", "'\ufeff=1"),
        ("\u200b\u2060=1", "'\u200b\u2060=1"),
        ("\ufeffplain", "\ufeffplain"),
        ("-", "'-"),
        ("-5", "-5"),
        ("+4915112345678", "+4915112345678"),
        ("-1.5e3", "-1.5e3"),
        ("plain = text", "plain = text"),
        ("", ""),
    ],
)
def test_cells_that_spreadsheets_take_for_formulas_are_neutral(text: str, written: str) -> None:
    assert neutral(text) == written


def test_csv_of_values_and_formulas() -> None:
    text = attached("csv", (-3, Decimal("-1.50"), "=A1"), (None, 'x,"y"\r\n', "é"))
    assert text == 'a,price-info,odd name\r\n"-3","-1.50","\'=A1"\r\n"","x,""y""\r\n","é"\r\n'
    assert list(csv.reader(io.StringIO(text, newline="")))[2] == ["", 'x,"y"\r\n', "é"]
    assert make_file("csv", "h", VALUES, [], ENCODING, 99).data.startswith(b"\xef\xbb\xbfa,")


@given(st.lists(st.tuples(st.text(max_size=8), st.text(max_size=8)), max_size=5))
def test_no_cell_of_a_csv_begins_like_a_formula(rows: list[Row]) -> None:
    text = attached("csv", *rows, schema=Schema.of("a", "b"))
    read = list(csv.reader(io.StringIO(text.replace("\x00", ""), newline="")))
    assert len(read) == len(rows) + 1
    for line in read:
        for written in line:
            assert not re.match(r"\s*[=@＝＋－＠]|[\t\r]", written)


def test_json_of_values() -> None:
    nested = Relation(Schema.of("x"), [(1,)])
    text = attached("json", (1.5, "é\n", nested), (None, float("nan"), date(2026, 1, 31)))
    assert json.loads(text) == [
        {"a": 1.5, "price-info": "é\n", "odd name": [{"x": 1}]},
        {"a": None, "price-info": "NaN", "odd name": "2026-01-31"},
    ]
    assert json.loads(attached("json")) == []


def test_xml_of_values() -> None:
    nested = Relation(Schema.of("x"), [("<1>",), (None,)])
    text = attached("xml", ("<&>\x01", None, nested))
    assert text == (
        '<?xml version="1.0" encoding="UTF-8"?>\n<relation>\n  <row><a>&lt;&amp;&gt;\ufffd</a>'
        '<attribute name="odd name"><row><x>&lt;1&gt;</x></row><row></row></attribute></row>\n</relation>\n'
    )


@given(st.text(max_size=10), st.text(min_size=1, max_size=10))
def test_xml_is_well_formed_whatever_is_in_it(value: str, name: str) -> None:
    data = make_file("xml", "h", Schema((name,)), [[(value,)]], ENCODING, 1 << 20).data
    [row] = ElementTree.fromstring(data)
    allowed = re.sub("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\ufffd", value)
    assert (row[0].text or "") == allowed


def test_a_file_that_is_too_large_is_an_error_and_not_cut() -> None:
    with pytest.raises(TooLargeError, match=r"attachment houses.csv the message is larger than 1 KiB"):
        make_file("csv", "houses", Schema.of("a"), [[("x" * 100,)] * 20], ENCODING, 1024)
