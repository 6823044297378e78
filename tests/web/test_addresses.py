"""The guard: which hosts and addresses may be reached, however they are written."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from aioflow.web.addresses import AddressGuard, why_refused
from aioflow.web.errors import AddressRefusedError


def check(url: str, *allow: str) -> None:
    """Look at the host of a URL as the transport does."""
    parsed = URL(url)
    AddressGuard(allow).check_host(parsed.raw_host or "", parsed.port or 0)


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("0.0.0.0", "unspecified"),
        ("0.1.2.3", "unspecified"),
        ("10.1.2.3", "private"),
        ("100.64.0.1", "shared"),
        ("100.100.100.200", "shared"),  # the metadata of a cloud
        ("127.0.0.1", "loopback"),
        ("127.255.255.254", "loopback"),
        ("168.63.129.16", "metadata"),
        ("169.254.169.254", "link-local"),
        ("172.16.0.1", "private"),
        ("172.31.255.255", "private"),
        ("192.0.0.192", "reserved"),
        ("192.168.178.1", "private"),
        ("198.18.0.1", "reserved"),
        ("224.0.0.1", "multicast"),
        ("255.255.255.255", "reserved"),
        ("::", "unspecified"),
        ("::1", "loopback"),
        ("::127.0.0.1", "reserved"),
        ("::ffff:127.0.0.1", "loopback address (127.0.0.1)"),
        ("::ffff:10.0.0.1", "private address (10.0.0.1)"),
        ("64:ff9b::10.0.0.1", "private address (10.0.0.1)"),
        ("64:ff9b:1::8.8.8.8", "reserved"),
        ("2002:a00:1::1", "private address (10.0.0.1)"),
        ("2001:0:53aa:64c::1", "reserved"),  # Teredo
        ("2001:db8::1", "reserved"),
        ("100::1", "reserved"),
        ("fc00::1", "private"),
        ("fd00:ec2::254", "private"),  # the metadata of a cloud
        ("fe80::1", "link-local"),
        ("fe80::1%eth0", "link-local"),
        ("2606:4700::1111%eth0", "link-local"),
        ("ff02::1", "multicast"),
    ],
)
def test_an_address_that_is_not_public_is_refused(address: str, why: str) -> None:
    assert why in (why_refused(address) or "public")


@pytest.mark.parametrize(
    "address",
    ["8.8.8.8", "100.63.255.255", "172.32.0.1", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8"],
)
def test_a_public_address_is_not_refused(address: str) -> None:
    assert why_refused(address) is None


@given(st.integers(0, 2**32 - 1).map(IPv4Address))
def test_no_address_passes_that_python_knows_to_be_special(address: IPv4Address) -> None:
    if not address.is_global or address.is_multicast:
        assert why_refused(str(address)) is not None


@given(st.integers(0, 2**128 - 1).map(IPv6Address))
def test_no_ipv6_address_passes_that_python_knows_to_be_special(address: IPv6Address) -> None:
    if (not address.is_global or address.is_multicast) and address.ipv4_mapped is None:
        assert why_refused(str(address)) is not None


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.0.0.1.",
        "127.1",
        "127.0.1",
        "2130706433",
        "0x7f000001",
        "0X7F.1",
        "0x7f.0.0.1",
        "0177.0.0.1",
        "0177.0x0.1",
        "127.0.0.01",
        "0",
        "0.0.0.0",
        "１２７.0.0.1",
        "127。0。0。1",
        "①②⑦.0.0.1",
        "[::1]",
        "[0:0:0:0:0:0:0:1]",
        "[::ffff:127.0.0.1]",
        "[::FFFF:7F00:1]",
        "[fe80::1%25eth0]",
        "[fe80::1%eth0]",
        "169.254.169.254",
        "user@127.0.0.1",
        "example.org:80@127.0.0.1",
        "127.0.0.1:80",
    ],
)
def test_a_local_address_is_refused_in_every_notation(host: str) -> None:
    with pytest.raises(AddressRefusedError):
        check(f"http://{host}/")


@pytest.mark.parametrize(
    "host",
    ["256.1.1.1", "1.2.3.4.5", "exa mple.org", "a..b", "%31.org", ".", f"{'a' * 64}.org", "127.0.0.1 "],
)
def test_what_is_neither_a_name_nor_an_address_is_refused(host: str) -> None:
    with pytest.raises(AddressRefusedError, match="is no"):
        AddressGuard().check_host(host, 80)


@pytest.mark.parametrize(
    "host", ["example.org", "example.org.", "xn--bcher-kva.example", "1e100.net", "a_b.org"]
)
def test_a_name_is_left_to_what_it_resolves_to(host: str) -> None:
    check(f"http://{host}/")


def test_the_message_says_how_to_allow_an_address() -> None:
    with pytest.raises(AddressRefusedError) as caught:
        check("http://10.0.0.1/")
    assert str(caught.value) == (
        '10.0.0.1 is a private address; allow "10.0.0.1:80" under [http] allow in aioflow.toml if it is meant'
    )


def test_port_0_is_refused() -> None:
    with pytest.raises(AddressRefusedError, match="port 0"):
        check("http://example.org:0/")


@pytest.mark.parametrize(
    ("url", "allow"),
    [
        ("http://127.0.0.1:8080/", "127.0.0.1:8080"),
        ("https://10.0.0.1/", "10.0.0.1:443"),
        ("http://[::1]:8080/", "[::1]:8080"),
        ("http://[0:0::1]:8080/", "[::1]:8080"),
        ("http://[::1]:8080/", "[0:0::1]:8080"),
        ("http://[FD00::A]/", "[fd00::a]:80"),
    ],
)
def test_what_is_allowed_with_its_port_may_be_reached(url: str, allow: str) -> None:
    check(url, allow)


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/",
        "http://127.0.0.1:8081/",
        "http://127.0.0.2:8080/",
        "http://[::ffff:127.0.0.1]:8080/",
        "http://127.1:8080/",
    ],
)
def test_nothing_else_is_allowed_by_it(url: str) -> None:
    with pytest.raises(AddressRefusedError):
        check(url, "127.0.0.1:8080")


def test_a_name_is_refused_when_any_of_its_addresses_is_private() -> None:
    guard = AddressGuard()
    guard.check_resolved("two.example", 80, ["8.8.8.8", "2606:4700::1111"])
    with pytest.raises(
        AddressRefusedError, match=r"two\.example leads to 10\.0\.0\.1, a private address; allow"
    ):
        guard.check_resolved("two.example", 80, ["8.8.8.8", "10.0.0.1"])


def test_an_allowed_name_may_lead_inside_and_no_other_name_with_it() -> None:
    guard = AddressGuard(["Intranet.Example:8080", "bücher.example:80"])
    guard.check_resolved("intranet.example", 8080, ["10.0.0.1"])
    guard.check_resolved("xn--bcher-kva.example", 80, ["10.0.0.2"])
    for name, port in (("intranet.example", 80), ("intranet.example.", 8080), ("other.example", 8080)):
        with pytest.raises(AddressRefusedError):
            guard.check_resolved(name, port, ["10.0.0.1"])


def test_a_socket_is_connected_only_to_what_was_let_in() -> None:
    guard = AddressGuard(["intranet.example:8080", "[::1]:80"])
    guard.check_socket("8.8.8.8", 80)
    with pytest.raises(AddressRefusedError):
        guard.check_socket("10.0.0.1", 8080)
    guard.check_resolved("intranet.example", 8080, ["10.0.0.1"])
    guard.check_host("::1", 80)
    guard.check_socket("10.0.0.1", 8080)
    guard.check_socket("::1", 80)
    with pytest.raises(AddressRefusedError):
        guard.check_socket("10.0.0.1", 80)
