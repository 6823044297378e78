"""`python -m tests.injection`: a cancellation, or an exception, at every step of the reference plans.

Whatever is interrupted where, nothing may be left running or held: tasks, permits, files, memory.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import AsyncGenerator, Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from aioflow.authoring.operator import Operator, Registry
from aioflow.engine import Engine
from aioflow.testing import assert_nothing_left, run
from tests.interleavings import Interleaving, registry
from tests.reference_plans import REFERENCES, Outputs, Reference


class InjectedError(Exception):
    """What an operator is made to raise."""


@dataclass
class Run:
    """One run of a reference plan that may be interrupted; `steps` and `yields` tell how long it was."""

    chosen: Interleaving
    cancel_at: int | None = None
    raise_at: int | None = None
    steps: int = 0
    yields: int = 0
    _task: asyncio.Task[Outputs] | None = field(default=None, repr=False)

    def problem(self, trace: list[str] | None = None) -> str | None:
        """What is wrong after the interruption; None if nothing is."""
        try:
            outputs = run(self._main(), seed=self.chosen.seed, before_step=self._before_step, trace=trace)
        except asyncio.CancelledError:
            return None if self.cancel_at is not None else "was cancelled by nobody"
        except AssertionError as error:
            return f"{self}: {error}"
        except Exception as error:
            return None if _was_injected(error) else f"{self}: {type(error).__name__}: {error}"
        if self.raise_at is not None and self.chosen.reference.cuts:
            return None  # its ERRORS took the exception
        # It came too late, or hit what nobody needed any more: then the result must be whole.
        return self.chosen.reference.problem(outputs)

    def _before_step(self, step: int) -> None:
        self.steps = step
        if step == self.cancel_at and self._task is not None:
            self._task.cancel()

    async def _main(self) -> Outputs:
        self._task = asyncio.current_task()
        chosen = self.chosen
        engine = Engine(
            chosen.workers,
            capacity_rows=chosen.capacity_rows,
            memory_bytes=chosen.memory_bytes,
            mode=chosen.mode,
            registry=Registry([self._raising(operator) for operator in registry()]),
        )
        try:
            async with engine:
                return (await engine.run(chosen.reference.program, chosen.reference.given)).outputs
        finally:
            assert_nothing_left(engine)

    def _raising(self, described: Operator) -> Operator:
        """The operator, which fails when the whole run is about to yield for the chosen time."""
        function: Callable[..., AsyncGenerator[Any, None]] = described.function

        async def wrapped(*streams: Any, **settings: Any) -> AsyncGenerator[Any, None]:
            self._count()
            results = function(*streams, **settings)
            try:
                async for item in results:
                    self._count()
                    yield item
            finally:
                await results.aclose()

        return replace(described, function=wrapped)

    def _count(self) -> None:
        self.yields += 1
        if self.yields == self.raise_at:
            raise InjectedError(f"at {self.raise_at}")


def _was_injected(error: BaseException | None) -> bool:
    return error is not None and (isinstance(error, InjectedError) or _was_injected(error.__cause__))


def variant(reference: Reference, number: int) -> Interleaving:
    """A reference plan in another order of tasks, with another capacity, some with memory for nothing."""
    capacity, workers, memory = ((2, 3, 1 << 20), (1, 1, 500), (64, 15, 500))[number % 3]
    return Interleaving(number, reference, capacity, workers, memory)


def points(chosen: Interleaving, stride: int = 1) -> Iterator[Run]:
    """The run interrupted at every step (or every `stride`-th): cancelled, and separately by an exception."""
    whole = Run(chosen)
    problem = whole.problem()
    assert problem is None, problem
    for step in range(0, whole.steps + 1, stride):
        yield Run(chosen, cancel_at=step)
    for number in range(1, whole.yields + 1, stride):
        yield Run(chosen, raise_at=number)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.injection", description=__doc__)
    parser.add_argument("--points", type=int, default=10_000, help="at least so many interruptions")
    options = parser.parse_args()
    tried = found = 0
    for number in count():
        for reference in REFERENCES:
            for interrupted in points(variant(reference, number)):
                tried += 1
                problem = interrupted.problem()
                if problem is not None:
                    found += 1
                    print(f"{reference.name}: {problem}")
        if tried >= options.points:
            break
    print(f"{tried} interruptions of {len(REFERENCES)} reference plans, {found} problems")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
