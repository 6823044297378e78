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
# What says where a request ends and whom it is for; a wrong word here is another request for the server.
FRAMING = frozenset({"connection", "content-length", "host", "te", "trailer", "transfer-encoding", "upgrade"})


def find_header(headers: Mapping[str, str], name: str) -> str | None:
    """The value of a header, which `name` says in lower case."""
    for key, value in headers.items():
        if key.lower() == name:
            return value
    return None


def framing(headers: Mapping[str, str]) -> str | None:
    """The name of a header that only the client itself may set, if there is one."""
    if FRAMING.isdisjoint(map(str.lower, headers)):
        return None
    return next(name for name in headers if name.lower() in FRAMING)


def harmless(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers that may be shown to anyone, and sent to anyone."""
    return {name: value for name, value in headers.items() if name.lower() in HARMLESS}


def personal(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers that may be meant for one host, and one user, only; their names in lower case."""
    return {name.lower(): value for name, value in headers.items() if name.lower() not in HARMLESS}
