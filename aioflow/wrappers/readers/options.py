"""The words behind a reader's name, checked: `READ: csv delimiter ";"`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from aioflow.errors import SettingError, suggestion


def check_options(
    reader: str, options: Mapping[str, Any], known: Mapping[str, tuple[str, Callable[[Any], bool]]]
) -> None:
    """Raise a SettingError for an option that the reader does not know, or whose value is not right.

    `known` has for each option how it is written, and a test of its value.
    """
    for name, value in options.items():
        if name not in known:
            there = ", ".join(usage for usage, _ in known.values()) or "none"
            hint = suggestion(name, known) or f" (there are: {there})"
            raise SettingError(f"unknown option {name!r} of the reader {reader}{hint}", setting="READ")
        usage, is_right = known[name]
        if not is_right(value):
            raise SettingError(
                f"the option {name!r} of the reader {reader} is written: {usage}", setting="READ"
            )


def is_flag(value: Any) -> bool:
    """Whether an option stands alone."""
    return value is True
