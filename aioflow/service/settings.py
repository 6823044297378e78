"""`[service]` of the configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from aioflow.config.sections import Section, at_least, more_than_nothing
from aioflow.errors import InputError

DEFAULT_PORT = 8650
ALLOWED_KINDS = ("operator", "function", "method", "database", "folder", "recipient", "account", "secret")


@dataclass(frozen=True)
class ServiceSettings:
    """How a service works. `database` names a configured database; by default a file in the home is used."""

    database: str = ""
    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    url: str = ""  # under which people reach the service, if a proxy stands before it
    runs: int = 50  # at once
    lease_seconds: float = 30.0  # after which a service that does not answer is taken to be dead
    grace_seconds: float = 30.0  # for runs under way when the service ends
    timeout_seconds: float = 6 * 3600.0  # of a run, if its task says nothing else
    late_spread_seconds: float = 20.0  # over which late runs begin
    keep_days: float = 90.0  # of runs
    keep_runs: int = 1000  # of each task
    keep_logs: int = 50  # runs of each task with log, trace and first rows
    keep_log_bytes: int = 1_000_000_000  # of all logs, traces and first rows
    log_bytes: int = 64 * 1024  # of the log of each run
    trace_bytes: int = 64 * 1024  # of the trace of each run; 0 for none
    sample_rows: int = 100  # of the outputs of each run
    alert_email: tuple[str, ...] = field(default=())
    alert_notify: str = ""  # an account
    alert_phone: tuple[str, ...] = field(default=())
    alert_again_seconds: float = 24 * 3600.0  # while the cause lasts
    disk_free_bytes: int = 500_000_000  # below which the owner is alerted
    outbox_stuck_seconds: float = 6 * 3600.0  # after which messages that wait are an alert
    # `allow` lists what plans of editors may use: "operator:email", "database:main", "folder:~/data".
    editor: Mapping[str, tuple[str, ...]] = field(default_factory=dict, metadata={"inner_names": ("allow",)})

    @property
    def allowed(self) -> tuple[str, ...]:
        """The list `allow` of `[service.editor]`."""
        return self.editor.get("allow", ())


_time = more_than_nothing("a time")


def _allowed(entries: tuple[str, ...]) -> tuple[str, ...]:
    for entry in entries:
        kind, _, name = entry.partition(":")
        if kind not in ALLOWED_KINDS or not name.strip():
            raise InputError(f"a list of texts like 'operator:email' (kinds: {', '.join(ALLOWED_KINDS)})")
    return entries


SERVICE = Section(
    "service",
    ServiceSettings,
    refine={
        "port": at_least(0, "a port"),
        "runs": at_least(1, "a whole number"),
        "lease_seconds": at_least(2, "a time"),
        "grace_seconds": at_least(0, "a time"),
        "timeout_seconds": _time,
        "late_spread_seconds": at_least(0, "a time"),
        "keep_days": _time,
        "keep_runs": at_least(1, "a whole number"),
        "keep_logs": at_least(1, "a whole number"),
        "keep_log_bytes": at_least(0, "a number of bytes"),
        "trace_bytes": at_least(0, "a number of bytes"),
        "log_bytes": at_least(0, "a number of bytes"),
        "sample_rows": at_least(0, "a whole number"),
        "alert_again_seconds": at_least(3600, "a time"),  # there is at most one message an hour
        "outbox_stuck_seconds": _time,
        "editor": _allowed,
    },
)
