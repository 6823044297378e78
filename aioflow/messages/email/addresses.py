"""Mailboxes: addresses with the names of people, as plans and data write them, strictly read.

Everything that could end a header, a command of SMTP or the address itself is refused here, once.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, TypeVar

import msgspec

from aioflow.errors import SettingError
from aioflow.expressions.template import Formatter, Template
from aioflow.relation import Row, Schema

_Read = TypeVar("_Read")

_MOST_LOCAL_BYTES, _MOST_ADDRESS_BYTES, _MOST_NAME_CHARACTERS = 64, 254, 200

_LIST_PIECE = re.compile(r'"(?:[^"\\]|\\.)*"|<[^<>]*>|[^,"<]+|.', re.DOTALL)
_NAMED = re.compile(r'\s*("(?:[^"\\]|\\.)*"|[^"<>]*?)\s*<([^<>]*)>\s*', re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
# Controls, the line and paragraph separators of Unicode, halves of characters.
UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_SPECIAL = re.compile(r"[^\w !#$%&\'*+/=?^`{|}~-]", re.ASCII)
_ATOM = r"[^\x00-\x20\x7f-\xa0\"(),.:;<>@\[\\\]{}]+"
_LOCAL = re.compile(rf"{_ATOM}(?:\.{_ATOM})*")
_ROUTES = frozenset("%!")
_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_DOMAIN = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")


class AddressError(SettingError):
    """A text is no address that mail can go to."""


class Mailbox(msgspec.Struct, frozen=True):
    """`Ann <ann@example.org>`; the domain is in lower case, and as the DNS has it."""

    address: str
    name: str = ""

    @property
    def domain(self) -> str:
        return self.address.rpartition("@")[2]

    @property
    def is_routed(self) -> bool:
        """True if a server may send its mail on to another: `ann%there@here`, `there!ann@here`."""
        return not _ROUTES.isdisjoint(self.address.rpartition("@")[0])

    def __str__(self) -> str:
        if not self.name:
            return self.address
        plain = not _SPECIAL.search(self.name) and self.name == " ".join(self.name.split())
        quoted = self.name if plain else '"' + re.sub(r'(["\\])', r"\\\1", self.name) + '"'
        return f"{quoted} <{self.address}>"


def read_mailbox(text: str) -> Mailbox:
    """One mailbox; an AddressError says what is wrong."""
    name, address = _parts(text)
    return _mailbox(name, address)


def read_mailboxes(text: str) -> list[Mailbox]:
    """Mailboxes with commas between them; an AddressError has the offset of the first that is wrong."""
    return [_at(offset, read_mailbox, part) for offset, part in _elements(text)]


def read_domain(text: str) -> str:
    """Return a domain in lower case, one with other letters as the DNS has it (IDNA)."""
    import idna  # it loads large tables

    try:
        domain = text.lower() if text.isascii() else idna.encode(text, uts46=True).decode("ascii")
    except idna.IDNAError:
        domain = ""
    if not _DOMAIN.fullmatch(domain) or len(domain) > _MOST_ADDRESS_BYTES:
        raise AddressError(f"{_shown(text)} is no domain")
    return domain


def _elements(text: str) -> Iterator[tuple[int, str]]:
    """Yield the texts between commas that are neither quoted nor in angle brackets, with offsets."""
    start = place = 0
    for piece in _LIST_PIECE.finditer(text):
        if piece[0] == ",":
            yield start, text[start:place]
            start = piece.end()
        place = piece.end()
    yield start, text[start:]


def _at(offset: int, read: Callable[[str], _Read], part: str) -> _Read:
    try:
        return read(part)
    except SettingError as error:
        inside = error.offset or len(part) - len(part.lstrip())
        raise AddressError(error.message, offset=offset + inside) from None


def _parts(text: str) -> tuple[str, str]:
    """Name and address as they stand in a text."""
    found = _NAMED.fullmatch(text)
    if found is None:
        return "", text.strip(" \t")
    name = found[1]
    if name.startswith('"'):
        name = _ESCAPED.sub(r"\1", name[1:-1])
    return name, found[2]


def _mailbox(name: str, address: str) -> Mailbox:
    if UNSAFE.search(name):
        raise AddressError(f"the name {_shown(name)} holds a line end or another control character")
    if UNSAFE.search(address):
        raise AddressError(f"the address {_shown(address)} holds a line end or another control character")
    local, at, domain = unicodedata.normalize("NFC", address).rpartition("@")
    if not at:
        raise AddressError(f"{_shown(address)} is no address: it has no @")
    if not _LOCAL.fullmatch(local) or not _is_printable(local) or len(local.encode()) > _MOST_LOCAL_BYTES:
        raise AddressError(f"{_shown(address)} is no address: {_shown(local)} cannot stand before the @")
    whole = f"{local}@{read_domain(domain)}"
    if len(whole.encode()) > _MOST_ADDRESS_BYTES:
        raise AddressError(f"{_shown(address)} is too long for an address")
    return Mailbox(whole, unicodedata.normalize("NFC", name)[:_MOST_NAME_CHARACTERS])


def _is_printable(text: str) -> bool:
    return text.isprintable() and not any(map(str.isspace, text))


def _shown(text: str) -> str:
    return repr(text if len(text) <= 80 else f"{text[:79]}…")


# --- in plans -----------------------------------------------------------------------------------


class _FromData(msgspec.Struct, frozen=True):
    """A mailbox that is made of each tuple: `{name} <{email}>`."""

    text: str
    name: Formatter
    address: Formatter

    def mailbox(self, row: Row) -> Mailbox:
        name, address = self.name.row(row), self.address.row(row)
        if name is None or address is None:
            raise AddressError(f"{self.text!r} cannot be written for this tuple")
        if not address.strip():
            raise AddressError(f"{self.text!r} gives no address: there is none in this tuple")
        return _mailbox(name, address.strip(" \t"))


class Recipients(msgspec.Struct, frozen=True):
    """The recipients of a message, as a setting: addresses, and `{attribute}` for some in each tuple."""

    kind_name: ClassVar[str] = "an address, or a list of them"

    constant: tuple[Mailbox, ...]
    from_data: tuple[_FromData, ...] = ()
    offset: int | None = None  # of the first that comes from data

    @classmethod
    def bind(cls, value: Any, inputs: Sequence[Schema | None]) -> Recipients:
        texts = list(value) if isinstance(value, list | tuple) else [value]
        if not texts or not all(isinstance(text, str) for text in texts):
            raise SettingError(f"must be {cls.kind_name}, in quotes, not {value!r}")
        schema = inputs[0] if inputs else None
        constant: list[Mailbox] = []
        from_data: list[_FromData] = []
        offset = None
        for text in texts:
            for place, part in _elements(text):
                if "{" in part or "}" in part:
                    offset = place + len(part) - len(part.lstrip()) if offset is None else offset
                    from_data.append(_at(place, lambda part: _from_data(part, schema), part))
                else:
                    constant.append(_at(place, read_mailbox, part))
        return cls(tuple(constant), tuple(from_data), offset)

    def of_row(self, row: Row) -> list[Mailbox]:
        """Return the addresses that come from a tuple; raise an AddressError for a value that is none."""
        return [template.mailbox(row) for template in self.from_data]


def _from_data(part: str, schema: Schema | None) -> _FromData:
    name, address = _parts(part)
    if "@" not in address and "{" not in address:
        raise AddressError(f"{_shown(address)} is no address: it has no @")
    return _FromData(part.strip(), *(_formatter(part, text, schema) for text in (name, address)))


def _formatter(part: str, text: str, schema: Schema | None) -> Formatter:
    try:
        return Template(text, schema).formatter()
    except SettingError as error:
        inside = max(part.find(text), 0) + (error.offset or 0)
        raise SettingError(error.message, offset=inside) from None
