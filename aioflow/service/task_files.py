"""Files of tasks: TOML for version control, and lines as in a crontab, with a plan after the schedule."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import tomli_w

from aioflow.errors import InputError, SettingError
from aioflow.service.schedules.schedule import find_zone, parse_schedule
from aioflow.service.task import TaskDefinition

TABLE = "task"
PAUSED = "paused"
_TABLES = ("inputs", "parameters")
_ZONE = re.compile(r"(?:CRON_TZ|TZ)\s*=\s*(\S+)")
_YEAR = re.compile(r"[*0-9][0-9,*/-]*")
_FIELDS = 5
_HEADER = re.compile(r"\s*\[\[\s*task\s*\]\]")
_KEY = re.compile(r"\s*(?:\[\s*task\s*\.\s*)?\"?([A-Za-z_-]+)\"?\s*[=\].]")


class FileMistake(msgspec.Struct, frozen=True):
    """A mistake in a file of tasks. `line` is 0 where it is not known."""

    line: int
    message: str


class FileTask(msgspec.Struct, frozen=True):
    """A task in a file: the keys of its definition, and their lines. That of "" is the line of the task."""

    content: dict[str, Any]
    lines: Mapping[str, int]
    is_paused: bool = False

    def line_of(self, key: str) -> int:
        return self.lines.get(key) or self.lines.get("", 0)


class TaskLine(msgspec.Struct, frozen=True):
    """A line of a task file: `05 08-17 1,3,5 * * homeseekers.plan city=Irvine`.

    `inputs` are the attributes of the plan's only input, or NAME=@FILE.
    """

    schedule: str
    plan: Path
    inputs: tuple[str, ...]
    zone: str | None
    line: int


def shown_mistakes(mistakes: Iterable[FileMistake], file: Path, text: str) -> str:
    """Return mistakes by line, with the lines themselves unless the mistake is shown with its place."""
    lines = text.split("\n")
    shown: dict[str, None] = {}
    for each in sorted(mistakes, key=lambda mistake: mistake.line):
        place = f"{file}:{each.line}" if each.line else str(file)
        excerpt = f"\n  {lines[each.line - 1].rstrip()}" if each.line and "\n" not in each.message else ""
        shown[f"{place}: {each.message}{excerpt}"] = None
    return "\n".join(shown)


# --- lines --------------------------------------------------------------------------------------


def read_task_lines(
    text: str, file: Path, folder: Path | None = None
) -> tuple[list[TaskLine], list[FileMistake]]:
    """Return the tasks of a file of lines, and all mistakes in its schedules and zones.

    A plan's path begins at `folder`, by default that of the file. `CRON_TZ=Europe/Berlin` sets the zone of
    the lines after it.
    """
    found: list[TaskLine] = []
    mistakes: list[FileMistake] = []
    zone: str | None = None
    for number, line in enumerate(text.split("\n"), 1):
        content = line.strip()
        if not content or content.startswith("#"):
            continue
        try:
            if zone_line := _ZONE.fullmatch(content):
                zone = None  # of the lines after a zone that is wrong
                zone = find_zone(zone_line[1].strip("\"'"))[1]
                continue
            task = _task_line(content, folder or file.parent, zone, number)
            found.append(task)
            parse_schedule(task.schedule, task.zone)
        except (InputError, SettingError, ValueError) as error:
            mistakes.append(FileMistake(number, str(error)))
    return found, mistakes


def _task_line(content: str, folder: Path, zone: str | None, number: int) -> TaskLine:
    words = content.split()
    count = _schedule_words(words)
    if len(words) <= count:
        raise InputError("a plan file must stand after the schedule")
    rest = shlex.split(content.split(None, count)[count])
    return TaskLine(" ".join(words[:count]), folder / rest[0], tuple(rest[1:]), zone, number)


def _schedule_words(words: list[str]) -> int:
    """Return the number of words that are the schedule."""
    if words[0].startswith("@"):
        return 2 if words[0].lower() == "@every" else 1
    if words[0].lower() == "every":
        return 2
    has_year = len(words) > _FIELDS + 1 and _YEAR.fullmatch(words[_FIELDS]) is not None
    return _FIELDS + has_year


# --- TOML ---------------------------------------------------------------------------------------


def read_toml(text: str, file: Path, folder: Path | None = None) -> tuple[list[FileTask], list[FileMistake]]:
    """Return the tasks of a TOML file, and its mistakes.

    Relative paths of plans begin at `folder`, by default that of the file.
    """
    folder = folder or file.parent.absolute()
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{file}: {error}") from None
    mistakes = [
        FileMistake(0, f"unknown table {name!r}; tasks are tables [[{TABLE}]]")
        for name in content
        if name != TABLE
    ]
    tasks = content.get(TABLE)
    if not isinstance(tasks, list) or not all(isinstance(each, dict) for each in tasks):
        mistakes.append(FileMistake(0, f"tasks are tables [[{TABLE}]]; see `aioflow task export`"))
        return [], mistakes
    lines = _lines_of_keys(text)
    if len(lines) != len(tasks):  # a text of several lines may look like a header
        lines = [{} for _ in tasks]
    found = []
    for each, places in zip(tasks, lines, strict=True):
        paused = each.pop(PAUSED, False)
        task = FileTask(each, places, paused is True)
        found.append(task)
        if not isinstance(paused, bool):
            mistakes.append(
                FileMistake(task.line_of(PAUSED), f"{PAUSED} must be true or false, not {paused!r}")
            )
        if isinstance(each.get("plan"), str):
            each["plan"] = str(folder / Path(each["plan"]).expanduser())
        mistakes += _tables_from_json(task)
    return found, mistakes


def _tables_from_json(task: FileTask) -> Iterator[FileMistake]:
    for name in _TABLES:
        if isinstance(task.content.get(name), str):
            try:
                task.content[name] = json.loads(task.content[name])
            except ValueError as error:
                yield FileMistake(task.line_of(name), f"{name}: neither a table nor JSON: {error}")
                del task.content[name]


def _lines_of_keys(text: str) -> list[dict[str, int]]:
    found: list[dict[str, int]] = []
    for number, line in enumerate(text.split("\n"), 1):
        if _HEADER.match(line):
            found.append({"": number})
        elif found and (key := _KEY.match(line)):
            found[-1].setdefault(key[1], number)
    return found


def write_toml(
    definitions: Iterable[TaskDefinition], folder: Path | None = None, *, paused: Collection[str] = ()
) -> str:
    """Return the definitions as TOML; plans within the folder have paths relative to it.

    Tasks whose names are in `paused` are written so.
    """
    entries = [
        dict(_entries(each, folder)) | ({PAUSED: True} if each.name in paused else {}) for each in definitions
    ]
    # Line ends within a text of several lines would be read as \n.
    multiline = "\\r" not in json.dumps(entries, default=str)
    return tomli_w.dumps({TABLE: entries}, multiline_strings=multiline)


def _entries(definition: TaskDefinition, folder: Path | None) -> Iterator[tuple[str, Any]]:
    content: Mapping[str, Any] = msgspec.to_builtins(definition, builtin_types=(type(definition.ends),))
    for name, value in content.items():
        if name == "plan" and folder is not None and Path(value).is_relative_to(folder):
            yield name, str(Path(value).relative_to(folder))
        elif name in _TABLES and _has_null(value):
            yield name, json.dumps(value, ensure_ascii=False)  # TOML has no null
        elif value is not None:
            yield name, value


def _has_null(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(map(_has_null, value.values()))
    return any(map(_has_null, value)) if isinstance(value, list) else value is None
