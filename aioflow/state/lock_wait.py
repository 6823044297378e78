"""Waiting for a database, with a message and a limit: another run writes, or the server is away."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack

from aioflow.config.masking import masked_logger
from aioflow.state.driver import Address, Connection
from aioflow.state.errors import BusyError, StateError
from aioflow.values.quantities import duration_text

_LOG = masked_logger("aioflow.state")
_SHORTEST_SECONDS = 0.02
_LONGEST_SECONDS = 0.5
_TELL_AFTER_SECONDS = 1.0
_OTHERS = "another run is writing to it"


class LockWait:
    """Pauses that grow, up to `seconds` in all. The reason for waiting is reported once."""

    def __init__(self, address: Address, seconds: float, warn: Callable[[str], None]) -> None:
        self._address = address
        self._seconds = seconds
        self._warn = warn
        self._pause = _SHORTEST_SECONDS
        self._waited = 0.0
        self._has_told = False
        self._is_over = False

    async def take_turn(self, turn: asyncio.Lock, stack: AsyncExitStack) -> None:
        """Wait for the lock of this engine's runs."""
        telling = asyncio.get_running_loop().call_later(_TELL_AFTER_SECONDS, self._tell, _OTHERS)
        try:
            async with asyncio.timeout(self._seconds):
                await stack.enter_async_context(turn)
        except TimeoutError:
            waited = duration_text(self._seconds)
            raise BusyError(
                f"{self._address.shown}: {_OTHERS} (waited {waited}, as database wait_seconds says)"
            ) from None
        finally:
            telling.cancel()

    async def enter(self, connection: Connection, stack: AsyncExitStack, lock: str | None = None) -> None:
        """Begin a write transaction as soon as no other is open.

        `lock` is a statement that keeps others out.
        """
        while True:
            try:
                async with AsyncExitStack() as attempt:
                    await attempt.enter_async_context(connection.transaction("write"))
                    if lock is not None:
                        await connection.run(lock)
                    stack.push_async_exit(attempt.pop_all().__aexit__)
                    return
            except BusyError as error:
                await self.pause(error)

    async def pause(self, error: StateError) -> None:
        """Wait a little. Raise the error when the whole wait was long enough."""
        if self._is_over:
            raise error  # which says so already
        if self._waited >= self._seconds:
            self._is_over = True
            waited = duration_text(self._waited)
            raise type(error)(f"{error} (waited {waited}, as database wait_seconds says)") from error
        if self._waited >= _TELL_AFTER_SECONDS:
            self._tell(_OTHERS if isinstance(error, BusyError) else str(error))
        await asyncio.sleep(self._pause)
        self._waited += self._pause
        self._pause = min(2 * self._pause, _LONGEST_SECONDS)

    def _tell(self, reason: str) -> None:
        if not self._has_told:
            self._has_told = True
            message = f"waiting for the database {self._address.shown}: {reason}"
            # At once, for a waiting user; the warnings of a run are shown at its end.
            _LOG.info(message)
            self._warn(message)
