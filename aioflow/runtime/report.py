"""Everything that people are told about a run in words: warnings, notes, and sources that brought nothing."""

from __future__ import annotations

from collections.abc import Iterable

from aioflow.compiler.step import Step
from aioflow.config.masking import mask
from aioflow.runtime.budget import Permits
from aioflow.runtime.events import Warned
from aioflow.runtime.publisher import EventPublisher
from aioflow.runtime.totals import Totals


class RunReport:
    """Collects the warnings and notes of one run, and publishes warnings as they come."""

    def __init__(self, events: EventPublisher) -> None:
        self.warnings: list[str] = []
        self.nothing_found: list[str] = []
        self.notes: list[str] = []
        self._events = events
        self._cut_off: dict[str, tuple[Step, int]] = {}  # by plan: the first call, and the number of tuples
        self._warned_of_outlasting = False

    def warn(self, message: str) -> None:
        """Add a warning, with its secrets masked."""
        message = mask(message)
        self.warnings.append(message)
        if self._events.listeners:
            self._events.publish(Warned(*self._events.stamp(), message))

    def find_nothing(self, message: str) -> None:
        """Warn, once for each message, that something which ended well has brought nothing."""
        if message not in self.nothing_found:
            self.nothing_found.append(message)
            self.warn(message)

    def cut_off(self, step: Step, tuples: int) -> None:
        """Count tuples of a recursive call that are not followed, because of MAX_DEPTH."""
        first, count = self._cut_off.get(step.callee.key, (step, 0))
        self._cut_off[step.callee.key] = first, count + tuples

    def warn_of_cuts(self) -> None:
        """Warn of each recursion that was cut off, since its results look whole."""
        for step, count in self._cut_off.values():
            plan = step.callee
            number = "1 tuple was" if count == 1 else f"{count:,} tuples were"
            cut = f"MAX_DEPTH: {plan.max_depth} cut the recursion of {plan.name} off"
            self.warn(f"{step.where}: {cut}: {number} not followed")

    def warn_of_skipped(self, statements: Iterable[Totals]) -> None:
        """Warn of each statement that dropped failures."""
        for totals in statements:
            if totals.skipped:
                number = "1 failure was" if totals.skipped == 1 else f"{totals.skipped:,} failures were"
                self.warn(f"{totals.step.where}: {number} skipped, the first: {totals.first_skipped}")

    def warn_of_outlasting(self, step: Step, permits: Permits) -> None:
        """Warn once that a step waits because its permits are with functions that cannot be interrupted."""
        if self._warned_of_outlasting:
            return
        self._warned_of_outlasting = True
        number = permits.outlasting
        holders = (
            "a blocking function that was cancelled and has not returned holds"
            if number == 1
            else "blocking functions that were cancelled and have not returned hold"
        )
        self.warn(f"{step.where}: waits for a permit: {holders} {number:,} of {permits.count:,}")

    def find_silent_failures(self, statements: Iterable[Totals]) -> None:
        """Report each statement of which every tuple failed, if the failures have no reader."""
        for totals in statements:
            firings = totals.rows_in if totals.step.inputs else totals.activations
            if totals.unasked and totals.unasked == firings:
                number = "all there was to do" if firings == 1 else f"all {firings:,} tuples"
                self.find_nothing(f"{totals.step.where}: {number} failed, the first: {totals.first_unasked}")
