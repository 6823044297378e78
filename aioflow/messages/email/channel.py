"""The mail channel: takes messages of the outbox to the servers and Maildirs of the accounts.

A Maildir is a folder of messages that mail programs read; it needs no server.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from anyio import to_thread

from aioflow.config.folders import shown_path
from aioflow.config.secrets import Secrets
from aioflow.errors import InputError
from aioflow.messages.email.addresses import read_mailbox
from aioflow.messages.email.mime import ContentError, Mail
from aioflow.messages.email.settings import EmailAccount, EmailAccounts
from aioflow.messages.email.smtp import Dialogue, Envelope, SmtpOutcome
from aioflow.messages.outbox.contributions import kept_rows
from aioflow.messages.outbox.message import (
    SAMPLE_TEXT,
    SAMPLE_TITLE,
    ComposedContents,
    DeliveryError,
    Message,
    if_cut_short,
)
from aioflow.relation import Relation
from aioflow.state.crash_points import moment

_WRITTEN = moment("maildir-written", "a message lies in tmp of a Maildir, which mail programs do not read")
_MOVED = moment("maildir-moved", "a message lies in new of a Maildir, and that is not noted yet")

_PLAIN = re.compile(r"[A-Za-z0-9_-]{1,64}")


async def put(mail: Mail, folder: Path) -> str:
    """Put a message into a Maildir, unless it has it already; returns where."""
    from anyio import to_thread

    try:
        return await to_thread.run_sync(_put, folder, mail)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise DeliveryError(f"cannot write into the Maildir {shown_path(folder)}: {reason}") from error


def _name(key: str) -> str:
    """The same for every copy of a message, and for no other message."""
    plain = key if _PLAIN.fullmatch(key) else hashlib.sha256(key.encode()).hexdigest()
    return f"{plain}.aioflow"


def _put(folder: Path, mail: Mail) -> str:
    name = _name(mail.key)
    data = mail.as_bytes(with_bcc=True).replace(b"\r\n", b"\n")
    for each in ("tmp", "new", "cur"):
        (folder / each).mkdir(mode=0o700, parents=True, exist_ok=True)
    place = folder / "new" / name
    # Who has read it has moved it, with marks behind its name.
    if place.exists() or any(found.name.partition(":")[0] == name for found in (folder / "cur").iterdir()):
        return f"{name} was there already"
    draft = folder / "tmp" / name
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    _WRITTEN()
    draft.rename(place)
    _sync(folder / "new")
    _MOVED()
    return f"kept as {shown_path(place)}"


def _sync(folder: Path) -> None:
    """Make sure that the names in a folder outlast a crash, where the system can."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class DeliveryProgress(msgspec.Struct, frozen=True):
    """The recipients that have a message, and those refused for good; kept with it between attempts."""

    sent: tuple[str, ...] = ()
    refused: Mapping[str, str] = msgspec.field(default_factory=dict)  # what the server said

    @classmethod
    def of(cls, message: Message) -> DeliveryProgress:
        kept = message.progress
        sent, refused = kept.get("sent", []), kept.get("refused", {})
        if not isinstance(sent, list) or not isinstance(refused, dict):
            raise ContentError("the list of its recipients so far is damaged")
        return cls(tuple(sent), dict(refused))

    def due(self, recipients: Sequence[str]) -> list[str]:
        """Return the recipients to try now. If only refused ones are left, they are to be tried again."""
        missing = [each for each in recipients if each not in self.sent]
        return [each for each in missing if each not in self.refused] or missing

    def after(self, outcome: SmtpOutcome) -> DeliveryProgress:
        answered = {**dict.fromkeys(outcome.taken), **outcome.others}
        kept = {address: said for address, said in self.refused.items() if address not in answered}
        refused = {address: str(answer) for address, answer in outcome.others.items() if answer.is_final}
        return DeliveryProgress((*self.sent, *outcome.taken), kept | refused)

    def as_json(self) -> dict[str, Any]:
        return {"sent": list(self.sent), "refused": dict(self.refused)}


class EmailChannel:
    """Delivers mail. One connection to each server is kept for all messages of a round."""

    def __init__(self, configuration: Mapping[str, Any]) -> None:
        self._accounts = EmailAccounts(configuration)
        self._dialogues: dict[str, Dialogue] = {}

    def problems(self, account: str | None) -> list[str]:
        """Return the settings that are missing before this account (None: the default) can be used."""
        return self._accounts.problems(account)

    def samples(self, account: str, to: str | None) -> list[dict[str, Any]]:
        """Return the content of a sample mail."""
        if to is None:
            raise InputError(f"name a recipient for the sample of email.{account}, with --to me@example.org")
        sender, recipient = str(self._accounts.find(account).sender), str(read_mailbox(to))
        return [{"from": sender, "to": [recipient], "subject": SAMPLE_TITLE, "text": SAMPLE_TEXT}]

    def compose(
        self, account: str, recipe: Mapping[str, Any], relations: Sequence[Relation], doubt: str
    ) -> ComposedContents:
        """Return the content of the mail about relations that were gathered."""
        from aioflow.messages.content.attachments import ValueEncoding
        from aioflow.messages.email.email_content import EmailContent, EmailDraft
        from aioflow.values.cells import cell, json_text

        draft, found = EmailDraft.of_recipe(recipe), self._accounts.find(account)
        content = EmailContent(draft, found, ValueEncoding(cell, json_text), recipe["plan"])
        content.doubt = doubt
        with kept_rows(relations) as kept:
            return ComposedContents(content.for_relations(kept), content.warnings)

    async def deliver(self, message: Message) -> str:
        """Hand a message over to all who do not have it yet; returns the server's answer."""
        account = self._account(message.account or None)
        try:
            mail = Mail.of(message)
            if isinstance(account.target, Path):
                return await put(mail, account.target)
            with if_cut_short(lambda: DeliveryError(f"nothing was sent to {account.target}")):
                return await self._send(account, mail, DeliveryProgress.of(message))
        except ContentError as error:
            raise DeliveryError(f"the message cannot be sent as it is: {error}", final=True) from error

    async def close(self) -> None:
        """Take leave of all servers, at once."""
        dialogues, self._dialogues = self._dialogues, {}
        async with asyncio.TaskGroup() as group:
            for dialogue in dialogues.values():
                group.create_task(dialogue.close())

    async def _send(self, account: EmailAccount, mail: Mail, progress: DeliveryProgress) -> str:
        due = progress.due(mail.recipients)
        if not due:
            return "everybody had it already"
        envelope = Envelope(mail.sender.address, due, mail.needs_utf8)
        data = await to_thread.run_sync(mail.as_bytes)  # it may be large
        outcome = await self._dialogue(account).send(envelope, data)
        progress = progress.after(outcome)
        if all(each in progress.sent for each in mail.recipients):
            return str(outcome.answer)
        raise _left_over(account, progress, outcome)

    def _account(self, name: str | None) -> EmailAccount:
        # What is missing in the configuration is not the message's fault, and may be mended.
        problems = self._accounts.problems(name)
        if problems:
            raise DeliveryError("; ".join(problems))
        return self._accounts.find(name)

    def _dialogue(self, account: EmailAccount) -> Dialogue:
        found = self._dialogues.get(account.name)
        if found is None:
            password = account.settings.password
            try:
                found = Dialogue(account, password and Secrets().fill_in(password))
            except InputError as error:
                raise DeliveryError(str(error)) from error
            self._dialogues[account.name] = found
        return found


def _left_over(account: EmailAccount, progress: DeliveryProgress, outcome: SmtpOutcome) -> DeliveryError:
    """The error about those who did not get a message; trying again helps as long as one was not refused."""
    later = {each: str(answer) for each, answer in outcome.others.items() if not answer.is_final}
    reasons = "; ".join(f"{each}: {said}" for each, said in (later | dict(progress.refused)).items())
    others = f" ({', '.join(progress.sent)} got it)" if progress.sent else ""
    return DeliveryError(
        f"{account.target} did not take the message for {reasons}{others}",
        final=not later,
        progress=progress.as_json(),
    )
