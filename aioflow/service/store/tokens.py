"""Tokens for the REST interface. The task database has digests only, so a copy of it opens nothing."""

from __future__ import annotations

import re
from datetime import datetime
from hashlib import blake2b
from hmac import compare_digest
from secrets import token_urlsafe
from typing import Literal, TypeAlias, get_args

import msgspec

from aioflow.errors import InputError
from aioflow.service.errors import EditConflictError, NotFoundError
from aioflow.service.store.database import Statements
from aioflow.state.system_tables import from_stamp, stamp

Role: TypeAlias = Literal["viewer", "editor", "owner"]

ROLES: tuple[Role, ...] = get_args(Role)  # each may do all that those before it may
FIRST_NAME = "owner"
_PREFIX = "aioflow_"  # by which scanners for leaked credentials can know it
_RANDOM_BYTES = 32
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class AccessToken(msgspec.Struct, frozen=True):
    """A token without its text. `used` is when it was last seen, to the minute."""

    name: str
    role: Role
    created: datetime
    used: datetime | None = None


async def read_tokens(statements: Statements) -> list[AccessToken]:
    """Return all tokens, by name."""
    rows = await statements.fetch("SELECT name, role, created, used FROM aioflow_tokens ORDER BY name")
    return [
        AccessToken(name, role, from_stamp(created), None if used is None else from_stamp(used))
        for name, role, created, used in rows
    ]


async def create_token(statements: Statements, name: str, role: Role) -> str:
    """Add a token; return its text, which cannot be found out later."""
    if not _NAME.fullmatch(name):
        raise InputError(
            f"the name of a token has letters, digits, '.', '_' and '-', at most 64, not {name[:80]!r}"
        )
    text = _PREFIX + token_urlsafe(_RANDOM_BYTES)
    added = await statements.run(
        "INSERT INTO aioflow_tokens (name, role, digest, created) VALUES ({}, {}, {}, {}) "
        "ON CONFLICT (name) DO NOTHING",
        *(name, role, _digest(text), stamp(statements.now)),
    )
    if not added:
        raise EditConflictError(f"there is a token {name!r} already: revoke it, or take another name")
    return text


async def revoke_token(statements: Statements, name: str) -> None:
    """Remove a token; the last one of an owner stays, since only an owner can add others."""
    known = {token.name: token for token in await read_tokens(statements)}
    if name not in known:
        raise NotFoundError(f"there is no token {name[:80]!r} (tokens: {', '.join(known) or 'none'})")
    owners = [token for token in known.values() if token.role == "owner"]
    if owners == [known[name]]:
        raise EditConflictError(f"{name!r} is the only token of an owner: add another one first")
    await statements.run("DELETE FROM aioflow_tokens WHERE name = {}", name)


async def find_token(statements: Statements, text: str) -> AccessToken | None:
    """Return the token of a text; all digests are compared, each in constant time."""
    digest = _digest(text)
    rows = await statements.fetch("SELECT name, digest FROM aioflow_tokens")
    names = [name for name, known in rows if compare_digest(str(known), digest)]
    found = {token.name: token for token in await read_tokens(statements)} if names else {}
    return found.get(names[0]) if names else None


async def note_token_used(statements: Statements, name: str) -> None:
    await statements.run("UPDATE aioflow_tokens SET used = {} WHERE name = {}", stamp(statements.now), name)


async def ensure_owner_token(statements: Statements) -> str | None:
    """Add a token of an owner if there is none; return its text, to be printed once."""
    known = await read_tokens(statements)
    if any(token.role == "owner" for token in known):
        return None
    names = {token.name for token in known}
    free = (f"{FIRST_NAME}{number or ''}" for number in range(len(names) + 1))
    return await create_token(statements, next(name for name in free if name not in names), "owner")


def _digest(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogateescape"), digest_size=32).hexdigest()
