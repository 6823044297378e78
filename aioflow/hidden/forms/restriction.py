"""The part of a form that a tuple of the plan asks for: values of the inputs that queries fill."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from aioflow.errors import AioflowError, InputError
from aioflow.hidden.attributes import Numeric
from aioflow.hidden.forms.definition import FormField
from aioflow.hidden.knowledge import conditions_of, is_written
from aioflow.hidden.scales import scale_for
from aioflow.relation import Value


def restricted(field: FormField, given: Mapping[str, Value]) -> FormField:
    """Return an attribute with the values only that a tuple leaves."""
    wanted = [given.get(name) for name in field.inputs]
    if all(value is None for value in wanted):
        return field
    if field.kind in ("menu", "value"):
        value = wanted[0]
        if field.values and value not in field.values:
            raise AioflowError(f"the menu of {field.name!r} has no value {value!r}")
        # A required menu with one value: each query names it.
        return replace(field, kind="menu", values=(value,), menu_of=None, required=True)
    if field.kind != "range":
        raise AioflowError(f"{field.name!r}: only one side can be asked for, so a tuple cannot restrict it")
    low, high = wanted
    for end in wanted:
        _check_end(field, end)
    lows, highs = (
        [end for end in ends if end is not None] for ends in ((field.low, low), (field.high, high))
    )
    return replace(field, low=max(lows, default=None), high=min(highs, default=None))


def _check_end(field: FormField, end: Value) -> None:
    """Raise an InputError if an end is no number, or is between two steps: then no value would fit."""
    is_number = isinstance(end, int | float)
    if is_number:
        scale = scale_for(Numeric(field.name, 0 if field.low is None else field.low, step=field.step))
        try:
            scale.encode(end)
        except ValueError as error:
            raise InputError(f"{field.name!r}: {end!r} is no end of its range: {error}") from error
    elif isinstance(end, str) or (end is not None and (field.low, field.high) != (None, None)):
        raise InputError(f"{field.name!r}: {end!r} is no end of its range")


def excludes_within(excludes: Sequence[str], fields: Sequence[FormField]) -> list[str]:
    """Return the dependencies on values that are left of restricted menus."""
    single = {field.name: field.values[0] for field in fields if field.required and len(field.values) == 1}
    return [
        text
        for text in excludes
        if all(name not in single or is_written(single[name], value) for name, value in conditions_of(text))
    ]
