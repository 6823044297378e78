"""The database that a command about messages or marks is for."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from aioflow.cli.config import database_options, effective_settings
from aioflow.config.configuration import Configuration
from aioflow.errors import InputError
from aioflow.state.databases import Databases
from aioflow.state.driver import Address


@dataclass(frozen=True)
class DatabaseChoice:
    """A database, and the settings there."""

    configuration: Configuration
    databases: Databases
    address: Address


def find_database(db: str | None, plan_path: str | None) -> DatabaseChoice:
    """The database that `--db` names, by its name or URL, or else that of a plan or of this folder."""
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
