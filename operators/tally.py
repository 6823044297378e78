"""Counters of expressions (divisions by zero, texts that are not numbers), added to those of the run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from aioflow import Context
from aioflow.expressions import Counters


class Counting(Protocol):
    """A bound expression with counters."""

    @property
    def counters(self) -> Counters: ...


@contextmanager
def tallied(context: Context, *expressions: Counting) -> Iterator[None]:
    """Add the counters of expressions to those of the run after the block, even if it ends early."""
    try:
        yield
    finally:
        for expression in expressions:
            for what, number in expression.counters.take().items():
                context.count(what, number)
