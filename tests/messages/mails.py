"""Messages to send, accounts to send them by, and what arrives."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from aioflow.messages.email.channel import EmailChannel
from aioflow.messages.outbox.message import DeliveryError, Message
from tests.servers.smtp import CA_FILE, SmtpServer

CREATED = datetime(2026, 1, 31, 10, 30, tzinfo=UTC)


def mail(key: str = "key-1", *, progress: Any = None, account: str = "default", **content: Any) -> Message:
    """A message of the outbox; everything in its content that is not given is ordinary."""
    whole = {
        "from": "Watcher <watch@example.org>",
        "to": ["ann@example.org"],
        "cc": [],
        "bcc": [],
        "reply_to": None,
        "subject": "New houses",
        "text": "Two of them.\n",
        "html": "<p>Two of them.</p>\n",
        "attachments": [],
    }
    return Message(
        key, "email", account, whole | content, run_id="run-7", created=CREATED, progress=progress or {}
    )


def account(url: str, **keys: Any) -> dict[str, Any]:
    """The tables of a configuration with one account."""
    return {"email": {"default": {"url": url, "from": "Watcher <watch@example.org>", **keys}}}


@asynccontextmanager
async def channel(
    server: SmtpServer, url: str = "smtp://127.0.0.1", **keys: Any
) -> AsyncIterator[EmailChannel]:
    """The channel of an account at this server, which the account trusts."""
    opened = EmailChannel(account(f"{url}:{server.port}", ca=str(CA_FILE), **keys))
    try:
        yield opened
    finally:
        await opened.close()


async def refusal(sender: EmailChannel, message: Message) -> DeliveryError:
    """The error with which a delivery fails."""
    try:
        answer = await sender.deliver(message)
    except DeliveryError as error:
        return error
    raise AssertionError(f"the message was taken: {answer}")
