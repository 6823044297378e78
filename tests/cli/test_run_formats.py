"""The files that -O and -o write: formats, formulas, and what is refused."""

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet
import pytest

from tests.cli.conftest import Ended

Command = Callable[..., Ended]
ROWS = '[{"n": 1}, {"n": 2}]'
TEXTS = '[{"s": "=1+1", "n": -5}]'
PASS = "PLAN pass { INPUT: rows OUTPUT: out BODY { limit (rows, 10 : out) } }"


@pytest.fixture(autouse=True)
def plan(folder: Path) -> None:
    (folder / "pass.plan").write_text(PASS)


def test_every_format_can_be_written_and_read_again(command: Command, folder: Path) -> None:
    for name in ("a.jsonl", "a.csv", "a.tsv", "a.json", "a.parquet"):
        assert command("run", "double.plan", "-i", ROWS, "-O", name) == Ended(0, "", "")
        again = command("run", "double.plan", "-i", f"@{name}", "--format", "csv")
        if name == "a.jsonl":
            assert again.code == 2  # `twice` is no attribute of the input
    (folder / "again.plan").write_text(PASS.replace("limit (rows, 10 : out)", 'project (rows, "n" : out)'))
    for name in ("a.jsonl", "a.csv", "a.tsv", "a.json", "a.parquet"):
        assert command("run", "again.plan", "-i", f"@{name}", "--format", "csv").output == "n\n1\n2\n"


def test_json_is_one_array_also_of_nothing(command: Command, folder: Path) -> None:
    assert command("run", "double.plan", "-i", ROWS, "-O", "a.json").code == 0
    assert json.loads((folder / "a.json").read_text()) == [{"n": 1, "twice": 2}, {"n": 2, "twice": 4}]
    assert command("run", "double.plan", "-i", "[]", "-O", "a.json").code == 0
    assert (folder / "a.json").read_text() == "[]\n"
    assert command("run", "double.plan", "-i", "[]", "--format", "json").output == "[]\n"


def test_a_file_without_rows_has_its_columns(command: Command, folder: Path) -> None:
    command("run", "double.plan", "-i", "[]", "-O", "a.csv")
    assert (folder / "a.csv").read_text() == "n,twice\n"
    command("run", "double.plan", "-i", "[]", "-O", "a.parquet")
    assert pyarrow.parquet.read_schema(folder / "a.parquet").names == ["n", "twice"]


def test_an_array_that_is_there_is_not_appended_to(command: Command, folder: Path) -> None:
    assert command("run", "double.plan", "-i", ROWS, "-o", "a.json").code == 0
    before = (folder / "a.json").read_text()
    assert json.loads(before)
    assert command("run", "double.plan", "-i", ROWS, "-o", "a.json") == Ended(
        2,
        "",
        "error: a file in the format json cannot be appended to: -O replaces it; jsonl and csv can be\n",
    )
    assert (folder / "a.json").read_text() == before


def test_a_run_that_fails_leaves_no_array_that_does_not_end(command: Command, folder: Path) -> None:
    arguments = ("run", "broken.plan", "--ops", "functions", "-i", ROWS, "-o", "a.json")
    assert command(*arguments).code == 1
    assert not (folder / "a.json").exists()


def test_other_endings_are_refused_before_anything_runs(command: Command, folder: Path) -> None:
    ended = command("run", "double.plan", "-i", ROWS, "-O", "a.xlsx")
    endings = ".jsonl, .ndjson, .csv, .tsv, .json, .parquet"
    assert ended == Ended(
        2,
        "",
        f"error: no format is known by the ending of 'a.xlsx' (there are: {endings}); "
        "name one with --format\n",
    )
    assert not (folder / "a.xlsx").exists()
    assert command("run", "double.plan", "-i", ROWS, "-O", "a.txt", "--format", "csv").code == 0
    assert (folder / "a.txt").read_text() == "n,twice\n1,2\n2,4\n"


def test_formulas_are_neutral_unless_the_user_says_otherwise(command: Command, folder: Path) -> None:
    run = ("run", "pass.plan", "-i", TEXTS)
    assert command(*run, "--format", "csv").output == "s,n\n'=1+1,-5\n"
    command(*run, "-O", "a.csv")
    assert (folder / "a.csv").read_text() == "s,n\n'=1+1,-5\n"
    assert command(*run, "--format", "csv", "--formulas", "keep").output == "s,n\n=1+1,-5\n"
    (folder / "aioflow.toml").write_text('[files]\nformulas = "keep"\n')
    assert command(*run, "--format", "csv").output == "s,n\n=1+1,-5\n"
    (folder / "aioflow.toml").write_text('[files]\nformulas = "yes"\n')
    assert command(*run).messages == (
        "error: aioflow.toml: files.formulas must be one of neutral, keep, not 'yes'\n"
    )


def test_the_configuration_allows_folders_besides_that_of_the_plan(command: Command, folder: Path) -> None:
    (folder / "plans").mkdir()
    (folder / "out").mkdir()
    plan = folder / "plans" / "write.plan"
    plan.write_text('PLAN p { INPUT: rows OUTPUT: out BODY { write (rows, "../out/a.csv" : out) } }')
    ended = command("run", str(plan), "-i", ROWS)
    assert (ended.code, ended.output) == (2, "")
    assert "cannot write '../out/a.csv': it leads out of the folder of the plan" in ended.messages
    assert f"allow = ['{folder / 'out'}'] under [files] in aioflow.toml" in ended.messages
    (folder / "plans" / "aioflow.toml").write_text('[files]\nallow = ["../out"]\n')
    assert command("run", str(plan), "-i", ROWS).code == 0
    assert (folder / "out" / "a.csv").read_text() == "n\n1\n2\n"


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("a.jsonl", '{"n": 0, "twice": 0}', '{"n": 0, "twice": 0}\n{"n": 1, "twice": 2}\n'),
        ("a.csv", "n,twice\n0,0", "n,twice\n0,0\n1,2\n"),
        ("a.csv", "n,twice\n0,0\n", "n,twice\n0,0\n1,2\n"),
        ("a.jsonl", "", '{"n": 1, "twice": 2}\n'),
    ],
)
def test_rows_are_appended_on_lines_of_their_own(
    folder: Path, command: Command, name: str, before: str, after: str
) -> None:
    (folder / name).write_text(before)
    assert command("run", "double.plan", "-i", '{"n": 1}', "-o", name).code == 0
    assert (folder / name).read_text() == after
