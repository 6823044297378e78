"""JSON pages: paths, values, items that leave early, and everything that can be wrong with a text."""

from __future__ import annotations

import json
import math
import tracemalloc
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aioflow.relation import Document, Type
from aioflow.web.errors import ExtractionError
from aioflow.wrappers.readers.json.path import compile_path
from aioflow.wrappers.readers.json.reader import JsonReader
from tests.wrappers.feeding import FEEDS, Feed, embedded, field, mistake

JSON = JsonReader()
DIAMONDS = (FEEDS / "diamonds.json").read_bytes()


def read(page: Any, *fields: Any, **how: Any) -> list[Any]:
    body = page if isinstance(page, bytes | str) else json.dumps(page)
    return Feed(JSON, *fields, **how).read(body)


# --- a page of an API -----------------------------------------------------------------------------


def test_a_page_of_an_api_gives_its_items_and_its_next_page() -> None:
    feed = Feed(
        JSON,
        "id",
        "title",
        field("cut", "grade.cut", "lower"),
        field("price", "price-info.amount"),
        field("width", "size[0]"),
        field("total", "meta.total", scope="page"),
        field("link", "url", "url"),
        each="data.items",
        next_page=field("next", "meta.next", "url"),
    )
    rows = feed.read(DIAMONDS)
    assert len(rows) == 60
    assert rows[1] == (
        901,
        "Premium diamond, 0.73 carat",
        "premium",
        2876,
        5.68,
        53940,
        "https://feeds.example/diamonds/901",
    )
    assert feed.next_page == "https://feeds.example/diamonds?page=2"


def test_items_leave_while_the_rest_is_on_its_way() -> None:
    feed = Feed(JSON, "id", each="items")
    assert feed.extractor.is_incremental
    assert feed.arriving('{"meta": {"n": [1, 2]}, "items": [{"id": 1}, {"i', 'd": 2}, {"id": 3}', "]}") == [
        [(1,)],
        [(2,), (3,)],
        [],
        [],
    ]


def test_items_wait_only_for_the_fields_of_their_page() -> None:
    feed = Feed(JSON, "id", field("total", scope="page"), each="items")
    assert feed.arriving('{"total": 2, "items": [{"id": 1},', '{"id": 2}]}')[0] == [(1, 2)]
    assert feed.arriving('{"items": [{"id": 1}], ', '"total": 1, ', '"x": 1}') == [[], [(1, 1)], [], []]
    assert feed.arriving('{"items": [{"id": 1}]}') == [[], [(1, None)]]


def test_the_link_to_the_next_page_keeps_no_item_waiting() -> None:
    feed = Feed(JSON, "id", each="items", next_page=field("next", "paging.next"))
    body = '{"items": [{"id": 1}], "paging": {"next": "c2", "n": 1}}'
    assert feed.arriving(body)[0] == [(1,)]
    assert feed.read(body) == [(1,)]
    assert feed.next_page == "c2"


def test_a_path_beyond_simple_ones_is_read_whole() -> None:
    feed = Feed(JSON, "id", each="items[?@.price < 10]")
    assert not feed.extractor.is_incremental
    assert feed.read('{"items": [{"id": 1, "price": 9}, {"id": 2, "price": 11}]}') == [(1,)]


# --- what is an item ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("page", "each", "items"),
    [
        ([1, 2], None, [1, 2]),
        ([[1], [2]], None, [Document("[1]", "json"), Document("[2]", "json")]),
        ({"a": 1}, None, [Document('{"a": 1}', "json")]),
        (7, None, [7]),
        ({"a": {"b": [1, 2]}}, "a.b", [1, 2]),
        ({"a": {"b": [1, 2]}}, "$.a.b[*]", [1, 2]),
        ({"a": [[1], [2]]}, "a[*][*]", [1, 2]),
        ({"a": {"x": 1, "y": 2}}, "a.*", [1, 2]),
        ({"a": {"x": 1}}, "a", [Document('{"x": 1}', "json")]),
        ({"a": [1, 2, 3]}, "a[1]", [2]),
        ({"a": [1, 2, 3]}, "a[-1]", [3]),
        ({"a": [{"b": [1]}, {"c": 2}, {"b": [3, 4]}]}, "a[*].b[*]", [1, 3, 4]),
        ({"odd key": [1], "a.b": [2]}, '["odd key"]', [1]),
        ({"a.b": [2], "a": {"b": [3]}}, "['a.b']", [2]),
        ({"a": {"item": {"x": 1}}}, "a.item.x", [1]),
        ({"a": None}, "a", [None]),
        ({"b": 1}, "a", []),
        ({"a": []}, "a", []),
    ],
)
def test_each_leads_to_items(page: Any, each: str | None, items: list[Any]) -> None:
    assert read(page, field("item", "$"), each=each) == [(item,) for item in items]


def test_a_page_without_items_gives_its_own_fields_only_with_outer() -> None:
    page = {"total": 0, "items": []}
    fields = ["id", field("total", scope="page")]
    assert read(page, *fields, each="items") == []
    assert read(page, *fields, each="items", outer=True) == [(None, 0)]


# --- values ---------------------------------------------------------------------------------------


def test_values_have_their_own_types_and_what_is_not_plain_is_a_document() -> None:
    page = {"a": "x", "b": 1, "c": 1.5, "d": True, "e": None, "f": {"g": [1]}, "h": 10**40}
    assert read(page, *"abcdefh", "missing") == [
        ("x", 1, 1.5, True, None, Document('{"g": [1]}', "json"), 10**40, None)
    ]


def test_the_type_of_a_field_is_known_where_a_word_says_it() -> None:
    extractor = Feed(JSON, "a", field("b", "", "number"), field("c", "", "all")).extractor
    assert extractor.schema.types == (None, Type.NUMBER, Type.RELATION)  # type: ignore[attr-defined]


def test_words_convert_values() -> None:
    page = {"price": "1.234,50 €", "when": "2024-05-06", "ok": "yes", "n": 7, "tags": ["b", "a"], "at": "/x"}
    [row] = read(
        page,
        field("price", "", ("number", "de")),
        field("year", "when", ("split", "-", 1)),
        field("ok", "", "boolean"),
        field("n", "", "char"),
        field("tags", "", ("join", " + ")),
        field("many", "tags", "count"),
        field("last", "tags", "last"),
        field("at", "", "url"),
        field("unread", "tags", "number"),
        field("whole", "tags", "document"),
    )
    assert row == (
        1234.5,
        "2024",
        True,
        "7",
        "b + a",
        2,
        "a",
        "https://feeds.example/x",
        None,
        Document('["b", "a"]', "json"),
    )


def test_every_match_is_a_relation() -> None:
    [[tags, prices]] = read(
        {"tags": ["x", "y"], "offers": [{"p": 1}, {}, {"p": 2}]},
        field("tags", "", "all"),
        field("prices", "offers[*].p", "all"),
    )
    assert embedded(tags) == [("x",), ("y",)]
    assert embedded(prices) == [(1,), (2,)]


def test_relations_are_embedded_and_may_nest() -> None:
    rooms = field("rooms", "", fields=[field("n", "name"), field("beds", fields=[field("size", "$")])])
    [[value]] = read({"rooms": [{"name": "a", "beds": [1, 2]}, {"name": "b"}]}, rooms)
    first, second = embedded(value)
    assert first[0] == "a"
    assert embedded(first[1]) == [(1,), (2,)]
    assert embedded(second[1]) == []


def test_a_field_that_is_required_names_its_item() -> None:
    feed = Feed(JSON, field("id", required=True), each="items")
    assert feed.refusal('{"items": [{"id": 1}, {"id": null}]}') == "item 2 has no 'id', which is required"


def test_not_a_number_is_a_number_and_null_inside_of_documents() -> None:
    [(value, whole, large)] = read('{"a": NaN, "b": Infinity}', "a", field("all", "$"), field("b"))
    assert math.isnan(value)
    assert whole == Document('{"a": null, "b": null}', "json")
    assert large == math.inf


def test_of_keys_that_stand_twice_the_last_one_counts() -> None:
    assert read('[{"a": 1, "a": 2}]', "a") == [(2,)]
    assert "the key 'items' stands twice" in Feed(JSON, "a", each="items").refusal(
        '{"items": [], "items": []}'
    )


def test_halves_of_surrogate_pairs_are_replaced() -> None:
    assert read(r'[{"a": "\ud83d\ude00 \ud800!"}]', "a") == [("😀 \ufffd!",)]


# --- paths ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("a.b[0].c", [1]),
        ("$['a']['b'][-1]['c']", [2]),
        ("$..c", [1, 2]),
        ("a.b[?@.c > 1].c", [2]),
        ("a.b[0:1].c", [1]),
        ("price-info[?@ > 1]", [2]),
        ("@type", ["T"]),
        ("dc:title", ["t"]),
        ('["it\'s"]', [3]),
        (r"['it\'s']", [3]),
        (r'["\u00e9"]', [4]),
        (" a.b[1].c ", [2]),
        ("text[0]", []),
        ("text.length", []),
        ("text..x", []),
    ],
)
def test_paths_lead_to_values(path: str, found: list[Any]) -> None:
    page = {
        "a": {"b": [{"c": 1}, {"c": 2}]},
        "price-info": [1, 2],
        "@type": "T",
        "dc:title": "t",
        "it's": 3,
        "é": 4,
        "text": '{"x": 1}',
    }
    assert compile_path(path).every(page) == found
    assert compile_path(path).first(page) == (found[0] if found else None)


@pytest.mark.parametrize(
    ("path", "offset", "words"),
    [
        (" ", 0, "empty"),
        ("a.", 2, "a name is expected"),
        ("a[]", 1, "[*]"),
        ("a[x]", 1, "quoted name"),
        ("a b", 1, "unexpected ' '"),
        ("a..", 3, "shorthand"),
        ("items[?@.p >].t", 12, "unexpected end of expression"),
        ("price-info[?foo(@.x)]", 12, "'foo' is not defined"),
        (r"['\q']", 1, "escape"),
    ],
)
def test_a_mistake_in_a_path_has_its_place(path: str, offset: int, words: str) -> None:
    setting, place, message = mistake(JSON, field("x", path))
    assert (setting, place) == ("x", offset)
    assert words in message
    assert mistake(JSON, "x", each=path)[:2] == ("EACH", offset)


def test_a_mistake_inside_of_an_embedded_relation_names_both() -> None:
    assert mistake(JSON, field("outer", fields=[field("inner", "a[")]))[:2] == ("outer.inner", 1)


def test_patterns_in_filters_take_linear_time() -> None:
    page = {"items": [{"t": "a" * 5000 + "!", "p": "(a+)+$"}, {"t": "aa", "p": "("}]}
    assert read(page, "t", each="items[?match(@.t, '(a+)+')]") == [("aa",)]
    assert read(page, "t", each="items[?search(@.t, @.p)]") == []


# --- lines ----------------------------------------------------------------------------------------


def test_lines_of_json_are_items_that_leave_one_by_one() -> None:
    feed = Feed(JSON, "a", lines=True)
    assert feed.extractor.is_incremental
    assert feed.arriving('{"a": 1}\n{"a', '": 2}\r\n\n{"a":', ' "\u2028"}') == [
        [(1,)],
        [(2,)],
        [],
        [("\u2028",)],
    ]


def test_each_applies_to_every_line() -> None:
    assert read('{"x": [1, 2]}\n{"x": [3]}\n{}', field("n", "$"), each="x", lines=True) == [(1,), (2,), (3,)]


def test_a_line_that_is_wrong_is_named() -> None:
    message = Feed(JSON, "a", lines=True).refusal('{"a": 1}\n{"a": }\n')
    assert message == "the JSON cannot be read: line 2, column 7: expecting value"


def test_lines_have_no_page_around_them() -> None:
    assert mistake(JSON, field("total", scope="page"), lines=True)[0] == "total"
    assert mistake(JSON, "a", next_page=field("next"), lines=True)[0] == "next"


def test_options_are_checked() -> None:
    assert mistake(JSON, "a", line=True)[2].endswith("did you mean 'lines'?")
    assert mistake(JSON, "a", lines=3)[0] == "READ"


# --- texts that are wrong -------------------------------------------------------------------------

WRONG = [
    (b"", "line 1, column 1: it is empty"),
    (b" \n ", "it is empty"),
    (b'{"items": [{"id": 1}, {"id"', "it ends before its end: the page is cut off"),
    (b'{"items": [{"id": 1}]', "it ends before its end: the page is cut off"),
    (b'{"items": [{"id": 1},\n {"id": tru}]}', "line 2, column 9: expecting value"),
    (b'{"items": [{"id": 1} {"id": 2}]}', "line 1, column 22: expecting ',' delimiter"),
    (b'{"items": [1,]}', "expecting value"),
    (b'{"items" [1]}', "expecting ':' delimiter"),
    (b'{"items": [1]} x', "extra data"),
    (b"{items: [1]}", "expecting property name enclosed in double quotes"),
    (b"<!doctype html><p>Log in", "found '<': is this an HTML page?"),
    (b'{"items": ["\xff"]}', "byte 13 is not utf-8"),
    (b'{"items": ["\xe2\x82', "byte 13 is not utf-8"),
    (b'{"items": [' + b"9" * 5000 + b"]}", "line 1, column 12: an integer of more than 4,300 digits"),
    (b'{"items": [' + b"[" * 300, "nested more than 256 levels deep"),
    (b'{"x": ' + b'{"a":' * 300 + b"1" + b"}" * 300 + b"}", "nested more than 256 levels deep"),
]


@pytest.mark.parametrize(("body", "words"), WRONG)
@pytest.mark.parametrize("each", ["items", "items[?@ != 0]"])
def test_a_text_that_is_wrong_is_refused_with_the_place(body: bytes, words: str, each: str) -> None:
    feed = Feed(JSON, "id", each=each)
    message = feed.refusal(body)
    assert message.startswith("the JSON cannot be read: ")
    if each == "items":
        assert words in message
        assert feed.refusal(body, sizes=[1] * len(body)) == message


@pytest.mark.parametrize("each", [None, "..x"])
def test_the_depth_limit_is_exact(each: str | None) -> None:
    feed = Feed(JSON, field("x", "$"), each=each)
    assert len(feed.read("[" * 256 + "]" * 256)) == (0 if each else 1)
    assert "256" in feed.refusal("[" * 257 + "]" * 257)


def test_brackets_inside_of_texts_are_not_deep() -> None:
    assert read([{"a": "[" * 1000}, {"a": '\\"[{' * 500}], "a") == [("[" * 1000,), ('\\"[{' * 500,)]


@pytest.mark.parametrize("codec", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_marks_and_wide_characters_are_understood(codec: str) -> None:
    assert Feed(JSON, "a").read('[{"a": "é"}]'.encode(codec), sizes=[1, 2, 3]) == [("é",)]


def test_the_header_and_the_wrapper_say_the_charset() -> None:
    body = '[{"a": "é"}]'.encode("latin-1")
    assert Feed(JSON, "a").read(body, content_type="application/json; charset=latin-1") == [("é",)]
    assert Feed(JSON, "a", charset="latin-1").read(body) == [("é",)]
    assert "byte 9 is not utf-8" in Feed(JSON, "a").refusal(body)


# --- in pieces as whole ---------------------------------------------------------------------------

KEYS = st.sampled_from(["a", "b", "items", "a.b", "item", "é", 'q"\\'])
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=20,
)
PATHS = st.sampled_from(
    [None, "items", "items[*]", "a.items", "*", "a[*].b", "[0].a", "['a.b'][*]", "a.b.items"]
)
SIZES = st.lists(st.integers(0, 9), max_size=60)


@settings(max_examples=120, deadline=None)
@given(page=VALUES, each=PATHS, sizes=SIZES, indent=st.sampled_from([None, 1]), is_ascii=st.booleans())
def test_a_page_in_pieces_gives_what_the_standard_library_reads(
    page: Any, each: str | None, sizes: list[int], indent: int | None, is_ascii: bool
) -> None:
    text = json.dumps(page, indent=indent, ensure_ascii=is_ascii)
    feed = Feed(JSON, field("item", "$", "document"), each=each)
    assert feed.extractor.is_incremental
    whole = json.loads(text)
    items = compile_path(each or "$").every(whole)
    rows = feed.read(text.encode("utf-8", "surrogatepass"), sizes=sizes)
    assert [None if value is None else json.loads(str(value)) for (value,) in rows] == items


@settings(max_examples=120, deadline=None)
@given(data=st.data(), page=VALUES, sizes=SIZES)
def test_a_text_is_accepted_exactly_when_the_standard_library_accepts_it(
    data: st.DataObject, page: Any, sizes: list[int]
) -> None:
    text = json.dumps({"x": page, "items": [page]})
    cut = data.draw(st.integers(0, len(text)))
    text = (
        text[:cut]
        + data.draw(st.sampled_from(["", "{", "]", ",", '"', "\\", "1", " ", "n"]))
        + text[cut + 1 :]
    )
    try:
        json.loads(text)
        is_right = True
    except ValueError:
        is_right = False
    feed = Feed(JSON, field("item", "$"), each="a.items")
    if is_right:
        feed.read(text, sizes=sizes)
    else:
        feed.refusal(text, sizes=sizes)


# --- large pages ----------------------------------------------------------------------------------


def test_memory_depends_on_the_items_and_not_on_the_page() -> None:
    piece = ",".join(json.dumps({"id": number, "text": "x" * 100}) for number in range(500)).encode()
    reading = Feed(JSON, "id", each="items").extractor.open(_page())
    reading.feed(b'{"items": [')
    reading.feed(piece)
    tracemalloc.start()
    rows = sum(len(reading.feed(b"," + piece)) for _ in range(40))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    reading.feed(b"]}")
    reading.end()
    assert rows > 19_000
    assert peak < 1_000_000  # of 2.5 MB that came


def test_what_nobody_wants_is_passed_over_without_being_kept() -> None:
    reading = Feed(JSON, "id", each="items").extractor.open(_page())
    reading.feed(b'{"other": {"deep": [')
    tracemalloc.start()
    for _ in range(20):
        assert reading.feed(b'{"a": [1, 2, 3]},' * 1000) == []
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert reading.feed(b'1]}, "items": [{"id": 1}]}') == [(1,)]
    assert reading.end() == []
    assert peak < 150_000  # of 350 KB that came


def _page() -> Any:
    from aioflow.wrappers.readers.reader import PageHead

    return PageHead("https://feeds.example/large")


# --- where values come from -----------------------------------------------------------------------


def test_explain_says_where_each_value_comes_from() -> None:
    feed = Feed(
        JSON,
        "id",
        field("tag", "tags", "all"),
        field("total", "meta.total", scope="page"),
        field("gone", "nothing"),
        each="items",
    )
    page = '{"meta": {"total": 2}, "items": [{"id": 1, "tags": ["a", "b"]}, {"id": 2}]}'
    found = feed.explain(page)
    assert [(each.row, each.field, each.path, each.excerpt) for each in found[:5]] == [
        (0, "id", "$.items[0].id", "1"),
        (0, "tag", "$.items[0].tags[0]", '"a"'),
        (0, "tag", "$.items[0].tags[1]", '"b"'),
        (0, "total", "$.meta.total", "2"),
        (0, "gone", "", ""),
    ]
    assert [each.value for each in found if each.field == "id"] == [1, 2]


def test_explain_names_lines_whole_pages_and_embedded_fields() -> None:
    lines = Feed(JSON, "a", lines=True).explain('{"a": 1}\n\n{"a": 2}')
    assert [each.path for each in lines] == ["line 1: $.a", "line 3: $.a"]
    assert [each.path for each in Feed(JSON, "a", each="..x").explain('{"x": {"a": 1}}')] == ["$.x.a"]
    rooms = field("rooms", fields=[field("n"), field("kind", scope="constant", default="room")])
    found = Feed(JSON, rooms).explain('{"rooms": [{"n": 1}, {}]}')
    assert [(each.field, each.path, each.value) for each in found] == [
        ("rooms.n", "$.rooms[0].n", 1),
        ("rooms.kind", "constant", "room"),
        ("rooms.n", "", None),
        ("rooms.kind", "constant", "room"),
    ]


def test_explain_refuses_what_cannot_be_read() -> None:
    with pytest.raises(ExtractionError, match="line 1, column 5"):
        Feed(JSON, "a").explain('{"a"')
