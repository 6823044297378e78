"""Reads the pieces of a plan by plan.lark; repairs a piece after a mistake, so as to find the next one."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import cache
from pathlib import Path
from typing import Any

from aioflow.language.mistakes import Mistakes
from aioflow.language.nodes import Nodes
from aioflow.language.scanner import BAD, CONSTANT, END, KEY, NAME, Token
from aioflow.language.structure import Piece
from aioflow.language.words import expected, found_behind, show

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


@cache
def _parser() -> tuple[Callable[[str], Any], type[Exception]]:
    # Imported late: whoever reads no text does not wait for lark.
    from lark import Lark, UnexpectedToken
    from lark.lexer import Lexer

    class TokensComeReady(Lexer):
        """Stands in for a lexer: the scanner has made the tokens."""

        def __init__(self, configuration: Any) -> None:
            pass

        def lex(self, lexer_state: Any, parser_state: Any) -> Any:
            return iter(())

    starts = ["statement", "inputs", "names", "parameters", "values"]
    grammar = Path(__file__).with_name("plan.lark").read_text("utf-8")
    parser = Lark(grammar, parser="lalr", lexer=TokensComeReady, start=starts, transformer=Nodes())
    return lambda start: parser.parse_interactive(None, start), UnexpectedToken


def read_piece(start: str, piece: Piece, mistakes: Mistakes, skip: int = 0) -> Any:
    """What a rule of the grammar makes of a piece without its first tokens, repaired if need be, or None."""
    return _PieceReader(start, piece, mistakes, skip).read()


class _PieceReader:
    def __init__(self, start: str, piece: Piece, mistakes: Mistakes, skip: int) -> None:
        begin, self._unexpected = _parser()
        self._state = begin(start)
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
        feed, unexpected = self._state.parser_state.feed_token, self._unexpected
        for index in range(self._skip, len(self._tokens)):
            token = self._tokens[index]
            try:
                feed(token)
                self._quiet = False
            except unexpected:
                self._repair(index, token)
                if self._found >= _MISTAKES_IN_A_PIECE:
                    return None
                feed = self._state.parser_state.feed_token
        return self._finish()

    def _finish(self) -> Any:
        end = Token(END, "", self._following.start, self._following.source)
        try:
            result = self._state.feed_token(end)
        except self._unexpected:
            self._quiet = self._quiet or self._unclosed
            self._report(len(self._tokens), *found_behind(self._tokens[-1], self._following))
            return None
        return result

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
            missing = Token(terminal, "", token.start, token.source)
            if self._would_fit(missing, token):
                self._state.feed_token(missing)
                self._state.feed_token(token)
                self._quiet = False
                # Who forgot the one parenthesis may have forgotten both.
                self._unclosed = self._unclosed or terminal == "_OPEN"
                return
        if token.text in _PAIRS:
            self._dropped.append(_PAIRS[token.text])
        self._quiet = True

    def _would_fit(self, *tokens: Token) -> bool:
        attempt = self._state.copy(deepcopy_values=False)
        # Without callbacks: they would change the lists that the attempt shares with the real state.
        attempt.parser_state.parse_conf = copy(attempt.parser_state.parse_conf)
        attempt.parser_state.parse_conf.callbacks = {}
        try:
            for token in tokens:
                attempt.feed_token(token)
        except self._unexpected:
            return False
        return True

    def _report(self, index: int, found: str, start: int, end: int) -> None:
        self._found += 1
        if self._quiet:
            return
        previous = self._tokens[index - 1]
        place = self._place(index)
        terminals = self._state.accepts()
        if index < len(self._tokens) and self._tokens[index].type != CONSTANT:
            terminals = terminals - {"_EQUALS"} or terminals
        if place == "clauses" and previous.type == NAME and "_COMMA" not in terminals:
            # A flag, or a clause without its colon.
            terminals = terminals | {"_COLON"}
        wanted = expected(terminals, *_CALLED[place])
        self._mistakes.add(f"expected {wanted} after {show(previous)}, found {found}", start, end)

    def _place(self, index: int) -> str:
        """Which part of the piece an index is in."""
        before = [token.text for token in self._tokens[self._skip : index]]
        if self._start == "statement":
            return "clauses" if "{" in before else "outputs" if ":" in before else "arguments"
        if self._start == "inputs" and before.count("(") > before.count(")"):
            return "attributes" if before[-1] in ("(", ",") else "type"
        return self._start
