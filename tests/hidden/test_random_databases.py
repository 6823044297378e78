"""The short form of `python -m tests.hidden`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from msgspec import structs

from tests.hidden.crawls import extracted
from tests.hidden.databases import check_database, random_database
from tests.hidden.plain_forms import PlainForm, Row, Tell, in_all, nothing, whether_more

DATABASES, PARTS = 320, 8


@pytest.mark.parametrize("part", range(PARTS))
def test_random_databases_are_extracted_by_every_algorithm_within_its_bound(part: int) -> None:
    problems = [
        problem for seed in range(part, DATABASES, PARTS) for problem in check_database(seed).problems
    ]
    assert problems == []


def test_a_query_that_overflowed_long_ago_is_not_asked_again() -> None:
    assert check_database(25_362).problems == []


class Recorded:
    """A form that notes queries which had to overflow, as one did that lies within them."""

    def __init__(self, form: PlainForm) -> None:
        self._form = form
        self._overflowing: list[dict[str, Any]] = []
        self.needless: list[dict[str, Any]] = []

    async def __call__(self, query: dict[str, Any]) -> tuple[list[Row], bool | int | None]:
        if any(_contains(query, each) for each in self._overflowing):
            self.needless.append(query)
        rows, more = await self._form(query)
        if len(self._form.matching(query)) > len(rows):
            self._overflowing.append(query)
        return rows, more


def _contains(query: Mapping[str, Any], part: Mapping[str, Any]) -> bool:
    return all(name in part and _is_within(part[name], wanted) for name, wanted in query.items())


def _is_within(part: Any, wanted: Any) -> bool:
    if not isinstance(wanted, tuple):
        return bool(part == wanted)
    (low, high), (least, most) = part, wanted
    is_above = least is None or (low is not None and low >= least)
    return is_above and (most is None or (high is not None and high <= most))


# The databases of the second list are those in which every way to such a query is known to occur.
@pytest.mark.parametrize("seeds", [range(120), (163, 191, 426)])
def test_auto_asks_nothing_that_is_known_to_overflow(seeds: Iterable[int]) -> None:
    for seed in seeds:
        database = random_database(seed)
        form = Recorded(database.form())
        extracted(form, database.attributes, k=database.k)
        assert form.needless == [], seed


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
