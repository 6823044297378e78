"""Attributes that forms have and the paper leaves out: learnt domains, required menus, one side only."""

from __future__ import annotations

from collections import Counter
from functools import cache
from random import Random

import pytest

from aioflow.hidden import Categorical, Numeric
from tests.hidden.crawls import Attribute, Extracted, Row, comparable, extracted
from tests.hidden.plain_forms import PlainForm, Tell, in_all, whether_more

CARS: list[Row] = [(make, body) for make in "abc" for body in "xy" for _ in range(2)]
SIDES = ["at_most", "at_least"]
RANDOM_FORMS = 150
OF_MENUS = ["dfs", "slice-cover", "lazy-slice-cover", "auto"]


def _cars(rows: list[Row] = CARS, tell: Tell = whether_more, k: int = 2) -> PlainForm:
    return PlainForm(["make", "body"], rows, k, tell=tell)


def _menus(make: str | None = "abc", body: str | None = "xy") -> list[Attribute]:
    return [Categorical("make", make and [*make]), Categorical("body", body and [*body])]


# --- domains ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", OF_MENUS)
def test_values_that_a_domain_lacks_are_searched_once_an_answer_shows_them(algorithm: str) -> None:
    result = extracted(_cars(), _menus(make="bc"), k=2, algorithm=algorithm)
    assert result.bag == Counter(CARS)


def test_values_that_a_domain_lacks_are_a_warning() -> None:
    report = extracted(_cars(), _menus(make="bc"), k=2).report
    assert ["make has values that its domain lacks" in each for each in report.warnings] == [True]


@pytest.mark.parametrize("algorithm", ["dfs", "lazy-slice-cover", "auto"])
def test_the_values_of_a_menu_without_a_domain_are_learnt_from_answers(algorithm: str) -> None:
    result = extracted(_cars(k=3), _menus(body=None), k=3, algorithm=algorithm)
    assert result.bag == Counter(CARS)


def test_a_value_that_others_hide_in_every_answer_is_not_learnt() -> None:
    result = extracted(_cars(), _menus(body=None), k=2)
    assert {body for _, body in result.rows} == {"x"}


def test_a_learnt_domain_leaves_the_result_incomplete_with_a_warning() -> None:
    report = extracted(_cars(), _menus(body=None), k=2).report
    assert (report.complete, report.warnings) == (False, ["the values of body were learnt from answers"])


def test_a_learnt_domain_is_the_reason_of_an_incomplete_result() -> None:
    assert "others may exist" in extracted(_cars(), _menus(body=None), k=2).report.reason


def test_a_total_proves_that_a_learnt_domain_is_whole() -> None:
    report = extracted(_cars(tell=in_all, k=3), _menus(body=None), k=3).report
    assert (report.complete, report.reason) == (True, "")


def test_a_learnt_domain_does_not_matter_where_ranges_resolve_everything() -> None:
    rows: list[Row] = [("ab"[number % 2], number) for number in range(40)]
    form = PlainForm(["make", "price"], rows, 3)
    result = extracted(form, [Categorical("make"), Numeric("price")], k=3)
    assert (result.bag, result.report.complete) == (Counter(rows), True)


def test_a_learnt_domain_does_not_matter_where_the_first_answer_has_everything() -> None:
    result = extracted(_cars(CARS[:2]), _menus(body=None), k=2)
    assert (result.bag, result.report.complete) == (Counter(CARS[:2]), True)


# --- required attributes ----------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", [*OF_MENUS, "hybrid"])
def test_no_query_leaves_a_required_attribute_open(algorithm: str) -> None:
    form = _cars()
    menus: list[Attribute] = [Categorical("make", [*"abc"], required=True), Categorical("body", [*"xy"])]
    result = extracted(form, menus, k=2, algorithm=algorithm)
    assert (result.bag, result.report.complete) == (Counter(CARS), True)
    assert all("make" in query for query in form.queries)


def test_several_required_attributes_are_asked_in_all_combinations() -> None:
    form = _cars()
    menus: list[Attribute] = [
        Categorical("make", [*"abc"], required=True),
        Categorical("body", [*"xy"], required=True),
    ]
    extracted(form, menus, k=2)
    assert comparable(form.queries) == comparable({"make": make, "body": body} for make, body in set(CARS))


def test_ranges_are_swept_for_each_value_of_a_required_attribute() -> None:
    rows: list[Row] = [("ab"[number % 2], number) for number in range(40)]
    form = PlainForm(["make", "price"], rows, 3)
    result = extracted(form, [Categorical("make", ["a", "b"], required=True), Numeric("price")], k=3)
    assert (result.bag, result.report.complete) == (Counter(rows), True)
    assert all("make" in query for query in form.queries)


# --- single values and one side only ----------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["dfs", "lazy-slice-cover", "auto"])
def test_an_attribute_of_single_values_is_asked_for_value_by_value(algorithm: str) -> None:
    rows: list[Row] = [(number % 7,) for number in range(20)]
    form = PlainForm(["doors"], rows, 3)
    result = extracted(form, [Numeric("doors", 0, 6, predicates="value")], k=3, algorithm=algorithm)
    assert (result.bag, result.report.complete) == (Counter(rows), True)
    assert not any(isinstance(value, tuple) for query in form.queries for value in query.values())


def _one_sided(predicates: str, rows: list[Row], k: int) -> tuple[PlainForm, Extracted]:
    form = PlainForm(["price"], rows, k)
    attributes: list[Attribute] = [Numeric("price", predicates=predicates)]  # type: ignore[arg-type]
    return form, extracted(form, attributes, k=k)


PRICES: list[Row] = [(number * 5,) for number in range(30)]


def test_at_most_asks_for_upper_ends_only() -> None:
    form, _ = _one_sided("at_most", PRICES, 4)
    assert all(query.get("price", (None, 0))[0] is None for query in form.queries)


def test_at_least_asks_for_lower_ends_only() -> None:
    form, _ = _one_sided("at_least", PRICES, 4)
    assert all(query.get("price", (0, None))[1] is None for query in form.queries)


@pytest.mark.parametrize("predicates", SIDES)
def test_a_one_sided_attribute_is_incomplete_where_the_first_answer_overflows(predicates: str) -> None:
    _, result = _one_sided(predicates, PRICES, 4)
    assert (result.report.complete, [each.kind for each in result.report.unresolved]) == (
        False,
        ["one-sided"],
    )


@pytest.mark.parametrize("predicates", SIDES)
def test_a_one_sided_attribute_is_complete_where_the_first_answer_is_resolved(predicates: str) -> None:
    _, result = _one_sided(predicates, PRICES[:4], 4)
    assert (result.bag, result.report.complete) == (Counter(PRICES[:4]), True)


def test_the_k_tuples_nearest_to_the_open_side_of_at_most_are_extracted() -> None:
    _, result = _one_sided("at_most", PRICES[::-1], 4)
    assert set(PRICES[:4]) <= set(result.rows)


def test_the_k_tuples_nearest_to_the_open_side_of_at_least_are_extracted() -> None:
    _, result = _one_sided("at_least", PRICES, 4)
    assert set(PRICES[-4:]) <= set(result.rows)


@pytest.mark.parametrize("predicates", SIDES)
def test_a_one_sided_attribute_yields_no_tuple_twice(predicates: str) -> None:
    _, result = _one_sided(predicates, PRICES, 4)
    assert max(result.bag.values()) == 1


# --- dependencies -----------------------------------------------------------------------------------------

SOME = [row for row in CARS if row != ("a", "y")]
RULE = "make = a excludes body = y"


@pytest.mark.parametrize("algorithm", ["dfs", "hybrid"])
def test_a_dependency_spares_queries(algorithm: str) -> None:
    rows = [row for row in SOME for _ in range(2)]
    forms = [PlainForm(["make", "body"], rows, 4) for _ in range(2)]
    for form, rules in zip(forms, ([], [RULE]), strict=True):
        result = extracted(form, _menus(), k=4, algorithm=algorithm, dependencies=rules)
        assert (result.bag, result.report.complete) == (Counter(rows), True)
    assert len(forms[1].queries) <= len(forms[0].queries)
    assert {"make": "a", "body": "y"} not in forms[1].queries


def test_a_wrong_dependency_is_reported() -> None:
    report = extracted(_cars(), _menus(), k=2, dependencies=[RULE]).report
    assert (report.complete, f"the dependency {RULE!r} is wrong" in report.reason) == (False, True)


# --- random forms with one side only ----------------------------------------------------------------------


@cache
def _random_one_sided(seed: int) -> tuple[PlainForm, Extracted]:
    random = Random(seed)
    sides = random.choice(SIDES), random.choice([*SIDES, "range"])
    attributes: list[Attribute] = [
        Numeric(name, predicates=side)  # type: ignore[arg-type]
        for name, side in zip(("price", "age"), sides, strict=True)
    ]
    rows = [(random.randrange(12), random.randrange(6)) for _ in range(random.randrange(25))]
    form = PlainForm(["price", "age"], rows, random.randint(1, 5))
    return form, extracted(form, attributes, k=form.k)


def test_tuples_of_resolved_answers_are_extracted_as_often_as_they_exist() -> None:
    for seed in range(RANDOM_FORMS):
        form, result = _random_one_sided(seed)
        resolved: Counter[Row] = Counter()
        for query in form.queries:
            found = form.matching(query)
            resolved |= Counter(found if len(found) <= form.k else found[: form.k])
        assert resolved - result.bag == Counter(), seed


def test_one_sided_forms_never_yield_more_tuples_than_there_are() -> None:
    for seed in range(RANDOM_FORMS):
        form, result = _random_one_sided(seed)
        assert result.bag - Counter(form.rows) == Counter(), seed


def test_one_sided_forms_are_complete_only_with_all_tuples() -> None:
    for seed in range(RANDOM_FORMS):
        form, result = _random_one_sided(seed)
        assert not result.report.complete or result.bag == Counter(form.rows), seed


def test_one_sided_forms_that_do_not_change_show_no_changes() -> None:
    for seed in range(RANDOM_FORMS):
        _, result = _random_one_sided(seed)
        assert result.report.changes == [], seed


def test_one_sided_forms_are_asked_nothing_twice() -> None:
    for seed in range(RANDOM_FORMS):
        form, _ = _random_one_sided(seed)
        assert set(comparable(form.queries).values()) == {1}, seed
