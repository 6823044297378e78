"""A wrapper as frozen data: the content of its text, before a request is made or a page read.

Also a cache for what is made of such data: a recursion asks for it at every level.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeAlias, TypeVar

import msgspec

from aioflow.plan import PlanPart
from aioflow.relation import Schema, Type, Value
from aioflow.source import Span

if TYPE_CHECKING:
    from aioflow.restart.policies import RestartPolicy

# The place of a field's value: in each item, in the page around the items, in the answer itself
# (url, status, a header, the time), or nowhere because it is constant.
Scope: TypeAlias = Literal["item", "page", "response", "constant"]


class WrapperInput(PlanPart, frozen=True, eq=False):
    """An input of a wrapper; an optional one may be null or missing."""

    name: str
    type: Type | None = None
    optional: bool = False
    default: Value = None
    span: Span | None = None


class Processing(PlanPart, frozen=True, eq=False):
    """One word after a selector, with its arguments: `number "de"`, `split ","`."""

    name: str
    arguments: tuple[str | int | float | bool | None, ...] = ()
    span: Span | None = None


class Field(PlanPart, frozen=True, eq=False):
    """An attribute of the result.

    `selector` is a text in the reader's own language. A field with `fields` embeds a relation: `selector`
    is then the iterating element.
    """

    name: str
    selector: str = ""
    scope: Scope = "item"
    processing: tuple[Processing, ...] = ()
    required: bool = False
    default: Value = None
    fields: tuple[Field, ...] = ()
    span: Span | None = None
    selector_span: Span | None = None

    @property
    def counts(self) -> bool:
        """True if its value is a number of matches, of which 0 means that nothing was found."""
        return any(word.name.lower() == "count" for word in self.processing)


class Extraction(PlanPart, frozen=True, eq=False, weakref=True):
    """The extraction from a page: all that a reader needs to know."""

    reader: str = "html"
    options: Mapping[str, Any] = msgspec.field(default_factory=dict)
    each: str | None = None  # None: the page is the only item
    fields: tuple[Field, ...] = ()
    next_page: Field | None = None  # for paging: a field of the page that is no attribute
    charset: str | None = None
    outer: bool = False  # a page without items gives one tuple with its page fields
    empty: tuple[str, ...] = ()  # selectors of what proves that a page has no items
    each_span: Span | None = None
    empty_spans: tuple[Span | None, ...] = ()


class Paging(msgspec.Struct, frozen=True):
    """The rule by which a wrapper follows further pages by itself."""

    kind: Literal["next", "number", "offset", "cursor"]
    parameter: str | None = None  # of the query
    start: int = 1
    step: int = 1
    most_pages: int = 1000
    is_bounded: bool = False  # True if the wrapper itself limits the number of pages


class RequestTemplate(PlanPart, frozen=True, eq=False):
    """The request of a wrapper; texts may hold `{name}` of inputs, `url` is an RFC 6570 template."""

    method: str = "GET"
    url: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    form: tuple[tuple[str, Any], ...] | None = None  # values are templates or constants
    json: tuple[tuple[str, Any], ...] | None = None  # dotted names make objects
    body: str | None = None
    auth: str | None = None
    safe: bool = False
    robots: bool = True
    timeout_seconds: float | None = None
    restart: RestartPolicy | None = None  # None: as for the host
    empty: tuple[int, ...] = ()  # statuses that mean: no result
    url_span: Span | None = None


class Wrapper(PlanPart, frozen=True, eq=False, dict=True, weakref=True):
    """A wrapper, whole: after LIKE was resolved."""

    not_compared: ClassVar[frozenset[str]] = frozenset({"file"})

    name: str
    inputs: tuple[WrapperInput, ...]
    request: RequestTemplate
    extraction: Extraction
    paging: Paging | None
    schema: Schema
    file: str = ""  # the whole path; "" for a text that is in none

    @property
    def has_effects(self) -> bool:
        """Requests other than GET change the world, unless their author calls them safe."""
        return self.request.method not in ("GET", "HEAD") and not self.request.safe

    @property
    def page_fields(self) -> tuple[str, ...]:
        """The attributes whose values are found in pages."""
        return tuple(field.name for field in self.extraction.fields if field.scope in ("item", "page"))

    @property
    def counting_fields(self) -> tuple[str, ...]:
        """The attributes that say how often something was found."""
        return tuple(field.name for field in self.extraction.fields if field.counts)

    @cached_property
    def input_names(self) -> tuple[str, ...]:
        return tuple(given.name for given in self.inputs)


def whole_path(name: str) -> str:
    """Return the path of a file, the same however the file is named; "" if it is none, as `<plan>`."""
    path = Path(name)
    return str(path.resolve()) if path.is_file() else ""


Given = TypeVar("Given")
Made = TypeVar("Made")


class IdentityCache(Generic[Given, Made]):
    """A function of one argument that remembers its results by the identity of the argument."""

    def __init__(self, make: Callable[[Given], Made]) -> None:
        self._make = make
        self._made: dict[int, tuple[weakref.ref[Any], Made]] = {}

    def __call__(self, given: Given) -> Made:
        key = id(given)
        found = self._made.get(key)
        if found is not None and found[0]() is given:
            return found[1]
        made = self._make(given)
        # An identity is used again when its owner is gone: it is forgotten with it.
        self._made[key] = weakref.ref(given, lambda gone: self._forget(key, gone)), made
        return made

    def __len__(self) -> int:
        return len(self._made)

    def _forget(self, key: int, gone: weakref.ref[Any]) -> None:
        found = self._made.get(key)
        if found is not None and found[0] is gone:
            del self._made[key]
