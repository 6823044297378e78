"""Refusals: every error of the REST interface has one JSON shape."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from aioflow.config.masking import mask
from aioflow.errors import AioflowError, Diagnostic, InputError, MissingExtraError, PlanError, SettingError
from aioflow.service.errors import EditConflictError, ForbiddenError, NotFoundError
from aioflow.state.errors import StateError

KINDS: Mapping[int, str] = {
    400: "bad-request",
    401: "unauthorized",
    403: "forbidden",
    404: "not-found",
    405: "method-not-allowed",
    409: "conflict",
    413: "too-large",
    415: "unsupported-media-type",
    422: "invalid",
    429: "too-many-requests",
    500: "internal",
    501: "missing-extra",
    503: "unavailable",
}
_ELSEWHERE = "a file outside of the folders of plans cannot be used"


class PlanDiagnostic(msgspec.Struct, frozen=True):
    """A mistake or warning in a plan. Lines and columns count from 1; `end` is exclusive."""

    message: str
    severity: str
    file: str | None = None
    line: int | None = None
    column: int | None = None
    end_line: int | None = None
    end_column: int | None = None


class RefusalDetail(msgspec.Struct, frozen=True, omit_defaults=True):
    kind: str
    message: str
    diagnostics: list[PlanDiagnostic] | None = None


class Refusal(msgspec.Struct, frozen=True):
    """The body of every error."""

    error: RefusalDetail


class RestError(AioflowError):
    """A request that is refused with a status."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.headers = dict(headers or {})


def status_of(error: AioflowError) -> int:
    """Return the status with which an error is reported."""
    if isinstance(error, RestError):
        return error.status
    by_kind: Sequence[tuple[type[AioflowError], int]] = (
        (NotFoundError, 404),
        (EditConflictError, 409),
        (ForbiddenError, 403),
        (PlanError, 422),
        (InputError, 422),
        (SettingError, 422),
        (MissingExtraError, 501),
        (StateError, 503),
    )
    return next((status for kind, status in by_kind if isinstance(error, kind)), 422)


def refusal_of(error: AioflowError, may_show: Callable[[str], bool]) -> Refusal:
    """Return the body for an error. `may_show` decides by the path of a file whether its text is shown."""
    diagnostics = None
    message = str(error)
    if isinstance(error, PlanError):
        diagnostics = [described(found, may_show) for found in error.diagnostics]
        number = len([each for each in diagnostics if each.severity == "error"])
        first = diagnostics[0].message if diagnostics else ""
        message = f"the plan has {number} mistakes" if number > 1 else f"the plan has a mistake: {first}"
    return Refusal(RefusalDetail(KINDS[status_of(error)], message, diagnostics))


def described(found: Diagnostic, may_show: Callable[[str], bool]) -> PlanDiagnostic:
    """Return a diagnostic as it is sent; of a file that may not be shown nothing is quoted."""
    span = found.span
    if span is None:
        return PlanDiagnostic(mask(found.shown_message), found.severity)
    if not may_show(span.source.name):
        return PlanDiagnostic(_ELSEWHERE, found.severity)
    line, column = span.source.position(span.start)
    end_line, end_column = span.source.position(min(span.end, len(span.source.text)))
    return PlanDiagnostic(
        *(mask(found.shown_message), found.severity, span.source.name, line, column, end_line, end_column)
    )


def plain_refusal(status: int, message: str) -> Refusal:
    """Return the body of a refusal that no error of ours is the cause of."""
    return Refusal(RefusalDetail(KINDS.get(status, "refused"), message))


def encode(content: Any) -> bytes:
    """Return JSON; values that JSON does not have become texts."""
    return msgspec.json.encode(content, enc_hook=str)
