"""The words behind selectors: what they make of texts and of native values, and what is wrong with them."""

from __future__ import annotations

import locale
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioflow.errors import SettingError
from aioflow.relation import Document, Type, Value
from aioflow.wrappers.conversions import WORDS
from aioflow.wrappers.dates import date_reader
from aioflow.wrappers.definition import Field
from aioflow.wrappers.numbers import number_reader
from aioflow.wrappers.page import Page
from aioflow.wrappers.processing import (
    check_processing,
    compile_field,
    field_type,
    processing_mistakes,
)
from aioflow.wrappers.readers.reader import PageHead
from tests.wrappers.feeding import embedded, field

URL = "https://homes.example/list/page.html"


def converted(raw: Value, *words: Any, native: bool = False, page: Page | None = None, **how: Any) -> Value:
    """What a field with these words makes of what a reader found."""
    default = None if native else Type.CHAR
    conversion = compile_field(field("it", "", *words, **how), default, collapse=not native)
    return conversion.convert(raw, page or Page(PageHead(URL)))


def refusal(*words: Any, **how: Any) -> str:
    with pytest.raises(SettingError) as caught:
        check_processing(field("it", "", *words, **how))
    assert caught.value.setting == "it"
    return caught.value.message.removeprefix("field 'it': ")


# --- texts ---------------------------------------------------------------------------------------


def test_a_text_is_collapsed_and_a_blank_one_is_null() -> None:
    assert converted("  Elm \n\t Street ") == "Elm Street"
    assert converted(" \n ") is None
    assert converted(None) is None


def test_a_raw_text_stays_as_it_is() -> None:
    assert converted("  Elm \n Street ", "raw") == "  Elm \n Street "
    assert converted("", "raw") == ""


def test_words_work_in_the_order_in_which_they_stand() -> None:
    assert converted("Room 12B", ("match", r"\d+(\w)"), "lower", ("prefix", "<"), ("suffix", ">")) == "<b>"
    assert converted("a-b", ("prefix", "x-"), ("split", "-", 1)) == "x"
    assert converted("a-b", ("split", "-", 1), ("prefix", "x-")) == "x-a"


@pytest.mark.parametrize(
    ("group", "expected"), [((), "12"), ((0,), "12 m"), ((2,), "m"), (("unit",), "m")], ids=str
)
def test_match_gives_the_first_group_or_the_one_asked_for(group: Any, expected: str) -> None:
    assert converted("size 12 m", ("match", r"(\d+) (?P<unit>\w)", *group)) == expected


def test_what_does_not_match_is_null() -> None:
    assert converted("twelve", ("match", r"\d+")) is None


def test_replace_takes_groups_of_the_pattern() -> None:
    assert converted("12/31", ("replace", r"(\d+)/(\d+)", r"\2.\1.")) == "31.12."
    assert converted("12/31", ("replace", r"(?P<month>\d+)/", r"é\\\g<month>")) == "é\\1231"


def test_a_part_is_counted_from_either_end() -> None:
    assert converted("a, b, c", ("split", ",", 2)) == "b"
    assert converted("a, b, c", ("split", ",", -1)) == "c"
    assert converted("a, b, c", ("split", ",", 4)) is None
    assert converted("a, , c", ("split", ",", 2)) is None


def test_links_are_resolved_and_blank_or_foreign_ones_are_null() -> None:
    assert converted("../a.html", "url") == "https://homes.example/a.html"
    assert converted(" /b ", "url") == "https://homes.example/b"
    assert converted("//other.example/c", "url") == "https://other.example/c"
    assert converted("  ", "url") is None
    assert converted("javascript:next()", "url") is None


def test_links_follow_the_base_that_the_page_names() -> None:
    page = Page(PageHead(URL))
    page.find_base = lambda: "/elsewhere/"
    assert converted("a.html", "url", page=page) == "https://homes.example/elsewhere/a.html"


def test_a_saved_page_resolves_whole_links_at_least() -> None:
    page = Page(PageHead("file:///tmp/page.html"))
    assert converted("https://homes.example/a", "url", page=page) == "https://homes.example/a"


# --- several values ------------------------------------------------------------------------------


def test_all_embeds_every_match() -> None:
    value = converted(["a", " b ", " "], "all", "upper")
    assert embedded(value) == [("A",), ("B",)]
    assert (value.schema.names, value.is_list) == (("value",), True)


def test_split_embeds_the_parts_and_later_words_work_on_each() -> None:
    value = converted("3, 4, x,, 5", ("split", ","), "number")
    assert embedded(value) == [(3,), (4,), (5,)]
    assert value.schema.types == (Type.NUMBER,)


@pytest.mark.parametrize(
    ("words", "raw", "expected"),
    [
        ((("join", "; "),), ["a", "b"], "a; b"),
        (("join",), ["a", "b"], "a, b"),
        ((("match", r"\d"), ("join", "+")), ["1", "x", "2"], "1+2"),
        ((("join", ", "), "upper"), ["a", "b"], "A, B"),
        (("count",), ["a", "b"], 2),
        ((("match", r"\d"), "count"), ["1", "x"], 1),
        (("last", "upper"), "z", "Z"),
        ((("split", ","), "last"), "a,b,c", "c"),
        ((("split", ","), "first"), "a,b,c", "a"),
        ((("split", ","), "count"), "a,b,c", 3),
        ((("split", ","), ("join", "|")), "a, b", "a|b"),
        (("all", ("split", ","), ("join", "|")), ["a, b", "c"], "a|b|c"),
        ((("split",), "count"), "a b  c", 3),
    ],
    ids=str,
)
def test_several_values_become_one(words: Any, raw: Value, expected: Value) -> None:
    assert converted(raw, *words) == expected


def test_no_match_is_nothing_joined_zero_counted_and_an_empty_relation() -> None:
    assert converted([], ("join", ", ")) is None
    assert converted([], "count") == 0
    assert embedded(converted([], "all")) == []
    assert converted([], "all", required=True) is None


@pytest.mark.parametrize(
    ("words", "matches"),
    [
        ((), "first"),
        (("first",), "first"),
        (("last",), "last"),
        (("all",), "all"),
        (("relation",), "all"),
        (("join",), "all"),
        (("count",), "all"),
        ((("split", ","),), "first"),
        ((("split", ","), "join"), "first"),
        (("last", ("split", ",")), "last"),
        (("all", ("split", ",")), "all"),
    ],
    ids=str,
)
def test_a_conversion_says_which_matches_it_wants(words: Any, matches: str) -> None:
    assert compile_field(field("it", "", *words), Type.CHAR).matches == matches


# --- numbers -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("form", "text", "expected"),
    [
        ((), "1,234.56", 1234.56),
        ((), "$ 1,250,000 or best offer", 1_250_000),
        ((), "12.00", 12),
        ((), ".5", 0.5),
        ((), "1e5", 100_000),
        ((), "12 %", 12),
        ((), "No. 5", 5),
        ((), "3 beds, 2 baths", 3),
        ((), "١٢", 12),
        ((), "-5", -5),
        ((), "−5.5", -5.5),
        ((), "12.50-", -12.5),
        ((), "-$5", -5),
        ((), "$ -5", -5),
        ((), "-CHF 5.00", -5),
        ((), "($1,234)", -1234),
        ((), "- 500", -500),
        ((), "Price -500", -500),
        ((), "99999999999999999999.123", Decimal("99999999999999999999.123")),
        ((), "0.1", 0.1),
        (("de",), "1.234,56 €", 1234.56),
        (("de",), "1.234", 1234),
        (("de",), "12,- €", 12),
        (("de",), "−1.234.567,5", -1234567.5),
        (("fr",), "1 234,56 €", 1234.56),
        (("fr",), "12\u202f345", 12345),
        (("fr",), "12\u00a0345 pièces", 12345),
        (("fr",), "2 3", 2),
        (("ch",), "CHF 1'250.–", 1250),
        (("ch",), "1’234.50", 1234.5),
        (("in",), "₹ 12,34,567.89", 1234567.89),
        (("in",), "1,234,567", 1234567),
        ((",",), "1 234,5", 1234.5),
        ((",",), "1.234,5", 1234.5),
        (("k",), "1.2k views", 1200),
        (("k",), "3 M", 3_000_000),
        (("k",), "$2.5bn", 2_500_000_000),
        (("k",), "5 km", 5),
        (("de", "k"), "1,5 Mio", 1_500_000),
        (("accounting",), "(25)", -25),
    ],
    ids=str,
)
def test_numbers_are_read_as_people_write_them(form: tuple[str, ...], text: str, expected: Value) -> None:
    number = number_reader(form)(text)
    assert number == expected
    assert type(number) is type(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("(25)", 25), ("A-5", 5), ("Price - 500", 500), ("- 3 rooms", 3), ("5-7", 5), ("1998–2001", 1998)],
)
def test_a_dash_or_parenthesis_that_may_mean_something_else_is_no_minus(text: str, expected: int) -> None:
    assert number_reader(())(text) == expected


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ((), "none"),
        ((), ""),
        ((), "1,23"),
        ((), "1,23,456"),
        ((), "10.0.0.1"),
        ((), "1 250"),
        ((), "1'250"),
        ((), "9" * 2000),
        (("de",), "12.50"),
        (("de",), "1,234.56"),
        (("fr",), "1.234,56"),
        (("in",), "1,2,3"),
        (("de",), ".50"),
        (("de",), "$.50"),
        (("fr",), "ab .50"),
        ((",",), ".50"),
        ((), "EUR ,50"),
        (("ch",), ",50"),
        (("in",), "-,50"),
        (("de",), "1e5"),
        (("fr",), "1E+5"),
        ((",",), "2,5e-3"),
        ((), "about 1e5"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_digits_that_the_locale_would_not_write_so_give_no_number(form: tuple[str, ...], text: str) -> None:
    assert number_reader(form)(text) is None


@given(st.integers(-(10**12), 10**12), st.integers(0, 99))
def test_a_number_written_in_a_locale_is_read_back(whole: int, cents: int) -> None:
    grouped = f"{whole:,}.{cents:02}"
    expected = float(f"{whole}.{cents:02}")
    swapped = grouped.translate(str.maketrans(",.", ".,"))
    for form, text in (("en", grouped), ("de", swapped), ("fr", swapped.replace(".", "\u202f"))):
        assert number_reader((form,))(text) == expected
        assert number_reader((form,))(f"about {text} in all") == expected


# --- dates ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("formats", "text", "expected"),
    [
        ((), "2024-12-31", date(2024, 12, 31)),
        ((), "2024-12-31T10:30:00Z", datetime(2024, 12, 31, 10, 30, tzinfo=UTC)),
        ((), "2024-12-31 10:30", datetime(2024, 12, 31, 10, 30)),
        ((), "Tue, 15 Nov 1994 12:45:26 GMT", datetime(1994, 11, 15, 12, 45, 26, tzinfo=UTC)),
        (("%d %B %Y",), "5 June 2020", date(2020, 6, 5)),
        (("%d %B %Y",), "5th  june\n2020", date(2020, 6, 5)),
        (("%b %d, %Y",), "Sept. 3, 2021", date(2021, 9, 3)),
        (("%A, %d.%m.%y",), "Thursday, 31.12.98", date(1998, 12, 31)),
        (("%B %Y",), "May 1999", date(1999, 5, 1)),
        (("Decided %m/%d/%Y",), "Decided 06/17/2024", date(2024, 6, 17)),
        (("%Y.%j",), "2024.366", date(2024, 12, 31)),
        (("%F %T",), "2024-02-29 23:59:59", datetime(2024, 2, 29, 23, 59, 59)),
        (("%d/%m/%Y %I:%M %p",), "01/02/2024 12:05 a.m.", datetime(2024, 2, 1, 0, 5)),
        (
            ("%Y-%m-%d %H:%M %z",),
            "2024-01-01 10:00 +05:30",
            datetime(2024, 1, 1, 10, tzinfo=timezone(timedelta(hours=5, minutes=30))),
        ),
        (("%s",), "1700000000", datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)),
        (("%b %d, %Y", "%m/%d/%Y"), "9/3/2021", date(2021, 9, 3)),
    ],
    ids=str,
)
def test_dates_are_read_by_their_formats(formats: tuple[str, ...], text: str, expected: Value) -> None:
    assert date_reader(formats)(text) == expected


@pytest.mark.parametrize(
    ("formats", "text"),
    [((), "soon"), ((), "31.12.2024"), (("%d %B %Y",), "31 June 2020"), (("%d %B %Y",), "on 5 June 2020")],
    ids=str,
)
def test_what_is_no_date_gives_none(formats: tuple[str, ...], text: str) -> None:
    assert date_reader(formats)(text) is None


def test_month_names_are_english_whatever_the_locale() -> None:
    before = locale.setlocale(locale.LC_TIME)
    for name in ("de_DE.UTF-8", "fr_FR.UTF-8", "C"):
        try:
            locale.setlocale(locale.LC_TIME, name)
        except locale.Error:
            continue
        try:
            assert date_reader(("%d %B %Y",))("1 May 2020") == date(2020, 5, 1)
        finally:
            locale.setlocale(locale.LC_TIME, before)


# --- other types ---------------------------------------------------------------------------------


def test_booleans_have_their_usual_words_or_those_given() -> None:
    assert [converted(text, "boolean") for text in ("Yes", "off", "1", "maybe")] == [True, False, True, None]
    in_stock = ("boolean", "In stock", "Sold out")
    assert [converted(text, in_stock) for text in ("in  stock", "SOLD OUT", "soon")] == [True, False, None]
    assert [converted(text, ("boolean", "new")) for text in ("NEW", "old")] == [True, False]


def test_documents_keep_their_source() -> None:
    conversion = compile_field(field("it", "", "html"), Type.CHAR, collapse=True)
    assert conversion.source == "markup"
    assert conversion.convert("<b>  x </b>", Page(PageHead(URL))) == Document("<b>  x </b>", "html")
    assert converted('{"a":  [1]}', "json") == Document('{"a":  [1]}', "json")
    assert converted("{broken", "json") is None
    assert converted("[" * 100_000, "json") is None


def test_native_values_stay_what_they_are() -> None:
    assert converted(12, native=True) == 12
    assert converted(12.5, "number", native=True) == 12.5
    assert converted("12", "number", native=True) == 12
    assert converted(True, "number", native=True) is None
    assert converted(12, "char", native=True) == "12"
    assert converted(12, ("suffix", " m"), native=True) == "12 m"
    assert converted(True, "boolean", native=True) is True
    assert converted([1, 2], ("join", "-"), native=True) == "1-2"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((), Type.CHAR),
        (("number",), Type.NUMBER),
        (("boolean",), Type.BOOLEAN),
        (("date",), Type.DATE),
        (("url",), Type.CHAR),
        (("html",), Type.DOCUMENT),
        (("json",), Type.DOCUMENT),
        (("all", "number"), Type.RELATION),
        ((("split", ","),), Type.RELATION),
        ((("split", ",", 1), "number"), Type.NUMBER),
        (("count",), Type.NUMBER),
        (("number", ("join", ",")), Type.CHAR),
    ],
    ids=str,
)
def test_the_words_tell_the_type(words: Any, expected: Type) -> None:
    assert field_type(field("it", "", *words), Type.CHAR) is expected


def test_a_field_without_words_has_the_readers_type() -> None:
    assert field_type(Field("it"), None) is None
    assert field_type(Field("it", fields=(Field("inner"),)), Type.CHAR) is Type.RELATION


# --- missing and unreadable ----------------------------------------------------------------------


def test_what_is_missing_gets_the_default() -> None:
    assert converted(None, "number", default=0) == 0
    assert converted(" ", default="none") == "none"
    assert converted(None, ("default", 7), "number") == 7
    assert converted(None, "date", default="2024-01-01") == date(2024, 1, 1)


def test_what_cannot_be_read_is_told_from_what_is_missing() -> None:
    page = Page(PageHead(URL))
    assert converted(None, "number", page=page) is None
    assert converted("  ", "number", page=page) is None
    assert page.unreadable == {}
    assert converted("call us", "number", page=page) is None
    assert converted("call us", "number", page=page, default=0) == 0
    assert embedded(converted(["1", "x", "3"], "all", "number", page=page)) == [(1,), (3,)]
    assert page.unreadable == {"it": 3}


# --- mistakes ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("numbr",), "unknown word 'numbr'; did you mean 'number'?"),
        ((("number", "dee"),), "unknown form of numbers 'dee'; did you mean 'de'?"),
        ((("number", "de", "fr"),), "'number' takes one locale or decimal sign, not 2"),
        ((("number", 3),), "unknown form of numbers 3"),
        ((("date", "%d %B"),), "the format '%d %B' has no year (%Y or %y)"),
        ((("date", "%d %Q %Y"),), "unknown directive '%Q' in the format '%d %Q %Y'"),
        ((("date", "%d %d %Y"),), "the format '%d %d %Y' says %d twice"),
        ((("split", ""),), "'split' needs a separator that is not empty"),
        ((("split", ",", 0),), "'split' counts the parts from 1, or from -1 at the end"),
        ((("match", "("),), "bad pattern '(': missing ): ("),
        ((("match", "a(b)", 2),), "the pattern has no group 2 (there are: 0, 1)"),
        ((("match", "a(?P<x>b)", "y"),), "the pattern has no group 'y' (there are: 0, 1, 'x')"),
        ((("replace", "a", r"\9"),), "the pattern has no group 9 (there are: 0)"),
        ((("lower", "x"),), "'lower' is written: lower"),
        ((("prefix",),), "'prefix' is written: prefix \"text\""),
        ((("boolean", "a", "b", "c"),), '\'boolean\' is written: boolean ["yes" ["no"]]'),
        ((("default",),), "'default' is written: default constant"),
        (("number", "date"), "it is 'number' already, 'date' cannot be added"),
        (("number", ("default", "x")), "the default 'x' is no number"),
        (("date", ("default", "soon")), "the default 'soon' is no date"),
        (("first", "join"), "'join' stands where there is one value only"),
        (("required", "optional"), "it is required already, 'optional' cannot be added"),
    ],
    ids=str,
)
def test_a_mistake_in_a_word_is_told(words: Any, message: str) -> None:
    assert refusal(*words).startswith(message)


def test_every_bad_word_is_told_at_once() -> None:
    bad = field("it", "", "numbr", ("split", ""), "lower")
    found = [(word.name if word else None, str(error)) for word, error in processing_mistakes(bad)]
    assert [name for name, _ in found] == ["numbr", "split"]


def test_every_word_has_a_usage_that_begins_with_its_name() -> None:
    assert {name: word.usage.split()[0] for name, word in WORDS.items()} == {name: name for name in WORDS}
