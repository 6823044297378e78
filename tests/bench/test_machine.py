"""What a machine says of itself, and what it does not."""

import gc
import getpass
import json
import platform
from pathlib import Path

import pytest

from aioflow.benchmarks.harness import machine
from aioflow.benchmarks.harness.machine import MachineMonitor, describe_machine, find_commit, find_versions
from aioflow.benchmarks.harness.processes import ROOT


def test_neither_host_nor_user_nor_folders_are_told() -> None:
    told = json.dumps([describe_machine(), find_versions(), find_commit(), MachineMonitor().conditions()])
    assert platform.node() not in told
    assert str(Path.home()) not in told
    assert f'"{getpass.getuser()}"' not in told
    assert str(ROOT) not in told


def test_the_commit_of_this_checkout_is_told() -> None:
    commit, dirty = find_commit()
    if (ROOT / ".git").exists():
        assert len(commit) == 40
    else:
        assert (commit, dirty) == ("", False)


def test_without_a_repository_there_is_no_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "ROOT", tmp_path)
    assert find_commit() == ("", False)


def test_collections_of_garbage_are_counted() -> None:
    gc.disable()  # else the interpreter may choose this very moment
    try:
        watch = MachineMonitor()
        gc.collect()
        gc.collect()
        assert watch.conditions()["collections"][2] == 2
    finally:
        gc.enable()


def test_shares_tell_who_used_the_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    # Seconds that were busy, idle and stolen, and how many of them were ours.
    readings = iter([(100.0, 50.0, 1.0), (140.0, 98.0, 3.0)])
    own = iter([10.0, 30.0])
    monkeypatch.setattr(machine, "_machine_seconds", lambda: next(readings))
    monkeypatch.setattr(machine, "_own_seconds", lambda: next(own))
    told = MachineMonitor().conditions()
    assert told["own_share"] == pytest.approx(20 / 90, abs=1e-4)
    assert told["others_share"] == pytest.approx(20 / 90, abs=1e-4)
    assert told["stolen_share"] == pytest.approx(2 / 90, abs=1e-4)


def test_a_system_that_tells_nothing_is_told_of_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("_CPUINFO", "_MEMINFO", "_STAT"):
        monkeypatch.setattr(machine, name, tmp_path / "missing")
    assert describe_machine()["memory_megabytes"] is None
    assert "others_share" not in MachineMonitor().conditions()
    assert "megahertz" not in MachineMonitor().conditions()
