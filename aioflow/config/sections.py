"""Tables of the configuration as services declare them: a frozen dataclass gives keys, types and defaults.

`aioflow.config.configuration` reads the files and variables.
"""

from __future__ import annotations

import math
import re
import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, Literal, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec.structs import replace

from aioflow.config.masking import MASK
from aioflow.errors import InputError, suggestion
from aioflow.values.quantities import byte_count, byte_text, seconds

T = TypeVar("T")
# ("workers",), ("http", "rate"), ("host", "example.org", "headers", "Accept")
Place: TypeAlias = tuple[str, ...]

MODES = ("D-", "D+S-", "D+S+")

_UNITS = ("bytes", "seconds")
_WORDS = {
    "true": True,
    "yes": True,
    "on": True,
    "1": True,
    "false": False,
    "no": False,
    "off": False,
    "0": False,
}
_EXPECTED = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
    Path: "a path",
    "bytes": "a number of bytes or a text like '32MiB'",
    "seconds": "a number of seconds or a text like '30s'",
}
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_SENSITIVE = re.compile(r"auth|passw|token|secret|credential|cookie$|key$", re.IGNORECASE)
_BY_REFERENCE = re.compile(r"(\S+ ){0,2}secret:[\w-]+")
# An unescaped password may contain any character.
_USERINFO = re.compile(r"(?<=://)(?:[^/\s@:]*:\S*|[^/\s@]+)(?=@)")
_OPTION = re.compile(
    r"(?<=[?&])([^=&\s]*(?:auth|pass|token|secret|credential|key)[^=&\s]*=)(?!secret:)[^&\s]+", re.IGNORECASE
)


class Section(msgspec.Struct, Generic[T], frozen=True, dict=True):
    """A table: `[http]`, or if it is `named` any number of them: `[host."example.org"]`.

    `refine` has, for some keys, a function that takes a value of the right type and returns it as it is to
    be used, or raises an InputError that ends the sentence "must be …". `read_name` does so for names.
    Named tables whose names can be parts of variables can be set `in_environment` too.
    """

    name: str
    kind: type[T]
    named: bool = False
    refine: Mapping[str, Callable[[Any], Any]] = msgspec.field(default_factory=dict)
    read_name: Callable[[str], str] = str
    in_environment: bool = True

    @cached_property
    def keys(self) -> dict[str, Key]:
        hints = get_type_hints(self.kind)
        described: Any = self.kind
        declared = (Key.of(each, hints[each.name]) for each in fields(described))
        return {key.name: key for key in declared}

    def settings(self, values: Mapping[str, Any]) -> T:
        """Return the table with these values, and the defaults of all others."""
        return self.kind(**{self.keys[name].parameter: value for name, value in values.items()})

    def key(self, place: Place) -> Key:
        """Return the key of a place, by its last part; unknown ones are mistakes."""
        name = place[-1]
        found = self.keys.get(name)
        if found is None:
            with_unit = [f"{name}_{unit}" for unit in (*_UNITS, "rows") if f"{name}_{unit}" in self.keys]
            near = f"; did you mean {with_unit[0]!r}?" if with_unit else suggestion(name, self.keys)
            raise InputError(f"unknown setting {place_text(place)!r}{near}")
        return found

    def read(self, key: Key, value: Any, *, is_text: bool, folder: Path) -> Any:
        """Return a value as it is to be used; an InputError says what it must be."""
        converted = key.convert(value, is_text=is_text, folder=folder)
        refine = self.refine.get(key.name)
        return converted if refine is None or converted is None else refine(converted)


class Key(msgspec.Struct, frozen=True):
    """One key of a table; `choices` are the types that its value may have."""

    name: str
    choices: tuple[Any, ...]
    default: Any
    unit: str | None
    united: bool  # lists of all layers are joined; else the first wins, as for every other key
    parameter: str  # the name in Python, which may need an underscore: `from_`
    words: str | None = None  # the form of a value, if the types alone do not say it
    inner_names: tuple[str, ...] = ()  # of a table, the names that it may have; () for any

    @classmethod
    def of(cls, declared: Field[Any], hint: Any) -> Key:
        choices = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
        default = declared.default if declared.default is not MISSING else None
        if declared.default_factory is not MISSING:
            default = declared.default_factory()
        unit = next((unit for unit in _UNITS if declared.name.endswith(f"_{unit}")), None)
        metadata = declared.metadata
        return cls(
            declared.name.rstrip("_"),
            choices,
            default,
            metadata.get("unit", unit),
            metadata.get("united", False),
            declared.name,
            metadata.get("expected"),
            metadata.get("inner_names", ()),
        )

    @property
    def is_table(self) -> bool:
        return any(get_origin(choice) is Mapping for choice in self.choices)

    def check_inner(self, place: Place) -> None:
        """Raise an InputError for a name that this table, which is a key of another, does not have."""
        if self.inner_names and place[-1] not in self.inner_names:
            raise InputError(
                f"unknown setting {place_text(place)!r}{suggestion(place[-1], self.inner_names)}"
            )

    @property
    def expected(self) -> str:
        """The form that a value must have, for messages."""
        if self.words is not None:
            return self.words
        described = [self._described(choice) for choice in self.choices if choice is not type(None)]
        return ", or ".join(described)

    def convert(self, value: Any, *, is_text: bool, folder: Path) -> Any:
        """Return a value of a file or, if it `is_text`, of a variable."""
        if value == "" and type(None) in self.choices:
            return None
        for choice in self.choices:
            converted = self._as(choice, value, is_text, folder)
            if converted is not None:
                parts = converted if isinstance(converted, tuple) else (converted,)
                if any("\0" in str(part) for part in parts):  # no path, URL or header can hold it
                    raise InputError(f"{self.expected}, without the character NUL")
                return converted
        raise InputError(self.expected)

    def _described(self, choice: Any) -> str:
        if get_origin(choice) is tuple:
            return "a list of paths" if Path in get_args(choice) else "a list of texts"
        if get_origin(choice) is Mapping:
            return self._described(get_args(choice)[1]) if _has_lists(choice) else "a text"  # each value
        if get_origin(choice) is Literal:
            return f"one of {', '.join(map(str, get_args(choice)))}"
        return _EXPECTED[self.unit or choice]

    def _as(self, choice: Any, value: Any, is_text: bool, folder: Path) -> Any:
        """Return the value as this type; None if it does not fit."""
        if choice is bool:
            # A folder is hardly ever called `no`; if it is, write `./no`.
            return _boolean(value, is_text or Path in self.choices)
        if choice in (int, float):
            return self._number(choice, value, is_text)
        if get_origin(choice) is tuple:
            texts = _texts(value, is_text)
            if texts is None or Path not in get_args(choice):
                return texts
            return tuple(folder / Path(text).expanduser() for text in texts)
        if get_origin(choice) is Literal:
            return next((each for each in get_args(choice) if each == value), None)
        if _has_lists(choice):
            return self._as(get_args(choice)[1], value, is_text, folder)
        if choice is type(None) or not isinstance(value, str):
            return value if choice is Path and isinstance(value, Path) else None
        # A path is relative to the file that names it. A table is given here value by value.
        return folder / Path(value).expanduser() if choice is Path else value

    def _number(self, kind: type[int] | type[float], value: Any, is_text: bool) -> int | float | None:
        if isinstance(value, str) and self.unit:
            return _quantity(self.unit, value)
        if isinstance(value, bool) or not isinstance(value, (int, float, str) if is_text else (int, float)):
            return None
        if kind is int and isinstance(value, float):
            return None
        try:
            number = kind(value)
        except (ValueError, OverflowError):
            return None
        return number if math.isfinite(number) else None


def _has_lists(choice: Any) -> bool:
    """Return whether a type is that of a table with lists, such as `[service.editor]`."""
    return get_origin(choice) is Mapping and get_origin(get_args(choice)[1]) is tuple


def _boolean(value: Any, is_text: bool) -> bool | None:
    if isinstance(value, bool):
        return value
    return _WORDS.get(value.lower()) if is_text and isinstance(value, str) else None


def _texts(value: Any, is_text: bool) -> tuple[str, ...] | None:
    if isinstance(value, str):
        parts = [part.strip() for part in value.split(",")] if is_text else [value]
        return tuple(filter(None, parts))
    if isinstance(value, list | tuple) and all(isinstance(each, str) for each in value):
        return tuple(value)
    return None


def _quantity(unit: str, text: str) -> int | float | None:
    try:
        return byte_count(text) if unit == "bytes" else _seconds(text)
    except InputError:
        return None


def _seconds(text: str) -> float:
    # Zero is a duration here; its key decides what that means.
    return 0.0 if text.strip() in ("0", "0s") else seconds(text)


# --- for `refine` -------------------------------------------------------------------------------


def at_least(least: float, noun: str = "a number") -> Callable[[Any], Any]:
    """Return a check that refuses smaller numbers."""

    def refine(value: Any) -> Any:
        if value < least:
            raise InputError(f"{noun} of at least {least:g}")
        return value

    return refine


def more_than_nothing(noun: str = "a number") -> Callable[[Any], Any]:
    """Return a check that refuses 0 and negative numbers."""

    def refine(value: Any) -> Any:
        if value <= 0:
            raise InputError(f"{noun} greater than 0")
        return value

    return refine


# --- the keys outside of tables ---------------------------------------------------------------------


@dataclass(frozen=True)
class EngineSettings:
    """The keys outside of tables; None leaves the value to the engine."""

    ops: tuple[str, ...] = field(default=(), metadata={"united": True})
    workers: int | None = None
    capacity: int | None = None
    memory: int | None = field(default=None, metadata={"unit": "bytes"})
    max_depth: int | None = None
    hold_rows: int | None = None
    mode: str | None = None
    account: bool = True


def _mode(value: str) -> str:
    if value.upper() not in MODES:
        raise InputError(f"one of {', '.join(MODES)}")
    return value.upper()


_one_at_least = at_least(1, "a whole number")
ENGINE = Section(
    "",
    EngineSettings,
    refine={
        **dict.fromkeys(("workers", "capacity", "memory", "max_depth", "hold_rows"), _one_at_least),
        "mode": _mode,
    },
)
ENGINE_ARGUMENTS = {
    "workers": "workers",
    "capacity": "capacity_rows",
    "memory": "memory_bytes",
    "max_depth": "max_depth",
    "hold_rows": "hold_rows",
    "mode": "mode",
}


@dataclass(frozen=True)
class PlansSettings:
    """`[plans]`: the folders in which USE looks for files that are not beside the file that uses them."""

    path: tuple[str, ...] = ()


PLANS = Section("plans", PlansSettings)


# --- values in force ----------------------------------------------------------------------------


_WITH_TOKENS = ("notify", "phone")
_AFTER_SCHEME = re.compile(r"(?<=://).+", re.DOTALL)


class SettingValue(msgspec.Struct, frozen=True):
    """A value in force and its origin."""

    place: Place
    value: Any
    where: str
    unit: str | None = None
    folder: Path | None = None  # of the file that set it

    @property
    def name(self) -> str:
        """`http.rate`, `host."example.org".rate`."""
        return place_text(self.place)

    @property
    def public_value(self) -> Any:
        """The value to be shown: credentials are masked, references to secrets are not.

        The URLs of chats and gateways have tokens anywhere in them, so only their schemes are shown.
        """
        value = self.value
        if isinstance(value, tuple):
            return tuple(replace(self, value=each).public_value for each in value)
        if not isinstance(value, str) or not value:
            return value
        if is_sensitive(self.place) and not _BY_REFERENCE.fullmatch(value):
            return MASK
        if self.place[0] in _WITH_TOKENS and self.place[-1] == "url":
            return _AFTER_SCHEME.sub(MASK, value)
        return without_userinfo(value)

    def __str__(self) -> str:
        value = self.public_value
        if value is None or value in ((), {}, ""):
            return "-"
        if isinstance(value, bool):
            return "true" if value else "false"
        if self.unit == "bytes":
            return byte_text(value)
        if isinstance(value, float):
            return f"{value:g} s" if self.unit == "seconds" else f"{value:g}"
        return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def place_text(place: Place) -> str:
    """`host."example.org".rate`."""
    return ".".join(part if _BARE.fullmatch(part) else f'"{part}"' for part in place)


def without_userinfo(text: str) -> str:
    """Return a text with the user and password of a URL masked, and options that may be credentials."""
    return _OPTION.sub(rf"\g<1>{MASK}", _USERINFO.sub(MASK, text))


def is_sensitive(place: Place) -> bool:
    """Return whether a text in this place may be a credential, going by the name of the key."""
    return bool(_SENSITIVE.search(place[-1]))
