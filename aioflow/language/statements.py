"""Makes plans and statements of their parsed pieces.

Header entries and clauses are put into the fields that they are for; one that has no field is reported.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from aioflow.errors import suggestion
from aioflow.language.comments import Notes, NotesByPlace
from aioflow.language.lalr import read_piece
from aioflow.language.mistakes import Mistakes
from aioflow.language.scanner import NAME, Token
from aioflow.language.splitter import HEADER, Piece, PlanPieces
from aioflow.language.syntax import (
    AttributeParts,
    Clause,
    InputParts,
    ParameterParts,
    StatementParts,
    value_of,
)
from aioflow.language.token_text import show
from aioflow.plan import InputDeclaration, Option, Parameter, Plan, Statement, Variable, Word
from aioflow.relation import Schema, Type
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
    """The statement as data; mistakes in its clauses go to `mistakes`."""
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
    """Sorts clauses into the fields of a Statement."""

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


_RULES = {"INPUT": "inputs", "OUTPUT": "names", "PARAM": "parameters"}


def make_plan(pieces: PlanPieces, notes: NotesByPlace, mistakes: Mistakes) -> Plan:
    """The plan as data; mistakes in its pieces go to `mistakes`."""
    header = _HeaderReader(mistakes, pieces.title)
    for piece in pieces.entries:
        header.read(piece)
    statements = tuple(_statements(pieces, notes, mistakes))
    first, last = pieces.keyword, pieces.closing or pieces.keyword
    labelled = [(label, notes[start]) for label, start, _ in pieces.stretches() if label]
    return Plan(
        pieces.name.text if pieces.name else "",
        statements=statements,
        span=Span(first.source, first.start, last.end),
        name_span=pieces.name.span if pieces.name else first.span,
        comments=notes[first.start].leading,
        header_comments={label: note.leading for label, note in labelled[1:-1] if note.leading},
        trailing_comments={label: note.trailing for label, note in labelled if note.trailing is not None},
        closing_comments=notes[pieces.closing.start].leading if pieces.closing else (),
        **header.fields,
    )


def _statements(pieces: PlanPieces, notes: NotesByPlace, mistakes: Mistakes) -> list[Statement]:
    statements = []
    for piece in pieces.statements:
        known = len(mistakes)
        parts = read_piece("statement", piece, mistakes)
        if parts is not None:
            repaired = len(mistakes) > known
            statements.append(make_statement(parts, notes[piece.tokens[0].start], mistakes, repaired))
    return statements


class _HeaderReader:
    """Reads the entries of one plan's header into the fields of a Plan."""

    def __init__(self, mistakes: Mistakes, title: str) -> None:
        self.fields: dict[str, Any] = {}
        self._mistakes = mistakes
        self._title = title
        self._keys: dict[str, Token] = {}
        self._setters: dict[str, Callable[[Token, Any], None]] = {
            "INPUT": self._set_inputs,
            "OUTPUT": self._set_outputs,
            "PARAM": self._set_parameters,
            "MAX_DEPTH": self._set_max_depth,
            "ONCE": self._set_once,
        }

    def read(self, piece: Piece) -> None:
        key = piece.tokens[0]
        name = key.text.upper()
        if name == "BODY":
            self._report(key, "BODY is followed by '{', not by ':'")
            return
        if name not in HEADER:
            known = (*HEADER, "BODY")
            self._report(key, f"unknown part of a plan {key.text!r}{suggestion(key.text, known)}")
            return
        if name in self._keys:
            line = key.source.position(self._keys[name].start)[0]
            self._report(key, f"{name} stands twice in {self._title}; the first is in line {line}")
        self._keys.setdefault(name, key)
        skip = 2 if piece.tokens[1:] and piece.tokens[1].text == ":" else 1
        result = read_piece(_RULES.get(name, "values"), piece, self._mistakes, skip)
        if result is not None:
            self._setters.get(name, self._add_option)(key, result)

    def _report(self, token: Token, message: str) -> None:
        self._mistakes.add(message, token.start, token.end)

    def _set_inputs(self, key: Token, inputs: list[InputParts]) -> None:
        self.fields["inputs"] = tuple(
            InputDeclaration(each.name.text, self._schema(each.attributes), each.name.span) for each in inputs
        )

    def _schema(self, attributes: list[AttributeParts] | None) -> Schema | None:
        if attributes is None:
            return None
        types: dict[str, Type | None] = {}
        for attribute in attributes:
            name = attribute.name.value if attribute.name.value is not None else attribute.name.text
            if name in types:
                self._report(attribute.name, f"attribute {name!r} stands here twice")
            types[str(name)] = self._type(attribute.type)
        return Schema(tuple(types), tuple(types.values()))

    def _type(self, token: Token | None) -> Type | None:
        if token is None:
            return None
        try:
            return Type(token.text.lower())
        except ValueError:
            hint = suggestion(token.text, map(str, Type)) or f" (there are: {', '.join(Type)})"
            self._report(token, f"unknown type {token.text!r}{hint}")
            return None

    def _set_outputs(self, key: Token, names: list[Token]) -> None:
        self.fields["outputs"] = tuple(Variable(token.text, token.span) for token in names)

    def _set_parameters(self, key: Token, parameters: list[ParameterParts]) -> None:
        self.fields["parameters"] = tuple(
            Parameter(name.text, None, required=True, span=name.span)
            if default is None
            else Parameter(name.text, value_of(default), span=name.span, default_span=default.span)
            for name, default in parameters
        )

    def _set_max_depth(self, key: Token, values: list[Token]) -> None:
        if not values:
            self._report(key, "MAX_DEPTH takes a whole number")
            return
        depth = values[0].value
        if not isinstance(depth, int) or isinstance(depth, bool) or depth < 1:
            self._report(values[0], f"MAX_DEPTH takes a whole number of at least 1, not {show(values[0])}")
        words = [value_of(token) for token in values[1:]]
        if words and not (len(words) == 1 and isinstance(words[0], Word) and words[0].text.lower() == "stop"):
            self._report(values[1], f"only 'stop' may follow MAX_DEPTH's number, found {show(values[1])}")
        self.fields.update(max_depth=depth, stop_at_max_depth=bool(words))

    def _set_once(self, key: Token, values: list[Token]) -> None:
        if len(values) != 1 or not isinstance(values[0].value, str):
            at = values[0] if len(values) == 1 else values[1] if values else key
            found = "" if not values else f", not {show(at)}" if len(values) == 1 else ""
            self._report(at, f'ONCE takes one string with attributes, such as "url"{found}')
            return
        self.fields.update(once=values[0].value, once_span=values[0].span)

    def _add_option(self, key: Token, values: list[Token]) -> None:
        if not values:
            self._report(key, f"{key.text.upper()} takes a value")
        self.fields["options"] = (*self.fields.get("options", ()), make_option(key, values))
