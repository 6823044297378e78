"""window."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aioflow import PlanError
from aioflow.testing import Script, rows
from tests.operators.running import NO_MEMORY, run


def windows(statement: str, rel: Any, **settings: Any) -> list[list[int]]:
    """The numbers in each window."""
    records = run(statement, rel=rel, **settings).outputs["out"]
    return [[row[0] for row in record["window"].rows] for record in records]


def numbers(count: int) -> Any:
    return rows(*((number,) for number in range(count)), schema="n")


def test_windows_of_a_count_follow_each_other() -> None:
    assert windows("window (rel, 2 : out)", numbers(4)) == [[0, 1], [2, 3]]


def test_the_last_window_may_be_smaller() -> None:
    assert windows("window (rel, 3 : out)", numbers(4)) == [[0, 1, 2], [3]]


def test_windows_overlap_when_they_slide_by_less() -> None:
    assert windows("window (rel, 3 : out) {SLIDE: 1}", numbers(5)) == [[0, 1, 2], [1, 2, 3], [2, 3, 4]]


def test_no_window_repeats_only_what_others_had() -> None:
    assert windows("window (rel, 4 : out) {SLIDE: 2}", numbers(6)) == [[0, 1, 2, 3], [2, 3, 4, 5]]


def test_tuples_between_windows_are_left_out() -> None:
    assert windows("window (rel, 2 : out) {SLIDE: 3}", numbers(7)) == [[0, 1], [3, 4], [6]]


def test_a_window_leaves_as_soon_as_it_is_full() -> None:
    rel = Script().rows({"n": 0}, {"n": 1}).hang()
    assert windows("window (rel, 2 : all) limit (all, 1 : out)", rel) == [[0, 1]]


def test_windows_of_seconds_begin_with_the_first_tuple() -> None:
    rel = Script().wait(7).row(n=0).wait(4).row(n=1).wait(2).row(n=2)
    assert windows("window (rel : out) {SECONDS: 5}", rel) == [[0, 1], [2]]


def test_a_window_of_seconds_leaves_when_its_time_is_over() -> None:
    rel = Script().row(n=0).wait(1).row(n=1).hang()
    assert windows("window (rel : all) {SECONDS: 5} limit (all, 1 : out)", rel) == [[0, 1]]


def test_a_time_without_tuples_makes_no_window() -> None:
    rel = Script().row(n=0).wait(60).row(n=1)
    assert windows("window (rel : out) {SECONDS: 5}", rel) == [[0], [1]]


def test_windows_of_seconds_overlap_when_they_slide_by_less() -> None:
    rel = Script().row(n=0).wait(3).row(n=1).wait(3).row(n=2).wait(9)
    assert windows("window (rel : out) {SECONDS: 4; SLIDE: 2}", rel) == [[0, 1], [1], [2], [2]]


def test_a_window_says_when_it_began_and_ended() -> None:
    rel = Script().row(n=0).wait(12).row(n=1)
    first = run("window (rel : out) {SECONDS: 5}", rel=rel)[0]
    assert first["end"] - first["start"] == timedelta(seconds=5)


def test_a_window_of_a_count_says_how_long_it_took() -> None:
    rel = Script().row(n=0).wait(12).row(n=1)
    first = run("window (rel, 2 : out)", rel=rel)[0]
    assert first["end"] - first["start"] == timedelta(seconds=12)


def test_an_empty_input_has_no_windows() -> None:
    assert windows("window (rel, 2 : out)", numbers(0)) == []
    assert windows("window (rel : out) {SECONDS: 5}", numbers(0)) == []


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("window (rel : out)", "window needs either a count of tuples or SECONDS"),
        ("window (rel, 2 : out) {SECONDS: 5}", "window needs either a count of tuples or SECONDS"),
        ("window (rel, 0 : out)", "must be a whole number, 1 or more, not 0"),
        ("window (rel : out) {SECONDS: 0}", "must be a number above 0, not 0"),
        ("window (rel, 2 : out) {SLIDE: 1.5}", "must be a whole number of tuples"),
    ],
)
def test_a_window_of_no_sensible_size_is_a_mistake(statement: str, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        run(statement, rel=numbers(1))


def naive_windows(items: Sequence[int], size: int, slide: int) -> list[list[int]]:
    """All pieces by their places; the last of the incomplete ones' first, if it has something new."""
    full = [list(items[start : start + size]) for start in range(0, len(items) - size + 1, slide)]
    covered = len(full) * slide - slide + size if full else 0
    start = len(full) * slide
    rest = list(items[start : start + size])
    return full + ([rest] if rest and start + len(rest) > covered else [])


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 20), st.integers(1, 6), st.integers(1, 8), st.sampled_from([NO_MEMORY, 1 << 20]))
def test_windows_equal_slices(count: int, size: int, slide: int, memory_bytes: int) -> None:
    statement = f"window (rel, {size} : out) {{SLIDE: {slide}}}"
    found = windows(statement, numbers(count), memory_bytes=memory_bytes)
    assert found == naive_windows(range(count), size, slide)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 7), max_size=10), st.integers(1, 6))
def test_windows_of_seconds_hold_each_tuple_once_in_its_time(pauses: list[int], seconds: int) -> None:
    rel, times, clock = Script(), [], 0
    for number, pause in enumerate(pauses):
        clock += pause
        times.append(clock)
        rel.wait(pause).row(n=number)
    found = windows(f"window (rel : out) {{SECONDS: {seconds}}}", rel)
    assert [number for window in found for number in window] == list(range(len(pauses)))
    for window in found:
        places = {(times[number] - times[0]) // seconds for number in window}
        assert len(places) == 1
