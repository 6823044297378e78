"""Errors of actions that a caller can tell apart. REST answers with a status of its own for each."""

from __future__ import annotations

from aioflow.errors import AioflowError, InputError


class NotFoundError(InputError):
    """The thing that was named does not exist."""


class EditConflictError(InputError):
    """The thing exists already, or was changed by somebody else meanwhile."""


class ForbiddenError(AioflowError):
    """The role of the caller does not allow this."""
