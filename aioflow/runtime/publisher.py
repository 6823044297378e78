"""The way of events from the steps of a run to its listeners."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from aioflow.compiler.step import Step
from aioflow.runtime.events import Event, Listener


def now() -> float:
    """Return the time of the loop's clock in seconds, as events carry it."""
    return asyncio.get_running_loop().time()


class EventPublisher:
    """Calls the listeners of one run with its events. An event is made only if there are `listeners`."""

    def __init__(
        self, run_id: str, listeners: Sequence[Listener], fail: Callable[[BaseException], None]
    ) -> None:
        self.listeners = listeners
        self._run_id = run_id
        self._fail = fail

    def publish(self, event: Event) -> None:
        """Call every listener. An error that one of them raises fails the run."""
        for listener in self.listeners:
            try:
                listener(event)
            except Exception as error:
                self._fail(error)

    def stamp(self) -> tuple[float, str]:
        """Return the first fields of every event: the time and the run."""
        return now(), self._run_id

    def place(self, step: Step, iteration: int) -> tuple[float, str, str, str, int | None, int]:
        """Return the first fields of every event of a statement in one call."""
        return now(), self._run_id, step.plan.name, step.name, step.line, iteration
