"""The HTTP server of the REST interface."""

from __future__ import annotations

import logging
from types import TracebackType

from aiohttp import web

from aioflow.config.masking import masked_logger
from aioflow.errors import InputError
from aioflow.service.rest.app import create_app
from aioflow.service.service import MonitorService

_LOG = masked_logger("aioflow.service.rest")
_PROTOCOL = masked_logger("aioflow.service.rest.protocol")
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_STOP_SECONDS = 5.0


def _as_remark(record: logging.LogRecord) -> bool:
    """Make an error in the protocol a remark without a trace: anybody can cause one."""
    record.levelno, record.levelname = logging.DEBUG, "DEBUG"
    record.exc_info = None
    return _PROTOCOL.isEnabledFor(logging.DEBUG)


_PROTOCOL.addFilter(_as_remark)


class RestServer:
    """Serves the REST interface beside the work of a service: `async with RestServer(service)`."""

    def __init__(self, service: MonitorService) -> None:
        self._service = service
        self._runner: web.AppRunner | None = None

    async def start(self, host: str | None = None, port: int | None = None) -> str:
        """Listen, by default as the settings say; return the address. The port 0 picks a free one."""
        settings = self._service.settings
        host = settings.host if host is None else host
        port = settings.port if port is None else port
        runner = web.AppRunner(
            create_app(self._service),
            access_log=None,
            logger=_PROTOCOL,
            shutdown_timeout=_STOP_SECONDS,
            handler_cancellation=True,
        )
        await runner.setup()
        try:
            await web.TCPSite(runner, host, port).start()
        except (OSError, OverflowError) as error:
            await runner.cleanup()
            reason = getattr(error, "strerror", None) or error
            raise InputError(f"cannot listen on {host}:{port}: {reason}") from error
        self._runner = runner
        if host not in _LOOPBACK:
            _LOG.warning("the REST interface listens on %s without TLS: put a proxy before it", host)
        bound = runner.addresses[0]
        shown = f"[{bound[0]}]" if ":" in bound[0] else bound[0]
        address = f"http://{shown}:{bound[1]}"
        self._service.address = settings.url or address
        return address

    async def stop(self) -> None:
        """End all requests, and listen no more."""
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()
            # A request that came after the end of the service may have opened it again.
            await self._service.database.close()

    async def __aenter__(self) -> RestServer:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()
