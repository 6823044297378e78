"""Mistakes with the names in one plan: variables, signals, inputs and outputs, and cycles among them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Final

from aioflow.compiler.callgraph import cycles
from aioflow.compiler.findings import Findings, named
from aioflow.compiler.wiring import HEADER, NOBODY, NameUse, Producer, Wiring, downstream
from aioflow.errors import Diagnostic
from aioflow.plan import Statement, Variable
from aioflow.source import Span

# Following what comes of a statement takes time; in a text full of mistakes that is done for the first ones.
_FOLLOWED_AT_MOST: Final = 50
_SHOWN_OF_CYCLE: Final = 6
_SHOWN_PRODUCERS: Final = 6
_KINDS: Final = {
    "input": "the plan's INPUT",
    "errors": "ERRORS of ",
    "enable": "ENABLE of ",
    "done": "DONE of ",
}


def check_names(wiring: Wiring, findings: Findings, *, recurs: bool) -> None:
    """Report every mistake with names in a plan; `recurs` tells whether it comes to call itself."""
    names = _Names(wiring, findings)
    names.check_header()
    names.check_producers(recurs)
    names.check_uses()
    names.check_cycles()


class _Names:
    def __init__(self, wiring: Wiring, findings: Findings) -> None:
        self.wiring = wiring
        self.plan = wiring.plan
        self.findings = findings
        self.followed = 0

    def mistake(self, statement: int, message: str, span: Span | None) -> None:
        header = self.plan.name_span if statement == HEADER else None
        self.findings.at(self.plan, statement)(Diagnostic(message, span or header))

    # --- the header -----------------------------------------------------------------------------

    def check_header(self) -> None:
        for noun, declared in (("input", self.plan.inputs), ("output", self.plan.outputs)):
            seen = set()
            for each in declared:
                if each.name == NOBODY:
                    self.mistake(HEADER, f"'_' cannot be an {noun} of a plan: it cannot be named", each.span)
                elif each.name in seen:
                    self.mistake(HEADER, f"the {noun} {each.name!r} is named twice", each.span)
                seen.add(each.name)

    # --- producers ------------------------------------------------------------------------------

    def check_producers(self, recurs: bool) -> None:
        for index, statement in enumerate(self.plan.statements):
            self._check_clauses(index, statement)
        for name, producers in self.wiring.producers.items():
            inputs = [each for each in producers if each.kind == "input"]  # twice: reported with the header
            clashing = inputs[:1] + [each for each in producers if each.kind != "input"]
            if len(clashing) > 1:
                self._report_clash(name, clashing)
                if not recurs:
                    self._report_loop(name, clashing)

    def _check_clauses(self, index: int, statement: Statement) -> None:
        for variable in (*statement.enable, *statement.done):
            if variable.name == NOBODY:
                self.mistake(index, "'_' cannot be a signal: no statement can wait for it", variable.span)
        errors = statement.errors
        if isinstance(errors, Variable) and errors.name == NOBODY:
            self.mistake(index, "'_' cannot carry errors; ERRORS: skip drops them", errors.span)

    def _report_clash(self, name: str, producers: Sequence[Producer]) -> None:
        second = producers[1]
        shown = [self._described(producer) for producer in producers]
        if len(set(shown)) == 1:
            message = f"{name!r} is produced twice by {shown[0]}"
        else:
            number = "two" if len(shown) == 2 else f"{len(shown):,}"
            if len(shown) > _SHOWN_PRODUCERS:
                shown = [*shown[: _SHOWN_PRODUCERS - 1], f"{len(shown) - _SHOWN_PRODUCERS + 1:,} more"]
            message = f"{name!r} has {number} producers: {', '.join(shown[:-1])} and {shown[-1]}"
        self.mistake(second.statement, message, second.span)

    def _report_loop(self, name: str, producers: Sequence[Producer]) -> None:
        """A name produced again from what its first producer gave looks like the round of a loop."""
        first, second = producers[0].statement, producers[1].statement
        if HEADER in (first, second) or first == second:
            return
        if second in (self._downstream(first) or ()):
            rounds = (
                f"{named(self.plan, second)} gives {name!r} anew from what {named(self.plan, first)} gives"
            )
            message = f"{rounds}, as in a loop, but nothing recurs: {self.plan.name} does not call itself"
            self.findings.at(self.plan, second)(Diagnostic(message, producers[1].span, "warning"))

    def _described(self, producer: Producer) -> str:
        kind = _KINDS.get(producer.kind, "")
        return kind if producer.statement == HEADER else f"{kind}{named(self.plan, producer.statement)}"

    # --- uses -----------------------------------------------------------------------------------

    def check_uses(self) -> None:
        for name, uses in self.wiring.uses.items():
            if name == NOBODY:
                self._report_nobody(uses)
            elif name not in self.wiring.producers:
                self._report_unknown(name, uses[0])
            elif self.wiring.producers[name][0].is_signal:
                self._report_signal(name, self.wiring.producers[name][0], uses)

    def _report_nobody(self, uses: Iterable[NameUse]) -> None:
        for use in uses:
            if use.kind != "output":  # reported with the header
                message = "'_' cannot be read: it stands for outputs that are not needed"
                self.mistake(use.statement, message, use.span)

    def _report_unknown(self, name: str, use: NameUse) -> None:
        hint = self._suggestion(name, use)
        if use.kind == "output":
            message = f"nothing produces the output {name!r}{hint}"
        elif use.kind == "wait":
            message = f"no statement sends the signal {name!r}{hint}"
        elif name.lower() in {parameter.name.lower() for parameter in self.plan.parameters}:
            message = f"unknown variable {name!r}; the parameter is written ${name}"
        else:
            message = f"unknown variable {name!r}{hint or ': nothing produces it'}"
        self.mistake(use.statement, message, use.span)

    def _report_signal(self, name: str, producer: Producer, uses: Iterable[NameUse]) -> None:
        for use in uses:
            if use.kind != "wait":
                message = (
                    f"{name!r} is a signal ({self._described(producer)}), not data: only WAIT can name it"
                )
                self.mistake(use.statement, message, use.span)

    def _suggestion(self, name: str, use: NameUse) -> str:
        """A near name that makes sense there: not of another kind, and not of what comes of the reader."""
        after = set() if use.statement == HEADER else self._downstream(use.statement)
        if after is None or self.findings.suggestion.are_spent:
            return ""
        known = [
            other
            for other, producers in self.wiring.producers.items()
            if (use.kind == "wait" or not producers[0].is_signal) and producers[0].statement not in after
        ]
        return self.findings.suggestion(name, known)

    def _downstream(self, statement: int) -> set[int] | None:
        """The statements that get data or signals of one; None when too many were followed already."""
        self.followed += 1
        if self.followed > _FOLLOWED_AT_MOST:
            return None
        return downstream(self._unambiguous_readers, [statement])

    # --- cycles ---------------------------------------------------------------------------------

    @cached_property
    def _unambiguous_readers(self) -> list[list[int]]:
        """The readers of each statement, without names that have several producers: any may be meant."""
        return self.wiring.readers(unambiguous=True)

    @cached_property
    def _data_readers(self) -> list[list[int]]:
        return self.wiring.data_readers()

    def check_cycles(self) -> None:
        for cycle in cycles(self._unambiguous_readers):
            first = cycle[0]
            edges = list(pairwise([*cycle, first]))
            if len(cycle) == 1:
                name = self._name_between(first, first)
                noun = "signal" if self.wiring.producers[name][0].is_signal else "output"
                message = f"{self.plan.statements[first].operator} waits for its own {noun} {name!r}"
            else:
                message = f"these statements wait for each other: {self._shown_cycle(edges)}"
            if all(self._is_data(*edge) for edge in edges):
                message += "; a loop is a plan that calls itself"
            self.mistake(first, message, self.plan.statements[first].name_span)

    def _is_data(self, producer: int, reader: int) -> bool:
        return reader in self._data_readers[producer]

    def _shown_cycle(self, edges: Sequence[tuple[int, int]]) -> str:
        left_out = len(edges) - _SHOWN_OF_CYCLE
        shown = edges if left_out <= 0 else [*edges[: _SHOWN_OF_CYCLE - 1], edges[-1]]
        steps = [f"{named(self.plan, node)} -> {self._name_between(node, next_)!r}" for node, next_ in shown]
        if left_out > 0:
            steps.insert(-1, f"{left_out} more")
        return " -> ".join([*steps, named(self.plan, edges[0][0])])

    def _name_between(self, producer: int, reader: int) -> str:
        return next(name for name in self._produced[producer] if (name, reader) in self._used)

    @cached_property
    def _produced(self) -> dict[int, list[str]]:
        """The names that each statement produces."""
        found: dict[int, list[str]] = {}
        for name, producers in self.wiring.producers.items():
            for producer in producers:
                found.setdefault(producer.statement, []).append(name)
        return found

    @cached_property
    def _used(self) -> set[tuple[str, int]]:
        """Names with the statements that read them."""
        return {(name, use.statement) for name, uses in self.wiring.uses.items() for use in uses}
