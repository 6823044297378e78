"""Registrable domains by the Public Suffix List: `example.co.uk` of `www.example.co.uk`.

The list comes with publicsuffixlist, which needs nothing else and asks no network; tldextract would bring
requests and filelock, and fetches the list unless told not to.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from publicsuffixlist import PublicSuffixList


def registrable_domain(host: str) -> str | None:
    """The domain under which a host stands; None for an address, a public suffix, and a name without dots.

    `host` is in lower case and ASCII. All of the list counts, as for browsers: also suffixes of companies.
    """
    labels = host.split(".")
    if ":" in host or labels[-1].isdecimal() or not all(labels):
        return None
    return _suffixes().privatesuffix(host)


@cache
def _suffixes() -> PublicSuffixList:
    from publicsuffixlist import PublicSuffixList  # late: few plans ask, and the list takes its time

    return PublicSuffixList()
