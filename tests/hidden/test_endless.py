"""Forms that say at every query that there are more: the crawl ends, and the report says where and why."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from aioflow.hidden import Categorical, Numeric
from tests.hidden.crawls import Attribute, Extracted, Row, extract
from tests.hidden.plain_forms import PlainForm

ALGORITHMS = ("auto", "rank-shrink", "binary-shrink", "hybrid")
PRICES: list[Row] = [(number * 3,) for number in range(50)]
QUERIES_AT_MOST = 20_000


class EndlessError(Exception):
    """More queries than any of these crawls needs."""


class Endless(PlainForm):
    """A form that always says that there are more, and ends a crawl that believes it for ever."""

    async def __call__(self, query: dict[str, Any]) -> tuple[list[Row], bool | int | None]:
        if len(self.queries) > QUERIES_AT_MOST:
            raise EndlessError
        rows, _ = await super().__call__(query)
        return rows, True


class Deaf(Endless):
    """A form that shows the same tuples whatever it is asked, and the number of all it has."""

    async def __call__(self, query: dict[str, Any]) -> tuple[list[Row], bool | int | None]:
        await super().__call__(query)
        return self.rows[: self.k], len(self.rows)


class Inventing(Endless):
    """A form that has a tuple for every number there is, and shows those around the end of a range."""

    async def __call__(self, query: dict[str, Any]) -> tuple[list[Row], bool | int | None]:
        await super().__call__(query)
        low, high = query.get("price", (0, None))
        if low is None:
            low = high - 4
        return [(number,) for number in range(low, low + 5) if high is None or number <= high], True


def _crawl(form: PlainForm, attributes: list[Attribute], algorithm: str = "auto") -> Extracted:
    return asyncio.run(extract(form, attributes, k=5, algorithm=algorithm))


def _endless(result: Extracted) -> list[str]:
    return [each.reason for each in result.report.unresolved if each.kind == "endless"]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize(("low", "high"), [(None, None), (0, None), (None, 200), (-(10**12), 10**12)])
@pytest.mark.parametrize("rows", [[], PRICES])
def test_a_form_that_always_overflows_is_not_asked_for_ever(
    rows: list[Row], low: int | None, high: int | None, algorithm: str
) -> None:
    result = _crawl(Endless(["price"], rows, 5), [Numeric("price", low, high)], algorithm)
    assert (result.bag, result.report.complete) == (Counter(rows), False)
    assert any(
        "says that there are more tuples" in each and "shows none" in each for each in _endless(result)
    )


@pytest.mark.parametrize("algorithm", ["rank-shrink", "binary-shrink"])
def test_the_reason_says_where_a_range_that_is_open_overflows_beyond_all_values(algorithm: str) -> None:
    result = _crawl(Endless(["price"], PRICES, 5), [Numeric("price")], algorithm)
    assert "price <= -" in result.report.reason
    assert "beyond 64 bits and all values that it has shown, and shows none" in result.report.reason


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_form_that_ignores_its_conditions_is_not_asked_for_ever(algorithm: str) -> None:
    form = Deaf(["price"], PRICES, 5)
    result = _crawl(form, [Numeric("price")], algorithm)
    assert (result.bag, result.report.complete) == (Counter(PRICES[:5]), False)


def test_a_form_that_ignores_its_conditions_ends_for_menus_too() -> None:
    menus: list[Attribute] = [Categorical(name, range(10)) for name in "abcdef"]
    result = _crawl(Deaf([*"abcdef"], [(0,) * 6] * 9, 5), menus, "dfs")
    assert (len(result.rows), result.report.complete) == (5, False)


def test_a_form_that_invents_tuples_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aioflow.hidden.form_crawler._OVERFLOWS_AT_MOST", 500)
    result = _crawl(Inventing(["price"], [], 5), [Numeric("price")])
    assert "at each of 500 queries, so there is no end" in result.report.reason


class Modest(PlainForm):
    """A form that shows nothing of what it has if that is more than k tuples."""

    async def __call__(self, query: dict[str, Any]) -> tuple[list[Row], bool | int | None]:
        rows, more = await super().__call__(query)
        return [] if more else rows, more


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_form_that_shows_nothing_where_there_is_too_much_is_emptied(algorithm: str) -> None:
    rows: list[Row] = [(number * 10**15,) for number in range(-300, 300)]
    result = _crawl(Modest(["price"], rows, 5), [Numeric("price")], algorithm)
    assert (result.bag, result.report.complete) == (Counter(rows), True)
