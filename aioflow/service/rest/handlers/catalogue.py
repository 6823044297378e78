"""A catalogue for those who write plans: operators, functions, and the plan files of the library."""

from __future__ import annotations

import re
from typing import Any, Literal

import msgspec

from aioflow.authoring.function import AggregateFunction, Function, aggregate_functions, functions
from aioflow.authoring.operator import Operator
from aioflow.authoring.setting import SettingPort
from aioflow.cli.commands.ops import form, summary
from aioflow.language.loader import LIBRARY, SUFFIX
from aioflow.service.rest.declarations import RestCall, RouteTable

TABLE = RouteTable("catalogue")

_ITEM = re.compile(r"^[ \t]*(PLAN|WRAPPER)\s+([^\W\d][\w-]*)", re.MULTILINE | re.IGNORECASE)


class OperatorInput(msgspec.Struct, frozen=True):
    """An input; a `variadic` one stands for any number."""

    name: str
    description: str
    optional: bool
    variadic: bool


class OperatorSetting(msgspec.Struct, frozen=True):
    """A setting, or, if it is not `required`, an option with its default."""

    name: str
    description: str
    type: str
    required: bool
    default: Any = None


class OperatorReference(msgspec.Struct, frozen=True):
    """An operator. `fires` on its rows as a stream, for each tuple, or at the end of its input."""

    name: str
    family: str
    form: str
    summary: str
    description: str
    inputs: list[OperatorInput]
    settings: list[OperatorSetting]
    outputs: list[str]
    fires: Literal["stream", "tuple", "end"]
    effects: Literal["never", "always", "by settings"]
    examples: list[str]


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
    operators = sorted(map(_operator, registry), key=lambda each: each.name)
    known = [*map(_function, functions), *map(_function, aggregate_functions)]
    library = await call.context.in_thread(_library)
    return PlanCatalogue(operators, sorted(known, key=lambda each: each.name), library)


def _operator(described: Operator) -> OperatorReference:
    inputs = [OperatorInput(each.name, each.doc, each.optional, each.variadic) for each in described.inputs]
    return OperatorReference(
        *(described.name, described.family, form(described), summary(described), described.doc, inputs),
        *([_setting(each) for each in described.settings], list(described.outputs), described.fires({})),
        effects="by settings" if callable(described.effects) else "always" if described.effects else "never",
        examples=list(described.examples),
    )


def _setting(port: SettingPort) -> OperatorSetting:
    name = port.name if port.required else port.name.upper()
    kind = "flag" if port.is_flag else port.type_name
    return OperatorSetting(name, port.doc, kind, port.required, _default(port.default))


def _default(value: Any) -> Any:
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


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
