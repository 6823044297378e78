"""The expression language of settings: conditions, computed attributes, templates, lists."""

from aioflow.authoring.setting import plan_settings
from aioflow.expressions.aggregates import AggregateCall, Aggregates
from aioflow.expressions.condition import Condition, JoinCondition
from aioflow.expressions.operations import quotient
from aioflow.expressions.projection import Attributes, Keys, Projection, RepeatableAttributes
from aioflow.expressions.sorting import SortKey, SortKeys
from aioflow.expressions.template import Formatter, Template
from aioflow.values.counters import Counters

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
