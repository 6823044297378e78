"""Durations and amounts of memory as people write them."""

import pytest

from aioflow.errors import InputError
from aioflow.values.quantities import byte_count, byte_text, count_text, duration_text, seconds


@pytest.mark.parametrize(
    ("text", "expected"),
    [("5m", 300), ("90s", 90), ("1h30m", 5400), ("500ms", 0.5), ("2.5", 2.5), (" 1D ", 86400)],
)
def test_durations_are_read(text: str, expected: float) -> None:
    assert seconds(text) == expected


@pytest.mark.parametrize("text", ["", "5 minutes", "m5", "5m3", "1h-3m"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"not a duration: .* \(like 90s, 5m or 1h30m\)"):
        seconds(text)


@pytest.mark.parametrize("text", ["0", "-1", "inf", "nan", "0s"])
def test_a_duration_is_positive_and_finite(text: str) -> None:
    with pytest.raises(InputError, match="more than nothing, and finite"):
        seconds(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("64MB", 64_000_000), ("1GiB", 2**30), ("65536", 65536), ("1.5 kb", 1500), ("32mib", 32 * 2**20)],
)
def test_amounts_of_memory_are_read(text: str, expected: int) -> None:
    assert byte_count(text) == expected


@pytest.mark.parametrize("text", ["", "MB", "64 XB", "-1MB", "1e3"])
def test_what_is_no_amount_of_memory_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="not an amount of memory"):
        byte_count(text)


def test_quantities_are_shown_for_people() -> None:
    assert [duration_text(each) for each in (0.417, 12.34, 245, 7620)] == [
        "0.42 s",
        "12.3 s",
        "4m 05s",
        "2h 07m",
    ]
    assert [byte_text(each) for each in (32 * 2**20, 64_000_000, 1500)] == ["32 MiB", "64 MB", "1,500 bytes"]
    assert [count_text(1, "row"), count_text(1200, "row")] == ["1 row", "1,200 rows"]
