"""The short form of `python -m tests.hidden`."""

from __future__ import annotations

from collections import Counter

import pytest
from msgspec import structs

from tests.hidden.crawls import extracted
from tests.hidden.databases import check_database, random_database
from tests.hidden.plain_forms import Tell, in_all, nothing, whether_more

DATABASES, PARTS = 320, 8


@pytest.mark.parametrize("part", range(PARTS))
def test_random_databases_are_extracted_by_every_algorithm_within_its_bound(part: int) -> None:
    problems = [
        problem for seed in range(part, DATABASES, PARTS) for problem in check_database(seed).problems
    ]
    assert problems == []


def test_a_query_that_overflowed_long_ago_is_not_asked_again() -> None:
    assert check_database(25_362).problems == []


def test_random_databases_are_of_all_kinds() -> None:
    databases = [random_database(seed) for seed in range(DATABASES)]
    assert {
        "algorithms": len({each.algorithms for each in databases}),
        "empty": any(not each.rows for each in databases),
        "too full": any(each.overfull for each in databases),
        "exactly k": any(each.rows.count(each.rows[0]) == each.k for each in databases if each.rows),
    } == {"algorithms": 3, "empty": True, "too full": True, "exactly k": True}


@pytest.mark.parametrize("tell", [whether_more, nothing, in_all])
def test_no_result_is_called_complete_wrongly_where_k_must_be_found_out(tell: Tell) -> None:
    for seed in range(DATABASES // 2):
        database = structs.replace(random_database(seed), tell=tell)
        for algorithm in database.algorithms:
            result = extracted(database.form(), database.attributes, algorithm=algorithm)
            is_whole = result.bag == Counter(database.rows)
            assert is_whole or not result.report.complete, (seed, algorithm)


def test_all_tuples_are_extracted_where_the_source_does_not_say_whether_there_are_more() -> None:
    for seed in range(DATABASES // 2):
        database = structs.replace(random_database(seed), tell=nothing)
        for algorithm in database.algorithms if not database.overfull else ():
            result = extracted(database.form(), database.attributes, k=database.k, algorithm=algorithm)
            assert result.bag == Counter(database.rows), (seed, algorithm)
