"""The text of a wrapper as frozen data: its own content, before LIKE is resolved.

Places in the source take no part in equality: a wrapper that is printed and parsed again is equal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import zip_longest
from typing import Any, ClassVar, Literal, TypeAlias

import msgspec

from aioflow.errors import Diagnostic, suggestion
from aioflow.plan import PlanPart, Program, Scalar
from aioflow.source import Span
from aioflow.wrappers.definition import Field, WrapperInput

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
FLAGS = ("SAFE", "OUTER")
DIRECTIVES = (
    *METHODS,
    *("FORM", "JSON", "BODY", "HEADERS", "AUTH", "SAFE"),
    *("READ", "EACH", "OUTER", "CHARSET"),
    *("PAGING", "MAX_PAGES", "EMPTY", "ROBOTS", "TIMEOUT", "RESTART"),
)
PagingKind: TypeAlias = Literal["next", "number", "offset", "cursor"]


def near_directive(name: str) -> str:
    """Return the suggestion of a directive for a name in capitals that is nearly one, else nothing."""
    return suggestion(name, DIRECTIVES) if len(name) >= 3 and name.isupper() else ""


class RequestLine(msgspec.Struct, frozen=True):
    """`GET: "https://…"`."""

    method: str
    url: str


class Part(PlanPart, frozen=True, eq=False):
    """`name = value` of FORM, JSON or HEADERS; a name alone has the value `{name}`.

    `value_spans` has a place for each value: one, or as many as the list has.
    """

    name: str
    value: Scalar | tuple[Scalar, ...]
    span: Span | None = None
    value_spans: tuple[Span, ...] = ()

    @property
    def values(self) -> Iterator[tuple[Scalar, Span | None]]:
        """Each value with its place."""
        values = self.value if isinstance(self.value, tuple) else (self.value,)
        return zip_longest(values, self.value_spans[: len(values)])


class ReaderOption(PlanPart, frozen=True, eq=False):
    """A word after the reader's name, with its arguments: `delimiter ";"`."""

    name: str
    arguments: tuple[Scalar, ...] = ()
    span: Span | None = None


class ReaderChoice(PlanPart, frozen=True, eq=False):
    """`READ: csv delimiter ";"`."""

    name: str
    options: tuple[ReaderOption, ...] = ()
    span: Span | None = None


class PagingText(PlanPart, frozen=True, eq=False):
    """The content of PAGING; `found` is the field of the page for `next` and `cursor`."""

    kind: PagingKind
    parameter: str | None = None
    start: int | None = None
    step: int | None = None
    found: Field | None = None
    span: Span | None = None


class Directive(PlanPart, frozen=True, eq=False):
    """An entry with a keyword. `value` is None for `none`, which takes back what LIKE brings.

    `span` places the keyword, `spans` each value. `small` says that it was written in small letters, as
    a field would be.
    """

    not_compared: ClassVar[frozenset[str]] = frozenset({"small"})

    name: str
    value: Any
    span: Span | None = None
    spans: tuple[Span, ...] = ()
    small: bool = False

    @property
    def value_span(self) -> Span | None:
        return self.spans[0] if self.spans else self.span


class Removal(PlanPart, frozen=True, eq=False):
    """`name: none`: a field that LIKE brings and that is not wanted here."""

    name: str
    span: Span | None = None


class WrapperText(PlanPart, frozen=True, eq=False, dict=True):
    """One WRAPPER item: the content that its kind makes of the text.

    `inputs` is None without parentheses: then they are those of LIKE. A request line is the directive
    `REQUEST`.
    """

    name: str
    inputs: tuple[WrapperInput, ...] | None = None
    like: str | None = None
    directives: tuple[Directive, ...] = ()
    fields: tuple[Field | Removal, ...] = ()
    like_span: Span | None = None
    header_span: Span | None = None
    body_span: Span | None = None

    @cached_property
    def by_name(self) -> dict[str, Directive]:
        return {directive.name: directive for directive in self.directives}

    @property
    def span(self) -> Span | None:
        """The span for messages about the whole wrapper: that of the name, or else of another part."""
        header = self.header_span
        if header is not None:
            start = header.source.text.rfind(self.name, 0, header.start)
            if start >= 0:
                return Span(header.source, start, start + len(self.name))
        return header if header is not None and header.end > header.start else self.body_span

    def owns(self, span: Span | None) -> bool:
        """Return whether a place is in this text, and not in one that LIKE brings."""
        return span is not None and any(
            own is not None
            and own.source is span.source
            and own.start <= span.start < max(own.end, own.start + 1)
            for own in (self.span, self.header_span, self.body_span)
        )

    def problems(self, program: Program) -> Iterable[Diagnostic]:
        """Return the mistakes of the wrapper in a program, for the checker of plans."""
        # Imported late: reading texts needs neither readers nor templates.
        from aioflow.wrappers.checking import problems

        return problems(self, program)
