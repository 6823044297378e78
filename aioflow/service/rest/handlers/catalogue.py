"""A catalogue for those who write plans: operators, functions, and the plan files of the library."""

from __future__ import annotations

import re

import msgspec

from aioflow.authoring.descriptor import OperatorReference, operator_reference
from aioflow.authoring.function import AggregateFunction, Function, aggregate_functions, functions
from aioflow.language.loader import LIBRARY, SUFFIX
from aioflow.service.rest.declarations import RestCall, RouteTable

TABLE = RouteTable("catalogue")

_ITEM = re.compile(r"^[ \t]*(PLAN|WRAPPER)\s+([^\W\d][\w-]*)", re.MULTILINE | re.IGNORECASE)


class FunctionReference(msgspec.Struct, frozen=True):
    """A Python function of `apply`, or an aggregate one."""

    name: str
    description: str
    aggregate: bool
    takes: list[str] | None = None


class LibraryFile(msgspec.Struct, frozen=True):
    """A plan file of the library, as USE names it, with its plans and wrappers."""

    name: str
    plans: list[str]
    wrappers: list[str]


class PlanCatalogue(msgspec.Struct, frozen=True):
    """Everything that a plan can name, each list by name."""

    operators: list[OperatorReference]
    functions: list[FunctionReference]
    library: list[LibraryFile]


@TABLE.add("GET", "/api/catalogue")
async def read_catalogue(call: RestCall[None, None]) -> PlanCatalogue:
    """Return the operators and functions with their documentation, and the plan files of the library."""
    registry = call.context.service.engine.registry
    operators = sorted(map(operator_reference, registry), key=lambda each: each.name)
    known = [*map(_function, functions), *map(_function, aggregate_functions)]
    library = await call.context.in_thread(_library)
    return PlanCatalogue(operators, sorted(known, key=lambda each: each.name), library)


def _function(found: Function | AggregateFunction) -> FunctionReference:
    if isinstance(found, AggregateFunction):
        return FunctionReference(found.name, found.doc, aggregate=True)
    takes = None if found.takes is None else list(found.takes)
    return FunctionReference(found.name, found.doc, aggregate=False, takes=takes)


def _library() -> list[LibraryFile]:
    return [
        _library_file(path.relative_to(LIBRARY).as_posix(), path.read_text(encoding="utf-8"))
        for path in sorted(LIBRARY.rglob(f"*{SUFFIX}"))
    ]


def _library_file(name: str, text: str) -> LibraryFile:
    found: dict[str, list[str]] = {"PLAN": [], "WRAPPER": []}
    for keyword, item in _ITEM.findall(text):
        found[keyword.upper()].append(item)
    return LibraryFile(name, found["PLAN"], found["WRAPPER"])
