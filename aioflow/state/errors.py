"""The errors of databases and outboxes.

CommitError                 (a RunError) the writes of the run could not be stored; none of them was
└── StaleRunError           another attempt at the same occurrence of the task has taken over
StateError                  (an AioflowError)
├── DatabaseError           the database refused or failed: names the database, the request and a remedy
│   ├── DisconnectedError   the connection was lost; the request may or may not have been carried out
│   ├── BusyError           another process holds the write lock
│   ├── DiskFullError       no room is left for the database or for staged rows
│   └── DamagedError        the file is damaged, or no database; nothing was changed in it
├── ConflictError           a row cannot be stored beside the rows of the table; names statement and row
└── VersionError            a newer version of aioflow made this database
"""

from __future__ import annotations

from aioflow.errors import AioflowError, RunError


class CommitError(RunError):
    """The writes of a run could not be stored; none of them was."""


class StaleRunError(CommitError):
    """Another attempt at the same occurrence of a task has taken over, so this one stores nothing."""


class StateError(AioflowError):
    """The state of a plan could not be read or written."""


class DatabaseError(StateError):
    """The database refused or failed."""


class DisconnectedError(DatabaseError):
    """The connection was lost."""


class BusyError(DatabaseError):
    """Another process or connection holds the write lock."""


class DiskFullError(DatabaseError):
    """No room is left on the disk."""


class DamagedError(DatabaseError):
    """The database is damaged, or none."""


class ConflictError(StateError):
    """A row cannot be stored beside what the table holds."""


class VersionError(StateError):
    """A newer version of aioflow made this database."""
