"""Settings in force, and the origin of each.

The first layer that sets a key wins: arguments of the caller, the environment, `aioflow.toml` in the current
folder, `aioflow.toml` beside the plan, `[tool.aioflow]` of `pyproject.toml`, the user's own `aioflow.toml`,
the default. Entry points in the group `aioflow.settings` declare the tables.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from aioflow.config.entry_points import installed
from aioflow.config.folders import config_folder, shown_path
from aioflow.config.sections import (
    ENGINE,
    ENGINE_ARGUMENTS,
    PLANS,
    Key,
    Place,
    Section,
    SettingValue,
    is_sensitive,
    without_userinfo,
)
from aioflow.errors import InputError, suggestion

T = TypeVar("T")

ENTRY_POINTS = "aioflow.settings"
FILE_NAME = "aioflow.toml"
DEFAULT = "default"

_VARIABLE = "AIOFLOW_"
_NO_SETTINGS = ("debug", "complete")
# The least similarity of a variable and a setting for the variable to be a misspelling.
_NEAR = 0.75


class Configuration(Mapping[str, Any]):
    """The settings in force. As a mapping it has the settings that were set, in tables as in a file."""

    def __init__(self, settings: Iterable[SettingValue] = ()) -> None:
        self._settings = {setting.place: setting for setting in settings}

    def section(self, section: Section[T]) -> T:
        """Return a table's settings, the defaults among them."""
        return section.settings(self._values((section.name,) if section.name else (), section))

    def sections(self, section: Section[T]) -> dict[str, T]:
        """Return the settings of each table of a named section, by name."""
        return {
            name: section.settings(self._values((section.name, name), section))
            for name in self._names(section)
        }

    @property
    def ops(self) -> tuple[str, ...]:
        """Modules with operators of the user's own."""
        return self.section(ENGINE).ops

    @property
    def account(self) -> bool:
        """True if the command line ends runs with an account."""
        return self.section(ENGINE).account

    def engine_arguments(self) -> dict[str, Any]:
        """Return the keyword arguments of Engine that were set."""
        found = {argument: self._settings.get((key,)) for key, argument in ENGINE_ARGUMENTS.items()}
        return {argument: setting.value for argument, setting in found.items() if setting is not None}

    def where(self, *place: str) -> str:
        """Return the origin of a value: a file, a variable, an option, or `default`."""
        setting = self._settings.get(place)
        return setting.where if setting else DEFAULT

    def folder(self, *place: str) -> Path:
        """Return the folder for relative paths in a value: that of its file, or the current folder."""
        setting = self._settings.get(place)
        return Path.cwd() if setting is None or setting.folder is None else setting.folder

    def settings(self) -> list[SettingValue]:
        """Return every setting, including those left at their defaults."""
        found = list(self._all_of((), ENGINE))
        for section in sorted(map(find_section, section_names()), key=lambda each: (each.named, each.name)):
            if not section.named:
                found += self._all_of((section.name,), section)
            for name in self._names(section) if section.named else ():
                found += self._all_of((section.name, name), section)
        return found

    def _all_of(self, table: Place, section: Section[Any]) -> Iterator[SettingValue]:
        for key in section.keys.values():
            place = (*table, key.name)
            inside = (
                [each for each in self._settings.values() if each.place[:-1] == place] if key.is_table else []
            )
            yield from inside or [
                self._settings.get(place) or SettingValue(place, key.default, DEFAULT, key.unit)
            ]

    def _names(self, section: Section[Any]) -> list[str]:
        tables = (place[1] for place in self._settings if place[0] == section.name and len(place) > 2)
        return list(dict.fromkeys(tables))

    def _values(self, table: Place, section: Section[Any]) -> dict[str, Any]:
        depth = len(table)
        values: dict[str, Any] = {}
        for place, setting in self._settings.items():
            if place[:depth] != table or len(place) == depth or place[depth] not in section.keys:
                continue
            if len(place) == depth + 1:
                values[place[depth]] = setting.value
            else:
                values.setdefault(place[depth], {})[place[-1]] = setting.value
        return values

    def __getitem__(self, name: str) -> Any:
        if (name,) in self._settings:
            return self._settings[(name,)].value
        table: dict[str, Any] = {}
        for place, setting in self._settings.items():
            if place[0] == name:
                inner = table
                for part in place[1:-1]:
                    inner = inner.setdefault(part, {})
                inner[place[-1]] = setting.value
        if not table:
            raise KeyError(name)
        return table

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(place[0] for place in self._settings))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __repr__(self) -> str:
        return (
            f"Configuration({', '.join(f'{setting.name}={setting}' for setting in self._settings.values())})"
        )


# --- reading ------------------------------------------------------------------------------------


class _Layer(msgspec.Struct, frozen=True):
    """Tables from one origin; paths in them are relative to `folder`."""

    tables: Mapping[str, Any]
    where: Callable[[Place], str]
    folder: Path
    is_text: bool = False


def read_configuration(
    plan_folder: str | Path | None = None,
    overrides: Mapping[str, Any] | None = None,
    *,
    label: Callable[[Place], str] = lambda place: "overrides",
) -> Configuration:
    """Return the settings in force here; `overrides` are tables as in a file and win over everything.

    `plan_folder` is the folder of the plan, whose own aioflow.toml is read as well. `label` returns the name
    under which a setting of the overrides is shown.
    """
    here = Path.cwd()
    layers = [_Layer(_given(overrides or {}), label, here), _environment(here), _file(here / FILE_NAME)]
    if plan_folder is not None and Path(plan_folder).resolve() != here.resolve():
        layers.append(_file(Path(os.path.abspath(plan_folder)) / FILE_NAME))
    layers.append(_file(here / "pyproject.toml", ("tool", "aioflow")))
    layers.append(_file(config_folder() / FILE_NAME))
    return _merged(layers)


def as_configuration(tables: Mapping[str, Any]) -> Configuration:
    """Return plain tables as a Configuration, checked in the same way; nothing else is read."""
    if isinstance(tables, Configuration):
        return tables
    return _merged([_Layer(_given(tables), lambda place: "configuration", Path.cwd())])


def _merged(layers: Iterable[_Layer]) -> Configuration:
    found: dict[Place, SettingValue] = {}
    for layer in layers:
        for setting, key in _read(layer):
            known = found.get(setting.place)
            if known is None:
                found[setting.place] = setting
            elif key.united:
                joined = tuple(dict.fromkeys((*known.value, *setting.value)))
                found[setting.place] = SettingValue(setting.place, joined, f"{known.where}, {setting.where}")
    return Configuration(found.values())


def _given(tables: Mapping[str, Any]) -> Mapping[str, Any]:
    """Leave out options that were not given: None or an empty list."""
    return {
        name: _given(value) if isinstance(value, Mapping) else value
        for name, value in tables.items()
        if value is not None and not (isinstance(value, list | tuple) and not value)
    }


def _environment(here: Path) -> _Layer:
    tables: dict[str, Any] = {}
    for variable, text in os.environ.items():
        if not variable.startswith(_VARIABLE) or not text:
            continue
        name = variable.removeprefix(_VARIABLE).lower()
        if name.startswith("secret"):
            continue
        if name in ENGINE.keys:
            tables[name] = text
            continue
        table = next((table for table in section_names() if name.startswith(f"{table}_")), None)
        if table is None:
            _refuse_misspelt(variable, name)
        elif find_section(table).named:
            of, key = _named_place(variable, find_section(table), name.removeprefix(f"{table}_"))
            tables.setdefault(table, {}).setdefault(of, {})[key] = text
        else:
            tables.setdefault(table, {})[name.removeprefix(f"{table}_")] = text
    return _Layer(tables, lambda place: _VARIABLE + "_".join(place).upper(), here, is_text=True)


def _named_place(variable: str, section: Section[Any], rest: str) -> tuple[str, str]:
    """Return the table's name and the key in it: of AIOFLOW_DATABASE_HOUSES_URL, `houses` and `url`."""
    if not section.in_environment:
        raise InputError(f"{variable}: tables [{section.name}.…] can only be set in files")
    found = [key for key in section.keys if rest.endswith(f"_{key}") and rest != f"_{key}"]
    if not found:
        form = f"{_VARIABLE}{section.name.upper()}_NAME_KEY"
        keys = ", ".join(key.upper() for key in section.keys)
        raise InputError(f"{variable}: unknown setting; variables for [{section.name}.…] are {form} ({keys})")
    key = max(found, key=len)
    return rest.removesuffix(f"_{key}"), key


def _refuse_misspelt(variable: str, name: str) -> None:
    """Raise an error for a variable that is nearly one of ours; others belong to other programs."""
    if name in _NO_SETTINGS:
        return
    from difflib import get_close_matches

    known = {key: key for key in ENGINE.keys}
    for section in map(find_section, section_names()):
        if not section.named:
            known |= {f"{section.name}_{key}": key for key in section.keys}
    near = [whole for whole, key in known.items() if key == name]
    near = near or get_close_matches(name, known, n=1, cutoff=_NEAR)
    if near:
        raise InputError(f"{variable}: unknown setting; did you mean {_VARIABLE + near[0].upper()!r}?")


def _file(path: Path, tables: tuple[str, ...] = ()) -> _Layer:
    shown = shown_path(path)
    content = _content(path, shown)
    for table in tables:
        content = content.get(table, {})
        if not isinstance(content, dict):
            raise InputError(f"{shown}: [{'.'.join(tables)}] must be a table")
    where = f"{shown} [{'.'.join(tables)}]" if tables else shown
    return _Layer(content, lambda place: where, path.parent)


def _content(path: Path, shown: str) -> Any:
    try:
        written = path.read_bytes()
    except FileNotFoundError:
        return {}
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InputError(f"cannot read configuration: {reason}: {shown!r}") from error
    # Imported late: often there is no file at all.
    import tomllib

    try:
        # With or without a byte order mark, which some editors write.
        return tomllib.loads(written.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise InputError(f"{shown}: line {line} is not in UTF-8, as all of the file must be") from error
    except ValueError as error:
        raise InputError(f"{shown}: {error}") from error


def _read(layer: _Layer) -> Iterator[tuple[SettingValue, Key]]:
    for name, value in layer.tables.items():
        if name in ENGINE.keys:
            yield from _read_key((name,), value, ENGINE, layer)
            continue
        if name not in section_names():
            known = (*ENGINE.keys, *section_names())
            raise InputError(f"{layer.where((name,))}: unknown setting {name!r}{suggestion(name, known)}")
        for key, inner in _table((name,), value, layer).items():
            # Not for a table without settings, since its module may take long to import.
            section = find_section(name)
            if section.named:
                yield from _read_named(section, key, inner, layer)
            else:
                yield from _read_key((name, key), inner, section, layer)


def _read_named(
    section: Section[Any], name: str, value: Any, layer: _Layer
) -> Iterator[tuple[SettingValue, Key]]:
    place = (section.name, name)
    table = _table(place, value, layer)
    for key, inner in table.items():
        if key not in section.keys and isinstance(inner, dict):
            # In [host.example.org] TOML sees a table `org` inside of `example`.
            whole = _dotted(f"{name}.{key}", inner)
            raise InputError(
                f'{layer.where(place)}: a name with dots stands in quotes: [{section.name}."{whole}"]'
            )
    try:
        place = (section.name, section.read_name(name))
    except InputError as error:
        raise InputError(f"{layer.where(place)}: [{section.name}.{name!r}]: {error}") from None
    for key, inner in table.items():
        yield from _read_key((*place, key), inner, section, layer)


def _read_key(
    place: Place, value: Any, section: Section[Any], layer: _Layer
) -> Iterator[tuple[SettingValue, Key]]:
    try:
        key = section.key(place)
    except InputError as error:
        raise InputError(f"{layer.where(place)}: {error}") from None
    if not key.is_table:
        yield _setting(place, key, value, section, layer), key
        return
    for name, inner in _table(place, value, layer).items():
        try:
            key.check_inner((*place, name))
        except InputError as error:
            raise InputError(f"{layer.where((*place, name))}: {error}") from None
        yield _setting((*place, name), key, inner, section, layer), key


def _setting(place: Place, key: Key, value: Any, section: Section[Any], layer: _Layer) -> SettingValue:
    where = layer.where(place)
    try:
        converted = section.read(key, value, is_text=layer.is_text, folder=layer.folder)
    except InputError as error:
        shown = (
            "" if is_sensitive(place) else f", not {_shown(SettingValue(place, value, where).public_value)}"
        )
        raise InputError(f"{where}: {SettingValue(place, None, where).name} must be {error}{shown}") from None
    if place == ("ops",):
        converted = tuple(_module(name, layer.folder) for name in converted)
    return SettingValue(place, converted, where, key.unit, layer.folder)


def _module(name: str, folder: Path) -> str:
    """Return the path of a module if it is beside the file that names it, else its name."""
    if folder == Path.cwd():
        return name
    beside = folder / (name if name.endswith(".py") else name.replace(".", "/") + ".py")
    return str(beside) if beside.exists() else name


def _table(place: Place, value: Any, layer: _Layer) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        where = layer.where(place)
        raise InputError(
            f"{where}: {SettingValue(place, None, where).name} must be a table, not {_shown(value)}"
        )
    return value


def _dotted(name: str, table: Mapping[str, Any]) -> str:
    inner = next(((key, value) for key, value in table.items() if isinstance(value, dict)), None)
    return name if inner is None else _dotted(f"{name}.{inner[0]}", inner[1])


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return repr(without_userinfo(value) if isinstance(value, str) else value)


# --- sections -----------------------------------------------------------------------------------


@cache
def section_names() -> tuple[str, ...]:
    """Return the names of all tables: those that installed packages declare, and `[plans]`."""
    return tuple(sorted({PLANS.name, *(found.name for found in installed(ENTRY_POINTS))}))


@cache
def find_section(name: str) -> Section[Any]:
    """Return a table's declaration; its package is imported only now."""
    if name == PLANS.name:
        return PLANS
    found = next(point for point in installed(ENTRY_POINTS) if point.name == name)
    try:
        section = found.load()
    except Exception as error:
        raise InputError(
            f"settings [{name}] of the installed package {found.value!r} cannot be loaded: "
            f"{type(error).__name__}: {error}"
        ) from error
    assert isinstance(section, Section)
    return section
