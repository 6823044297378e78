"""Wrappers written in Python: async functions that fetch pages and return rows."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from dataclasses import fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import msgspec

from aioflow.authoring.function import parse_attributes
from aioflow.errors import SettingError, suggestion
from aioflow.relation import Batch, Row, Schema, Type, Value
from aioflow.values.coercion import Coercion, row_of_mapping, shown, value_of
from aioflow.web.errors import ExtractionError
from aioflow.web.http import Request, Response
from aioflow.wrappers.definition import WrapperInput
from aioflow.wrappers.input_values import misfit

if TYPE_CHECKING:
    from aioflow.wrappers.health import Tally

WrapperFunction: TypeAlias = Callable[..., Awaitable[Any] | AsyncIterator[Any]]
_Function = TypeVar("_Function", bound=Callable[..., Any])
_REQUEST_DEFAULTS = {each.name: each.default for each in fields(Request)}


class Web:
    """The client of a wrapper in Python: the engine's own, with the cookies and permits of the run.

    `send` answers requests, `defaults` are for what a request leaves open, `tally` counts the pages.
    """

    def __init__(
        self,
        send: Callable[[Request], Awaitable[Response]],
        defaults: Mapping[str, Any] | None = None,
        tally: Tally | None = None,
    ) -> None:
        self._send = send
        self._defaults = defaults or {}
        self._tally = tally

    async def get(self, url: str, **request: Any) -> Response:
        """Return the answer to a GET; an error status is an HttpStatusError."""
        return await self._answer(Request(url, **{**self._defaults, **request}))

    async def post(self, url: str, body: bytes, **request: Any) -> Response:
        settings = {"is_safe": False, **self._defaults, **request}
        return await self._answer(Request(url, "POST", body=body, **settings))

    async def fetch(self, request: Request) -> Response:
        """Return the response to a request. Its permit, cookies and urgency are by default the run's."""
        open_ones = {
            name: value
            for name, value in self._defaults.items()
            if getattr(request, name) == _REQUEST_DEFAULTS[name]
        }
        return await self._answer(replace(request, **open_ones) if open_ones else request)

    async def _answer(self, request: Request) -> Response:
        from aioflow.wrappers.calls import accepted

        response = accepted(await self._send(request))
        if self._tally is not None:
            self._tally.add_page(response.url)
        return response


class PythonWrapper(msgspec.Struct, frozen=True, dict=True):
    """A registered wrapper function."""

    name: str
    call: WrapperFunction
    inputs: tuple[WrapperInput, ...]
    schema: Schema
    has_effects: bool = False

    @property
    def page_fields(self) -> tuple[str, ...]:
        """The attributes that may be found in pages: all but those that are inputs."""
        given = {each.name for each in self.inputs}
        return tuple(name for name in self.schema.names if name not in given)

    @property
    def counting_fields(self) -> tuple[str, ...]:
        """Empty, since it is unknown which fields of a function count."""
        return ()

    @cached_property
    def inputs_fitting(self) -> Coercion:
        """The conversion of inputs to the types of the function."""
        return Coercion(((given.name, given.type) for given in self.inputs), misfit)

    @cached_property
    def _fitting(self) -> Coercion:
        return Coercion(zip(self.schema.names, self.schema.types, strict=True), self._misfit)

    def rows(self, results: object) -> Batch:
        """Return the function's results as rows; raise an ExtractionError or TypeError for invalid ones."""
        if results is None:
            return []
        if isinstance(results, Mapping):
            results = (results,)
        if isinstance(results, str | bytes) or not isinstance(results, Iterable):
            what = "a mapping, None, or a list of mappings"
            raise TypeError(f"wrapper {self.name!r} must give {what}, not {shown(results)}")
        return [self.row(result) for result in results]

    def row(self, result: object) -> Row:
        """One result as a row."""
        if not isinstance(result, Mapping):
            raise TypeError(f"wrapper {self.name!r} must give mappings, not {shown(result)}")
        try:
            row = tuple([value_of(value) for value in row_of_mapping(self.schema, result)])
        except SettingError as error:
            raise ExtractionError(f"wrapper {self.name!r}: {error.message}") from None
        return self._fitting.fitted(row)

    def _misfit(self, name: str, value: Value, kind: Type) -> ExtractionError:
        return ExtractionError(
            f"wrapper {self.name!r}: the attribute {name!r} must be a {kind}, not {shown(value)}"
        )


_wrappers: dict[str, PythonWrapper] = {}


def python_wrapper(name: str) -> PythonWrapper | None:
    """Return the wrapper registered under a name; names are case-insensitive."""
    return _wrappers.get(name.lower())


def python_wrapper_names() -> list[str]:
    return sorted(registered.name for registered in _wrappers.values())


def wrapper(
    *, inputs: str = "", returns: str, name: str | None = None, optional: str = "", effects: bool = False
) -> Callable[[_Function], _Function]:
    """Register an async function, or async generator, as a wrapper that plans can name.

    It is called as `function(web, *inputs)` for each tuple: `inputs` ("city char, beds number") are taken
    from the tuple by name. A null makes no call unless `optional` names the input. It gives mappings with
    the attributes that `returns` declares: one, None, a list, or one after the other. Values of other types
    than declared are converted, "5" to a number. A value that cannot be is an error of that tuple.
    """

    def register(decorated: _Function) -> _Function:
        registered: str = name or getattr(decorated, "__name__", "") or repr(decorated)
        if not (inspect.iscoroutinefunction(decorated) or inspect.isasyncgenfunction(decorated)):
            raise TypeError(f"wrapper {registered!r} must be an async function or async generator")
        known = _attributes(registered, "inputs", inputs) if inputs else Schema(())
        may_be_null = set(_attributes(registered, "optional", optional).names) if optional else set()
        if unknown := may_be_null - set(known.names):
            raise SettingError(f"wrapper {registered!r}: {min(unknown)!r} is optional but no input")
        given = tuple(
            WrapperInput(each, kind, each in may_be_null)
            for each, kind in zip(known.names, known.types, strict=True)
        )
        _check_parameters(registered, decorated, known.names)
        results = _attributes(registered, "returns", returns)
        described = PythonWrapper(registered, decorated, given, results, effects)
        _wrappers[registered.lower()] = described
        return decorated

    return register


def _attributes(wrapper: str, what: str, text: str) -> Schema:
    """Return the attributes that a text of a registration declares."""
    if not isinstance(text, str):
        raise TypeError(
            f"wrapper {wrapper!r}: {what} must be a text as 'city char, beds number', not {text!r}"
        )
    for declared in text.split(","):
        kind = declared.split()[1:]
        if len(kind) == 1 and kind[0].lower() not in tuple(Type):
            hint = suggestion(kind[0], map(str, Type)) or f" (there are: {', '.join(Type)})"
            raise SettingError(f"wrapper {wrapper!r}: unknown type {kind[0]!r} in {what} {text!r}{hint}")
    try:
        return parse_attributes(text)
    except SettingError as error:
        raise SettingError(f"wrapper {wrapper!r}, {what}: {error.message}") from None


def _check_parameters(wrapper: str, function: Callable[..., Any], names: tuple[str, ...]) -> None:
    """The function can be called with what it will be called with."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return  # it does not tell
    try:
        signature.bind(None, *names)
    except TypeError as error:
        call = ", ".join(("web", *names))
        raise TypeError(f"wrapper {wrapper!r} is called as ({call}) and takes {signature}: {error}") from None
