"""Addresses: what is one, what never gets past, and recipients in plans."""

from __future__ import annotations

from email.headerregistry import Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioflow import Schema, SettingError
from aioflow.messages.email.addresses import AddressError, Mailbox, Recipients, read_mailbox, read_mailboxes

PEOPLE = Schema.of("name", "email")


@pytest.mark.parametrize(
    ("text", "name", "address"),
    [
        ("ann@example.org", "", "ann@example.org"),
        ("  ann@Example.ORG ", "", "ann@example.org"),
        ("Ann <ann@example.org>", "Ann", "ann@example.org"),
        ("<ann@example.org>", "", "ann@example.org"),
        ('"Ann, the first" <ann@example.org>', "Ann, the first", "ann@example.org"),
        (r'"Ann \"A\" \\ B" <ann@example.org>', r'Ann "A" \ B', "ann@example.org"),
        ("Ann (work) <ann@example.org>", "Ann (work)", "ann@example.org"),
        ("Ann+tag.x/y=z@example.org", "", "Ann+tag.x/y=z@example.org"),
        ("root@localhost", "", "root@localhost"),
        ("o'neil@example.org", "", "o'neil@example.org"),
        ("Jörg <jörg@straße.example>", "Jörg", "jörg@xn--strae-oqa.example"),
        ("ann@例え.テスト", "", "ann@xn--r8jz45g.xn--zckzah"),
    ],
)
def test_addresses_as_people_write_them(text: str, name: str, address: str) -> None:
    assert read_mailbox(text) == Mailbox(address, name)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "it has no @"),
        ("ann", "'ann' is no address: it has no @"),
        ("@example.org", "cannot stand before the @"),
        ("ann@", "'' is no domain"),
        ("ann@exa mple.org", "'exa mple.org' is no domain"),
        ("ann@-example.org", "'-example.org' is no domain"),
        ("ann@example..org", "is no domain"),
        ("ann@[127.0.0.1]", "is no domain"),
        ("a b@example.org", "'a b' cannot stand before the @"),
        (".ann@example.org", "cannot stand before the @"),
        ("a..b@example.org", "cannot stand before the @"),
        ('"a b"@example.org', "cannot stand before the @"),
        ("ann@evil.example@example.org", "'ann@evil.example' cannot stand before the @"),
        ("ann@example.org>", "is no domain"),
        ("<ann@example.org", "cannot stand before the @"),
        ("Ann <ann@example.org> Bob", "cannot stand before the @"),
        ("ann@example.org\r\nRCPT TO:<x@y.z>", "a line end or another control character"),
        ("ann\x00@example.org", "a line end or another control character"),
        ("Ann\nBcc: x@y.z <ann@example.org>", "a line end or another control character"),
        ("ann\u2028@example.org", "a line end or another control character"),
        ("an\u202en@example.org", "cannot stand before the @"),
        ("a" * 65 + "@example.org", "cannot stand before the @"),
        ("ann@" + ".".join(["a" * 60] * 5), "is no domain"),
    ],
)
def test_what_is_no_address(text: str, message: str) -> None:
    with pytest.raises(AddressError) as caught:
        read_mailbox(text)
    assert message in str(caught.value)


def test_lists_are_divided_by_commas_outside_of_names() -> None:
    assert read_mailboxes('a@x.org, "B, C" <b@x.org>,c@x.org') == [
        Mailbox("a@x.org"),
        Mailbox("b@x.org", "B, C"),
        Mailbox("c@x.org"),
    ]


@pytest.mark.parametrize(
    ("text", "offset"), [("a@x.org,  b", 10), ("a", 0), ("a@x.org,", 8), ('"A, B" <a@x.org>, <b>', 18)]
)
def test_a_mistake_in_a_list_has_its_place(text: str, offset: int) -> None:
    with pytest.raises(AddressError) as caught:
        read_mailboxes(text)
    assert caught.value.offset == offset


NAMES = st.text(st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp")), max_size=30)


@given(NAMES)
def test_a_mailbox_is_read_back_from_its_text(name: str) -> None:
    first = read_mailbox(str(Mailbox("ann@example.org", name.strip())))
    assert read_mailbox(str(first)) == first


# Whatever stands for an address in data.
ODD = 'a@.xé\r\n\0 <>",;:()[]\\=?-\u2028\x85\u202e'
TEXTS = st.text(st.sampled_from(ODD), max_size=20) | st.text(max_size=20)


@given(TEXTS, TEXTS)
def test_whatever_is_read_can_stand_in_a_header_and_a_command(name: str, address: str) -> None:
    recipients = Recipients.bind("{name} <{email}>", [PEOPLE])
    try:
        [found] = recipients.of_row((name, address))
    except AddressError:
        return
    for text in (found.address, found.name):
        assert not any(character in text for character in "\r\n\0\x85\u2028\u2029\x0b\x0c")
    assert found.address.count("@") == 1
    assert not set(found.address) & set(' <>",;:()[]\\')
    assert Address(addr_spec=found.address).addr_spec == found.address
    assert read_mailbox(str(found)).address == found.address


# --- in plans -----------------------------------------------------------------------------------


def test_recipients_are_one_address_or_a_list() -> None:
    expected = (Mailbox("a@x.org"), Mailbox("b@x.org", "B"))
    for value in ("a@x.org, B <b@x.org>", ["a@x.org", "B <b@x.org>"], ("a@x.org", "B <b@x.org>")):
        assert Recipients.bind(value, []).constant == expected


@pytest.mark.parametrize("value", [7, None, [], [7], {}])
def test_recipients_are_texts(value: object) -> None:
    with pytest.raises(SettingError, match="must be an address, or a list of them"):
        Recipients.bind(value, [])


def test_recipients_from_data() -> None:
    found = Recipients.bind("boss@x.org, {name} <{email}>", [PEOPLE])
    assert found.constant == (Mailbox("boss@x.org"),)
    assert found.offset == 12
    assert found.of_row(("Ann, B", "ann@y.org")) == [Mailbox("ann@y.org", "Ann, B")]


@pytest.mark.parametrize("value", [None, "", "   "])
def test_a_tuple_without_an_address_says_so(value: object) -> None:
    with pytest.raises(AddressError, match=r"'\{email\}' gives no address"):
        Recipients.bind("{email}", [PEOPLE]).of_row(("Ann", value))


def test_data_cannot_make_two_addresses_of_one() -> None:
    recipients = Recipients.bind("{email}", [PEOPLE])
    for value in ("a@x.org, b@x.org", "A <a@x.org>", "a@x.org b@x.org", "a@x.org;b@x.org"):
        with pytest.raises(AddressError):
            recipients.of_row(("", value))


@pytest.mark.parametrize(
    ("text", "message", "offset"),
    [
        ("{emial}", "unknown attribute 'emial'; did you mean 'email'?", 1),
        ("a@x.org, {name} <{emial}>", "unknown attribute 'emial'", 18),
        ("{name", "'{' stands alone", 0),
        ("{name} <nobody>", "'nobody' is no address", 0),
    ],
)
def test_mistakes_in_recipients_from_data_are_found_in_the_plan(text: str, message: str, offset: int) -> None:
    with pytest.raises(SettingError) as caught:
        Recipients.bind(text, [PEOPLE])
    assert message in str(caught.value)
    assert caught.value.offset == offset
