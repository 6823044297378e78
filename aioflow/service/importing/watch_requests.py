"""The request of a watch as lines of a wrapper: address, method, headers and body, without credentials."""

from __future__ import annotations

import re
from ipaddress import ip_address
from urllib.parse import parse_qsl, unquote, urlsplit, urlunsplit

import msgspec

from aioflow.config.secrets import PREFIX
from aioflow.language.literals import write_string
from aioflow.service.importing.imported import ImportedSecret

_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
_FRAMING = frozenset(
    ("host", "content-length", "transfer-encoding", "connection", "te", "upgrade", "trailer")
)
_CREDENTIAL = re.compile(
    r"(?:^|[-_.])(?:authorization|cookie|key|apikey|token|secret|password|passwd|pass|pwd|auth|session|signature|sig|"
    r"credential|access_token|api_key|client_secret)s?$",
    re.IGNORECASE,
)
_CREDENTIAL_IN_BODY = re.compile(r"passw|passwd|pwd|token|secret|api_?-?key|credential", re.IGNORECASE)
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_PLAIN_NAME = re.compile(r"[A-Za-z][\w-]*")
_UNSAFE_IN_URL = re.compile(r"[^A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%]")
_TEMPLATE = re.compile(r"\{\{|\{%")
# A backup may come from others, and its watches ask any host: it must not refer to secrets of this machine.
_NAMES_A_SECRET = "it looks like the name of a secret of aioflow"
_INPUT = re.compile(r"\{([^{}\s]+)\}")


class WatchRequest(msgspec.Struct, frozen=True):
    """Lines of a wrapper for a request; `lines` is empty if the watch has no request that can be made.

    `is_complete` is false if a part was left out that the page may need.
    """

    lines: tuple[str, ...] = ()
    url: str = ""
    secrets: tuple[ImportedSecret, ...] = ()
    notes: tuple[str, ...] = ()
    is_complete: bool = True


def _is_private(host: str) -> bool:
    try:
        return not ip_address(host).is_global
    except ValueError:
        return "." not in host or host.endswith((".local", ".localhost", ".lan", ".internal", ".home.arpa"))


class RequestWriter:
    """Writes the request of one watch; the names of its secrets begin with the name of the watch."""

    def __init__(self, name: str) -> None:
        self._prefix = name.replace("-", "_").upper()
        self._lines: list[str] = []
        self._secrets: list[ImportedSecret] = []
        self._notes: list[str] = []
        self._is_complete = True

    def write(self, url: str, method: str, headers: dict[str, str], body: str) -> WatchRequest:
        address = self._address(url)
        if address is None:
            return WatchRequest(notes=tuple(self._notes), is_complete=False)
        method = method.upper() or "GET"
        if method not in _METHODS:
            self._notes.append(f"The method {method!r} cannot be taken over; the plan says GET.")
            method, self._is_complete = "GET", False
        self._lines.insert(0, f"{method}: {write_string(address)}")
        if method != "GET":
            self._lines.insert(1, "SAFE")
        self._add_headers(headers)
        if body and method != "GET":
            self._add_body(body)
        return WatchRequest(
            tuple(self._lines), address, tuple(self._secrets), tuple(self._notes), self._is_complete
        )

    def _address(self, url: str) -> str | None:
        try:
            parts = urlsplit(url)
            host = parts.hostname
            port = f":{parts.port}" if parts.port else ""
        except ValueError:
            parts, host, port = urlsplit(""), None, ""
        if parts.scheme.lower() not in ("http", "https") or not host or _TEMPLATE.search(url):
            reason = "has a template in it" if _TEMPLATE.search(url) else "is no http or https address"
            self._notes.append(f"No plan can be written: the address {reason}.")
            return None
        if parts.password is not None or parts.username:
            self._add_login(parts.username or "", parts.password or "")
        if _is_private(host):
            self._notes.append(
                f"The host {host} is private: add it to `allow` under `[http]` in aioflow.toml."
            )
        host = f"[{host}]" if ":" in host else host
        query = self._query(parts.query)
        whole = urlunsplit((parts.scheme.lower(), host + port, parts.path, query, ""))
        return _UNSAFE_IN_URL.sub(lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode()), whole)

    def _add_login(self, user: str, password: str) -> None:
        if PREFIX in unquote(user):
            self._notes.append(f"The login in the address was left out: {_NAMES_A_SECRET}.")
            self._is_complete = False
            return
        name = self._secret("PASSWORD", "the password in the address of the watch", unquote(password))
        self._lines.append(f'AUTH: basic {write_string(unquote(user))} "secret:{name}"')

    def _query(self, query: str) -> str:
        """Return the query without values that look like credentials: no secret can stand in an address."""
        kept = []
        for part in query.split("&") if query else []:
            name = part.partition("=")[0]
            if _CREDENTIAL.search(name) and any(value for _, value in parse_qsl(part)):
                self._notes.append(
                    f"The address has {name}=, which looks like a credential, and addresses are logged: "
                    "its value was left out."
                )
                self._is_complete = False
                part = f"{name}="
            kept.append(part)
        return "&".join(kept)

    def _add_headers(self, headers: dict[str, str]) -> None:
        written = []
        for name, value in headers.items():
            if not _HEADER_NAME.fullmatch(name) or name.lower() in _FRAMING or re.search(r"[\r\n\0]", value):
                self._notes.append(f"The header {name!r} was left out: aioflow writes it, or none may.")
            elif _TEMPLATE.search(value) or PREFIX in value:
                reason = _NAMES_A_SECRET if PREFIX in value else "its value is a template"
                self._notes.append(f"The header {name!r} was left out: {reason}.")
                self._is_complete = False
            else:
                label = name if _PLAIN_NAME.fullmatch(name) else write_string(name)
                written.append(f"{label} = {self._header_value(name, value)}")
        if written:
            self._lines.append(f"HEADERS: {', '.join(written)}")

    def _header_value(self, name: str, value: str) -> str:
        if not _CREDENTIAL.search(name):
            return write_string(_INPUT.sub(r"{{\1}}", value))
        return f'"secret:{self._secret(name, f"the header {name} of the watch", value)}"'

    def _add_body(self, body: str) -> None:
        if _CREDENTIAL_IN_BODY.search(body) or _TEMPLATE.search(body):
            reason = "may have a credential in it" if _CREDENTIAL_IN_BODY.search(body) else "is a template"
            self._notes.append(
                f"The body of the request was left out, because it {reason}: write FORM or JSON."
            )
            self._is_complete = False
            return
        text = _INPUT.sub(r"{{\1}}", body)
        self._lines.append(f"BODY: {write_string(text)}")

    def _secret(self, part: str, origin: str, value: str) -> str:
        name = f"{self._prefix}_{re.sub('[^A-Z0-9]+', '_', part.upper())}".strip("_")
        name = name if name[0].isalpha() else f"WATCH_{name}"
        self._secrets.append(ImportedSecret(name, origin, value))
        return name
