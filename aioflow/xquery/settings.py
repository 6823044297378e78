"""The settings `[xquery]`: the limits of queries and stylesheets."""

from __future__ import annotations

from dataclasses import dataclass

from aioflow.config.sections import Section, at_least, more_than_nothing

MEBIBYTE = 1024 * 1024


@dataclass(frozen=True)
class QuerySettings:
    """`[xquery]`: limits of each query and stylesheet, and the number of processes for them."""

    total_seconds: float = 30.0
    memory_bytes: int = 1024 * MEBIBYTE  # of a process
    result_bytes: int = 128 * MEBIBYTE
    processes: int = 2


XQUERY = Section(
    "xquery",
    QuerySettings,
    refine={
        "total_seconds": more_than_nothing("a time"),
        "memory_bytes": at_least(1, "a size"),
        "result_bytes": at_least(1, "a size"),
        "processes": at_least(1, "a whole number"),
    },
)
