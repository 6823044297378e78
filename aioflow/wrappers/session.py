"""What the wrappers of one run share: the client, cookies, and how well extraction goes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, ClassVar

from aioflow.secrets import Secrets
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
        """The value of a secret that a wrapper refers to."""
        return self._secrets.get(name).reveal()

    def tally(self, key: str, columns: tuple[str, ...]) -> Tally | None:
        """Where the rows of a wrapper are counted, if anybody wants to know."""
        if not self.settings.health:
            return None
        from aioflow.wrappers.health import Tally

        found = self._tallies.get(key)
        if found is None:
            found = self._tallies[key] = Tally(columns)
        return found

    async def close(self) -> None:
        """Compare a run that came to its end with those before it."""
        if not self._host.ended_well or not self._tallies or not self.settings.health:
            return
        from aioflow.wrappers.health import HealthStore

        where: Any = self.settings.health
        assert self._host.run is not None
        async with HealthStore.open(None if where is True else where) as store:
            for key, tally in self._tallies.items():
                for message in await store.record(self._host.run.run_id, key, tally):
                    self._host.warn(message)
