"""Fits a statement's settings to the schemas of its inputs, and locates each one that does not fit."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any, Final, TypeVar

import msgspec

from aioflow.authoring.operator import Operator, Settings, Trait
from aioflow.authoring.setting import SettingPort
from aioflow.compiler.parameters import UNKNOWN, place_before_substitution, substitute
from aioflow.compiler.resolution import Resolved, not_positive, option_span
from aioflow.errors import Diagnostic, PlanError, SettingError
from aioflow.plan import Constant
from aioflow.relation import Schema
from aioflow.source import Span

_Result = TypeVar("_Result")

FAILURE = Schema.of(**{"error": "char", "error-kind": "char", "attempts": "number"})
FAILED_RELATION = Schema.of(relation="relation").add(FAILURE)
FAILED_CALL = Schema.of(where="char", tuple="relation").add(FAILURE)

_LITERAL: Final = re.compile(r"""(?P<raw>\b[rR])?(?:\"\"\"|["'])""")
_ESCAPE: Final = re.compile(r"\\(?:x.{2}|u.{4}|U.{8}|.)", re.DOTALL)


class Fit(msgspec.Struct, frozen=True):
    """The result of fitting a statement on an operator to certain input schemas and parameters.

    `bound` is None when a setting is wrong or not known yet; an output's schema is None when only
    the run will tell.
    """

    bound: Settings | None
    outputs: tuple[Schema | None, ...]
    problems: tuple[Diagnostic, ...] = ()


def fit(resolved: Resolved, parameters: Mapping[str, Any], inputs: Sequence[Schema | None]) -> Fit:
    """Bind the settings of a statement on an operator and work out the schemas of its outputs."""
    operator = resolved.target
    assert isinstance(operator, Operator)
    return _Fitting(resolved, operator, parameters, inputs).fit()


def errors_schema(resolved: Resolved, inputs: Sequence[Schema | None]) -> Schema | None:
    """Return the schema of the rows in a statement's ERRORS."""
    if resolved.plan is not None:
        return FAILED_CALL
    operator = resolved.target
    if isinstance(operator, Operator) and operator.fails_by_tuple(resolved.settings, len(inputs)):
        first = inputs[0] if inputs else Schema(())
        return first.add(FAILURE) if first is not None else None
    return FAILED_RELATION


def value_or_unknown(value: Constant, parameters: Mapping[str, Any]) -> Any:
    """Return a constant with its parameters filled in; UNKNOWN if one is missing, which `check` reports."""
    try:
        return substitute(value, parameters)
    except SettingError:
        return UNKNOWN


def wrong_numbers(resolved: Resolved, parameters: Mapping[str, Any]) -> Iterator[Diagnostic]:
    """Yield the mistakes in WORKERS and BUFFER once the parameters are known."""
    for name, value in (("workers", resolved.workers), ("buffer", resolved.buffer)):
        number = value_or_unknown(value, parameters)
        problem = None if value is None or number is UNKNOWN else not_positive(number)
        if problem:
            options = resolved.statement.options
            span = next((option_span(option) for option in options if option.name.lower() == name), None)
            yield Diagnostic(f"{name.upper()} {problem}", span)


def has_trait(operator: Operator, trait: Trait, settings: Mapping[str, Any], *, unknown: bool) -> bool:
    """Return whether an operator with these settings has a trait; `unknown` when a parameter decides it."""
    if not callable(getattr(operator, trait)):
        return operator.has(trait, {})
    try:
        return operator.has(trait, operator.bind(settings, (None,) * len(operator.inputs)))
    except SettingError:
        return unknown


class _UnknownSettingError(Exception):
    """A setting was asked for that is wrong or not known yet."""


class _PartOfSettings(Mapping[str, Any]):
    """The settings that are known: output schemas that depend on no other are known as well."""

    def __init__(self, known: Mapping[str, Any]) -> None:
        self._known = known

    def __getitem__(self, name: str) -> Any:
        if name not in self._known:
            raise _UnknownSettingError(name)
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)


class _Fitting:
    def __init__(
        self,
        resolved: Resolved,
        operator: Operator,
        parameters: Mapping[str, Any],
        inputs: Sequence[Schema | None],
    ) -> None:
        self.resolved = resolved
        self.operator = operator
        self.parameters = parameters
        self.inputs = inputs
        self.problems: list[Diagnostic] = []

    def fit(self) -> Fit:
        bound = self._bound()
        self.problems += wrong_numbers(self.resolved, self.parameters)
        whole = len(bound) == len(self.operator.settings)
        settings = bound if whole else _PartOfSettings(bound)
        outputs = None
        if not self.resolved.has_wrong_inputs:
            outputs = self._attempt(lambda: self.operator.output_schemas(self.inputs, settings))
        unknown = (None,) * len(self.operator.outputs)
        return Fit(bound if whole else None, outputs or unknown, tuple(self.problems))

    def _bound(self) -> dict[str, Any]:
        """Bind each setting by itself, so that every wrong one is found; leave out wrong and unknown ones."""
        bound: dict[str, Any] = {}
        given = self.resolved.settings

        def bind(port: SettingPort, value: Any) -> Any:
            return port.bind(value, self.inputs, self.operator.program)

        for port in self.operator.settings:
            if port.name in self.resolved.unknown:
                continue
            if port.name not in given:
                left_out = self._attempt(lambda port=port: (port.default_for(self.inputs),))  # type: ignore[misc]
                if left_out is not None:
                    bound[port.name] = left_out[0]
                continue
            value = value_or_unknown(given[port.name], self.parameters)
            if value is UNKNOWN:
                continue
            # Bound at once: the closures do not outlive this round.
            converted = self._attempt(lambda port=port, value=value: (bind(port, value),))  # type: ignore[misc]
            if converted is not None:
                bound[port.name] = converted[0]
        return bound

    def _attempt(self, work: Callable[[], _Result]) -> _Result | None:
        """Return the result of an operator's code; None, and the problem noted, when it refuses or fails."""
        try:
            return work()
        except _UnknownSettingError:
            return None
        except SettingError as error:
            self.problems.append(describe(error, self.resolved, self.parameters))
        except PlanError:  # of an item that a setting names: its mistakes are told where they stand
            return None
        except Exception as error:
            # The fault of a plug-in; the user still has to learn which statement meets it.
            message = f"{self.operator.name} cannot be checked: {type(error).__name__}: {error}"
            self.problems.append(Diagnostic(message, self.resolved.statement.name_span))
        return None


def describe(error: SettingError, resolved: Resolved, parameters: Mapping[str, Any]) -> Diagnostic:
    """Return a wrong setting as a message with the place in the plan where it stands."""
    message = error.message
    if message.startswith("must ") and error.setting:
        message = f"{resolved.target.name}: {error.setting!r} {message}"
    return Diagnostic(message, _place(error, resolved, parameters) or resolved.statement.name_span)


def _place(error: SettingError, resolved: Resolved, parameters: Mapping[str, Any]) -> Span | None:
    name = (error.setting or "").lower()
    span = resolved.setting_spans.get(name)
    value = resolved.settings.get(name)
    if span is None or error.offset is None or not isinstance(value, str):
        return span
    return inside_literal(span, place_before_substitution(value, parameters, error.offset))


def inside_literal(span: Span, offset: int) -> Span:
    """Return the place in the source of a character of a string, whose literal stands at `span`."""
    start, escapes = _escapes(span)
    if start < 0:
        return span
    before = bisect_left(escapes, offset, key=itemgetter(0))
    return span.at(start + offset + (escapes[before - 1][1] if before else 0))


@lru_cache(maxsize=4)
def _escapes(span: Span) -> tuple[int, list[tuple[int, int]]]:
    """Return the offset of the first string in a span, and its escapes.

    Each as the place of its character in the value, and by how much the literal is longer up to its end.
    """
    text = span.source.text[span.start : span.end]
    literal = _LITERAL.search(text)
    if literal is None:
        return -1, []
    start, longer = literal.end(), 0
    escapes = []
    for escape in () if literal["raw"] else _ESCAPE.finditer(text, start):
        place = escape.start() - start - longer
        longer += len(escape[0]) - 1
        escapes.append((place, longer))
    return start, escapes
