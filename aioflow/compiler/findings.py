"""The findings of a check, in the order of the text, and those of them that a syntax error may explain.

Only findings that no syntax error explains are reported along with the syntax errors.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Container, Iterable, Iterator, Sequence

import msgspec
from msgspec.structs import replace

from aioflow.compiler.wiring import HEADER
from aioflow.errors import Diagnostic, Suggestions
from aioflow.plan import NAME_PATTERN, Item, Plan, Program, Statement
from aioflow.source import Span


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


_WORD = re.compile(NAME_PATTERN)
_BODY = re.compile(r"\bBODY\s*\{", re.IGNORECASE)


class Damage:
    """The parts that the syntax errors in `read` may have taken from a program.

    A statement that could not be read may produce or use any name that stands in it. A plan whose header has
    a mistake is left alone. A mistake outside of plans may have taken plans, or an item.
    """

    def __init__(
        self, program: Program, read: Sequence[Diagnostic], is_known: Callable[[Statement], bool]
    ) -> None:
        self._is_known = is_known
        self._stretches: dict[str, list[Span]] = {}
        self._names: set[str] = set()  # of items
        self._lacks_plans = False
        extents = _extents(program)
        for found in read:
            owner = _owner(found.span, extents)
            if isinstance(owner, Plan) and found.span is not None:
                end = _end(owner, extents)
                self._stretches.setdefault(owner.key, []).append(_stretch(owner, found.span.start, end, read))
            elif isinstance(owner, Item):
                self._names.add(owner.name)
            else:
                self._lacks_plans = True
        self._words = {key: _words(stretches) for key, stretches in self._stretches.items()}

    def explains(self, place: Location, diagnostic: Diagnostic, produced: Container[str]) -> bool:
        """Return whether a finding may be a consequence; `produced` are the names that its plan produces."""
        span, plan = diagnostic.span, place.plan
        stretches = self._stretches.get(plan.key, ())
        if span is None or any(each.start <= span.start < each.end for each in stretches):
            return True
        if any(plan.span is not None and each.start == plan.span.start for each in stretches):
            return True  # the header
        if place.statement != HEADER and span == plan.statements[place.statement].name_span:
            return self._lacks_plans and not self._is_known(plan.statements[place.statement])
        text = span.source.text[span.start : span.end].strip("\"'")
        return text in self._names or (text not in produced and text in self._words.get(plan.key, ()))


def _extents(program: Program) -> dict[str, list[tuple[int, Plan | Item]]]:
    """Where the plans and items of each file begin; one reaches to the next."""
    found: dict[str, list[tuple[int, Plan | Item]]] = {}
    entries: Iterable[Plan | Item] = (*program.plans, *program.items)
    for entry in entries:
        if entry.span is not None:
            found.setdefault(entry.span.source.name, []).append((entry.span.start, entry))
    return {name: sorted(each, key=lambda pair: pair[0]) for name, each in found.items()}


def _owner(span: Span | None, extents: dict[str, list[tuple[int, Plan | Item]]]) -> Plan | Item | None:
    if span is None:
        return None
    begun = extents.get(span.source.name, [])
    place = bisect_right(begun, span.start, key=lambda pair: pair[0])
    owner = begun[place - 1][1] if place else None
    if owner is None or owner.span is None:
        return None
    is_closed = owner.span.end > owner.span.start + len("PLAN")
    return None if is_closed and span.start >= owner.span.end else owner


def _end(plan: Plan, extents: dict[str, list[tuple[int, Plan | Item]]]) -> int:
    assert plan.span is not None
    begun = extents[plan.span.source.name]
    place = bisect_right(begun, plan.span.start, key=lambda pair: pair[0])
    return begun[place][0] if place < len(begun) else len(plan.span.source.text)


def _stretch(plan: Plan, offset: int, end: int, read: Sequence[Diagnostic]) -> Span:
    """From the statement before a mistake to the one after it, of those that have none."""
    assert plan.span is not None
    mistaken = sorted(
        found.span.start for found in read if found.span and found.span.source is plan.span.source
    )
    body = _BODY.search(plan.span.source.text, plan.span.start, end)
    first, last = body.end() if body and body.end() <= offset else plan.span.start, end
    for span in _spans(plan):
        place = bisect_right(mistaken, span.start - 1)
        if place < len(mistaken) and mistaken[place] < span.end:
            continue
        if span.end <= offset:
            first = span.end
        elif span.start > offset:
            last = min(last, span.start)
    return Span(plan.span.source, first, last)


def _spans(plan: Plan) -> Iterator[Span]:
    return (statement.span for statement in plan.statements if statement.span is not None)


def _words(stretches: Iterable[Span]) -> frozenset[str]:
    return frozenset(
        word for span in stretches for word in _WORD.findall(span.source.text[span.start : span.end])
    )
