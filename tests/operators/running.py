"""Runs single statements on virtual time, and values to run them on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from decimal import Decimal
from typing import Any, Literal

from hypothesis import strategies as st

from aioflow import Result, Row
from aioflow.relation import identity
from aioflow.testing import run_plan

Mode = Literal["D-", "D+S-", "D+S+"]

# So little that whatever remembers goes to disk.
NO_MEMORY = 1


def plan(statements: str, inputs: Iterable[str], outputs: str = "out") -> str:
    """The text of a plan with these statements."""
    header = f"INPUT: {', '.join(inputs)}" if inputs else ""
    return f"PLAN test {{ {header} OUTPUT: {outputs} BODY {{ {statements} }} }}"


def run(
    statements: str,
    *,
    outputs: str = "out",
    memory_bytes: int = 1 << 20,
    mode: Mode = "D+S+",
    capacity_rows: int = 2,
    seed: int | None = None,
    **inputs: Any,
) -> Result:
    """Run statements on the inputs that they name."""
    return run_plan(
        plan(statements, inputs, outputs),
        memory_bytes=memory_bytes,
        mode=mode,
        capacity_rows=capacity_rows,
        seed=seed,
        **inputs,
    )


def out(statements: str, **settings: Any) -> list[Row]:
    """The tuples of the output `out`, in the order in which they came."""
    return [record.row for record in run(statements, **settings).outputs["out"]]


def bag(rows: Iterable[Row]) -> Counter[Hashable]:
    """Rows without their order, compared as the engine compares tuples."""
    return Counter(map(identity, rows))


# Values that are equal in Python but not in relations, and the other way round.
VALUES = st.sampled_from(
    [None, 0, 1, 2, 1.0, 2.5, float("nan"), True, False, "", "1", "x", Decimal(1), Decimal("2.5")]
)


def tables(
    width: int, values: st.SearchStrategy[Any] = VALUES, most: int = 12
) -> st.SearchStrategy[list[Row]]:
    """Lists of tuples of a width."""
    return st.lists(st.tuples(*[values] * width), max_size=most)
