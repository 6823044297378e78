"""Kills of a service in short: each of its own moments once, some of its runs, and a stop."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kills.moments import service_moments
from tests.kills.receivers import receivers
from tests.servers.postgres import Postgres
from tests.service_kills.campaign import Harness
from tests.service_kills.oracle import Oracle


def test_a_service_that_is_killed_at_any_of_its_moments_loses_and_repeats_nothing(
    tmp_path: Path, postgres: Postgres
) -> None:
    with receivers(tmp_path) as running:
        work = Harness(tmp_path, running, lambda: postgres, seed=1)
        with work.campaign("sqlite") as campaign:
            campaign.begin()
            campaign.kill_at_moments([*service_moments(), "transaction committed", "smtp-taken"])
        work.check_all_were_hit()
    assert work.report.problems == []
    assert work.report.told


def test_another_service_takes_over_from_one_that_is_killed_or_stopped(
    tmp_path: Path, postgres: Postgres
) -> None:
    with receivers(tmp_path) as running:
        work = Harness(tmp_path, running, lambda: postgres, seed=2)
        with work.campaign("postgresql") as campaign:
            campaign.begin()
            campaign.kill_at_random(2, services=2)
            campaign.stop_at_moments(["run claimed"])
    assert work.report.problems == []
    assert work.report.random_kills == 2
    assert work.report.times["succeeded"]


def test_the_oracle_notices_due_times_commits_and_messages_that_are_wrong(
    tmp_path: Path, postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[str] = []
    with receivers(tmp_path) as running:
        work = Harness(tmp_path, running, lambda: postgres, seed=3)
        with work.campaign("postgresql") as campaign:
            campaign.begin()
            campaign.serve_until(campaign.has_ticked)
            monkeypatch.setattr(Oracle, "look", lambda self: found.extend(_spoiled(self)))
    assert len(found) == len(_SPOILING)


_SPOILING = (
    "delete from aioflow_occurrences where run_id = (select min(run) from ticks)",
    "update aioflow_occurrences set leased_by = 'a service that is gone' where state = 'succeeded'",
    "delete from history where price >= 0",
)


def _spoiled(oracle: Oracle) -> list[str]:
    """Return the first problem after each of the changes that no service would make."""
    found = []
    for sql in _SPOILING:
        before = len(oracle.problems)
        oracle.world.tasks.rows(sql)
        _look(oracle)
        found += oracle.problems[before : before + 1]
    oracle.problems.clear()
    return found


_look = Oracle.look
