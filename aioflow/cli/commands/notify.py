"""`aioflow notify test NAME`: sends a sample through an account, at once and without an outbox."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any
from uuid import uuid4

import typer

from aioflow.cli.config import effective_settings
from aioflow.cli.exit import BAD_INPUT, FAILED, OK, guarded, print_message, run_interruptibly
from aioflow.config.configuration import Configuration
from aioflow.config.masking import mask
from aioflow.errors import InputError, suggestion
from aioflow.messages.channels import Channels
from aioflow.messages.outbox.message import Channel, DeliveryError, Message, Sampling
from aioflow.values.display import visible

notify = typer.Typer(
    help="Try the accounts through which plans tell people.", no_args_is_help=True, rich_markup_mode=None
)


@notify.callback()
def _group() -> None:
    pass


@notify.command("test")
@guarded
def notify_test(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME", help="An account: team, or notify.team, phone.team, email.team; none lists them."
        ),
    ] = None,
    to: Annotated[
        str | None, typer.Option("--to", metavar="WHOM", help="A phone number, or an address of mail.")
    ] = None,
) -> None:
    """Send a sample through an account, and tell what its receiver answered."""
    configuration = effective_settings({})
    accounts = list(_accounts(configuration))
    if name is None:
        sys.exit(_list(accounts, configuration))
    sys.exit(_try_out(_find(name, accounts), to, configuration))


@dataclass(frozen=True)
class _Account:
    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}.{self.name}"


def _accounts(configuration: Configuration) -> Iterator[_Account]:
    for kind in Channels(configuration).kinds():
        tables: Mapping[str, Any] = configuration.get(kind, {})
        for name in tables:
            yield _Account(kind, name)


def _find(text: str, accounts: list[_Account]) -> _Account:
    found = [account for account in accounts if text in (account.name, str(account))]
    if len(found) == 1:
        return found[0]
    if found:
        raise InputError(f"{text!r} is the name of several: say {' or '.join(map(str, found))}")
    names = list(map(str, accounts))
    near = suggestion(text, [*names, *(account.name for account in accounts)])
    raise InputError(f"no account {text!r} is configured{near} (there are: {', '.join(names) or 'none'})")


def _list(accounts: list[_Account], configuration: Configuration) -> int:
    if not accounts:
        print("no account is configured: write [notify.NAME], [phone.NAME] or [email.NAME] into aioflow.toml")
        return OK
    channels = Channels(configuration)
    width = max(len(str(account)) for account in accounts)
    for account in accounts:
        problems = channels.problems(account.kind, account.name)
        print(f"{account!s:<{width}}  {problems[0] if problems else 'ready'}")
    return OK


def _try_out(account: _Account, to: str | None, configuration: Configuration) -> int:
    channels = Channels(configuration)
    problems = channels.problems(account.kind, account.name)
    for problem in problems:
        print_message("error", problem)
    if problems:
        return BAD_INPUT
    channel = channels.get(account.kind)
    if not isinstance(channel, Sampling):
        raise InputError(f"the channel {account.kind!r} has no sample message to send")
    contents = channel.samples(account.name, to)
    return run_interruptibly(_send_all(channels, account, contents))


async def _send_all(channels: Channels, account: _Account, contents: list[dict[str, Any]]) -> int:
    failures = 0
    try:
        channel = channels.get(account.kind)
        for content in contents:
            message = Message(_key(), account.kind, account.name, content, created=_now())
            failures += not await _sent(channel, message)
    finally:
        await channels.close()
    return FAILED if failures else OK


async def _sent(channel: Channel, message: Message) -> bool:
    to = message.content["to"]
    try:
        answer = await channel.deliver(message)
    except DeliveryError as error:
        print_message("failed", visible(str(error)))
        print_message("note", _advice(error))
        return False
    print(mask(visible(f"sent to {', '.join(to) if isinstance(to, list) else to}: {answer or 'no answer'}")))
    return True


def _advice(error: DeliveryError) -> str:
    if error.final:
        return "trying again cannot help: the receiver refuses it; look at its url, credentials and recipient"
    if error.uncertain:
        return "it may have arrived nevertheless; a plan's message would be sent again, with the same key"
    seconds = error.retry_after_seconds
    later = f" after {seconds:g} s, as it was asked to" if seconds else ""
    return f"nothing has arrived; a plan would try again{later}"


def _key() -> str:
    return f"test-{uuid4().hex}"


def _now() -> Any:
    return datetime.now(UTC)
