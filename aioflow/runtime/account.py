"""The account of a run: a report in a few lines for people, and as JSON for programs.

The engine counts rows and failures. Services of the run add entries of their own, by `account`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec
from msgspec.structs import replace

from aioflow.authoring.services import AccountEntry
from aioflow.config.masking import masked
from aioflow.errors import OperatorError, PlanError, message_of
from aioflow.runtime.events import Outcome
from aioflow.values.quantities import count_text, duration_text
from aioflow.version import __version__
from aioflow.wholeness import WHOLE, Marks, Reason

# The version of the JSON form. A version may get new names; no name is removed or changes its meaning.
VERSION = 1


class OutputAccount(msgspec.Struct, frozen=True):
    """One output: its rows, and whether any may be missing or wrong."""

    rows: int
    marks: Marks = WHOLE

    @property
    def is_whole(self) -> bool:
        return self.marks.is_whole

    def as_json(self, *, has_ended: bool) -> dict[str, Any]:
        """Return the output as JSON; before a run has ended successfully no output counts as whole."""
        partial, doubtful = map(_texts, (self.marks.partial, self.marks.doubtful))
        whole = has_ended and self.is_whole
        return {"rows": self.rows, "whole": whole, "partial": partial, "doubtful": doubtful}


class RunAccount(msgspec.Struct, frozen=True):
    """The report of a run, or of a run so far.

    `errors` counts failures by kind: those that ERRORS took, and the one that ended the run. `counters` are
    those of all statements. `entries` come from the services that the run used.
    """

    run_id: str
    plan: str
    outcome: Outcome
    started: datetime
    elapsed_seconds: float
    inputs: Mapping[str, int]  # rows taken
    outputs: Mapping[str, OutputAccount]
    errors: Mapping[str, int]
    counters: Mapping[str, int]
    warnings: tuple[str, ...]
    notes: tuple[str, ...]
    nothing_found: tuple[str, ...]
    failure: BaseException | None
    entries: tuple[AccountEntry, ...]

    @property
    def rows(self) -> int:
        """Rows of all outputs."""
        return sum(output.rows for output in self.outputs.values())

    @property
    def ended(self) -> datetime:
        return self.started + timedelta(seconds=self.elapsed_seconds)

    def failed_with(self, error: BaseException) -> RunAccount:
        """Return the account of the same run, ended by this error."""
        errors = Counter(self.errors) + Counter([type(_cause_of(error)).__name__])
        return replace(self, outcome="failed", failure=error, errors=errors)

    def lines(self) -> tuple[str, ...]:
        """Return the account for people, without figures of zero."""
        return tuple(masked(line) for line in (self.headline, *self.details()))

    @property
    def headline(self) -> str:
        """`3 rows in 0.42 s`."""
        time = duration_text(self.elapsed_seconds)
        if self.outcome in ("failed", "stopped", "interrupted"):
            until_then = f"; {self._rows_text()} until then" if self.rows else ""
            return f"{self.outcome} after {time}{until_then}"
        return f"{self._rows_text()} in {time}" if self.outputs else f"done in {time}"

    def details(self) -> Iterator[str]:
        """Yield the lines below the headline."""
        for entry in self.entries:
            yield from entry.lines
        count = sum(self.errors.values())
        if count > (self.outcome == "failed"):
            kinds = sorted(self.errors.items(), key=lambda each: -each[1])
            shown = ", ".join(f"{number:,} {kind}" for kind, number in kinds)
            yield f"{count_text(count, 'failure')}: {shown if len(kinds) > 1 else kinds[0][0]}"

    def _rows_text(self) -> str:
        several = ", ".join(f"{name} {output.rows:,}" for name, output in self.outputs.items())
        return count_text(self.rows, "row") + (f" ({several})" if len(self.outputs) > 1 else "")

    def as_json(self) -> dict[str, Any]:
        """Return the account as docs/cli.md describes it, ready for `json.dumps`."""
        told = {
            "version": VERSION,
            "aioflow": __version__,
            "run-id": self.run_id,
            "plan": self.plan,
            "outcome": self.outcome,
            "started": self.started.isoformat(),
            "ended": self.ended.isoformat(),
            "elapsed-seconds": round(self.elapsed_seconds, 6),
            "inputs": {name: {"rows": rows} for name, rows in self.inputs.items()},
            "outputs": {
                name: output.as_json(has_ended=self.outcome == "ended")
                for name, output in self.outputs.items()
            },
            "errors": dict(self.errors),
            "counters": dict(self.counters),
            "warnings": list(self.warnings),
            "notes": list(self.notes),
            "nothing-found": list(self.nothing_found),
            "error": None if self.failure is None else error_as_json(self.failure),
            **{entry.name: dict(entry.figures) for entry in self.entries},
        }
        return {name: masked(value) for name, value in told.items()}


def error_as_json(error: BaseException) -> dict[str, Any]:
    """Return the error that ended a run as JSON: kind, message, and if known the place and the statement."""
    place = statement = None
    if isinstance(error, OperatorError):
        place, _, statement = error.where.rpartition(": ")
    elif isinstance(error, PlanError) and error.diagnostics and error.diagnostics[0].span is not None:
        place = error.diagnostics[0].span.place
    told = {
        "kind": type(_cause_of(error)).__name__,
        "message": message_of(error),
        "place": place,
        "statement": statement,
    }
    return {name: masked(value) for name, value in told.items()}


def _cause_of(error: BaseException) -> BaseException:
    """Return the error that an operator has failed with."""
    return (error.__cause__ or error) if isinstance(error, OperatorError) else error


def _texts(reasons: tuple[Reason, ...]) -> list[str]:
    return [reason.text for reason in reasons]
