"""A search form as frozen data: the content of the text of a HIDDEN item."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

import msgspec

from aioflow.errors import Diagnostic
from aioflow.hidden.algorithms.choice import Algorithm
from aioflow.plan import PlanPart, Program, Scalar
from aioflow.source import Span

FieldKind: TypeAlias = Literal["range", "at_most", "at_least", "value", "menu"]
Unit: TypeAlias = Literal["km", "miles", "m"]
KINDS: tuple[FieldKind, ...] = ("range", "at_most", "at_least", "value", "menu")


class FormField(PlanPart, frozen=True, eq=False):
    """An attribute that the form can ask for, and the inputs of the wrapper by which it does.

    A `menu` has `values`, or they are read by a wrapper, `menu_of`, from its attribute `menu_attribute`.
    """

    name: str
    kind: FieldKind
    inputs: tuple[str, ...]
    low: Scalar = None
    high: Scalar = None
    step: Scalar = 1
    values: tuple[Scalar, ...] = ()
    menu_of: str | None = None
    menu_attribute: str | None = None
    required: bool = False
    span: Span | None = None


class Near(PlanPart, frozen=True, eq=False):
    """The inputs of a store locator: it shows what is nearest to a place, within a radius.

    The first two attributes of the form are latitude and longitude, in degrees.
    """

    latitude: str
    longitude: str
    radius: str
    unit: Unit = "km"


class HiddenForm(PlanPart, frozen=True, eq=False):
    """A form: the wrapper that asks a query, the attributes, and how an answer shows that there is more."""

    name: str
    query: str
    fields: tuple[FormField, ...]
    limit: int | None = None
    total: str | None = None
    more: str | None = None
    algorithm: Algorithm = "auto"
    excludes: tuple[str, ...] = ()
    near: Near | None = None
    quota: int | None = None  # queries a day
    key: tuple[str, ...] = ()
    spans: Mapping[str, Span] = msgspec.field(default_factory=dict)  # of directives, and of each dependency

    def problems(self, program: Program) -> list[Diagnostic]:
        """Return the mistakes that need other items to be seen; the checker reports them."""
        from aioflow.hidden.forms.checking import problems_of

        return problems_of(self, program)
