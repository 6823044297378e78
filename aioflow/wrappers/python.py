"""Wrappers written in Python: async functions that fetch what they like and give rows."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from aioflow.errors import SettingError
from aioflow.function import parse_attributes
from aioflow.relation import Schema
from aioflow.web.messages import Request, Response
from aioflow.wrappers.definition import WrapperInput, health_key, whole_path

if TYPE_CHECKING:
    from aioflow.wrappers.health import Tally

WrapperFunction: TypeAlias = Callable[..., Awaitable[Any] | AsyncIterator[Any]]
_Function = TypeVar("_Function", bound=Callable[..., Any])
_REQUEST_DEFAULTS = {each.name: each.default for each in fields(Request)}


class Web:
    """What a wrapper in Python fetches with: the engine's client, with the run's cookies and permits.

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
        """The answer to a GET; an error status is an HttpStatusError."""
        return await self._answer(Request(url, **{**self._defaults, **request}))

    async def post(self, url: str, body: bytes, **request: Any) -> Response:
        settings = {"is_safe": False, **self._defaults, **request}
        return await self._answer(Request(url, "POST", body=body, **settings))

    async def fetch(self, request: Request) -> Response:
        """The answer to a request. Its permit, cookies and urgency are the run's unless it has its own."""
        open_ones = {
            name: value
            for name, value in self._defaults.items()
            if getattr(request, name) == _REQUEST_DEFAULTS[name]
        }
        return await self._answer(replace(request, **open_ones) if open_ones else request)

    async def _answer(self, request: Request) -> Response:
        from aioflow.wrappers.answers import accepted

        response = accepted(await self._send(request))
        if self._tally is not None:
            self._tally.pages += 1
        return response


@dataclass(frozen=True)
class PythonWrapper:
    """A registered wrapper function."""

    name: str
    call: WrapperFunction = field(repr=False)
    inputs: tuple[WrapperInput, ...]
    schema: Schema
    has_effects: bool = False
    file: str = field(default="", compare=False)

    @property
    def health_key(self) -> str:
        return health_key(self.name, self.file)


_wrappers: dict[str, PythonWrapper] = {}


def python_wrapper(name: str) -> PythonWrapper | None:
    """The wrapper registered under a name; names are case-insensitive."""
    return _wrappers.get(name.lower())


def python_wrapper_names() -> list[str]:
    return sorted(registered.name for registered in _wrappers.values())


def wrapper(
    *, inputs: str = "", returns: str, name: str | None = None, optional: str = "", effects: bool = False
) -> Callable[[_Function], _Function]:
    """Register an async function, or async generator, as a wrapper that plans can name.

    It is called as `function(web, *inputs)` for each tuple: `inputs` ("city char, beds number") are taken
    from the tuple by name; one that is null makes no call unless `optional` names it. It gives mappings with
    the attributes that `returns` declares: one, None, a list, or one after the other.
    """

    def register(decorated: _Function) -> _Function:
        if not (inspect.iscoroutinefunction(decorated) or inspect.isasyncgenfunction(decorated)):
            raise TypeError(f"wrapper {decorated.__name__!r} must be an async function or async generator")
        registered = name or decorated.__name__
        known = parse_attributes(inputs) if inputs else Schema(())
        may_be_null = set(parse_attributes(optional).names) if optional else set()
        if unknown := may_be_null - set(known.names):
            raise SettingError(f"wrapper {registered!r}: {min(unknown)!r} is optional but no input")
        given = tuple(
            WrapperInput(each, kind, each in may_be_null)
            for each, kind in zip(known.names, known.types, strict=True)
        )
        described = PythonWrapper(
            registered, decorated, given, parse_attributes(returns), effects, _file_of(decorated)
        )
        _wrappers[registered.lower()] = described
        return decorated

    return register


def _file_of(function: Callable[..., Any]) -> str:
    code = getattr(inspect.unwrap(function), "__code__", None)
    return "" if code is None else whole_path(code.co_filename)
