"""The consequences of syntax errors: which other findings in a text one of them may explain.

Only findings that no syntax error explains are reported along with the syntax errors.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Container, Iterable, Iterator, Sequence

from aioflow.compiler.findings import Location
from aioflow.compiler.wiring import HEADER
from aioflow.errors import Diagnostic
from aioflow.plan import NAME_PATTERN, Item, Plan, Program, Statement
from aioflow.source import Span

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
        """Whether a finding may be a consequence; `produced` are the names that its plan produces."""
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
