"""aioflow: a streaming dataflow engine for agents that gather, integrate and watch information.

Names are loaded when they are first used: `aioflow --version` needs none of them.
"""

from typing import TYPE_CHECKING

from aioflow.exports import lazy_exports
from aioflow.version import __version__ as __version__

if TYPE_CHECKING:
    from aioflow.authoring.concurrency import map_concurrently
    from aioflow.authoring.context import Context, To
    from aioflow.authoring.function import aggregate_function, function
    from aioflow.authoring.operator import operator, same_as_input
    from aioflow.builder import PlanBuilder
    from aioflow.engine import Engine, Result, run
    from aioflow.errors import AioflowError, InputError, PlanError, RunError, SettingError
    from aioflow.language import load, loads
    from aioflow.relation import Document, Record, Relation, Row, Schema
    from aioflow.runtime.stream import Stream, interleave

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

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "authoring.concurrency": ("map_concurrently",),
        "authoring.context": ("Context", "To"),
        "authoring.function": ("aggregate_function", "function"),
        "authoring.operator": ("operator", "same_as_input"),
        "builder": ("PlanBuilder",),
        "engine": ("Engine", "Result", "run"),
        "errors": ("AioflowError", "InputError", "PlanError", "RunError", "SettingError"),
        "language": ("load", "loads"),
        "relation": ("Document", "Record", "Relation", "Row", "Schema"),
        "runtime.stream": ("Stream", "interleave"),
    },
)
