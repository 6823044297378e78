"""The guard against server-side request forgery: which addresses a request may reach.

`connections` resolves names and asks the guard before it opens a socket.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

from aioflow.web.errors import AddressRefusedError

# The registries of IANA, rather than `is_global`: what that says differs between versions of Python.
_REFUSED_IPV4 = tuple(
    (IPv4Network(network), why)
    for network, why in (
        ("0.0.0.0/8", "an unspecified address"),
        ("10.0.0.0/8", "a private address"),
        ("100.64.0.0/10", "a shared address behind a carrier's NAT"),
        ("127.0.0.0/8", "a loopback address"),
        ("168.63.129.16/32", "the address of a cloud's metadata"),  # public by number, local by meaning
        ("169.254.0.0/16", "a link-local address"),
        ("172.16.0.0/12", "a private address"),
        ("192.0.0.0/24", "a reserved address"),
        ("192.0.2.0/24", "a reserved address"),
        ("192.88.99.0/24", "a reserved address"),
        ("192.168.0.0/16", "a private address"),
        ("198.18.0.0/15", "a reserved address"),
        ("198.51.100.0/24", "a reserved address"),
        ("203.0.113.0/24", "a reserved address"),
        ("224.0.0.0/4", "a multicast address"),
        ("240.0.0.0/4", "a reserved address"),
    )
)
_REFUSED_IPV6 = tuple(
    (IPv6Network(network), why)
    for network, why in (
        ("::/128", "an unspecified address"),
        ("::1/128", "a loopback address"),
        ("fc00::/7", "a private address"),
        ("fe80::/10", "a link-local address"),
        ("fec0::/10", "a private address"),
        ("ff00::/8", "a multicast address"),
        ("2001::/23", "a reserved address"),  # with Teredo, whose inner address is anybody's choice
        ("2001:db8::/32", "a reserved address"),
        ("3fff::/20", "a reserved address"),
    )
)
_UNICAST = IPv6Network("2000::/3")
# Where an IPv4 address stands in an IPv6 one: the bits after it.
_CARRIERS = (
    (IPv6Network("::ffff:0:0/96"), 0),  # mapped
    (IPv6Network("64:ff9b::/96"), 0),  # NAT64, as a network without IPv4 shows every IPv4 host
    (IPv6Network("2002::/16"), 80),  # 6to4
)
_NAME = re.compile(r"(?=.{1,254}$)[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*\.?", re.ASCII)
# What C libraries read as an IPv4 address: a last part that is a number.
_NUMBER_AT_END = re.compile(r"(?:.*\.)?(?:[0-9]+|0x[0-9a-f]*)\.*", re.ASCII)
_PLAIN_IPV4 = re.compile(r"(?:0|[1-9][0-9]{0,2})(?:\.(?:0|[1-9][0-9]{0,2})){3}", re.ASCII)


def why_refused(address: str) -> str | None:
    """Return the reason for refusing an IP address, as a phrase; None for one of the public internet."""
    return _why_refused(ip_address(address))


def _why_refused(address: IPv4Address | IPv6Address) -> str | None:
    if isinstance(address, IPv4Address):
        return next((why for network, why in _REFUSED_IPV4 if address in network), None)
    if address.scope_id is not None:
        return "a link-local address"
    for network, shift in _CARRIERS:
        if address in network:
            inner = IPv4Address(int(address) >> shift & 0xFFFFFFFF)
            why = _why_refused(inner)
            return why and f"{why} ({inner})"
    why = next((why for network, why in _REFUSED_IPV6 if address in network), None)
    return why or (None if address in _UNICAST else "a reserved address")


class AddressGuard:
    """Decides about hosts, their addresses and sockets; `allow` lists each `host:port` that may be private.

    A name is refused altogether when any of its addresses is: whoever says both a public and a private
    address makes a mistake or an attempt, and which of them is reached would depend on chance.
    """

    def __init__(self, allow: Iterable[str] = ()) -> None:
        self._allow = frozenset(map(_normal, allow))
        self._let_in: set[tuple[str, int]] = set()

    def is_allowed(self, host: str, port: int) -> bool:
        """Return whether the configuration allows this host, as it is written in the URL."""
        return f"{host}:{port}" in self._allow

    def check_host(self, host: str, port: int) -> None:
        """Refuse a host, in lower case and without brackets, that is no name and no public address."""
        if port == 0:
            raise AddressRefusedError("no host listens on port 0")
        address = _literal(host)
        if address is None:
            return
        if self.is_allowed(host, port):
            self._let_in.add((host, port))
        elif (why := _why_refused(address)) is not None:
            raise AddressRefusedError(f"{host} is {why}; {_advice(host, port)}")

    def check_resolved(self, host: str, port: int, addresses: Iterable[str]) -> None:
        """Refuse a name when any of its addresses is not public."""
        for address in addresses:
            if self.is_allowed(host, port):
                self._let_in.add((address, port))
            elif (why := why_refused(address)) is not None:
                raise AddressRefusedError(f"{host} leads to {address}, {why}; {_advice(host, port)}")

    def check_socket(self, address: str, port: int) -> None:
        """The last look, when a socket is about to be connected: however it came here."""
        if (address, port) not in self._let_in and (why := why_refused(address)) is not None:
            raise AddressRefusedError(f"{address} is {why}; {_advice(address, port)}")


def _literal(host: str) -> IPv4Address | IPv6Address | None:
    """Return the address that a host is, None for a name; unusual notations of addresses are refused."""
    if ":" in host:
        try:
            return IPv6Address(host)
        except ValueError:
            raise AddressRefusedError(f"{host!r} is no IPv6 address") from None
    if _PLAIN_IPV4.fullmatch(host):
        try:
            return IPv4Address(host)
        except ValueError:
            raise AddressRefusedError(f"{host!r} is no IPv4 address") from None
    if _NUMBER_AT_END.fullmatch(host):
        raise AddressRefusedError(f"{host!r} is no plain IPv4 address; write it as four decimal numbers")
    if not _NAME.fullmatch(host):
        raise AddressRefusedError(f"{host!r} is no name of a host")
    return None


def _normal(allowed: str) -> str:
    """`host:port` as a URL's host is compared with it."""
    host, _, port = allowed.strip().lower().rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if ":" in host:
        with suppress(ValueError):
            host = str(IPv6Address(host))
    elif not host.isascii():
        from yarl import URL

        host = URL.build(scheme="http", host=host).raw_host or host
    return f"{host}:{port}"


def _advice(host: str, port: int) -> str:
    shown = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    return f'allow "{shown}" under [http] allow in aioflow.toml if it is meant'
