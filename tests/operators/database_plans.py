"""Runs statements against a real database."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import Any

import aioflow.operators.databases  # noqa: F401  # registers them
from aioflow import Engine, Result, Row, loads
from aioflow.authoring.context import RunIdentity
from aioflow.state.system_tables import META, OWN_TABLES
from aioflow.testing import assert_nothing_left
from tests.operators.running import Mode

ALL_OWN_TABLES = ", ".join((META, *OWN_TABLES.columns))


def configuration(url: str, **others: str) -> dict[str, Any]:
    return {"database": {name: {"url": each} for name, each in {"default": url, **others}.items()}}


def text_of(statements: str, inputs: Any = (), outputs: str = "", head: str = "") -> str:
    """The text of a plan, also of one without inputs or outputs."""
    given = f"INPUT: {', '.join(inputs)}" if inputs else ""
    named = f"OUTPUT: {outputs}" if outputs else ""
    return f"PLAN test {{ {given} {named} {head} BODY {{ {statements} }} }}"


async def run_on(
    url: str,
    statements: str,
    *,
    outputs: str = "",
    mode: Mode = "D+S+",
    memory_bytes: int = 1 << 20,
    capacity_rows: int = 2,
    workers: int = 8,
    databases: dict[str, str] | None = None,
    parameters: dict[str, Any] | None = None,
    head: str = "",
    clock: Callable[[], datetime] | None = None,
    settings: dict[str, Any] | None = None,
    identity: RunIdentity | None = None,
    **inputs: Any,
) -> Result:
    """Run statements on the inputs that they name; nothing may be left behind."""
    program = loads(text_of(statements, inputs, outputs, head))
    engine = Engine(
        workers,
        capacity_rows=capacity_rows,
        memory_bytes=memory_bytes,
        mode=mode,
        configuration=configuration(url, **(databases or {})) | (settings or {}),
        clock=clock,
    )
    async with engine:
        result = None
        try:
            result = await engine.run(program, inputs, parameters=parameters, identity=identity)
        finally:
            assert_nothing_left(engine, result)
        return result


def run(url: str, statements: str, **settings: Any) -> Result:
    return asyncio.run(run_on(url, statements, **settings))


def out(url: str, statements: str, **settings: Any) -> list[Row]:
    """The tuples of the output `out`, in the order in which they came."""
    return [record.row for record in run(url, statements, outputs="out", **settings).outputs["out"]]


def table(url: str, name: str = "t") -> list[Row]:
    """The rows of a table, in an order that can be compared."""
    found = out(url, "dbimport ($name : out)", parameters={"name": name}, head="PARAM: name")
    return sorted(found, key=repr)
