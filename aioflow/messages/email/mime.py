"""A message of the outbox as the bytes that travel: the same for every copy of it."""

from __future__ import annotations

import base64
import binascii
import hashlib
import quopri
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.header import Header
from email.utils import format_datetime
from typing import Any

from aioflow.messages.email.addresses import UNSAFE, AddressError, Mailbox, read_mailbox
from aioflow.messages.outbox.message import Message

_END = b"\r\n"
_MOST_SUBJECT_CHARACTERS = 500
_PLAIN_HEADER_CHARACTERS = 60  # what is longer is folded, as encoded words
_NOT_ASCII = bytes(range(127, 256))
_TOKEN = re.compile(r"[A-Za-z0-9._-]{1,64}")
_TYPE = re.compile(r"[a-z]+/[a-z0-9.+-]+")
_UNSAFE_IN_TEXT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff]")
_LINE_ENDS = re.compile("\r\n|[\r\n\x85\u2028\u2029]")


class ContentError(ValueError):
    """What the outbox keeps is no message that can be sent."""


def one_line(text: str) -> str:
    """A text as a header may have it: white space and control characters become single spaces."""
    line = " ".join(UNSAFE.sub(" ", text).split())
    return line if len(line) <= _MOST_SUBJECT_CHARACTERS else f"{line[: _MOST_SUBJECT_CHARACTERS - 1]}…"


def clean_text(text: str) -> str:
    """A text as a message may carry it: lines end with a line feed, and no other controls are left."""
    return _UNSAFE_IN_TEXT.sub("\ufffd", _LINE_ENDS.sub("\n", text))


@dataclass(frozen=True)
class Mail:
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
        """A message as the outbox keeps it; a ContentError says why it cannot be sent."""
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
        """All addresses, each once."""
        return tuple(dict.fromkeys(each.address for each in (*self.to, *self.cc, *self.bcc)))

    @property
    def needs_utf8(self) -> bool:
        """Whether only servers that know SMTPUTF8 can take it."""
        shown = (self.sender, *self.to, *self.cc, *self.bcc, *((self.reply_to,) if self.reply_to else ()))
        return not all(each.address.isascii() for each in shown)

    @property
    def message_id(self) -> str:
        """The same for every copy."""
        token = self.key if _TOKEN.fullmatch(self.key) else hashlib.sha256(self.key.encode()).hexdigest()
        return f"<{token.strip('.')}@{self.sender.domain}>"

    def as_bytes(self, *, with_bcc: bool = False) -> bytes:
        """Header and body, lines ended by CR LF. Who gets a blind copy is told only to who asks for it."""
        try:
            headers = [f"{name}: {value}".encode() for name, value in self._headers(with_bcc)]
            return _END.join([*headers, *self._body()])
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
        # So that nobody's holiday answers.
        yield "Auto-Submitted", "auto-generated"
        if _TOKEN.fullmatch(self.run_id):
            yield "X-Aioflow-Run", self.run_id
        yield "MIME-Version", "1.0"

    def _body(self) -> list[bytes]:
        content = self.content
        texts = [_text_part("plain", content["text"])]
        if content.get("html"):
            texts.append(_text_part("html", content["html"]))
        body = texts[0] if len(texts) == 1 else _multipart("alternative", self._boundary("a"), texts)
        attached = [_attachment(each) for each in content.get("attachments", ())]
        return _multipart("mixed", self._boundary("m"), [body, *attached]) if attached else body

    def _boundary(self, level: str) -> str:
        # `=_` stands in no part: neither of the two encodings writes it.
        return f"=_{level}_{hashlib.sha256(self.key.encode()).hexdigest()[:32]}"


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


def _text_part(kind: str, text: str) -> list[bytes]:
    data = clean_text(text).encode()
    plain = data.translate(None, _NOT_ASCII)
    if (len(data) - len(plain)) * 6 > len(data):
        encoding, lines = b"base64", _base64_lines(data)
    else:
        encoding, lines = b"quoted-printable", quopri.encodestring(data).split(b"\n")
    return [
        f'Content-Type: text/{kind}; charset="utf-8"'.encode(),
        b"Content-Transfer-Encoding: " + encoding,
        b"",
        *lines,
    ]


def _attachment(attached: Mapping[str, Any]) -> list[bytes]:
    name = re.sub(r"[^A-Za-z0-9._-]", "_", attached["name"])[:100] or "attachment"
    kind = attached["type"]
    if not _TYPE.fullmatch(kind):
        raise ContentError(f"{kind!r} is no type of an attachment")
    try:
        data = base64.b64decode(attached["base64"], validate=True)
    except binascii.Error as error:
        raise ContentError(f"the attachment {name} is damaged: {error}") from error
    charset = '; charset="utf-8"' if kind.startswith("text/") else ""
    return [
        f'Content-Type: {kind}; name="{name}"{charset}'.encode(),
        f'Content-Disposition: attachment; filename="{name}"'.encode(),
        b"Content-Transfer-Encoding: base64",
        b"",
        *_base64_lines(data),
    ]


def _base64_lines(data: bytes) -> list[bytes]:
    return base64.encodebytes(data).split(b"\n")


def _multipart(kind: str, boundary: str, parts: Sequence[list[bytes]]) -> list[bytes]:
    lines = [f'Content-Type: multipart/{kind}; boundary="{boundary}"'.encode(), b""]
    for part in parts:
        lines += [f"--{boundary}".encode(), *part]
    return [*lines, f"--{boundary}--".encode(), b""]
