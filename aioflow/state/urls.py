"""URLs of databases: which parts of one must not be seen, and how it may be shown."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, unquote

from aioflow.dataclass import dataclass
from aioflow.errors import InputError

# Options by which a driver would take a password, or where to find one.
_PASSWORDS = frozenset({"password", "passfile", "sslpassword"})
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:(?=\S)", re.IGNORECASE)
_SERVER = re.compile(
    r"//(?:(?P<user>[^/?#]*)@)?(?P<hosts>[^/?#@]*)(?P<path>[^?#@]*)(?:\?(?P<query>[^#@]*))?(?:#[^@]*)?",
    re.DOTALL,
)
_HOST = re.compile(r"(\[[0-9A-Fa-f:.%]*\]|[^\[\]:]*)(:\d*)?")


@dataclass(frozen=True)
class UrlParts:
    """What a URL shows of itself: neither users nor options; and the passwords that stand in it."""

    shown: str
    passwords: tuple[str, ...] = ()


def url_parts(url: str) -> UrlParts:
    """The parts of a URL; an InputError, which never repeats any of it, ends the sentence "must be …"."""
    scheme = _SCHEME.match(url)
    if scheme is None:
        raise InputError("a URL, like 'sqlite:houses.db' or 'postgresql://user@host/name'")
    rest = url[scheme.end() :]
    if scheme[0].lower() == "sqlite:" or not rest.startswith("//"):
        return UrlParts(url)
    found = _SERVER.fullmatch(rest)
    if found is None or not all(map(_HOST.fullmatch, found["hosts"].split(","))):
        raise InputError(
            "a URL like 'postgresql://user@host:5432/name', with signs such as @ / ? # in its parts "
            "written as %40 %2F %3F %23"
        )
    options = parse_qsl(found["query"] or "")
    passwords = [value for name, value in options if name.lower() in _PASSWORDS]
    if password := (found["user"] or "").partition(":")[2]:
        passwords += [password, unquote(password)]
    return UrlParts(f"{scheme[0]}//{found['hosts']}{found['path']}", tuple(passwords))
