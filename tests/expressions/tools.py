"""Short ways to evaluate an expression."""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from aioflow.errors import SettingError
from aioflow.expressions import Condition, Projection
from aioflow.relation import Schema, Value

NOTHING = Schema(())
_TIMES = int(os.environ.get("AIOFLOW_EXAMPLES", "1"))


def examples(count: int, **more: Any) -> settings:
    """That many random examples, whatever the machine's load.

    `AIOFLOW_EXAMPLES=20 pytest tests/expressions` tries twenty times as many.
    """
    return settings(
        max_examples=count * _TIMES, deadline=None, suppress_health_check=[HealthCheck.too_slow], **more
    )


def projection(text: str, values: dict[str, Value]) -> Projection:
    """`text as result`, bound to attributes without types."""
    return Projection.bind(f"{text} as result", [Schema(tuple(values))])


def value(text: str, /, **values: Value) -> Value:
    """The value of an expression for these attributes."""
    return projection(text, values).row(tuple(values.values()))[0]


def counted(text: str, /, **values: Value) -> dict[str, int]:
    """What one evaluation counts."""
    bound = projection(text, values)
    bound.row(tuple(values.values()))
    return dict(bound.counters)


def holds(text: str, /, **values: Value) -> bool:
    """Whether a condition holds, asked of the predicate and of the filter."""
    condition = Condition.bind(text, [Schema(tuple(values))])
    row = tuple(values.values())
    result = condition(row)
    assert result is bool(condition.filter([row]))
    return result


def mistake(text: str, schema: Schema | None = NOTHING) -> tuple[str, int | None]:
    """The message and offset of a bad condition."""
    with pytest.raises(SettingError) as caught:
        Condition.bind(text, [schema])
    return caught.value.message, caught.value.offset
