"""Secrets by reference: plans and settings say `secret:NAME`; the value is elsewhere and is never shown.

It is looked for in the environment variable `AIOFLOW_SECRET_NAME`, then in a TOML file of the user's own.
`aioflow.config.masking` keeps it from being shown; its functions are imported from here.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import BinaryIO

from aioflow.config.folders import config_folder, shown_path
from aioflow.config.masking import MASK, conceal, mask, mask_values, masked, shows_secret
from aioflow.errors import InputError, suggestion

__all__ = [
    "FILE_VARIABLE",
    "MASK",
    "PREFIX",
    "Secret",
    "Secrets",
    "check_name",
    "conceal",
    "mask",
    "mask_values",
    "masked",
    "references",
    "shows_secret",
    "variable_of",
]

PREFIX = "secret:"
FILE_VARIABLE = "AIOFLOW_SECRETS"

_VARIABLE = "AIOFLOW_SECRET_"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_REFERENCE = re.compile(r"(?<![A-Za-z0-9_-])secret:([A-Za-z0-9_-]*)")


class Secret:
    """A text that is shown only by `reveal`."""

    __slots__ = ("_value", "name")

    def __init__(self, name: str, value: str) -> None:
        self.name = name
        self._value = value

    def reveal(self) -> str:
        """Return the text itself; from now on `mask` knows it."""
        conceal(self._value)
        return self._value

    def __str__(self) -> str:
        return PREFIX + self.name

    def __repr__(self) -> str:
        return f"Secret({self.name!r})"

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("a secret is not written anywhere")


class Secrets:
    """Looks up secrets: in the environment, then in the file that the environment names or the user's own."""

    def __init__(self, environment: Mapping[str, str] | None = None, path: Path | None = None) -> None:
        self._environment = os.environ if environment is None else environment
        named = self._environment.get(FILE_VARIABLE)
        self._is_named = bool(named) or path is not None
        self.path = path or (Path(named).expanduser() if named else config_folder() / "secrets.toml")

    def get(self, name: str) -> Secret:
        """Return the secret of a name, which `secret:` may precede."""
        name = check_name(name.removeprefix(PREFIX))
        value = self._environment.get(variable_of(name)) or self._stored.get(name)
        if value is None:
            near = suggestion(name, self._stored)
            raise InputError(
                f"there is no secret {name!r}{f'{near} Or' if near else ';'} set the environment variable "
                f'{variable_of(name)}, or write {name} = "…" into {shown_path(self.path)} and chmod 600 it'
            )
        return Secret(name, value)

    def fill_in(self, text: str) -> str:
        """Return a text with the values of the secrets that it refers to: `Bearer secret:TOKEN`."""
        if PREFIX not in text:
            return text
        return _REFERENCE.sub(lambda found: self.get(found[1]).reveal(), text)

    def conceal_all(self) -> None:
        """Have `mask` know every secret, including those that were not used."""
        for variable, value in self._environment.items():
            if variable.startswith(_VARIABLE):
                conceal(value)
        # An unreadable file is reported when one of its secrets is needed.
        with suppress(InputError):
            for value in self._stored.values():
                conceal(value)

    @cached_property
    def _stored(self) -> Mapping[str, str]:
        if not self._is_named and not self.path.exists():
            return {}
        # Imported late: most programs have no secrets.
        import tomllib

        shown = shown_path(self.path)
        try:
            with self.path.open("rb") as file:
                _check_mode(file, shown)
                content = tomllib.load(file)
        except FileNotFoundError:
            if self._is_named:
                raise InputError(
                    f"there is no file {shown} with secrets, which {FILE_VARIABLE} names"
                ) from None
            return {}
        except OSError as error:
            raise InputError(f"cannot read secrets: {shown}: {(error.strerror or '').lower()}") from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError):
            # The message of the parser may quote the file, and must not be shown.
            raise InputError(f'{shown}: not TOML; write NAME = "…", one a line') from None
        _check_values(content, shown)
        return content


def check_name(name: str) -> str:
    """Return the name if it is valid for a secret."""
    if not _NAME.fullmatch(name):
        raise InputError(
            f"{name!r} is no name of a secret: letters, digits, _ and -, beginning with a letter or _"
        )
    return name


def variable_of(name: str) -> str:
    """Return the environment variable of a secret: upper case, `_` for `-`."""
    return f"{_VARIABLE}{name.upper().replace('-', '_')}"


def references(text: str) -> Iterator[str]:
    """Return the names of the secrets that a text refers to; each is checked."""
    return (check_name(found[1]) for found in _REFERENCE.finditer(text))


def _check_mode(file: BinaryIO, shown: str) -> None:
    """Refuse a file that others may read. The open file is checked, because it is the one that is read."""
    if os.name == "posix" and stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077:
        raise InputError(f"{shown}: others may read these secrets; say chmod 600 {shown}")


def _check_values(content: Mapping[str, object], shown: str) -> None:
    for name, value in content.items():
        check_name(name)
        if not isinstance(value, str) or not value:
            raise InputError(f'{shown}: {name} must be a text that is not empty: {name} = "…"')
