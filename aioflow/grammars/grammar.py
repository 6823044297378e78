"""Compiled grammars, and sources that are parsed by them, whole or as they arrive."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from aioflow.errors import Diagnostic, InputError, suggestion
from aioflow.grammars.automaton import Automaton, TooManyNodesError
from aioflow.grammars.checking import (
    RuleVariable,
    assigned_variables,
    check_rules,
    items_within,
    rule_variables,
)
from aioflow.grammars.closures import Question
from aioflow.grammars.errors import GrammarError, ParseError
from aioflow.grammars.limits import ParseLimits, TextWindow
from aioflow.grammars.matching import Matching, PathEvent
from aioflow.grammars.parser import LONGEST_GRAMMAR, GrammarParser
from aioflow.grammars.replay import Replay, RuleMatch, SettledRecord, SourceSpan, script_error
from aioflow.grammars.script.interpreter import FailedCode
from aioflow.grammars.subsets import CACHE_BYTES_AT_MOST, Subsets
from aioflow.grammars.syntax import Predicate, Rule, RuleCall
from aioflow.language.mistakes import Mistakes
from aioflow.source import Source, Span

_REMEMBERED_ANSWERS = 10_000
_FORGOTTEN_AT_LEAST = 4096  # characters at once
_LONGEST_REMEMBERED = 200


class ParsedSource(msgspec.Struct, frozen=True):
    """The best interpretation of a source.

    `value` is the result of the start rule, `variables` are its variables, `output` is what code printed, and
    `skipped` has the spans that nothing matched. `match` is the tree of rules if it was asked for.
    """

    value: Any
    variables: dict[str, Any]
    output: str
    skipped: list[SourceSpan]
    match: RuleMatch | None = None


class Grammar:
    """A grammar without mistakes. What one source taught its matcher makes the next ones faster."""

    def __init__(
        self,
        source: Source,
        rules: Iterable[Rule],
        functions: Mapping[str, Callable[..., Any]],
        part: tuple[int, int],
    ) -> None:
        self.source = source
        self._part = part
        self.rules: Mapping[str, Rule] = {rule.name: rule for rule in rules}
        self.functions = dict(functions)
        self._automaton = Automaton(self.rules)
        self._subsets = Subsets(self._automaton)
        try:
            self._automaton.compile_all()
        except TooManyNodesError as error:
            span = Span(source, error.rule.offset, error.rule.offset + len(error.rule.name))
            raise GrammarError(
                [Diagnostic(f"the rule '{error.rule.name}' makes the grammar too large", span)]
            ) from error

    def __repr__(self) -> str:
        return f"Grammar({self.source.name!r}, rules={list(self.rules)})"

    def __reduce__(self) -> tuple[object, ...]:
        return compile_part, (self.source, *self._part, self.functions)

    def parse(
        self,
        source: str,
        start: str | None = None,
        *,
        limits: ParseLimits | None = None,
        traces: bool = False,
    ) -> ParsedSource:
        """Return the best interpretation of a source; with `traces`, also the tree of its rules."""
        stream = self.stream(start, limits=limits, traces=traces, settles=False)
        stream.feed(source)
        return stream.finish()

    def stream(
        self,
        start: str | None = None,
        *,
        limits: ParseLimits | None = None,
        traces: bool = False,
        keeps: bool = True,
        settles: bool = True,
    ) -> ParseStream:
        """Return the parse of a source that arrives in pieces."""
        return ParseStream(self, self.start_rule(start), limits or ParseLimits(), traces, keeps, settles)

    def start_rule(self, name: str | None) -> str:
        """Return the rule to begin with: by default the only one that no rule calls."""
        if name is None:
            called = {
                item.name
                for rule in self.rules.values()
                for item in items_within(rule.body)
                if isinstance(item, RuleCall) and item.name != rule.name
            }
            uncalled = [each for each in self.rules if each not in called]
            if len(uncalled) != 1:
                raise InputError(f"which rule begins? name one as start: {', '.join(uncalled or self.rules)}")
            return uncalled[0]
        if name not in self.rules:
            raise InputError(f"the grammar has no rule {name!r}{suggestion(name, self.rules)}")
        return name

    def variables(self, rule: str) -> dict[str, RuleVariable]:
        """Return the variables of a rule in the order of its text."""
        return rule_variables(self.rules[rule])

    def returns_record(self, rule: str) -> bool:
        """Return whether the value of a rule is the record of its variables."""
        result = self.rules[rule].result
        return bool(result) and result not in assigned_variables(self.rules[rule])

    def subsets(self, start: str) -> Subsets:
        """Return the states that are known so far; a new set if they have become too many."""
        if not self._automaton.can_finish(start):
            raise ParseError(
                f"the rule '{start}' can never finish: every way through it calls itself again", 0, start
            )
        if self._subsets.bytes_used > CACHE_BYTES_AT_MOST:
            self._subsets = Subsets(self._automaton)
        return self._subsets


class ParseStream:
    """A source that arrives in pieces: feed them, then finish.

    `keeps` false forgets each record after it was returned, so that a source may be endless.
    """

    def __init__(
        self, grammar: Grammar, start: str, limits: ParseLimits, traces: bool, keeps: bool, settles: bool
    ) -> None:
        self._grammar = grammar
        self._window = TextWindow()
        self._answers: dict[tuple[int, str], bool] = {}
        self._matching = Matching(grammar.subsets(start), start, limits, self._window, self._holds)
        self._replay = Replay(
            self._window, grammar.source, grammar.functions, self._matching.begin_piece(), traces, keeps
        )
        self._settles = settles
        self._forgotten = 0
        self._keeps = keeps

    def feed(self, text: str) -> list[SettledRecord]:
        """Take the next piece; return the records that the rest of the source cannot change any more."""
        self._window.add(text)
        self._replay.interpreter.deadline = self._matching.begin_piece()
        self._matching.feed(text)
        if not self._settles:
            return []
        self._advance(self._matching.settled())
        if self._window.end - self._forgotten > _FORGOTTEN_AT_LEAST:
            self._forgotten = self._window.end
            self._window.drop(min(self._replay.forget(), self._matching.settled_until))
        return self._new_records()

    def finish(self) -> ParsedSource:
        """Return the best interpretation of the whole source."""
        self._replay.interpreter.deadline = self._matching.begin_piece()
        self._advance(self._matching.finish())
        replay = self._replay
        output = self.take_output()
        return ParsedSource(replay.value, replay.variables, output, replay.skipped, replay.match)

    def take_output(self) -> str:
        """Return what code has printed since the last call; `finish` no longer has it."""
        return self._replay.interpreter.take_output()

    def last_records(self) -> list[SettledRecord]:
        """Return the records that were settled by the end of the source; call it after `finish`."""
        return self._new_records()

    def _new_records(self) -> list[SettledRecord]:
        found = self._replay.settled
        self._replay.settled = []
        return found

    def _advance(self, events: list[PathEvent]) -> None:
        for event in events:
            self._replay.advance(event)

    def _holds(self, question: Question, text: str, offset: int) -> bool:
        predicate, _ = question
        key = (id(predicate), text)
        known = self._answers.get(key)
        if known is None:
            known = self._asked(predicate, text, offset)
            if len(text) <= _LONGEST_REMEMBERED and len(self._answers) < _REMEMBERED_ANSWERS:
                self._answers[key] = known
        return known

    def _asked(self, predicate: Predicate, text: str, offset: int) -> bool:
        try:
            return self._replay.interpreter.holds(predicate.condition, text)
        except FailedCode as failure:
            grammar = self._grammar.source
            raise script_error(failure, grammar, self._matching.rule, offset) from failure


def replayed(grammar: Grammar, source: str, events: Iterable[PathEvent]) -> ParsedSource:
    """Return what a path through a whole source gives, with the tree of its rules."""
    window = TextWindow()
    window.add(source)
    replay = Replay(window, grammar.source, grammar.functions, float("inf"), traces=True)
    for event in events:
        replay.advance(event)
    output = replay.interpreter.take_output()
    return ParsedSource(replay.value, replay.variables, output, replay.skipped, replay.match)


def compile(
    text: str, functions: Mapping[str, Callable[..., Any]] | None = None, name: str = "<grammar>"
) -> Grammar:
    """Return the grammar of a text; raise a GrammarError with all of its mistakes.

    `functions` can be called in code blocks and predicates. `name` is the name of the text in messages.
    """
    return compile_part(Source(name, text), 0, len(text), functions)


def compile_part(
    source: Source, start: int, end: int, functions: Mapping[str, Callable[..., Any]] | None = None
) -> Grammar:
    """Return the grammar that stands between two offsets of a longer text; its mistakes have places there."""
    mistakes = Mistakes(source)
    if end - start > LONGEST_GRAMMAR:
        mistakes.add(f"the grammar is too long: more than {LONGEST_GRAMMAR:,} characters", start)
        raise GrammarError(mistakes.diagnostics())
    rules = GrammarParser(source.text[:end], mistakes, start).rules()
    check_rules(rules, functions or {}, mistakes, start)
    if mistakes:
        raise GrammarError(mistakes.diagnostics())
    return Grammar(source, rules, functions or {}, (start, end))
