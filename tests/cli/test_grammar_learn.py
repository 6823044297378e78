"""aioflow grammar learn: the grammar, what it extracts, and where it is unsure."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from aioflow.grammars import compile
from tests.cli.program import ROOT, aioflow
from tests.grammars.test_learning import SHOP, marked

NEWSLETTER = ROOT / "tests" / "data" / "pages" / "pgnews_1998_11.txt"


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "shop.html").write_text(SHOP)
    return tmp_path


def learn(
    folder: Path, page: str, *examples: Mapping[str, object], more: tuple[str, ...] = ()
) -> tuple[str, str]:
    given = [word for example in examples for word in ("--example", json.dumps(example))]
    ran = aioflow("grammar", "learn", page, *given, *more, cwd=folder)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout, ran.stderr


def test_grammar_goes_to_stdout_and_what_it_extracts_to_stderr(shop: Path) -> None:
    text, said = learn(
        shop, "shop.html", {"name": "Psion 3c", "price": "399.50"}, {"name": "Siena", "price": 199}
    )
    assert compile(text).parse(SHOP, "records").value[1] == {"name": "Siena", "price": "199"}
    assert said.splitlines()[0].split() == ["record", "name", "price"]
    assert "shop.html: 3 records;" in said
    assert "unsure: between name and price the examples differ: " in said


def test_numbers_are_looked_for_as_they_are_written(shop: Path) -> None:
    given = (
        "--example",
        '{"name": "Psion 3c", "price": 399.50}',
        "--example",
        '{"name": "Siena", "price": 199}',
    )
    ran = aioflow("grammar", "learn", "shop.html", *given, cwd=shop)
    assert "  399.50\n" in ran.stderr


def test_a_written_grammar_extracts_the_same(shop: Path) -> None:
    examples = ({"name": "Psion 3c", "price": "399.50"}, {"name": "Siena", "price": "199"})
    printed, said = learn(shop, "shop.html", *examples, more=("-o", "g.jedi", "--rows", "0"))
    assert printed == ""
    assert "note: wrote g.jedi" in said
    tested = aioflow("grammar", "test", "g.jedi", "shop.html", cwd=shop)
    names = [json.loads(line)["name"] for line in tested.stdout.splitlines()]
    assert names == ["Psion 3c", "Siena", "Modem &amp; cable"]


def test_a_real_page_tells_how_many_records_look_alike_but_are_skipped(shop: Path) -> None:
    examples = marked("pgnews_1998_11.txt", 0, 5)
    _, said = learn(shop, str(NEWSLETTER), *examples)
    assert "unsure: 63 places were skipped that differ in blanks or digits only: line 347, " in said


@pytest.mark.parametrize(
    ("examples", "message"),
    [
        (['{"name": "Sienna"}'], "example 1: name 'Sienna' is not on the page; the nearest text is 'Siena<'"),
        (['{"name": '], "--example 1: not JSON"),
        (['{"name": "Siena"}', "[1]"], "--example 2: expected an object, found an array"),
        ([], "--example"),
    ],
)
def test_examples_that_cannot_be_used_are_told(examples: list[str], message: str, shop: Path) -> None:
    given = [word for example in examples for word in ("--example", example)]
    ran = aioflow("grammar", "learn", "shop.html", *given, cwd=shop)
    assert ran.returncode == 2
    assert message in ran.stderr
    assert "Traceback" not in ran.stderr


def test_a_page_with_control_characters_gives_a_grammar_without_them(shop: Path) -> None:
    (shop / "bad.txt").write_text(
        "".join(f"\x1b[31m\x00'{word}'\x07 {n};\n" for n, word in ((1, "one"), (2, "two")))
    )
    text, said = learn(shop, "bad.txt", {"name": "one", "number": 1}, {"name": "two", "number": 2})
    assert "2 records" in said
    assert not {"\x1b", "\x00", "\x07"} & set(text + said)
