"""The services that share a task database."""

from __future__ import annotations

import socket
from datetime import datetime, timedelta

import msgspec

from aioflow.service.store.database import Statements
from aioflow.state.system_tables import from_stamp, stamp

_FORGOTTEN_AFTER = timedelta(days=1)


class KnownService(msgspec.Struct, frozen=True):
    """A service, the address of its REST interface, and when it was last seen."""

    service_id: str
    host: str
    started: datetime
    seen: datetime
    address: str


async def note_service(statements: Statements, service_id: str, address: str, started: datetime) -> None:
    """Note that a service is alive."""
    now = stamp(statements.now)
    await statements.run(
        "INSERT INTO aioflow_services (service_id, host, started, seen, address) VALUES ({}, {}, {}, {}, {}) "
        "ON CONFLICT (service_id) DO UPDATE SET seen = excluded.seen, address = excluded.address",
        *(service_id, socket.gethostname(), stamp(started), now, address),
    )
    await statements.run(
        "DELETE FROM aioflow_services WHERE seen < {}", stamp(statements.now - _FORGOTTEN_AFTER)
    )


async def forget_service(statements: Statements, service_id: str) -> None:
    """Note that a service has ended."""
    await statements.run("DELETE FROM aioflow_services WHERE service_id = {}", service_id)


async def read_services(statements: Statements, alive_seconds: float) -> list[KnownService]:
    """Return the services that were seen lately."""
    rows = await statements.fetch(
        "SELECT service_id, host, started, seen, address FROM aioflow_services WHERE seen >= {} "
        "ORDER BY started",
        stamp(statements.now - timedelta(seconds=alive_seconds)),
    )
    return [
        KnownService(name, host, from_stamp(started), from_stamp(seen), address)
        for name, host, started, seen, address in rows
    ]
