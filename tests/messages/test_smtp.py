"""The dialogue with a real mail server: what it takes, refuses, and leaves open."""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aioflow.config.masking import MASK, mask
from aioflow.messages.email.channel import EmailChannel
from aioflow.messages.email.smtp import stuffed
from aioflow.messages.outbox.message import DeliveryError, told
from aioflow.state.crash_points import MOMENTS, watch
from tests.clocks import PATIENCE_SECONDS, let_time_pass
from tests.messages.mails import account, channel, mail, refusal
from tests.servers.smtp import CA_FILE, Reaction, SmtpServer, Step

STEPS: tuple[Step, ...] = ("CONNECT", "EHLO", "MAIL", "RCPT", "DATA", "END")
# Of these 5xx says nothing of the message: the configuration or the server may be mended.
NOT_OF_THE_MESSAGE = ("CONNECT", "EHLO")


async def others_to_end() -> None:
    """Wait for what a server still does with a connection that was given up."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    if others:
        await asyncio.wait(others)


# --- taken --------------------------------------------------------------------------------------


async def test_a_message_arrives_with_its_envelope() -> None:
    message = mail(to=["ann@example.org", "bob@example.org"], cc=["eve@example.org"], bcc=["dan@example.org"])
    async with SmtpServer() as server, channel(server) as sender:
        assert await sender.deliver(message) == "250 kept"
    [kept] = server.kept
    assert kept.sender == "watch@example.org"
    assert kept.recipients == ("ann@example.org", "bob@example.org", "eve@example.org", "dan@example.org")
    assert b"dan@example.org" not in kept.data


async def test_one_connection_serves_several_messages() -> None:
    async with SmtpServer() as server, channel(server) as sender:
        for number in range(3):
            await sender.deliver(mail(f"key-{number}"))
    assert server.connections == 1
    assert [kept.message_id for kept in server.kept] == [f"<key-{n}@example.org>" for n in range(3)]
    assert server.commands[-1] == "QUIT"


async def test_an_address_that_occurs_twice_gets_one_copy() -> None:
    async with SmtpServer() as server, channel(server) as sender:
        await sender.deliver(mail(to=["ann@example.org"], cc=["Ann <ann@EXAMPLE.org>"]))
    assert server.kept[0].recipients == ("ann@example.org",)


async def test_a_connection_that_the_server_has_closed_is_opened_again() -> None:
    async with SmtpServer() as server, channel(server) as sender:
        await sender.deliver(mail("key-1"))
        await server.close_port()
        await server.open_port()
        await sender.deliver(mail("key-2"))
    assert len(server.kept) == 2
    assert server.connections == 2


async def test_a_server_that_has_had_enough_is_connected_to_anew() -> None:
    async with SmtpServer() as server, channel(server) as sender:
        await sender.deliver(mail("key-1"))
        server.on("RSET", Reaction("421 too long idle", close=True, times=1))  # type: ignore[arg-type]
        await sender.deliver(mail("key-2"))
    assert (len(server.kept), server.connections) == (2, 2)


async def test_a_refused_message_leaves_the_connection_to_the_next() -> None:
    async with SmtpServer() as server, channel(server) as sender:
        server.refuse("RCPT", "550 unknown", recipient="bob@example.org")
        await refusal(sender, mail("key-1", to=["bob@example.org"]))
        await sender.deliver(mail("key-2"))
    assert server.connections == 1
    assert [kept.recipients for kept in server.kept] == [("ann@example.org",)]


async def test_every_step_of_a_delivery_is_a_moment() -> None:
    passed: Counter[str] = Counter()
    async with (
        SmtpServer(tls="starttls", user="ann", password="pepper") as server,
        channel(server, "smtp+starttls://ann@localhost", password="secret:MAIL") as sender,
    ):
        with pytest.MonkeyPatch.context() as patch, watch(lambda name: passed.update([name])):
            patch.setenv("AIOFLOW_SECRET_MAIL", "pepper")
            await sender.deliver(mail())
    assert set(passed) == {name for name in MOMENTS if name.startswith("smtp-")}


# --- refused ------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", STEPS)
async def test_4xx_at_any_step_is_tried_again(step: Step) -> None:
    async with SmtpServer() as server, channel(server) as sender:
        server.refuse(step, "451 come back later", times=1)
        error = await refusal(sender, mail())
        assert (error.final, error.uncertain) == (False, False)
        assert "451 come back later" in str(error)
        assert server.kept == []
        await sender.deliver(mail(progress=error.progress))
    assert len(server.kept) == 1


@pytest.mark.parametrize("step", STEPS)
async def test_5xx_is_final_where_it_is_about_the_message(step: Step) -> None:
    async with SmtpServer() as server, channel(server) as sender:
        server.refuse(step, "554 never")
        error = await refusal(sender, mail())
    assert (error.final, error.uncertain) == (step not in NOT_OF_THE_MESSAGE, False)
    assert "554 never" in str(error)
    assert server.kept == []


@pytest.mark.parametrize("step", ["MAIL", "RCPT"])
async def test_a_server_that_wants_a_login_is_a_matter_of_the_configuration(step: Step) -> None:
    async with SmtpServer() as server, channel(server) as sender:
        server.refuse(step, "530 authentication required")
        assert not (await refusal(sender, mail())).final


async def test_those_whom_the_server_refuses_are_told_apart() -> None:
    people = ["ann@example.org", "bob@example.org", "eve@example.org"]
    async with SmtpServer() as server, channel(server) as sender:
        server.refuse("RCPT", "550 no such user", recipient="bob@example.org")
        server.refuse("RCPT", "450 mailbox busy", recipient="eve@example.org", times=1)
        error = await refusal(sender, mail(to=people))
        assert not error.final
        assert error.progress == {
            "sent": ["ann@example.org"],
            "refused": {"bob@example.org": "550 no such user"},
        }
        assert "eve@example.org: 450 mailbox busy" in str(error)

        # Only who is left is tried again, and then it is over, without bob.
        error = await refusal(sender, mail(to=people, progress=error.progress))
        assert error.final
        assert error.progress is not None
        assert error.progress["sent"] == ["ann@example.org", "eve@example.org"]
        assert "bob@example.org: 550 no such user (ann@example.org, eve@example.org got it)" in str(error)
        assert server.commands.count("RCPT TO:<bob@example.org>") == 1

        # Who asks for another attempt means those who were refused.
        server.as_usual()
        assert await sender.deliver(mail(to=people, progress=error.progress)) == "250 kept"
    assert [kept.recipients for kept in server.kept] == [
        ("ann@example.org",),
        ("eve@example.org",),
        ("bob@example.org",),
    ]
    assert len({kept.message_id for kept in server.kept}) == 1


async def test_a_message_that_everybody_has_is_not_sent() -> None:
    async with SmtpServer() as server, channel(server) as sender:
        answer = await sender.deliver(mail(progress={"sent": ["ann@example.org"], "refused": {}}))
    assert answer == "everybody had it already"
    assert server.connections == 0


async def test_a_server_that_takes_no_message_of_that_size_is_not_sent_one() -> None:
    async with SmtpServer() as server, channel(server) as sender:
        server.on("EHLO", Reaction("250-localhost\r\n250 SIZE 1000"))
        error = await refusal(sender, mail(text="x" * 1000))
    assert error.final
    assert "takes 1,000 at most" in str(error)
    assert server.commands == ["EHLO [127.0.0.1]", "QUIT"]


# --- lost ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", STEPS[:-1])
async def test_a_connection_that_is_lost_before_the_end_is_tried_again(step: Step) -> None:
    async with SmtpServer() as server, channel(server) as sender:
        server.on(step, Reaction(close=True, times=1))
        error = await refusal(sender, mail())
        assert (error.final, error.uncertain) == (False, False)
        await sender.deliver(mail())
    assert len(server.kept) == 1


@pytest.mark.parametrize("keep", [True, False])
async def test_a_connection_that_is_lost_after_the_final_dot_leaves_it_open(keep: bool) -> None:
    async with SmtpServer() as server, channel(server) as sender:
        server.on("END", Reaction(close=True, keep=keep, times=1))
        error = await refusal(sender, mail())
        assert (error.final, error.uncertain) == (False, True)
        assert "it may have it" in str(error)
        await sender.deliver(mail())
    assert len(server.kept) == (2 if keep else 1)
    assert {kept.message_id for kept in server.kept} == {"<key-1@example.org>"}
    assert len({kept.data for kept in server.kept}) == 1


@pytest.mark.parametrize("step", STEPS)
async def test_a_server_that_does_not_answer_is_given_up(step: Step) -> None:
    async with SmtpServer() as server, channel(server) as sender:
        reaction = server.on(step, Reaction(until=asyncio.Event()))
        delivery = asyncio.create_task(refusal(sender, mail()))
        await reaction.reached.wait()
        let_time_pass(601)
        error = await delivery
    assert "no answer" in str(error)
    assert str(error).endswith("within 600 s: it may have it" if step == "END" else "within 60 s")
    assert (error.final, error.uncertain) == (False, step == "END")


@pytest.mark.parametrize("step", STEPS)
async def test_a_delivery_that_is_cancelled_leaves_nothing_open(step: Step) -> None:
    async with SmtpServer() as server, channel(server) as sender:
        reaction = server.on(step, Reaction(until=asyncio.Event(), times=1))
        delivery = asyncio.create_task(sender.deliver(mail()))
        await reaction.reached.wait()
        delivery.cancel()
        with pytest.raises(asyncio.CancelledError):
            await delivery
        server.as_usual()
        await sender.deliver(mail())
    assert len(server.kept) == 1


async def test_nobody_who_listens_is_told() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        sender = EmailChannel(account(f"smtp://127.0.0.1:{bound.getsockname()[1]}"))
        error = await refusal(sender, mail())
        await sender.close()
    assert not error.final
    assert "of [email.default] cannot be reached" in str(error)


async def test_a_server_that_does_not_say_goodbye_is_left_all_the_same() -> None:
    async with SmtpServer() as server:
        async with channel(server) as sender:
            await sender.deliver(mail())
            server.on("QUIT", Reaction(close=True))
        assert len(server.kept) == 1


# --- encryption and passwords -------------------------------------------------------------------


@pytest.fixture
def password(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("AIOFLOW_SECRET_MAIL", "pep per€")
    return "pep per€"


@pytest.mark.parametrize(
    ("tls", "url"), [("starttls", "smtp+starttls://localhost"), ("implicit", "smtps://127.0.0.1")]
)
async def test_mail_travels_encrypted(tls: str, url: str) -> None:
    async with SmtpServer(tls=tls) as server, channel(server, url) as sender:  # type: ignore[arg-type]
        await sender.deliver(mail("key-1"))
        await sender.deliver(mail("key-2"))
    assert [kept.encrypted for kept in server.kept] == [True, True]
    assert server.connections == 1


async def test_a_user_logs_in_with_a_secret(password: str) -> None:
    async with (
        SmtpServer(tls="starttls", user="ann@example.org", password=password) as server,
        channel(server, "smtp+starttls://ann@example.org@localhost", password="secret:MAIL") as sender,
    ):
        await sender.deliver(mail())
    assert [(kept.user, kept.encrypted) for kept in server.kept] == [("ann@example.org", True)]


async def test_a_wrong_password_is_told_without_showing_it(password: str) -> None:
    async with (
        SmtpServer(tls="starttls", user="ann", password="another") as server,
        channel(server, "smtp+starttls://ann@localhost", password="secret:MAIL") as sender,
    ):
        error = await refusal(sender, mail())
    assert not error.final
    assert "does not let 'ann' in: 535" in str(error)
    assert "[email.default]" in str(error)
    assert password not in str(error)
    assert password not in repr(error)
    assert server.kept == []


async def test_a_server_that_repeats_the_password_does_not_make_it_known(password: str) -> None:
    async with (
        SmtpServer(user="ann", password=password) as server,
        channel(server, "smtp://ann@127.0.0.1", password="secret:MAIL") as sender,
    ):
        server.refuse("AUTH", f"535 {password} is wrong")
        error = await refusal(sender, mail())
    assert f"535 {MASK} is wrong" in str(error)
    assert mask(password) == MASK


async def test_a_server_without_starttls_gets_nothing() -> None:
    async with SmtpServer() as server, channel(server, "smtp+starttls://localhost") as sender:
        error = await refusal(sender, mail())
    assert not error.final
    assert "offers no STARTTLS, so nothing was sent" in str(error)
    assert "smtp+insecure://" in str(error)
    assert "MAIL" not in " ".join(server.commands)


@pytest.mark.parametrize(
    ("tls", "url"), [("starttls", "smtp+starttls://localhost"), ("implicit", "smtps://localhost")]
)
async def test_a_certificate_that_nobody_vouches_for_is_told(tls: str, url: str) -> None:
    async with SmtpServer(tls=tls) as server:  # type: ignore[arg-type]
        sender = EmailChannel(account(f"{url}:{server.port}"))
        error = await refusal(sender, mail())
        await sender.close()
        await others_to_end()
    assert not error.final
    assert "the certificate of localhost" in str(error)
    assert "is not to be trusted" in str(error)
    assert server.kept == []


async def test_a_port_that_speaks_no_tls_is_told() -> None:
    async with SmtpServer() as server, channel(server, "smtps://localhost") as sender:
        error = await refusal(sender, mail())
    assert "no encryption with localhost" in str(error)
    assert CA_FILE.exists()


async def test_a_secret_that_is_missing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AIOFLOW_SECRET_NOBODY", raising=False)
    async with (
        SmtpServer() as server,
        channel(server, "smtp://ann@127.0.0.1", password="secret:NOBODY") as sender,
    ):
        error = await refusal(sender, mail())
    assert not error.final
    assert "there is no secret 'NOBODY'" in str(error)


# --- addresses in other scripts -----------------------------------------------------------------


async def test_other_letters_in_domains_go_as_the_dns_has_them() -> None:
    async with SmtpServer(utf8=False) as server, channel(server) as sender:
        await sender.deliver(mail(to=["ann@straße.example"]))
    assert server.kept[0].recipients == ("ann@xn--strae-oqa.example",)


async def test_other_letters_before_the_at_need_smtputf8() -> None:
    message = mail(to=["Jörg <jörg@example.org>"])
    async with SmtpServer() as server, channel(server) as sender:
        await sender.deliver(message)
    assert server.kept[0].recipients == ("jörg@example.org",)
    assert "SMTPUTF8" in server.commands[1]
    async with SmtpServer(utf8=False) as server, channel(server) as sender:
        error = await refusal(sender, message)
    assert error.final
    assert "does not know SMTPUTF8, and so takes no jörg@example.org" in str(error)


# --- dots and line ends -------------------------------------------------------------------------


@given(st.binary(max_size=60).map(lambda data: data.replace(b"x", b"\n.").replace(b"y", b"\r\n.\r\n")))
@settings(max_examples=200)
def test_no_content_ends_before_its_end(data: bytes) -> None:
    sent = stuffed(data)
    assert sent.endswith(b"\r\n.\r\n") or sent == b".\r\n"
    lines = sent.removesuffix(b".\r\n").split(b"\r\n")
    assert b"." not in lines
    assert not any(b"\r" in line or b"\n" in line for line in lines)


async def test_lines_of_dots_arrive_as_they_were() -> None:
    text = ".\n..\n.hidden\n\n.\nMAIL FROM:<x@example.org>\n"
    async with SmtpServer() as server, channel(server) as sender:
        await sender.deliver(mail(text=text, html=""))
    assert server.kept[0].message.get_content().replace("\r\n", "\n") == text


# --- cut short ------------------------------------------------------------------------------------


async def test_a_message_that_was_cut_in_the_middle_never_gets_to_its_end() -> None:
    """What is said of it as certain stays true: nothing goes on draining what is left."""
    goes_on, got = asyncio.Event(), bytearray()
    begun, ended = asyncio.Event(), asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 slow\r\n")
        while not (line := await reader.readline()).startswith(b"DATA"):
            writer.write(b"250 slow\r\n" if line else b"")
        writer.write(b"354 go on\r\n")
        got.extend(await reader.read(1))
        begun.set()
        await goes_on.wait()
        with suppress(OSError):
            while not got.endswith(b"\r\n.\r\n") and (part := await reader.read(2**20)):
                got.extend(part)
        writer.close()
        ended.set()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server, asyncio.timeout(PATIENCE_SECONDS):
        port = server.sockets[0].getsockname()[1]
        sender = EmailChannel(account(f"smtp+insecure://127.0.0.1:{port}"))
        delivery = asyncio.ensure_future(sender.deliver(mail(text="0123456789\n" * 1_000_000)))
        await begun.wait()
        delivery.cancel()
        with pytest.raises(asyncio.CancelledError) as cut:
            await delivery
        goes_on.set()
        await ended.wait()
        await sender.close()
    error = told(cut.value)
    assert isinstance(error, DeliveryError)
    assert "had not got the whole message" in str(error)
    assert not error.uncertain
    assert b"\r\n.\r\n" not in got
