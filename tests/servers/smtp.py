"""A real SMTP server on loopback that keeps what it gets, and fails where a test says so.

In a test: `async with SmtpServer() as server: …`. As a process: `with smtp_process(journal) as port: …`,
where each message is in the journal, on the disk, before it is answered.
"""

from __future__ import annotations

import argparse
import asyncio
import email
import email.policy
import json
import logging
import socket
import ssl
import warnings
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from email.message import EmailMessage
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self, TypeAlias

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

from tests.servers.process import append_durably, serve_until_input_ends, server_process

TLS_FOLDER = Path(__file__).parents[1] / "data" / "tls"
CA_FILE = TLS_FOLDER / "ca.pem"  # who trusts it trusts the server's certificate, for localhost and 127.0.0.1

# END is the final dot of a message; EHLO includes HELO.
Step: TypeAlias = Literal["CONNECT", "EHLO", "STARTTLS", "AUTH", "MAIL", "RCPT", "DATA", "END", "QUIT"]

Tls: TypeAlias = Literal["starttls", "implicit"] | None


@dataclass
class Reaction:
    """What the server does at a step instead of going on.

    It first waits for `until`, if there is one, then answers `reply` and closes the connection if told so;
    with neither it goes on as usual. With `keep` a message is kept at its END, before anything else.
    """

    reply: str | None = None
    close: bool = False
    keep: bool = False
    until: asyncio.Event | None = None
    recipient: str | None = None  # only for this one, at RCPT
    times: int | None = None  # so often, then the step is as usual again
    reached: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(frozen=True)
class Mail:
    """A message that the server has kept, with its envelope."""

    sender: str
    recipients: tuple[str, ...]
    data: bytes
    encrypted: bool = False
    user: str | None = None

    @property
    def message(self) -> EmailMessage:
        parsed = email.message_from_bytes(self.data, policy=email.policy.default)
        assert isinstance(parsed, EmailMessage)
        return parsed

    @property
    def message_id(self) -> str:
        return str(self.message["Message-ID"])

    def as_json(self) -> str:
        fields = {"id": self.message_id, "sender": self.sender, "recipients": self.recipients}
        return json.dumps(fields | {"data": self.data.decode("latin-1")})


def read_journal(path: Path) -> list[Mail]:
    """The messages that a server process has kept, in order."""
    lines = path.read_text().splitlines() if path.exists() else []
    return [
        Mail(kept["sender"], tuple(kept["recipients"]), kept["data"].encode("latin-1"))
        for kept in map(json.loads, lines)
    ]


class SmtpServer:
    """An SMTP server; an async context manager on the running loop.

    `tls` offers STARTTLS, or speaks TLS from the start; with `user` nothing is taken without AUTH.
    """

    def __init__(
        self,
        *,
        tls: Tls = None,
        user: str | None = None,
        password: str = "",
        utf8: bool = True,
        journal: Path | None = None,
    ) -> None:
        self.kept: list[Mail] = []
        self.commands: list[str] = []  # as they came, without what AUTH told
        self.connections = 0
        self._tls, self._user, self._password, self._utf8 = tls, user, password, utf8
        self._journal = journal
        self._reactions: list[tuple[Step, Reaction]] = []
        self._protocols: list[_Protocol] = []
        self._server: asyncio.Server | None = None
        self._bound: socket.socket | None = None
        self.port = 0

    async def __aenter__(self) -> Self:
        await self.open_port()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close_port()
        if self._bound is not None:
            self._bound.close()

    def on(self, step: Step, reaction: Reaction) -> Reaction:
        """React at this step; what was said first comes first."""
        self._reactions.append((step, reaction))
        return reaction

    def refuse(
        self, step: Step, reply: str, *, recipient: str | None = None, times: int | None = None
    ) -> None:
        """Answer with a 4xx or 5xx at this step."""
        self.on(step, Reaction(reply, recipient=recipient, times=times))

    def as_usual(self) -> None:
        """Forget all reactions."""
        self._reactions.clear()

    async def open_port(self) -> None:
        """Take connections."""
        bound = self._bind()
        context = _tls_context() if self._tls == "implicit" else None
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._protocol, sock=bound, ssl=context)

    async def close_port(self) -> None:
        """Refuse connections from now on, and drop those that are open."""
        if self._server is not None:
            self._server.close()
            self._server = None
        self._bind()  # who binds and does not listen keeps the port, and others out
        for protocol in self._protocols:
            await protocol.leave()
        self._protocols.clear()

    def reaction(self, step: Step, argument: str = "") -> Reaction | None:
        """What to do now, at a step, if anything but the usual."""
        for wanted, reaction in self._reactions:
            meant = reaction.recipient is None or f"<{reaction.recipient}>" in argument
            if wanted == step and meant and reaction.times != 0:
                reaction.times = None if reaction.times is None else reaction.times - 1
                return reaction
        return None

    @property
    def open_connections(self) -> int:
        """Those of which anything may still come."""
        return sum(not protocol.is_over for protocol in self._protocols)

    def keep(self, mail: Mail) -> None:
        if self._journal is not None:
            append_durably(self._journal, mail.as_json())
        self.kept.append(mail)

    def _bind(self) -> socket.socket:
        if self._bound is not None:
            self._bound.close()
        self._bound = socket.socket()
        self._bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._bound.bind(("127.0.0.1", self.port))
        self.port = self._bound.getsockname()[1]
        return self._bound

    def _protocol(self) -> _Protocol:
        self.connections += 1
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that AUTH without TLS is not safe
            protocol = _Protocol(self, **self._options())
        self._protocols.append(protocol)
        return protocol

    def _options(self) -> dict[str, Any]:
        return {
            "enable_SMTPUTF8": self._utf8,
            "hostname": "localhost",
            "ident": "test",
            "tls_context": _tls_context() if self._tls == "starttls" else None,
            "auth_required": self._user is not None,
            "auth_require_tls": self._tls == "starttls",
            "auth_exclude_mechanism": [] if self._user is not None else ["LOGIN", "PLAIN"],
            "authenticator": self._authenticate,
            "loop": asyncio.get_running_loop(),
        }

    def _authenticate(
        self, server: SMTP, session: Session, envelope: Envelope, mechanism: str, data: LoginPassword
    ) -> AuthResult:
        known = (str(self._user).encode(), self._password.encode())
        return AuthResult(success=(data.login, data.password) == known, handled=False, auth_data=data)


class _Protocol(SMTP):
    """One connection. Its server says where it does not go as usual."""

    def __init__(self, server: SmtpServer, **options: Any) -> None:
        super().__init__(self, **options)
        self._owner = server
        for name, method in self._smtp_methods.items():
            self._smtp_methods[name] = partial(self._take_step, name, method)

    @property
    def is_over(self) -> bool:
        return self._handler_coroutine is not None and self._handler_coroutine.done()

    async def leave(self) -> None:
        """Drop the connection and wait until all of it has ended."""
        if self.transport is not None:
            self.transport.abort()  # type: ignore[attr-defined]
        if self._handler_coroutine is not None:
            self._handler_coroutine.cancel()  # a handshake that failed leaves it waiting
            await asyncio.wait([self._handler_coroutine])

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
        reaction = self._owner.reaction("END")
        if reaction is None:
            return self._keep(session, envelope)
        if reaction.keep:
            self._keep(session, envelope)
        await self._reached(reaction)
        if not (reaction.keep or reaction.close or reaction.reply):
            self._keep(session, envelope)
        if reaction.close:
            await self._close(reaction)
        return reaction.reply or "250 kept"

    async def handle_exception(self, error: Exception) -> str:
        """A client that is gone in the midst of something is no news here."""
        return f"500 {type(error).__name__}"

    async def smtp_XOPEN(self, argument: str | None) -> None:  # noqa: N802  # found by its name
        """How many connections the server has to do with, this one among them."""
        await self.push(f"250 {self._owner.open_connections}")

    async def _handle_client(self) -> None:
        if not await self._reacts("CONNECT"):
            await super()._handle_client()
        elif self.transport is not None:
            self.transport.close()

    async def _take_step(self, name: str, method: Any, argument: str | None) -> None:
        self._owner.commands.append(name if name == "AUTH" or not argument else f"{name} {argument}")
        if not await self._reacts("EHLO" if name == "HELO" else name, argument or ""):  # type: ignore[arg-type]
            await method(argument)

    async def _reacts(self, step: Step, argument: str = "") -> bool:
        """Whether the step is over with this."""
        reaction = self._owner.reaction(step, argument)
        if reaction is None:
            return False
        await self._reached(reaction)
        if reaction.close:
            await self._close(reaction)
        if reaction.reply is not None:
            await self.push(reaction.reply)
        return reaction.reply is not None

    async def _reached(self, reaction: Reaction) -> None:
        reaction.reached.set()
        if reaction.until is not None:
            await reaction.until.wait()

    async def _close(self, reaction: Reaction) -> None:
        """Close the connection; it does not come back, since losing the connection cancels it."""
        if reaction.reply is not None:
            await self.push(reaction.reply)
        assert self.transport is not None
        self.transport.close()
        await asyncio.Event().wait()

    def _keep(self, session: Session, envelope: Envelope) -> str:
        login = session.auth_data.login.decode() if session.auth_data is not None else None
        assert self.transport is not None
        encrypted = self.transport.get_extra_info("sslcontext") is not None
        content, sender = envelope.original_content, envelope.mail_from
        assert content is not None
        self._owner.keep(Mail(str(sender), tuple(envelope.rcpt_tos), content, encrypted, login))
        return "250 kept"


def smtp_process(
    journal: Path, *, tls: Tls = None, user: str | None = None, password: str = ""
) -> AbstractContextManager[int]:
    """A server of its own, which accepts everything into the journal; gives its port."""
    options = json.dumps({"tls": tls, "user": user, "password": password})
    return server_process("smtp", str(journal), options)


def client_context() -> ssl.SSLContext:
    """For clients that trust the server of the tests, and no other."""
    return ssl.create_default_context(cafile=CA_FILE)


def _tls_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(TLS_FOLDER / "server.pem")
    return context


async def _main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("journal", type=Path)
    parser.add_argument("options", type=json.loads, help="of SmtpServer, as JSON")
    arguments = parser.parse_args()
    logging.getLogger("mail.log").setLevel(logging.ERROR)
    async with SmtpServer(journal=arguments.journal, **arguments.options) as server:
        await serve_until_input_ends(server.port)


if __name__ == "__main__":
    asyncio.run(_main())
