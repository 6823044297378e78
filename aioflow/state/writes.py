"""What a statement wants to write: staged while the run goes on, applied in the run's transaction."""

from __future__ import annotations

from typing import Protocol

from aioflow.state.driver import Connection


class Write(Protocol):
    """The writes of one statement (in one call of its plan)."""

    @property
    def where(self) -> str:
        """The statement, for messages."""
        ...

    @property
    def whole(self) -> bool:
        """Whether it means something only when the statement has ended, as the contents of a whole table."""
        ...

    @property
    def is_empty(self) -> bool:
        """Whether nothing is staged, or all of it forgotten: a run without writes takes no lock."""
        ...

    def seal(self) -> None:
        """What is staged now is to be applied; what comes later is for another time."""
        ...

    async def apply(self, connection: Connection) -> None:
        """Write what was sealed and is not forgotten: all of it again, after the transaction was lost."""
        ...

    def forget(self) -> None:
        """What was applied needs never be applied again: let go of it."""
        ...

    def close(self) -> None:
        """Release everything, applied or not."""
        ...
