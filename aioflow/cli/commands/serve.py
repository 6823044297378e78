"""`aioflow serve`: runs tasks on their schedules, in the foreground."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from aioflow.cli.commands.task.actions import Home
from aioflow.cli.exit import exit_by_signal, exit_code, guarded, print_message
from aioflow.cli.options import LogFile, LogFormat, LogFormatName, Verbose
from aioflow.cli.output.logs import LogOptions, logged
from aioflow.config.masking import masked_logger
from aioflow.errors import AioflowError
from aioflow.values.quantities import count_text

if TYPE_CHECKING:
    from aioflow.service import MonitorService

_NOTE = partial(print_message, "note")
_LOG = masked_logger("aioflow.service")


@guarded
def serve(
    home: Home = None,
    port: Annotated[
        int | None,
        typer.Option("--port", min=0, max=65535, metavar="N", help="The port of REST; 0 picks a free one."),
    ] = None,
    verbose: Verbose = 0,
    log_file: LogFile = None,
    log_format: LogFormat = LogFormatName.TEXT,
) -> None:
    """Run tasks on their schedules, until it is stopped.

    Ctrl-C or SIGTERM stops it. Runs under way then get `service.grace_seconds` to end; those that have not
    ended by then run again later.
    """
    from aioflow.cli.config import effective_settings
    from aioflow.service import MonitorService
    from aioflow.service.home import find_home

    folder = find_home(home)
    options = {"service": {"port": port}}
    is_json = log_format is LogFormatName.JSON
    with logged(LogOptions(verbose, log_file, log_format)):
        try:
            settings = effective_settings(options, str(folder / "aioflow.toml"))
            tell = _LOG.info if is_json else _NOTE
            asyncio.run(serve_until_stopped(MonitorService(folder, settings), tell))
        except Exception as error:
            if not is_json:
                raise
            _LOG.error("%s", error if isinstance(error, AioflowError | OSError) else repr(error))
            sys.exit(exit_code(error))


async def serve_until_stopped(service: MonitorService, tell: Callable[[str], None] = _NOTE) -> None:
    """Run a service in the foreground until a signal stops it; `tell` gets notes for people."""
    from aioflow.service.rest.server import RestServer
    from aioflow.service.systemd import keep_watchdog, notify

    loop = asyncio.get_running_loop()
    received: list[int] = []

    def on_signal(number: int, frame: FrameType | None) -> None:
        received.append(number)
        if len(received) > 1 and tell is not _NOTE:
            os._exit(128 + number)  # exit_by_signal would write a line of text
        if len(received) > 1:
            exit_by_signal(number)
        loop.call_soon_threadsafe(stop)

    def stop() -> None:
        notify("STOPPING=1")
        tell("stopping: runs under way get some time to end; once more ends at once")
        service.stop()

    def ready() -> None:
        notify("READY=1")
        tell(f"serving {count_text(len(service.tasks), 'task')} of {service.database.address.shown}")

    # A handler of the interpreter, unlike the loop's, also runs while an operator keeps the loop busy.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, on_signal)
    watchdog = asyncio.create_task(keep_watchdog())
    try:
        async with RestServer(service):
            await _tell_address(service)
            await service.serve(ready)
    finally:
        watchdog.cancel()


async def _tell_address(service: MonitorService) -> None:
    """Print the address of the REST interface, and at the first start a token of its owner."""
    from aioflow.service.store.tokens import ensure_owner_token

    async with service.database.writing() as statements:
        token = await ensure_owner_token(statements)
    print(f"REST interface: {service.address}", flush=True)
    if token is not None:
        print(f"token of the owner, shown only now: {token}", flush=True)
