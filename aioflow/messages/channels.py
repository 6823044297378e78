"""Channels by name: found among the entry points `aioflow.channels`, made of the configuration.

A package adds a channel by such an entry point, which names a class; `messages.outbox.message.Channel` is its
interface.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, TypeAlias

from aioflow.config.configuration import Configuration, as_configuration
from aioflow.config.entry_points import installed
from aioflow.errors import AioflowError, InputError, suggestion
from aioflow.messages.outbox.message import Channel, DeliveryError, Message

ENTRY_POINTS = "aioflow.channels"

_FAREWELL_SECONDS = 1.0

MakeChannel: TypeAlias = Callable[[Configuration], Channel]


class Channels:
    """The channels of one round of deliveries; each is made when it is first asked for."""

    def __init__(
        self, configuration: Mapping[str, Any], kinds: Mapping[str, MakeChannel] | None = None
    ) -> None:
        self._configuration = as_configuration(configuration)
        self._kinds = kinds
        self._made: dict[str, Channel] = {}

    def get(self, kind: str) -> Channel:
        """Return the channel of a kind; raise an InputError if no installed package has one."""
        if kind not in self._made:
            self._made[kind] = self._maker(kind)(self._configuration)
        return self._made[kind]

    def kinds(self) -> list[str]:
        """Return the kinds of channels that installed packages bring, in the order of their names."""
        return sorted({*self._made, *self._known()})

    def knows(self, kind: str) -> bool:
        """Return whether an installed package has a channel of this kind."""
        return kind in self._made or kind in self._known()

    def problems(self, kind: str, account: str | None) -> list[str]:
        """Return the problems that keep an account (None for the default) from being used."""
        try:
            return self.get(kind).problems(account or None)
        except AioflowError as error:
            return [str(error)]

    def _known(self) -> list[str]:
        return [point.name for point in installed(ENTRY_POINTS)] if self._kinds is None else list(self._kinds)

    def _maker(self, kind: str) -> MakeChannel:
        known = self._known()
        if kind not in known:
            raise InputError(f"there is no channel {kind!r}{suggestion(kind, known)}")
        if self._kinds is not None:
            return self._kinds[kind]
        found = {point.name: point for point in installed(ENTRY_POINTS)}
        try:
            made: MakeChannel = found[kind].load()
        except Exception as error:
            raise InputError(
                f"the channel {kind!r} of the installed package {found[kind].value!r} cannot be loaded: "
                f"{type(error).__name__}: {error}"
            ) from error
        return made

    async def close(self) -> None:
        """Close all, each whatever became of the others; raises the first error.

        They have little time: receivers that do not answer a farewell are left without one.
        """
        errors: list[BaseException] = []
        while self._made:
            _, channel = self._made.popitem()
            try:
                with suppress(TimeoutError):
                    async with asyncio.timeout(_FAREWELL_SECONDS):
                        await channel.close()
            except BaseException as error:
                errors.append(error)
        if errors:
            raise errors[0]


class NoChannel:
    """Stands in for a channel that nothing brings: it refuses every message, and says why."""

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def problems(self, account: str | None) -> list[str]:
        return []

    async def deliver(self, message: Message) -> str:
        raise DeliveryError(
            f"there is no channel {self._kind!r}: nothing that is installed brings one", final=True
        )

    async def close(self) -> None:
        """Nothing is open."""
