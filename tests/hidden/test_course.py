"""The course of a crawl: its tasks, errors, parallel queries and speed, and its estimate meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from random import Random
from typing import Any

import pytest

from aioflow.hidden import Crawl, Numeric, crawl
from aioflow.testing import assert_nothing_left, run
from tests.hidden.crawls import Attribute, Row, SlowForm, data_form, extract
from tests.hidden.forms import ADULT
from tests.hidden.plain_forms import PlainForm, in_all

PRICE: list[Attribute] = [Numeric("price")]
ROWS: list[Row] = [(number,) for number in range(500)]
WORKERS = 4


def _form(**options: Any) -> PlainForm:
    return PlainForm(["price"], ROWS, 10, seconds=0.1, **options)


def _started(form: Any) -> Crawl:
    return crawl(form, PRICE, k=10, workers=WORKERS)


# --- the end ----------------------------------------------------------------------------------------------


async def _read_all(source: Crawl, rows: list[Row] | None = None) -> None:
    async for row in source:
        if rows is not None:
            rows.append(row)


async def _close_early(source: Crawl) -> None:
    await anext(source)
    await source.aclose()


async def _leave_the_context_early(source: Crawl) -> None:
    async with source:
        await anext(source)


async def _leave_by_aclosing(source: Crawl) -> None:
    async with aclosing(source):
        async for _ in source:
            break


async def _close_before_the_first_tuple(source: Crawl) -> None:
    await source.aclose()


async def _cancel_the_reader(source: Crawl) -> None:
    async with source:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.35):
                await _read_all(source)


@pytest.mark.parametrize(
    "way",
    [
        _read_all,
        _close_early,
        _leave_the_context_early,
        _leave_by_aclosing,
        _close_before_the_first_tuple,
        _cancel_the_reader,
    ],
)
def test_a_crawl_leaves_no_task(way: Callable[[Crawl], Awaitable[None]]) -> None:
    async def check() -> None:
        await way(_started(_form()))
        assert_nothing_left()

    run(check())


@pytest.mark.parametrize("way", [_close_early, _cancel_the_reader])
def test_an_early_end_stops_the_queries(way: Callable[[Crawl], Awaitable[None]]) -> None:
    async def check() -> tuple[int, int]:
        form = _form()
        await way(_started(form))
        asked = len(form.queries)
        await asyncio.sleep(60)
        return asked, len(form.queries) - asked

    asked, later = run(check())
    assert (asked < 40, later) == (True, 0)


def test_a_closed_crawl_has_no_more_tuples() -> None:
    async def rest() -> list[Row]:
        source = _started(_form())
        await anext(source)
        await source.aclose()
        return [row async for row in source]

    assert run(rest()) == []


def test_a_crawl_that_was_closed_early_is_not_complete() -> None:
    async def report() -> tuple[bool, str]:
        source = _started(_form())
        await _close_early(source)
        return source.report.complete, source.report.reason

    assert run(report()) == (False, "the crawl has not ended")


def test_a_crawl_that_was_closed_early_says_which_regions_it_covered() -> None:
    async def covered() -> tuple[list[Any], str]:
        form = PlainForm(["price"], ROWS, 10, seconds=0.1)
        source = crawl(form, PRICE, k=10, algorithm="rank-shrink")
        await anext(source)
        await source.aclose()
        return source.report.covered, source.report.statement()

    regions, statement = run(covered())
    assert regions == [{"price": (None, 3)}]
    assert statement.endswith(", which cover (price <= 3); the crawl has not ended")


def test_a_crawl_asks_nothing_before_its_first_tuple_is_wanted() -> None:
    async def asked() -> int:
        form = _form()
        source = _started(form)
        await asyncio.sleep(10)
        await source.aclose()
        return len(form.queries)

    assert run(asked()) == 0


def test_workers_wait_for_a_reader_who_does_not_read() -> None:
    async def asked() -> int:
        form = PlainForm(["price"], [(number,) for number in range(30_000)], 1000, seconds=0.1)
        source = crawl(form, PRICE, k=1000, algorithm="rank-shrink")
        async with source:
            await anext(source)
            await asyncio.sleep(3600)
        return source.report.tuples

    assert 10_000 <= run(asked()) <= 12_000


# --- errors -----------------------------------------------------------------------------------------------


class BrokenError(Exception):
    """The source is broken."""


class BreakingForm(PlainForm):
    """A form whose fifth query and all later ones fail."""

    async def __call__(self, query: dict[str, Any]) -> tuple[list[Row], bool | int | None]:
        answer = await super().__call__(query)
        if len(self.queries) > 4:
            raise BrokenError(len(self.queries))
        return answer


def _breaking() -> BreakingForm:
    return BreakingForm(["price"], ROWS, 10, seconds=0.1)


@pytest.mark.parametrize("workers", [1, 4])
def test_the_error_of_a_query_reaches_the_reader_as_it_is(workers: int) -> None:
    with pytest.raises(BrokenError):
        run(extract(_breaking(), PRICE, k=10, workers=workers))


def test_an_error_leaves_no_task() -> None:
    async def check() -> None:
        source = _started(_breaking())
        with pytest.raises(BrokenError):
            await _read_all(source)
        await source.aclose()
        assert_nothing_left()

    run(check())


def test_the_tuples_before_an_error_are_read_first() -> None:
    async def before() -> int:
        source = crawl(_breaking(), PRICE, k=10)
        rows: list[Row] = []
        with pytest.raises(BrokenError):
            await _read_all(source, rows)
        assert len(rows) == source.report.tuples
        return len(rows)

    assert run(before()) > 0


def test_a_crawl_that_failed_is_not_complete() -> None:
    async def complete() -> bool:
        source = _started(_breaking())
        with pytest.raises(BrokenError):
            await _read_all(source)
        return source.report.complete

    assert run(complete()) is False


# --- several workers --------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["rank-shrink", "binary-shrink", "auto"])
@pytest.mark.parametrize("workers", [1, 3, 15])
def test_at_most_as_many_queries_as_workers_are_under_way(workers: int, algorithm: str) -> None:
    form = _form(jitter=1)
    run(extract(form, PRICE, k=10, workers=workers, algorithm=algorithm), seed=workers)
    assert form.most_under_way <= workers


def test_several_workers_have_queries_under_way_at_once() -> None:
    form = PlainForm(["price"], Random(1).sample(ROWS, len(ROWS)), 10, seconds=0.1)
    run(extract(form, PRICE, k=10, workers=3, algorithm="rank-shrink"))
    assert form.most_under_way == 3


async def _seconds(algorithm: str, workers: int) -> float:
    form, attributes = data_form(ADULT, 256, 8)
    loop = asyncio.get_running_loop()
    begin = loop.time()
    await extract(SlowForm(form, 0.1), attributes, k=256, algorithm=algorithm, workers=workers)
    return loop.time() - begin


def test_fifteen_workers_are_eight_times_faster_than_one() -> None:
    one, many = (run(_seconds("rank-shrink", workers)) for workers in (1, 15))
    assert one / many >= 8


async def _most_under_way() -> int:
    form, attributes = data_form(ADULT, 64, 8)
    slow = SlowForm(form, 0.1)
    await extract(slow, attributes, k=64, workers=15)
    return slow.most_under_way


def test_auto_has_many_queries_under_way_where_there_are_many_answers() -> None:
    assert 8 <= run(_most_under_way()) <= 15


# --- the report meanwhile ---------------------------------------------------------------------------------


async def _crawled_to(share: float, k: int, seed: int, **options: Any) -> Crawl:
    form, attributes = data_form(ADULT, k, 8, seed=seed)
    source = crawl(form, attributes, k=k, algorithm="rank-shrink", **options)
    async for _ in _some(source, int(share * len(form.rows))):
        pass
    await source.aclose()
    return source


async def _some(source: Crawl, number: int) -> AsyncIterator[Row]:
    for _ in range(number):
        yield await anext(source)


def test_the_estimate_contains_the_number_of_tuples_for_most_random_priorities() -> None:
    estimates = [asyncio.run(_crawled_to(0.2, 1024, seed)).report.estimate() for seed in range(12)]
    hits = sum(each.low <= 45_222 <= each.high for each in estimates)
    assert hits >= 9


def test_the_estimate_narrows_as_the_crawl_goes_on() -> None:
    early, late = (asyncio.run(_crawled_to(share, 1024, 1)).report.estimate() for share in (0.1, 0.8))
    assert late.high - late.low < early.high - early.low


def test_before_the_first_answer_nothing_is_known() -> None:
    estimate = crawl(_form(), PRICE, k=10).report.estimate()
    assert (estimate.tuples, estimate.low, estimate.high) == (0, 0, float("inf"))


def test_after_the_end_the_estimate_is_exact() -> None:
    estimate = run(extract(_form(), PRICE, k=10)).report.estimate()
    assert (estimate.tuples, estimate.low, estimate.high, estimate.share) == (500, 500, 500, 1)


def test_the_estimate_is_the_total_if_the_source_says_it() -> None:
    async def estimate() -> Any:
        source = _started(_form(tell=in_all))
        await _close_early(source)
        return source.report.estimate()

    assert run(estimate()).tuples == 500


def test_tuples_arrive_while_the_crawl_goes_on() -> None:
    async def share_at_half() -> float:
        form, attributes = data_form(ADULT, 1024, 8)
        source, rows, halfway = crawl(form, attributes, k=1024, algorithm="rank-shrink"), 0, 0
        async for _ in source:
            rows += 1
            halfway = rows if source.report.queries <= 64 else halfway
        return halfway / rows

    assert 0.35 <= asyncio.run(share_at_half()) <= 0.65
