"""From the text of a grammar to its rules; all mistakes are found, a mistake loses one rule."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn, TypeVar

from aioflow.grammars.characters import ANY, CharacterSet
from aioflow.grammars.script.parser import RESERVED, ScriptParser
from aioflow.grammars.syntax import (
    Binding,
    Choice,
    CodeBlock,
    Item,
    Predicate,
    Prune,
    Repetition,
    Rule,
    RuleCall,
    Sequence,
    Terminals,
)
from aioflow.grammars.tokens import GrammarScanner, GrammarToken, unknown_character
from aioflow.language.mistakes import Mistakes

LONGEST_GRAMMAR = 1_000_000
_DEEPEST_NESTING = 50
_LONGEST_CHAIN = 200
_SIGNS_AT_MOST = 4

_T = TypeVar("_T")


class _Unreadable(Exception):  # noqa: N818  # never leaves the parser
    """The mistake is noted; the piece that has it cannot be read."""


class GrammarParser:
    """Reads one text from left to right; a grammar within a longer text begins at `start`."""

    def __init__(self, text: str, mistakes: Mistakes, start: int = 0) -> None:
        self.mistakes = mistakes
        self._scanner = GrammarScanner(text, mistakes)
        self._script = ScriptParser(self)
        self._place = start
        self._is_code = False
        self._token: GrammarToken | None = None
        self._depth = 0

    def rules(self) -> list[Rule]:
        """Return every rule, those with mistakes without their bodies."""
        found: list[Rule] = []
        while self.token.kind != "end":
            self._depth, self._is_code = 0, False
            rule = self.recovered(self._rule)
            if rule is None:
                self._skip_to_rule()
            else:
                found.append(rule)
        return found

    def _skip_to_rule(self) -> None:
        self._mode(is_code=False)
        while self.token.kind != "end" and self.token.text not in ("rule", "strict"):
            self.advance()

    # --- words ----------------------------------------------------------------------------------

    @property
    def token(self) -> GrammarToken:
        if self._token is None:
            self._token = self._scanner.token(self._place, self._is_code)
        return self._token

    def advance(self) -> GrammarToken:
        token = self.token
        self._place, self._token = token.end, None
        return token

    def _mode(self, is_code: bool) -> None:
        if self._is_code != is_code:
            self._is_code, self._token = is_code, None

    def accept(self, *texts: str) -> GrammarToken | None:
        """Take the next word if it is one of these."""
        token = self.token
        return self.advance() if token.text in texts and token.kind in ("word", "sign") else None

    def expect(self, text: str, why: str) -> GrammarToken:
        return self.accept(text) or self.fail(f"expected '{text}'{why}")

    def word(self, purpose: str, reserved: frozenset[str]) -> GrammarToken:
        """Take a name."""
        if self.token.kind != "word" or self.token.text in reserved:
            self.fail(f"expected {purpose}")
        return self.advance()

    def fail(self, expected: str) -> NoReturn:
        """Note `expected …, found …` at the next word."""
        token = self.token
        if token.kind == "broken":  # the scanner has noted it
            raise _Unreadable
        if token.kind == "unknown":
            self.fail_at(unknown_character(token.text), token.start)
        self.fail_at(f"{expected}, found {token.shown}", token.start, token.end)

    def fail_at(self, message: str, start: int, end: int | None = None) -> NoReturn:
        self.mistakes.add(message, start, end)
        raise _Unreadable

    def recovered(self, read: Callable[[], _T]) -> _T | None:
        """Return what `read` does, or None if it failed; its mistake is noted."""
        depth = self._depth
        try:
            return read()
        except _Unreadable:
            self._depth = depth
            return None

    @contextmanager
    def nested(self) -> Iterator[None]:
        """One level deeper, within the limit."""
        self._depth += 1
        if self._depth > _DEEPEST_NESTING:
            self.fail_at(f"nested too deeply: more than {_DEEPEST_NESTING} levels", self.token.start)
        yield
        self._depth -= 1

    def check_depth(self, length: int) -> None:
        if length > _LONGEST_CHAIN:
            self.fail_at("the expression is too long; assign parts of it to variables", self.token.start)

    # --- rules ----------------------------------------------------------------------------------

    def _rule(self) -> Rule:
        is_strict = self.accept("strict") is not None
        self.expect("rule", " after 'strict'" if is_strict else "")
        name = self.word("the name of the rule", RESERVED)
        rule = self.recovered(lambda: self._rest(name, is_strict))
        if rule is not None:
            return rule
        self._skip_to_rule()
        return Rule(name.text, "", is_strict, Sequence(()), name.start)

    def _rest(self, name: GrammarToken, is_strict: bool) -> Rule:
        result = ""
        if self.accept(":"):
            result = self.word("the name of the result variable", RESERVED).text
        self.expect("is", " before the body of the rule")
        body = self._choice()
        self.expect("end", " after the body of the rule")
        return Rule(name.text, result, is_strict, body, name.start)

    def _choice(self) -> Item:
        with self.nested():
            alternatives = [self._sequence()]
            while self.accept("|"):
                alternatives.append(self._sequence())
        return alternatives[0] if len(alternatives) == 1 else Choice(tuple(alternatives))

    def _sequence(self) -> Item:
        items: list[Item] = []
        while not self._at_end_of_sequence():
            items.append(self._item())
        if not items:
            self.fail("expected an item: a literal, a class, '.', a rule, or a group")
        return items[0] if len(items) == 1 else Sequence(tuple(items))

    def _at_end_of_sequence(self) -> bool:
        token = self.token
        if token.kind == "end":
            return True
        return token.kind in ("word", "sign") and token.text in ("|", ")", ";", "end", "if", "rule", "strict")

    def _item(self) -> Item:
        token = self.token
        if token.kind == "word":
            return self._worded(token)
        return self._repeated(self._primary())

    def _worded(self, token: GrammarToken) -> Item:
        if self.accept("do"):
            return self._code()
        if self.accept("accept"):
            return self._predicate(token)
        if self.accept("prune"):
            self.expect(";", " after 'prune'")
            return Prune()
        name = self.word("an item", RESERVED)
        if sign := self.accept("=", "+="):
            return _binding(name.text, sign.text == "+=", self._bound())
        return self._repeated(self._call(name))

    def _bound(self) -> Item:
        if self.token.kind == "word" and self.token.text not in RESERVED:
            return self._repeated(self._call(self.advance()))
        if self.token.kind == "word":
            self.fail("expected the item to assign")
        return self._repeated(self._primary())

    def _call(self, name: GrammarToken) -> RuleCall:
        if not self.accept("("):
            self.fail_at(
                f"'{name.text}' is neither called nor assigned to; write {name.text}() or {name.text}=…",
                name.start,
                name.end,
            )
        self.expect(")", f" after '{name.text}('; rules take no arguments")
        return RuleCall(name.text, name.start)

    def _primary(self) -> Item:
        token = self.token
        if token.kind == "literal":
            self.advance()
            return Terminals(tuple(map(_single, token.text)), token.text)
        if token.kind == "class" and token.characters is not None:
            self.advance()
            return Terminals((token.characters,), token.text)
        if self.accept("."):
            return Terminals((ANY,), ".")
        if self.accept("("):
            inner = self._choice()
            self.expect(")", " after the group")
            return inner
        if token.kind == "sign" and token.text in ("?", "*", "+"):
            self.fail_at(f"'{token.text}' follows no item that it could repeat", token.start)
        return self.fail("expected an item")

    def _repeated(self, item: Item) -> Item:
        count = 0
        while sign := self.accept("?", "*", "+"):
            item = Repetition(item, sign.text)  # type: ignore[arg-type]  # one of the signs
            count += 1
            if count > _SIGNS_AT_MOST:
                self.fail_at("too many signs of repetition", sign.start)
        return item

    def _predicate(self, token: GrammarToken) -> Predicate:
        item = self._choice()
        self.expect("if", " and a condition after the items of 'accept'")
        self._mode(is_code=True)
        condition = self._script.expression()
        self._mode(is_code=False)
        self.expect(";", " after the condition")
        return Predicate(item, condition, token.start)

    def _code(self) -> CodeBlock:
        self._mode(is_code=True)
        block = self._script.block("end")
        self._mode(is_code=False)
        return CodeBlock(block)


def _single(character: str) -> CharacterSet:
    return CharacterSet(((ord(character), ord(character)),))


def _binding(variable: str, collects: bool, item: Item) -> Item:
    """Return a binding; a repeated call is collected call by call."""
    if collects and isinstance(item, Repetition) and isinstance(item.item, RuleCall):
        return Repetition(Binding(variable, True, item.item), item.sign)
    return Binding(variable, collects, item)
