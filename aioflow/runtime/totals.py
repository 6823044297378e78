"""The figures of a run: the totals of each statement, and the steps that are still adding to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Protocol

import msgspec

from aioflow.compiler.step import Step
from aioflow.runtime.stream import Stream


class Totals(msgspec.Struct):
    """The work of all calls of one statement so far."""

    step: Step
    rows_in: int = 0
    rows_out: int = 0
    errors: int = 0
    unasked: int = 0  # failures without a reader: ERRORS: skip, or an output that is not read
    skipped: int = 0  # failures that ERRORS: skip dropped
    first_skipped: str = ""
    first_unasked: str = ""
    firings: int = 0
    activations: int = 0
    ended: int = 0
    dead: int = 0
    doubtful: bool = False  # whether the run has warned of it
    waiting_input_seconds: float = 0.0
    waiting_output_seconds: float = 0.0
    waiting_permit_seconds: float = 0.0
    counters: Counter[str] = msgspec.field(default_factory=Counter)
    kinds: Counter[str] = msgspec.field(default_factory=Counter)  # of the errors that were taken

    def fail(self, error: BaseException, *, ends_run: bool = False) -> None:
        """Count a firing that failed, wherever its failure goes."""
        self.errors += 1
        if not ends_run:
            self.kinds[type(error).__name__] += 1

    def go_unasked(self, error: BaseException) -> None:
        """Count a failure that has no reader."""
        if not self.unasked:
            self.first_unasked = f"{type(error).__name__}: {error}".removesuffix(": ")
        self.unasked += 1

    def skip(self, error: BaseException) -> None:
        """Count a failure that the statement drops, as its ERRORS: skip says."""
        self.go_unasked(error)
        if not self.skipped:
            self.first_skipped = f"{type(error).__name__}: {error}".removesuffix(": ")
        self.skipped += 1


class Active(Protocol):
    """A step that is under way, as statistics see it."""

    step: Step
    iteration: int

    @property
    def streams(self) -> Sequence[Stream]: ...
    @property
    def is_idle(self) -> bool:
        """Whether it has nothing to work on until more rows come."""
        ...

    @property
    def rows_in(self) -> int: ...
    @property
    def rows_out(self) -> int: ...


class RunTotals:
    """Counts the work of one run. A step adds its rows to the totals of its statement when it ends."""

    def __init__(self) -> None:
        self.calls = 0
        self.firings = 0
        self.active: dict[Active, None] = {}  # steps that are under way, in the order of their start
        self._by_statement: dict[tuple[str, int], Totals] = {}
        self._by_step: dict[Step, Totals] = {}

    def __iter__(self) -> Iterator[Totals]:
        """Yield the totals of every statement that has a step."""
        return iter(self._by_statement.values())

    def of(self, step: Step) -> Totals:
        """Return the totals of a step's statement."""
        totals = self._by_step.get(step)
        if totals is None:
            # Routines of one plan with other parameters, or merged, share the statement's totals.
            totals = self._by_statement.setdefault(step.statement_key, Totals(step))
            self._by_step[step] = totals
        return totals
