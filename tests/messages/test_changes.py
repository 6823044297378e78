"""What mails say of changed tuples: the old value and the new one, long texts word by word."""

from __future__ import annotations

import re
from datetime import date
from html import unescape
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aioflow import Row, Schema
from aioflow.messages.content.short_text import ShortText
from aioflow.messages.content.tables import (
    Excerpt,
    html_message,
    html_sections,
    html_table,
    text_message,
    text_table,
    word_diff,
)

CHANGED = Schema.of("house", "address", "price", "about", "old-address", "old-price", "old-about", "changes")
ABOUT = (
    "A bright house at the end of a quiet road, with a garden of 300 square metres, three bedrooms, a "
    "kitchen that was renovated in 2019 and a garage for two cars. The school is five minutes away."
)
ROW = ("/1", "12 Oak Street", 390000, ABOUT, "12 Oak Street", 410000, ABOUT, "price")


def excerpt(*rows: Row, schema: Schema = CHANGED, **more: Any) -> Excerpt:
    return Excerpt(schema, rows, len(rows), **more)


class Page(HTMLParser):
    """The text of a page, with what was deleted and inserted, and its elements."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.text = ""
        self.elements: list[str] = []
        self.open: list[str] = []
        self.deleted: list[str] = []
        self.inserted: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        self.open.remove(tag)

    def handle_data(self, data: str) -> None:
        if "style" in self.open:
            return
        self.text += data
        if "del" in self.open:
            self.deleted.append(data)
        if "ins" in self.open:
            self.inserted.append(data)


def test_a_changed_value_is_shown_beside_the_old_one_and_all_others_once() -> None:
    text = text_table(excerpt(ROW))
    assert "price    410000 → 390000" in text.splitlines()
    assert "address  12 Oak Street" in text.splitlines()
    assert "old-" not in text
    assert "changes" not in text
    assert text.count("12 Oak Street") == 1
    found = Page(html_table(excerpt(ROW)))
    assert (found.deleted, found.inserted) == (["410000"], ["390000"])
    assert found.text.count("12 Oak Street") == 1
    assert "old-" not in found.text


def test_changed_tuples_are_blocks_that_fit_any_screen() -> None:
    page = html_message(excerpt(ROW, ROW), "Changed")
    assert "table" not in Page(page).elements
    assert "overflow-wrap:anywhere" in page
    assert not re.search(r"(?<!device-)width:\s*\d|nowrap(?!\])|<pre", re.sub("<style>.*</style>", "", page))


def test_long_texts_differ_word_by_word() -> None:
    now = ABOUT.replace("three bedrooms", "four bedrooms").replace("for two cars", "for one car")
    row = (*ROW[:3], now, *ROW[4:-1], "about")
    found = Page(html_table(excerpt(row)))
    assert found.deleted == ["three", "two cars."]
    assert found.inserted == ["four", "one car."]
    line = next(line for line in text_table(excerpt(row)).splitlines() if line.startswith("about"))
    assert "[-three-] {+four+} bedrooms" in line
    assert "garage for [-two cars.-] {+one car.+} The school" in line
    assert "390000" in found.text
    assert "410000" not in found.text


def test_what_stays_the_same_around_a_change_in_a_long_text_is_left_out() -> None:
    words = [f"w{number}" for number in range(400)]
    pieces = word_diff(" ".join(words), " ".join([*words[:200], "new", *words[201:]]))
    assert [kind for kind, _ in pieces] == ["same", "old", "new", "same"]
    assert pieces[0][1].startswith("… ")
    assert pieces[-1][1].endswith(" …")
    assert len(" ".join(text for _, text in pieces).split()) < 30


def test_long_texts_with_hardly_a_word_in_common_are_told_as_a_whole() -> None:
    pieces = word_diff("a b c d e f g h i j " * 5, "k l m n o p q r s t " * 5)
    assert [kind for kind, _ in pieces] == ["old", "new"]


def test_huge_texts_take_little_time() -> None:
    one = " ".join(f"a{number}" for number in range(100_000))
    other = " ".join(f"b{number}" for number in range(100_000))
    assert sum(len(text) for _, text in word_diff(one, other)) < 2000


@given(st.lists(st.sampled_from("abcdef"), max_size=40), st.lists(st.sampled_from("abcdef"), max_size=40))
@settings(max_examples=200)
def test_the_pieces_of_a_word_diff_are_the_two_texts(before: list[str], now: list[str]) -> None:
    pieces = word_diff(" ".join(before), " ".join(now), context=1000)
    assert " ".join(text for kind, text in pieces if kind != "new" and text).split() == before
    assert " ".join(text for kind, text in pieces if kind != "old" and text).split() == now


@pytest.mark.parametrize(
    ("before", "now", "shown"),
    [
        (None, 5, "(none) → 5"),
        ("", "x", "(none) → x"),
        (5, None, "5 → (none)"),
        (date(2026, 1, 31), date(2026, 2, 1), "2026-01-31 → 2026-02-01"),
        (True, False, "true → false"),
        ("a\nb", "c", "a b → c"),
    ],
)
def test_short_values_are_shown_with_an_arrow(before: Any, now: Any, shown: str) -> None:
    schema = Schema.of("k", "v", "old-v", "changes")
    assert text_table(excerpt((1, now, before, "v"), schema=schema)) == f"k  1\nv  {shown}"
    assert shown in Page(html_table(excerpt((1, now, before, "v"), schema=schema))).text.replace("\n", " ")


def test_what_is_ignored_is_no_change_to_tell() -> None:
    schema = Schema.of("k", "v", "views", "old-v", "old-views", "changes")
    assert text_table(excerpt((1, 2, 30, 1, 20, "v"), schema=schema)) == "k      1\nv      1 → 2\nviews  30"


def test_attributes_that_only_look_like_changes_are_attributes() -> None:
    schema = Schema.of("name", "old-town", "changes")
    assert text_table(excerpt(("x", "yes", "many"), schema=schema)).startswith("name  old-town  changes")
    one = Schema.of("price", "old-price", "old-town", "changes")
    assert text_table(excerpt((2, 1, "yes", "price"), schema=one)) == "price     1 → 2\nold-town  yes"


def test_one_changed_tuple_for_itself() -> None:
    assert "price    410000 → 390000" in text_message(excerpt(ROW, is_tuple=True))
    assert Page(html_message(excerpt(ROW, is_tuple=True), "x")).inserted == ["390000"]


def test_short_messages_tell_changes_too() -> None:
    schema = Schema.of("k", "v", "old-v", "changes")
    assert ShortText().of_row(schema, ("a", 2, 1, "v")) == "k: a\nv: 1 → 2"
    assert ShortText(for_phones=True).of_row(schema, ("a", 2, 1, "v")) == "a, 1 -> 2"


ODD = ["<", ">", '"', "&", "<script>", "</ins>", "-->", "https://x.example/", "a ", "\n"]
MARKUP = st.lists(st.sampled_from(ODD)).map("".join) | st.text(max_size=20)


@given(MARKUP, MARKUP, MARKUP, st.booleans())
@settings(max_examples=150)
def test_no_changed_value_becomes_markup(before: str, now: str, name: str, is_long: bool) -> None:
    schema = Schema(("k", f"m{name}", f"old-m{name}", "changes"))
    more = "word " * 30 if is_long else ""
    row = (1, now + more, before + more, f"m{name}")
    page = html_message(excerpt(row, schema=schema), "title")
    assert set(Page(page).elements) <= {
        *("html", "head", "meta", "title", "style", "body", "div", "p", "a", "b", "del", "ins"),
    }  # fmt: skip
    assert "<script>" not in page
    assert "<script>" not in unescape(page) or "script" in before + now + name


def test_a_hundred_changed_tuples_are_not_cut_by_mail_programs() -> None:
    rows = [(*ROW[:3], ABOUT, *ROW[4:])] * 100
    assert len(html_message(excerpt(*rows), "Changed houses").encode()) < 102_000


def test_sections_have_headings_and_the_empty_ones_are_left_out() -> None:
    house = Schema.of("address", "price")
    parts = [
        excerpt(("Elm", 1), ("Oak", 2), schema=house, heading="New", plan="watch"),
        excerpt(ROW, heading="Changed", plan="watch"),
        excerpt(schema=house, heading="Gone", plan="watch"),
    ]
    text = text_message(*parts)
    assert re.findall(r"^(\w+ \(\d+\))\n=+$", text, re.MULTILINE) == ["New (2)", "Changed (1)"]
    assert text.endswith("-- \n3 rows, sent by the plan watch\n")
    page = html_message(parts[0], "News", *parts[1:])
    assert re.findall(r"<h2[^>]*>([^<]*)</h2>", page) == ["New (2)", "Changed (1)"]
    assert "3 rows, sent by the plan watch" in page
    nothing = [excerpt(schema=house, heading="New"), excerpt(schema=house, heading="Gone")]
    assert text_message(*nothing).startswith("No rows.")
    assert "No rows." in html_message(nothing[0], "", nothing[1])


def test_sections_that_are_wider_than_a_telephone_are_blocks() -> None:
    wide = Schema.of(url="char", address="char")
    row = ("https://homes.example/houses/12-oak-street-irvine", "12 Oak Street")
    page = html_sections(
        [Excerpt(wide, [row], 1, heading="New"), Excerpt(wide, [("/1", "x")], 1, heading="Gone")]
    )
    blocks, _, table = page.partition("Gone")
    assert "<table" not in blocks
    assert "address: 12 Oak Street" in blocks
    assert "<table" in table
