"""Seeded interleavings of the reference plans; `python -m tests.interleavings` is the long form."""

import asyncio
import subprocess
import sys
from asyncio import Future

import pytest

from aioflow.runtime.room import Room
from tests.interleavings import digest, interleaving, problems
from tests.reference_plans import REFERENCES, Reference

COUNT = 2000


@pytest.mark.parametrize("reference", REFERENCES, ids=lambda reference: reference.name)
def test_a_reference_plan_gives_something(reference: Reference) -> None:
    assert any(bag.total() for bag in reference.expected.values()) or reference.name == "monitor"


def test_no_interleaving_deadlocks_or_changes_the_result() -> None:
    found = next(problems(range(COUNT)), None)
    assert found is None, found


def test_a_seed_replays_step_by_step() -> None:
    for seed in range(COUNT, COUNT + 40):
        first: list[str] = []
        again: list[str] = []
        interleaving(seed).problem(first)
        interleaving(seed).problem(again)
        assert first == again, interleaving(seed)


def test_a_seed_replays_in_another_process() -> None:
    command = [sys.executable, "-m", "tests.interleavings", "--seed", "0", "--count", "24", "--digest"]
    for hash_seed in ("0", "4711"):
        done = subprocess.run(
            command, env={"PYTHONHASHSEED": hash_seed}, capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == digest(range(24))


def _one_slot(room: Room) -> Future[None]:
    """A channel with a single slot for a blocked writer: a second one takes the first one's place in it."""
    freed: Future[None] = asyncio.get_running_loop().create_future()
    room._waiting = [freed]
    return freed


def test_a_lost_wake_up_is_found_within_1000_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Room, "freed", _one_slot)
    found = next(problems(range(1000)), None)
    assert found is not None
    assert "deadlock" in found
