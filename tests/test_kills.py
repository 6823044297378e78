"""The kill harness in short: every moment once, a few kills at random, and that it can turn red."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kills.commands import SABOTAGE, Forked
from tests.kills.harness import harness
from tests.servers.postgres import Postgres


@pytest.fixture(scope="module")
def commands() -> Iterator[Forked]:
    with Forked() as commands:
        yield commands


def test_a_kill_at_any_moment_loses_and_repeats_nothing(
    tmp_path: Path, commands: Forked, postgres: Postgres
) -> None:
    with harness(tmp_path, commands, lambda: postgres, seed=1) as work:
        work.kill_at_all_moments("sqlite", chained=True)
        work.check_all_were_hit()
    assert work.report.problems == []
    assert work.report.told


def test_kills_at_random_lose_and_repeat_nothing(
    tmp_path: Path, commands: Forked, postgres: Postgres
) -> None:
    with harness(tmp_path, commands, lambda: postgres, seed=2) as work:
        work.kill_at_random("sqlite", 2, chained=True)
        work.kill_at_random("postgresql", 2, chained=True)
    assert work.report.problems == []
    assert work.report.random_kills == 4


def test_the_harness_notices_an_outbox_that_is_written_after_the_transaction(
    tmp_path: Path, commands: Forked, postgres: Postgres
) -> None:
    with (
        harness(tmp_path, commands, lambda: postgres, 3, **{SABOTAGE: "1"}) as work,
        work.campaign("sqlite") as campaign,
    ):
        campaign.kill_at_moments(["transaction committed"])
    assert [problem for problem in work.report.problems if "stored and told disagree" in problem]
    assert [problem for problem in work.report.problems if "lost" in problem]
