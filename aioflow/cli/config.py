"""The settings that a command works with: its options, then all that `aioflow.config.configuration` reads.

`aioflow config` shows them. Commands about messages or marks find their database here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from aioflow.config.configuration import Configuration, read_configuration
from aioflow.config.folders import shown_path
from aioflow.config.sections import ENGINE_ARGUMENTS, Place
from aioflow.errors import InputError

if TYPE_CHECKING:
    from aioflow.state.databases import Databases
    from aioflow.state.driver import Address

# `://` and paths may hold a `=`; before it only a name makes it one.
_NAMED_URL = re.compile(r"([A-Za-z_][\w-]*)=(.*)", re.DOTALL)


def engine_defaults() -> dict[str, Any]:
    """Return the defaults of the engine, by argument."""
    from inspect import signature

    from aioflow.engine import Engine

    parameters = signature(Engine).parameters
    return {argument: parameters[argument].default for argument in ENGINE_ARGUMENTS.values()}


def effective_settings(options: Mapping[str, Any], plan_path: str | None = None) -> Configuration:
    """Return the settings in force for a command; options that were not given are None or empty."""
    folder = None if plan_path is None else Path(plan_path).parent
    http = options.get("http", {})
    if http.get("cache"):
        configured = read_configuration(folder, {**options, "http": {**http, "cache": None}}, label=_label)
        if isinstance(configured.get("http", {}).get("cache"), Path):
            # There is a cache already, and --cache says that it is to be used, not where it is.
            return configured
    return read_configuration(folder, options, label=_no_cache if http.get("cache") is False else _label)


def _label(place: Place) -> str:
    return "--db" if place[0] == "database" else f"--{place[-1]}"


def _no_cache(place: Place) -> str:
    return "--no-cache" if place == ("http", "cache") else _label(place)


def web_configuration(options: Mapping[str, Any], plan_path: str | None = None) -> Configuration:
    """Return the settings in force for a command that makes requests; files that they name must exist."""
    settings = effective_settings(options, plan_path)
    replay = settings.get("http", {}).get("replay")
    if replay is not None and not replay.is_file():
        where = settings.where("http", "replay")
        named = where if where.startswith("--") else f"{where}: http.replay"
        raise InputError(f"{named}: there is no recording {shown_path(replay)}")
    return settings


def database_options(databases: Sequence[str] | None) -> dict[str, dict[str, Any]]:
    """Return the databases of the command line, as the tables that they stand for."""
    tables: dict[str, Any] = {}
    for text in databases or ():
        named = _NAMED_URL.fullmatch(text)
        name, url = (named[1], named[2]) if named else ("default", text)
        if ":" not in url:
            raise InputError(
                f"--db takes a URL, like sqlite:houses.db, or a name and a URL, like "
                f"{named[1] if named else text}=sqlite:houses.db, not {text!r}"
            )
        tables[name] = {"url": url}
    return {"database": tables}


def web_options(
    offline: bool, cache: bool | None, record: str | None, replay: str | None
) -> dict[str, dict[str, Any]]:
    """Return the options about answers that are kept, as the table that they stand for."""
    return {"http": {"offline": offline or None, "cache": cache, "record": record, "replay": replay}}


class DatabaseChoice(msgspec.Struct, frozen=True):
    """A database, and the settings there."""

    configuration: Configuration
    databases: Databases
    address: Address


def find_database(db: str | None, plan_path: str | None) -> DatabaseChoice:
    """The database that `--db` names, by its name or URL, or else that of a plan or of this folder."""
    from aioflow.state.databases import Databases

    if plan_path is not None and not os.path.exists(plan_path):
        raise InputError(f"there is no file {plan_path}")
    is_url = db is not None and ":" in db
    configuration = effective_settings(database_options([db] if db and is_url else None), plan_path)
    databases = Databases(configuration)
    name = "default" if is_url else db
    if db and is_url and "=" in db.partition(":")[0]:
        name = db.partition("=")[0]
    address = databases.address(name, Path(plan_path).parent if plan_path else Path.cwd())
    if address.path is not None and not address.path.exists():
        raise InputError(f"there is no database {address.shown}; --db names another one")
    return DatabaseChoice(configuration, databases, address)
