"""Wrappers written in Python: async functions that fetch what they like and give rows."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

from aioflow.errors import SettingError
from aioflow.function import parse_attributes
from aioflow.relation import Schema
from aioflow.web.messages import Request, Response
from aioflow.wrappers.definition import WrapperInput

WrapperFunction: TypeAlias = Callable[..., Awaitable[Any] | AsyncIterator[Any]]
_Function = TypeVar("_Function", bound=Callable[..., Any])


class Web:
    """What a wrapper in Python fetches with: the engine's client, with the run's cookies and permits."""

    def __init__(self, send: Callable[[Request], Awaitable[Response]], defaults: Mapping[str, Any]) -> None:
        self._send = send
        self._defaults = defaults

    async def get(self, url: str, **request: Any) -> Response:
        """The answer to a GET; an error status is an HttpStatusError."""
        return await self.fetch(Request(url, **{**self._defaults, **request}))

    async def post(self, url: str, body: bytes, **request: Any) -> Response:
        settings = {"is_safe": False, **self._defaults, **request}
        return await self.fetch(Request(url, "POST", body=body, **settings))

    async def fetch(self, request: Request) -> Response:
        from aioflow.wrappers.answers import accepted

        return accepted(await self._send(request))


@dataclass(frozen=True)
class PythonWrapper:
    """A registered wrapper function."""

    name: str
    call: WrapperFunction = field(repr=False)
    inputs: tuple[WrapperInput, ...]
    schema: Schema
    has_effects: bool = False

    @property
    def health_key(self) -> str:
        return self.name


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
        described = PythonWrapper(registered, decorated, given, parse_attributes(returns), effects)
        _wrappers[registered.lower()] = described
        return decorated

    return register
