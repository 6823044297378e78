"""The home of a service: the folder with its database and its plans."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from aioflow.config.configuration import Configuration
from aioflow.config.folders import data_folder, shown_path
from aioflow.errors import InputError
from aioflow.service.settings import SERVICE
from aioflow.service.store.database import ServiceDatabase
from aioflow.state.databases import Databases
from aioflow.state.driver import Address

FILE_NAME = "service.db"
PLANS_FOLDER = "plans"
HOME_VARIABLE = "AIOFLOW_HOME"


def find_home(given: str | None) -> Path:
    """Return the home of a service: the folder that is given, that of AIOFLOW_HOME, or the user's own."""
    text = given or os.environ.get(HOME_VARIABLE) or ""
    return Path(os.path.abspath(Path(text).expanduser())) if text else data_folder()


def service_address(configuration: Configuration, databases: Databases, home: Path) -> Address:
    """Return the address of the task database."""
    name = configuration.section(SERVICE).database
    if name:
        return databases.address(name, home)
    path = home / FILE_NAME
    return Address("service", f"sqlite:{path}", shown_path(path), path)


def open_service_database(
    configuration: Configuration,
    home: Path,
    *,
    databases: Databases | None = None,
    clock: Callable[[], datetime] | None = None,
    warn: Callable[[str], None] = lambda message: None,
) -> ServiceDatabase:
    """Return the task database of a home. A missing home is made; others than its user cannot read it."""
    databases = databases or Databases(configuration)
    address = service_address(configuration, databases, home)
    if address.path is not None and address.path.is_dir():
        raise InputError(f"the task database {address.shown} is a folder: move it away, or take another home")
    if address.path is not None:
        address.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        address.path.touch(mode=0o600)  # secret addresses of feeds are in it
    return ServiceDatabase(databases, address, clock=clock, warn=warn)
