"""Points with more than k identical tuples: they are named, and everything else is extracted."""

from __future__ import annotations

from collections import Counter

import pytest

from aioflow.hidden import Categorical, Numeric, Unresolved
from tests.hidden.crawls import Attribute, Extracted, Row, extracted
from tests.hidden.databases import OF_BOTH, OF_MENUS, OF_RANGES
from tests.hidden.plain_forms import PlainForm, in_all

K = 3
RANGES: list[Attribute] = [Numeric("price"), Numeric("age")]
MENUS: list[Attribute] = [Categorical("make", [*"abc"]), Categorical("body", [*"xy"])]
BOTH: list[Attribute] = [Categorical("make", [*"abc"]), Numeric("price")]
CASES = [
    *((RANGES, [(number, number % 4) for number in range(30)], (7, 3), name) for name in OF_RANGES),
    *((MENUS, [(make, body) for make in "abc" for body in "xy"], ("b", "y"), name) for name in OF_MENUS),
    *((BOTH, [("abc"[number % 3], number) for number in range(30)], ("b", 7), name) for name in OF_BOTH),
]
POINTS = pytest.mark.parametrize(("attributes", "others", "point", "algorithm"), CASES)


def _crawl(attributes: list[Attribute], rows: list[Row], algorithm: str = "auto") -> Extracted:
    form = PlainForm([each.name for each in attributes], rows, K)
    return extracted(form, attributes, k=K, algorithm=algorithm)


@POINTS
def test_the_point_with_too_many_tuples_is_named(
    attributes: list[Attribute], others: list[Row], point: Row, algorithm: str
) -> None:
    report = _crawl(attributes, [*others, *[point] * K], algorithm).report
    names = [each.name for each in attributes]
    expected = (dict(zip(names, point, strict=True)), "point", K)
    assert [(each.query, each.kind, each.known) for each in report.unresolved] == [expected]


@POINTS
def test_everything_but_the_tuples_too_many_is_extracted(
    attributes: list[Attribute], others: list[Row], point: Row, algorithm: str
) -> None:
    result = _crawl(attributes, [*others, *[point] * K], algorithm)
    assert result.bag == Counter([*others, *[point] * (K - 1)])


@POINTS
def test_a_point_of_exactly_k_tuples_is_resolved(
    attributes: list[Attribute], others: list[Row], point: Row, algorithm: str
) -> None:
    rows = [*others, *[point] * (K - 1)]
    result = _crawl(attributes, rows, algorithm)
    assert (result.bag, result.report.complete) == (Counter(rows), True)


def _full() -> Unresolved:
    (unresolved,) = _crawl(RANGES, [(1, 2)] * (K + 2)).report.unresolved
    return unresolved


def test_the_reason_says_that_there_are_more_than_are_shown() -> None:
    assert _full().reason == "more than 3 identical tuples, of which an answer has 3"


def test_the_reason_says_how_many_there_are_if_the_source_does() -> None:
    form = PlainForm(["price", "age"], [(1, 2)] * (K + 2), K, tell=in_all)
    (unresolved,) = extracted(form, RANGES, k=K).report.unresolved
    assert unresolved.reason == "5 identical tuples, of which an answer has 3"


def test_the_statement_of_an_incomplete_crawl_names_the_point() -> None:
    report = _crawl(RANGES, [(1, 2)] * (K + 2)).report
    assert report.statement().startswith("incomplete: 3 tuples by ")
    assert "price = 1, age = 2" in report.statement()


def test_the_statement_of_a_complete_crawl_says_so() -> None:
    report = _crawl(RANGES, [(1, 2)]).report
    assert report.statement() == "complete: 1 tuples by 1 queries; every region of the form was resolved"
