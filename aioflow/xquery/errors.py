"""The error of queries that have no result."""

from aioflow.errors import InputError


class QueryError(InputError):
    """A query or a stylesheet failed, or went past a limit; the message says why."""
