"""Every experiment runs in its quick form; what it measures then means nothing, so it is not looked at."""

import json
from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.experiment import NAMES, Effort, Finding, Line, at_least, at_most, find
from benchmarks.report import as_json, goal_of, value_of
from benchmarks.timing import best_seconds

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("name", NAMES)
def test_an_experiment_runs_and_names_its_goals(name: str) -> None:
    found = find(name).run(Effort(quick=True))
    assert found.command == f"python -m benchmarks {name}"
    assert found.question.endswith("?")
    assert any(line.goal is not None for line in found.lines)


def test_every_experiment_is_listed() -> None:
    asked = {path.stem for path in (ROOT / "benchmarks").glob("*.py") if "@experiment(" in path.read_text()}
    assert asked == set(NAMES)


def test_the_command_prints_a_table_and_writes_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "found.json"
    assert main(["join", "--quick", "--json", str(target)]) == 0
    table = capsys.readouterr().out
    assert "python -m benchmarks join" in table
    assert "at most 2.00x" in table
    (found,) = json.loads(target.read_text())
    assert found["name"] == "join"
    assert [line["unit"] for line in found["lines"]] == ["rows/s", "x"]


def test_an_unknown_experiment_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["jion"]) == 2
    assert "unknown experiment 'jion'" in capsys.readouterr().err


def test_a_goal_is_reached_on_its_side_of_the_bound() -> None:
    assert Line("time", 1.2, "x", at_most(1.3)).reached is True
    assert Line("time", 1.4, "x", at_most(1.3)).reached is False
    assert Line("speed", 6, "x", at_least(5)).reached is True
    assert Line("speed", 4, "x", at_least(5)).reached is False
    assert Line("speed", 4, "x").reached is None


def test_what_could_not_be_measured_is_neither_reached_nor_missed() -> None:
    line = Line("speed", None, "x", at_least(5), "it is not installed")
    assert line.reached is None
    assert (goal_of(line), value_of(line)) == ("at least 5.00x", "not measured")
    finding = json.loads(as_json([Finding("some", "How fast?", (line,))]))[0]
    assert finding["lines"][0]["reached"] is None


def test_contenders_must_do_the_same_work() -> None:
    with pytest.raises(AssertionError, match="do not do the same work"):
        best_seconds({"one": lambda: 1, "two": lambda: 2}, rounds=1)
