"""Values that a terminal would obey: it gets escapes, files and pipes get the values."""

import json
import re
from pathlib import Path

import pytest

from aioflow.values.display import visible, visible_json, visible_lines
from tests.cli.program import aioflow
from tests.cli.site import HOSTILE, served
from tests.cli.test_terminal import in_terminal

# Those that the program itself sends: colours, and what the display of progress needs.
_OURS = re.compile(r"\x1b\[(?:[0-9;]*m|\d+A|J|\?25[lh])")
_OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_COLOUR = "\x1b[31mc"  # of the hostile value, which looks like one of ours
PASS = "PLAN pass { INPUT: rows OUTPUT: out BODY { limit (rows, 10 : out) } }"
ROWS = json.dumps([{"s": HOSTILE}, {"s": "next\nline"}])


@pytest.fixture(autouse=True)
def plan(folder: Path) -> None:
    (folder / "pass.plan").write_text(PASS)


def harmless(shown: str) -> str:
    """What a terminal was shown, having made sure that it could not obey it."""
    assert _COLOUR not in shown
    text = _OURS.sub("", shown).replace("\r", "")
    assert not _OBEYED.search(text), ascii(text)
    return text


@pytest.mark.parametrize("format", ["table", "csv", "tsv", "jsonl", "json"])
def test_rows_on_a_terminal_are_harmless_in_every_format(folder: Path, format: str) -> None:
    code, shown = in_terminal("run", "pass.plan", "-i", ROWS, "--format", format, cwd=folder)
    assert code == 0
    text = harmless(shown)
    assert ("\\u001b]0;owned\\u0007" if format.startswith("json") else "\\x1b]0;owned\\x07") in text
    assert "\\u202e" in text
    if format == "jsonl":
        lines = text.splitlines()
        assert [json.loads(line) for line in lines[:2]] == json.loads(ROWS)
    if format in ("csv", "tsv"):
        assert "next line" in text.splitlines()


def test_rows_of_several_outputs_are_harmless_json(folder: Path) -> None:
    (folder / "two.plan").write_text(
        "PLAN two { INPUT: rows OUTPUT: a, b BODY { limit (rows, 1 : a) limit (rows, 1 : b) } }"
    )
    code, shown = in_terminal("run", "two.plan", "-i", ROWS, "--format", "jsonl", cwd=folder)
    lines = harmless(shown).splitlines()[:2]
    assert (code, [json.loads(line)["row"]["s"] for line in lines]) == (0, [HOSTILE, HOSTILE])


@pytest.mark.parametrize("format", ["csv", "jsonl", "json"])
def test_what_a_plan_writes_to_a_terminal_is_harmless(folder: Path, format: str) -> None:
    (folder / "write.plan").write_text(
        f'PLAN p {{ INPUT: rows BODY {{ write (rows, "-") {{FORMAT: {format}}} }} }}'
    )
    code, shown = in_terminal("run", "write.plan", "-i", ROWS, cwd=folder)
    assert (code, "owned" in harmless(shown)) == (0, True)
    piped = aioflow("run", "write.plan", "-i", ROWS, cwd=folder)
    assert "\x9b2J" in piped.stdout


@pytest.mark.parametrize("format", ["csv", "jsonl"])
def test_files_and_pipes_get_the_values(folder: Path, format: str) -> None:
    piped = aioflow("run", "pass.plan", "-i", ROWS, "--format", format, cwd=folder)
    assert "\x9b2Jd\x7fe\x85f\u202eg\u2066h\u200fi\u061cj\u2028k" in piped.stdout
    code, shown = in_terminal("run", "pass.plan", "-i", ROWS, "-O", f"a.{format}", cwd=folder)
    assert (code, "owned" in shown) == (0, False)
    assert "\u202eg\u2066h" in (folder / f"a.{format}").read_text(encoding="utf-8")


def test_log_lines_are_harmless_and_stay_one_line(folder: Path) -> None:
    (folder / "log.plan").write_text('PLAN p { INPUT: rows BODY { log (rows, "seen") } }')
    rows = json.dumps([{"s": f"{HOSTILE}\nerror: all is lost"}])
    code, shown = in_terminal("run", "log.plan", "-i", rows, cwd=folder)
    text = harmless(shown)
    assert (code, "owned" in text) == (0, True)
    assert not any(line.startswith("error:") for line in text.splitlines())


def test_errors_that_quote_values_are_harmless(folder: Path) -> None:
    (folder / "functions.py").write_text(
        "from aioflow import function\n\n\n@function(pure=True)\ndef fails(row):\n"
        "    raise ValueError('cannot do ' + row['s'])\n"
    )
    (folder / "fail.plan").write_text(
        'PLAN p { INPUT: rows OUTPUT: out BODY { apply (rows, "fails" : out) } }'
    )
    arguments = ("run", "fail.plan", "--ops", "functions", "-i", ROWS)
    for debug in ("", "1"):
        code, shown = in_terminal(*arguments, cwd=folder, AIOFLOW_DEBUG=debug)
        assert (code, "cannot do a" in harmless(shown)) == (1, True)


def test_the_line_of_a_plan_that_is_wrong_is_harmless_and_its_caret_stands_right(folder: Path) -> None:
    (folder / "bad.plan").write_text(
        'PLAN p { INPUT: rows /* \u202e\x9b */ OUTPUT: out BODY { selct (rows, "n" : out) } }',
        encoding="utf-8",
    )
    code, shown = in_terminal("check", "bad.plan", cwd=folder)
    text = harmless(shown)
    lines = text.splitlines()
    place = next(number for number, line in enumerate(lines) if "selct (" in line)
    assert (code, lines[place + 1].index("^")) == (2, lines[place].index("selct"))
    assert "/* \\u202e\\x9b */" in lines[place]


def test_a_body_on_a_terminal_is_harmless_and_a_piped_one_untouched(folder: Path) -> None:
    with served() as site:
        url = site.url("/hostile")
        code, shown = in_terminal("fetch", url, "--body", cwd=folder, AIOFLOW_HTTP_ALLOW=site.host)
        assert code == 0
        assert "<p>a\\x1b]0;owned" in harmless(shown)
        assert "<p>next</p>" in harmless(shown).splitlines()
        assert (
            HOSTILE.replace("\r", "\n")
            in aioflow("fetch", url, "--body", cwd=folder, AIOFLOW_HTTP_ALLOW=site.host).stdout
        )
        code, shown = in_terminal(
            "fetch", site.url("/evil"), "--json", cwd=folder, AIOFLOW_HTTP_ALLOW=site.host
        )
        assert (code, dict(json.loads(harmless(shown))["headers"])["X-Evil"]) == (0, "a\x9bb")


def test_a_wrapper_that_is_tested_shows_harmless_values(folder: Path) -> None:
    (folder / "one.plan").write_text('WRAPPER one ()\n{\n  GET: "http://x/"\n  p: "p"\n}\n')
    (folder / "page.html").write_text(f"<p>{HOSTILE}</p>", encoding="utf-8")
    for extra in ((), ("--json",)):
        code, shown = in_terminal(
            "wrapper", "test", "one.plan", "one", "--file", "page.html", *extra, cwd=folder
        )
        assert (code, "owned" in harmless(shown)) == (0, True)


def test_parquet_is_not_sent_to_a_terminal(folder: Path) -> None:
    code, shown = in_terminal("run", "pass.plan", "-i", ROWS, "--format", "parquet", cwd=folder)
    assert (code, "parquet is not for a terminal: write it to a file" in shown) == (2, True)


def test_texts_are_made_visible() -> None:
    assert visible("a\x1b[0m\t\r\nb\u202e\x85\ud800") == "a\\x1b[0m b\\u202e \\ud800"
    assert visible_lines("a\tb\r\nc\rd\n\x07") == "a\tb\nc\nd\n\\x07"
    assert json.loads(visible_json(json.dumps(HOSTILE, ensure_ascii=False))) == HOSTILE
