"""Headers of requests: found in any case, and told apart into those that anyone may see and the rest."""

from __future__ import annotations

from collections.abc import Mapping

# What says nothing about who asks. Any other header may carry a credential, whatever it is called.
HARMLESS = frozenset(
    {
        "accept",
        "accept-charset",
        "accept-encoding",
        "accept-language",
        "cache-control",
        "content-encoding",
        "content-language",
        "content-type",
        "dnt",
        "if-modified-since",
        "if-none-match",
        "pragma",
        "range",
        "user-agent",
    }
)


def find_header(headers: Mapping[str, str], name: str) -> str | None:
    """The value of a header, which `name` says in lower case."""
    for key, value in headers.items():
        if key.lower() == name:
            return value
    return None


def harmless(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers that may be shown to anyone, and sent to anyone."""
    return {name: value for name, value in headers.items() if name.lower() in HARMLESS}


def personal(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers that may be meant for one host, and one user, only; their names in lower case."""
    return {name.lower(): value for name, value in headers.items() if name.lower() not in HARMLESS}
