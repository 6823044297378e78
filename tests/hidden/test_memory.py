"""What a crawl keeps in memory, what it costs to keep no answers, and how its queries are counted."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from collections import Counter
from typing import Any

import pytest

from aioflow.hidden import CrawlReport, Numeric, crawl
from tests.hidden.crawls import comparable, data_form, extracted
from tests.hidden.databases import random_database
from tests.hidden.forms import ADULT, NSF
from tests.hidden.plain_forms import PlainForm


@pytest.mark.parametrize("keep", [True, False])
def test_different_and_repeated_queries_are_counted_apart(keep: bool) -> None:
    repeated = 0
    for seed in range(150):
        database = random_database(seed)
        for algorithm in database.algorithms:
            form = database.form()
            report = extracted(form, database.attributes, k=database.k, algorithm=algorithm, keep=keep).report
            times = comparable(form.queries)
            assert (report.queries, report.repeated) == (len(times), times.total() - len(times)), seed
            repeated += report.repeated
    assert (repeated > 0) is not keep


def test_every_tuple_is_extracted_if_no_answers_are_kept() -> None:
    for seed in range(150):
        database = random_database(seed)
        for algorithm in database.algorithms:
            options = {"k": database.k, "algorithm": algorithm}
            kept = extracted(database.form(), database.attributes, **options)
            found = extracted(database.form(), database.attributes, keep=False, **options)
            assert found.bag == kept.bag, (seed, algorithm)
            assert found.report.complete == kept.report.complete, (seed, algorithm)


@pytest.mark.parametrize("algorithm", ["auto", "rank-shrink"])
def test_tuples_without_a_value_are_found_if_no_answers_are_kept(algorithm: str) -> None:
    rows: list[Any] = [(None,), *((number,) for number in range(50))]
    form = PlainForm(["price"], rows, 5)
    result = extracted(form, [Numeric("price")], k=5, algorithm=algorithm, keep=False)
    assert (result.bag, result.report.complete) == (Counter(rows), False)


async def _kept(name: str, k: int, keep: bool) -> tuple[int, CrawlReport]:
    """Return the bytes that a crawl keeps at its end."""
    form, attributes = data_form(name, k)
    source = crawl(form, attributes, k=k, keep=keep)
    gc.collect()
    tracemalloc.start()
    try:
        async for _ in source:
            pass
        form.queries.clear()
        gc.collect()
        return tracemalloc.get_traced_memory()[0], source.report
    finally:
        tracemalloc.stop()


# NSF has many queries for its number of tuples, and of each query the region remains.
@pytest.mark.parametrize(("name", "k", "share"), [(ADULT, 256, 0.15), (NSF, 64, 0.4)])
def test_a_crawl_that_keeps_no_answers_needs_little_memory(name: str, k: int, share: float) -> None:
    (most, _), (least, report) = (asyncio.run(_kept(name, k, keep)) for keep in (True, False))
    assert report.complete
    assert least < share * most
