"""Paths into JSON values: `a.b[0].c`, `items[*]`, `["odd key"]`, and all of RFC 9535.

Simple paths, which nearly all are, run by code of our own and tell their steps, so that a page can be read
while it arrives. python-jsonpath evaluates filters, slices and `..`, with patterns in linear time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec
from jsonpath import JSONPathEnvironment
from jsonpath.function_extensions import ExpressionType, FilterFunction

from aioflow.errors import SettingError
from aioflow.values.counters import UncomputableError
from aioflow.values.patterns import compiled

if TYPE_CHECKING:
    from jsonpath import JSONPath


class AnyStep:
    """The step `[*]`: every element of an array, every value of an object."""

    def __repr__(self) -> str:
        return "*"

    def __reduce__(self) -> str:
        return "ANY"


ANY: Final = AnyStep()
PathStep: TypeAlias = str | int | AnyStep
Place: TypeAlias = tuple[str | int, ...]  # where a value stands: keys and indexes from the top

_NAME = re.compile(r"""[^\s.\[\]"'*?(),]+""")
_INDEX = re.compile(r"\[\s*(-?(?:0|[1-9]\d{0,14}))\s*\]")
_STAR = re.compile(r"\[\s*\*\s*\]|\.\*")
_QUOTED = re.compile(r"""\[\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')\s*\]""", re.DOTALL)
_BEYOND = re.compile(r"\.\.|\?|[,:]")
# Each may walk over all values, inside of the walks before it.
_WALKS = re.compile(r"\.\.|\?")
_TEXTS = re.compile(r""""(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'""", re.DOTALL)
# The library takes some microseconds for each.
_MOST_STEPS = 20_000
_PLAIN_KEY = re.compile(r"[^\W\d][\w-]*")


class JsonPath(msgspec.Struct, frozen=True, dict=True):
    """A path, compiled. `steps` is None when it is beyond keys, indexes and `[*]`."""

    text: str
    steps: tuple[PathStep, ...] | None
    query: str  # the same in the words of RFC 9535

    @cached_property
    def degree(self) -> int:
        """Finding it takes steps of the order of (values of the page) to this power; 0 for simple paths."""
        return 0 if self.steps is not None else max(1, len(_WALKS.findall(_TEXTS.sub("", self.query))))

    @cached_property
    def is_singular(self) -> bool:
        """Return whether it leads to one value at most."""
        return self.steps is not None and ANY not in self.steps

    @cached_property
    def first(self) -> Callable[[Any], Any]:
        """A function to the first value that the path leads to; None when there is none."""
        if self.is_singular:
            return _getter(self.steps or ())
        return lambda value: next((found for _, found in self._walk(value)), None)

    def every(self, value: Any) -> list[Any]:
        """All the values that it leads to; an array at the end of a singular path stands for its elements."""
        found = [found for _, found in self._walk(value)]
        return found[0] if self.is_singular and found and isinstance(found[0], list) else found

    def places(self, value: Any, *, spread: bool = True) -> list[tuple[Place, Any]]:
        """`every`, with the place of each value; without `spread` an array stands for itself."""
        found = list(self._walk(value))
        if spread and self.is_singular and found and isinstance(found[0][1], list):
            place, elements = found[0]
            return [((*place, index), element) for index, element in enumerate(elements)]
        return found

    def _walk(self, value: Any) -> Iterator[tuple[Place, Any]]:
        if self.steps is not None:
            return _walk(value, self.steps, 0, ())
        if not isinstance(value, dict | list):
            return iter(())  # python-jsonpath would read a text as JSON
        return ((tuple(match.parts), match.obj) for match in compiled_query(self.query).finditer(value))

    def __getstate__(self) -> dict[str, Any]:
        return {"text": self.text, "steps": self.steps, "query": self.query}


def _getter(steps: tuple[PathStep, ...]) -> Callable[[Any], Any]:
    if len(steps) == 1 and isinstance(key := steps[0], str):
        return lambda value: value.get(key) if value.__class__ is dict else None

    def get(value: Any) -> Any:
        for step in steps:
            if value.__class__ is not (dict if step.__class__ is str else list):
                return None
            try:
                value = value[step]  # type: ignore[index]  # a singular path has no ANY
            except LookupError:
                return None
        return value

    return get


def _walk(value: Any, steps: tuple[PathStep, ...], done: int, place: Place) -> Iterator[tuple[Place, Any]]:
    if done == len(steps):
        yield place, value
        return
    for key, child in _children(value, steps[done]):
        yield from _walk(child, steps, done + 1, (*place, key))


def _children(value: Any, step: PathStep) -> Iterator[tuple[str | int, Any]]:
    if isinstance(value, dict):
        if step is ANY:
            yield from value.items()
        elif step in value:
            yield step, value[step]  # type: ignore[misc]  # `step` is a str: dicts of JSON have no other keys
    elif isinstance(value, list):
        if step is ANY:
            yield from enumerate(value)
        elif isinstance(step, int) and -len(value) <= step < len(value):
            yield step % len(value), value[step]


def is_steep(values: int, degree: int) -> bool:
    """Return whether a path of such a degree may block the event loop in a page of so many values."""
    return bool(degree and values**degree > _MOST_STEPS)


def own_name(name: str) -> JsonPath:
    """The path of a field without one: the key of its name."""
    return JsonPath(name, (name,), _query_of((name,)))


def shown_place(place: Place) -> str:
    """`$.items[3].name`"""
    return "$" + "".join(map(_shown_step, place))


def _shown_step(step: PathStep) -> str:
    if isinstance(step, str):
        return f".{step}" if _PLAIN_KEY.fullmatch(step) else f"[{json.dumps(step, ensure_ascii=False)}]"
    return f"[{step}]"


# --- compiling -----------------------------------------------------------------------------------


def compile_path(text: str) -> JsonPath:
    """The path that a text says; a SettingError with the offset of the mistake otherwise.

    `$` at its beginning may be left out: a path starts from the value that it is applied to.
    """
    if not text.strip():
        raise SettingError("the path is empty; write $ for the value itself", offset=0)
    start = len(text) - len(text.lstrip())
    end = len(text.rstrip())
    steps, stopped = _simple_steps(text, start, end)
    if stopped == end:
        return JsonPath(text, steps, _query_of(steps))
    query = _query_of(steps) + text[stopped:end]
    # What follows the simple part stands in the query at another place than in the text.
    shift = len(query) - end
    try:
        if text[stopped] not in ".[":
            raise SettingError("a step is expected", offset=stopped + shift)
        compiled_query(query)
    except SettingError as error:
        raise _mistake(text, stopped, error, shift) from None
    return JsonPath(text, None, query)


def _simple_steps(text: str, position: int, end: int) -> tuple[tuple[PathStep, ...], int]:
    """The steps that are simple, and where they stop."""
    steps: list[PathStep] = []
    if text[position] in "$@" and (position + 1 == end or text[position + 1] in ".["):
        position += 1
    elif match := _NAME.match(text, position, end):
        steps.append(match[0])
        position = match.end()
    elif text[position] == "*":
        steps.append(ANY)
        position += 1
    while position < end:
        step = _simple_step(text, position, end)
        if step is None:
            break
        steps.append(step[0])
        position = step[1]
    return tuple(steps), position


def _simple_step(text: str, position: int, end: int) -> tuple[PathStep, int] | None:
    if match := _STAR.match(text, position, end):
        return ANY, match.end()
    if text[position] == "." and (match := _NAME.match(text, position + 1, end)):
        return match[0], match.end()
    if match := _INDEX.match(text, position, end):
        return int(match[1]), match.end()
    if match := _QUOTED.match(text, position, end):
        return _unquoted(match[1], match.start(1)), match.end()
    return None


def _unquoted(quoted: str, offset: int) -> str:
    inner = quoted[1:-1]
    if quoted[0] == "'":
        inner = re.sub(
            r"\\(.)|(\")", lambda match: "'" if match[1] == "'" else "\\" + (match[1] or '"'), inner
        )
    try:
        return str(json.loads(f'"{inner}"', strict=False))
    except ValueError:
        raise SettingError(
            f"the name {quoted} has an escape that JSON does not know", offset=offset
        ) from None


def _query_of(steps: tuple[PathStep, ...]) -> str:
    return "$" + "".join(f"[{json.dumps(step) if isinstance(step, str) else step}]" for step in steps)


def _mistake(text: str, stopped: int, error: SettingError, shift: int) -> SettingError:
    """The mistake in our own words, unless the text goes beyond what is simple."""
    rest = text[stopped:]
    if _BEYOND.search(rest):
        offset = max(stopped, min(len(text.rstrip()), (error.offset or 0) - shift))
        return SettingError(f"bad path {text!r}: {error.message}", offset=offset)
    if rest.startswith("[]"):
        reason = "[] is no step; write [*] for every element"
    elif rest.startswith("["):
        reason = 'after "[" an index, * or a quoted name is expected, and "]" behind it'
    elif rest.startswith("."):
        reason = 'a name is expected after "."'
        stopped += 1
    else:
        reason = f'unexpected {rest[0]!r}; write a name with such characters as ["name"]'
    return SettingError(f"bad path {text!r}: {reason}", offset=min(stopped, len(text)))


@lru_cache(maxsize=256)
def compiled_query(query: str) -> JSONPath:
    """A query of RFC 9535; a SettingError with its offset when it is bad."""
    from jsonpath import JSONPathError

    from aioflow.wrappers.readers.json.path import environment

    try:
        return environment().compile(query)  # type: ignore[return-value]  # compounds are not in RFC 9535
    except JSONPathError as error:
        index = error.token.index if error.token is not None else -1
        message = str(error.message).replace("'TOKEN_", "'")
        raise SettingError(message, offset=index if index >= 0 else len(query)) from None


class _Environment(JSONPathEnvironment):
    max_recursion_depth = 1000  # pages are not deeper than the reader's own limit, which is lower


class _Matching(FilterFunction):
    """`match` and `search`: the library's own use patterns that a page could make run for hours."""

    arg_types = [ExpressionType.VALUE, ExpressionType.VALUE]  # noqa: RUF012  # as the base class has it
    return_type = ExpressionType.LOGICAL

    def __init__(self, form: str) -> None:
        self._form = form

    def __call__(self, value: object, pattern: object) -> bool:
        if not isinstance(value, str) or not isinstance(pattern, str):
            return False
        try:
            return compiled(self._form.replace("*", pattern)).found(value)
        except (SettingError, UncomputableError):
            return False  # a bad pattern matches nothing, says the RFC


@lru_cache(maxsize=1)
def environment() -> JSONPathEnvironment:
    made = _Environment(strict=True)
    made.function_extensions["match"] = _Matching(r"\A(?:*)\z")
    made.function_extensions["search"] = _Matching("(?:*)")
    return made
