"""The expression language of settings: conditions, computed attributes, templates, lists."""

from typing import TYPE_CHECKING

from aioflow.authoring.setting import plan_settings
from aioflow.exports import lazy_exports
from aioflow.expressions.projection import Attributes, Keys, Projection, RepeatableAttributes
from aioflow.values.counters import Counters

if TYPE_CHECKING:
    from aioflow.expressions.aggregates import AggregateCall, Aggregates
    from aioflow.expressions.condition import Condition, JoinCondition
    from aioflow.expressions.operations import quotient
    from aioflow.expressions.sorting import SortKey, SortKeys
    from aioflow.expressions.template import Formatter, Template

__all__ = [
    "AggregateCall",
    "Aggregates",
    "Attributes",
    "Condition",
    "Counters",
    "Formatter",
    "JoinCondition",
    "Keys",
    "Projection",
    "RepeatableAttributes",
    "SortKey",
    "SortKeys",
    "Template",
    "quotient",
]

__getattr__, _ = lazy_exports(
    __name__,
    {
        "aggregates": ("AggregateCall", "Aggregates"),
        "condition": ("Condition", "JoinCondition"),
        "operations": ("quotient",),
        "sorting": ("SortKey", "SortKeys"),
        "template": ("Formatter", "Template"),
    },
)


def __dir__() -> list[str]:
    return list(__all__)


plan_settings["once"] = Keys
