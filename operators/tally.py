"""What expressions counted while they ran (divisions by zero, texts that are no numbers), told to the run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from aioflow import Context
from aioflow.expressions import Counters


class Counting(Protocol):
    """A bound expression that counts."""

    @property
    def counters(self) -> Counters: ...


@contextmanager
def tallied(context: Context, *expressions: Counting) -> Iterator[None]:
    """Tell the run what the expressions counted inside the block, also when it ends early."""
    try:
        yield
    finally:
        for expression in expressions:
            for what, number in expression.counters.take().items():
                context.count(what, number)
