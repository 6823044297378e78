"""aioflow: a streaming dataflow engine for agents that gather, integrate and watch information.

Names are loaded when they are first used: `aioflow --version` needs none of them.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from aioflow.version import __version__ as __version__

if TYPE_CHECKING:
    from aioflow.builder import PlanBuilder
    from aioflow.concurrent import map_concurrently
    from aioflow.context import Context, To
    from aioflow.engine import Engine, Result, run
    from aioflow.errors import AioflowError, InputError, PlanError, RunError, SettingError
    from aioflow.function import aggregate_function, function
    from aioflow.language import load, loads
    from aioflow.operator import operator, same_as_input
    from aioflow.relation import Document, Record, Relation, Row, Schema
    from aioflow.stream import Stream, interleave

__all__ = [
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

_HOMES = {
    "builder": ("PlanBuilder",),
    "concurrent": ("map_concurrently",),
    "context": ("Context", "To"),
    "engine": ("Engine", "Result", "run"),
    "errors": ("AioflowError", "InputError", "PlanError", "RunError", "SettingError"),
    "function": ("aggregate_function", "function"),
    "language": ("load", "loads"),
    "operator": ("operator", "same_as_input"),
    "relation": ("Document", "Record", "Relation", "Row", "Schema"),
    "stream": ("Stream", "interleave"),
}
_HOME_OF = {name: f"aioflow.{module}" for module, names in _HOMES.items() for name in names}


def _load(name: str) -> Any:
    return getattr(import_module(_HOME_OF[name]), name)


class _Package(ModuleType):
    """The decorators `operator` and `function` have modules of the same names.

    Importing such a module sets the package's attribute to it; here the decorator stays.
    """

    @property
    def operator(self) -> Any:
        return _load("operator")

    @operator.setter
    def operator(self, module: ModuleType) -> None:
        """What the import system does; the module is found in sys.modules all the same."""

    @property
    def function(self) -> Any:
        return _load("function")

    @function.setter
    def function(self, module: ModuleType) -> None:
        """As for `operator`."""


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'aioflow' has no attribute {name!r}")
    value = _load(name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


sys.modules[__name__].__class__ = _Package
