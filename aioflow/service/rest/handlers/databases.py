"""Databases of tasks: their outboxes, and the changes that diff holds back."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

import msgspec
from msgspec import Meta

from aioflow.errors import suggestion
from aioflow.service.database_actions import (
    ChangedMessage,
    DatabaseActions,
    DatabaseView,
    DeliveryReport,
    MessageChange,
    MessageView,
    SuspectView,
    database_id,
)
from aioflow.service.errors import EditConflictError, ForbiddenError, NotFoundError
from aioflow.service.rest.content import Cursor, Limit
from aioflow.service.rest.declarations import RestCall, RouteTable
from aioflow.state.databases import Databases
from aioflow.state.driver import Address

TABLE = RouteTable("databases")

DatabaseName: TypeAlias = Annotated[
    str, Meta(max_length=200, description="the name of a database, or its id")
]


class DatabaseList(msgspec.Struct, frozen=True):
    databases: list[DatabaseView]


class OutboxQuery(msgspec.Struct, frozen=True):
    """`everything` includes messages that were sent or dropped."""

    database: DatabaseName
    everything: bool = False
    cursor: Cursor | None = None
    limit: Limit = 50


class MessagePage(msgspec.Struct, frozen=True):
    messages: list[MessageView]
    next: str | None = None


class MessageChanges(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Messages by the beginnings of their keys."""

    database: DatabaseName
    keys: Annotated[
        list[Annotated[str, Meta(min_length=1, max_length=200)]], Meta(min_length=1, max_length=500)
    ]


class ChangedMessages(msgspec.Struct, frozen=True):
    messages: list[ChangedMessage]


class DatabaseChosen(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    database: DatabaseName


class DeliveryRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """With `early` digests are composed, and quiet hours do not count."""

    database: DatabaseName
    early: bool = False


class RetriedMessages(msgspec.Struct, frozen=True):
    number: int


class SuspectsQuery(msgspec.Struct, frozen=True):
    database: DatabaseName


class SuspectList(msgspec.Struct, frozen=True):
    suspects: list[SuspectView]


class SuspectChoice(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    database: DatabaseName
    table: Annotated[str, Meta(min_length=1, max_length=200)]


class SuspectConfirmation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """With `quiet` the changes are applied without a message."""

    database: DatabaseName
    table: Annotated[str, Meta(min_length=1, max_length=200)]
    quiet: bool = False


@TABLE.add("GET", "/api/databases")
async def list_databases(call: RestCall[None, None]) -> DatabaseList:
    """List the databases that tasks write to, those of the configuration, and that of the service."""
    own = call.context.service.database.address
    return DatabaseList(
        [
            DatabaseView(database_id(each), each.name, each.shown, each.url == own.url)
            for each in _addresses(call)
        ]
    )


@TABLE.add("GET", "/api/outbox", refusals=(404, 409))
async def list_messages(call: RestCall[OutboxQuery, None]) -> MessagePage:
    """List messages that wait, are being delivered, or were given up; digests come last."""
    query = call.query
    found = await _actions(call).list_messages(
        _address(call, query.database), everything=query.everything, after=query.cursor, limit=query.limit
    )
    return MessagePage(found, found[-1].key if len(found) == query.limit else None)


@TABLE.add("POST", "/api/outbox/retry", role="editor", refusals=(404, 409, 422))
async def retry_messages(call: RestCall[None, MessageChanges]) -> ChangedMessages:
    """Have messages tried again from the beginning."""
    return await _change(call, "retry")


@TABLE.add("POST", "/api/outbox/drop", role="editor", refusals=(404, 409, 422))
async def drop_messages(call: RestCall[None, MessageChanges]) -> ChangedMessages:
    """Have messages never tried again."""
    return await _change(call, "drop")


@TABLE.add("POST", "/api/outbox/retry-dead", role="editor", refusals=(404, 409))
async def retry_dead_messages(call: RestCall[None, DatabaseChosen]) -> RetriedMessages:
    """Have all messages tried again that were given up."""
    address = _address_to_change(call, call.body.database)
    return RetriedMessages(await _actions(call).retry_dead(address))


@TABLE.add("POST", "/api/outbox/deliver", role="editor", refusals=(404, 409))
async def deliver_messages(call: RestCall[None, DeliveryRequest]) -> DeliveryReport:
    """Deliver the messages that wait, for at most half a minute."""
    address = _address_to_change(call, call.body.database)
    return await _actions(call).deliver(address, early=call.body.early)


@TABLE.add("GET", "/api/suspects", refusals=(404, 409))
async def list_suspects(call: RestCall[SuspectsQuery, None]) -> SuspectList:
    """List the changes that diff holds back, and why."""
    return SuspectList(await _actions(call).list_suspects(_address(call, call.query.database)))


@TABLE.add("POST", "/api/suspects/confirm", role="editor", refusals=(404, 409))
async def confirm_suspect(call: RestCall[None, SuspectConfirmation]) -> SuspectView:
    """Say that the changes are true: the next whole run applies them."""
    given = call.body
    address = _address_to_change(call, given.database)
    return await _actions(call).confirm_suspect(address, given.table, quietly=given.quiet)


@TABLE.add("POST", "/api/suspects/forget", role="editor", refusals=(404, 409))
async def forget_suspect(call: RestCall[None, SuspectChoice]) -> SuspectView:
    """Forget the changes: if they are seen again, that counts as the first time."""
    address = _address_to_change(call, call.body.database)
    return await _actions(call).forget_suspect(address, call.body.table)


async def _change(call: RestCall[None, MessageChanges], change: MessageChange) -> ChangedMessages:
    address = _address_to_change(call, call.body.database)
    return ChangedMessages(await _actions(call).change_messages(address, call.body.keys, change))


def _actions(call: RestCall[Any, Any]) -> DatabaseActions:
    service = call.context.service
    return DatabaseActions(service.engine.services.service(Databases), service.configuration)


def _addresses(call: RestCall[Any, Any]) -> list[Address]:
    service = call.context.service
    databases = service.engine.services.service(Databases)
    found = {service.database.address.url: service.database.address}
    for address in (
        *(databases.address(name, service.home) for name in databases.names),
        *service.databases.addresses(),
    ):
        found.setdefault(address.url, address)
    return list(found.values())


def _address(call: RestCall[Any, Any], name: str) -> Address:
    """Return the address of a database by its id, or by its name if no other has it."""
    known = _addresses(call)
    found = [each for each in known if database_id(each) == name] or [
        each for each in known if each.name == name
    ]
    if not found:
        names = dict.fromkeys(each.name for each in known)
        hint = suggestion(name, names)
        raise NotFoundError(f"there is no database {name[:80]!r}{hint} (databases: {', '.join(names)})")
    if len(found) > 1:
        ids = ", ".join(f"{database_id(each)} ({each.shown})" for each in found)
        raise EditConflictError(f"several databases are called {name!r}; name one by its id: {ids}")
    return found[0]


def _address_to_change(call: RestCall[Any, Any], name: str) -> Address:
    address = _address(call, name)
    if call.role != "owner" and not call.context.allowance.allows("database", address.name):
        raise ForbiddenError(f"an editor may not change the database {address.name}")
    return address
