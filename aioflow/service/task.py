"""A task: a plan, its inputs, a schedule, and how its runs behave."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from hashlib import blake2b
from pathlib import PurePath
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta

from aioflow.errors import InputError, SettingError, suggestion
from aioflow.service.schedules.schedule import Interval, Schedule, find_zone, parse_schedule
from aioflow.values.quantities import seconds

Overlap: TypeAlias = Literal["skip", "buffer-one", "buffer-all", "cancel-other", "allow-all"]
CatchUp: TypeAlias = Literal["one", "all", "none"]
TaskState: TypeAlias = Literal["active", "paused", "ended"]
_Pause: TypeAlias = Annotated[float, Meta(ge=0, lt=1e10)]

NAME_LENGTH_AT_MOST = 200
ONLY_INPUT = ""  # stands for the name of the only input of a plan
BY_HAND = ""  # the schedule of a task that runs only when a person asks for it
_DAY_SECONDS = 86_400.0


class TaskDefinition(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Everything about a task that a person decides. It is exported as TOML and sent as JSON.

    `plan` is the path of a plan file, and `plan_name` picks one of several plans in it. `catch_up` decides
    about times that were missed: `one` late run stands for all of them, `all` of them run late, or `none`.
    Times that are longer ago than the window never run. A failed run is tried again `retries` times, after a
    pause that doubles. `first` decides for `diff` whether the first run is a baseline or news.
    Further attempts at a `job` find the requests that earlier ones have finished.
    """

    name: str
    plan: str
    plan_name: str | None = None
    schedule: str = BY_HAND
    zone: str | None = None
    inputs: Mapping[str, list[dict[str, Any]]] = msgspec.field(default_factory=dict)
    parameters: Mapping[str, Any] = msgspec.field(default_factory=dict)
    overlap: Overlap = "skip"
    catch_up: CatchUp = "one"
    catch_up_window_seconds: _Pause = 365 * _DAY_SECONDS
    jitter_seconds: _Pause = 0.0
    timeout_seconds: Annotated[float, Meta(ge=0.001, lt=1e10)] | None = None
    retries: Annotated[int, Meta(ge=0, le=100)] = 0
    retry_pause_seconds: _Pause = 60.0
    pause_after_failures: Annotated[int, Meta(ge=1, le=1_000_000)] | None = None
    ends: Annotated[datetime, Meta(tz=True)] | None = None
    priority: Annotated[int, Meta(ge=-1000, le=1000)] = 0
    first: Literal["baseline", "news"] | None = None
    database: str | None = None
    accounts: Mapping[str, str] = msgspec.field(default_factory=dict)
    alert_after_failures: Annotated[int, Meta(ge=0, le=1_000_000)] = 3
    alert_after_silence_seconds: Annotated[float, Meta(ge=1, lt=1e10)] | None = None
    reload: Literal["manual", "automatic"] = "manual"
    job: bool = False

    @property
    def task_id(self) -> str:
        return task_id_of(self.name)

    def read_schedule(self) -> Schedule | None:
        """Return the schedule, or None for a task that runs by hand only."""
        return None if self.schedule == BY_HAND else parse_schedule(self.schedule, self.zone)

    @property
    def defaults(self) -> dict[str, str]:
        """The database and accounts for statements that name none."""
        found = dict(self.accounts)
        if self.database is not None:
            found["database"] = self.database
        if self.first is not None:
            found["first"] = self.first
        return found


class Task(msgspec.Struct, frozen=True):
    """A task as the task database has it. Times up to `scheduled_until` have their occurrences already.

    Intervals count from `anchor`. `version` is the digest of the plan's files.
    """

    definition: TaskDefinition
    version: str
    state: TaskState
    state_reason: str
    created: datetime
    changed: datetime
    anchor: datetime
    scheduled_until: datetime
    failures: int = 0
    last_success: datetime | None = None
    last_failure: datetime | None = None
    feed_key: str = ""

    @property
    def task_id(self) -> str:
        return self.definition.task_id

    @property
    def name(self) -> str:
        return self.definition.name


def task_id_of(name: str) -> str:
    """Return the id of the task of a name; so a plan that adds a task knows its id before it exists."""
    return blake2b(name.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()


def default_name(plan: str, inputs: Mapping[str, Any], schedule: str | None = None) -> str:
    """Return a name made of plan, inputs and perhaps schedule: `homes city=Irvine (05 08-17 1,3,5 * *)`."""
    stem = PurePath(plan).stem
    rows = [row for rows in inputs.values() for row in rows]
    told = ""
    if len(rows) == 1:
        told = " ".join(f"{name}={_shown(value)}" for name, value in rows[0].items())
    elif rows:
        text = json.dumps(inputs, sort_keys=True, default=str)
        told = f"{len(rows)} rows {blake2b(text.encode(), digest_size=3).hexdigest()}"
    name = f"{stem} {told}".strip()
    name = re.sub(r"[^\S ]|[\x00-\x1f\x7f]", " ", name)
    suffix = f" ({schedule})" if schedule else ""
    if len(name) + len(suffix) > NAME_LENGTH_AT_MOST:
        digest = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
        name = f"{name[: NAME_LENGTH_AT_MOST - len(suffix) - 10]} {digest}"
    return name + suffix


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str)


class DefinitionError(InputError):
    """A definition has mistakes: pairs of a key and a message. The key is "" for one that is missing."""

    def __init__(self, name: object, mistakes: Sequence[tuple[str, str]]) -> None:
        super().__init__("\n".join(f"task {name!r}: {message}" for _, message in mistakes))
        self.name = name
        self.mistakes = tuple(mistakes)


def read_definition(content: Mapping[str, Any]) -> TaskDefinition:
    """Return the definition in a mapping of JSON or TOML; a DefinitionError lists every mistake.

    Times with a name that ends in `_seconds` may be texts such as `90s`. Rows and parameters are as JSON has
    them, since a task is stored so.
    """
    read: dict[str, Any] = {}
    mistakes: list[tuple[str, str]] = []
    for key, value in content.items():
        try:
            read[key] = _read_value(key, value)
        except InputError as error:
            mistakes.append((key, str(error)))
    mistakes += [("", f"it has no {key}") for key in ("name", "plan") if key not in content]
    mistakes += _senseless(read)
    if mistakes:
        raise DefinitionError(content.get("name", ""), mistakes)
    return _with_zone(TaskDefinition(**read))


def _with_zone(definition: TaskDefinition) -> TaskDefinition:
    """Return a definition whose line has a zone: services on other machines must agree on its times."""
    schedule = definition.read_schedule()
    if definition.zone is not None or schedule is None or isinstance(schedule.rule, Interval):
        return definition
    return msgspec.structs.replace(definition, zone=find_zone(None)[1])


@cache
def _types() -> dict[str, Any]:
    return {each.name: each.type for each in msgspec.structs.fields(TaskDefinition)}


def _read_value(key: str, value: Any) -> Any:
    """Return the value of a key; an InputError says what it must be."""
    if key not in _types():
        raise InputError(f"unknown setting {key!r}{suggestion(key, _types())}")
    if key.endswith("_seconds") and isinstance(value, str):
        try:
            value = seconds(value)
        except InputError as error:
            raise InputError(f"{key}: {error}") from None
    elif key == "ends" and isinstance(value, str):
        value = _moment(value)
    elif key in ("inputs", "parameters"):
        value = msgspec.json.decode(msgspec.json.encode(value, enc_hook=str))
    expected = _expected(msgspec.inspect.type_info(_types()[key]), key)
    try:
        read = msgspec.convert(value, _types()[key])
    except msgspec.ValidationError as error:
        if not expected:
            raise InputError(f"{key}: {error}") from None
        shown = repr(value) if isinstance(value, str) else _shown(value)
        raise InputError(f"{key} must be {expected}, not {shown}") from None
    if isinstance(read, float) and math.isnan(read):
        raise InputError(f"{key} must be {expected}, not nan")
    return read


def _moment(text: str) -> datetime | str:
    """Return the moment of a text; seconds may be left out, unlike in JSON. A text that is none stays one."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return text


def _expected(kind: msgspec.inspect.Type, key: str) -> str:
    """Return the form that a value must have, for messages; "" for tables."""
    if isinstance(kind, msgspec.inspect.UnionType):
        (kind,) = (each for each in kind.types if not isinstance(each, msgspec.inspect.NoneType))
    match kind:
        case msgspec.inspect.LiteralType():
            *others, last = map(str, kind.values)
            return f"{', '.join(others)} or {last}"
        case msgspec.inspect.IntType():
            return f"a whole number from {kind.ge:,} to {kind.le:,}"
        case msgspec.inspect.FloatType():
            return f"a time of at least {kind.ge:g} s, like 90s or 15m"
        case msgspec.inspect.DateTimeType():
            return "a time with its offset, as in 2026-12-31T18:00+01:00"
        case msgspec.inspect.BoolType():
            return "true or false"
        case msgspec.inspect.StrType():
            return "a text"
    return ""


def _senseless(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the mistakes in values of the right types. The plan and its inputs are checked elsewhere."""
    name = values.get("name", "x")
    if not name.strip() or name != name.strip() or not name.isprintable():
        yield "name", f"the name of a task is printable text without spaces around it, not {name!r}"
    elif len(name) > NAME_LENGTH_AT_MOST:
        yield "name", f"the name of a task has at most {NAME_LENGTH_AT_MOST} characters, not {len(name)}"
    zone = values.get("zone")
    try:
        find_zone(zone)
    except InputError as error:
        yield "zone", str(error)
        zone = "UTC"
    try:
        if values.get("schedule", BY_HAND) != BY_HAND:
            parse_schedule(values["schedule"], zone)
    except (InputError, SettingError) as error:
        yield "schedule", str(error)
