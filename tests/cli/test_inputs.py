"""What `-i` gives: rows, or a tuple attribute by attribute, for `run` as for `wrapper test`."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Ended
from tests.cli.program import aioflow

DECLARED = 'PLAN p { INPUT: x (url char, n number, ok boolean) OUTPUT: o BODY { project (x, "*" : o) } }'
OPEN = 'PLAN p { INPUT: x OUTPUT: o BODY { project (x, "*" : o) } }'
SAME = 'PLAN p { INPUT: url (url char) OUTPUT: o BODY { project (url, "*" : o) } }'
TWO = "PLAN p { INPUT: x (n number), y (n number) OUTPUT: o BODY { union (x, y : o) } }"

Run = Callable[..., Ended]


@pytest.fixture
def run(command: Run, folder: Path) -> Run:
    def run_plan(text: str, *values: str) -> Ended:
        (folder / "p.plan").write_text(text)
        return command("run", "p.plan", *(part for value in values for part in ("-i", value)))

    return run_plan


def rows(ended: Ended) -> list[dict[str, object]]:
    assert (ended.code, ended.messages) == (0, "")
    return [json.loads(line) for line in ended.output.splitlines()]


@pytest.mark.parametrize(
    ("given", "row"),
    [
        (("url=http://example.org/",), {"url": "http://example.org/"}),
        (("url=http://u:p@h:80/?a=b&c=d#e",), {"url": "http://u:p@h:80/?a=b&c=d#e"}),
        (("url=@me",), {"url": "@me"}),
        (("url=-",), {"url": "-"}),
        (("url=",), {"url": ""}),
        (("url==",), {"url": "="}),
        (("url=90210",), {"url": "90210"}),
        (("url=true",), {"url": "true"}),
        (("url=null",), {"url": None}),
        (('url="quoted"',), {"url": "quoted"}),
        (('url={"a": 1}',), {"url": '{"a": 1}'}),
        (("url=a b", "n=2", "ok=true"), {"url": "a b", "n": 2, "ok": True}),
        (("n=2.5",), {"n": 2.5}),
        ((" n=2",), None),
    ],
)
def test_attributes_of_the_only_input_make_one_tuple(
    run: Run, given: tuple[str, ...], row: dict[str, object] | None
) -> None:
    if row is None:
        assert run(DECLARED, *given).code == 2
        return
    assert rows(run(DECLARED, *given)) == [{"url": None, "n": None, "ok": None, **row}]


@pytest.mark.parametrize(
    ("given", "row"),
    [
        (("url=http://example.org/?a=b",), {"url": "http://example.org/?a=b"}),
        (("n=2", "t=x"), {"n": 2, "t": "x"}),
        (("t=null",), {"t": None}),
    ],
)
def test_an_input_that_declares_nothing_takes_any_attribute(
    run: Run, given: tuple[str, ...], row: dict[str, object]
) -> None:
    assert rows(run(OPEN, *given)) == [row]


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("url=http://example.org/", ["http://example.org/"]),
        ("url=pages.jsonl", ["pages.jsonl"]),
        ('url=[{"url": "a"}, {"url": "b"}]', ["a", "b"]),
        ('url={"url": "a"}', ["a"]),
        ("url=@urls.csv", ["c"]),
        ("@urls.csv", ["c"]),
    ],
)
def test_an_attribute_may_have_the_name_of_its_input(
    run: Run, folder: Path, given: str, found: list[str]
) -> None:
    (folder / "urls.csv").write_text("url\nc\n")
    assert [row["url"] for row in rows(run(SAME, given))] == found


@pytest.mark.parametrize(
    ("plan", "given", "message"),
    [
        (DECLARED, ("n=1", "n=2"), "--input n is given twice"),
        (DECLARED, ("n=1", "x=[]"), "--input x is given twice: its rows, and its attribute n"),
        (
            DECLARED,
            ("urls=http://a/",),
            "--input urls: plan p has no input of that name, nor its input such an attribute; "
            "did you mean 'url'? (inputs: x; its attributes: url, n, ok)",
        ),
        (DECLARED, ("n=many",), "input 'x', row 1: attribute 'n' must be number, not 'many'"),
        (
            DECLARED,
            ("x=http://a/",),
            "--input x: not JSON (Expecting value: line 1 column 1 (char 0)); a file is given as x=@FILE",
        ),
        (
            DECLARED,
            (),
            "plan p needs --input x=@FILE (or JSON, or - for stdin, or one tuple by --input url=VALUE "
            "--input n=VALUE --input ok=VALUE)",
        ),
        (OPEN, ("y=@rows.csv",), "--input y: plan p has no such input (inputs: x)"),
        (OPEN, ("=1",), "--input : plan p has no such input (inputs: x)"),
        (TWO, ("n=1",), "--input n: plan p has no such input (inputs: x, y)"),
        (OPEN, ("x=@a\0b",), "cannot read input: no path holds a NUL: 'a\\x00b'"),
        (OPEN, ("@a\0b",), "cannot read input: no path holds a NUL: 'a\\x00b'"),
    ],
)
def test_what_makes_no_sense_is_told(run: Run, plan: str, given: tuple[str, ...], message: str) -> None:
    assert run(plan, *given) == Ended(2, "", f"error: {message}\n")


DEEP = "[" * 100_000 + "]" * 100_000


@pytest.mark.parametrize("plan", [DECLARED, OPEN])
@pytest.mark.parametrize(
    ("given", "place"),
    [
        (DEEP, "--input x"),
        (f'{{"n": {DEEP}}}', "--input x"),
        (f"x={DEEP}", "--input x"),
        ("@deep.json", "deep.json"),
        ("@deep.jsonl", "deep.jsonl:2"),
    ],
)
def test_json_that_is_nested_too_deeply_is_told_with_its_place(
    run: Run, folder: Path, plan: str, given: str, place: str
) -> None:
    (folder / "deep.json").write_text(DEEP)
    (folder / "deep.jsonl").write_text(f'{{"n": 1}}\n{{"n": {DEEP}}}\n')
    assert run(plan, given) == Ended(2, "", f"error: {place}: this JSON is nested too deeply\n")


def test_a_deep_value_of_an_attribute_is_a_text(run: Run) -> None:
    assert rows(run(DECLARED, f"url={DEEP}"))[0]["url"] == DEEP


def test_deep_json_from_stdin_is_told_with_its_line(folder: Path) -> None:
    (folder / "p.plan").write_text(DECLARED)
    done = aioflow("run", "p.plan", "-i", "-", cwd=folder, input=f'{{"n": 1}}\n{{"n": {DEEP}}}\n')
    assert (done.returncode, done.stderr) == (2, "error: stdin:2: this JSON is nested too deeply\n")


@pytest.mark.parametrize("name", ["empty.jsonl", "empty.json", "empty.csv", "empty.tsv"])
@pytest.mark.parametrize("content", [b"", b"\n", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("plan", [DECLARED, OPEN])
def test_an_empty_file_has_no_rows(run: Run, folder: Path, plan: str, name: str, content: bytes) -> None:
    (folder / name).write_bytes(content)
    assert rows(run(plan, f"@{name}")) == []


ADVICE = "; lines end with a line feed, not with a carriage return alone"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("cr.csv", b"url,n\ra,1\rb,2\r", f"cr.csv:1: this is not one record{ADVICE}"),
        (
            "cr.jsonl",
            b'{"n": 1}\r{"n": 2}\r',
            f"cr.jsonl:1: not JSON: Extra data: line 1 column 10 (char 9){ADVICE}",
        ),
    ],
)
def test_lines_that_end_with_a_carriage_return_alone_are_told(
    run: Run, folder: Path, name: str, content: bytes, message: str
) -> None:
    (folder / name).write_bytes(content)
    assert run(DECLARED, f"@{name}") == Ended(2, "", f"error: {message}\n")


def test_lines_of_stdin_that_end_with_a_carriage_return_alone_are_told(folder: Path) -> None:
    (folder / "p.plan").write_text(DECLARED)
    done = aioflow("run", "p.plan", "-i", "-", cwd=folder, input='{"n": 1}\r{"n": 2}\r')
    assert done.returncode == 2
    assert done.stderr == f"error: stdin:1: not JSON (Extra data: line 1 column 10 (char 9)){ADVICE}\n"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("-i", "zip=1", "-i", "zip=2"), "--input zip is given twice"),
        (("-i", f'{{"zip": {DEEP}}}'), f'--input {{"zip": {"[" * 31}…: this JSON is nested too deeply'),
    ],
)
def test_wrapper_test_reads_inputs_alike(
    command: Run, folder: Path, given: tuple[str, ...], message: str
) -> None:
    (folder / "w.plan").write_text('WRAPPER w (zip char) { GET: "http://127.0.0.1:9/{zip}"; t: "h1" }')
    gc.collect()  # a finalizer that is left by another test could not run at the depth of recursion
    assert command("wrapper", "test", "w.plan", "w", *given) == Ended(2, "", f"error: {message}\n")


def test_wrapper_test_takes_a_text_as_it_stands(command: Run, folder: Path) -> None:
    (folder / "w.plan").write_text('WRAPPER w (zip char) { GET: "http://127.0.0.1:9/{zip}"; t: "h1" }')
    for given in ("zip=0090", "zip=1.50", "zip=a=b:c@d"):
        ended = command("wrapper", "test", "w.plan", "w", "-i", given)
        assert ended.output.startswith(
            "GET http://127.0.0.1:9/" + given.removeprefix("zip=").replace("=", "%3D")[:3]
        )
