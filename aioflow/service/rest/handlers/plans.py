"""Plan files: read, checked, completed, saved, drawn and run once."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from aiohttp import web
from msgspec import Meta

from aioflow.authoring.operator import Operator
from aioflow.compiler.analysis import Analysis
from aioflow.compiler.check import analyse, check_rest
from aioflow.compiler.parameters import BUILT_IN
from aioflow.config.masking import mask, masked
from aioflow.drawing import draw
from aioflow.errors import AioflowError, Diagnostic, InputError, PlanError, message_of
from aioflow.language import PlanSnapshot
from aioflow.language.loader import load, loads
from aioflow.language.parser import read_text
from aioflow.plan import Program, Use
from aioflow.relation import Record
from aioflow.service.errors import ForbiddenError
from aioflow.service.rest.completion import PlanCompletion, complete_plan
from aioflow.service.rest.declarations import JSON_LINES, RestCall, RouteTable
from aioflow.service.rest.plan_files import PlanSummary, PlanText
from aioflow.service.rest.refusals import PlanDiagnostic, RestError, described, encode
from aioflow.service.store.tasks import read_tasks, read_version
from aioflow.values.cells import json_text

TABLE = RouteTable("plans")

_SENT = "<plan>"  # the name of a text that was sent
_LINES_BYTES = 10_000_000
_RUNS_AT_MOST = 4
_WITHOUT_WORLD = frozenset({"emit", "log"})  # their effects are the answer itself

SentText: TypeAlias = Annotated[str, Meta(max_length=200_000, description="the text of a plan file")]


class PlanList(msgspec.Struct, frozen=True):
    plans: list[PlanSummary]


class PlanCheck(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A text to be checked. `name` is that of the plan file that it is, or will be, in."""

    text: SentText
    name: Annotated[str, Meta(max_length=400)] | None = None


class PlanFindings(msgspec.Struct, frozen=True):
    """Every mistake and warning; a plan is `sound` without mistakes."""

    sound: bool
    diagnostics: list[PlanDiagnostic]


class CompletionRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A text, and the offset of the cursor in it, in characters."""

    text: SentText
    offset: Annotated[int, Meta(ge=0, le=200_000)]


class CompletionList(msgspec.Struct, frozen=True):
    completions: list[PlanCompletion]


class PlanSave(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The new text of a plan. `version` is the one to be replaced, null for a new plan."""

    text: SentText
    version: Annotated[str, Meta(max_length=64)] | None = None


class PlanSaved(msgspec.Struct, frozen=True):
    """The new version, and the warnings about it."""

    name: str
    version: str
    diagnostics: list[PlanDiagnostic]


class VersionQuery(msgspec.Struct, frozen=True):
    version: Annotated[str, Meta(max_length=64)] | None = None


class GraphQuery(msgspec.Struct, frozen=True):
    """`plan` is one of several plans of the file; `all` draws those that it calls too."""

    format: Literal["svg", "mermaid", "dot"] = "svg"
    plan: Annotated[str, Meta(max_length=200)] | None = None
    all: bool = False


class GraphRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A text to be drawn, with the keys of the query of a saved plan.

    `name` is that of the plan file that it is, or will be, in.
    """

    text: SentText
    name: Annotated[str, Meta(max_length=400)] | None = None
    format: Literal["svg", "mermaid", "dot"] = "svg"
    plan: Annotated[str, Meta(max_length=200)] | None = None
    all: bool = False


class GraphDrawing(msgspec.Struct, frozen=True):
    format: str
    text: str


class PlanRun(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A plan to be run once: the `name` of a file, or a `text`.

    A plan with effects is refused unless `effects` is true. Without effects it ends after `limit` rows.
    """

    name: Annotated[str, Meta(max_length=400)] | None = None
    text: SentText | None = None
    plan_name: Annotated[str, Meta(max_length=200)] | None = None
    inputs: dict[str, list[dict[str, Any]]] = msgspec.field(default_factory=dict)
    parameters: dict[str, Any] = msgspec.field(default_factory=dict)
    limit: Annotated[int, Meta(ge=1, le=10_000)] = 100
    timeout_seconds: Annotated[float, Meta(gt=0, le=600)] = 60.0
    effects: bool = False


@TABLE.add("GET", "/api/plans")
async def list_plans(call: RestCall[None, None]) -> PlanList:
    """List the plan files of the service."""
    return PlanList(call.context.plans.names())


@TABLE.add("POST", "/api/plans/check", refusals=(422,))
async def check_plan(call: RestCall[None, PlanCheck]) -> PlanFindings:
    """Find every mistake in a text, with its place."""
    sent = _SentPlan(call, call.body.text, call.body.name)
    found = await call.context.in_thread(sent.findings)
    is_sound = not any(each.severity == "error" for each in found)
    return PlanFindings(is_sound, _shown(call, found))


@TABLE.add("POST", "/api/plans/complete")
async def complete(call: RestCall[None, CompletionRequest]) -> CompletionList:
    """Return the words that may stand at a place: operators, options, variables, plans and wrappers."""
    registry = call.context.service.engine.registry
    return CompletionList(complete_plan(call.body.text, call.body.offset, registry))


@TABLE.add("POST", "/api/plans/run", role="editor", content=JSON_LINES, refusals=(404, 422, 429))
async def run_plan(call: RestCall[None, PlanRun]) -> web.StreamResponse:
    """Run a plan once, and stream its rows as JSON lines.

    A line is `{"output": …, "row": …}`, and the last one `{"end": {"state": …, "reason": …, "rows": …}}` with
    the state ended, failed or cut.
    """
    if call.context.runs_once >= _RUNS_AT_MOST:
        raise RestError(429, f"{_RUNS_AT_MOST} plans are being run once; wait for one of them")
    call.context.runs_once += 1
    try:
        return await _stream_run(call, await call.context.in_thread(lambda: _program_to_run(call)))
    finally:
        call.context.runs_once -= 1


@TABLE.add("GET", "/api/plans/{name}", refusals=(404, 422))
async def read_plan(call: RestCall[None, None]) -> PlanText:
    """Return the text of a plan file and its version."""
    return call.context.plans.read(call.path["name"])


@TABLE.add("PUT", "/api/plans/{name}", role="editor", refusals=(409, 422))
async def save_plan(call: RestCall[None, PlanSave]) -> PlanSaved:
    """Save a plan that has no mistakes, as a whole, unless somebody else has changed it.

    Tasks keep the version that they have until they are reloaded.
    """
    name = call.path["name"]
    file = call.context.plans.file(name)
    file.check(call.body.version)
    sent = _SentPlan(call, call.body.text, name)
    found = await call.context.in_thread(sent.findings)
    if mistakes := [each for each in found if each.severity == "error"]:
        raise PlanError(mistakes)
    if call.role != "owner":
        await _check_replaceable(call, name)
        await call.context.in_thread(lambda: call.context.allowance.check_file(sent.program()))
    version = file.write(call.body.text, call.body.version)
    return PlanSaved(name, version, _shown(call, found))


@TABLE.add("DELETE", "/api/plans/{name}", role="editor", status=204, refusals=(404, 409, 422))
async def remove_plan(call: RestCall[VersionQuery, None]) -> None:
    """Remove a plan file. Tasks keep the version that they have."""
    file = call.context.plans.file(call.path["name"])
    if call.role != "owner":
        await _check_replaceable(call, call.path["name"])
    file.remove(call.query.version)


@TABLE.add("GET", "/api/plans/{name}/graph", refusals=(404, 422, 501))
async def draw_plan(call: RestCall[GraphQuery, None]) -> GraphDrawing:
    """Draw a plan as SVG, Mermaid or DOT."""
    plan, query = call.context.plans.read(call.path["name"]), call.query

    def work() -> str:
        program = load(plan.path, query.plan, any_plan=query.plan is None)
        return draw(program, query.format, all_plans=query.all)

    return GraphDrawing(query.format, await call.context.in_thread(work))


@TABLE.add("POST", "/api/plans/graph", refusals=(422, 501))
async def draw_text(call: RestCall[None, GraphRequest]) -> GraphDrawing:
    """Draw a text that is not saved."""
    given = call.body
    sent = _SentPlan(call, given.text, given.name)

    def work() -> str:
        program = sent.program(given.plan, any_plan=given.plan is None)
        return draw(program, given.format, all_plans=given.all)

    return GraphDrawing(given.format, await call.context.in_thread(work))


# --- texts ----------------------------------------------------------------------------------------


class _SentPlan:
    """A text as the plan file that it is, or will be; without a name as one in the folder of plans."""

    def __init__(self, call: RestCall[Any, Any], text: str, name: str | None) -> None:
        self._text = text
        self._plans = call.context.plans
        self._registry = call.context.service.engine.registry
        self._is_bounded = call.role != "owner"
        path = None if name is None else self._plans.file(name).path
        self._folder = self._plans.folder if path is None else path.parent
        self._name = _SENT if path is None else str(path)

    def program(self, plan: str | None = None, *, any_plan: bool = True) -> Program:
        """Return the program. Except for owners, USE must not find out about files elsewhere."""
        if self._is_bounded and (found := [*self._uses_elsewhere()]):
            raise PlanError(found)
        return loads(self._text, self._name, self._folder, plan, any_plan=any_plan)

    def findings(self) -> list[Diagnostic]:
        """Return every mistake and warning."""
        try:
            return list(analyse(self.program(), self._registry).diagnostics)
        except PlanError as error:
            return check_rest(error, self._registry)
        except InputError as error:
            return [Diagnostic(str(error))]

    def _uses_elsewhere(self) -> Iterator[Diagnostic]:
        file, _ = read_text(self._text, self._name)
        for entry in file.entries:
            if isinstance(entry, Use) and not self._plans.has(os.path.join(self._folder, entry.path)):
                yield Diagnostic("only an owner may USE a file outside of the folder of plans", entry.span)


def _shown(call: RestCall[Any, Any], found: list[Diagnostic]) -> list[PlanDiagnostic]:
    may_show = call.context.may_show(call.role)
    return [described(each, may_show) for each in found]


async def _check_replaceable(call: RestCall[Any, Any], name: str) -> None:
    """Refuse that an editor changes a plan of an owner, or one that a task takes over by itself."""
    context = call.context
    path = context.plans.file(name).path
    with suppress(PlanError, InputError):  # it is new, or no task could use it
        await context.in_thread(lambda: context.allowance.check_file(load(path, any_plan=True)))
    async with context.service.database.reading() as statements:
        for task in await read_tasks(statements):
            if task.definition.reload != "automatic":
                continue
            if _would_read(await read_version(statements, task.version), path):
                raise ForbiddenError(
                    f"the task {task.name!r} takes over changes of this plan by itself: only an owner may "
                    "change it"
                )


def _would_read(snapshot: PlanSnapshot, path: Path) -> bool:
    """Return whether a plan is made of a file, or would be if there was one: USE looks beside it first."""
    # A use is a folder and the name in it.
    beside = (os.path.join(*use.split("\n", 1)) for use in snapshot.uses)
    real = os.path.realpath(path)
    return any(os.path.realpath(each) == real for each in (*snapshot.files, *beside))


# --- running once ---------------------------------------------------------------------------------


def _program_to_run(call: RestCall[None, PlanRun]) -> Program:
    given = call.body
    if (given.name is None) == (given.text is None):
        raise InputError("give either the name of a plan file or a text")
    text = given.text if given.name is None else call.context.plans.read(given.name).text
    program = _SentPlan(call, text or "", given.name).program(given.plan_name, any_plan=False)
    parameters = {**_parameters(given), **BUILT_IN}
    analysis = analyse(program, call.context.service.engine.registry, parameters=parameters)
    analysis.raise_mistakes()
    if call.role != "owner":
        call.context.allowance.check_run(analysis)
    if not given.effects:
        _refuse_effects(analysis)
    return program


def _parameters(given: PlanRun) -> dict[str, Any]:
    return {
        name.lower(): tuple(value) if isinstance(value, list) else value
        for name, value in given.parameters.items()
    }


def _refuse_effects(analysis: Analysis) -> None:
    found = set()
    for made in analysis.calls():
        for index, resolved in enumerate(analysis.linked.statements(made.plan)):
            target = None if resolved is None else resolved.target
            if not isinstance(target, Operator) or target.key in _WITHOUT_WORLD:
                continue
            bound = made.bound.get(index)
            is_open = callable(target.effects) and bound is None
            if is_open or target.has("effects", bound or {}):
                found.add(target.name)
    if found:
        raise InputError(
            f"this plan has effects ({', '.join(sorted(found))}): say effects = true, or run it as a task"
        )


async def _stream_run(call: RestCall[None, PlanRun], program: Program) -> web.StreamResponse:
    given = call.body
    stream = call.context.service.engine.stream(
        program, given.inputs, parameters=_parameters(given), timeout=given.timeout_seconds
    )
    response = web.StreamResponse(headers={"Content-Type": JSON_LINES, "X-Accel-Buffering": "no"})
    lines = _RowLines(given.limit)
    state, reason = "ended", ""
    async with stream:
        await response.prepare(call.request)
        try:
            async for output, records in stream.batches():
                if written := lines.of(output, records):
                    await response.write(written)
                if lines.is_full and not given.effects:
                    state, reason = "cut", "it has more rows"
                    break
        except AioflowError as error:
            state, reason = "failed", message_of(error)
        except (ConnectionError, asyncio.CancelledError):
            raise
        except Exception as error:
            state, reason = "failed", f"{type(error).__name__}: {message_of(error)}"
    if lines.is_full and state == "ended":
        reason = f"only the first {lines.count} of its rows are shown"
    end = {"state": state, "reason": mask(reason), "rows": lines.count, "account": stream.account().as_json()}
    await response.write(encode({"end": end}) + b"\n")
    await response.write_eof()
    return response


class _RowLines:
    """Rows as JSON lines, within a number of rows and bytes."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._bytes_left = _LINES_BYTES
        self.count = 0
        self.is_full = False

    def of(self, output: str, records: list[Record]) -> bytes:
        lines = []
        for record in records:
            if self.count == self._limit or self._bytes_left <= 0:
                self.is_full = True
                break
            row = masked({name: json.loads(json_text(value)) for name, value in record.items()})
            line = encode({"output": output, "row": row}) + b"\n"
            self._bytes_left -= len(line)
            self.count += 1
            lines.append(line)
        return b"".join(lines)
