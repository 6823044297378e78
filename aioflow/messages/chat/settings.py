"""`[notify.NAME]` of the configuration: chats, push services, webhooks and desktops, by apprise's URLs."""

from __future__ import annotations

import re
from dataclasses import dataclass

from aioflow.config.sections import Section, at_least, more_than_nothing
from aioflow.errors import InputError
from aioflow.messages.timing import quiet_setting

_URL = re.compile(r"secret:[A-Za-z_][\w-]*|[A-Za-z][\w+.-]*://\S*")
_REFERENCE = re.compile(r"secret:[A-Za-z_][\w-]*")
_PASSWORD = re.compile(r"://[^/@\s]*:[^/@:\s]+@")


@dataclass(frozen=True)
class NotifySettings:
    """The recipients of `notify`: each URL gets its own message, delivered and retried by itself.

    A URL with a token or password in it is a secret: `url = "secret:TEAM_CHAT"`, or only those parts of it.
    """

    url: tuple[str, ...] = ()
    total_seconds: float = 60.0  # for one message to one URL
    most_rows: int = 50  # of a relation that are shown; a line says how many more there are
    most_parts: int = 10  # into which a text is split for a service with a limit
    quiet: str | None = None  # hours in which nothing is delivered


def has_password(url: str) -> bool:
    """Return whether a password stands in a URL, instead of a reference to it."""
    return bool(_PASSWORD.search(_REFERENCE.sub("", url)))


def _urls(urls: tuple[str, ...]) -> tuple[str, ...]:
    if not urls or not all(map(_URL.fullmatch, urls)):
        # What stands there may be a credential: it is not repeated.
        raise InputError("'secret:NAME', or a URL of apprise like 'ntfy://ntfy.sh/topic', or a list of them")
    return urls


_count = at_least(1, "a whole number")

NOTIFY = Section(
    "notify",
    NotifySettings,
    named=True,
    refine={
        "url": _urls,
        "total_seconds": more_than_nothing("a time"),
        "most_rows": _count,
        "most_parts": _count,
        "quiet": quiet_setting,
    },
)
