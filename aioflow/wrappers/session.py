"""What the wrappers of one run share: the client, cookies, and how well extraction goes."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from aioflow.configuration import Configuration
from aioflow.context import RunInfo
from aioflow.secrets import MASK, Secret, Secrets
from aioflow.services import Scope, ServiceHost
from aioflow.wrappers.pauses import Pauses
from aioflow.wrappers.watching import Watching

if TYPE_CHECKING:
    from aioflow.web.cookies import CookieStore
    from aioflow.web.settings import HttpSettings
    from aioflow.web.traffic import Traffic


class WrapperSession:
    """A service of each run: its cookies are its own, and its extraction is compared with earlier runs'."""

    scope: ClassVar[Scope] = "run"

    def __init__(
        self,
        traffic: Traffic,
        settings: HttpSettings,
        cookies: CookieStore | None,
        host: ServiceHost,
    ) -> None:
        self.fetch = traffic.fetch
        self.watch = traffic.watch
        self.settings = settings
        self.cookies = cookies
        self.pauses = Pauses()
        self._host = host
        assert host.run is not None, "a session belongs to a run"
        self.watching = Watching(host, host.run, is_kept=_keeps_health(settings, host, host.run))
        self._secrets = Secrets()

    @classmethod
    def open_service(cls, host: ServiceHost) -> WrapperSession:
        from aioflow.web.configuration import web_settings
        from aioflow.web.cookies import CookieStore
        from aioflow.web.traffic import Traffic

        settings = web_settings(host.configuration).http
        return cls(host.service(Traffic), settings, CookieStore() if settings.cookies else None, host)

    def secret(self, name: str) -> str:
        """The value of a secret that a wrapper refers to; nobody needs one to replay a recording."""
        if self.settings.replay is not None:
            # What stands in is what the recording has in place of secrets: so requests equal recorded ones.
            return Secret(name, MASK).reveal()
        return self._secrets.get(name).reveal()

    async def close(self) -> None:
        """Compare a run that came to its end with those before it."""
        if self._host.ended_well:
            await self.watching.conclude()


def _keeps_health(settings: HttpSettings, host: ServiceHost, run: RunInfo) -> bool:
    """Whether a run is compared with earlier ones, and leaves figures for later ones.

    It is where it writes to a database anyway, and in what people run with the settings of their machine. A
    program that gives an engine none, or a few tables of its own, has to ask for it: a test must not leave
    files in anybody's folders. What was replayed or stored says nothing of the site as it is.
    """
    if settings.replay is not None or settings.offline or not settings.health:
        return False
    tables = host.configuration
    return run.writes or isinstance(tables, Configuration) or "health" in tables.get("http", {})
