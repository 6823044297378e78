"""Forms that do not quite answer as the paper supposes: what is extracted, and what the report says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from aioflow.errors import InputError
from aioflow.hidden import Categorical, Numeric
from tests.hidden.crawls import Attribute, Row, extracted
from tests.hidden.plain_forms import PlainForm, Tell, in_all, nothing, whether_more

NUMBER: list[Attribute] = [Numeric("price")]
MENUS: list[Attribute] = [Categorical("make", ["a", "b", "c"]), Categorical("body", ["x", "y"])]
PRICES: list[Row] = [(number * 3,) for number in range(50)]
CARS: list[Row] = [(make, body) for make in "abc" for body in "xy" for _ in range(2)]


def _prices(k: int = 5, tell: Tell = whether_more) -> PlainForm:
    return PlainForm(["price"], PRICES, k, tell=tell)


def _cars(k: int = 2, tell: Tell = whether_more) -> PlainForm:
    return PlainForm(["make", "body"], CARS, k, tell=tell)


# --- how many there are -----------------------------------------------------------------------------------


def test_k_is_found_out_from_the_longest_answer() -> None:
    result = extracted(_prices(), NUMBER)
    assert (result.bag, result.report.complete, result.report.k) == (Counter(PRICES), True, 5)


def test_k_is_found_out_although_the_source_never_says_that_there_are_more() -> None:
    result = extracted(_prices(tell=nothing), NUMBER)
    assert (result.bag, result.report.complete) == (Counter(PRICES), True)


def test_a_total_tells_that_an_answer_overflows() -> None:
    result = extracted(_prices(tell=in_all), NUMBER, k=5)
    assert (result.bag, result.report.complete, result.report.total) == (Counter(PRICES), True, 50)


@pytest.mark.parametrize("kind", [np.int64, float, Decimal])
def test_a_total_may_be_a_number_of_any_kind(kind: Any) -> None:
    result = extracted(_prices(tell=lambda found, _: kind(found)), NUMBER, k=5)
    assert (result.bag, result.report.complete, result.report.total) == (Counter(PRICES), True, 50)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (([(1,)], "yes"), "True or False, their number, or None, not 'yes'"),
        (([(1,)], 1.5), "True or False, their number, or None, not 1.5"),
        ((None, False), "a query returns its tuples and whether there are more: .*'NoneType'"),
        (([1], False), "a query returns its tuples and whether there are more: .*'int'"),
    ],
)
def test_an_answer_that_makes_no_sense_is_an_error(answer: Any, message: str) -> None:
    async def query(_: Any) -> Any:
        return answer

    with pytest.raises(InputError, match=message):
        extracted(query, NUMBER, k=5)


def test_k_tuples_are_taken_for_an_overflow_where_the_source_does_not_say() -> None:
    result = extracted(_prices(tell=nothing), NUMBER, k=5)
    assert (result.bag, result.report.complete) == (Counter(PRICES), True)


def test_a_point_of_exactly_k_tuples_is_undecided_where_the_source_does_not_say() -> None:
    result = extracted(_cars(tell=nothing), MENUS, k=2)
    assert {each.kind for each in result.report.unresolved} == {"undecided"}


def test_the_tuples_of_an_undecided_point_are_extracted() -> None:
    result = extracted(_cars(tell=nothing), MENUS, k=2)
    assert (result.bag, result.report.complete) == (Counter(CARS), False)


def test_an_undecided_point_is_named() -> None:
    form = PlainForm(["make", "body"], [("a", "x")] * 2, 2, tell=nothing)
    (unresolved,) = extracted(form, MENUS, k=2).report.unresolved
    assert (unresolved.query, unresolved.known) == ({"make": "a", "body": "x"}, 2)


def test_answers_with_more_than_k_tuples_are_used_with_a_warning() -> None:
    result = extracted(_prices(k=8), NUMBER, k=5)
    assert (result.bag, result.report.complete) == (Counter(PRICES), True)
    assert result.report.warnings == ["an answer has more than k = 5 tuples"]


@pytest.mark.parametrize("algorithm", ["auto", "rank-shrink", "binary-shrink"])
@pytest.mark.parametrize("is_falling", [False, True])
def test_ranked_answers_hide_nothing(algorithm: str, is_falling: bool) -> None:
    rows = sorted([(number**3, -number) for number in range(80)], reverse=is_falling)
    form = PlainForm(["price", "age"], rows, 4)
    result = extracted(form, [Numeric("price"), Numeric("age")], k=4, algorithm=algorithm)
    assert (result.bag, result.report.complete) == (Counter(rows), True)


class Odd(PlainForm):
    """A form that says that there are more, and shows none of them."""

    async def __call__(self, query: dict[str, Any]) -> tuple[list[Row], bool | int | None]:
        rows, more = await super().__call__(query)
        return ([], True) if not query else (rows, more)


def test_an_answer_that_shows_nothing_of_what_it_has_is_divided() -> None:
    result = extracted(Odd(["price"], PRICES, 5), NUMBER, k=5)
    assert (result.bag, result.report.complete) == (Counter(PRICES), True)


# --- a source that changes --------------------------------------------------------------------------------


class Changing(PlainForm):
    """A form that loses a tuple after its first answer."""

    lost: Row | None = None

    def matching(self, query: Mapping[str, Any]) -> list[Row]:
        if len(self.queries) == 2:
            self.rows = [row for row in self.rows if row != self.lost]
        return super().matching(query)


def _lost(algorithm: str) -> Changing:
    form = Changing(["price"], PRICES, 5)
    form.lost = PRICES[0]  # which the first answer shows
    return form


@pytest.mark.parametrize("algorithm", ["auto", "rank-shrink"])
def test_a_tuple_that_was_shown_and_is_missing_later_is_a_change(algorithm: str) -> None:
    report = extracted(_lost(algorithm), NUMBER, k=5, algorithm=algorithm).report
    assert [each.tuple for each in report.changes] == [PRICES[0]]


def test_a_change_makes_the_result_incomplete_and_is_the_reason() -> None:
    report = extracted(_lost("auto"), NUMBER, k=5).report
    assert (report.complete, "the source changed" in report.reason) == (False, True)


def test_a_change_is_seen_in_menus() -> None:
    form = Changing(["make", "body"], CARS, 2)
    form.lost = CARS[0]
    report = extracted(form, MENUS, k=2, algorithm="lazy-slice-cover").report
    assert {each.tuple for each in report.changes} == {CARS[0]}


def test_a_source_that_does_not_change_shows_no_changes() -> None:
    assert extracted(_prices(), NUMBER, k=5).report.changes == []


# --- tuples and values ------------------------------------------------------------------------------------


class Generous(PlainForm):
    """A form that adds an advertisement to each answer."""

    async def __call__(self, query: dict[str, Any]) -> tuple[list[Row], bool | int | None]:
        rows, more = await super().__call__(query)
        is_beyond = bool(query) and (query["price"][0] or 0) > 0
        return [*rows, (0,)] if is_beyond else rows, more


def test_tuples_outside_of_their_query_are_left_out_with_a_warning() -> None:
    form = Generous(["price"], PRICES, 5)
    attributes: list[Attribute] = [Numeric("price", 0, 1000)]
    result = extracted(form, attributes, k=6, algorithm="rank-shrink")
    assert (result.bag, len(result.report.warnings)) == (Counter(PRICES), 1)
    assert "tuples that their query did not ask for" in result.report.warnings[0]


def test_a_null_value_of_a_resolved_answer_is_extracted_like_others() -> None:
    rows: list[Row] = [(None, 1), (2, None)]
    form = PlainForm(["price", "age"], rows, 5)
    result = extracted(form, [Numeric("price"), Numeric("age")], k=5)
    assert (result.bag, result.report.complete) == (Counter(rows), True)


@pytest.mark.parametrize("algorithm", ["auto", "rank-shrink"])
def test_tuples_without_a_number_are_extracted_as_far_as_they_are_shown(algorithm: str) -> None:
    rows: list[Row] = [(None,), *PRICES]
    result = extracted(PlainForm(["price"], rows, 5), NUMBER, k=5, algorithm=algorithm)
    assert result.bag == Counter(rows)


@pytest.mark.parametrize("algorithm", ["auto", "rank-shrink"])
def test_tuples_without_a_number_leave_the_result_incomplete(algorithm: str) -> None:
    form = PlainForm(["price"], [(None,), *PRICES], 5)
    report = extracted(form, NUMBER, k=5, algorithm=algorithm).report
    assert (report.complete, [each.kind for each in report.unresolved]) == (False, ["no value"])


def test_tuples_without_a_value_of_a_menu_leave_the_result_incomplete() -> None:
    rows: list[Row] = [(None, "x"), *CARS]
    result = extracted(PlainForm(["make", "body"], rows, 2), MENUS, k=2, algorithm="dfs")
    assert (result.report.complete, {each.kind for each in result.report.unresolved}) == (False, {"no value"})


def test_a_value_off_the_grid_leaves_the_result_incomplete() -> None:
    report = extracted(PlainForm(["price"], [(1,), (2.5,)], 5), NUMBER, k=5).report
    assert (report.complete, "2.5 of price" in report.reason) == (False, True)


def test_a_value_of_another_kind_leaves_the_result_incomplete() -> None:
    report = extracted(PlainForm(["price"], [(1,), ("on request",)], 5), NUMBER, k=5).report
    assert (report.complete, "'on request' of price" in report.reason) == (False, True)


def test_the_tuples_beside_a_value_off_the_grid_are_extracted() -> None:
    result = extracted(PlainForm(["price"], [*PRICES, (2.5,)], 5), NUMBER, k=5)
    assert result.bag == Counter(PRICES)


def test_a_tuple_with_too_few_values_is_an_error() -> None:
    form = PlainForm(["price"], PRICES, 5)
    with pytest.raises(InputError, match="1 values, but there are 2 attributes"):
        extracted(form, [Numeric("price"), Numeric("age")], k=5)


def test_columns_after_those_of_the_attributes_are_passed_on() -> None:
    rows = [(*row, f"link {number}") for number, row in enumerate(PRICES)]
    result = extracted(PlainForm(["price", "link"], rows, 5), NUMBER, k=5)
    assert (result.bag, result.report.complete) == (Counter(rows), True)
