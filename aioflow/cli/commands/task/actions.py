"""The actions that the commands of `aioflow task` use: on the task database of a home, or by REST."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, TypeAlias, TypeVar

import typer

from aioflow.cli.app import SERVER_VARIABLE
from aioflow.cli.exit import print_message, run_interruptibly
from aioflow.errors import InputError

if TYPE_CHECKING:
    from aioflow.service.actions import LocalActions
    from aioflow.service.rest.client import RemoteActions

T = TypeVar("T")

TOKEN_VARIABLE = "AIOFLOW_TOKEN"

Home: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--home",
        metavar="DIR",
        help="The folder with the task database; by default AIOFLOW_HOME, or the user's own data folder.",
    ),
]
TaskName: TypeAlias = Annotated[str, typer.Argument(metavar="TASK", help="The name of a task, or its id.")]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def server_url() -> str | None:
    """Return the address of the service that commands talk to; None for the task database itself."""
    return os.environ.get(SERVER_VARIABLE) or None


def with_actions(home: str | None, work: Callable[[LocalActions | RemoteActions], Awaitable[T]]) -> T:
    """Do work with the actions of a home, or of the service that --server names."""

    async def main() -> T:
        actions = _open(home)
        try:
            return await work(actions)
        finally:
            await actions.close()

    return run_interruptibly(main())


def _open(home: str | None) -> LocalActions | RemoteActions:
    url = server_url()
    if url is not None and home is not None:
        raise InputError("--home is a folder of this machine, and --server a service: leave one of them out")
    if url is not None:
        from aioflow.service.rest.client import RemoteActions

        return RemoteActions(url, os.environ.get(TOKEN_VARIABLE, ""))
    from aioflow.cli.config import effective_settings
    from aioflow.service.actions import LocalActions
    from aioflow.service.home import find_home, open_service_database

    folder = find_home(home)
    configuration = effective_settings({}, str(folder / "aioflow.toml"))
    return LocalActions(folder, configuration, open_service_database(configuration, folder, warn=_warn))


def _warn(message: str) -> None:
    print_message("warning", message)
