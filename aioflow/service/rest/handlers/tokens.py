"""Tokens, which owners add and revoke, and login, which checks one."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from aioflow.service.rest.declarations import RestCall, RouteTable
from aioflow.service.rest.refusals import RestError
from aioflow.service.store.tokens import AccessToken, Role, create_token, read_tokens, revoke_token

TABLE = RouteTable("tokens")


class TokenList(msgspec.Struct, frozen=True):
    tokens: list[AccessToken]


class NewToken(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: Annotated[str, Meta(min_length=1, max_length=64)]
    role: Role


class CreatedToken(msgspec.Struct, frozen=True):
    """A token with its text, which is shown this once."""

    name: str
    role: Role
    token: str


class LoginRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    token: Annotated[str, Meta(min_length=1, max_length=500)]


class LoginAnswer(msgspec.Struct, frozen=True):
    name: str
    role: Role


@TABLE.add("POST", "/api/login", role=None, refusals=(401, 429))
async def login(call: RestCall[None, LoginRequest]) -> LoginAnswer:
    """Check a token, and return its name and role.

    After ten wrong ones within a minute, none is looked at for an address.
    """
    authentication = call.context.authentication
    address = call.request.remote or ""
    authentication.limit.refuse(address)
    found = await authentication.find(call.body.token)
    if found is None:
        authentication.limit.note(address)
        raise RestError(401, "the token is wrong, or was revoked")
    return LoginAnswer(found.name, found.role)


@TABLE.add("GET", "/api/whoami")
async def whoami(call: RestCall[None, None]) -> LoginAnswer:
    """Return the name and role of the token of this request."""
    assert call.token is not None
    return LoginAnswer(call.token.name, call.token.role)


@TABLE.add("GET", "/api/tokens", role="owner")
async def list_tokens(call: RestCall[None, None]) -> TokenList:
    """List the tokens, without their texts."""
    async with call.context.service.database.reading() as statements:
        return TokenList(await read_tokens(statements))


@TABLE.add("POST", "/api/tokens", role="owner", status=201, refusals=(409, 422))
async def add_token(call: RestCall[None, NewToken]) -> CreatedToken:
    """Add a token; its text is in this answer, and nowhere else."""
    async with call.context.service.database.writing() as statements:
        text = await create_token(statements, call.body.name, call.body.role)
    return CreatedToken(call.body.name, call.body.role, text)


@TABLE.add("DELETE", "/api/tokens/{name}", role="owner", status=204, refusals=(404, 409))
async def remove_token(call: RestCall[None, None]) -> None:
    """Revoke a token, which takes effect at once."""
    async with call.context.service.database.writing() as statements:
        await revoke_token(statements, call.path["name"])
