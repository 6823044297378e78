"""Python functions that plans call by name: for each tuple (apply), or for a relation (aggregate)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, Generic, TypeVar, overload

import msgspec

from aioflow.errors import SettingError, suggestion
from aioflow.relation import Schema, Type

_Function = TypeVar("_Function", bound=Callable[..., Any])


class Function(msgspec.Struct, frozen=True):
    """A function of one tuple, given as a mapping, or of the attributes that it takes.

    It returns a mapping, a scalar (for an attribute named like the function), None for no result, or many of
    these.
    """

    name: str
    call: Callable[..., Any]
    returns: Schema | None = None
    takes: tuple[str, ...] | None = None
    pure: bool = False
    blocking: bool = False
    source: str | None = None
    endless: bool = False
    doc: str = ""

    @property
    def is_async(self) -> bool:
        return inspect.iscoroutinefunction(self.call) or inspect.isasyncgenfunction(self.call)


class AggregateFunction(msgspec.Struct, frozen=True):
    """A function of the values of an attribute over a whole relation (without argument: of its tuples)."""

    name: str
    call: Callable[[Sequence[Any]], Any]
    type: Type | None = None
    same_type: bool = False
    skip_nulls: bool = True
    depends_on_arrival: bool = False
    doc: str = ""


_Named = TypeVar("_Named", Function, AggregateFunction)


class FunctionRegistry(Generic[_Named]):
    """Functions by name; names are case-insensitive."""

    def __init__(self, what: str) -> None:
        self.what = what
        self._functions: dict[str, _Named] = {}

    def add(self, function: _Named) -> None:
        self._functions[function.name.lower()] = function

    def get(self, name: str) -> _Named | None:
        return self._functions.get(name.lower())

    def names(self) -> list[str]:
        return sorted(self._functions)

    def __iter__(self) -> Iterator[_Named]:
        return iter([self._functions[name] for name in self.names()])

    def find(self, name: Any) -> _Named:
        """Return the function of that name; raise a SettingError with a suggestion when there is none."""
        found = self.get(name) if isinstance(name, str) else None
        if found is None:
            raise SettingError(f"unknown {self.what} {name!r}{suggestion(str(name), self.names())}")
        return found


functions: FunctionRegistry[Function] = FunctionRegistry("function")
aggregate_functions: FunctionRegistry[AggregateFunction] = FunctionRegistry("aggregate function")


class FunctionName:
    """A setting that names a registered function; the operator gets the Function."""

    kind_name: ClassVar[str] = "the name of a registered function"

    @classmethod
    def bind(cls, value: Any, inputs: Sequence[Schema | None]) -> Function:
        return functions.find(value)


@overload
def function(decorated: _Function, /) -> _Function: ...
@overload
def function(
    *,
    name: str | None = None,
    takes: str | None = None,
    returns: str | Schema | None = None,
    pure: bool = False,
    blocking: bool = False,
    source: str | None = None,
    endless: bool = False,
) -> Callable[[_Function], _Function]: ...
def function(decorated: Any = None, /, **traits: Any) -> Any:
    """Register a function that `apply` calls with each tuple.

    It gets the tuple as a mapping, or, with `takes="price, city"`, the values of those attributes as
    arguments. `returns` declares the attributes of its results ("price number, city char"), so that plans are
    checked against them. A function counts as one that changes the world, and is never stopped early, unless
    it is `pure`. A sync function that is `blocking` runs on a worker thread. `source` names the partition of
    the worker budget that its calls use. A generator that never ends is `endless`: plans in which a statement
    would wait for its end are refused.
    """
    if decorated is None:
        return lambda later: function_with(later, **traits)
    return function_with(decorated)


def function_with(decorated: _Function, **traits: Any) -> _Function:
    name = traits.pop("name", None) or decorated.__name__
    returns = traits.pop("returns", None)
    schema = parse_attributes(returns) if isinstance(returns, str) else returns
    takes = traits.pop("takes", None)
    names = None if takes is None else parse_attributes(takes).names
    functions.add(Function(name, decorated, schema, names, doc=inspect.getdoc(decorated) or "", **traits))
    return decorated


@overload
def aggregate_function(decorated: _Function, /) -> _Function: ...
@overload
def aggregate_function(
    *,
    name: str | None = None,
    type: str | None = None,
    same_type: bool = False,
    skip_nulls: bool = True,
    depends_on_arrival: bool = False,
) -> Callable[[_Function], _Function]: ...
def aggregate_function(
    decorated: Any = None,
    /,
    *,
    name: str | None = None,
    type: str | None = None,
    same_type: bool = False,
    skip_nulls: bool = True,
    depends_on_arrival: bool = False,
) -> Any:
    """Register a function that `aggregate` calls with the list of an attribute's values.

    `type` is the type of its result; with `same_type` that is the type of the argument.
    """

    def register(decorated: _Function) -> _Function:
        described = AggregateFunction(
            name or decorated.__name__,
            decorated,
            Type(type) if type else None,
            same_type,
            skip_nulls,
            depends_on_arrival,
            inspect.getdoc(decorated) or "",
        )
        aggregate_functions.add(described)
        return decorated

    return register if decorated is None else register(decorated)


def parse_attributes(text: str) -> Schema:
    """Return the schema that `city char, beds number, link` declares."""
    types: dict[str, str | None] = {}
    for part in text.split(","):
        words = part.split()
        if not 1 <= len(words) <= 2 or words[0] in types:
            raise SettingError(f"cannot read attributes {text!r}: expected 'name type, name type, …'")
        types[words[0]] = words[1].lower() if len(words) == 2 else None
    try:
        return Schema.of(**types)
    except ValueError as error:
        known = ", ".join(Type)
        raise SettingError(f"cannot read attributes {text!r}: {error} (types: {known})") from None
