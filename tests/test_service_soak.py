"""The short form of the soak of a service: `python -m tests.service_soak` is the long one, of 24 hours."""

from __future__ import annotations

from pathlib import Path

from tests.service_soak.serving import Soak

_MINUTES = 20
_TASKS = 20


def test_a_service_leaves_nothing_of_its_runs(tmp_path: Path) -> None:
    soak = Soak(tmp_path, _MINUTES / 60, _TASKS)
    report = soak.run(lambda line: None, warm_up_hours=0.2, each_hours=_MINUTES / 60 - 0.2)
    assert report.problems == []
    assert report.outcomes.keys() <= {"succeeded", "failed"}
    assert report.outcomes.total() >= (_MINUTES - 1) * _TASKS
    assert report.faults
    assert report.messages
    # A run that left a hundred objects would leave five times as many.
    assert report.blocks[-1][1] - report.blocks[0][1] < 50 * _TASKS * 8
