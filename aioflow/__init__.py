"""aioflow: a streaming dataflow engine for agents that gather, integrate and watch information.

What an operator's author needs is imported at once; language and engine when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from aioflow.context import DEAD, END, Context, To, map_concurrently
from aioflow.errors import AioflowError, InputError, PlanError, RunError, SettingError

# The names `operator` and `function` are also those of their modules: importing them here, before
# anybody else can, makes the package's attribute the decorator for good.
from aioflow.function import aggregate_function, function
from aioflow.operator import operator, same_as_input
from aioflow.relation import Document, Record, Relation, Row, Schema
from aioflow.stream import Stream, interleave
from aioflow.version import __version__

if TYPE_CHECKING:
    from aioflow.builder import PlanBuilder
    from aioflow.engine import Engine, Result, run
    from aioflow.language import load, loads

__all__ = [
    "DEAD",
    "END",
    "AioflowError",
    "Context",
    "Document",
    "Engine",
    "InputError",
    "PlanBuilder",
    "PlanError",
    "Record",
    "Relation",
    "Result",
    "Row",
    "RunError",
    "Schema",
    "SettingError",
    "Stream",
    "To",
    "__version__",
    "aggregate_function",
    "function",
    "interleave",
    "load",
    "loads",
    "map_concurrently",
    "operator",
    "run",
    "same_as_input",
]

_LAZY = {
    "Engine": "aioflow.engine",
    "PlanBuilder": "aioflow.builder",
    "Result": "aioflow.engine",
    "load": "aioflow.language",
    "loads": "aioflow.language",
    "run": "aioflow.engine",
}


def __getattr__(name: str) -> Any:
    module = _LAZY.get(name)
    if module is None:
        raise AttributeError(f"module 'aioflow' has no attribute {name!r}")
    value = getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
