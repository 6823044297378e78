"""The parts of requests and answers that several routes share."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Meta, UnsetType

from aioflow.service.store.occurrences import Occurrence
from aioflow.service.task import CatchUp, Overlap

PAGE_AT_MOST = 500

Moment: TypeAlias = Annotated[datetime, Meta(tz=True)]
Limit: TypeAlias = Annotated[int, Meta(ge=1, le=PAGE_AT_MOST, description="the most entries")]
Cursor: TypeAlias = Annotated[str, Meta(max_length=400, description="`next` of the page before")]
Seconds: TypeAlias = float | str


class TaskContent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A task as it is sent: the keys of its definition. Times may be texts such as `90s`.

    In a change, a key that is null gets its default back, and a key that is left out stays as it is.
    """

    name: str | UnsetType = UNSET
    plan: str | UnsetType = UNSET
    plan_name: str | UnsetType | None = UNSET
    schedule: str | UnsetType | None = UNSET
    zone: str | UnsetType | None = UNSET
    inputs: dict[str, list[dict[str, Any]]] | UnsetType | None = UNSET
    parameters: dict[str, Any] | UnsetType | None = UNSET
    overlap: Overlap | UnsetType | None = UNSET
    catch_up: CatchUp | UnsetType | None = UNSET
    catch_up_window_seconds: Seconds | UnsetType | None = UNSET
    jitter_seconds: Seconds | UnsetType | None = UNSET
    timeout_seconds: Seconds | UnsetType | None = UNSET
    retries: int | UnsetType | None = UNSET
    retry_pause_seconds: Seconds | UnsetType | None = UNSET
    pause_after_failures: int | UnsetType | None = UNSET
    ends: Moment | UnsetType | None = UNSET
    priority: Annotated[int, Meta(ge=-1000, le=1000)] | UnsetType | None = UNSET
    first: Literal["baseline", "news"] | UnsetType | None = UNSET
    database: str | UnsetType | None = UNSET
    accounts: dict[str, str] | UnsetType | None = UNSET
    alert_after_failures: int | UnsetType | None = UNSET
    alert_after_silence_seconds: Seconds | UnsetType | None = UNSET
    reload: Literal["manual", "automatic"] | UnsetType | None = UNSET
    job: bool | UnsetType | None = UNSET

    def as_mapping(self) -> dict[str, Any]:
        """Return the keys that were given."""
        given = {name: getattr(self, name) for name in self.__struct_fields__}
        return {name: value for name, value in given.items() if value is not UNSET}


class RunsQuery(msgspec.Struct, frozen=True):
    """`state` may be given several times; `before` leaves out later runs."""

    state: list[Literal["waiting", "running", "succeeded", "failed", "cancelled", "skipped", "missed"]] = (
        msgspec.field(default_factory=list)
    )
    before: Moment | None = None
    cursor: Cursor | None = None
    limit: Limit = 50


class RunPage(msgspec.Struct, frozen=True):
    """Runs, the latest first. With `next` as the cursor the following page is asked for."""

    runs: list[Occurrence]
    next: str | None = None


def run_page(runs: list[Occurrence], limit: int) -> RunPage:
    """Return a page of runs."""
    return RunPage(runs, runs[-1].occurrence if len(runs) == limit else None)
