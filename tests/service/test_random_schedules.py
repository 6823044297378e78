"""The short form of the comparison of schedules with the minute-by-minute oracle and with cronsim.

`python -m tests.schedules` is the long one: 1,000 lines over ten years in six zones.
"""

from __future__ import annotations

from datetime import timedelta

import pytest

from aioflow.service.schedules.local_time import end_of_gap
from tests.schedules.campaign import ZONES, compare_zone


@pytest.mark.parametrize("zone", ZONES)
def test_random_lines_are_due_as_the_oracle_and_cronsim_say(zone: str) -> None:
    report = compare_zone(zone, lines=20, years=1, seed=sum(map(ord, zone)), first_year=2011)
    assert report.disagreements == []
    assert report.times > 1000
    assert report.questions > 100
    assert report.peer_times > 100


def test_the_comparison_finds_a_gap_that_ends_a_minute_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "aioflow.service.schedules.schedule.end_of_gap",
        lambda local, zone: end_of_gap(local, zone) + timedelta(minutes=1),
    )
    assert compare_zone("Europe/Berlin", lines=40, years=1, seed=1).disagreements


def test_the_comparison_finds_a_repeated_time_that_runs_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aioflow.service.schedules.cron.CronLine.follows_elapsed_time", True)
    assert compare_zone("Europe/Berlin", lines=40, years=1, seed=1).disagreements
