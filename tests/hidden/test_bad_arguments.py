"""Arguments that make no sense are refused before the first query, in words that say what is wrong."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import pytest

from aioflow.errors import InputError
from aioflow.hidden import Categorical, Numeric, crawl
from tests.hidden.plain_forms import PlainForm

PRICE, MAKE = Numeric("price"), Categorical("make", ["BMW", "Audi"])


def _refused(attributes: list[Any], **options: Any) -> str:
    form = PlainForm([], [], 1)
    with pytest.raises(InputError) as caught:
        crawl(form, attributes, **options)
    assert form.queries == []
    return str(caught.value)


def test_an_unknown_algorithm_is_refused_with_a_list_of_all() -> None:
    message = _refused([PRICE], algorithm="rank-shrunk")
    assert message.startswith("there is no algorithm 'rank-shrunk'; there are auto, binary-shrink, ")


@pytest.mark.parametrize("algorithm", ["rank-shrink", "binary-shrink"])
def test_an_algorithm_for_ranges_refuses_a_menu(algorithm: str) -> None:
    expected = f"{algorithm} works on ranges, and 'make' has single values; use hybrid or auto"
    assert _refused([PRICE, MAKE], algorithm=algorithm) == expected


@pytest.mark.parametrize("algorithm", ["dfs", "slice-cover", "lazy-slice-cover"])
def test_an_algorithm_for_menus_refuses_a_range(algorithm: str) -> None:
    expected = f"{algorithm} works on single values, and 'price' is a range; use hybrid or auto"
    assert _refused([PRICE, MAKE], algorithm=algorithm) == expected


@pytest.mark.parametrize("k", [0, -1, True, "5", 2.5])
def test_a_k_below_one_is_refused(k: Any) -> None:
    expected = f"k is the number of tuples that an answer can have, so at least 1, not {k!r}"
    assert _refused([PRICE], k=k) == expected


@pytest.mark.parametrize("workers", [0, True, "4", 1.5])
def test_a_crawl_without_workers_is_refused(workers: Any) -> None:
    assert _refused([PRICE], workers=workers) == f"at least one worker is needed, not {workers!r}"


def test_a_query_that_is_no_function_is_refused() -> None:
    with pytest.raises(InputError, match="a query is an async function, not 'cars'"):
        crawl("cars", [PRICE])  # type: ignore[arg-type]


def test_a_form_without_attributes_is_refused() -> None:
    assert _refused([]) == "a form needs at least one attribute"


def test_two_attributes_of_one_name_are_refused() -> None:
    assert _refused([PRICE, Categorical("price", [1, 2])]) == "two attributes are named 'price'"


def test_what_is_no_attribute_is_refused() -> None:
    assert _refused(["price"]) == "an attribute is Numeric or Categorical, not 'price'"


def test_an_attribute_in_the_place_of_a_list_is_refused() -> None:
    assert _refused(PRICE).startswith("attributes are a list, not Numeric(")  # type: ignore[arg-type]


def test_an_empty_domain_is_refused() -> None:
    with pytest.raises(InputError, match="'make': the domain is empty"):
        Categorical("make", [])


def test_a_text_as_a_domain_is_refused() -> None:
    with pytest.raises(InputError, match="'make': the domain is a list of values, not a text"):
        Categorical("make", "BMW")


@pytest.mark.parametrize("domain", [5, [["BMW"]]])
def test_a_domain_of_what_cannot_be_a_value_is_refused(domain: Any) -> None:
    with pytest.raises(InputError, match="'make': the domain is a list of values, not "):
        Categorical("make", domain)


def test_a_required_attribute_without_a_domain_is_refused() -> None:
    with pytest.raises(InputError, match="'make': a required attribute needs its domain"):
        Categorical("make", required=True)


def test_a_low_end_above_the_high_end_is_refused() -> None:
    with pytest.raises(InputError, match="'price': low is 5, which is more than high, 4"):
        Numeric("price", 5, 4)


def test_single_values_without_both_ends_are_refused() -> None:
    with pytest.raises(InputError, match=r"'doors': .* low and high are needed"):
        Numeric("doors", 1, predicates="value")


def test_too_many_single_values_are_refused() -> None:
    attribute = Numeric("price", 0, 10**9, predicates="value")
    assert _refused([attribute]) == "'price': 1,000,000,001 single values are too many to ask for"


def test_unknown_predicates_are_refused() -> None:
    with pytest.raises(
        InputError, match="'price': predicates are range, value, at_most, at_least, not 'any'"
    ):
        Numeric("price", predicates="any")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["", 3])
def test_a_name_that_is_no_text_is_refused(name: Any) -> None:
    with pytest.raises(InputError, match="the name of an attribute is a text"):
        Numeric(name)


@pytest.mark.parametrize("step", [0, -1, timedelta(), timedelta(-1), "a", None, True])
def test_a_step_that_goes_nowhere_is_refused(step: Any) -> None:
    with pytest.raises(InputError, match="'price': the step must be more than 0, not "):
        Numeric("price", step=step)


def test_an_end_off_the_grid_is_refused() -> None:
    assert _refused([Numeric("price", 0, 5, 2)]).startswith("'price': 5 is no end of its range")


def test_ends_of_two_kinds_are_refused() -> None:
    with pytest.raises((InputError, TypeError)):
        crawl(PlainForm([], [], 1), [Numeric("day", 1, date(2024, 1, 1))])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("make = BMW", "a dependency is like 'make = BMW excludes body = truck'"),
        ("make = BMW excludes body = x", "is no condition on one of price, make"),
        ("make = BMW excludes price = 3", "dependencies are between values of menus"),
        ("make = Fiat excludes make = Audi", "'make' has no value 'Fiat'"),
    ],
)
def test_a_dependency_that_makes_no_sense_is_refused(text: str, message: str) -> None:
    assert message in _refused([PRICE, MAKE], dependencies=[text])


def test_a_text_in_the_place_of_dependencies_is_refused() -> None:
    assert (
        _refused([PRICE], dependencies="make = BMW") == "dependencies are a list of texts, not 'make = BMW'"
    )
