"""What is wrong with what a user gives: exit code 2 and an exact message."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Ended
from tests.cli.program import aioflow

RUN = ("run", "double.plan")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "nowhere.txt"), "there is no file nowhere.txt"),
        (
            RUN,
            "plan double needs --input numbers=@FILE (or JSON, or - for stdin, or one tuple by "
            "--input n=VALUE)",
        ),
        (
            (*RUN, "-i", "number=[]"),
            "--input number: plan double has no input of that name, nor its input such an attribute; "
            "did you mean 'numbers'? (inputs: numbers; its attributes: n)",
        ),
        (("run", "sides.plan", "-i", "nothing"), "--input nothing: expected NAME=@FILE, NAME=JSON or NAME=-"),
        ((*RUN, "-i", "[]", "-i", "numbers=[]"), "--input numbers is given twice"),
        ((*RUN, "-i", "@none.jsonl"), "cannot read input: no such file or directory: 'none.jsonl'"),
        (
            (*RUN, "-i", "numbers=none.jsonl"),
            "--input numbers: not JSON (Expecting value: line 1 column 1 (char 0)); "
            "a file is given as numbers=@FILE",
        ),
        ((*RUN, "-i", "[1]"), "--input numbers, row 1: expected an object, found a number"),
        ((*RUN, "-i", '{"n": "x"}'), "input 'numbers', row 1: attribute 'n' must be number, not 'x'"),
        ((*RUN, "-i", "@bad.jsonl"), "bad.jsonl:2: not JSON: Expecting value: line 1 column 7 (char 6)"),
        ((*RUN, "-i", "@bad.csv"), "bad.csv:3: 2 cells under 1 columns"),
        (
            (*RUN, "-i", "[]", "--output", "double"),
            "--output double: plan double has no such output; did you mean 'doubled'? (outputs: doubled)",
        ),
        ((*RUN, "-i", "[]", "--set", "x=1"), "--set x: plan double has no such parameter (parameters: none)"),
        (("run", "limited.plan", "-i", "[]"), "plan limited needs --set bound=VALUE"),
        (("run", "limited.plan", "-i", "[]", "--set", "bound"), "--set bound: expected PARAM=VALUE"),
        (
            ("run", "limited.plan", "-i", "[]", "--set", 'bound={"a": 1}'),
            "--set bound: a parameter is text, a number, true, false, null or a list",
        ),
        (
            ("run", "sides.plan", "-i", "[]", "--format", "csv"),
            "csv holds one output, the plan has several: choose one with --output, or take jsonl",
        ),
        (
            (*RUN, "-i", "[]", "--format", "cvs"),
            "--format cvs: there is no such format; did you mean 'csv'? "
            "(formats: table, csv, json, jsonl, parquet, tsv)",
        ),
        ((*RUN, "-i", "[]", "-o", "a", "-O", "b"), "-o appends and -O overwrites: give one of them"),
        ((*RUN, "-i", "[]", "-O", "no/such"), "cannot write: no such file or directory: 'no/such'"),
        ((*RUN, "-i", "[]", "-o", "."), "cannot write: is a directory: '.'"),
        (
            (*RUN, "-i", "[]", "--trace", "no/such"),
            "cannot write trace: no such file or directory: 'no/such'",
        ),
        (
            (*RUN, "-i", "[]", "--timeout", "soon"),
            "not a duration: 'soon' (like 90s, 5m or 1h30m)",
        ),
        (
            (*RUN, "-i", "[]", "--memory", "much"),
            "--memory: memory must be a number of bytes or a text like '32MiB', not 'much'",
        ),
        (("ops", "jion"), "no operator 'jion'; did you mean 'join'?"),
        (("graph", "nowhere.txt"), "there is no file nowhere.txt"),
        (("fmt", "nowhere.txt"), "there is no file nowhere.txt"),
    ],
)
def test_bad_input_is_told_exactly(
    folder: Path, command: Callable[..., Ended], arguments: tuple[str, ...], message: str
) -> None:
    (folder / "bad.jsonl").write_text('{"n": 1}\n{"n": x}\n')
    (folder / "bad.csv").write_text("n\n1\n2,3\n")
    assert command(*arguments) == Ended(2, "", f"error: {message}\n")


def test_only_one_input_can_read_stdin(folder: Path, command: Callable[..., Ended]) -> None:
    (folder / "two.plan").write_text(
        "PLAN two { INPUT: a, b OUTPUT: c BODY { union (a, b : c) } }",
    )
    done = command("run", "two.plan", "-i", "a=-", "-i", "b=-")
    assert done == Ended(2, "", "error: only one input can read stdin, not both a and b\n")
    done = command("run", "two.plan", "-i", "@x")
    assert done == Ended(2, "", "error: --input @x: plan two has 2 inputs: a, b\n")


@pytest.mark.parametrize("arguments", [("run",), ("run", "a.plan", "--speed", "9"), ("fly",), ("check",)])
def test_bad_options_are_bad_input(command: Callable[..., Ended], arguments: tuple[str, ...]) -> None:
    done = command(*arguments)
    assert (done.code, done.output) == (2, "")
    assert "Usage: aioflow" in done.messages


@pytest.mark.parametrize("name", ["run", "graph", "explain", "check"])
def test_every_mistake_of_a_plan_is_told_before_anything_runs(
    command: Callable[..., Ended], name: str
) -> None:
    done = command(name, "wrong.plan", *(("-i", "[]") if name == "run" else ()))
    assert (done.code, done.output) == (2, "")
    assert done.messages.startswith(
        "wrong.plan:7:5: unknown operator 'selct'; did you mean 'select'?\n"
        '        selct (numbers, "n < 10" : low)\n'
        "        ^^^^^\n"
        "wrong.plan:8:24: unknown attribute 'm'"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import nonexistent_package", "module 'mine' with operators needs 'nonexistent_package'"),
        ("1 / 0", "module 'mine' with operators cannot be loaded: ZeroDivisionError: division by zero"),
    ],
)
def test_a_module_that_cannot_be_loaded_is_bad_input(folder: Path, text: str, message: str) -> None:
    (folder / "mine.py").write_text(text)
    done = aioflow("ops", "--ops", "mine", cwd=folder)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: {message}")


def test_a_missing_module_is_bad_input(folder: Path) -> None:
    done = aioflow("run", "double.plan", "--ops", "missing", cwd=folder)
    assert done.returncode == 2
    assert done.stderr.startswith("error: there is no module 'missing'")
