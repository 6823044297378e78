"""Mails: a message of the outbox as bytes, the same for every copy of it.

The standard library writes the parts, with boundaries that are made of the message's key. Two of its classes
do not fit: the headers of `EmailMessage` take a subject `=?utf-8?q?x?=` for an encoded word and send `x`, so
`email.header.Header` encodes subjects and names; `set_content` adds a line end to a text that has none.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import quopri
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from email.header import Header
from email.message import MIMEPart
from email.policy import SMTP
from email.utils import format_datetime
from typing import Any

import msgspec

from aioflow.messages.email.addresses import UNSAFE, AddressError, Mailbox, read_mailbox
from aioflow.messages.outbox.message import Message

# The headers of a part stand on one line each: at most 250 characters, and 998 are allowed.
_PART_POLICY = SMTP.clone(max_line_length=None)
_MOST_SUBJECT_CHARACTERS = 500
_PLAIN_HEADER_CHARACTERS = 60  # what is longer is folded, as encoded words
_NOT_ASCII = bytes(range(127, 256))
_TOKEN = re.compile(r"[A-Za-z0-9._-]{1,64}")
_TYPE = re.compile(r"[a-z]+/[a-z0-9.+-]+")
_UNSAFE_IN_TEXT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff]")
_LINE_ENDS = re.compile("\r\n|[\r\n\x85\u2028\u2029]")


class ContentError(ValueError):
    """The content of a message of the outbox is no mail that can be sent."""


def one_line(text: str) -> str:
    """Return a text for a header: white space and control characters become single spaces."""
    line = " ".join(UNSAFE.sub(" ", text).split())
    return line if len(line) <= _MOST_SUBJECT_CHARACTERS else f"{line[: _MOST_SUBJECT_CHARACTERS - 1]}…"


def clean_text(text: str) -> str:
    """Return a text for a message: lines end with a line feed, and there are no other control characters."""
    return _UNSAFE_IN_TEXT.sub("\ufffd", _LINE_ENDS.sub("\n", text))


class Mail(msgspec.Struct, frozen=True):
    """A message with its envelope."""

    key: str
    run_id: str
    created: datetime
    sender: Mailbox
    to: tuple[Mailbox, ...]
    cc: tuple[Mailbox, ...]
    bcc: tuple[Mailbox, ...]
    reply_to: Mailbox | None
    content: Mapping[str, Any]

    @classmethod
    def of(cls, message: Message) -> Mail:
        """Return the mail of a message of the outbox; a ContentError says why it cannot be sent."""
        content = message.content
        try:
            reply_to = content.get("reply_to")
            return cls(
                message.key,
                message.run_id,
                message.created or datetime.now(UTC),
                read_mailbox(content["from"]),
                _mailboxes(content.get("to", ())),
                _mailboxes(content.get("cc", ())),
                _mailboxes(content.get("bcc", ())),
                read_mailbox(reply_to) if reply_to else None,
                content,
            )
        except AddressError as error:
            raise ContentError(error.message) from error
        except (KeyError, TypeError, AttributeError) as error:
            raise ContentError(f"{type(error).__name__}: {error}") from error

    @property
    def recipients(self) -> tuple[str, ...]:
        """The addresses of all receivers, each once."""
        return tuple(dict.fromkeys(each.address for each in (*self.to, *self.cc, *self.bcc)))

    @property
    def needs_utf8(self) -> bool:
        """Return whether an address is not ASCII: only servers with SMTPUTF8 can take such a mail."""
        shown = (self.sender, *self.to, *self.cc, *self.bcc, *((self.reply_to,) if self.reply_to else ()))
        return not all(each.address.isascii() for each in shown)

    @property
    def message_id(self) -> str:
        """The Message-ID, which is the same for every copy."""
        token = self.key if _TOKEN.fullmatch(self.key) else hashlib.sha256(self.key.encode()).hexdigest()
        return f"<{token.strip('.')}@{self.sender.domain}>"

    def as_bytes(self, *, with_bcc: bool = False) -> bytes:
        """Return header and body, lines ended by CR LF; `with_bcc` adds the receivers of blind copies."""
        try:
            headers = [f"{name}: {value}\r\n".encode() for name, value in self._headers(with_bcc)]
            return b"".join([*headers, self._body().as_bytes()])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ContentError(f"{type(error).__name__}: {error}") from error

    def _headers(self, with_bcc: bool) -> Iterator[tuple[str, str]]:
        yield "From", _address_header((self.sender,))
        yield "To", _address_header(self.to) if self.to else "undisclosed-recipients:;"
        if self.cc:
            yield "Cc", _address_header(self.cc)
        if self.bcc and with_bcc:
            yield "Bcc", _address_header(self.bcc)
        if self.reply_to is not None:
            yield "Reply-To", _address_header((self.reply_to,))
        yield "Subject", _text_header("Subject", one_line(self.content["subject"]))
        created = self.created if self.created.tzinfo else self.created.replace(tzinfo=UTC)
        yield "Date", format_datetime(created)
        yield "Message-ID", self.message_id
        # Keeps automatic answers, like those of people on holiday, from being sent.
        yield "Auto-Submitted", "auto-generated"
        if _TOKEN.fullmatch(self.run_id):
            yield "X-Aioflow-Run", self.run_id
        yield "MIME-Version", "1.0"

    def _body(self) -> MIMEPart:
        content = self.content
        body = _text_part("plain", content["text"])
        if content.get("html"):
            body = self._multipart("alternative", [body, _text_part("html", content["html"])])
        attached = [_attachment(each) for each in content.get("attachments", ())]
        return self._multipart("mixed", [body, *attached]) if attached else body

    def _multipart(self, kind: str, parts: Iterable[MIMEPart]) -> MIMEPart:
        # `=_` stands in no part: neither of the two encodings writes it.
        boundary = f"=_{kind[0]}_{hashlib.sha256(self.key.encode()).hexdigest()[:32]}"
        whole = _part({"Content-Type": f'multipart/{kind}; boundary="{boundary}"'})
        for part in parts:
            whole.attach(part)
        return whole


def _mailboxes(texts: Iterable[str]) -> tuple[Mailbox, ...]:
    return tuple(map(read_mailbox, texts))


# --- headers ------------------------------------------------------------------------------------


def _text_header(name: str, text: str) -> str:
    if text.isascii() and len(text) <= _PLAIN_HEADER_CHARACTERS and "=?" not in text:
        return text
    return _encoded_words(text, name)


def _encoded_words(text: str, name: str = "") -> str:
    return Header(text, "utf-8", header_name=name or None).encode(linesep="\r\n")


def _address_header(mailboxes: Sequence[Mailbox]) -> str:
    return ",\r\n ".join(map(_address, mailboxes))


def _address(mailbox: Mailbox) -> str:
    name = mailbox.name
    if name.isascii() and "=?" not in name:
        return str(mailbox)
    return f"{_encoded_words(name)}\r\n <{mailbox.address}>"


# --- parts --------------------------------------------------------------------------------------


def _part(headers: Mapping[str, str], data: bytes | None = None) -> MIMEPart:
    """Return a part whose data are encoded already."""
    part = MIMEPart(_PART_POLICY)
    for name, value in headers.items():
        part[name] = value
    if data is not None:
        part.set_payload(data.decode("ascii"))
    return part


def _text_part(kind: str, text: str) -> MIMEPart:
    data = clean_text(text).encode()
    is_mostly_ascii = len(data.translate(None, _NOT_ASCII)) * 6 >= len(data) * 5
    encoding = "quoted-printable" if is_mostly_ascii else "base64"
    headers = {"Content-Type": f'text/{kind}; charset="utf-8"', "Content-Transfer-Encoding": encoding}
    return _part(headers, quopri.encodestring(data) if is_mostly_ascii else base64.encodebytes(data))


def _attachment(attached: Mapping[str, Any]) -> MIMEPart:
    name = re.sub(r"[^A-Za-z0-9._-]", "_", attached["name"])[:100] or "attachment"
    kind = attached["type"]
    if not _TYPE.fullmatch(kind):
        raise ContentError(f"{kind!r} is no type of an attachment")
    try:
        data = base64.b64decode(attached["base64"], validate=True)
    except binascii.Error as error:
        raise ContentError(f"the attachment {name} is damaged: {error}") from error
    charset = '; charset="utf-8"' if kind.startswith("text/") else ""
    headers = {
        "Content-Type": f'{kind}; name="{name}"{charset}',
        "Content-Disposition": f'attachment; filename="{name}"',
        "Content-Transfer-Encoding": "base64",
    }
    return _part(headers, base64.encodebytes(data))
