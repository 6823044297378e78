"""Databases by name: `[database.NAME]` of the configuration, their addresses, and the driver of each.

A URL is shown without its users, passwords and options. Runs of one engine take turns in writing to a
database; the lock for that is here too.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qsl, quote, unquote, urlsplit, urlunsplit

import msgspec

from aioflow.authoring.services import Scope, ServiceHost
from aioflow.config.configuration import as_configuration
from aioflow.config.entry_points import installed
from aioflow.config.folders import data_folder, shown_path
from aioflow.config.masking import conceal
from aioflow.config.secrets import Secrets
from aioflow.config.sections import Section, more_than_nothing
from aioflow.errors import AioflowError, InputError, suggestion
from aioflow.state.driver import Address, Connection, Driver

# Options by which a driver would take a password, or where to find one.
_PASSWORDS = frozenset({"password", "passfile", "sslpassword"})
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:(?=\S)", re.IGNORECASE)
_SERVER = re.compile(
    r"//(?:(?P<user>[^/?#]*)@)?(?P<hosts>[^/?#@]*)(?P<path>[^?#@]*)(?:\?(?P<query>[^#@]*))?(?:#[^@]*)?",
    re.DOTALL,
)
_HOST = re.compile(r"(\[[0-9A-Fa-f:.%]*\]|[^\[\]:]*)(:\d*)?")


class DatabaseUrl(msgspec.Struct, frozen=True):
    """The parts of a database's URL: the text that may be shown, and the passwords in it."""

    shown: str
    passwords: tuple[str, ...] = ()


def url_parts(url: str) -> DatabaseUrl:
    """Return the parts of a URL.

    An InputError ends the sentence "must be …", and never repeats any part of the URL.
    """
    scheme = _SCHEME.match(url)
    if scheme is None:
        raise InputError("a URL, like 'sqlite:houses.db' or 'postgresql://user@host/name'")
    rest = url[scheme.end() :]
    if scheme[0].lower() == "sqlite:" or not rest.startswith("//"):
        return DatabaseUrl(url)
    found = _SERVER.fullmatch(rest)
    if found is None or not all(map(_HOST.fullmatch, found["hosts"].split(","))):
        raise InputError(
            "a URL like 'postgresql://user@host:5432/name', with signs such as @ / ? # in its parts "
            "written as %40 %2F %3F %23"
        )
    options = parse_qsl(found["query"] or "")
    passwords = [value for name, value in options if name.lower() in _PASSWORDS]
    if password := (found["user"] or "").partition(":")[2]:
        passwords += [password, unquote(password)]
    return DatabaseUrl(f"{scheme[0]}//{found['hosts']}{found['path']}", tuple(passwords))


_SECRET = re.compile(r"secret:[A-Za-z_][\w-]*")


@dataclass(frozen=True)
class DatabaseSettings:
    """A database that plans can name."""

    url: str = ""
    password: str = ""  # by reference: secret:NAME
    wait_seconds: float = 600.0  # for another run that writes, or for a server that is away


def _url(text: str) -> str:
    if url_parts(text).passwords:
        raise InputError(
            "a URL without a password: write password = 'secret:NAME' beside it, or give the whole URL as "
            "'secret:NAME'"
        )
    return text


def _password(text: str) -> str:
    if not _SECRET.fullmatch(text):
        raise InputError("'secret:NAME', with the NAME of a secret")
    return text


DATABASE = Section(
    "database",
    DatabaseSettings,
    named=True,
    refine={"url": _url, "password": _password, "wait_seconds": more_than_nothing("a time")},
)


ENTRY_POINTS = "aioflow.databases"
DEFAULT = "default"
FILE_NAME = "aioflow.db"
_EMBEDDED = "sqlite"
_NO_FILE = Path(":memory:")  # to SQLite


class Databases:
    """The databases that plans of an engine may use; a service of the engine."""

    scope: ClassVar[Scope] = "engine"

    def __init__(self, configuration: Mapping[str, Any]) -> None:
        self._whole = as_configuration(configuration)
        self._settings = self._whole.sections(DATABASE)
        self._secrets = Secrets()
        self._locks: dict[str, asyncio.Lock] = {}

    @classmethod
    def open_service(cls, host: ServiceHost) -> Databases:
        return cls(host.configuration)

    async def close(self) -> None:
        """Do nothing: a connection is closed by its caller."""

    @property
    def names(self) -> list[str]:
        """Return the databases that are configured."""
        return list(self._settings)

    def settings(self, name: str | None) -> DatabaseSettings:
        return self._settings.get(self.name_of(name), DatabaseSettings())

    def name_of(self, name: str | None) -> str:
        """Return the name of a database. None stands for the default, or the only one that is configured."""
        if name is not None:
            return name
        if DEFAULT not in self._settings and len(self._settings) == 1:
            return next(iter(self._settings))
        return DEFAULT

    def address(self, name: str | None, folder: Path) -> Address:
        """Return the address of a database. The embedded default lies in `folder`, that of the plan."""
        chosen = self.name_of(name)
        if name is None and len(self._settings) > 1 and DEFAULT not in self._settings:
            names = ", ".join(self._settings)
            raise InputError(
                f"several databases are configured ({names}) and none is called default: say which, as in "
                f"DB: {next(iter(self._settings))}"
            )
        settings = self._settings.get(chosen)
        if settings is None and chosen != DEFAULT:
            known = ", ".join(self._settings) or "none"
            raise InputError(
                f"there is no database {chosen!r}{suggestion(chosen, self._settings)} (configured: {known}); "
                f'write [database.{chosen}] url = "sqlite:{chosen}.db" into aioflow.toml'
            )
        if settings is None or not settings.url:
            path = embedded_file(folder)
            return Address(chosen, f"{_EMBEDDED}:{path}", shown_path(path), path)
        return self._configured(chosen, settings)

    def _configured(self, name: str, settings: DatabaseSettings) -> Address:
        url = self._secrets.fill_in(settings.url)
        if scheme_of(url) == _EMBEDDED:
            path = self._file(name, url)
            return Address(name, f"{_EMBEDDED}:{path}", shown_path(path), path)
        if url != settings.url:
            _conceal_passwords(name, url)
        if settings.password:
            url = _with_password(name, url, self._secrets.get(settings.password).reveal())
        return Address(name, url, url_parts(url).shown)

    def _file(self, name: str, url: str) -> Path:
        text = url.partition(":")[2]
        path = Path(text[2:] if text.startswith("//") else text).expanduser()
        if str(path) in ("", ".", ":memory:"):
            raise InputError(
                f"[database.{name}]: {url!r} names no file, and a database in memory would be gone with "
                'each connection; write url = "sqlite:houses.db"'
            )
        return Path(os.path.abspath(self._whole.folder("database", name, "url") / path))

    def problems(self, name: str | None, folder: Path) -> list[str]:
        """Return the reasons why a database cannot be used, as far as they show without opening it."""
        try:
            address = self.address(name, folder)
            driver_for(address.url).check(address)
        except AioflowError as error:
            return [str(error)]
        return []

    async def connect(self, address: Address) -> Connection:
        """Open a connection, which the caller closes."""
        return await driver_for(address.url).connect(address)

    async def connect_to_read(self, address: Address) -> Connection:
        """Open a connection as `connect` does, but make no file: a missing one reads as an empty database."""
        return await self.connect(replace(address, path=_NO_FILE) if address.is_missing else address)

    async def prepare(self, connection: Connection, address: Address, warn: Callable[[str], None]) -> None:
        """Make, check or upgrade the system tables of a database."""
        from aioflow.state.system_tables import prepare

        wait_seconds = self.settings(address.name).wait_seconds
        await prepare(connection, driver_for(address.url), address, warn, wait_seconds=wait_seconds)

    def turn(self, address: Address) -> asyncio.Lock:
        """Return the lock that the writing run holds. Runs of one engine wait for it in their order."""
        return self._locks.setdefault(address.url, asyncio.Lock())


def embedded_file(folder: Path) -> Path:
    """Return the file for a plan without a configured database.

    It lies beside the plan, or else among the user's own data.
    """
    # Absolute, but links stay as they are: the user's names are the ones to be shown.
    file = Path(os.path.abspath(folder)) / FILE_NAME
    library = Path(__file__).parent.parent / "plans"
    shipped = any(file.is_relative_to(each) for each in (library, library.resolve()))
    if file.exists() or (os.access(file.parent, os.W_OK) and not shipped):
        return file
    return data_folder() / FILE_NAME


def scheme_of(url: str) -> str:
    return url.partition(":")[0].lower()


def driver_for(url: str) -> Driver:
    """Return the driver for a URL's scheme."""
    return _driver(scheme_of(url))


@cache
def _drivers() -> dict[str, Any]:
    """Return the entry points of drivers, by scheme."""
    return {point.name: point for point in installed(ENTRY_POINTS)}


@cache
def _driver(scheme: str) -> Driver:
    points = _drivers()
    if scheme not in points:
        known = ", ".join(sorted(points))
        raise InputError(
            f"no driver for databases {scheme}:…{suggestion(scheme, points)} (there are: {known})"
        )
    driver: Driver = points[scheme].load()
    return driver


def _conceal_passwords(name: str, url: str) -> None:
    """Mask the passwords in a URL that is a secret as a whole: errors of a driver may repeat parts of it."""
    if scheme_of(url) not in _drivers():  # perhaps it is no URL, and what stands before the colon a password
        raise InputError(
            f"[database.{name}]: its secret holds no URL like postgresql://user:password@host/name"
        )
    try:
        passwords = url_parts(url).passwords
    except InputError as error:
        raise InputError(f"[database.{name}]: its secret must hold {error}") from None
    for password in passwords:
        conceal(password)


def _with_password(name: str, url: str, password: str) -> str:
    parts = urlsplit(url)
    user, at, rest = parts.netloc.rpartition("@")
    if not at:
        raise InputError(
            f"[database.{name}]: a password needs a user in the URL: postgresql://user@host/name"
        )
    escaped = quote(password, safe="")
    conceal(escaped)
    return urlunsplit(parts._replace(netloc=f"{user.partition(':')[0]}:{escaped}@{rest}"))
