"""Parameters of plans: `$name` and `${name}` in constants, and the values that a call has for them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any, Final

import msgspec

from aioflow.errors import SettingError, suggestion
from aioflow.plan import NAME_PATTERN, Constant, ParameterReference, Plan


class Unknown:
    """The value of a parameter that only a caller can tell."""

    def __repr__(self) -> str:
        return "unknown"


UNKNOWN: Final = Unknown()

# Always there. The values stand in for those of a run when a plan is checked: they have the same types.
BUILT_IN: Final[Mapping[str, Any]] = {"run-id": "0", "task-id": "0", "started": "2000-01-01T00:00:00"}

_PLACEHOLDER = re.compile(rf"\$(?P<literal>\$)?\{{(?:(?P<name>{NAME_PATTERN})\}})?")


class Reference(msgspec.Struct, frozen=True):
    """A use of a parameter in a constant; `offset` is its place inside a string."""

    name: str
    offset: int | None = None


def references(value: object) -> Iterator[Reference]:
    """Yield every use of a parameter in a constant; one with an empty name is a `${` that names none."""
    if isinstance(value, ParameterReference):
        yield Reference(value.name)
    elif isinstance(value, str):
        if "${" in value:
            for match in _PLACEHOLDER.finditer(value):
                if not match["literal"]:
                    yield Reference(match["name"] or "", match.start())
    elif isinstance(value, tuple):
        for member in value:
            yield from references(member)


def substitute(value: Constant, parameters: Mapping[str, Any]) -> Any:
    """Return a constant with the values of its parameters put in; `parameters` has lower-case names.

    UNKNOWN when it depends on a parameter that is; a SettingError when there is no such parameter.
    """
    if isinstance(value, ParameterReference):
        return _value_of(value.name, parameters)
    if isinstance(value, str):
        return _fill(value, parameters) if "${" in value else value
    if isinstance(value, tuple):
        members = tuple(substitute(member, parameters) for member in value)
        return UNKNOWN if UNKNOWN in members else members
    return value


def _fill(text: str, parameters: Mapping[str, Any]) -> Any:
    for reference in references(text):
        if reference.name and _value_of(reference.name, parameters) is UNKNOWN:
            return UNKNOWN
    return _PLACEHOLDER.sub(lambda match: _replacement(match, parameters), text)


def _replacement(match: re.Match[str], parameters: Mapping[str, Any]) -> str:
    if match["literal"]:
        return match[0][1:]
    if not match["name"]:
        return match[0]
    return as_text(_value_of(match["name"], parameters))


def place_before_substitution(text: str, parameters: Mapping[str, Any], offset: int) -> int:
    """Return the offset in a string as written of an offset in what `substitute` made of it."""
    shift = 0
    for match in _PLACEHOLDER.finditer(text):
        start = match.start() + shift
        if offset < start:
            break
        width = len(_replacement(match, parameters))
        if offset < start + width:
            return match.start()
        shift += width - len(match[0])
    return offset - shift


def _value_of(name: str, parameters: Mapping[str, Any]) -> Any:
    try:
        return parameters[name.lower()]
    except KeyError:
        raise SettingError(f"unknown parameter {name!r}{suggestion(name, parameters)}") from None


def as_text(value: Any) -> str:
    """Return a value as it stands inside a string: numbers and dates in full, lists with commas."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, tuple | list):
        return ", ".join(map(as_text, value))
    return str(value)


def complete(plan: Plan, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return all parameters of a plan by lower-case name: as given, the default, or else UNKNOWN."""
    values = {name: given.get(name, default) for name, default in BUILT_IN.items()}
    for parameter in plan.parameters:
        key = parameter.name.lower()
        if key in BUILT_IN:  # a mistake, reported where it is declared
            continue
        if key in given:
            values[key] = given[key]
        elif parameter.required:
            values[key] = UNKNOWN
        else:
            values[key] = _default(parameter.default, values)
    return values


def _default(value: Constant, earlier: Mapping[str, Any]) -> Any:
    """Return a default, which may use earlier parameters; UNKNOWN for a wrong one, which `check` reports."""
    try:
        return substitute(value, earlier)
    except SettingError:
        return UNKNOWN


class ParameterScope(msgspec.Struct, frozen=True):
    """The parameter values in force in one call of a plan.

    `enclosing` holds those of the other plans of a mutual recursion that this call is part of: a
    recursive call keeps the parameters that it does not set, from the nearest call of the same plan.
    """

    plan: Plan
    values: Mapping[str, Any]
    enclosing: Mapping[str, Mapping[str, Any]] = msgspec.field(default_factory=dict)

    @classmethod
    def outermost(cls, plan: Plan, given: Mapping[str, Any]) -> ParameterScope:
        return cls(plan, complete(plan, {name.lower(): value for name, value in given.items()}))

    def enter(self, plan: Plan, given: Mapping[str, Any], *, recursive: bool) -> ParameterScope:
        """Return the scope of a call made in this one, which gives these values (after `substitute`)."""
        built_in = {name: self.values[name] for name in BUILT_IN}
        if not recursive:
            return ParameterScope(plan, complete(plan, {**built_in, **given}))
        around = {**self.enclosing}
        if self.plan.parameters:
            around[self.plan.key] = self.values
        kept = around.pop(plan.key, {})
        return ParameterScope(plan, complete(plan, {**kept, **built_in, **given}), around)

    @property
    def key(self) -> tuple[object, ...]:
        """Hashable; equal for equal values only (1, 1.0 and true are three)."""
        rest = ((name, _frozen(values)) for name, values in sorted(self.enclosing.items()))
        return (self.plan.key, _frozen(self.values), *rest)


def _frozen(values: Mapping[str, Any]) -> tuple[tuple[str, str, str], ...]:
    return tuple((name, type(value).__name__, repr(value)) for name, value in sorted(values.items()))
