"""Makes statements of what the grammar read: clauses find their places, or are reported."""

from __future__ import annotations

from typing import Literal

from aioflow.language.comments import Notes
from aioflow.language.mistakes import Mistakes
from aioflow.language.nodes import Clause, StatementParts, value_of
from aioflow.language.scanner import NAME, Token
from aioflow.language.words import show
from aioflow.plan import Option, Statement, Variable
from aioflow.source import Span

SIGNAL_CLAUSES = ("WAIT", "ENABLE", "DONE")
OWN_CLAUSES = (*SIGNAL_CLAUSES, "ERRORS")
_TAKES = {
    "WAIT": "variables or signals",
    "ENABLE": "the name of a signal",
    "DONE": "the name of a signal",
    "ERRORS": "a variable or the word skip",
}


def make_statement(
    parts: StatementParts, notes: Notes, mistakes: Mistakes, repaired: bool = False
) -> Statement:
    """The statement as data; what is wrong with its clauses goes to `mistakes`."""
    operator, arguments, outputs, clauses, last = parts
    span = Span(operator.source, operator.start, last.end)
    if not clauses:
        return Statement(
            operator.text,
            arguments,
            outputs,
            span=span,
            name_span=operator.span,
            comments=notes.leading,
            trailing_comment=notes.trailing,
        )
    if not repaired:
        clauses = _separate(clauses, mistakes)
    sorter = _ClauseSorter(mistakes)
    for clause in clauses:
        if isinstance(clause, Clause):
            sorter.add(clause)
    return Statement(
        operator.text,
        arguments,
        outputs,
        wait=sorter.signals.get("WAIT", ()),
        enable=sorter.signals.get("ENABLE", ()),
        done=sorter.signals.get("DONE", ()),
        errors=sorter.errors,
        options=tuple(sorter.options),
        span=span,
        name_span=operator.span,
        comments=notes.leading,
        trailing_comment=notes.trailing,
    )


def make_option(key: Token, values: list[Token]) -> Option:
    """An option with the places of its name and values."""
    return Option(
        key.text.upper(), tuple(map(value_of, values)), key.span, tuple(token.span for token in values)
    )


def _separate(clauses: list[Clause | Token], mistakes: Mistakes) -> list[Clause | Token]:
    """The clauses, each reported that no ';' or line end parts from the one before it."""
    kept: list[Clause | Token] = []
    for clause in clauses:
        previous = kept[-1] if kept else None
        if isinstance(clause, Clause) and isinstance(previous, Clause) and not clause.key.first:
            wanted = "',', ';' or a new line" if previous.values else "':', ';' or a new line"
            after = previous.values[-1] if previous.values else previous.key
            key = clause.key
            mistakes.add(f"expected {wanted} after {show(after)}, found {show(key)}", key.start, key.end)
            if clause.values is None:
                # Most likely a value of the clause before it.
                kept[-1] = Clause(previous.key, [*(previous.values or []), key])
                continue
        kept.append(clause)
    return kept


class _ClauseSorter:
    """Gives each clause its place in a Statement."""

    def __init__(self, mistakes: Mistakes) -> None:
        self.signals: dict[str, tuple[Variable, ...]] = {}
        self.errors: Variable | Literal["skip"] | None = None
        self.options: list[Option] = []
        self._mistakes = mistakes
        self._keys: dict[str, Token] = {}

    def add(self, clause: Clause) -> None:
        key = clause.key
        name = key.text.upper()
        if name not in OWN_CLAUSES:
            self.options.append(make_option(key, clause.values or []))
            return
        if name in self._keys:
            self._mistakes.add(f"{name} stands here twice", key.start, key.end)
        self._keys[name] = key
        if clause.values is None:
            self._mistakes.add(f"expected ':' and a name after {show(key)}", key.start, key.end)
            return
        variables = self._variables(name, clause.values)
        if name in SIGNAL_CLAUSES:
            self.signals[name] = variables
        else:
            self._set_errors(variables, clause.values)

    def _variables(self, name: str, values: list[Token]) -> tuple[Variable, ...]:
        for token in values:
            if token.type != NAME:
                self._mistakes.add(f"{name} takes {_TAKES[name]}, not {show(token)}", token.start, token.end)
        return tuple(Variable(token.text, token.span) for token in values)

    def _set_errors(self, variables: tuple[Variable, ...], values: list[Token]) -> None:
        if len(variables) > 1:
            second = values[1]
            self._mistakes.add("ERRORS takes one variable only", second.start, second.end)
        self.errors = "skip" if variables[0].name.lower() == "skip" else variables[0]
