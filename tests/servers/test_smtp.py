"""The SMTP server of other tests does what it is told, as a real client sees it."""

import asyncio
import ssl
from pathlib import Path
from typing import Any

import aiosmtplib
import pytest

from tests.clocks import PATIENCE_SECONDS
from tests.servers.smtp import Reaction, SmtpServer, Step, client_context, read_journal, smtp_process

MESSAGE = b"Message-ID: <1@test>\r\nSubject: one\r\n\r\n.dotted\r\n"


async def send(server: SmtpServer | int, *recipients: str, **options: Any) -> Any:
    port = server if isinstance(server, int) else server.port
    where: dict[str, Any] = {
        "hostname": "127.0.0.1",
        "port": port,
        "timeout": PATIENCE_SECONDS,
        "start_tls": False,
    }
    to = list(recipients or ("b@test.example",))
    return await aiosmtplib.send(MESSAGE, sender="a@test.example", recipients=to, **(where | options))


async def test_messages_are_kept_with_their_envelopes() -> None:
    async with SmtpServer() as server:
        await send(server, "b@test.example", "c@test.example")
    (mail,) = server.kept
    assert (mail.sender, mail.recipients) == ("a@test.example", ("b@test.example", "c@test.example"))
    assert mail.data == MESSAGE
    assert mail.message_id == "<1@test>"
    assert server.commands[-2:] == ["DATA", "QUIT"]


@pytest.mark.parametrize("step", ["CONNECT", "EHLO", "MAIL", "RCPT", "DATA", "END"])
@pytest.mark.parametrize("code", [451, 554])
async def test_each_step_can_be_refused(step: Step, code: int) -> None:
    async with SmtpServer() as server:
        server.refuse(step, f"{code} not now", times=2)
        with pytest.raises(aiosmtplib.SMTPException) as caught:
            await send(server)
        assert str(code) in str(caught.value)
        assert not server.kept
        server.as_usual()
        await send(server)
        assert len(server.kept) == 1


async def test_a_single_recipient_can_be_refused() -> None:
    async with SmtpServer() as server:
        server.refuse("RCPT", "550 unknown", recipient="c@test.example")
        refused, _ = await send(server, "b@test.example", "c@test.example")
        assert list(refused) == ["c@test.example"]
        assert server.kept[0].recipients == ("b@test.example",)


@pytest.mark.parametrize("keep", [True, False])
async def test_the_connection_can_close_after_the_final_dot(keep: bool) -> None:
    async with SmtpServer() as server:
        server.on("END", Reaction(close=True, keep=keep, times=1))
        with pytest.raises(aiosmtplib.SMTPServerDisconnected):
            await send(server)
        assert len(server.kept) == keep
        await send(server)
        assert len(server.kept) == keep + 1


async def test_a_step_can_wait_for_the_test() -> None:
    async with SmtpServer() as server:
        held = server.on("END", Reaction(until=asyncio.Event()))
        sending = asyncio.create_task(send(server))
        await held.reached.wait()
        assert not server.kept
        assert held.until is not None
        held.until.set()
        await sending
        assert len(server.kept) == 1


async def test_a_server_that_is_left_ends_what_waits() -> None:
    async with SmtpServer() as server:
        held = server.on("MAIL", Reaction(until=asyncio.Event()))
        sending = asyncio.create_task(send(server))
        await held.reached.wait()
    with pytest.raises(aiosmtplib.SMTPServerDisconnected):
        await sending


async def test_a_closed_port_refuses_connections_until_it_is_opened() -> None:
    async with SmtpServer() as server:
        await server.close_port()
        with pytest.raises(aiosmtplib.SMTPConnectError):
            await send(server)
        await server.open_port()
        await send(server)
        assert len(server.kept) == 1


@pytest.mark.parametrize("tls", ["starttls", "implicit"])
async def test_tls_and_a_password(tls: Any) -> None:
    async with SmtpServer(tls=tls, user="me", password="secret") as server:
        secure = {
            "start_tls": tls == "starttls",
            "use_tls": tls == "implicit",
            "tls_context": client_context(),
        }
        with pytest.raises(aiosmtplib.SMTPException, match="530"):
            await send(server, **secure)
        with pytest.raises(aiosmtplib.SMTPAuthenticationError):
            await send(server, username="me", password="wrong", **secure)
        await send(server, username="me", password="secret", **secure)
    assert [(mail.encrypted, mail.user) for mail in server.kept] == [(True, "me")]
    assert "secret" not in str(server.commands)


async def test_a_certificate_that_nobody_trusts_is_refused() -> None:
    async with SmtpServer(tls="starttls") as server:
        with pytest.raises(ssl.SSLCertVerificationError):
            await send(server, start_tls=True)
        assert not server.kept


def test_a_server_process_writes_down_each_message(tmp_path: Path) -> None:
    with smtp_process(tmp_path / "journal") as port:
        asyncio.run(send(port))
        asyncio.run(send(port))
    first, second = read_journal(tmp_path / "journal")
    assert first == second
    assert first.data == MESSAGE
