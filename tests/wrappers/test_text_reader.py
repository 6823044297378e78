"""Plain text: items by patterns, lines and paragraphs, and newsletters that people wrote by hand."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioflow.relation import Row
from aioflow.wrappers.definition import Extraction
from aioflow.wrappers.readers.reader import PageHead
from aioflow.wrappers.readers.text import TextReader
from tests.wrappers.feeding import URL, Feed, embedded, field, mistake

TEXT = TextReader()
PAGES = Path(__file__).parents[1] / "data" / "pages"
BOOKS = "List of May\n\nEmma, by Austen     158\nDracula, by Stoker  345\n\nThe end, by now\n"
BOOK = r"^(?P<title>.+), by (?P<author>\w+) +(?P<number>\d+)$"


def read(text: str | bytes, *fields: Any, **how: Any) -> list[Row]:
    return Feed(TEXT, *fields, **how).read(text)


# --- the whole text ------------------------------------------------------------------------------


def test_each_match_is_an_item_and_its_groups_are_fields() -> None:
    rows = read(BOOKS, "title", "author", field("number", "", "number"), each=BOOK)
    assert rows == [("Emma", "Austen", 158), ("Dracula", "Stoker", 345)]


def test_a_pattern_is_searched_in_the_item_or_in_the_page() -> None:
    rows = read(
        BOOKS,
        field("initial", r"by (\w)", "lower"),
        field("whole", r"by \w+"),
        field("month", r"^List of (\w+)$", scope="page"),
        field("words", r"\w+", "count"),
        field("last", r"(\w+)", "last"),
        each=BOOK,
    )
    assert rows == [("a", "by Austen", "May", 4, "158"), ("s", "by Stoker", "May", 4, "345")]


def test_a_text_without_each_is_the_only_item() -> None:
    assert read(BOOKS, field("numbers", r"\d+$", "all", "number"))[0][0].rows == [(158,), (345,)]


def test_items_in_items_have_groups_of_their_own() -> None:
    text = "a: 1=x 2=y\nb:\n"
    pairs = field(
        "pairs", r"(?P<key>\d)=(?P<value>\w)", fields=(field("key"), field("upper", r"=(\w)", "upper"))
    )
    rows = read(text, "name", pairs, each=r"^(?P<name>\w):.*$")
    assert [(name, embedded(relation)) for name, relation in rows] == [
        ("a", [("1", "X"), ("2", "Y")]),
        ("b", []),
    ]


def test_a_group_that_took_no_part_is_null_and_groups_are_collapsed() -> None:
    rows = read("a  b|\nc|d", field("x"), field("y"), each=r"(?s)(?P<x>\w\s*\w?)\|(?P<y>\w)?")
    assert rows == [("a b", None), ("c", "d")]
    assert read("a  b|", field("x", "", "raw"), each=r"(?P<x>[^|]+)") == [("a  b",)]


def test_the_next_page_may_stand_in_the_text() -> None:
    feed = Feed(TEXT, "n", each=r"(?P<n>\d)", next_page=field("next", r"next: (\S+)", "url"))
    assert feed.read("1 2\nnext: /two") == [("1",), ("2",)]
    assert feed.next_page == "https://feeds.example/two"


def test_a_text_without_items_gives_its_page_fields_if_it_is_to() -> None:
    title = field("title", r"^# (.*)$", scope="page")
    assert read("# Empty", title, "n", each=r"(?P<n>\d)", outer=True) == [("Empty", None)]
    assert read("# Empty", title, "n", each=r"(?P<n>\d)") == []
    assert read("none", field("n", r"(\d)"), lines=True, each=r"\d", outer=True) == [(None,)]


def test_a_required_field_that_is_missing_fails_the_page() -> None:
    feed = Feed(TEXT, field("n", r"\d", "number", required=True), lines=True)
    assert feed.refusal("1\nx") == "item 2 has no 'n' (\\d), which is required"


# --- lines and paragraphs ------------------------------------------------------------------------


def test_lines_in_which_each_is_found_are_items() -> None:
    rows = read(
        BOOKS, field("author", r"by (\w+)"), field("number", r"\d+$", "number"), lines=True, each="by"
    )
    assert rows == [("Austen", 158), ("Stoker", 345), ("now", None)]


def test_every_line_that_is_not_blank_is_an_item_without_each() -> None:
    assert read("a\r\n\r\n  \nb\n c", "line", lines=True) == [("a",), ("b",), ("c",)]


def test_paragraphs_are_parted_by_blank_lines() -> None:
    text = "a\r\nb\r\n\r\nc\n \t\n\n\nd\ne"
    assert read(text, field("p", "", "raw"), paragraphs=True) == [("a\nb",), ("c",), ("d\ne",)]
    assert read(text, field("p", "(?s).+", "raw"), paragraphs=True, each="[ce]$") == [("c",), ("d\ne",)]
    assert read(text, field("last", r"(?s).*^(\w)"), paragraphs=True) == [("b",), ("c",), ("e",)]


def test_lines_and_paragraphs_leave_while_the_rest_is_on_its_way() -> None:
    lines = Feed(TEXT, "n", lines=True, each=r"(?P<n>\d)")
    assert lines.extractor.is_incremental
    assert lines.arriving("1\n2\n3", "4\n", "x\n", "5") == [[("1",), ("2",)], [("3",)], [], [], [("5",)]]
    paragraphs = Feed(TEXT, "p", paragraphs=True)
    assert paragraphs.arriving("a\n", "b\n", "\nc", "\n\n", "d") == [
        [],
        [],
        [("a b",)],
        [("c",)],
        [],
        [("d",)],
    ]


def test_a_text_that_must_be_known_whole_is_read_whole() -> None:
    total = field("total", r"total (\d+)", "number", scope="page")
    feed = Feed(TEXT, "n", total, lines=True, each=r"^(?P<n>\d)$")
    assert not feed.extractor.is_incremental
    assert feed.arriving("1\n2\n", "total 3\n") == [[], [], [("1", 3), ("2", 3)]]
    assert not Feed(TEXT, "n", each=r"(?P<n>\d)").extractor.is_incremental
    assert not Feed(TEXT, "n", lines=True, next_page=field("x", "y")).extractor.is_incremental


@given(st.text(alphabet="ab\n\r é", max_size=60), st.lists(st.integers(1, 9), max_size=12))
def test_pieces_make_no_difference(text: str, sizes: list[int]) -> None:
    for mode in ("lines", "paragraphs"):
        options: dict[str, Any] = {mode: True}
        feed = Feed(TEXT, field("it", "", "raw"), **options)
        assert feed.read(text, sizes=sizes) == feed.read(text)


def test_the_charset_is_the_wrappers_the_headers_or_guessed() -> None:
    line = field("it")
    assert read("ü".encode("latin-1"), line, lines=True) == [("ü",)]
    assert read("ü", line, lines=True) == [("ü",)]
    assert read("я".encode("koi8-r"), line, lines=True, charset="koi8-r") == [("я",)]
    feed = Feed(TEXT, line, lines=True)
    assert feed.read("я".encode("koi8-r"), content_type="text/plain; charset=koi8-r") == [("я",)]
    assert read(b"<meta charset=koi8-r>", line, lines=True) == [("<meta charset=koi8-r>",)]


def test_a_line_too_long_for_its_pattern_is_counted_not_searched() -> None:
    pattern = r"(?:a{0,50}){0,15}b"
    fields = (field("it", pattern),)
    extractor = TEXT.compile(Extraction("text", {"lines": True}, pattern, fields))
    reading = extractor.open(PageHead(URL))
    rows = reading.feed(b"aab\n" + b"a" * 300_000 + b"\n") + reading.end()
    assert rows == [("aab",)]
    assert reading.unreadable == {"EACH": 1}
    whole = Feed(TEXT, field("it", pattern), each=pattern)
    assert whole.refusal("a" * 300_000).startswith(
        "the text has 300,000 characters, too many for the pattern"
    )


# --- mistakes ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "how", "expected"),
    [
        ((field("a", r"x\q"),), {}, ("a", 1, r"bad pattern 'x\\q': invalid escape sequence: \q")),
        ((field("a"),), {"each": r"(?P<b>x"}, ("EACH", 0, "bad pattern '(?P<b>x': missing ): (?P<b>x")),
        (
            (field("auther"),),
            {"each": r"(?P<author>x)"},
            (
                "auther",
                None,
                "field 'auther' needs a pattern, as EACH has no group of its name; did",
            ),
        ),
        (
            (field("it", scope="page"),),
            {"each": r"(?P<it>x)"},
            ("it", None, "field 'it' needs a pattern, as EACH has no group of its name"),
        ),
        ((field("it"),), {}, ("it", None, "field 'it' needs a pattern, as there is no EACH with a group")),
        (
            (field("r", "x(?P<b>y)", fields=(field("a"),)),),
            {},
            ("r.a", None, "field 'a' needs a pattern, as EACH has no group of its name"),
        ),
        (
            (field("a", "x"),),
            {"lines": True, "paragraphs": True},
            ("READ", None, "a text is read"),
        ),
        ((field("a", "x"),), {"line": True}, ("READ", None, "unknown option 'line' of the reader text")),
        ((field("a", "x"),), {"charset": "klingon"}, ("CHARSET", None, "unknown charset 'klingon'")),
    ],
)
def test_mistakes_are_found_before_a_page_is_read(fields: Any, how: Any, expected: Any) -> None:
    setting, offset, message = mistake(TEXT, *fields, **how)
    assert (setting, offset) == expected[:2]
    assert message.startswith(expected[2])


# --- where it came from --------------------------------------------------------------------------


def test_explain_names_the_lines() -> None:
    feed = Feed(
        TEXT,
        "title",
        field("number", r"(\d+)$", "number"),
        field("month", r"^List of (\w+)$", scope="page"),
        field("isbn", "ISBN"),
        each=BOOK,
    )
    found = [(each.row, each.field, each.path, each.value) for each in feed.explain(BOOKS)]
    assert found[:4] == [
        (0, "title", "line 3", "Emma"),
        (0, "number", "line 3", 158),
        (0, "month", "line 1", "May"),
        (0, "isbn", "", None),
    ]
    assert found[5] == (1, "number", "line 4", 345)
    assert feed.explain(BOOKS)[0].excerpt == "Emma, by Austen 158"


def test_explain_counts_lines_in_lines_and_paragraphs() -> None:
    lines = Feed(TEXT, field("n", r"\d"), lines=True, each="x")
    assert [found.path for found in lines.explain("a\n\nx 1\r\nx 2")] == ["line 3", "line 4"]
    paragraphs = Feed(TEXT, "p", paragraphs=True)
    assert [found.path for found in paragraphs.explain("a\nb\n\n\nc\n")] == ["lines 1-2", "line 5"]
    groups = Feed(TEXT, "n", lines=True, each=r"n=(?P<n>\d)")
    assert [found.path for found in groups.explain("x\n\nabc n=5")] == ["line 3"]


# --- texts that people wrote ---------------------------------------------------------------------


def test_book_lines_in_a_newsletter_of_1998() -> None:
    rows = read(
        (PAGES / "pgnews_1998_11.txt").read_bytes(),
        field("when", "", ("date", "%b %Y")),
        "title",
        "file",
        field("number", "", "number"),
        each=r"^(?P<when>[A-Z]\w\w \d{4}) (?P<title>.+?)\s*\[(?P<file>\w{5}x\w*\.\w+)\]\s?(?P<number>\d+)",
        lines=True,
        charset="latin-1",
    )
    assert len(rows) == 135
    assert rows[0] == (
        date(1999, 3, 1),
        "1492, by Mary Johnston [For Columbus Day, 1998]",
        "c1492xxx.xxx",
        1692,
    )
    assert rows[-1][1] == "King Henry VI, Part 1, by William Shakespeare"
    assert all(None not in row for row in rows)


def test_a_list_of_books_with_bracketed_notes_of_2004() -> None:
    # One more has a link, number 13841C; its letter says that it is copyrighted, and it is not counted here.
    rows = read(
        (PAGES / "pgnews_2004_11.txt").read_bytes(),
        "title",
        field("number", "", "number"),
        field("link", r"\[Link: (\S+)", "url", required=True),
        field("files", r"\[Files?: ([^\]]*)", ("split", ";")),
        field(
            "notes",
            r"(?s)\[(?P<kind>[A-Z][\w .]*): +(?P<text>[^\]]*)\]",
            fields=(field("kind"), field("text")),
        ),
        each=r"^(?P<title>\S.{30,}?) +(?P<number>\d+)\n(?: .*\n)*? +\[Link: .*\n(?: .*\n)*",
    )
    assert len(rows) == 496
    title, number, link, _files, notes = rows[10]
    assert str(title).startswith("The Poetical Works of Oliver Wendell Holmes")
    assert link == f"http://www.gutenberg.net/{'/'.join(str(number)[:-1])}/{number}"
    assert ("Author", "Oliver Wendell Holmes, Sr.") in embedded(notes)


def test_opinions_in_preformatted_text() -> None:
    rows = read(
        (PAGES / "ca8.html").read_bytes(),
        "url",
        "title",
        field("date", "", ("date", "%m/%d/%Y")),
        field("cases", r"No: +([\d-]+)", "all"),
        field("court", r"^ +((?:U\.S\. District|Petition|Appeal)\S* .*)$"),
        each=r'href="(?P<url>[^"]+)">\w+\.pdf</a> +(?P<date>\S+) +(?P<title>.*)\n(?:.*No: .*\n)+.*\n',
    )
    assert len(rows) == 76
    url, title, when, cases, court = rows[1]
    assert url == "https://ecf.ca8.uscourts.gov/opndir/25/08/242330P.pdf"
    assert (title, when) == ("Lee Pederson v. U.S. Securities Exch. Comm.", date(2025, 8, 22))
    assert embedded(cases) == [("24-2330",), ("24-2526",)]
    assert court == "Petition for Review of an Order of the Securities & Exchange Commission"
