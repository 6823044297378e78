"""A watch of another program as aioflow has it: a plan, a schedule, accounts, and notes on the rest."""

from __future__ import annotations

import msgspec


class ImportedSecret(msgspec.Struct, frozen=True):
    """A secret that an imported watch refers to. Its value is not shown in `repr`."""

    name: str
    origin: str
    value: str

    def __repr__(self) -> str:
        return f"ImportedSecret(name={self.name!r}, origin={self.origin!r})"


class ImportedWatch(msgspec.Struct, frozen=True):
    """A watch as a task: its plan with a schedule, the settings that it needs, and notes on missing parts.

    `plan_text` is empty if no plan can do the work of the watch. `settings` is a text of TOML with the
    accounts that the plan names; the same account has the same table in every watch.
    """

    uuid: str
    name: str
    plan_text: str
    schedule: str
    paused: bool = False
    settings: str = ""
    secrets: tuple[ImportedSecret, ...] = ()
    notes: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    zone: str | None = None
