"""Those who are told: a mail server, a gateway and a Maildir, and what each of them has got, in order."""

from __future__ import annotations

import email
import email.policy
import json
import smtplib
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tests.servers.gateway import gateway_process
from tests.servers.gateway import read_journal as read_requests
from tests.servers.smtp import read_journal as read_mails
from tests.servers.smtp import smtp_process

USER, PASSWORD = "watcher", "not guessed"
SMS, HOOK = "/sms", "/hook"


class Receipt(NamedTuple):
    """A copy of a message: what all copies share, and what it tells."""

    message_id: str
    text: str


@dataclass
class Receivers:
    """Two servers that outlive whoever is killed; everything that one of them was told is on the disk."""

    folder: Path
    smtp_port: int
    gateway_port: int
    _mails: _Journal = field(init=False)
    _requests: _Journal = field(init=False)

    def __post_init__(self) -> None:
        self._mails = _Journal(self.folder / "mails", _mailed)
        self._requests = _Journal(self.folder / "requests", _requested)

    def settle(self) -> None:
        """Wait until what somebody dead had sent is behind us: this comes after it."""
        with smtplib.SMTP("127.0.0.1", self.smtp_port, "localhost") as server:
            while server.docmd("XOPEN")[1] != b"1":
                pass
        with urllib.request.urlopen(f"http://127.0.0.1:{self.gateway_port}/settled"):
            pass

    def mails(self) -> list[Receipt]:
        return [receipt for _, receipt in self._mails.read()]

    def requests(self, path: str) -> list[Receipt]:
        return [receipt for where, receipt in self._requests.read() if where == path]


class _Journal:
    """What a server wrote down, read as it grows."""

    def __init__(self, path: Path, read: Callable[[Path], list[tuple[str, Receipt]]]) -> None:
        self._path, self._read = path, read
        self._piece = path.with_suffix(".piece")
        self._offset = 0
        self._entries: list[tuple[str, Receipt]] = []

    def read(self) -> list[tuple[str, Receipt]]:
        if self._path.exists():
            with self._path.open("rb") as journal:
                journal.seek(self._offset)
                data = journal.read()
            self._offset += len(data)
            self._piece.write_bytes(data)
            self._entries += self._read(self._piece)
        return self._entries


def _mailed(path: Path) -> list[tuple[str, Receipt]]:
    return [("", Receipt(mail.message_id, str(mail.message["Subject"]))) for mail in read_mails(path)]


def _requested(path: Path) -> list[tuple[str, Receipt]]:
    entries = []
    for request in read_requests(path):
        if request.path == SMS:
            entries.append((SMS, Receipt(str(request.key), json.loads(request.body)["text"])))
        elif request.path == HOOK:
            # A plain webhook has no place for a key: what is told tells copies.
            title = json.loads(request.body)["title"]
            entries.append((HOOK, Receipt(title, title)))
    return entries


def read_maildir(folder: Path) -> list[Receipt]:
    """The messages in a Maildir, in no order."""
    receipts = []
    for path in sorted(folder.glob("new/*")):
        message = email.message_from_bytes(path.read_bytes(), policy=email.policy.default)
        receipts.append(Receipt(str(message["Message-ID"]), str(message["Subject"])))
    return receipts


@contextmanager
def receivers(folder: Path) -> Iterator[Receivers]:
    """A mail server that wants TLS and a password, and a gateway."""
    with (
        smtp_process(folder / "mails", tls="starttls", user=USER, password=PASSWORD) as smtp_port,
        gateway_process(folder / "requests") as gateway_port,
    ):
        yield Receivers(folder, smtp_port, gateway_port)
