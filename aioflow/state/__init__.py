"""What a plan remembers and whom it tells: databases, the transaction of a run, and its outbox."""

from aioflow.state.appending import Append
from aioflow.state.databases import Databases
from aioflow.state.differing import Difference, open_difference
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
from aioflow.state.exporting import Export
from aioflow.state.parameters import Change, Query
from aioflow.state.reading import TupleQueries, query_rows, read, table_rows
from aioflow.state.storable import Storable
from aioflow.state.suspects import APART_SECONDS, CONFIRMING_RUNS, SHARE, EmptyBaseline, Suspect
from aioflow.state.tables import TableName, WrittenTableName, check_key
from aioflow.state.transaction import Transaction
from aioflow.state.updating import CHANGED, Outcome, Updates
from aioflow.state.wish import Wish, changed_schema
from aioflow.state.writes import Write

__all__ = [
    "APART_SECONDS",
    "CHANGED",
    "CONFIRMING_RUNS",
    "SHARE",
    "Append",
    "BusyError",
    "Change",
    "CommitError",
    "ConflictError",
    "Connection",
    "DamagedError",
    "DatabaseError",
    "Databases",
    "Difference",
    "DisconnectedError",
    "DiskFullError",
    "EmptyBaseline",
    "Export",
    "Outcome",
    "Query",
    "StateError",
    "Storable",
    "Suspect",
    "TableName",
    "Transaction",
    "TupleQueries",
    "Updates",
    "VersionError",
    "Wish",
    "Write",
    "WrittenTableName",
    "changed_schema",
    "check_key",
    "open_difference",
    "query_rows",
    "read",
    "table_rows",
]
