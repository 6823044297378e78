"""One firing of a step that waits on the outside world: its permits, its count and its events."""

from __future__ import annotations

from typing import Any

from aioflow.runtime.budget import Permits
from aioflow.runtime.events import FiringEnded, FiringStarted
from aioflow.runtime.operator_step import OperatorStep
from aioflow.runtime.publisher import now
from aioflow.runtime.threads import BlockingCall


class Firing:
    """`async with` it around a wait: it holds its permits meanwhile, is counted, and is reported."""

    __slots__ = ("_label", "_number", "_permits", "_step", "_was_left")

    def __init__(self, step: OperatorStep, source: str | None, label: str = "") -> None:
        self._step = step
        self._label = label
        self._permits = step.session.permits.needed(step.step, source)
        self._was_left = False
        self._number = 0

    async def __aenter__(self) -> None:
        if len(self._permits) == 1 and self._permits[0].try_acquire():
            self._start(0.0)
            return
        started = now()
        taken: list[Permits] = []
        try:
            for permits in self._permits:
                await permits.acquire(self._step.urgent, self._tell_why)
                taken.append(permits)
        except BaseException:
            for permits in taken:
                permits.release()
            raise
        self._start(now() - started)

    def _start(self, waited_seconds: float) -> None:
        session = self._step.session
        totals = self._step.totals
        totals.firings += 1
        totals.waiting_permit_seconds += waited_seconds
        session.totals.firings += 1
        self._number = session.totals.firings
        if session.events.listeners:
            place = self._step.place()
            session.events.publish(FiringStarted(*place, self._number, waited_seconds, self._label))

    async def __aexit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if not self._was_left:
            for permits in self._permits:
                permits.release()
        events = self._step.session.events
        if events.listeners:
            message = None if error is None else str(error) or type(error).__name__
            events.publish(FiringEnded(*self._step.place(), self._number, message))

    def _tell_why(self, permits: Permits) -> None:
        self._step.session.report.warn_of_outlasting(self._step.step, permits)

    def leave_permits(self, call: BlockingCall[Any]) -> None:
        """Leave the permits to a function that goes on although its caller was cancelled."""
        left = self._permits

        def give_back() -> None:  # without a reference to the run, which may end before the function
            for permits in left:
                permits.give_back()

        self._was_left = call.give_up(give_back)
        if self._was_left:
            for permits in left:
                permits.leave()
