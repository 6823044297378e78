"""Runs plans that remember and mail, against databases, Maildirs and the demonstration's site."""

from __future__ import annotations

import email
import email.policy
from collections.abc import Mapping
from email.message import EmailMessage
from pathlib import Path
from typing import Any

from aioflow import Engine, Result
from aioflow.demo.running import Site
from aioflow.plan import Program


def settings_for(url: str, folder: Path, site: Site | None = None) -> dict[str, Any]:
    """A database, a Maildir in the folder, and a site that may be asked."""
    mail = {"url": f"maildir:{folder / 'mail'}", "from": "Watcher <watcher@example.org>"}
    web = site.configuration() if site is not None else {}
    return {**web, "database": {"default": {"url": url}}, "email": {"default": mail}}


async def run_with(settings: Mapping[str, Any], program: Program, **arguments: Any) -> Result:
    async with Engine(configuration=settings) as engine:
        return await engine.run(program, **arguments)


def mails_in(folder: Path) -> list[EmailMessage]:
    """The messages of the folder's Maildir, in the order in which they came."""
    files = sorted((folder / "mail" / "new").glob("*"), key=lambda file: file.stat().st_mtime_ns)
    return [email.message_from_bytes(file.read_bytes(), policy=email.policy.default) for file in files]


def text_of(mail: EmailMessage) -> str:
    body = mail.get_body(("plain",))
    assert body is not None
    return str(body.get_content())
