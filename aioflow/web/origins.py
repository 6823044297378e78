"""What is known of an origin before it is asked: may it be reached, by which proxy, with what headers."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import field

from multidict import CIMultiDict
from yarl import URL

from aioflow.dataclass import dataclass
from aioflow.errors import InputError
from aioflow.secrets import PREFIX, Secrets, conceal
from aioflow.web.addresses import AddressGuard
from aioflow.web.errors import AddressRefusedError, RequestRefusedError
from aioflow.web.settings import HostSettings, WebSettings
from aioflow.web.urls import without_userinfo

_SCHEMES = ("http", "https")
_AUTHORIZATION = "Authorization"
# Those that are forgotten are looked at again; a crawl may meet any number.
_KEPT_AT_MOST = 4096


@dataclass(frozen=True, slots=True)
class Origin:
    """A scheme, host and port that may be asked."""

    host: str
    port: int
    headers: Mapping[str, str] | None = field(repr=False)  # with credentials
    proxy: URL | None = field(repr=False)

    def headers_for(self, headers: Mapping[str, str]) -> Mapping[str, str]:
        """The configured headers under those of a request."""
        if self.headers is None:
            return headers
        merged = CIMultiDict(self.headers)
        merged.update(headers)
        return merged


class Origins:
    """Finds the origin of a URL, or refuses it."""

    def __init__(self, settings: WebSettings, guard: AddressGuard, secrets: Secrets) -> None:
        self._settings = settings
        self._guard = guard
        self._secrets = secrets
        self._kept: dict[tuple[str, str | None, int | None], Origin] = {}

    def find(self, url: URL) -> Origin:
        key = (url.scheme, url.raw_host, url.port)
        origin = self._kept.get(key)
        if origin is None:
            origin = self._look_at(url)
            if len(self._kept) >= _KEPT_AT_MOST:
                self._kept.clear()
            self._kept[key] = origin
        return origin

    def _look_at(self, url: URL) -> Origin:
        shown = without_userinfo(str(url))
        host, port = url.raw_host, url.port
        if url.scheme not in _SCHEMES:
            raise AddressRefusedError(f"{shown}: only http and https are fetched, not {url.scheme or 'that'}")
        if not host or port is None:
            raise AddressRefusedError(f"{shown}: this URL has no host")
        try:
            self._guard.check_host(host, port)
        except AddressRefusedError as error:
            raise AddressRefusedError(f"{shown}: {error}") from None
        name = f"[{host}]" if ":" in host else host
        settings = self._settings.host(name, port)
        proxy = settings.proxy or self._settings.http.proxy
        try:
            headers = self._headers(settings)
        except InputError as error:
            raise RequestRefusedError(f"{shown}: {error}") from None
        if headers and url.scheme == "http":
            is_named = f"{name}:{port}" in self._settings.hosts or self._guard.is_allowed(host, port)
            if not is_named:
                _check_encryption(shown, settings, f"{name}:{port}")
        return Origin(host, port, headers or None, URL(proxy) if proxy else None)

    def _headers(self, settings: HostSettings) -> CIMultiDict[str]:
        headers = CIMultiDict({name: self._secrets.fill_in(text) for name, text in settings.headers.items()})
        if settings.auth:
            headers[_AUTHORIZATION] = self._authorization(settings.auth)
        return headers

    def _authorization(self, auth: str) -> str:
        kind, _, rest = auth.strip().partition(" ")
        if kind.lower() == "bearer":
            return f"Bearer {self._secrets.fill_in(rest.strip())}"
        user, _, password = rest.strip().partition(" ")
        credentials = basic(user, self._secrets.fill_in(password.strip()))
        conceal(credentials.partition(" ")[2])
        return credentials


def _check_encryption(shown: str, settings: HostSettings, host: str) -> None:
    """Anybody who can put a link on a page could otherwise have credentials sent for all to read."""
    if settings.auth or any(PREFIX in text for text in settings.headers.values()):
        raise RequestRefusedError(
            f"{shown}: the credentials for this host would be sent without encryption; use https, or write "
            f'them under [host."{host}"] if that is meant'
        )


def basic(user: str, password: str) -> str:
    """The value of Authorization for a user."""
    return f"Basic {b64encode(f'{user}:{password}'.encode()).decode()}"
