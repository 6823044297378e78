"""Accounts: the tables `[KIND.NAME]` of the configuration, of which a statement names one or none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from aioflow.errors import InputError, suggestion
from aioflow.services import ServiceHost
from aioflow.state.databases import Databases

T = TypeVar("T")

DEFAULT = "default"


def choose(kind: str, accounts: Mapping[str, T], name: str | None, example: str) -> tuple[str, T]:
    """The account of a name, or the default, or the only one there is; an InputError says how to set one.

    `example` is what its table could hold.
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
    """What keeps a database from taking the messages of a run, as far as that can be told before it."""
    assert host.run is not None
    return host.service(Databases).problems(database, host.run.folder)
