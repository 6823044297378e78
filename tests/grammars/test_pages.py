"""Grammars of real irregular pages extract every record; regular expressions of the page count them again."""

import pickle
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from aioflow.grammars import Grammar, compile

FOLDER = Path(__file__).parents[1] / "data" / "pages"
# The number of records that the README of the pages tells, and an expression that finds each record once.
PAGES = {
    "ca8.html": (76, r"<a target='blank' href=\"([^\"]+)\""),
    "armfor.html": (25, r'<a href="([^"]+)">PDF</a>'),
    "okla.html": (7, r'<li class="decision">\s*<div class="head">\s*<h4 class="style"><a href="([^"]+)"'),
    "ncctapp.html": (37, r"\(([0-9-]+) - (?:Published|Unpublished)\)"),
    "pgnews_1998_11.txt": (135, r"(?m)^[A-Z][a-z]{2} 19\d\d .*\] *(\d+)$"),
    "pgnews_2004_11.txt": (496, r"(?m)^\S.*, (?:by|Ed\.|ed\.).* (\d{3,5}C?)$"),
    "tzdata_changelog.txt": (45, r"(?m)^tzdata \(([^)]+)\)"),
    "xz_copyright.txt": (20, r"(?m)^[Ff]iles:\s*(.*)"),
}
# The attribute that the expression finds.
KEYS = {
    "ca8.html": "link",
    "armfor.html": "link",
    "okla.html": "link",
    "ncctapp.html": "number",
    "pgnews_1998_11.txt": "number",
    "pgnews_2004_11.txt": "number",
    "tzdata_changelog.txt": "version",
    "xz_copyright.txt": "files",
}


def page(name: str) -> str:
    return (FOLDER / name).read_bytes().decode("latin-1" if name == "pgnews_1998_11.txt" else "utf-8")


@cache
def grammar(name: str) -> Grammar:
    return compile((FOLDER / name).with_suffix(".jedi").read_text(), name=f"{name}.jedi")


@cache
def records(name: str) -> list[dict[str, Any]]:
    return list(grammar(name).parse(page(name)).value)


@pytest.mark.parametrize("name", PAGES)
def test_a_grammar_extracts_every_record_of_a_real_page(name: str) -> None:
    count, expression = PAGES[name]
    found = records(name)
    assert len(found) == count
    keys = [record[KEYS[name]] for record in found]
    # Of a list, the expression finds the first line.
    keys = [key[0] if isinstance(key, list) else key for key in keys]
    assert keys == re.findall(expression, page(name))


@pytest.mark.parametrize("name", PAGES)
def test_every_record_of_a_real_page_has_all_of_its_attributes(name: str) -> None:
    first, *others = records(name)
    for record in others:
        assert record.keys() == first.keys()
    assert all(record[name] for record in (first, *others) for name in record if name != "notes")


@pytest.mark.parametrize("name", PAGES)
def test_a_page_in_pieces_gives_the_same_records_before_it_ends(name: str) -> None:
    stream = grammar(name).stream()
    settled = []
    text = page(name)
    for place in range(0, len(text), 500):
        settled += [each.value for each in stream.feed(text[place : place + 500])]
    before_the_end = len(settled)
    assert stream.finish().value == records(name)
    settled += [each.value for each in stream.last_records()]
    assert settled == records(name)
    assert before_the_end >= len(settled) - 1


@pytest.mark.parametrize("name", ["ncctapp.html", "pgnews_2004_11.txt"])
def test_threads_may_share_a_grammar(name: str) -> None:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for _ in range(5):
            shared = compile((FOLDER / name).with_suffix(".jedi").read_text())
            with ThreadPoolExecutor(6) as pool:
                found = pool.map(lambda _: shared.parse(page(name)).value, range(6))  # noqa: B023
            assert all(each == records(name) for each in found)
    finally:
        sys.setswitchinterval(before)


def test_a_grammar_can_be_sent_to_a_process() -> None:
    sent = pickle.loads(pickle.dumps(grammar("okla.html")))
    assert sent.parse(page("okla.html")).value == records("okla.html")


def test_notes_over_several_lines_belong_to_their_book() -> None:
    plays = next(each for each in records("pgnews_2004_11.txt") if each["number"] == "5060")
    assert plays["title"] == "Six Short Plays, Complete"
    contents = plays["notes"][0].split("\n")
    assert [line.strip() for line in contents] == [
        "Contents:",
        "The First and The Last",
        "The Little Man",
        "Hall-marked",
        "Defeat",
        "The Sun",
        "Punch and Go",
    ]
    assert plays["notes"][-1] == "Files: 5060.txt"


def test_the_notes_of_the_newsletter_are_those_in_the_brackets_below_each_book() -> None:
    found = [note for book in records("pgnews_2004_11.txt") for note in book["notes"]]
    _, header = PAGES["pgnews_2004_11.txt"]
    # A header, and the indented lines below it.
    below = [each[2] for each in re.finditer(header + r"\n((?: .*\n)*)", page("pgnews_2004_11.txt"))]
    wanted = [note for lines in below for note in re.findall(r" \[([^\]]*)\]", lines)]
    assert found == wanted
    assert sum("\n" in note for note in found) > 50


def test_the_judges_of_the_filings_are_those_of_the_page() -> None:
    assert [each["author"] for each in records("ncctapp.html")] == re.findall(
        r"Author: <i>([^<]+)", page("ncctapp.html")
    )


def test_the_cases_of_the_opinions_are_those_of_the_page() -> None:
    found = [number for each in records("ca8.html") for number in each["numbers"]]
    assert found == re.findall(r"No: +([0-9-]+)", page("ca8.html"))


def test_the_changes_of_a_changelog_and_their_points_are_those_of_the_file() -> None:
    changes = [change for entry in records("tzdata_changelog.txt") for change in entry["changes"]]
    text = page("tzdata_changelog.txt")
    assert [change["lines"][0] for change in changes] == re.findall(r"(?m)^  \* (.*)", text)
    points = [point[0] for change in changes for point in change["points"]]
    assert points == re.findall(r"(?m)^ {3,}- (.*)", text)
    assert sum(len(point) > 1 for change in changes for point in change["points"]) > 5


def test_the_lines_of_a_licence_list_are_those_of_the_file() -> None:
    text = page("xz_copyright.txt")
    lines = [line for each in records("xz_copyright.txt") for line in each["copyright"]]
    below = re.findall(r"(?m)^Copyright:(.*\n(?:[ \t].*\n)*)", text)
    assert lines == [line.strip() for each in below for line in each.split("\n") if line.strip()]
