"""Servers that hang, at any step: an interrupted run ends in a moment, any other when its time is over."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from aioflow import Engine, Result, loads
from aioflow.messages.outbox.rows import OutboxEntry
from tests.messages.posts import opened_post
from tests.servers.gateway import Answer, Gateway
from tests.servers.smtp import CA_FILE, Reaction, SmtpServer, Step

# Far beyond what any run here takes, so that a hang is a failure and not a wait.
PATIENCE_SECONDS = 60
# Far beyond that: no limit of a server or a lease ends a run here.
NEVER_SECONDS = 1e6

PLANS = {
    "email": 'PLAN tell { INPUT: rows BODY { email (rows, to="ann@example.org", subject="News") } }',
    "notify": 'PLAN tell { INPUT: rows BODY { notify (rows, "News") } }',
    "phone": 'PLAN tell { INPUT: rows BODY { phone (rows, to="+4915112345678", body="News") } }',
}
STEPS: list[Step] = ["CONNECT", "EHLO", "STARTTLS", "AUTH", "MAIL", "RCPT", "DATA", "END"]


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AIOFLOW_SECRET_MAIL", "sesame")
    monkeypatch.setattr("aioflow.messages.outbox.courier.GRACE_SECONDS", 0.1)
    return tmp_path / "test.db"


def email_account(port: int, url: str = "smtp+starttls://ann@127.0.0.1") -> dict[str, Any]:
    return {
        "url": f"{url}:{port}",
        "from": "Watcher <watch@example.org>",
        "password": "secret:MAIL",
        "ca": str(CA_FILE),
        "timeout_seconds": NEVER_SECONDS,
    }


async def told(
    path: Path, kind: str, account: dict[str, Any], deliver_seconds: float, rows: tuple[int, ...] = (1,)
) -> Result:
    configuration = {
        "database": {"default": {"url": f"sqlite:{path}"}},
        "outbox": {"deliver_seconds": deliver_seconds, "lease_seconds": 10 * NEVER_SECONDS},
        kind: {"default": account},
    }
    async with Engine(configuration=configuration) as engine:
        return await engine.run(loads(PLANS[kind]), rows=[{"n": row} for row in rows])


async def interrupted(
    path: Path, kind: str, account: dict[str, Any], reached: Callable[[], Awaitable[Any]]
) -> None:
    """Cancel a run when its delivery hangs, as Ctrl-C does; it ends."""
    task = asyncio.ensure_future(told(path, kind, account, NEVER_SECONDS))
    async with asyncio.timeout(PATIENCE_SECONDS):
        await reached()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def only_message(path: Path) -> OutboxEntry:
    async with opened_post(f"sqlite:{path}") as post:
        return await post.only()


async def delivered_now(path: Path, kind: str, account: dict[str, Any]) -> Result:
    async with opened_post(f"sqlite:{path}") as post:
        await post.table().retry((await post.only()).message.key, post.clock.now)
    return await told(path, kind, account, 30, ())


@asynccontextmanager
async def hanging_server(step: Step) -> AsyncIterator[tuple[SmtpServer, Reaction]]:
    async with SmtpServer(tls="starttls", user="ann", password="sesame") as server:
        yield server, server.on(step, Reaction(until=asyncio.Event(), keep=step == "END", times=1))


# --- mail -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", STEPS)
async def test_an_interrupted_run_does_not_wait_for_a_mail_server(path: Path, step: Step) -> None:
    async with hanging_server(step) as (server, reaction):
        await interrupted(path, "email", email_account(server.port), reaction.reached.wait)
        entry = await only_message(path)
        assert (entry.state, entry.leased_by, entry.due is not None) == ("waiting", None, True)
        assert str(entry.last_error).startswith("interrupted: ")
        assert ("it may have it" in str(entry.last_error)) == (step == "END")
        await delivered_now(path, "email", email_account(server.port))
        # Only of what the server had all of there may be a copy, with the same Message-ID.
        assert [mail.message_id for mail in server.kept] == [f"<{entry.message.key}@example.org>"] * (
            2 if step == "END" else 1
        )


async def test_an_interrupted_run_does_not_wait_for_a_farewell(path: Path) -> None:
    async with hanging_server("QUIT") as (server, reaction):
        await interrupted(path, "email", email_account(server.port), reaction.reached.wait)
        assert ((await only_message(path)).state, len(server.kept)) == ("sent", 1)


@pytest.mark.parametrize("step", [*STEPS, "QUIT"])
async def test_a_run_stays_no_longer_than_its_seconds_whatever_the_server_does(
    path: Path, step: Step
) -> None:
    async with hanging_server(step) as (server, _):
        async with asyncio.timeout(PATIENCE_SECONDS):
            seconds = 20 if step == "QUIT" else 0.5
            result = await told(path, "email", email_account(server.port), seconds)
        entry = await only_message(path)
        if step == "QUIT":
            assert (entry.state, result.warnings) == ("sent", ())
            return
        assert (entry.state, entry.leased_by, entry.message.attempts) == ("waiting", None, 1)
        assert str(entry.last_error).startswith("the 0.50 s of outbox deliver_seconds were over: ")
        (warning,) = map(str, result.warnings)
        assert warning.startswith("1 message waits to be delivered (email default: the 0.50 s of outbox")
        await delivered_now(path, "email", email_account(server.port))
        assert {mail.message_id for mail in server.kept} == {f"<{entry.message.key}@example.org>"}


@contextmanager
def full_port() -> Iterator[int]:
    """A port where connections are neither refused nor taken."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        address = server.getsockname()
        waiting = [socket.socket() for _ in range(4)]
        for each in waiting:
            each.setblocking(False)
            each.connect_ex(address)
        yield address[1]
        for each in waiting:
            each.close()


async def test_a_run_stays_no_longer_where_nobody_takes_the_connection(path: Path) -> None:
    with full_port() as port:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await told(path, "email", email_account(port), 0.5)
    assert (await only_message(path)).state == "waiting"


@pytest.mark.parametrize("url", ["smtp+starttls://ann@127.0.0.1", "smtps://ann@127.0.0.1"])
async def test_a_server_that_sends_byte_after_byte_has_no_more_time(path: Path, url: str) -> None:
    tricklers: set[asyncio.Task[Any]] = set()

    async def trickle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tricklers.add(task)
        try:
            writer.write(b"220-")
            while True:
                writer.write(b"x")
                await writer.drain()
                await asyncio.sleep(0.01)
        except OSError:
            writer.close()

    server = await asyncio.start_server(trickle, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        async with asyncio.timeout(PATIENCE_SECONDS):
            await told(path, "email", email_account(port, url), 0.5)
            await asyncio.wait(tricklers)  # whose connections are closed
    assert (await only_message(path)).state == "waiting"


async def test_a_server_that_hangs_holds_up_no_other_account(path: Path) -> None:
    async with hanging_server("EHLO") as (hanging, _), SmtpServer(tls="starttls") as good:
        accounts = {"bad": email_account(hanging.port), "good": email_account(good.port, "smtp://127.0.0.1")}
        del accounts["good"]["password"]
        text = """PLAN tell { INPUT: rows BODY {
            email (rows, to="ann@example.org", subject="One") {VIA: "bad"}
            email (rows, to="ann@example.org", subject="Two") {VIA: "good"}
        } }"""
        configuration = {
            "database": {"default": {"url": f"sqlite:{path}"}},
            "outbox": {"deliver_seconds": 5},
            "email": accounts,
        }
        async with asyncio.timeout(PATIENCE_SECONDS), Engine(configuration=configuration) as engine:
            await engine.run(loads(text), rows=[{"n": 1}])
        assert len(good.kept) == 1


# --- chats and text messages ----------------------------------------------------------------------


def account_of(kind: str, gateway: Gateway) -> dict[str, Any]:
    if kind == "notify":
        return {"url": gateway.url("/").replace("http:", "json:"), "total_seconds": NEVER_SECONDS}
    return {"url": gateway.url("/send"), "total_seconds": NEVER_SECONDS, "connect_seconds": NEVER_SECONDS}


@pytest.mark.parametrize("kind", ["notify", "phone"])
async def test_an_interrupted_run_does_not_wait_for_a_gateway(path: Path, kind: str) -> None:
    async with Gateway() as gateway:
        hanging = gateway.answer(Answer(until=asyncio.Event(), times=1))
        await interrupted(path, kind, account_of(kind, gateway), hanging.reached.wait)
        entry = await only_message(path)
        assert (entry.state, entry.leased_by) == ("waiting", None)
        assert str(entry.last_error).startswith("interrupted")
        await delivered_now(path, kind, account_of(kind, gateway))
        assert {request.key for request in gateway.requests} == {entry.message.key}


@pytest.mark.parametrize("kind", ["notify", "phone"])
async def test_a_run_stays_no_longer_than_its_seconds_for_a_gateway(path: Path, kind: str) -> None:
    async with Gateway() as gateway:
        gateway.answer(Answer(until=asyncio.Event(), times=1))
        async with asyncio.timeout(PATIENCE_SECONDS):
            await told(path, kind, account_of(kind, gateway), 0.5)
        assert (await only_message(path)).state == "waiting"
