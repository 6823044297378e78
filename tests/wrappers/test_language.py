"""The language of wrappers: what each form of the text says."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from aioflow import load, loads
from aioflow.language import format_text
from aioflow.relation import Type
from aioflow.restart.policies import RestartPolicy
from aioflow.wrappers import Field, Processing, WrapperInput, WrapperText, parse_wrapper, resolve
from aioflow.wrappers.language.wrapper_text import (
    PagingText,
    Part,
    ReaderChoice,
    ReaderOption,
    Removal,
    RequestLine,
)
from aioflow.wrappers.wrapper_item import KIND
from tests.clocks import PATIENCE_SECONDS

EXAMPLE = Path(__file__).with_name("example.plan")


def fields(*lines: str) -> list[Field | Removal]:
    return list(parse_wrapper("w", "", "\n".join(lines)).fields)


def field(line: str) -> Field:
    (only,) = fields(line)
    assert isinstance(only, Field)
    return only


def directive(line: str) -> Any:
    (only,) = parse_wrapper("w", "", line).directives
    return only.value


def inputs(header: str) -> tuple[WrapperInput, ...] | None:
    return parse_wrapper("w", header).inputs


def test_the_example_of_the_plan_language() -> None:
    program = load(EXAMPLE)
    search, page, detail = (resolve(name, program) for name in ("search", "result-page", "detail"))
    assert search.input_names == ("city", "max-price")
    assert search.request.url == "https://homes.example/search{?city,max-price}"
    assert (search.extraction.reader, search.extraction.each) == ("html", "li.house")
    assert search.extraction.fields == (
        Field("house-url", "a.title @href", processing=(Processing("url"),)),
        Field("price", ".price", processing=(Processing("number"),)),
        Field("next-page-link", "a.next @href", "page", (Processing("url"),)),
    )
    assert search.schema.type_of("price") is Type.NUMBER
    assert (page.input_names, page.request.url) == (("next-page-link",), "{+next-page-link}")
    assert page.extraction == search.extraction
    assert detail.extraction.fields[0] == Field("address", "h1.address", required=True)


def test_formatting_keeps_wrappers_as_they_are() -> None:
    text = EXAMPLE.read_text(encoding="utf-8")
    assert format_text(text).startswith(text[: text.index("PLAN")])


# --- header --------------------------------------------------------------------------------------


def test_inputs_have_types_defaults_and_may_be_optional() -> None:
    header = "(a, b number, c OPTIONAL, d date optional, e = 5, f char = 'x', `g h` Number, \"i.j\")"
    assert inputs(header) == (
        WrapperInput("a"),
        WrapperInput("b", Type.NUMBER),
        WrapperInput("c", optional=True),
        WrapperInput("d", Type.DATE, True),
        WrapperInput("e", None, True, 5),
        WrapperInput("f", Type.CHAR, True, "x"),
        WrapperInput("g h", Type.NUMBER),
        WrapperInput("i.j"),
    )


@pytest.mark.parametrize(
    ("header", "found", "like"),
    [("", None, None), ("()", (), None), ("LIKE other", None, "other"), ("() like Other-1", (), "Other-1")],
)
def test_a_header_may_leave_things_out(header: str, found: Any, like: str | None) -> None:
    text = parse_wrapper("w", header)
    assert (text.inputs, text.like) == (found, like)


# --- entries -------------------------------------------------------------------------------------


def test_entries_stand_in_lines_or_between_semicolons_with_comments_anywhere() -> None:
    body = """
      # about prices
      price: ".price"   number;; beds: '.beds' // how many
      /* not
         now */ note: page "#note"; FORM: a,
           b = 1,   # over lines
           c =
             [1,
              2]
      """
    text = parse_wrapper("w", "", body)
    assert [each.name for each in text.fields] == ["price", "beds", "note"]
    assert text.by_name["FORM"].value == (Part("a", "{a}"), Part("b", 1), Part("c", (1, 2)))


def test_keywords_and_words_are_case_insensitive_and_names_of_fields_are_not() -> None:
    text = parse_wrapper(
        "w", "", 'get: "https://a.example/"; Each: "li"; outer; A: "x" NUMBER Required; a: Page "y"'
    )
    assert [each.name for each in text.directives] == ["REQUEST", "EACH", "OUTER"]
    assert text.fields == (
        Field("A", "x", processing=(Processing("number"),), required=True),
        Field("a", "y", "page"),
    )


def test_a_field_named_like_a_directive_stands_in_backticks_or_quotes() -> None:
    names = [each.name for each in fields("`body`: 'a'", '"GET": "b"', "'each': 'c'", "`GTE`: 'd'")]
    assert names == ["body", "GET", "each", "GTE"]


def test_a_name_in_backticks_may_hold_a_brace() -> None:
    program = loads("WRAPPER w { GET: 'https://a.example/'; `}{`: 'x' }\nPLAN p { BODY { } }")
    content = program.items[0].content
    assert isinstance(content, WrapperText)
    assert [each.name for each in content.fields] == ["}{"]
    assert KIND.end_of_body("`}` }", 0) == 4


# --- fields --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('x: ".a"', Field("x", ".a")),
        ("x:", Field("x")),
        ("x: number", Field("x", processing=(Processing("number"),))),
        ('x: """a\n"b\\"\\u0041"""', Field("x", 'a\n"b"A')),
        ('x: page ".a"', Field("x", ".a", "page")),
        ("x: page", Field("x", "", "page")),
        ('x: ".a" required', Field("x", ".a", required=True)),
        ('x: ".a" optional', Field("x", ".a", processing=(Processing("optional"),))),
        ('x: ".a" default 0 number', Field("x", ".a", processing=(Processing("number"),), default=0)),
        ('x: ".a" default "-"', Field("x", ".a", default="-")),
        ("x: = 5", Field("x", scope="constant", default=5)),
        ("x: = 'a'", Field("x", scope="constant", default="a")),
        ("x: = null", Field("x", scope="constant")),
        ("x: response url", Field("x", "url", "response")),
        ("x: response status", Field("x", "status", "response")),
        ("x: response date", Field("x", "date", "response")),
        ('x: response header "ETag" lower', Field("x", "header ETag", "response", (Processing("lower"),))),
        ("page: page 'page'", Field("page", "page", "page")),
        ("none: 'x'", Field("none", "x")),
    ],
)
def test_forms_of_fields(line: str, expected: Field) -> None:
    assert field(line) == expected


def test_words_have_arguments_and_keep_their_order() -> None:
    line = 'x: ".a" match "(\\\\d+),(\\\\d+)" 2 replace "a" "b" split "," 1 number "de"'
    assert field(line).processing == (
        Processing("match", ("(\\d+),(\\d+)", 2)),
        Processing("replace", ("a", "b")),
        Processing("split", (",", 1)),
        Processing("number", ("de",)),
    )


def test_embedded_relations_may_nest_and_stand_on_one_line_or_several() -> None:
    body = """
      rooms: page each ".room" required
      {
        name: "b"
        items: each "li" { kind: "i"; count: number }
      }
      after: "x"
    """
    rooms, after = fields(body)
    assert rooms == Field(
        "rooms",
        ".room",
        "page",
        required=True,
        fields=(
            Field("name", "b"),
            Field(
                "items",
                "li",
                fields=(Field("kind", "i"), Field("count", processing=(Processing("number"),))),
            ),
        ),
    )
    assert after == Field("after", "x")


def test_a_field_can_be_taken_back() -> None:
    assert fields("x: none", "`y z`: NONE") == [Removal("x"), Removal("y z")]


def test_places_are_those_of_the_source() -> None:
    program = loads(
        'WRAPPER w\n{\n  GET: "https://a.example/"\n  price: ".p" number "de"\n}\nPLAN p { BODY { } }', "f"
    )
    content = program.items[0].content
    assert isinstance(content, WrapperText)
    price = content.fields[0]
    assert isinstance(price, Field)
    spans = (price.span, price.selector_span, price.processing[0].span, content.by_name["REQUEST"].value_span)
    assert [each.place for each in spans if each] == ["f:4:3", "f:4:10", "f:4:15", "f:3:8"]
    assert price.processing[0].span is not None
    assert price.processing[0].span.end - price.processing[0].span.start == len('number "de"')


# --- directives ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('GET: "https://a.example/"', RequestLine("GET", "https://a.example/")),
        ('delete: "{+x}"', RequestLine("DELETE", "{+x}")),
        ('FORM: a, `b c`, d = "{a} x"', (Part("a", "{a}"), Part("b c", "{`b c`}"), Part("d", "{a} x"))),
        ("JSON: a.b = 50, c.d.e, f = null", (Part("a.b", 50), Part("c.d.e", "{`c.d.e`}"), Part("f", None))),
        ('HEADERS: Accept = "a", "X-Y" = "b"', (Part("Accept", "a"), Part("X-Y", "b"))),
        ('BODY: """<a>\n</a>"""', "<a>\n</a>"),
        ('AUTH: bearer "secret:T"', ("bearer", "secret:T")),
        ('AUTH: Basic "me" "secret:P"', ("basic", "me", "secret:P")),
        ('AUTH: basic "secret:U" "secret:P"', ("basic", "secret:U", "secret:P")),
        ("SAFE", True),
        ("SAFE: off", False),
        ("OUTER: true", True),
        ("READ: JSON", ReaderChoice("json")),
        (
            'READ: csv delimiter ";" header no lines',
            ReaderChoice(
                "csv",
                (ReaderOption("delimiter", (";",)), ReaderOption("header", (False,)), ReaderOption("lines")),
            ),
        ),
        ('EACH: "li"', "li"),
        ('CHARSET: "latin-1"', "latin-1"),
        ('PAGING: next "a.next"', PagingText("next", found=Field("PAGING", "a.next", "page"))),
        (
            'PAGING: cursor "$.c" match "x" as "after"',
            PagingText(
                "cursor", "after", found=Field("PAGING", "$.c", "page", (Processing("match", ("x",)),))
            ),
        ),
        ('PAGING: number "p"', PagingText("number", "p")),
        ('PAGING: number "p" by 2 from 0', PagingText("number", "p", 0, 2)),
        ('PAGING: offset "s" by 20', PagingText("offset", "s", None, 20)),
        ("MAX_PAGES: 50", 50),
        ("EMPTY: 404, 410", (404, 410)),
        ("EMPTY: '.none', 410, 'a d'", (".none", 410, "a d")),
        ("ROBOTS: off", False),
        ("TIMEOUT: 2.5", 2.5),
        ("RESTART: auto", RestartPolicy()),
        ("RESTART: off", RestartPolicy(is_on=False)),
        ("RESTART: 2.5", RestartPolicy(after=2.5)),
        ("RESTART: p99.5", RestartPolicy(percentile=99.5)),
        ("RESTART: 'Hedge P95'", RestartPolicy(keeps_first=True, percentile=95.0)),
        ("RESTART: hedge 2s", RestartPolicy(keeps_first=True, after=2.0)),
        ("RESTART: none", None),
        ("PAGING: none", None),
    ],
)
def test_forms_of_directives(line: str, expected: Any) -> None:
    assert directive(line) == expected


def test_options_of_readers() -> None:
    read = 'READ: xml namespace "a" "urn:a" namespace "b" "urn:b" strict x 5'
    wrapper = resolve("w", loads(f"WRAPPER w {{ {read} }}\nPLAN p {{ BODY {{ }} }}"))
    assert wrapper.extraction.options == {
        "namespace": {"a": "urn:a", "b": "urn:b"},
        "strict": True,
        "x": 5,
    }


def test_reading_texts_needs_neither_client_nor_parsers() -> None:
    code = (
        "import sys, aioflow; aioflow.loads(open(sys.argv[1]).read());"
        "print([name for name in ('aiohttp', 'lxml', 'selectolax', 'uritemplate') if name in sys.modules])"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code, EXAMPLE], capture_output=True, text=True, timeout=PATIENCE_SECONDS
    )
    assert ended.stdout == "[]\n", ended.stderr
