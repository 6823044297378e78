"""GRAMMAR items of plan files, and files of rules: texts, mistakes, and the setting that names a grammar."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar

from msgspec.structs import replace

from aioflow.authoring.function import Function, functions
from aioflow.errors import Diagnostic, PlanError, SettingError, suggestion
from aioflow.grammars.errors import GrammarError
from aioflow.grammars.grammar import Grammar, compile_part
from aioflow.grammars.tokens import end_of_rules
from aioflow.language.kinds import ItemKind
from aioflow.plan import Program
from aioflow.relation import Schema
from aioflow.source import Source, Span

ITEM = "GRAMMAR"
_WORD = re.compile(r"[^\W\d]\w*")
_UNKNOWN_FUNCTION = re.compile(r"unknown function '(\w+)'")
_CLOSING_LINE = re.compile(r"^\}", re.MULTILINE)
_COMPILED_AT_MOST = 64


class GrammarText:
    """The text of a grammar: a part of a plan file, or a file of its own.

    Its rules may call the registered functions that are pure. It is compiled when it is first asked for,
    since functions may be registered until then. It takes the functions along to another process.
    """

    def __init__(
        self,
        name: str,
        source: Source,
        start: int,
        end: int,
        called: tuple[Function, ...] | None = None,
    ) -> None:
        self.name = name
        self._source = source
        self._start, self._end = start, end
        self._given = called

    def __repr__(self) -> str:
        # With its text: records of a job are found by what a wrapper is, its grammar included.
        return f"GrammarText({self.name!r}, {self._source.text[self._start : self._end]!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return GrammarText, (self.name, self._source, self._start, self._end, self._called())

    def grammar(self) -> Grammar:
        """Return the grammar; raise a GrammarError that lists every mistake."""
        return _compiled(self._source, self._start, self._end, self._called())

    def problems(self, program: Program) -> list[Diagnostic]:
        """Return the mistakes that remain when all functions are registered; the checker reports them."""
        return self.mistakes()

    def mistakes(self) -> list[Diagnostic]:
        """Return every mistake; names of functions are compared with all that are registered."""
        try:
            self.grammar()
        except GrammarError:
            pass
        else:
            return []
        try:
            compile_part(self._source, self._start, self._end, _calls(_callable()))
        except GrammarError as error:
            return [_explained(each) for each in error.errors]
        return []

    def _called(self) -> tuple[Function, ...]:
        """Return the registered functions whose names stand in the text."""
        if self._given is not None:
            return self._given
        words = set(_WORD.findall(self._source.text, self._start, self._end))
        return tuple(each for each in _callable() if each.name in words)

    @property
    def blocks(self) -> bool:
        """True if the grammar calls a function that may keep the event loop waiting."""
        return any(each.blocking for each in self._called())


@lru_cache(_COMPILED_AT_MOST)
def _compiled(source: Source, start: int, end: int, called: tuple[Function, ...]) -> Grammar:
    return compile_part(source, start, end, _calls(called))


def _callable() -> list[Function]:
    return [each for each in functions if each.pure and not each.is_async]


def _calls(called: Sequence[Function]) -> Mapping[str, Callable[..., Any]]:
    return {each.name: each.call for each in called}


def _explained(found: Diagnostic) -> Diagnostic:
    """Add why a registered function cannot be called."""
    unknown = _UNKNOWN_FUNCTION.match(found.message)
    function = functions.get(unknown[1]) if unknown else None
    if unknown is None or function is None or function.name != unknown[1]:
        return found
    reason = "it is a coroutine" if function.is_async else "it is not declared as pure"
    return replace(found, message=f"a grammar cannot call the function '{unknown[1]}': {reason}")


# --- names --------------------------------------------------------------------------------------


class GrammarName:
    """A setting that names a grammar of the program."""

    kind_name: ClassVar[str] = "the name of a GRAMMAR item"

    @classmethod
    def bind_item(cls, value: Any, inputs: Sequence[Schema | None], program: Program | None) -> GrammarText:
        return find_grammar(value, program)


def find_grammar(name: Any, program: Program | None) -> GrammarText:
    """Return the grammar of that name; raise a SettingError with a suggestion when there is none."""
    if not isinstance(name, str):
        raise SettingError(f"must be the name of a GRAMMAR item, not {name!r}")
    item = None if program is None else program.item(ITEM, name)
    if item is None:
        items = program.items if program is not None else ()
        known = [each.name for each in items if each.kind.upper() == ITEM]
        listed = f" (there are: {', '.join(known)})" if known else "; the program has none"
        raise SettingError(f"unknown grammar {name!r}{suggestion(name, known) or listed}")
    if isinstance(item.content, GrammarText):
        return item.content
    # An item that was built in Python has texts only.
    text = GrammarText(item.name, Source(f"<GRAMMAR {item.name}>", item.body), 0, len(item.body))
    try:
        text.grammar()
    except GrammarError as error:
        raise SettingError(f"the grammar {item.name!r} has mistakes:\n{error}") from None
    return text


# --- the item kind ------------------------------------------------------------------------------


def parse(name: str, header: str, body: str, header_span: Span, body_span: Span) -> GrammarText:
    """Return the text of a grammar; a PlanError lists every mistake in it.

    Functions may be registered later: if they are all that is missing, the check of the program says so.
    """
    text = GrammarText(name, body_span.source, body_span.start, body_span.end)
    found = text.mistakes()
    if header_span.start < header_span.end:
        found.insert(0, Diagnostic("a grammar has no header; rules stand between its braces", header_span))
    if all(_is_about_functions(each) for each in found):
        return text
    raise PlanError(found)


def _is_about_functions(found: Diagnostic) -> bool:
    return found.message.startswith(("unknown function", "a grammar cannot call"))


def end_of_grammar(text: str, start: int) -> int:
    """Return the brace that closes a grammar; if a mistake hides it, the next one that begins a line."""
    end = end_of_rules(text, start)
    if end >= 0:
        return end
    line = _CLOSING_LINE.search(text, start)
    return line.start() if line else -1


KIND = ItemKind(ITEM, parse, end_of_grammar, suffix=".jedi")
