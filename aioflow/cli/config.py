"""Settings and where each came from: command line, then environment, then aioflow.toml, then pyproject.toml.

Both files are looked for in the current folder.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aioflow.cli.ending import os_error_text
from aioflow.cli.quantities import byte_count
from aioflow.errors import InputError, suggestion

MODES = ("D-", "D+S-", "D+S+")
ENGINE_ARGUMENTS = {
    "workers": "workers",
    "capacity": "capacity_rows",
    "memory": "memory_bytes",
    "mode": "mode",
}


@dataclass(frozen=True)
class Origin:
    """A value and who set it."""

    value: Any
    where: str


@dataclass(frozen=True)
class Settings:
    """What the engine is started with; None leaves it to the engine's default."""

    origins: Mapping[str, Origin]

    def get(self, name: str) -> Any:
        origin = self.origins.get(name)
        return origin.value if origin else None

    @property
    def ops(self) -> tuple[str, ...]:
        return self.get("ops") or ()

    def engine_arguments(self) -> dict[str, Any]:
        """The keyword arguments of Engine that were set."""
        return {
            argument: self.get(name)
            for name, argument in ENGINE_ARGUMENTS.items()
            if self.get(name) is not None
        }


def engine_defaults() -> dict[str, Any]:
    """What the engine does when nothing is set, by argument."""
    from inspect import signature

    from aioflow.engine import Engine

    parameters = signature(Engine).parameters
    return {argument: parameters[argument].default for argument in ENGINE_ARGUMENTS.values()}


def effective_settings(command_line: Mapping[str, Any]) -> Settings:
    """The settings in force; `ops` are taken from everywhere, the rest from the first that sets it."""
    layers = [
        *_layer(command_line, lambda name: f"--{name}"),
        *_environment(),
        *_toml(Path("aioflow.toml"), ()),
        *_toml(Path("pyproject.toml"), ("tool", "aioflow")),
    ]
    origins: dict[str, Origin] = {}
    for name, origin in layers:
        if name not in origins:
            origins[name] = origin
        elif name == "ops":
            known = origins[name]
            modules = tuple(dict.fromkeys((*known.value, *origin.value)))
            origins[name] = Origin(modules, f"{known.where}, {origin.where}")
    return Settings(origins)


def _layer(values: Mapping[str, Any], where: Callable[[str], str]) -> Iterator[tuple[str, Origin]]:
    for name, value in values.items():
        if value is not None and value != () and value != []:
            yield name, Origin(_read(name, value, where(name)), where(name))


def _environment() -> Iterator[tuple[str, Origin]]:
    found: dict[str, Any] = {}
    for name in _READERS:
        text = os.environ.get(f"AIOFLOW_{name.upper()}")
        if text:
            found[name] = [each.strip() for each in text.split(",")] if name == "ops" else text
    return _layer(found, lambda name: f"AIOFLOW_{name.upper()}")


def _toml(path: Path, tables: tuple[str, ...]) -> Iterator[tuple[str, Origin]]:
    try:
        content: Any = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return iter(())
    except OSError as error:
        raise InputError(f"cannot read configuration: {os_error_text(error)}") from error
    except ValueError as error:
        raise InputError(f"{path}: {error}") from error
    for table in tables:
        content = content.get(table, {})
    where = f"{path} [{'.'.join(tables)}]" if tables else str(path)
    # Tables belong to services that read them themselves.
    values = {name: value for name, value in content.items() if not isinstance(value, dict)}
    for name in values:
        if name not in _READERS:
            raise InputError(f"{where}: unknown setting {name!r}{suggestion(name, _READERS)}")
    return _layer(values, lambda name: where)


# --- values -------------------------------------------------------------------------------------


def _read(name: str, value: Any, where: str) -> Any:
    try:
        return _READERS[name](value)
    except InputError as error:
        raise InputError(f"{where}: {name}: {error}") from None


def _positive(value: Any) -> int:
    try:
        number = int(value)
    except (TypeError, ValueError):
        number = 0
    if number < 1 or isinstance(value, bool | float):
        raise InputError(f"must be a whole number of at least 1, not {value!r}")
    return number


def _memory(value: Any) -> int:
    return byte_count(value) if isinstance(value, str) else _positive(value)


def _mode(value: Any) -> str:
    if str(value).upper() not in MODES:
        raise InputError(f"must be one of {', '.join(MODES)}, not {value!r}")
    return str(value).upper()


def _modules(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list | tuple) or not all(isinstance(each, str) for each in value):
        raise InputError(f"must be a list of module names, not {value!r}")
    return tuple(value)


_READERS: Mapping[str, Callable[[Any], Any]] = {
    "ops": _modules,
    "workers": _positive,
    "capacity": _positive,
    "memory": _memory,
    "mode": _mode,
}
