"""CSV pages: columns, rows that leave early, ragged rows, quotes over the borders of pieces."""

from __future__ import annotations

import csv
import io
import tracemalloc
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aioflow.web.errors import ExtractionError
from aioflow.wrappers.readers.csv import CsvReader
from aioflow.wrappers.readers.reader import PageHead
from tests.wrappers.feeding import FEEDS, URL, Feed, embedded, field, mistake

CSV = CsvReader()
DIAMONDS = (FEEDS / "diamonds.csv").read_bytes()


def read(page: str | bytes, *fields: Any, **how: Any) -> list[Any]:
    return Feed(CSV, *fields, **how).read(page)


def notes_of(page: str | bytes, *fields: Any, **how: Any) -> list[str]:
    reading: Any = Feed(CSV, *fields, **how).extractor.open(PageHead(URL))
    reading.feed(page.encode() if isinstance(page, str) else page)
    reading.end()
    return list(reading.notes)


# --- a table --------------------------------------------------------------------------------------


def test_a_table_gives_its_columns() -> None:
    rows = read(
        DIAMONDS,
        "cut",
        field("price", "", ("number", "de")),
        field("carat", "5", ("number", "de")),
        field("grade", "#2"),
        field("from", scope="constant", default="file"),
        delimiter=";",
    )
    assert len(rows) == 60
    assert rows[1] == ("Premium", 2876, 0.73, "E", "file")


def test_rows_leave_while_the_rest_is_on_its_way() -> None:
    feed = Feed(CSV, "a", "b")
    assert feed.extractor.is_incremental
    assert feed.arriving("a,b\n1,", "2\n3,4\r", "\n5,6") == [[], [("1", "2")], [("3", "4")], [("5", "6")]]


def test_columns_have_names_and_numbers_and_numbers_may_be_names() -> None:
    page = "2017,b,1\nx,y,z\n"
    assert read(
        page, field("p", "2017"), field("q", "b"), field("r", "3"), field("s", "1"), field("t", "#1")
    ) == [("x", "y", "z", "z", "x")]


def test_a_table_without_a_header_has_numbers_only() -> None:
    assert read("x,y\nz\n", field("a", "1"), field("b", "#2"), header=False) == [("x", "y"), ("z", None)]
    assert read("", field("a", "1"), header=False) == []
    setting, offset, message = mistake(CSV, "name", header=False)
    assert (setting, offset) == ("name", 0)
    assert "numbers only" in message


@pytest.mark.parametrize(
    ("page", "options"),
    [
        ("a;b\n1;2,5\n", {"delimiter": ";"}),
        ("a\tb\n1\t2,5\n", {"delimiter": "tab"}),
        ("a\tb\n1\t2,5\n", {"delimiter": "\t"}),
        ("a,b\n'1','2,5'\n", {"quote": "'"}),
        ('made today\n\na,b\n1,"2,5"\n', {"skip": 2}),
        ("a|b\n1|2,5\n", {"delimiter": "|", "quote": False}),
        ('\n a , b \n\n1,"2,5"\n\n', {}),
    ],
)
def test_options_say_the_form(page: str, options: dict[str, Any]) -> None:
    feed = Feed(CSV, "a", "b", **options)
    assert feed.read(page) == [("1", "2,5")]
    assert feed.read(page, sizes=[1] * len(page)) == [("1", "2,5")]


def test_quotes_are_ordinary_characters_where_none_are_said() -> None:
    assert read('a,b\n"x,y"\n', "a", "b", quote=False) == [('"x', 'y"')]
    assert read('a,b\n5" disk,x\n', "a", "b") == [('5" disk', "x")]


def test_values_may_hold_everything_when_they_are_quoted() -> None:
    page = 'a,b\n"x\r\ny","say ""hi"""\n"\u2028,\x0b","é"\n'
    expected = [("x\r\ny", 'say "hi"'), ("\u2028,\x0b", "é")]
    assert read(page, "a", "b") == expected
    assert Feed(CSV, "a", "b").read(page, sizes=[1] * len(page.encode())) == expected


def test_missing_and_empty_values_are_null_and_extra_ones_are_counted() -> None:
    page = "a,b,c\n1\n1,,3\n1,2,3,4\n1,2,3,4,5\n"
    fields = ["a", "b", field("c", "", ("number",))]
    assert read(page, *fields) == [("1", None, None), ("1", None, 3), ("1", "2", 3), ("1", "2", 3)]
    assert notes_of(page, *fields) == ["2 rows have more values than there are columns; those are left out"]


def test_words_convert_values() -> None:
    [(tags, count, price)] = read(
        "tags,price\na|b,7\n",
        field("tags", "", ("split", "|")),
        field("count", "tags", "count"),
        field("price", "", "number", ("default", 0)),
    )
    assert embedded(tags) == [("a",), ("b",)]
    assert (count, price) == (1, 7)


def test_a_value_that_is_required_names_its_row() -> None:
    assert (
        Feed(CSV, field("b", required=True)).refusal("a,b\n1,2\n1,\n")
        == "item 2 has no 'b', which is required"
    )


def test_of_columns_with_one_name_the_first_is_read() -> None:
    assert read("a,a\n1,2\n", "a") == [("1",)]
    assert notes_of("a,a\n1,2\n", "a") == ["several columns are named 'a': the first one is read"]


# --- columns that are not there -------------------------------------------------------------------


def test_a_column_that_is_not_there_is_told_with_those_that_are() -> None:
    assert Feed(CSV, "price").refusal("Price,beds\n1,2\n") == (
        "there is no column 'price'; did you mean 'Price'? (there are: Price, beds)"
    )
    assert Feed(CSV, field("x", "9")).refusal("a,b\n1,2\n").startswith("there is no column '9'")
    assert (
        Feed(CSV, field("x", "#9")).refusal("a,b\n1,2\n") == "there is no column number 9 (there are: a, b)"
    )


def test_a_wrong_delimiter_is_guessed_at() -> None:
    assert "is the delimiter ';'?" in Feed(CSV, "price").refusal("price;beds\n1;2\n")
    assert "is the delimiter 'tab'?" in Feed(CSV, "price").refusal("price\tbeds\n1\t2\n")


def test_a_column_may_be_missing_when_its_field_says_so() -> None:
    fields = [field("b", "", "optional"), field("c", "", ("default", "none")), field("d", default="x")]
    assert read("a\n1\n", *fields) == [(None, "none", "x")]


def test_a_long_header_is_shown_in_part() -> None:
    message = Feed(CSV, "x").refusal(",".join(f"column {n}" for n in range(500)) + "\n")
    assert "column 29, …" in message
    assert len(message) < 600


# --- pages that are wrong -------------------------------------------------------------------------


def test_a_page_without_a_header_is_refused() -> None:
    assert Feed(CSV, "a").refusal("") == "the CSV cannot be read: it is empty, there is no header"
    assert Feed(CSV, "a").refusal("\n\n") == "the CSV cannot be read: it is empty, there is no header"


def test_a_quote_that_does_not_end_is_told_with_its_line() -> None:
    message = Feed(CSV, "a").refusal('a\n1\n"2\n3\n')
    assert message == "the CSV cannot be read: line 3: a value in quotes that begins here does not end"


@pytest.mark.parametrize("sizes", [[], [1000] * 300])
@pytest.mark.parametrize("limit_of_the_process", [131_072, 1 << 30])
def test_a_value_beyond_all_measure_is_refused(sizes: list[int], limit_of_the_process: int) -> None:
    before = csv.field_size_limit(limit_of_the_process)
    try:
        _check_refusals(sizes)
    finally:
        csv.field_size_limit(before)


def _check_refusals(sizes: list[int]) -> None:
    page = "a\n1\n" + "x" * 140_000 + "\n"
    assert "line 3: a value of more than 131,072 characters" in Feed(CSV, "a").refusal(page, sizes=sizes)
    quoted = 'a\n1\n"' + "x\n" * 140_000
    assert "line 3: a value of more than 131,072 characters" in Feed(CSV, "a").refusal(quoted, sizes=sizes)


def test_nul_characters_are_left_out_and_told() -> None:
    assert read("a,b\n1\0,\0\n", "a", "b") == [("1", None)]
    assert notes_of("a,b\n1\0,\0\n", "a", "b") == ["2 NUL characters were left out; is it another CHARSET?"]


@pytest.mark.parametrize("codec", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_charsets_are_understood(codec: str) -> None:
    body = "größe,b\nécru,2\n".encode(codec)
    assert Feed(CSV, "größe", "b").read(body) == [("écru", "2")]
    assert Feed(CSV, "größe", "b").read(body, sizes=[1] * len(body)) == [("écru", "2")]


def test_the_wrapper_and_the_header_say_the_charset() -> None:
    body = "a\nдом\n".encode("koi8-r")
    assert Feed(CSV, "a", charset="koi8-r").read(body) == [("дом",)]
    assert Feed(CSV, "a").read(body, content_type="text/csv; charset=koi8-r") == [("дом",)]
    assert "unknown charset" in notes_with_header("text/csv; charset=nonsense")[0]


def notes_with_header(content_type: str) -> list[str]:
    reading: Any = Feed(CSV, "a").extractor.open(PageHead(URL, 200, {"Content-Type": content_type}))
    reading.feed(b"a\n1\n")
    reading.end()
    return list(reading.notes)


# --- mistakes in a wrapper ------------------------------------------------------------------------


def test_what_csv_does_not_have_is_a_mistake() -> None:
    assert mistake(CSV, "a", each="row")[0] == "EACH"
    assert mistake(CSV, "a", next_page=field("next", "x"))[0] == "next"
    assert mistake(CSV, field("a", scope="page"))[0] == "a"
    assert mistake(CSV, field("a", fields=[field("b")]))[0] == "a"
    assert (
        mistake(CSV, "a", delimiter=";;")[2]
        == "the option 'delimiter' of the reader csv is written: delimiter \";\""
    )
    assert mistake(CSV, "a", skip=-1)[0] == "READ"
    assert mistake(CSV, "a", heading=False)[2].endswith("did you mean 'header'?")
    assert mistake(CSV, "a", quote=",")[0] == "READ"
    assert mistake(CSV, "a", charset="nonsense")[0] == "CHARSET"


# --- in pieces as whole ---------------------------------------------------------------------------

VALUES = st.text(st.sampled_from('ab ",;\n\ré€\u2028'), max_size=6)
TABLES = st.lists(st.lists(VALUES, min_size=1, max_size=4), max_size=8)


@settings(max_examples=120, deadline=None)
@given(
    table=TABLES, sizes=st.lists(st.integers(0, 9), max_size=60), end=st.sampled_from(["\n", "\r\n", "\r"])
)
def test_a_table_in_pieces_gives_what_was_written(table: list[list[str]], sizes: list[int], end: str) -> None:
    written = io.StringIO()
    writer = csv.writer(written, lineterminator=end, quoting=csv.QUOTE_ALL)
    writer.writerow(["one", "two", "three"])
    writer.writerows(table)
    feed = Feed(CSV, "one", "two", "three")
    expected = [tuple((value or None) for value in (*row, "", "")[:3]) for row in table]
    assert feed.read(written.getvalue().encode(), sizes=sizes) == expected


@settings(max_examples=120, deadline=None)
@given(text=st.text(st.sampled_from('ab,"\n\r'), max_size=40), sizes=st.lists(st.integers(0, 5), max_size=30))
def test_any_text_in_pieces_gives_what_it_gives_whole(text: str, sizes: list[int]) -> None:
    feed = Feed(CSV, field("x", "1"), field("y", "2"), header=False)

    def outcome(**how: Any) -> Any:
        try:
            return feed.read(text, **how)
        except ExtractionError as error:
            return str(error)

    assert outcome(sizes=sizes) == outcome()


# --- large pages ----------------------------------------------------------------------------------


def test_memory_does_not_grow_with_the_page() -> None:
    reading = Feed(CSV, "a", "b").extractor.open(PageHead(URL))
    reading.feed(b"a,b\n")
    piece = b'12,"quoted ""text"",\nof two lines"\n' * 1000 + b'13,"half a'
    tracemalloc.start()
    rows = sum(len(reading.feed(piece + b' value"\n')) for _ in range(20))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert rows == 20_020
    assert reading.end() == []
    assert peak < 1_500_000  # of 700 KB that came, as rows 5 MB


def test_a_record_that_goes_on_for_long_is_read_when_it_has_ended() -> None:
    feed = Feed(CSV, "a", "b")
    begun, rest = 'a,b\n"' + 'x""\n' * 3000, '",1\n' + "2,3\n" * 6000
    assert [len(rows) for rows in feed.arriving(begun, rest)] == [0, 6001, 0]
    assert len(feed.read(begun + rest, sizes=[5, *[64] * 500])) == 6001


# --- where values come from -----------------------------------------------------------------------


def test_explain_says_where_each_value_comes_from() -> None:
    feed = Feed(CSV, "b", field("c", "", "optional"), field("n", "1", "number"))
    found = feed.explain('a,b\n1,"x\ny"\n2,z\n')
    assert [(each.row, each.field, each.path, each.excerpt, each.value) for each in found] == [
        (0, "b", "line 2, column b", "x\ny", "x\ny"),
        (0, "c", "", "", None),
        (0, "n", "line 2, column a", "1", 1),
        (1, "b", "line 4, column b", "z", "z"),
        (1, "c", "", "", None),
        (1, "n", "line 4, column a", "2", 2),
    ]
    assert Feed(CSV, field("x", "2"), header=False).explain("a,b\n")[0].path == "line 1, column 2"


def test_explain_refuses_what_cannot_be_read() -> None:
    with pytest.raises(ExtractionError, match="does not end"):
        Feed(CSV, "a").explain('a\n"')
