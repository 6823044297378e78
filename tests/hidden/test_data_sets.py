"""Whole extractions of the real data sets. What auto should cost there is in test_goals.py."""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest

from tests.hidden.crawls import Extracted, data_form, extracted
from tests.hidden.forms import ADULT, DIAMONDS, NSF, Form, read_data

CASES = [
    (ADULT, 1024, "hybrid"),
    (ADULT, 1024, "auto"),
    (DIAMONDS, 1024, "hybrid"),
    (DIAMONDS, 1024, "auto"),
    (NSF, 256, "lazy-slice-cover"),
    (NSF, 256, "auto"),
]
ADULT_NUMERIC = 8  # the first column


@cache
def _crawl(name: str, k: int, algorithm: str, first: int = 0) -> tuple[Form, Extracted]:
    form, attributes = data_form(name, k, first)
    return form, extracted(form, attributes, k=k, algorithm=algorithm)


@pytest.mark.parametrize(("name", "k", "algorithm"), CASES)
def test_a_data_set_is_extracted_as_a_whole(name: str, k: int, algorithm: str) -> None:
    _, result = _crawl(name, k, algorithm)
    assert (result.bag == Counter(read_data(name)[1]), result.report.complete) == (True, True)


@pytest.mark.parametrize("algorithm", ["binary-shrink", "rank-shrink", "auto"])
def test_the_numbers_of_adult_are_extracted_as_a_whole(algorithm: str) -> None:
    form, result = _crawl(ADULT, 1024, algorithm, ADULT_NUMERIC)
    assert (result.bag == Counter(form.rows), result.report.complete) == (True, True)


@pytest.mark.parametrize(
    ("name", "k", "algorithm", "first"),
    [
        (ADULT, 1024, "hybrid", 0),
        (ADULT, 1024, "rank-shrink", 8),
        (DIAMONDS, 1024, "hybrid", 0),
        (NSF, 256, "lazy-slice-cover", 0),
        (NSF, 256, "slice-cover", 0),
    ],
)
def test_a_data_set_costs_at_most_the_bound_of_theorem_1(
    name: str, k: int, algorithm: str, first: int
) -> None:
    form, result = _crawl(name, k, algorithm, first)
    assert len(form.queries) <= result.report.bound(len(form.rows))


def test_lazy_slice_cover_costs_a_fraction_of_slice_cover_on_nsf() -> None:
    lazy, eager = (len(_crawl(NSF, 256, name)[0].queries) for name in ("lazy-slice-cover", "slice-cover"))
    assert lazy < eager / 10


def test_rank_shrink_costs_less_than_binary_shrink_on_adult() -> None:
    by_rank, by_half = (
        len(_crawl(ADULT, 1024, name, ADULT_NUMERIC)[0].queries) for name in ("rank-shrink", "binary-shrink")
    )
    assert by_rank < by_half


def test_rank_shrink_needs_about_half_the_queries_for_twice_the_k() -> None:
    small, large = (len(_crawl(ADULT, k, "rank-shrink", ADULT_NUMERIC)[0].queries) for k in (512, 1024))
    assert 1.7 < small / large < 2.3
