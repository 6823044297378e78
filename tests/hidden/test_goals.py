"""The short form of `python -m tests.hidden.goals`: k = 1024, one seed."""

from __future__ import annotations

import pytest

from tests.hidden.goals import (
    ADULT_NUMERIC,
    DIAMONDS_NUMERIC,
    MANY_WORKERS,
    NSF_MENUS,
    SHARES,
    Ranking,
    Setting,
    ranked,
    rankings,
    share,
    with_workers,
)

K = 1024


@pytest.mark.parametrize(
    ("setting", "goal"),
    [(setting, goal) for setting, k, goal in SHARES if k == K],
    ids=[setting.title for setting, k, _ in SHARES if k == K],
)
def test_auto_costs_the_intended_share_of_the_paper(setting: Setting, goal: float) -> None:
    assert share(setting, K, goal, seeds=1).ratio <= goal


@pytest.mark.parametrize("ranking", list(rankings(ADULT_NUMERIC))[::4], ids=str)
def test_auto_is_not_fooled_by_servers_that_rank(ranking: Ranking) -> None:
    figure = ranked(ADULT_NUMERIC, K, ranking)
    assert figure.ratio <= figure.goal


def test_auto_is_not_fooled_by_a_server_that_ranks_diamonds_by_price() -> None:
    figure = ranked(DIAMONDS_NUMERIC, K, next(rankings(DIAMONDS_NUMERIC)))
    assert figure.ratio <= figure.goal


def test_many_workers_are_not_fooled_by_a_server_that_ranks_diamonds_by_weight() -> None:
    by_carat = next(each for each in rankings(DIAMONDS_NUMERIC) if str(each) == "carat_x100 falling")
    figure = ranked(DIAMONDS_NUMERIC, K, by_carat, MANY_WORKERS)
    assert figure.ratio <= figure.goal


@pytest.mark.parametrize(("setting", "k"), [(ADULT_NUMERIC, 256), (ADULT_NUMERIC, K), (NSF_MENUS, K)])
def test_many_workers_send_hardly_more_queries_than_one(setting: Setting, k: int) -> None:
    figure = with_workers(setting, k, seeds=1 if k == K else 4)
    assert figure.ratio <= figure.goal
