"""Runs one operator, or a plan given as text, returns the results, and finds whatever the run has left."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from aioflow.authoring.operator import (
    Operator,
    OperatorFunction,
    Registry,
    SchemaRule,
    Settings,
    describe,
    load_operators,
)
from aioflow.engine import Engine, Result
from aioflow.plan import InputDeclaration, Plan, Program, Setting, Statement, Variable
from aioflow.relation import Relation, Schema
from aioflow.runtime.session import Mode
from aioflow.testing.scripted import client_over
from aioflow.testing.virtual_loop import VirtualLoop, describe_task, run
from aioflow.values.coercion import RowsIn
from aioflow.web.http import Fetcher


def assert_nothing_left(engine: Engine | None = None, result: Result | None = None) -> None:
    """Fail unless everything has been released; to be called where the run has just ended.

    Checks the tasks of the running loop, and the permits, memory and files of an engine; on a VirtualLoop
    also unhandled exceptions and async generators that were not closed. Embedded relations in a result that
    is still alive may keep memory and files. A blocking function that was cancelled may keep its permit.
    """
    found = [*_on_the_loop(), *(_in_the_engine(engine, result) if engine is not None else ())]
    if found:
        raise AssertionError("left behind: " + "; ".join(found))


def _on_the_loop() -> list[str]:
    loop = asyncio.get_running_loop()
    tasks = loop.tasks() if isinstance(loop, VirtualLoop) else list(asyncio.all_tasks(loop))
    found = [f"task {describe_task(task)}" for task in tasks if task is not asyncio.current_task(loop)]
    if isinstance(loop, VirtualLoop):
        found += [f"unclosed generator {name}" for name in loop.abandoned]
        found += loop.complaints
    return found


def _in_the_engine(engine: Engine, result: Result | None) -> list[str]:
    held = {
        "permits": engine.budget.used - engine.budget.outlasting,
        "requests for permits": engine.budget.common.waiting,
        "runs": len(engine._runs),
    }
    if result is None or not _embeds(result):
        held |= {"open files": engine.memory.open_files, "bytes of memory": engine.memory.used_bytes}
    return [f"{number} {what}" for what, number in held.items() if number]


def _embeds(result: Result) -> bool:
    return any(
        isinstance(value, Relation)
        for records in result.outputs.values()
        for record in records
        for value in record.row
    )


async def run_operator(
    function: OperatorFunction,
    /,
    *inputs: RowsIn,
    workers: int = 15,
    capacity_rows: int = 2,
    mode: Mode = "D+S+",
    **settings: Any,
) -> Any:
    """Return the rows of an operator for these inputs as a list of tuples; by output if it has several.

    Settings are constants as in a plan, or values that the function gets as they are. Fails if the
    operator leaves anything behind.

        assert await run_operator(select, rows((1,), (2,)), where="a > 1") == [(2,)]
    """
    described: Operator = getattr(function, "operator", None) or describe(function)
    constants = {name.rstrip("_"): value for name, value in settings.items() if _is_constant(value)}
    values = {name: value for name, value in settings.items() if not _is_constant(value)}
    described = _with_values(described, values)
    program = _program(described, len(inputs), constants)
    registry = Registry([*load_operators(), described])
    engine = Engine(workers, capacity_rows=capacity_rows, mode=mode, registry=registry)
    async with engine:
        given = dict(zip((declared.name for declared in program.main.inputs), inputs, strict=True))
        result = None
        try:
            result = await engine.run(program, given)
        finally:
            assert_nothing_left(engine, result)
    outputs = {name: [record.row for record in result.outputs[name]] for name in described.outputs}
    return outputs[described.outputs[0]] if len(outputs) == 1 else outputs


def run_plan(
    plan: Program | str,
    /,
    *,
    seed: int | None = None,
    workers: int = 15,
    capacity_rows: int = 256,
    memory_bytes: int = 1 << 20,
    mode: Mode = "D+S+",
    registry: Registry | None = None,
    parameters: Mapping[str, Any] | None = None,
    configuration: Mapping[str, Any] | None = None,
    services: Mapping[type[Any], Any] | None = None,
    network: Fetcher | None = None,
    **inputs: RowsIn,
) -> Result:
    """Run a plan on a VirtualLoop of its own; `plan` is its text. Fails if it leaves anything behind.

    A `network`, such as a ScriptedSite, answers in place of the real one.
    """
    from aioflow import loads

    program = loads(plan) if isinstance(plan, str) else plan

    async def main(services: Mapping[type[Any], Any]) -> Result:
        engine = Engine(
            workers,
            capacity_rows=capacity_rows,
            memory_bytes=memory_bytes,
            mode=mode,
            registry=registry,
            configuration=configuration,
            services=services,
        )
        async with engine:
            result = None
            try:
                result = await engine.run(program, inputs, parameters=parameters)
            finally:
                assert_nothing_left(engine, result)
            return result

    async def with_network() -> Result:
        if network is None:
            return await main(services or {})
        async with client_over(network, configuration) as client:
            return await main({**(services or {}), type(client): client})

    return run(with_network(), seed=seed)


def _is_constant(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(map(_is_constant, value))
    return value is None or isinstance(value, str | int | float)


def _with_values(described: Operator, values: Mapping[str, Any]) -> Operator:
    """Return the operator with some settings fixed to values that a plan cannot express."""
    if not values:
        return described
    function, rule = described.function, described.schema

    def call(*streams: Any, **settings: Any) -> Any:
        return function(*streams, **values, **settings)

    def schema(inputs: Sequence[Schema | None], settings: Settings) -> Any:
        return None if rule is None else rule(inputs, {**settings, **values})

    fixed = {name.rstrip("_").lower() for name in values}
    kept = tuple(port for port in described.settings if port.name not in fixed)
    told: SchemaRule | None = None if rule is None else schema
    return replace(described, function=call, schema=told, settings=kept)


def _program(described: Operator, inputs: int, constants: Mapping[str, Any]) -> Program:
    names = [f"input{number}" for number in range(inputs)]
    statement = Statement(
        described.name,
        (*map(Variable, names), *(Setting(value, name) for name, value in constants.items())),
        tuple(map(Variable, described.outputs)),
    )
    declarations = tuple(map(InputDeclaration, names))
    plan = Plan("test_of_an_operator", declarations, tuple(map(Variable, described.outputs)), (statement,))
    return Program(plan, (plan,))
