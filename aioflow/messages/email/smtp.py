"""The dialogue with a mail server, step by step; a crash between any two steps makes no difference.

The reply about one recipient is an SmtpReply. A failure of the whole message or of the connection is a
DeliveryError.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Awaitable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from aioflow.config.folders import shown_path
from aioflow.config.masking import mask
from aioflow.messages.email.settings import EmailAccount, SmtpAddress
from aioflow.messages.outbox.message import DeliveryError, if_cut_short
from aioflow.state.crash_points import moment

if TYPE_CHECKING:
    from aiosmtplib import SMTP, SMTPResponse
    from aiosmtplib.protocol import SMTPProtocol

_CONNECTED = moment("smtp-connected", "a mail server has greeted us")
_HELLO = moment("smtp-hello", "a mail server has answered EHLO")
_ENCRYPTED = moment("smtp-encrypted", "the connection to a mail server has become TLS")
_LOGGED_IN = moment("smtp-logged-in", "a mail server has accepted the login")
_MAIL = moment("smtp-mail", "a mail server has taken the sender of a message")
_RCPT = moment("smtp-recipients", "a mail server has answered for every recipient of a message")
_DATA = moment("smtp-data", "a mail server waits for the text of a message")
_DOT = moment("smtp-dot", "a message went out with its final dot, and was not answered")
_TAKEN = moment("smtp-taken", "a mail server has taken a message, and that is not noted yet")

# A server may do much before it answers a whole message, and giving up means that it comes twice (RFC 5321
# has ten minutes there, and five or less for all else).
_LONGER_FOR_THE_DOT = 10
_TURNS_TO_CLOSE = 100
_SHOWN_CHARACTERS = 300
_OK, _GO_ON = 250, 354
# Without or with the wrong credentials: for somebody to mend, not the fault of a message.
_NOT_ALLOWED = (530, 534, 535, 538)
_LONE_LINE_END = re.compile(rb"\r(?!\n)|(?<!\r)\n")
_LINE_WITH_DOT = re.compile(rb"^\.", re.MULTILINE)


class SmtpReply(msgspec.Struct, frozen=True):
    """The reply of a server."""

    code: int
    text: str = ""

    @property
    def is_final(self) -> bool:
        return 500 <= self.code < 600 and self.code not in _NOT_ALLOWED

    def __str__(self) -> str:
        return f"{self.code} {self.text}".strip()


class Envelope(msgspec.Struct, frozen=True):
    """The sender, the recipients, and whether their addresses need SMTPUTF8."""

    sender: str
    recipients: Sequence[str]
    needs_utf8: bool = False


class SmtpOutcome(msgspec.Struct):
    """The recipients that have the message now, and the server's replies about the others."""

    taken: list[str] = msgspec.field(default_factory=list)
    others: dict[str, SmtpReply] = msgspec.field(default_factory=dict)
    answer: SmtpReply | None = None


class Dialogue:
    """One connection to the server of an account, opened when it is first needed, for several messages."""

    def __init__(self, account: EmailAccount, password: str | None) -> None:
        assert isinstance(account.target, SmtpAddress)
        self._server = account.target
        self._settings = account.settings
        self._table = f"[email.{account.name}]"
        self._password = password
        self._client: SMTP | None = None
        self._at_rest = False  # the server waits for a command, and we for no answer
        self._one_at_a_time = asyncio.Lock()

    async def send(self, envelope: Envelope, data: bytes) -> SmtpOutcome:
        """Hand a message over."""
        async with self._one_at_a_time:
            return await self._send(envelope, data)

    async def _send(self, envelope: Envelope, data: bytes) -> SmtpOutcome:
        client = await self._ready()
        options = self._options(client, envelope, len(data))
        self._at_rest = False
        sender = await self._command("MAIL", f"FROM:<{envelope.sender}>", *options)
        if sender.code != _OK:
            self._at_rest = True
            raise DeliveryError(
                f"{self._server} refuses {envelope.sender} as the sender: {sender}", final=sender.is_final
            )
        _MAIL()
        outcome = await self._recipients(envelope)
        if outcome.taken:
            await self._message(outcome, data)
        # Whatever the server still has of a message that it did not take, it forgets with the next RSET.
        self._at_rest = True
        return outcome

    async def close(self) -> None:
        """Take leave of the server if it is at rest, and let go of the connection in any case."""
        try:
            if self._client is not None and self._client.is_connected and self._at_rest:
                with suppress(Exception):
                    await self._client.quit(timeout=None)
        finally:
            await self._let_go()

    # --- the connection -------------------------------------------------------------------------

    async def _ready(self) -> SMTP:
        """A connection on which the server waits for a message."""
        if self._client is not None and self._client.is_connected and self._at_rest:
            with suppress(DeliveryError):  # it has been closed meanwhile
                if (await self._command("RSET")).code == _OK:
                    return self._client
        await self._let_go()
        try:
            return await self._open()
        except BaseException as error:
            if isinstance(error, DeliveryError):
                error.unreachable = True  # nothing of any message was said yet
            await self._let_go()
            raise

    async def _open(self) -> SMTP:
        from aiosmtplib import SMTP

        server = self._server
        context = (
            await asyncio.to_thread(tls_context, self._settings.ca) if server.security != "none" else None
        )
        client = self._client = SMTP(
            hostname=server.host,
            port=server.port,
            use_tls=server.security == "tls",
            start_tls=False,
            tls_context=context,
            local_hostname="localhost",
            timeout=None,
        )
        await self._answered("when connecting", client.connect(timeout=None))
        _CONNECTED()
        await self._hello(client)
        if server.security == "starttls":
            await self._encrypt(client)
        if server.user and self._password:
            await self._log_in(client, server.user, self._password)
        self._at_rest = True
        return client

    async def _hello(self, client: SMTP) -> None:
        answer = await self._answered("to EHLO", client.ehlo(hostname=_own_name(client)))
        if answer.code != _OK:
            raise DeliveryError(f"{self._server} does not want to speak to us: {answer}")
        _HELLO()

    async def _encrypt(self, client: SMTP) -> None:
        if not client.supports_extension("starttls"):
            raise DeliveryError(
                f"{self._server} offers no STARTTLS, so nothing was sent; if mail may go there unencrypted, "
                f"write smtp+insecure:// in the url of {self._table}"
            )
        answer = await self._answered("to STARTTLS", client.starttls(timeout=None))
        if answer.code >= 400:
            raise DeliveryError(f"{self._server} refuses STARTTLS: {answer}")
        _ENCRYPTED()
        await self._hello(client)

    async def _log_in(self, client: SMTP, user: str, password: str) -> None:
        if not client.supports_extension("auth"):
            raise DeliveryError(
                f"{self._server} takes no password; leave it out of {self._table}, or use another port"
            )
        answer = await self._answered("to AUTH", client.login(user, password, timeout=None))
        if answer.code >= 400:
            raise DeliveryError(
                f"{self._server} does not let {user!r} in: {answer}; mend url or password of {self._table}"
            )
        _LOGGED_IN()

    async def _let_go(self) -> None:
        client, self._client, self._at_rest = self._client, None, False
        protocol, transport = (client.protocol, client.transport) if client is not None else (None, None)
        if client is None or protocol is None or not isinstance(transport, asyncio.WriteTransport):
            return
        transport.abort()
        client.close()
        # The socket is closed a few turns of the loop later, those of TLS later than others.
        for _ in range(_TURNS_TO_CLOSE):
            if protocol.transport is None:
                break
            await asyncio.sleep(0)

    # --- one message ----------------------------------------------------------------------------

    def _options(self, client: SMTP, envelope: Envelope, size: int) -> list[str]:
        options = []
        if client.supports_extension("size"):
            most = client.esmtp_extensions["size"].strip()
            if most.isdigit() and 0 < int(most) < size:
                raise DeliveryError(
                    f"the message has {size:,} bytes, and {self._server} takes {int(most):,} at most",
                    final=True,
                )
            options.append(f"SIZE={size}")
        if envelope.needs_utf8:
            if not client.supports_extension("smtputf8"):
                addresses = (envelope.sender, *envelope.recipients)
                foreign = next((each for each in addresses if not each.isascii()), "an address")
                raise DeliveryError(
                    f"{self._server} does not know SMTPUTF8, and so takes no {foreign}", final=True
                )
            options += ["SMTPUTF8", "BODY=8BITMIME"]
        return options

    async def _recipients(self, envelope: Envelope) -> SmtpOutcome:
        outcome = SmtpOutcome()
        for recipient in envelope.recipients:
            answer = await self._command("RCPT", f"TO:<{recipient}>")
            if answer.code in (250, 251, 252):
                outcome.taken.append(recipient)
            else:
                outcome.others[recipient] = answer
            if answer.code == 421:  # and has closed the connection
                raise DeliveryError(f"{self._server} wants to be left alone: {answer}")
        _RCPT()
        return outcome

    async def _message(self, outcome: SmtpOutcome, data: bytes) -> None:
        """Send the text. Recipients that it did not reach after all move from the taken to the others."""
        answer = await self._command("DATA")
        if answer.code == _GO_ON:
            _DATA()
            outcome.answer = answer = await self._content(data)
        if answer.code == _OK:
            _TAKEN()
            return
        outcome.others |= dict.fromkeys(outcome.taken, answer)
        outcome.taken.clear()

    async def _content(self, data: bytes) -> SmtpReply:
        from aiosmtplib import SMTPException, SMTPServerDisconnected

        assert self._client is not None
        protocol = self._client.protocol
        seconds = self._settings.timeout_seconds * _LONGER_FOR_THE_DOT
        try:
            if protocol is None:
                raise SMTPServerDisconnected("closed after DATA")
            protocol.write(stuffed(data))
            _DOT()
            with if_cut_short(lambda: self._unanswered_yet(protocol)):
                async with asyncio.timeout(seconds):
                    return _answer(await protocol.read_response())
        except TimeoutError as error:
            raise self._unanswered(f"gave no answer within {seconds:g} s") from error
        except (OSError, SMTPException) as error:
            raise self._unanswered("closed the connection before it answered") from error

    def _unanswered(self, what: str) -> DeliveryError:
        return DeliveryError(
            f"{self._server} got the whole message and {what}: it may have it", uncertain=True
        )

    def _unanswered_yet(self, protocol: SMTPProtocol) -> DeliveryError:
        transport = protocol.transport
        if isinstance(transport, asyncio.WriteTransport) and transport.get_write_buffer_size():
            transport.abort()  # else what is left would go out meanwhile
            return DeliveryError(f"{self._server} had not got the whole message")
        return self._unanswered("had not answered")

    # --- commands -------------------------------------------------------------------------------

    async def _command(self, verb: str, *arguments: str) -> SmtpReply:
        assert self._client is not None
        words = [word.encode() for word in (verb, *arguments)]
        return await self._answered(f"to {verb}", self._client.execute_command(*words, timeout=None))

    async def _answered(self, asked: str, answer: Awaitable[SMTPResponse]) -> SmtpReply:
        """Return any reply of the server. Raise a DeliveryError if there is none."""
        from aiosmtplib import SMTPException, SMTPResponseException

        seconds = self._settings.timeout_seconds
        try:
            with if_cut_short(lambda: DeliveryError(f"{self._server} had not answered {asked}")):
                async with asyncio.timeout(seconds):
                    return _answer(await answer)
        except SMTPResponseException as error:
            if asked == "when connecting":
                raise DeliveryError(f"{self._server} takes no mail now: {_answer(error)}") from error
            return _answer(error)
        except TimeoutError as error:
            raise DeliveryError(f"{self._server} gave no answer {asked} within {seconds:g} s") from error
        except (OSError, SMTPException) as error:
            raise DeliveryError(self._lost(asked, error)) from error

    def _lost(self, asked: str, error: BaseException) -> str:
        cause = error.__cause__ if isinstance(error.__cause__, OSError) else error
        if isinstance(cause, ssl.SSLCertVerificationError):
            reason = cause.verify_message.rstrip(".")
            return (
                f"the certificate of {self._server} is not to be trusted ({reason}), so nothing was sent; "
                f"is the host in {self._table} the right one? Certificates of your own are named by ca = …"
            )
        if isinstance(cause, ssl.SSLError):
            return (
                f"no encryption with {self._server}: {_clean(cause.reason or str(cause))}; is the port right?"
            )
        if asked == "when connecting" and isinstance(cause, OSError):
            reason = _clean(cause.strerror or str(cause))
            return f"the mail server {self._server} of {self._table} cannot be reached: {reason}"
        return f"{self._server} closed the connection instead of an answer {asked}"


def tls_context(ca: Path | None) -> ssl.SSLContext:
    """Trusts what the system trusts, and the certificates of a file."""
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if ca is not None:
        try:
            context.load_verify_locations(ca)
        except (OSError, ssl.SSLError) as error:
            raise DeliveryError(f"cannot read certificates: {shown_path(ca)}: {error}") from error
    return context


def _answer(response: SMTPResponse | object) -> SmtpReply:
    return SmtpReply(int(getattr(response, "code", 0)), _clean(str(getattr(response, "message", ""))))


def _clean(text: str) -> str:
    """Return a text of the other side in a form that may be shown and stored."""
    line = " ".join(text.encode(errors="replace").decode().split())
    line = "".join(character if character.isprintable() else "?" for character in mask(line))
    return line if len(line) <= _SHOWN_CHARACTERS else f"{line[: _SHOWN_CHARACTERS - 1]}…"


def _own_name(client: SMTP) -> str:
    """This machine as EHLO has it: the address from which we speak, since few know names of machines."""
    try:
        host = str(client.get_transport_info("sockname")[0])
    except (TypeError, IndexError, OSError):
        return "localhost"
    return f"[IPv6:{host.partition('%')[0]}]" if ":" in host else f"[{host}]"


def stuffed(data: bytes) -> bytes:
    """A message as DATA has it: a dot before every dot that begins a line, and one alone at the end."""
    data = _LONE_LINE_END.sub(b"\r\n", data)
    if not data.endswith(b"\r\n"):
        data += b"\r\n"
    return _LINE_WITH_DOT.sub(b"..", data) + b".\r\n"
