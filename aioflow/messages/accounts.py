"""Accounts of channels: the tables `[KIND.NAME]` of the configuration. A statement names one or none.

The addresses in them may refer to secrets. Here these are filled in, and parts that give them away are
masked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TypeVar
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from aioflow.authoring.services import ServiceHost
from aioflow.config.masking import conceal
from aioflow.config.secrets import PREFIX, Secrets
from aioflow.errors import InputError, suggestion
from aioflow.state.databases import Databases

T = TypeVar("T")

DEFAULT = "default"


def choose(kind: str, accounts: Mapping[str, T], name: str | None, example: str) -> tuple[str, T]:
    """Return the account of a name, or the default or only one; an InputError says how to set one.

    `example` is an example of its table.
    """
    if name is None:
        name = next(iter(accounts)) if len(accounts) == 1 else DEFAULT
    if name in accounts:
        return name, accounts[name]
    how = f"write [{kind}.{name}] {example} into aioflow.toml"
    if not accounts:
        raise InputError(f"nothing is configured for {kind}: {how}")
    known = ", ".join(accounts)
    if name == DEFAULT:
        raise InputError(
            f"several accounts are configured for {kind} ({known}): say VIA: {next(iter(accounts))}"
        )
    raise InputError(
        f"there is no {kind} account {name!r}{suggestion(name, accounts)} (configured: {known}); {how}"
    )


def outbox_problems(database: str | None, host: ServiceHost) -> list[str]:
    """Return the known problems that keep a database from taking the messages of a run."""
    assert host.run is not None
    return host.service(Databases).problems(host.run.default("database", database), host.run.folder)


_REFERENCE = re.compile(r"(?<![A-Za-z0-9_-])secret:([A-Za-z0-9_-]+)")
# Shorter parts of a secret address are words like `api` or `v2`, which would be masked everywhere.
_TELLING_CHARACTERS = 6


def fill_in_address(address: str, secrets: Secrets) -> str:
    """Return an address with its secrets filled in; they are escaped for a URL unless they are all of it."""
    if _REFERENCE.fullmatch(address):
        return _concealed(secrets.get(address).reveal().strip())
    return _REFERENCE.sub(lambda found: quote(secrets.get(found[1]).reveal(), safe=""), address)


def referred_secrets(text: str) -> list[str]:
    """Return the secrets that a text refers to."""
    return [PREFIX + found[1] for found in _REFERENCE.finditer(text)]


def _concealed(address: str) -> str:
    """Conceal the parts of an address, which services may repeat in their responses; return the address."""
    for part in _parts(address):
        if len(part) >= _TELLING_CHARACTERS:
            conceal(part)
    return address


def _parts(address: str) -> Iterator[str]:
    try:
        parts = urlsplit(address)
        yield from filter(None, (parts.username, parts.password))
    except ValueError:
        return
    # In many of apprise's URLs tokens stand where others have a host. Names with dots are hosts.
    names = [part for part in re.split(r"[@:]", parts.netloc) if "." not in part]
    for text in (*names, *parts.path.split("/")):
        yield text
        yield unquote(text)
    yield from (value for _, value in parse_qsl(parts.query))
