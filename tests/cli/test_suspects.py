"""aioflow suspects: after a run in which diff held something back."""

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


def test_what_is_held_back_is_listed_and_confirmed(
    watch: Callable[[int], Ended], command: Callable[..., Ended]
) -> None:
    first = watch(50)
    assert first.code == 0, first.messages
    assert "it remembers 50 rows and tells nothing" in first.messages
    assert "nothing is held back" in command("suspects", "list").messages
    told = watch(10)
    assert (told.code, told.output) == (0, "")
    assert "held back from the table 'seen': 40 of 50 rows seem to be gone" in told.messages
    listed = json.loads(command("suspects", "list", "--json").output)
    assert (listed["table"], listed["gone"], listed["rows"], listed["confirmed"]) == ("seen", 40, 50, None)
    assert listed["reasons"] == ["40 of 50 rows are missing, more than GUARD: 0.3 lets go at once"]
    assert "applies and tells it (40 of 50" in command("suspects", "confirm", "seen").output
    lines = command("suspects", "list").output.splitlines()
    assert lines[0].split() == ["table", "held", "back", "why", "since", "confirmed"]
    assert lines[-1].split()[-1] == "tell"
    assert len(watch(10).output.splitlines()) == 40
    assert command("suspects", "list", "--json").output == ""


def test_what_is_confirmed_quietly_is_applied_without_a_word(
    watch: Callable[[int], Ended], command: Callable[..., Ended]
) -> None:
    watch(50)
    watch(10)
    assert "without a word" in command("suspects", "confirm", "seen", "--quiet").output
    assert watch(10).output == ""
    assert command("suspects", "list", "--json").output == ""


def test_what_is_forgotten_counts_as_not_seen(
    watch: Callable[[int], Ended], command: Callable[..., Ended]
) -> None:
    watch(50)
    watch(10)
    assert command("suspects", "forget", "seen", "--plan-file", "watch.plan").code == 0
    assert command("suspects", "list", "--json").output == ""
    assert "seem to be gone" in watch(10).messages


def test_what_is_not_held_back_cannot_be_confirmed(
    watch: Callable[[int], Ended], command: Callable[..., Ended]
) -> None:
    missing = command("suspects", "confirm", "seen")
    assert missing.code == 2
    assert "there is no database" in missing.messages
    watch(50)
    assert (
        "nothing is held back from the table 'seen' (suspect: none)"
        in command("suspects", "confirm", "seen").messages
    )
    watch(10)
    near = command("suspects", "confirm", "sen", "--db", "sqlite:aioflow.db")
    assert near.code == 2
    assert "did you mean 'seen'?" in near.messages
