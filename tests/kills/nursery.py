"""A process that has aioflow imported, and forks off one command after the other: a line each on its input.

Given arguments it is that command itself. Only here aioflow can be made worse than it is, by variables, to
show that the harness notices, or newer than it is, to see an upgrade.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.kills.commands import NEWER_TABLES, SABOTAGE

_WARM = (
    "aioflow.cli.app",
    "aioflow.cli.commands.outbox",
    "aioflow.cli.commands.run",
    "aioflow.engine",
    "aioflow.messages.email.channel",
    "aioflow.messages.chat.channel",
    "aioflow.messages.sms.channel",
    "aioflow.state.postgres.driver",
    "aioflow.state.sqlite.driver",
    "aiohttp",
    "aiosmtplib",
    "asyncpg",
    "jinja2.sandbox",
    "typer.rich_utils",
)


def main() -> None:
    if len(sys.argv) > 1:
        _become(os.environ)
        return _command()
    _warm_up()
    for line in sys.stdin:
        wish = json.loads(line)
        if not _is_parent():
            _settle(wish)
            return _command()
    return None


def _is_parent() -> bool:
    pid = os.fork()
    if pid == 0:
        return False
    print(pid, flush=True)
    _, status = os.waitpid(pid, 0)
    print(os.waitstatus_to_exitcode(status), flush=True)
    return True


def _settle(wish: Mapping[str, Any]) -> None:
    """Be a process as if it had been started so."""
    log = os.open(wish["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(source, target)
    os.chdir(wish["cwd"])
    os.environ.clear()
    os.environ.update(wish["environment"])
    sys.argv = ["aioflow", *wish["arguments"]]
    _become(os.environ)
    _obey_kill_wish()


def _obey_kill_wish() -> None:
    """What a fresh process does when it imports `moments`."""
    from aioflow.state import crash_points as moments

    if moments.VARIABLE in os.environ:
        moments._watcher = moments._killer(os.environ[moments.VARIABLE])


def _command() -> None:
    from aioflow.cli import main as aioflow

    aioflow()


def _warm_up() -> None:
    """Have everything in memory that a command would load or make when it needs it."""
    from aioflow import load
    from tests.kills.moments import all_moments

    all_moments()
    for module in _WARM:
        importlib.import_module(module)
    for plan in Path(__file__).parent.glob("*.plan"):
        load(plan)


def _become(environment: Mapping[str, str]) -> None:
    if SABOTAGE in environment:
        _move_outbox_out_of_the_transaction()
    if NEWER_TABLES in environment:
        _have_newer_tables()


def _move_outbox_out_of_the_transaction() -> None:
    """Messages are written in a transaction of their own, after that of the run."""
    from aioflow.authoring.services import Deliveries
    from aioflow.messages.outbox import service as outbox
    from aioflow.messages.outbox.service import PostedWrite
    from aioflow.state.databases import Databases
    from aioflow.state.driver import Connection

    class Late(PostedWrite):
        async def apply(self, connection: Connection) -> None:
            pass

        def forget(self) -> None:
            pass

        async def apply_late(self, connection: Connection) -> None:
            await super().apply(connection)
            super().forget()

        def close(self) -> None:
            pass

    committed = outbox.Outbox.committed

    async def committed_late(self: outbox.Outbox) -> Deliveries | None:
        if self._address is None:
            return None
        connection = await self._host.service(Databases).connect(self._address)
        try:
            async with connection.transaction("write"):
                assert isinstance(self._posted, Late)
                await self._posted.apply_late(connection)
        finally:
            await connection.close()
        return await committed(self)

    outbox.PostedWrite = Late  # type: ignore[misc]
    outbox.Outbox.committed = committed_late  # type: ignore[method-assign]


def _have_newer_tables() -> None:
    """As if this were the next version of aioflow, which knows one more column."""
    from msgspec.structs import force_setattr

    from aioflow.state.system_tables import OWN_TABLES

    newer = (*OWN_TABLES.migrations, ("ALTER TABLE aioflow_runs ADD COLUMN remark text",))
    force_setattr(OWN_TABLES, "migrations", newer)  # others hold the object itself


if __name__ == "__main__":
    main()
