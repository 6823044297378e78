"""Events as a trace file."""

import json
from collections import defaultdict
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from aioflow.cli.commands.run import traced
from aioflow.engine import Engine
from aioflow.errors import InputError
from aioflow.runtime.events import (
    CallEnded,
    CallStarted,
    Event,
    FiringEnded,
    FiringStarted,
    MessagesDelivered,
    RunCommitted,
    RunStarted,
    StepEnded,
    StepStarted,
    TupleFailed,
    Warned,
)
from aioflow.telemetry.trace import Trace

STEP = ("get_urls", "wrapper", 7)


def written(path: Path, *events: Event) -> list[dict[str, Any]]:
    with path.open("w", encoding="utf-8") as file:
        trace = Trace(file)
        for event in events:
            trace.record(event)
        trace.close()
    entries: list[dict[str, Any]] = json.loads(path.read_text())["traceEvents"]
    return entries


def slices(entries: list[dict[str, Any]], category: str) -> list[dict[str, Any]]:
    return [entry for entry in entries if entry["ph"] == "X" and entry["cat"] == category]


def assert_sane_nesting(entries: list[dict[str, Any]]) -> None:
    """On one thread a slice lies inside another or beside it."""
    threads = defaultdict(list)
    for entry in entries:
        if entry["ph"] == "X":
            threads[entry["pid"], entry["tid"]].append((entry["ts"], entry["ts"] + entry["dur"]))
    for spans in threads.values():
        ends: list[float] = []
        for start, end in sorted(spans, key=lambda span: (span[0], -span[1])):
            while ends and ends[-1] <= start:
                ends.pop()
            assert not ends or end <= ends[-1]
            ends.append(end)


def test_firings_become_slices_of_their_statement(tmp_path: Path) -> None:
    entries = written(
        tmp_path / "t.json",
        RunStarted(10.0, "r", "main"),
        StepStarted(10.0, "r", *STEP, 3),
        FiringStarted(10.001, "r", *STEP, 3, 1, 0.0005),
        FiringEnded(10.101, "r", *STEP, 3, 1),
        StepEnded(10.2, "r", *STEP, 3, 1, 6),
    )
    [firing] = slices(entries, "firing")
    assert (firing["name"], firing["ts"], firing["dur"]) == ("wrapper #3", 1000.0, 100000.0)
    assert firing["args"] == {"iteration": 3, "waited_ms": 0.5}
    [step] = slices(entries, "step")
    assert step["args"] == {"iteration": 3, "rows_in": 1, "rows_out": 6, "dead": False}
    names = {entry["args"]["name"] for entry in entries if entry["ph"] == "M" and "name" in entry["args"]}
    assert names == {"plan get_urls", "7 wrapper", "7 wrapper · firing 1"}


def test_firings_at_the_same_time_have_threads_of_their_own_and_take_free_ones_again(tmp_path: Path) -> None:
    entries = written(
        tmp_path / "t.json",
        FiringStarted(0.0, "r", *STEP, 1, 1),
        FiringStarted(0.1, "r", *STEP, 2, 2),
        FiringEnded(0.2, "r", *STEP, 1, 1),
        FiringStarted(0.3, "r", *STEP, 3, 3),
        FiringEnded(0.5, "r", *STEP, 2, 2, "boom"),
        FiringEnded(0.6, "r", *STEP, 3, 3),
    )
    found = {entry["name"]: entry for entry in slices(entries, "firing")}
    assert found["wrapper #1"]["tid"] == found["wrapper #3"]["tid"] != found["wrapper #2"]["tid"]
    assert found["wrapper #2"]["args"]["error"] == "boom"
    assert_sane_nesting(entries)
    counts = [entry["args"]["under way"] for entry in entries if entry["ph"] == "C"]
    assert counts == [1, 2, 1, 2, 1, 0]


def test_calls_failures_and_warnings_are_shown(tmp_path: Path) -> None:
    entries = written(
        tmp_path / "t.json",
        CallStarted(1.0, "r", "get_urls", 2, 1),
        StepStarted(1.0, "r", *STEP, 2),
        TupleFailed(1.1, "r", *STEP, 2, "no answer"),
        Warned(1.2, "r", "two divisions by zero"),
        CallEnded(1.3, "r", "get_urls", 2),
    )
    [call] = slices(entries, "call")
    assert (call["name"], call["args"]) == ("get_urls #2", {"iteration": 2, "parent": 1})
    instants = [entry["name"] for entry in entries if entry["ph"] == "i"]
    assert instants == ["failed: no answer", "two divisions by zero"]


def test_commits_and_deliveries_are_shown(tmp_path: Path) -> None:
    entries = written(
        tmp_path / "t.json",
        RunStarted(1.0, "r", "main"),
        RunCommitted(1.1, "r", "main", 1),
        MessagesDelivered(1.2, "r", "main", 2, 0, 1),
    )
    instants = [entry["name"] for entry in entries if entry["ph"] == "i"]
    assert instants == ["run r: main", "commit 1", "messages: 2 sent, 0 given up, 1 waiting"]


def test_what_a_run_left_open_ends_with_the_trace(tmp_path: Path) -> None:
    entries = written(
        tmp_path / "t.json", StepStarted(0.0, "r", *STEP, 1), FiringStarted(0.5, "r", *STEP, 1, 1)
    )
    assert [entry["args"]["unfinished"] for entry in entries if entry["ph"] == "X"] == [True, True]
    assert_sane_nesting(entries)


def test_a_trace_that_cannot_be_written_is_bad_input(tmp_path: Path) -> None:
    message = "cannot write trace: no such file or directory"
    with pytest.raises(InputError, match=message), traced(Engine(), str(tmp_path / "missing" / "t.json")):
        pass


def test_a_trace_that_grows_too_long_leaves_entries_out_and_says_so() -> None:
    file = StringIO()
    trace = Trace(file, characters_at_most=2_000)
    for number in range(100):
        trace.record(Warned(float(number), "r", "careful"))
    trace.close()
    entries = json.loads(file.getvalue())["traceEvents"]
    assert len(file.getvalue()) < 2_500
    assert entries[-1]["name"] == f"{101 - len(entries)} further entries are left out"
