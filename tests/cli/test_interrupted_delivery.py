"""Ctrl-C and SIGTERM while messages are delivered, in a process of its own: what is said, and what waits."""

import asyncio
import json
import signal
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.cli.program import AIOFLOW, environment, own_folders
from tests.clocks import PATIENCE_SECONDS
from tests.servers.gateway import Answer, Gateway
from tests.servers.smtp import Reaction, SmtpServer

PLAN = """\
PLAN tell
{
  INPUT: rows (n number)
  OUTPUT: rows
  BODY
  {
    dbappend (rows, "numbers")
    email (rows, to="ann@example.org", subject="News")
  }
}
"""
SENTENCE = (
    "warning: interrupted during delivery: all that the run wrote is stored, and 1 message waits in the "
    "outbox; `aioflow outbox deliver` sends it\ninterrupted\n"
)


def set_up(folder: Path, account: str) -> None:
    # No limit but a signal ends a delivery.
    (folder / "aioflow.toml").write_text(f"{account}\n[outbox]\ndeliver_seconds = 1e6\nlease_seconds = 1e7\n")
    (folder / "tell.plan").write_text(PLAN)


def set_up_mail(folder: Path, server: SmtpServer) -> None:
    url = f'url = "smtp://127.0.0.1:{server.port}"'
    set_up(folder, f'[email.default]\n{url}\nfrom = "Watcher <watch@example.org>"\ntimeout_seconds = 1e6')


@asynccontextmanager
async def started(*arguments: str, cwd: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """A command that is gone when the block is left."""
    process = await asyncio.create_subprocess_exec(
        *AIOFLOW,
        *arguments,
        cwd=cwd,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environment(**own_folders(cwd)),
    )
    try:
        async with asyncio.timeout(2 * PATIENCE_SECONDS):
            yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def ended(process: asyncio.subprocess.Process) -> tuple[int | None, str, str]:
    output, messages = await process.communicate()
    return process.returncode, output.decode(), messages.decode()


async def aioflow(*arguments: str, cwd: Path) -> tuple[int | None, str, str]:
    async with started(*arguments, cwd=cwd) as process:
        return await ended(process)


def outbox(folder: Path) -> list[tuple[str, str]]:
    database = sqlite3.connect(folder / "aioflow.db")
    try:
        return database.execute("SELECT key, state FROM aioflow_outbox").fetchall()
    finally:
        database.close()


RUN = ("run", "tell.plan", "-i", '{"n": 1}')


@pytest.mark.parametrize(
    ("number", "step", "code"), [(signal.SIGINT, "MAIL", 130), (signal.SIGTERM, "END", 143)]
)
async def test_a_run_that_is_interrupted_while_a_server_hangs_says_what_is_stored_and_what_waits(
    folder: Path, number: signal.Signals, step: str, code: int
) -> None:
    async with SmtpServer() as server:
        set_up_mail(folder, server)
        hanging = server.on(step, Reaction(until=asyncio.Event(), times=1))  # type: ignore[arg-type]
        async with started(*RUN, "-O", "out.jsonl", "--report", "r.json", cwd=folder) as process:
            await hanging.reached.wait()
            process.send_signal(number)
            assert await ended(process) == (code, "", SENTENCE)
        # The run is complete: what it wrote to the database, and its output.
        assert json.loads((folder / "out.jsonl").read_text()) == {"n": 1}
        report = json.loads((folder / "r.json").read_text())
        assert (report["outcome"], report["exit-code"]) == ("ended", code)
        assert report["outputs"]["rows"]["whole"] is True
        ((key, state),) = outbox(folder)
        assert state == "waiting"
        exit_code, output, messages = await aioflow("outbox", "deliver", cwd=folder)
        assert (exit_code, messages) == (0, "")
        assert output.startswith(f"{key[:8]} sent")
        assert [mail.message_id for mail in server.kept] == [f"<{key}@example.org>"]


async def test_a_run_that_is_interrupted_after_its_last_message_says_so(folder: Path) -> None:
    async with SmtpServer() as server:
        set_up_mail(folder, server)
        hanging = server.on("QUIT", Reaction(until=asyncio.Event()))
        async with started(*RUN, cwd=folder) as process:
            await hanging.reached.wait()
            process.send_signal(signal.SIGINT)
            exit_code, _, messages = await ended(process)
        assert (exit_code, messages) == (
            130,
            "warning: interrupted during delivery: all that the run wrote is stored, and no message waits\n"
            "interrupted\n",
        )
        assert [state for _, state in outbox(folder)] == ["sent"]


async def test_a_second_interrupt_ends_the_run_at_once_and_the_message_is_safe(folder: Path) -> None:
    async with SmtpServer() as server:
        set_up_mail(folder, server)
        hanging = server.on("MAIL", Reaction(until=asyncio.Event(), times=1))
        async with started(*RUN, cwd=folder) as process:
            await hanging.reached.wait()
            process.send_signal(signal.SIGINT)
            process.send_signal(signal.SIGTERM)
            exit_code, output, messages = await ended(process)
            assert exit_code in (130, 143)
            assert (output, messages) == ('{"n": 1}\n', "interrupted\n")
        ((_, state),) = outbox(folder)
        assert state == "sending"  # until its lease ends
        # Which is not for others to break.
        exit_code, output, messages = await aioflow("outbox", "deliver", cwd=folder)
        assert (exit_code, output) == (1, "0 messages sent, 0 failed, 0 dead\n")
        assert "1 message for email default is being delivered by another process" in messages


@pytest.mark.parametrize("watches", [False, True])
async def test_an_interrupted_delivery_says_what_waits(folder: Path, watches: bool) -> None:
    async with SmtpServer() as server:
        set_up_mail(folder, server)
        server.refuse("MAIL", "450 later", times=1)
        (folder / "aioflow.toml").write_text(
            (folder / "aioflow.toml").read_text().replace("deliver_seconds = 1e6", "deliver_seconds = 0")
        )
        await aioflow(*RUN, cwd=folder)
        server.as_usual()
        hanging = server.on("RCPT", Reaction(until=asyncio.Event()))
        arguments = ("outbox", "deliver", *(["--watch"] if watches else []))
        async with started(*arguments, cwd=folder) as process:
            await hanging.reached.wait()
            process.send_signal(signal.SIGINT)
            exit_code, output, messages = await ended(process)
        assert exit_code == 130
        assert output.endswith("\n0 messages sent, 1 failed, 0 dead\n")
        assert "had not answered to RCPT" in messages
        assert messages.endswith("`aioflow outbox deliver` sends it\ninterrupted\n")


@pytest.mark.parametrize("kind", ["notify", "phone"])
async def test_a_run_does_not_wait_for_a_gateway_that_hangs(folder: Path, kind: str) -> None:
    async with Gateway() as gateway:
        url = gateway.url("/send") if kind == "phone" else gateway.url("/").replace("http:", "json:")
        set_up(folder, f'[{kind}.default]\nurl = "{url}"\ntotal_seconds = 1e6')
        told = (
            'phone (rows, to="+4915112345678", body="News")' if kind == "phone" else 'notify (rows, "News")'
        )
        (folder / "tell.plan").write_text(
            PLAN.replace('email (rows, to="ann@example.org", subject="News")', told)
        )
        hanging = gateway.answer(Answer(until=asyncio.Event(), times=1))
        async with started(*RUN, cwd=folder) as process:
            await hanging.reached.wait()
            process.send_signal(signal.SIGINT)
            assert await ended(process) == (130, '{"n": 1}\n', SENTENCE)
        assert [state for _, state in outbox(folder)] == ["waiting"]
