"""The errors of databases and outboxes.

CommitError            (a RunError) what the run wrote could not be stored; nothing of it was
StateError             (an AioflowError)
├── DatabaseError the database refused or failed: names the database, the request and a remedy │ ├──
DisconnectedError the connection was lost; what was under way may or may not have happened │ ├── BusyError
somebody else holds the write lock │ ├── DiskFullError no room is left where the database or what is staged
lies │ └── DamagedError the file is damaged, or no database; nothing was changed in it ├── ConflictError a row
cannot be stored beside what the table holds; names statement and row └── VersionError a newer version of
aioflow made this database
"""

from __future__ import annotations

from aioflow.errors import AioflowError, RunError


class CommitError(RunError):
    """The writes of a run could not be stored; none of them was."""


class StateError(AioflowError):
    """The state of a plan could not be read or written."""


class DatabaseError(StateError):
    """The database refused or failed."""


class DisconnectedError(DatabaseError):
    """The connection was lost."""


class BusyError(DatabaseError):
    """Somebody else holds the write lock."""


class DiskFullError(DatabaseError):
    """No room is left on the disk."""


class DamagedError(DatabaseError):
    """The database is damaged, or none."""


class ConflictError(StateError):
    """A row cannot be stored beside what the table holds."""


class VersionError(StateError):
    """A newer version of aioflow made this database."""
