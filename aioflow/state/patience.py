"""Waiting for a database, with a message and not forever: another run writes, or the server is away."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack

from aioflow.quantities import duration_text
from aioflow.state.driver import Address, Connection
from aioflow.state.errors import BusyError, StateError

_SHORTEST_SECONDS = 0.02
_LONGEST_SECONDS = 0.5
_TELL_AFTER_SECONDS = 1.0


class Patience:
    """Pauses that grow, up to `seconds` in all; what is waited for is told once."""

    def __init__(self, address: Address, seconds: float, warn: Callable[[str], None]) -> None:
        self._address = address
        self._seconds = seconds
        self._warn = warn
        self._pause = _SHORTEST_SECONDS
        self._waited = 0.0
        self._has_told = False
        self._is_over = False

    async def enter(self, connection: Connection, stack: AsyncExitStack) -> None:
        """Begin a write transaction, as soon as nobody else writes."""
        while True:
            try:
                await stack.enter_async_context(connection.transaction("write"))
                return
            except BusyError as error:
                await self.pause(error)

    async def pause(self, error: StateError) -> None:
        """Wait a little; raise the error when that was long enough."""
        if self._is_over:
            raise error  # which says so already
        if self._waited >= self._seconds:
            self._is_over = True
            waited = duration_text(self._waited)
            raise type(error)(f"{error} (waited {waited}, as database wait_seconds says)") from error
        if self._waited >= _TELL_AFTER_SECONDS and not self._has_told:
            self._has_told = True
            reason = "another run is writing to it" if isinstance(error, BusyError) else str(error)
            self._warn(f"waiting for the database {self._address.shown}: {reason}")
        await asyncio.sleep(self._pause)
        self._waited += self._pause
        self._pause = min(2 * self._pause, _LONGEST_SECONDS)
