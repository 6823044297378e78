"""All errors that aioflow raises, and the form in which mistakes in a plan are reported.

AioflowError
├── PlanError          mistakes in a plan, all of them, found before anything runs
├── InputError         rows, parameters or arguments that do not fit the plan
├── SettingError       one bad setting; becomes a Diagnostic where the statement is known
├── UntoldAttributeError  a question to a relation that told nothing of its attributes; binding answers it
├── MissingExtraError  an optional package is not installed
├── ProcessError       a call in another process has no outcome
├── ClosedError        an engine, a stream or a relation was used after it had been closed
└── RunError           a run that failed
    ├── OperatorError  a statement failed; names file, line, operator and input tuple
    ├── ReleasedError  a firing failed after some of its results had left
    ├── DepthError     a recursion went past its MAX_DEPTH
    └── DeadlineError  the run took longer than its timeout
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from aioflow.config.masking import mask, mask_quoted
from aioflow.source import Span


class AioflowError(Exception):
    """The root of all errors that aioflow raises on purpose.

    `means_absence` is true for a failure that is a result: the thing that was asked for does not exist.
    """

    means_absence: bool = False

    def __str__(self) -> str:
        # A server may repeat secrets anywhere in its response: in addresses, reasons and names.
        return mask(super().__str__())


class Diagnostic(msgspec.Struct, frozen=True):
    """One mistake or warning, with its place in the source."""

    message: str
    span: Span | None = None
    severity: Literal["error", "warning"] = "error"

    @property
    def line(self) -> int:
        """The line of the mistake, counted from 1; 0 if it has no place."""
        return self.span.line if self.span else 0

    @property
    def column(self) -> int:
        """The column of the mistake, counted from 1; 0 if it has no place."""
        return self.span.column if self.span else 0

    @property
    def shown_message(self) -> str:
        """The message with credentials masked, since it may quote one from its line."""
        return mask_quoted(self.message, self.span.source.line(self.span.line) if self.span else "")

    def __str__(self) -> str:
        place = f"{self.span.place}: " if self.span else ""
        label = "" if self.severity == "error" else "warning: "
        excerpt = f"\n{self.span.excerpt}" if self.span else ""
        return f"{place}{label}{self.shown_message}{excerpt}"


class PlanError(AioflowError):
    """A plan has mistakes; `diagnostics` lists every one of them.

    `program` is the readable part of a text, so that it can be checked nevertheless.
    """

    def __init__(self, diagnostics: Sequence[Diagnostic], program: object = None) -> None:
        self.diagnostics = tuple(diagnostics)
        self.program = program
        super().__init__("\n".join(str(diagnostic) for diagnostic in self.diagnostics))


class InputError(AioflowError):
    """Rows, parameters or arguments do not fit the plan."""


class SettingError(AioflowError):
    """One setting of a statement is wrong.

    `setting` is its name if that is known where the error is raised. `offset` is the position of the mistake
    in the text of the setting, for the caret.
    """

    def __init__(self, message: str, *, setting: str | None = None, offset: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.setting = setting
        self.offset = offset


class UntoldAttributeError(AioflowError):
    """An open schema was asked for an attribute that it does not list.

    Code that binds settings to schemas handles it: the attribute is added to the list, and is null.
    """

    def __init__(self, schema: object, name: str) -> None:
        super().__init__(
            f"the attribute {name!r} is not known: a relation ended empty before its attributes were told"
        )
        self.schema = schema
        self.name = name


class MissingExtraError(AioflowError):
    """A feature needs an optional package that is not installed."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f"{feature} needs an optional package: pip install 'aioflow[{extra}]'")


class ProcessError(AioflowError):
    """A call in another process has no outcome: its process ended, or was ended because it `is_late`.

    `status` is that with which it ended by itself.
    """

    def __init__(self, message: str, *, is_late: bool = False, status: int | None = None) -> None:
        super().__init__(message)
        self.is_late = is_late
        self.status = status


class ClosedError(AioflowError):
    """An engine, a stream or the rows of a relation were used after they had been closed."""


class RunError(AioflowError):
    """A run failed."""


class OperatorError(RunError):
    """A statement failed; the original exception is the cause, `where` its place and operator."""

    where: str = ""


class ReleasedError(RunError):
    """A firing failed after some of its results had left, for the reason `why`: no ERRORS may take it."""

    def __init__(self, error: BaseException, why: str) -> None:
        message = f"{type(error).__name__}: {message_of(error)}".removesuffix(": ")
        super().__init__(f"{message}; {why}")
        self.__cause__ = error


class DepthError(RunError):
    """A recursion went deeper than its plan allows."""


class DeadlineError(RunError):
    """A run took longer than its timeout."""


# Messages for the reader of a stream, both of an operator's input and of the results of a run.
CLOSED_EARLY = "the stream was closed before its end"
BEING_READ = "this stream already has a reader: give each reader a run of its own"


def declared_output(name: str, plan: str) -> str:
    """Return the message about rows that are sent to an output which the plan declares."""
    return f"{name!r} is an output of the plan {plan}: emit to another name, or both would be one"


def message_of(error: BaseException) -> str:
    """Return the text of an exception with secrets masked, even if its `str` fails."""
    try:
        return mask(str(error))
    except Exception:
        return ""


class Suggestions:
    """Hints at near names within a bounded time: a text full of mistakes gets hints for the first ones."""

    def __init__(self, comparisons_at_most: int = 50_000) -> None:
        self._left = comparisons_at_most

    @property
    def are_spent(self) -> bool:
        return self._left <= 0

    def __call__(self, name: str, known: Iterable[str]) -> str:
        """Return `; did you mean 'x'?` if a known name is near, else an empty text."""
        if self.are_spent:
            return ""
        candidates = list(known)
        self._left -= 1 + len(candidates)
        return suggestion(name, candidates)


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return `; did you mean 'x'?` if a known name is near, else an empty text."""
    from difflib import get_close_matches  # late: only mistakes need it

    candidates = list(known)
    folded = {candidate.lower(): candidate for candidate in candidates}
    near = get_close_matches(name.lower(), folded, n=1)
    return f"; did you mean {folded[near[0]]!r}?" if near else ""
