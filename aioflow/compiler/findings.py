"""Collects the findings of a check, and puts them into the order of the text."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from aioflow.compiler.wiring import HEADER
from aioflow.errors import Diagnostic, Suggestions
from aioflow.plan import Plan, Program, Statement


class Location(msgspec.Struct, frozen=True):
    """A statement of a plan, or its header."""

    plan: Plan
    statement: int = HEADER


class Findings(msgspec.Struct):
    """Mistakes and warnings by their place."""

    program: Program
    _found: list[tuple[Location, Diagnostic]] = msgspec.field(default_factory=list)
    _mistaken: set[str] = msgspec.field(default_factory=set)
    _in_items: list[Diagnostic] = msgspec.field(default_factory=list)
    suggestion: Suggestions = msgspec.field(default_factory=Suggestions)

    def add(self, place: Location, diagnostic: Diagnostic) -> None:
        if diagnostic.severity == "error":
            self._mistaken.add(place.plan.key)
        self._found.append((place, diagnostic))

    def in_item(self, diagnostic: Diagnostic) -> None:
        """Add a finding in an item that is no plan."""
        self._in_items.append(diagnostic)

    def at(self, plan: Plan, statement: int = HEADER) -> Callable[[Diagnostic], None]:
        """Return a function that adds findings at this place."""
        place = Location(plan, statement)
        return lambda diagnostic: self.add(place, diagnostic)

    def is_mistaken(self, plan: Plan) -> bool:
        """Return whether a mistake was found in a plan: names that look unused may then be used after all."""
        return plan.key in self._mistaken

    def mistakes(self) -> list[tuple[Location, Diagnostic]]:
        """Return the mistakes in plans, each with its place."""
        return [(place, found) for place, found in self._found if found.severity == "error"]

    def in_order(self) -> list[Diagnostic]:
        """Everything in the order of the text, the main plan's file first; items come before plans."""
        ranks = self._plan_ranks()

        def position(found: tuple[Location, Diagnostic]) -> tuple[int, int, int]:
            place, diagnostic = found
            return ranks[place.plan.key], place.statement, diagnostic.span.start if diagnostic.span else -1

        placed = [_placed(place, diagnostic) for place, diagnostic in sorted(self._found, key=position)]
        return [*self._in_items, *placed]

    def _plan_ranks(self) -> dict[str, int]:
        files: dict[str, int] = {}
        for plan in (self.program.main, *self.program):
            files.setdefault(plan.span.source.name if plan.span else "", len(files))

        def position(plan: Plan) -> tuple[int, int]:
            return (files[plan.span.source.name], plan.span.start) if plan.span else (files[""], 0)

        return {plan.key: rank for rank, plan in enumerate(sorted(self.program, key=position))}


def _placed(place: Location, diagnostic: Diagnostic) -> Diagnostic:
    """Add the name of the statement to a message about a plan without text, which was built in Python."""
    if diagnostic.span is not None:
        return diagnostic
    where = place.plan.name
    if place.statement != HEADER:
        where += f": statement {place.statement + 1} ({place.plan.statements[place.statement].operator})"
    return replace(diagnostic, message=f"{where}: {diagnostic.message}")


def named(plan: Plan, statement: int) -> str:
    """Return a statement as messages about others name it: `select (line 7)`."""
    found: Statement = plan.statements[statement]
    span = found.name_span or found.span
    return f"{found.operator} ({f'line {span.line}' if span else f'statement {statement + 1}'})"
