"""Parses the pieces of a plan by the LALR(1) tables of plan.lark, into values with their tokens.

After a mistake a piece is repaired, so that the next mistake in it is found as well. Lark only writes the
tables (`lalr_tables`): reading plans does without its import.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from aioflow.language.lalr_tables import RULES, STARTS, STATES
from aioflow.language.mistakes import Mistakes
from aioflow.language.scanner import BAD, CONSTANT, END, KEY, NAME, Token, expected, found_after, show
from aioflow.language.splitter import Piece
from aioflow.plan import Setting, Variable, Word


class Clause(NamedTuple):
    """`KEY: values`, or a flag, which has none."""

    key: Token
    values: list[Token] | None


class StatementParts(NamedTuple):
    operator: Token
    arguments: tuple[Variable | Setting, ...]
    outputs: tuple[Variable, ...]
    clauses: list[Clause | Token]
    last: Token


class InputParts(NamedTuple):
    name: Token
    attributes: list[AttributeParts] | None


class AttributeParts(NamedTuple):
    name: Token
    type: Token | None


class ParameterParts(NamedTuple):
    name: Token
    default: Token | None


def value_of(token: Token) -> Any:
    """The constant that a token stands for; a name is a bare word."""
    return Word(token.text) if token.type == NAME else token.value


def _argument(part: Token | Setting) -> Variable | Setting:
    if isinstance(part, Setting):
        return part
    if part.type == NAME:
        return Variable(part.text, part.span)
    return Setting(part.value, None, part.span)  # type: ignore[arg-type]  # constants only have such values


class Nodes:
    """A method for each rule, called with what the rule's parts gave."""

    def statement(self, parts: list[Any]) -> StatementParts:
        operator, arguments, outputs, closing, (clauses, last) = parts
        return StatementParts(operator, arguments, outputs, clauses, last or closing)

    def arguments(self, parts: list[Token | Setting]) -> tuple[Variable | Setting, ...]:
        return tuple(map(_argument, parts))

    def keyword(self, parts: list[Token]) -> Setting:
        name, value = parts
        return Setting(value_of(value), name.text, value.span, name.span)

    def outputs(self, parts: list[Token]) -> tuple[Variable, ...]:
        return tuple(Variable(token.text, token.span) for token in parts)

    def clauses(self, parts: list[Any]) -> tuple[list[Any], Token | None]:
        return (parts[:-1], parts[-1]) if parts else ([], None)

    def clause(self, parts: list[Token]) -> Clause:
        return Clause(parts[0], parts[1:])

    def flag(self, parts: list[Token]) -> Clause:
        return Clause(parts[0], None)

    def list_constant(self, parts: list[Token]) -> Token:
        opening, *members, closing = parts
        text = opening.source.text[opening.start : closing.end]
        return Token(
            CONSTANT, text, opening.start, opening.source, value=tuple(each.value for each in members)
        )

    def inputs(self, parts: list[InputParts]) -> list[InputParts]:
        return parts

    def input(self, parts: list[Any]) -> InputParts:
        return InputParts(parts[0], parts[1] if len(parts) > 1 else None)

    def schema(self, parts: list[AttributeParts]) -> list[AttributeParts]:
        return parts

    def attribute(self, parts: list[Token]) -> AttributeParts:
        return AttributeParts(parts[0], parts[1] if len(parts) > 1 else None)

    def names(self, parts: list[Token]) -> list[Token]:
        return parts

    def parameters(self, parts: list[ParameterParts]) -> list[ParameterParts]:
        return parts

    def parameter(self, parts: list[Token]) -> ParameterParts:
        return ParameterParts(parts[0], parts[1] if len(parts) > 1 else None)

    def values(self, parts: list[Token]) -> list[Token]:
        return parts


_NODES = Nodes()
# Without a method: the parts of a list that the grammar repeats.
_MAKERS = tuple(getattr(_NODES, origin, None) for origin, _ in RULES)


class LalrParse:
    """A piece that is being read by a rule of the grammar."""

    def __init__(self, start: str) -> None:
        first, self._last = STARTS[start]
        self._states = [first]
        self._values: list[Any] = []

    def take(self, token: Token) -> bool:
        """Go on with a token, if it fits."""
        fits = self._advance(self._states, token.type, self._values)
        if fits and token.type != END:
            self._values.append(token)
        return fits

    @property
    def result(self) -> Any:
        """The value of the rule, once the end has been taken."""
        return self._values[-1]

    def would_take(self, *kinds: str) -> bool:
        """Return whether tokens of these kinds fit one after the other."""
        states = self._states.copy()
        return all(self._advance(states, kind) for kind in kinds)

    def accepts(self) -> set[str]:
        """The kinds of tokens that fit next."""
        return {kind for kind in STATES[self._states[-1]] if kind.isupper() and self.would_take(kind)}

    def _advance(self, states: list[int], kind: str, values: list[Any] | None = None) -> bool:
        """Pass a token of this kind, and before it the ends of rules; these make `values`, if given."""
        while (action := STATES[states[-1]].get(kind)) is not None:
            if action >= 0:
                states.append(action)
                return True
            origin, shape = RULES[~action]
            if shape:
                del states[-len(shape) :]
            states.append(STATES[states[-1]][origin])
            if values is not None:
                _make(~action, shape, values)
            if kind == END and states[-1] == self._last:
                return True
        return False


def _make(rule: int, shape: str, values: list[Any]) -> None:
    """Replace the values of a rule's parts by the value of the rule."""
    first = len(values) - len(shape)
    parts: list[Any] = []
    for fate, value in zip(shape, values[first:], strict=True):
        if fate == "+":
            parts.append(value)
        elif fate == "*":
            # Taken over when it comes first: lists grow part by part, and must not be copied each time.
            parts = parts + value if parts else value
    make = _MAKERS[rule]
    values[first:] = [parts if make is None else make(parts)]


_MISTAKES_IN_A_PIECE = 10
# What is tried, in this order, as the missing token before one that does not fit.
_REPAIRS = ("_COMMA", NAME, CONSTANT, "_OPEN", "_COLON", "CLOSE", KEY, "RIGHT_BRACKET")
_PAIRS = {"(": ")", "[": "]", "{": "}"}
# What names and values are called in the places where they stand.
_CALLED = {
    "arguments": ("a variable", "a variable or a constant"),
    "outputs": ("an output", ""),
    "clauses": ("a clause", "a value"),
    "inputs": ("an input", ""),
    "attributes": ("an attribute", ""),
    "type": ("a type", ""),
    "names": ("an output", ""),
    "parameters": ("a parameter", ""),
    "values": ("a word", "a value"),
}


def read_piece(start: str, piece: Piece, mistakes: Mistakes, skip: int = 0) -> Any:
    """Parse a piece without its first tokens, repaired if need be; return the value of the rule, or None."""
    return _PieceReader(start, piece, mistakes, skip).read()


class _PieceReader:
    def __init__(self, start: str, piece: Piece, mistakes: Mistakes, skip: int) -> None:
        self._reading = LalrParse(start)
        self._start = start
        self._tokens = piece.tokens
        self._following = piece.following
        self._skip = skip
        self._mistakes = mistakes
        self._found = 0
        # What closes brackets that were passed over; it is passed over too where it does not fit.
        self._dropped: list[str] = []
        self._unclosed = False
        # After a mistake nothing is reported until a token fits again.
        self._quiet = False

    def read(self) -> Any:
        for index in range(self._skip, len(self._tokens)):
            token = self._tokens[index]
            if self._reading.take(token):
                self._quiet = False
                continue
            self._repair(index, token)
            if self._found >= _MISTAKES_IN_A_PIECE:
                return None
        return self._finish()

    def _finish(self) -> Any:
        if self._reading.take(Token(END, "", self._following.start, self._following.source)):
            return self._reading.result
        self._quiet = self._quiet or self._unclosed
        self._report(len(self._tokens), *found_after(self._tokens[-1], self._following))
        return None

    def _repair(self, index: int, token: Token) -> None:
        if token.type == BAD:
            # Its own message says enough.
            self._found += 1
            self._quiet = True
            return
        if token.text in self._dropped:
            self._dropped.remove(token.text)
            return
        self._report(index, show(token), token.start, token.end)
        for terminal in _REPAIRS:
            if self._reading.would_take(terminal, token.type):
                self._reading.take(Token(terminal, "", token.start, token.source))
                self._reading.take(token)
                self._quiet = False
                # Who forgot the one parenthesis may have forgotten both.
                self._unclosed = self._unclosed or terminal == "_OPEN"
                return
        if token.text in _PAIRS:
            self._dropped.append(_PAIRS[token.text])
        self._quiet = True

    def _report(self, index: int, found: str, start: int, end: int) -> None:
        self._found += 1
        if self._quiet:
            return
        previous = self._tokens[index - 1]
        place = self._place(index)
        terminals = self._reading.accepts()
        if index < len(self._tokens) and self._tokens[index].type != CONSTANT:
            terminals = terminals - {"_EQUALS"} or terminals
        if place == "clauses" and previous.type == NAME and "_COMMA" not in terminals:
            # A flag, or a clause without its colon.
            terminals = terminals | {"_COLON"}
        wanted = expected(terminals, *_CALLED[place])
        self._mistakes.add(f"expected {wanted} after {show(previous)}, found {found}", start, end)

    def _place(self, index: int) -> str:
        """Return which part of the piece an index is in."""
        before = [token.text for token in self._tokens[self._skip : index]]
        if self._start == "statement":
            return "clauses" if "{" in before else "outputs" if ":" in before else "arguments"
        if self._start == "inputs" and before.count("(") > before.count(")"):
            return "attributes" if before[-1] in ("(", ",") else "type"
        return self._start
