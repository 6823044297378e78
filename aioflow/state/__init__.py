"""The memory and the messages of plans: databases, the transaction of a run, and its outbox."""

from typing import TYPE_CHECKING

from aioflow.exports import lazy_exports

if TYPE_CHECKING:
    from aioflow.state.databases import Databases
    from aioflow.state.diff.compare import Difference, open_difference
    from aioflow.state.diff.settings import APART_SECONDS, CONFIRMING_RUNS, SHARE, DiffSpec, changed_schema
    from aioflow.state.diff.suspects import Suspect
    from aioflow.state.diff.write import EmptyBaseline
    from aioflow.state.driver import Connection
    from aioflow.state.errors import (
        BusyError,
        CommitError,
        ConflictError,
        DamagedError,
        DatabaseError,
        DisconnectedError,
        DiskFullError,
        StateError,
        VersionError,
    )
    from aioflow.state.history import (
        ChangeKind,
        RowChange,
        RowHistory,
        TrackedTable,
        ValueChange,
        read_changes,
        read_rows,
        tracked_tables,
    )
    from aioflow.state.queries import TupleQueries, query_rows, read, table_rows
    from aioflow.state.sql_text import Change, Query
    from aioflow.state.staged import Write
    from aioflow.state.tables import TableName, WrittenTableName, check_key
    from aioflow.state.transaction import Transaction
    from aioflow.state.writes import CHANGED, Append, Export, Storable, UpdateOutcome, Updates

__all__ = [
    "APART_SECONDS",
    "CHANGED",
    "CONFIRMING_RUNS",
    "SHARE",
    "Append",
    "BusyError",
    "Change",
    "ChangeKind",
    "CommitError",
    "ConflictError",
    "Connection",
    "DamagedError",
    "DatabaseError",
    "Databases",
    "DiffSpec",
    "Difference",
    "DisconnectedError",
    "DiskFullError",
    "EmptyBaseline",
    "Export",
    "Query",
    "RowChange",
    "RowHistory",
    "StateError",
    "Storable",
    "Suspect",
    "TableName",
    "TrackedTable",
    "Transaction",
    "TupleQueries",
    "UpdateOutcome",
    "Updates",
    "ValueChange",
    "VersionError",
    "Write",
    "WrittenTableName",
    "changed_schema",
    "check_key",
    "open_difference",
    "query_rows",
    "read",
    "read_changes",
    "read_rows",
    "table_rows",
    "tracked_tables",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "databases": ("Databases",),
        "diff.compare": ("Difference", "open_difference"),
        "diff.settings": ("APART_SECONDS", "CONFIRMING_RUNS", "SHARE", "DiffSpec", "changed_schema"),
        "diff.suspects": ("Suspect",),
        "diff.write": ("EmptyBaseline",),
        "driver": ("Connection",),
        "errors": (
            "BusyError",
            "CommitError",
            "ConflictError",
            "DamagedError",
            "DatabaseError",
            "DisconnectedError",
            "DiskFullError",
            "StateError",
            "VersionError",
        ),
        "history": (
            *("ChangeKind", "RowChange", "RowHistory", "TrackedTable", "ValueChange"),
            *("read_changes", "read_rows", "tracked_tables"),
        ),
        "queries": ("TupleQueries", "query_rows", "read", "table_rows"),
        "sql_text": ("Change", "Query"),
        "staged": ("Write",),
        "tables": ("TableName", "WrittenTableName", "check_key"),
        "transaction": ("Transaction",),
        "writes": ("Append", "CHANGED", "Export", "UpdateOutcome", "Storable", "Updates"),
    },
)
