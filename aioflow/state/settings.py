"""`[database.NAME]` of the configuration."""

from __future__ import annotations

import re

from aioflow.dataclass import dataclass
from aioflow.errors import InputError
from aioflow.section import Section, more_than_nothing
from aioflow.state.urls import url_parts

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
