"""The expression language of settings: conditions, computed attributes, templates, lists."""

from aioflow.expressions.condition import Condition, JoinCondition
from aioflow.expressions.projection import Attributes, Projection

__all__ = ["Attributes", "Condition", "JoinCondition", "Projection"]
