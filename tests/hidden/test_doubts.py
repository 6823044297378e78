"""A result is called complete only if nothing that answers have shown speaks against it."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest

from aioflow.hidden import Categorical, Numeric, crawl
from tests.hidden.crawls import extracted
from tests.hidden.plain_forms import PlainForm, in_all


def test_a_total_that_was_not_found_is_a_doubt() -> None:
    rows: list[tuple[Any, ...]] = [(number,) for number in range(9)] + [(None,)]
    report = extracted(PlainForm(["x"], rows, 3, tell=in_all), [Numeric("x")], k=3).report
    assert not report.complete
    assert report.estimate().tuples == 10


@pytest.mark.parametrize("algorithm", ["auto", "rank-shrink", "binary-shrink"])
def test_tuples_outside_of_the_bounds_are_a_doubt(algorithm: Any) -> None:
    rows = [(number,) for number in range(-5, 30)]
    report = extracted(PlainForm(["x"], rows, 3), [Numeric("x", 0, 10)], k=3, algorithm=algorithm).report
    assert not report.complete
    assert "outside of 0 to 10" in report.reason


def test_slice_cover_learns_its_values_from_the_first_answer() -> None:
    attributes = [Categorical("m"), Categorical("n")]
    form = PlainForm(["m", "n"], [("a", "x"), ("b", "y")], 2)
    result = extracted(form, attributes, k=2, algorithm="slice-cover")
    assert (result.bag, result.report.complete) == (Counter([("a", "x"), ("b", "y")]), True)


@pytest.mark.parametrize("algorithm", ["auto", "rank-shrink"])
def test_tuples_without_a_value_of_a_divided_attribute_are_a_doubt(algorithm: Any) -> None:
    rows: list[tuple[Any, ...]] = [(0, 0), (0, 1), (0, None), (1, None)]
    form = PlainForm(["x", "y"], rows, 2)
    result = extracted(form, [Numeric("x"), Numeric("y")], k=2, algorithm=algorithm)
    assert result.bag <= Counter(rows)
    assert not result.report.complete


@pytest.mark.parametrize(
    ("attribute", "values"),
    [
        (Numeric("x", 10**30), [10**30 + number for number in range(4)]),
        (Numeric("x", step=Decimal("0.01")), [Decimal(f"1{0:030}.0{n}") for n in range(4)]),
        (Numeric("x"), [date(9999, 12, 31)] * 3 + [date(2024, 1, 1)] * 2 + [date(1, 1, 1)]),
        (Numeric("x"), [datetime(9999, 12, 31, 23, 59, 59)] * 3 + [datetime(2024, 1, 1)] * 2),
    ],
)
@pytest.mark.parametrize("algorithm", ["auto", "rank-shrink", "binary-shrink"])
def test_values_at_the_ends_of_what_can_be_written_are_extracted(
    attribute: Numeric, values: list[Any], algorithm: Any
) -> None:
    rows = [(value,) for value in values]
    result = extracted(PlainForm(["x"], rows, 3), [attribute], k=3, algorithm=algorithm)
    assert (result.bag, result.report.complete) == (Counter(rows), True)


@pytest.mark.parametrize("algorithm", ["auto", "rank-shrink", "binary-shrink"])
def test_a_tuple_that_was_shown_and_goes_is_a_change(algorithm: Any) -> None:
    rows = [(number,) for number in range(100)]
    form = PlainForm(["x"], rows, 10)
    gone = form.rows[:5]

    async def query(conditions: dict[str, Any]) -> Any:
        answer = await form(conditions)
        if len(form.queries) == 2:
            form.rows = form.rows[5:]
        return answer

    async def main() -> Any:
        run = crawl(query, [Numeric("x", 0, 127)], k=10, algorithm=algorithm)
        found = [row async for row in run]
        return found, run.report

    found, report = asyncio.run(main())
    assert set(found) >= {row for row in rows if row not in gone}
    assert len(report.changes) + len(set(found) & set(gone)) == 5
    assert not report.complete


def test_a_payload_may_hold_values_without_a_hash() -> None:
    async def query(conditions: dict[str, Any]) -> Any:
        low, high = conditions.get("x", (None, None))
        found = [
            (n, {"n": n}) for n in range(20) if (low is None or n >= low) and (high is None or n <= high)
        ]
        return found[:5], len(found) > 5

    async def main() -> list[Any]:
        return [row async for row in crawl(query, [Numeric("x")], k=5)]

    assert sorted(asyncio.run(main()), key=lambda row: row[0]) == [(n, {"n": n}) for n in range(20)]


def test_a_point_is_named_with_attributes_of_one_value() -> None:
    form = PlainForm(["x", "y"], [(7, 1)] * 3, 2)
    (point,) = extracted(form, [Numeric("x", 7, 7), Numeric("y")], k=2).report.unresolved
    assert point.query == {"x": 7, "y": 1}


def test_a_first_value_of_another_kind_is_a_doubt() -> None:
    form = PlainForm(["x"], [("on request",), (1,)], 5)
    result = extracted(form, [Numeric("x")], k=5)
    assert (list(result.bag), result.report.complete) == ([(1,)], False)
