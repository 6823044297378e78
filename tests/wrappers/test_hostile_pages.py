"""Pages that are made to cost a reader dearly: they are given up within limits of time and memory."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tracemalloc
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from aioflow import Engine, RunError, loads
from aioflow.testing import Answer, ScriptedSite
from aioflow.web.client import Client
from aioflow.wrappers.numbers import number_reader
from aioflow.wrappers.page_reader import PIECE_ROWS
from aioflow.wrappers.readers.xml.path import compile_xpath

SITE = "http://homes.example"
TYPES = {
    "html": "text/html",
    "xml": "application/xml",
    "json": "application/json",
    "csv": "text/csv",
    "text": "text/plain",
}
LATE = r"homes\.example/: the page was not read within (0\.[5-9]|1\.0) seconds"
PATIENT = {"read_seconds": 600, "total_seconds": 600}


def read(declaration: str, page: bytes | str, kind: str, **http: Any) -> list[Mapping[str, Any]]:
    """The rows of a page, by a wrapper with these lines."""
    return [row for batch in read_batches(declaration, page, kind, **http) for row in batch]


def read_batches(
    declaration: str, page: bytes | str, kind: str, **http: Any
) -> list[list[Mapping[str, Any]]]:
    """The rows of a page as they come."""
    settings = {"http": {"robots": False, "retries": 0, **http}}
    text = f'WRAPPER page {{ GET: "{SITE}/"; {declaration} }}'
    plan = loads(f'{text}\nPLAN p {{ OUTPUT: out BODY {{ wrapper ("page" : out) }} }}')
    site = ScriptedSite({f"{SITE}/": Answer(page, headers={"Content-Type": TYPES[kind]})})

    async def main() -> list[list[Mapping[str, Any]]]:
        async with Engine(services={Client: site.client(settings)}, configuration=settings) as engine:
            batches = engine.stream(plan).batches()
            return [[dict(row) for row in rows] async for _, rows in batches]

    return asyncio.run(main())


# --- time -----------------------------------------------------------------------------------------

PAIRS = "<r>" + "".join(f"<i id='{n}'/><sel ref='x{n}'/>" for n in range(6000)) + "</r>"
TAGS = "".join(f"<b id='{n}'></b><u ref='x{n}'></u>" for n in range(6000))
NESTED = "{" + '"a":[{' * 60 + '"a":1' + "}]" * 60 + "}"


@pytest.mark.parametrize(
    ("declaration", "page", "kind"),
    [
        ('READ: xml; EACH: "//i[@id = //sel/@ref]"; id: "@id"', PAIRS, "xml"),
        ('READ: xml; EACH: "/r"; n: "count(i[@id = ../sel/@ref])" number', PAIRS, "xml"),
        ('READ: xml; EACH: "i"; n: "count(preceding-sibling::*[count(following::*) > 0])"', PAIRS, "xml"),
        ('READ: html; EACH: "//b[@id = //u/@ref]"; id: "@id"', TAGS, "html"),
        ('READ: json; EACH: "$..a..a..a..a..a"; v: "$"', NESTED, "json"),
        ('READ: json; v: "$..a..a..a..a..a" all', NESTED, "json"),
    ],
)
def test_a_path_that_a_page_makes_slow_is_given_up(declaration: str, page: str, kind: str) -> None:
    with pytest.raises(RunError, match=LATE):
        read(declaration, page, kind, read_seconds=0.5)


@pytest.mark.parametrize(
    ("path", "degree"),
    [
        ("link[@rel = 'alternate']/@href", 0),
        ("li[b = 'Price']/text()", 0),
        ("item[position() = last()]", 0),
        ("//a[@rel = 'next']/@href", 1),
        ("//a[contains(., 'Next')]/@href", 1),
        ("//tr[count(td) > 2]", 1),
        ("//h2[following-sibling::p]", 2),
        ("//i[@id = //sel/@ref]", 2),
        ("count(i[@id = ../sel/@ref])", 2),
        ("a = b", 2),
        ("/html/body[p[text() = /html/body/p]]", 4),
    ],
)
def test_how_long_a_path_may_take_is_told_by_its_form(path: str, degree: int) -> None:
    assert compile_xpath(path, {}).degree == degree


def test_reading_counts_into_the_time_of_the_request() -> None:
    with pytest.raises(RunError, match=LATE):
        read('READ: xml; EACH: "//i[@id = //sel/@ref]"; id: "@id"', PAIRS, "xml", total_seconds=0.5)


@pytest.mark.parametrize("letter", ["y", "7", "-", "tru"])
@pytest.mark.parametrize("declaration", ["READ: json; v: 'a'", 'READ: json; EACH: "$..x"; v: "a"'])
def test_an_endless_bare_word_is_an_error_at_its_first_letter(letter: str, declaration: str) -> None:
    page = b'{"items": [' + letter.encode() * 2_000_000
    with pytest.raises(RunError, match=r"the JSON cannot be read: line 1, column 12: "):
        read(declaration, page, "json")


@pytest.mark.parametrize(
    ("declaration", "page", "kind", "number"),
    [
        # More text than the page has: elements inside of each other, and a value for every letter.
        ('READ: html; text: "div" all', "<div>" * 200 + "x" * 200_000, "html", 1),
        ('READ: html; text: "p" replace "" "-"', "<p>" + "x" * 200_000, "html", 1),
        ('READ: html; EACH: "div"; text: "*" all count', "<div>" * 200 + "<i>x" * 5000, "html", 200),
        ('READ: text; EACH: "."; v: "(x)"', "x" * 50_000, "text", 50_000),
        ('READ: text; v: "(x)" all', "x" * 200_000, "text", 1),
        # No item of these leaves the page before its end.
        ('READ: csv header no; v: "1"', "," * 3_000_000, "csv", 1),
        ('READ: csv header no; v: "1"', '"' + "x\n" * 50_000 + '"\n' + "a,b\n" * 10, "csv", 11),
        ('READ: text lines; v: "^(x)"', "x" * 3_000_000, "text", 1),
        ('READ: text paragraphs; v: "^(x)"', "x\n" * 1_000_000, "text", 1),
        ('READ: json lines; v: "a"', '{"a": "' + "x" * 3_000_000 + '"}', "json", 1),
        ('READ: json; EACH: "$"; v: "a"', '[{"a": "' + "x" * 3_000_000 + '"}]', "json", 1),
        ('READ: json; EACH: "$"; v: "a"', '[{"a": [' + "[]," * 1_000_000 + "1]}]", "json", 1),
        ('READ: xml; EACH: "//i"; v: "b"', "<r><i>" + "<b>x</b>" * 300_000 + "</i></r>", "xml", 1),
        ('READ: xml; EACH: "//i"; v: "b"', "<r>" + "<b>x</b>" * 300_000 + "<i/></r>", "xml", 1),
    ],
)
def test_a_heavy_page_is_read_all_the_same(declaration: str, page: str, kind: str, number: int) -> None:
    assert len(read(declaration, page, kind, **PATIENT)) == number


def test_a_path_that_puts_much_text_together_is_heavy() -> None:
    page = "<div>" * 450 + "x" * 200_000
    path = "//div[string-length(concat(., ., ., .)) > 3]"
    assert len(read(f'READ: html; EACH: "{path}"; n: "@id"', page, "html", **PATIENT)) == 450


def test_rows_that_had_left_before_a_page_grew_heavy_are_not_repeated() -> None:
    page = "n,v\n" + "".join(f"{n},x\n" for n in range(50_000)) + "50000," + "," * 2_000_000 + "\n50001,x\n"
    rows = read('READ: csv; n: "n" number', page, "csv", **PATIENT)
    assert [row["n"] for row in rows] == list(range(50_002))


@pytest.mark.parametrize(
    ("declaration", "page", "kind"),
    [
        ('READ: html; EACH: "p"; n: "@id" number', "".join(f"<p id={n}></p>" for n in range(50_500)), "html"),
        (
            'READ: html; EACH: "p"; n: "@id" number; PAGING: next "a @href"',
            "".join(f"<p id={n}></p>" for n in range(50_500)),
            "html",
        ),
        (
            'READ: csv; n: "n" number',
            "n,v\n0," + "," * 2_000_000 + "".join(f"\n{n},x" for n in range(1, 50_500)),
            "csv",
        ),
    ],
)
def test_many_rows_from_another_process_come_in_small_batches(declaration: str, page: str, kind: str) -> None:
    batches = read_batches(declaration, page, kind, **PATIENT)
    assert [row["n"] for batch in batches for row in batch] == list(range(50_500))
    assert max(map(len, batches)) <= 4 * PIECE_ROWS


class Endless:
    """A body that is larger than what is held of it."""

    def __init__(self, chunk: bytes, times: int) -> None:
        self._left = times
        self._chunk = chunk

    def __aiter__(self) -> Endless:
        return self

    async def __anext__(self) -> bytes:
        if not self._left:
            raise StopAsyncIteration
        self._left -= 1
        return self._chunk

    async def close(self) -> None: ...


def test_a_page_that_is_read_as_it_comes_cannot_be_heavy() -> None:
    body: Any = Endless(b"," * 100_000, 30)
    reason = (
        r"an item is too large, or takes too long to read, in a page that is read as it comes, .* \(1 MiB\)"
    )
    with pytest.raises(RunError, match=reason):
        read('READ: csv header no; v: "1"', body, "csv", hold_bytes=1 << 20)


# --- memory ---------------------------------------------------------------------------------------


def test_a_page_that_takes_too_much_memory_is_given_up() -> None:
    page = "[" + "{}," * 4_000_000 + "1]"
    with pytest.raises(RunError, match=r"takes more memory than http\.read_memory_bytes \(64 MiB\)"):
        read('READ: json; EACH: "$..x"; v: "a"', page, "json", read_memory_bytes=64 << 20, **PATIENT)


@pytest.mark.parametrize("text", [" " * 400_000 + "1%", "- " * 200_000 + "1%", "1" + " " * 400_000 + "-"])
def test_blanks_around_a_number_take_no_time(text: str) -> None:
    assert number_reader(())(text) == 1


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("- " + " " * 100 + "5", -5),
        (" " * 100 + "-5" + " " * 100, -5),
        ("5-" + " " * 100, -5),
        ("$" + " " * 100 + "(5)", -5),
        (" " * 100 + "(5) $", -5),
    ],
)
def test_blanks_hide_no_sign(text: str, number: int) -> None:
    assert number_reader(())(text) == number


def test_a_tree_that_takes_too_much_memory_is_given_up() -> None:
    with pytest.raises(RunError, match=r"takes more memory than http\.read_memory_bytes \(128 MiB\)"):
        read('EACH: "p"; v: "@text"', "<p>x" * 1_000_000, "html", read_memory_bytes=128 << 20, **PATIENT)


def test_rows_that_take_too_much_memory_are_given_up() -> None:
    declaration = f'text: "p" replace "x" "{"y" * 2000}"'
    with pytest.raises(
        RunError, match=r"the rows of the page take more than 32 MiB, an eighth of http\.read_memory_bytes"
    ):
        read(declaration, f"<p>{'x' * 20_000}</p>", "html", read_memory_bytes=256 << 20, **PATIENT)


@pytest.mark.parametrize("text", ["7" * 4_000_000, "7." * 2_000_000, "777 " * 1_000_000, "-" * 4_000_000])
def test_what_looks_like_a_number_takes_no_memory(text: str) -> None:
    number = number_reader(())
    tracemalloc.start()
    try:
        assert number(text) is None
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


# --- other processes ------------------------------------------------------------------------------

SCRIPT = """
import asyncio
from pathlib import Path

import aioflow
from aioflow.testing import ScriptedSite
from aioflow.web.client import Client

with Path("effects").open("a") as file:
    file.write("ran\\n")

plan = aioflow.loads('''
WRAPPER page { GET: "http://homes.example/"; EACH: "p"; text: "@text" }
PLAN p { OUTPUT: out BODY { wrapper ("page" : out) } }
''')
settings = {"http": {"health": False}}
site = ScriptedSite({"http://homes.example/": "<p>x" * 400_000})

async def main():
    async with aioflow.Engine(services={Client: site.client(settings)}, configuration=settings) as engine:
        print(len((await engine.run(plan)).rows))

asyncio.run(main())
"""


def test_a_script_without_a_guard_runs_once(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("400000\n", "")
    assert (tmp_path / "effects").read_text() == "ran\n"
