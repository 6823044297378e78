"""Settings in force, the file of settings, and modules with code, which owners change."""

from __future__ import annotations

import re
from inspect import signature
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from aioflow.config.configuration import FILE_NAME, as_configuration
from aioflow.config.masking import mask
from aioflow.config.sections import ENGINE_ARGUMENTS
from aioflow.engine import Engine
from aioflow.errors import InputError
from aioflow.service.allowance import CODE_FOLDER
from aioflow.service.rest.declarations import RestCall, RouteTable
from aioflow.service.rest.plan_files import TextFile

TABLE = RouteTable("settings")

# The URLs of chats and gateways have their tokens in any part: `slack://TOKEN/TOKEN`.
_MODULE = re.compile(r"[a-z_][a-z0-9_]{0,63}")


class SettingView(msgspec.Struct, frozen=True):
    """A setting in force; credentials are masked. `origin` is a file, a variable, an option or `default`."""

    setting: str
    value: Any
    origin: str


class SettingList(msgspec.Struct, frozen=True):
    settings: list[SettingView]


class FileContent(msgspec.Struct, frozen=True):
    """The text of a file and its version; both are null for a file that does not exist."""

    text: str | None
    version: str | None


class FileChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The new text of a file. `version` is the one to be replaced, null for a new file."""

    text: Annotated[str, Meta(max_length=1_000_000)]
    version: Annotated[str, Meta(max_length=64)] | None = None


class FileSaved(msgspec.Struct, frozen=True):
    """The new version, which takes effect when the service starts again."""

    version: str
    takes_effect: str = "when the service starts again"


class ModuleList(msgspec.Struct, frozen=True):
    """Modules with operators and functions. Those that `ops` of the settings names are loaded."""

    modules: list[str]
    loaded: list[str]


@TABLE.add("GET", "/api/settings")
async def list_settings(call: RestCall[None, None]) -> SettingList:
    """List every setting in force, and its origin."""
    parameters = signature(Engine).parameters
    found = []
    for setting in call.context.service.configuration.settings():
        value = setting.public_value
        argument = ENGINE_ARGUMENTS.get(setting.name)
        if argument is not None and value is None:
            value = parameters[argument].default
        found.append(SettingView(setting.name, _plain(value), mask(setting.where)))
    return SettingList(found)


@TABLE.add("GET", "/api/settings/file", role="owner")
async def read_settings_file(call: RestCall[None, None]) -> FileContent:
    """Return the file aioflow.toml in the home of the service."""
    return _content(_settings_file(call))


@TABLE.add("PUT", "/api/settings/file", role="owner", refusals=(409, 422))
async def save_settings_file(call: RestCall[None, FileChange]) -> FileSaved:
    """Replace the file aioflow.toml in the home of the service, after a check of all its settings."""
    import tomllib

    try:
        tables = tomllib.loads(call.body.text)
    except ValueError as error:
        raise InputError(f"{FILE_NAME}: {error}") from None
    as_configuration(tables)
    return FileSaved(_settings_file(call).write(call.body.text, call.body.version))


@TABLE.add("GET", "/api/code", role="owner")
async def list_code(call: RestCall[None, None]) -> ModuleList:
    """List the modules with code in the home of the service."""
    folder = call.context.service.home / CODE_FOLDER
    names = sorted(path.stem for path in folder.glob("*.py") if _MODULE.fullmatch(path.stem))
    return ModuleList(names, list(call.context.service.configuration.ops))


@TABLE.add("GET", "/api/code/{name}", role="owner", refusals=(404, 422))
async def read_code(call: RestCall[None, None]) -> FileContent:
    """Return the text of a module."""
    text, version = _module(call).read()
    return FileContent(text, version)


@TABLE.add("PUT", "/api/code/{name}", role="owner", refusals=(409, 422))
async def save_code(call: RestCall[None, FileChange]) -> FileSaved:
    """Save a module of Python that has no syntax errors.

    It is loaded when `ops` of the settings names it, as in `ops = ["code.my_operators"]`.
    """
    file = _module(call)
    try:
        compile(call.body.text, file.path.name, "exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        place = f" on line {error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        reason = error.msg if isinstance(error, SyntaxError) else str(error)
        raise InputError(f"{file.path.name} is no Python: {reason}{place}") from None
    return FileSaved(file.write(call.body.text, call.body.version))


@TABLE.add("DELETE", "/api/code/{name}", role="owner", status=204, refusals=(404, 422))
async def remove_code(call: RestCall[None, None]) -> None:
    """Remove a module."""
    _module(call).remove(None)


def _settings_file(call: RestCall[Any, Any]) -> TextFile:
    return TextFile(call.context.service.home / FILE_NAME, FILE_NAME)


def _content(file: TextFile) -> FileContent:
    if not file.path.is_file():
        return FileContent(None, None)
    return FileContent(*file.read())


def _module(call: RestCall[Any, Any]) -> TextFile:
    name = call.path["name"]
    if not _MODULE.fullmatch(name):
        raise InputError(f"a module is named in small letters, digits and '_', not {name[:80]!r}")
    return TextFile(call.context.service.home / CODE_FOLDER / f"{name}.py", f"module {name}")


def _plain(value: Any) -> Any:
    """Return a value as JSON has it."""
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)
