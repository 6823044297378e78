"""aioflow suspects: after a run in which too much would have vanished."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Ended

WATCH = """\
PLAN watch
{
  INPUT: rows (k number)
  OUTPUT: removed
  BODY
  {
    diff (rows, "seen" : _, _, removed) {KEY: "k"}
  }
}
"""


@pytest.fixture
def watch(folder: Path, command: Callable[..., Ended]) -> Callable[[int], Ended]:
    (folder / "watch.plan").write_text(WATCH)

    def run(count: int) -> Ended:
        (folder / "rows.jsonl").write_text("".join(f'{{"k": {number}}}\n' for number in range(count)))
        return command("run", "watch.plan", "-i", "@rows.jsonl", "--format", "jsonl")

    return run


def test_a_suspect_run_is_listed_and_confirmed(
    watch: Callable[[int], Ended], command: Callable[..., Ended]
) -> None:
    first = watch(50)
    assert first.code == 0, first.messages
    assert "no table is suspect" in command("suspects", "list").messages
    told = watch(10)
    assert (told.code, told.output) == (0, "")
    assert "40 of 50 rows of the table 'seen' would vanish" in told.messages
    listed = json.loads(command("suspects", "list", "--json").output)
    assert (listed["table"], listed["missing"], listed["of"], listed["confirmed"]) == ("seen", 40, 50, False)
    assert "40 of 50" in command("suspects", "confirm", "seen").output
    lines = command("suspects", "list").output.splitlines()
    assert lines[0].split() == ["table", "missing", "of", "noticed", "confirmed", "run"]
    assert lines[-1].split()[:3] == ["seen", "40", "50"]
    assert len(watch(5).output.splitlines()) == 45
    assert command("suspects", "list", "--json").output == ""


def test_what_is_forgotten_counts_as_not_seen(
    watch: Callable[[int], Ended], command: Callable[..., Ended]
) -> None:
    watch(50)
    watch(10)
    assert command("suspects", "forget", "seen", "--plan-file", "watch.plan").code == 0
    assert "would vanish" in watch(10).messages
    assert len(watch(10).output.splitlines()) == 40


def test_what_is_not_suspect_cannot_be_confirmed(
    watch: Callable[[int], Ended], command: Callable[..., Ended]
) -> None:
    missing = command("suspects", "confirm", "seen")
    assert missing.code == 2
    assert "there is no database" in missing.messages
    watch(50)
    assert (
        "the table 'seen' is not suspect (suspect: none)" in command("suspects", "confirm", "seen").messages
    )
    watch(10)
    near = command("suspects", "confirm", "sen", "--db", "sqlite:aioflow.db")
    assert near.code == 2
    assert "did you mean 'seen'?" in near.messages
