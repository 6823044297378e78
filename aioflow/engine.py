"""The engine as users see it: run a plan, stream its results, share a budget between runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from hashlib import blake2b
from pathlib import Path
from types import TracebackType
from typing import Any, TypeAlias, overload
from uuid import uuid4

import msgspec

from aioflow.authoring.context import RunIdentity, RunInfo
from aioflow.authoring.operator import Registry, load_operators
from aioflow.authoring.services import Services
from aioflow.compiler.check import analyse, check, check_readiness
from aioflow.compiler.graph import Graph
from aioflow.compiler.stores import written_store
from aioflow.config.masking import masked_logger
from aioflow.errors import Diagnostic, InputError, suggestion
from aioflow.plan import Plan, Program
from aioflow.relation import Record, Relation
from aioflow.runtime.account import RunAccount
from aioflow.runtime.budget import Budget
from aioflow.runtime.events import Listener
from aioflow.runtime.memory import MemoryBudget
from aioflow.runtime.report import is_wanted, log_event
from aioflow.runtime.results import RunStream
from aioflow.runtime.run import Run, RunsUnderWay, wait_through
from aioflow.runtime.session import MODES, Mode, RunSettings, Session
from aioflow.runtime.statistics import RunStatistics
from aioflow.values.coercion import RowsIn

Runnable: TypeAlias = Program | Plan

MEBIBYTE = 1024 * 1024

# The operator `log` does not mask secrets itself.
masked_logger("aioflow.log")


class Result(Sequence[Record]):
    """The collected outputs of a run; as a sequence, the rows of its only output."""

    def __init__(
        self,
        outputs: Mapping[str, list[Record]],
        declared: Sequence[str],
        statistics: RunStatistics,
        account: RunAccount,
    ) -> None:
        self.outputs = dict(outputs)
        self.account = account
        self.statistics = statistics
        self.warnings = statistics.warnings
        self._declared = declared

    @property
    def rows(self) -> list[Record]:
        """The rows of the plan's only output."""
        if len(self._declared) != 1:
            names = ", ".join(self._declared) or "none"
            raise InputError(
                f"the plan has not one output but {len(self._declared)} ({names}): use result.outputs"
            )
        return self.outputs[self._declared[0]]

    @overload
    def __getitem__(self, index: int) -> Record: ...
    @overload
    def __getitem__(self, index: slice) -> list[Record]: ...
    def __getitem__(self, index: int | slice) -> Record | list[Record]:
        return self.rows[index]

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        counts = ", ".join(
            f"{name}: {len(rows)} {'row' if len(rows) == 1 else 'rows'}"
            for name, rows in self.outputs.items()
        )
        return f"Result({counts})"


class Engine:
    """Runs plans. Runs on one engine share its worker budget and its memory limit.

    `workers` limits the number of firings that wait on the outside world at once; `partitions` gives sources
    permits of their own. `capacity_rows` limits each queue between two steps. Past `memory_bytes`, operators
    that keep rows move them to disk. `max_depth` limits the levels of a recursion that waits on the outside
    world and has neither MAX_DEPTH nor ONCE. `hold_rows` limits the results of one firing that are held
    because ERRORS may take its failure; past that they leave, and a failure ends the run. `configuration` has
    the tables that services read (`http`, `host`, …; see `aioflow.config.configuration`). `services` replaces
    services, by class. `clock` gives the start time of a run, for tests of plans that take days.
    """

    def __init__(
        self,
        workers: int = 15,
        *,
        capacity_rows: int = 256,
        memory_bytes: int = 32 * MEBIBYTE,
        max_depth: int = 10_000,
        hold_rows: int = 100_000,
        mode: Mode = "D+S+",
        partitions: Mapping[str, int] | None = None,
        registry: Registry | None = None,
        timing: bool = False,
        configuration: Mapping[str, Any] | None = None,
        services: Mapping[type[Any], Any] | None = None,
        clock: Callable[[], datetime] | None = None,
    ) -> None:
        for name, value in (
            ("workers", workers),
            ("capacity_rows", capacity_rows),
            ("memory_bytes", memory_bytes),
            ("max_depth", max_depth),
            ("hold_rows", hold_rows),
        ):
            if value < 1:
                raise InputError(f"{name} must be at least 1, not {value}")
        _check_mode(mode)
        self.budget = Budget(workers, partitions)
        self.memory = MemoryBudget(memory_bytes)
        self.capacity_rows = capacity_rows
        self.max_depth = max_depth
        self.hold_rows = hold_rows
        self.mode: Mode = mode
        self.registry = registry if registry is not None else load_operators()
        self.timing = timing
        self._clock = clock or _now
        self.services = Services({} if configuration is None else configuration, services or {})
        self._listeners: list[Listener] = []
        self._runs = RunsUnderWay()
        self._closing: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Engine:
        self._runs.check_open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Stop every run that is still under way, release everything, and refuse further runs.

        Blocking functions that were cancelled are not waited for: their threads end when they return.
        """
        if self._closing is not None:
            await wait_through(self._closing, is_ours=self._runs.have(asyncio.current_task()))
            return
        self._closing = asyncio.get_running_loop().create_task(self._close())
        await wait_through(self._closing, is_ours=self._runs.have(asyncio.current_task()))
        self._closing.result()

    async def _close(self) -> None:
        try:
            await self._runs.close()
        finally:
            self.budget.threads.close()
            await self.memory.disk.close()
            await self.services.close()

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Have a function called with every event of later runs; return a function that ends this."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def stream(
        self,
        plan: Runnable,
        inputs: Mapping[str, RowsIn] | None = None,
        *,
        output: str | None = None,
        parameters: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        mode: Mode | None = None,
        identity: RunIdentity | None = None,
        **named_inputs: RowsIn,
    ) -> RunStream:
        """Return the rows of a plan's output as they come; leaving the loop stops the run.

        With several outputs, `output` picks one, and `.named()` gives all as (name, row). A service that runs
        tasks gives each run its `identity`.
        """
        self._runs.check_open()
        program = as_program(plan)
        given = {**(inputs or {}), **named_inputs}
        if timeout is not None and timeout <= 0:
            raise InputError(f"a timeout must be more than 0 seconds, not {timeout:g}")
        if parameters is not None:
            parameters = {name.lower(): value for name, value in parameters.items()}
        session = self._session(program, given, parameters or {}, mode or self.mode, identity)
        if output is not None and output not in (
            names := [variable.name for variable in program.main.outputs]
        ):
            # The plan may still emit to this name while it runs, which is known only then.
            hint = suggestion(output, names)
            if hint:
                raise InputError(f"plan {program.name} has no output {output!r}{hint}")
        return RunStream(Run(session, given, output, timeout, self._runs))

    async def run(
        self,
        plan: Runnable,
        inputs: Mapping[str, RowsIn] | None = None,
        *,
        parameters: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        mode: Mode | None = None,
        identity: RunIdentity | None = None,
        **named_inputs: RowsIn,
    ) -> Result:
        """Run a plan to its end and collect all outputs."""
        program = as_program(plan)
        declared = [variable.name for variable in program.main.outputs]
        outputs: dict[str, list[Record]] = {name: [] for name in declared}
        given = {**(inputs or {}), **named_inputs}
        stream = self.stream(
            program, given, parameters=parameters, timeout=timeout, mode=mode, identity=identity
        )
        try:
            async with stream:
                async for name, records in stream.batches():
                    outputs.setdefault(name, []).extend(records)
        except BaseException:
            stream.take_back()
            raise
        return Result(outputs, declared, stream.statistics(), stream.account())

    def check(self, plan: Runnable) -> list[Diagnostic]:
        """Return every mistake and warning in a plan."""
        return check(as_program(plan), self.registry)

    def _session(
        self,
        program: Program,
        inputs: Mapping[str, RowsIn],
        parameters: Mapping[str, Any],
        mode: Mode,
        identity: RunIdentity | None,
    ) -> Session:
        _check_mode(mode)
        info = RunInfo(
            uuid4().hex if identity is None else identity.run_id,
            self._clock(),
            None if identity is None else identity.task_id,
            program.name,
            Path(program.folder or "."),
            identity=identity,
            tell_task=partial(_task_text, program.main, inputs, parameters),
        )
        built_in = {"run-id": info.run_id, "task-id": info.task_id, "started": info.started.isoformat()}
        analysis = analyse(program, self.registry, parameters={**parameters, **built_in})
        analysis.raise_mistakes()
        _check_inputs(program.main, inputs)
        graph = Graph(analysis)
        if mode != "D+S+":
            graph.refuse_endless(mode)
        use = written_store(analysis.root, analysis.linked)
        if use is not None:
            info = msgspec.structs.replace(info, writes=True, store=use.name, writes_early=graph.writes_early)
        session = Session(
            graph,
            info,
            RunSettings(mode, self.capacity_rows, self.max_depth, self.hold_rows, self.timing),
            self.budget,
            self.memory.for_run(),
            (*self._listeners, *([log_event] if is_wanted() else ())),
            self.services,
        )
        check_readiness(analysis, session.services)
        return session


def _now() -> datetime:
    return datetime.now(UTC)


def _check_mode(mode: str) -> None:
    if mode not in MODES:
        raise InputError(f"unknown mode {mode!r}{suggestion(mode, MODES)} (there are: {', '.join(MODES)})")


def _check_inputs(plan: Plan, inputs: Mapping[str, RowsIn]) -> None:
    declared = [declaration.name for declaration in plan.inputs]
    for name in inputs:
        if name not in declared:
            known = ", ".join(declared) or "none"
            raise InputError(
                f"plan {plan.name} has no input {name!r}{suggestion(name, declared)} (inputs: {known})"
            )
    for name in declared:
        if name not in inputs:
            raise InputError(
                f"plan {plan.name} needs the input {name!r}: pass {name}=[…] (an empty list for none)"
            )


def _task_text(plan: Plan, inputs: Mapping[str, RowsIn], parameters: Mapping[str, Any]) -> str:
    """Return a fingerprint of a run's inputs and parameters; "" if its plan has none.

    Relations are bags, so the order of rows does not count. A lazy input counts by its name alone, since its
    rows are not known before.
    """
    values = {each.name.lower(): each.default for each in plan.parameters} | dict(parameters)
    if not values and not inputs:
        return ""
    digest = blake2b(repr(sorted(values.items())).encode("utf-8", "surrogatepass"), digest_size=6)
    for name in sorted(inputs):
        text = f"{name}: {_rows_text(inputs[name])}"
        digest.update(text.encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def _rows_text(rows: RowsIn) -> str:
    if isinstance(rows, Mapping):
        rows = [rows]
    return repr(sorted(map(_row_text, rows))) if isinstance(rows, Relation | Collection) else ""


def _row_text(row: object) -> str:
    # A row that is not a mapping is refused where rows are read.
    return repr(sorted(row.items(), key=repr) if isinstance(row, Mapping) else row)


def as_program(plan: Runnable) -> Program:
    """Return a plan that was built in Python as a program."""
    if isinstance(plan, Program | Plan):
        return plan if isinstance(plan, Program) else Program(plan, (plan,))
    raise InputError(f"a plan is needed, not {plan!r}: read a file with aioflow.load(path)")


def run(plan: Runnable, inputs: Mapping[str, RowsIn] | None = None, **keywords: Any) -> Result:
    """Run a plan without a loop of one's own; keywords as for Engine and Engine.run."""
    settings = {
        name: keywords.pop(name)
        for name in (
            "workers",
            "capacity_rows",
            "memory_bytes",
            "max_depth",
            "hold_rows",
            "partitions",
            "registry",
            "timing",
            "configuration",
            "services",
            "clock",
        )
        if name in keywords
    }

    if asyncio._get_running_loop() is not None:
        raise InputError("a loop is already running here: use `await engine.run(…)` instead of aioflow.run")

    async def main() -> Result:
        async with Engine(**settings) as engine:
            return await engine.run(plan, inputs, **keywords)

    return asyncio.run(main())
