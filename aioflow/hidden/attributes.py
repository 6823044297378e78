"""The attributes of a search form, as its user describes them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal, TypeAlias

import msgspec

from aioflow.errors import InputError

Predicates: TypeAlias = Literal["range", "value", "at_most", "at_least"]
_PREDICATES = ("range", "value", "at_most", "at_least")


class Numeric(msgspec.Struct, frozen=True):
    """An attribute with an order: whole numbers, decimals with a step, or dates.

    `predicates` says what the form can ask for: a range, a single value, or only one side of a range. Single
    values need `low` and `high`, since each value is then a query of its own.
    """

    name: str
    low: Any = None
    high: Any = None
    step: Any = 1
    predicates: Predicates = "range"

    def __post_init__(self) -> None:
        _check_name(self.name)
        if self.predicates not in _PREDICATES:
            raise InputError(
                f"{self.name!r}: predicates are {', '.join(_PREDICATES)}, not {self.predicates!r}"
            )
        _check_step(self.name, self.step)
        if self.low is not None and self.high is not None:
            _check_ends(self.name, self.low, self.high)
        if self.predicates == "value" and (self.low is None or self.high is None):
            raise InputError(
                f"{self.name!r}: single values are asked for one by one, so low and high are needed"
            )


class Categorical(msgspec.Struct, frozen=True):
    """An attribute without an order, such as a menu. Without a `domain`, values are learnt from answers.

    A `required` attribute has no "any" in the form: each query names one of its values.
    """

    name: str
    domain: Sequence[Any] | None = None
    required: bool = False

    def __post_init__(self) -> None:
        _check_name(self.name)
        if self.domain is not None:
            _check_domain(self.name, self.domain)
            if not self.domain:
                raise InputError(f"{self.name!r}: the domain is empty")
        elif self.required:
            raise InputError(
                f"{self.name!r}: a required attribute needs its domain, since no query leaves it open"
            )


Attribute: TypeAlias = Numeric | Categorical


def _check_domain(name: str, domain: object) -> None:
    if isinstance(domain, str):
        raise InputError(f"{name!r}: the domain is a list of values, not a text")
    try:
        hash(tuple(domain))  # type: ignore[arg-type]
    except TypeError:
        raise InputError(f"{name!r}: the domain is a list of values, not {domain!r}") from None


def _check_step(name: str, step: object) -> None:
    if isinstance(step, timedelta):
        is_right = step > timedelta()
    else:
        is_number = isinstance(step, int | float | Decimal | Fraction) and not isinstance(step, bool)
        is_right = is_number and step > 0  # type: ignore[operator]
    if not is_right:
        raise InputError(f"{name!r}: the step must be more than 0, not {step!r}")


def _check_ends(name: str, low: Any, high: Any) -> None:
    try:
        is_wrong = low > high
    except TypeError:
        raise InputError(f"{name!r}: low, {low!r}, and high, {high!r}, are not of one kind") from None
    if is_wrong:
        raise InputError(f"{name!r}: low is {low!r}, which is more than high, {high!r}")


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not name:
        raise InputError(f"the name of an attribute is a text, not {name!r}")


def checked_attributes(attributes: Iterable[Attribute]) -> list[Attribute]:
    """Return the attributes as a list; an InputError says what is wrong with them."""
    if isinstance(attributes, Numeric | Categorical | str):
        raise InputError(f"attributes are a list, not {attributes!r}")
    found = list(attributes)
    if not found:
        raise InputError("a form needs at least one attribute")
    names = set()
    for each in found:
        if not isinstance(each, Numeric | Categorical):
            raise InputError(f"an attribute is Numeric or Categorical, not {each!r}")
        if each.name in names:
            raise InputError(f"two attributes are named {each.name!r}")
        names.add(each.name)
    return found
