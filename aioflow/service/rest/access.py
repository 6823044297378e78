"""Who may ask: the Host and Origin of a request, its token, and a limit of failed attempts."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable
from urllib.parse import urlsplit

from aiohttp import web

from aioflow.service.rest.refusals import RestError
from aioflow.service.store.database import ServiceDatabase
from aioflow.service.store.tokens import ROLES, AccessToken, Role, find_token, note_token_used
from aioflow.state.errors import StateError

FAILURES_AT_MOST = 10
WINDOW_SECONDS = 60.0
_ADDRESSES_AT_MOST = 10_000
_NOTED_EACH_SECONDS = 60.0
_TOKEN_CHARACTERS = 500
_SCHEME = "bearer"


def check_origin(request: web.Request, url: str) -> None:
    """Refuse a request under a foreign name, or from a page of another site.

    A page of another site may reach the service of its visitor, also under a name of its own that leads to
    this machine. So the name must be that of the service: its address, localhost, or that of `[service] url`.
    """
    hosts, origins = _own_names(request, url)
    host = request.headers.get("Host", "").lower()
    if len(request.headers.getall("Host", ())) != 1 or host not in hosts:
        raise RestError(403, f"the host {host[:80]!r} is not that of this service; [service] url can name it")
    for origin in request.headers.getall("Origin", ()):
        if origin.lower() not in origins:
            raise RestError(403, f"requests of pages from {origin[:80]!r} are refused")


def _own_names(request: web.Request, url: str) -> tuple[set[str], set[str]]:
    """Return the values of Host and of Origin that are those of the service."""
    transport = request.transport
    socket_name = transport.get_extra_info("sockname") if transport is not None else None
    hosts: set[str] = set()
    if isinstance(socket_name, tuple):
        address, port = str(socket_name[0]).partition("%")[0].lower(), int(socket_name[1])
        own = f"[{address}]" if ":" in address else address
        names = {own, "localhost", "127.0.0.1", "[::1]"}
        hosts = {f"{name}:{port}" for name in names} | (names if port == 80 else set())
    origins = {f"http://{host}" for host in hosts}
    parts = urlsplit(url.lower())
    if parts.netloc:
        hosts.add(parts.netloc)
        origins.add(f"{parts.scheme}://{parts.netloc}")
    return hosts, origins


class FailureLimit:
    """Counts failed attempts by address: so many within a minute, and then none is looked at."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._failures: OrderedDict[str, deque[float]] = OrderedDict()

    def wait_seconds(self, address: str) -> float:
        """Return how long attempts of an address are refused; 0 if they are not."""
        times = self._failures.get(address, deque())
        while times and times[0] <= self._clock() - WINDOW_SECONDS:
            times.popleft()
        return times[0] + WINDOW_SECONDS - self._clock() if len(times) >= FAILURES_AT_MOST else 0.0

    def note(self, address: str) -> None:
        """Count a failed attempt."""
        times = self._failures.setdefault(address, deque(maxlen=FAILURES_AT_MOST))
        times.append(self._clock())
        self._failures.move_to_end(address)
        if len(self._failures) > _ADDRESSES_AT_MOST:
            self._failures.popitem(last=False)

    def refuse(self, address: str) -> None:
        """Raise the refusal of a limited address."""
        wait = self.wait_seconds(address)
        if wait > 0:
            headers = {"Retry-After": str(int(wait) + 1)}
            raise RestError(429, "too many attempts with a wrong token; wait a minute", headers)


class Authentication:
    """Finds the token of a request."""

    def __init__(self, database: ServiceDatabase, limit: FailureLimit, clock: Callable[[], float]) -> None:
        self._database = database
        self._clock = clock
        self._noted: dict[str, float] = {}
        self.limit = limit

    async def token_of(self, request: web.Request) -> AccessToken:
        """Return the token of a request; refuse one that has none, or a wrong one.

        A right token passes even if its address has failed too often: others may share the address.
        """
        text = _bearer(request)
        found = await self.find(text)
        if found is None:
            address = request.remote or ""
            self.limit.refuse(address)
            self.limit.note(address)
            raise _unauthorized("the token is wrong, or was revoked")
        return found

    async def find(self, text: str) -> AccessToken | None:
        """Return the token of a text, and note from time to time that it was used."""
        async with self._database.reading() as statements:
            found = await find_token(statements, text[:_TOKEN_CHARACTERS])
        if found is not None:
            await self._note(found.name)
        return found

    async def _note(self, name: str) -> None:
        now = self._clock()
        if now - self._noted.get(name, float("-inf")) < _NOTED_EACH_SECONDS:
            return
        self._noted[name] = now
        try:
            async with self._database.writing() as statements:
                await note_token_used(statements, name)
        except StateError:
            self._noted.pop(name, None)  # a database that cannot be written to can still be read


def check_role(token: AccessToken, needed: Role) -> None:
    """Refuse a token whose role is too low."""
    if ROLES.index(token.role) < ROLES.index(needed):
        raise RestError(403, f"this needs the role {needed}; the token {token.name!r} has {token.role}")


def _bearer(request: web.Request) -> str:
    given = request.headers.getall("Authorization", ())
    scheme, _, text = given[0].partition(" ") if len(given) == 1 else ("", "", "")
    if scheme.lower() != _SCHEME or not text.strip():
        raise _unauthorized("a token is needed: Authorization: Bearer TOKEN")
    return text.strip()


def _unauthorized(message: str) -> RestError:
    return RestError(401, message, {"WWW-Authenticate": "Bearer"})
