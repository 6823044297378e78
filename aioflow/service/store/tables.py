"""The tables of the task database.

They have a version of their own, apart from that of the system tables, which the task database has too: its
outbox holds the alerts.
"""

from __future__ import annotations

from aioflow.state.system_tables import Tables

META = "aioflow_service_meta"

_VERSION_1 = (
    f"CREATE TABLE {META} (id bigint PRIMARY KEY, version bigint NOT NULL)",
    # The number of changes to tasks, by which services notice them.
    "CREATE TABLE aioflow_revision (id bigint PRIMARY KEY, revision bigint NOT NULL)",
    "INSERT INTO aioflow_revision (id, revision) VALUES (1, 0)",
    "CREATE TABLE aioflow_tasks ("
    "task_id text PRIMARY KEY, name text NOT NULL UNIQUE, definition text NOT NULL, version text NOT NULL, "
    "state text NOT NULL, state_reason text NOT NULL, created text NOT NULL, changed text NOT NULL, "
    "anchor text NOT NULL, scheduled_until text NOT NULL, failures bigint NOT NULL, last_success text, "
    "last_failure text, feed_key text NOT NULL)",
    "CREATE TABLE aioflow_plan_versions ("
    "version text PRIMARY KEY, snapshot text NOT NULL, created text NOT NULL)",
    "CREATE TABLE aioflow_occurrences ("
    "occurrence text PRIMARY KEY, task_id text NOT NULL, cause text NOT NULL, due text NOT NULL, "
    "first_due text NOT NULL, number bigint NOT NULL, start_after text NOT NULL, priority bigint NOT NULL, "
    "exclusive bigint NOT NULL, "
    "state text NOT NULL, reason text NOT NULL, attempts bigint NOT NULL, lost bigint NOT NULL, "
    "fence bigint NOT NULL, run_id text, version text, leased_by text, leased_until text, "
    "cancel_requested bigint NOT NULL, started text, ended text, account text, log text, sample text, "
    "trace text)",
    "CREATE INDEX aioflow_occurrences_task ON aioflow_occurrences (task_id, due)",
    "CREATE INDEX aioflow_occurrences_state ON aioflow_occurrences (state, start_after)",
    "CREATE INDEX aioflow_occurrences_due ON aioflow_occurrences (due)",
    "CREATE TABLE aioflow_alerts ("
    "task_id text NOT NULL, kind text NOT NULL, since text NOT NULL, last_sent text, times bigint NOT NULL, "
    "message text NOT NULL, PRIMARY KEY (task_id, kind))",
    "CREATE TABLE aioflow_tokens ("
    "name text PRIMARY KEY, role text NOT NULL, digest text NOT NULL UNIQUE, created text NOT NULL, "
    "used text)",
    "CREATE TABLE aioflow_services ("
    "service_id text PRIMARY KEY, host text NOT NULL, started text NOT NULL, seen text NOT NULL, "
    "address text NOT NULL)",
    # Requests of plans that were taken over from their databases, and may still be there after a crash.
    "CREATE TABLE aioflow_requests_taken (request_id text PRIMARY KEY, taken text NOT NULL)",
)

SERVICE_TABLES = Tables(
    (_VERSION_1,),
    {
        "aioflow_revision": ("id", "revision"),
        "aioflow_tasks": (
            *("task_id", "name", "definition", "version", "state", "state_reason", "created", "changed"),
            *("anchor", "scheduled_until", "failures", "last_success", "last_failure", "feed_key"),
        ),
        "aioflow_plan_versions": ("version", "snapshot", "created"),
        "aioflow_occurrences": (
            *(
                "occurrence",
                "task_id",
                "cause",
                "due",
                "first_due",
                "number",
                "start_after",
                "priority",
                "exclusive",
            ),
            *("state", "reason", "attempts", "lost", "fence", "run_id", "version", "leased_by"),
            *("leased_until", "cancel_requested", "started", "ended", "account", "log", "sample", "trace"),
        ),
        "aioflow_alerts": ("task_id", "kind", "since", "last_sent", "times", "message"),
        "aioflow_tokens": ("name", "role", "digest", "created", "used"),
        "aioflow_services": ("service_id", "host", "started", "seen", "address"),
        "aioflow_requests_taken": ("request_id", "taken"),
    },
    META,
)
