"""Files that are no plans, or hardly: every command says what is wrong, and where, and never more."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Ended

COMMANDS = ("check", "fmt", "run", "graph", "explain")
GOOD = (
    'PLAN p\n{\n  OUTPUT: out\n\n  BODY\n  {\n    read ("a.csv" : a)\n    select (a, "x > 1" : out)\n  }\n}\n'
)
DEEP = 100_000

# A file's bytes, and what is told of it by all commands.
ODD = {
    "NUL": (
        GOOD.replace("> 1", "> \0").encode(),
        "odd.plan:8:21: character U+0000 (NUL) cannot stand in a plan",
    ),
    "bytes": (GOOD.replace("> 1", "> \xff").encode("latin-1"), "odd.plan:8:21: byte FF is not UTF-8"),
    "UTF-16": (GOOD.encode("utf-16"), "odd.plan:1:1: this is UTF-16; save the file as UTF-8"),
    "10 MB": (
        GOOD.encode() + b" " * 10_000_000,
        "odd.plan:1:1: the file has 5,000,001 bytes; at most 5,000,000",
    ),
    "lists": (
        GOOD.replace('"x > 1"', "[" * DEEP + "1" + "]" * DEEP).encode(),
        "odd.plan:8:17: expected a constant or ']' after '[', found '['",
    ),
    "parentheses": (
        GOOD.replace('a, "x > 1"', "(" * DEEP + "a" + ")" * DEEP).encode(),
        "odd.plan:8:13: expected a variable or a constant, ':' or ')' after '(', found '('",
    ),
    "braces": (b"{" * DEEP, "odd.plan:1:1: expected PLAN, USE or another item, found '{'"),
    "a comment": (b"/*" + GOOD.encode(), "odd.plan:1:1: the comment is never closed by '*/'"),
    "CR": (GOOD.replace("(a", "(a, ,").replace("\n", "\r").encode(), "odd.plan:8:16: expected"),
    "CRLF": (GOOD.replace("(a", "(a, ,").replace("\n", "\r\n").encode(), "odd.plan:8:16: expected"),
    "BOM": (b"\xef\xbb\xbf" + GOOD.replace("(a", "(a, ,").encode(), "odd.plan:8:16: expected"),
}


@pytest.mark.parametrize("name", ODD)
def test_an_odd_file_is_told_with_its_place(name: str, folder: Path, command: Callable[..., Ended]) -> None:
    content, message = ODD[name]
    (folder / "odd.plan").write_bytes(content)
    for each in COMMANDS:
        ended = command(each, "odd.plan")
        assert ended.code == 2
        assert ended.messages.startswith(message)
        assert len(ended.messages) < 200_000


@pytest.mark.parametrize("each", COMMANDS)
def test_a_folder_and_a_missing_file_are_told_alike(
    each: str, folder: Path, command: Callable[..., Ended]
) -> None:
    (folder / "odd.plan").mkdir()
    assert command(each, "odd.plan").messages == "error: odd.plan is a folder, not a plan file\n"
    assert "there is no file none.plan" in command(each, "none.plan").messages


@pytest.mark.parametrize("each", ["check", "run", "graph", "explain"])
def test_an_empty_file_has_no_plan(each: str, folder: Path, command: Callable[..., Ended]) -> None:
    (folder / "odd.plan").touch()
    assert command(each, "odd.plan").messages == "error: odd.plan has no plan\n"


@pytest.mark.parametrize("ends", ["\r", "\r\n"])
def test_formatting_mends_line_ends(ends: str, folder: Path, command: Callable[..., Ended]) -> None:
    file = folder / "odd.plan"
    file.write_bytes(GOOD.replace("\n", ends).encode())
    ended = command("fmt", "--check", "odd.plan")
    assert (ended.code, ended.output) == (
        1,
        "odd.plan: only its line ends, or a byte order mark, would change\n",
    )
    assert command("fmt", "odd.plan").code == 0
    assert file.read_bytes() == GOOD.encode()


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("(" * DEEP + "x" + ")" * DEEP, "the expression is too long"),
        ("(" * 40_000 + "x" + ")" * 40_000, "the expression is nested too deeply"),
        ("not " * 20_000 + "x", "the expression is nested too deeply"),
        ("case when x then " * 5_000 + "x" + " end" * 5_000, "the expression is"),
    ],
)
def test_deep_conditions_are_mistakes(
    condition: str, message: str, folder: Path, command: Callable[..., Ended]
) -> None:
    (folder / "odd.plan").write_text(GOOD.replace("x > 1", condition))
    ended = command("check", "odd.plan")
    assert ended.code == 2
    assert message in ended.messages
