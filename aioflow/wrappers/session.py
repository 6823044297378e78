"""What the wrappers of one run share: the client, cookies, and how well extraction goes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from aioflow.configuration import Configuration
from aioflow.secrets import MASK, Secret, Secrets
from aioflow.services import Scope, ServiceHost
from aioflow.web.messages import Request, Response
from aioflow.wrappers.pauses import Pauses

if TYPE_CHECKING:
    from aioflow.web.cookies import CookieStore
    from aioflow.web.settings import HttpSettings
    from aioflow.wrappers.health import Tally


class WrapperSession:
    """A service of each run: its cookies are its own, and its extraction is compared with earlier runs'."""

    scope: ClassVar[Scope] = "run"

    def __init__(
        self,
        fetch: Callable[[Request], Awaitable[Response]],
        settings: HttpSettings,
        cookies: CookieStore | None,
        host: ServiceHost,
    ) -> None:
        self.fetch = fetch
        self.settings = settings
        self.cookies = cookies
        self.pauses = Pauses()
        self._host = host
        self._health = _health_of(settings, host)
        self._secrets = Secrets()
        self._tallies: dict[str, Tally] = {}

    @classmethod
    def open_service(cls, host: ServiceHost) -> WrapperSession:
        from aioflow.web.client import Client
        from aioflow.web.configuration import web_settings
        from aioflow.web.cookies import CookieStore

        settings = web_settings(host.configuration).http
        client = host.service(Client)
        return cls(client.fetch, settings, CookieStore() if settings.cookies else None, host)

    def secret(self, name: str) -> str:
        """The value of a secret that a wrapper refers to; nobody needs one to replay a recording."""
        if self.settings.replay is not None:
            # What stands in is what the recording has in place of secrets: so requests equal recorded ones.
            return Secret(name, MASK).reveal()
        return self._secrets.get(name).reveal()

    def tally(self, key: str, columns: tuple[str, ...]) -> Tally | None:
        """Where the rows of a wrapper are counted, if anybody wants to know."""
        if self._health is None:
            return None
        from aioflow.wrappers.health import Tally

        found = self._tallies.get(key)
        if found is None:
            found = self._tallies[key] = Tally(columns)
        return found

    async def close(self) -> None:
        """Compare a run that came to its end with those before it."""
        if not self._host.ended_well or not self._tallies or self._health is None:
            return
        from aioflow.wrappers.health import HealthStore

        assert self._host.run is not None
        async with HealthStore.open(self._health) as store:
            for key, tally in self._tallies.items():
                for message in await store.record(self._host.run.run_id, key, tally):
                    self._host.warn(message)


def _health_of(settings: HttpSettings, host: ServiceHost) -> Path | None:
    """The file with the history of extraction; None where no history is kept.

    It is kept by default in what people run with the settings of their machine. A program that gives an
    engine none, or a few tables of its own, has to ask for it: a test must not write to anybody's folders.
    What was replayed or stored says nothing of the site as it is.
    """
    if settings.replay is not None or settings.offline or settings.health is False:
        return None
    if settings.health is True:
        from aioflow.wrappers.health import default_path

        tables = host.configuration
        is_wanted = isinstance(tables, Configuration) or "health" in tables.get("http", {})
        return default_path() if is_wanted else None
    return settings.health
