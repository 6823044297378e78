"""The expression language of settings: conditions, computed attributes, templates, lists."""

from aioflow.expressions.aggregates import AggregateCall, Aggregates
from aioflow.expressions.condition import Condition, JoinCondition
from aioflow.expressions.counters import Counters
from aioflow.expressions.keys import Keys
from aioflow.expressions.projection import Attributes, Projection, RepeatableAttributes
from aioflow.expressions.sorting import SortKey, SortKeys
from aioflow.expressions.template import Formatter, Template
from aioflow.expressions.values import quotient
from aioflow.setting import plan_settings

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

plan_settings["once"] = Keys
