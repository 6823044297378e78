"""The runs that were committed, in the database that they wrote to: tells what a lost connection hides."""

from __future__ import annotations

from datetime import UTC, datetime

from aioflow.context import RunInfo
from aioflow.state.driver import Connection


class Ledger:
    """The entries of one run: one for each time that it commits."""

    def __init__(self, run: RunInfo) -> None:
        self._run = run
        self._entries = 0

    def next_entry(self) -> str:
        """An id of which the database knows nothing yet."""
        self._entries += 1
        return self._run.run_id if self._entries == 1 else f"{self._run.run_id}/{self._entries}"

    async def enter(self, connection: Connection, entry: str) -> None:
        """Record, within a transaction, that it was committed."""
        places = connection.dialect.placeholders(4)
        values = (entry, self._run.plan, _text(self._run.started), _text(datetime.now(UTC)))
        await connection.run(
            f"insert into aioflow_runs (run_id, plan, started, committed) values ({places})", values
        )

    async def has(self, connection: Connection, entry: str) -> bool:
        place = connection.dialect.placeholders(1)
        return bool(await connection.fetch(f"select 1 from aioflow_runs where run_id = {place}", (entry,)))


def _text(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="microseconds")
