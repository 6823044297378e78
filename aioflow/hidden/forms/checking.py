"""Mistakes in forms that other items show: what does not fit the wrapper, and values that make no sense."""

from __future__ import annotations

from collections.abc import Iterator

from aioflow.errors import AioflowError, Diagnostic, SettingError, suggestion
from aioflow.hidden.algorithms.choice import check_algorithm
from aioflow.hidden.attributes import Attribute, Categorical, Numeric
from aioflow.hidden.forms.definition import FormField, HiddenForm, Near
from aioflow.hidden.forms.resolution import AskedForm, numeric_of
from aioflow.hidden.knowledge import conditions_of, is_written
from aioflow.hidden.scales import scale_for
from aioflow.hidden.space import RangeAxis, Space, single_values
from aioflow.plan import Program
from aioflow.source import Span
from aioflow.wrappers import AnyWrapper
from aioflow.wrappers.wrapper_item import find_wrapper


def problems_of(form: HiddenForm, program: Program) -> list[Diagnostic]:
    """Return the mistakes of a form that the wrappers show."""
    try:
        wrapper = find_wrapper(form.query, program)
    except SettingError as error:
        return [Diagnostic(error.message, form.spans.get("QUERY"))]
    except AioflowError:  # the wrapper itself has mistakes, which are reported at their place
        return []
    return [Diagnostic(message, span) for message, span in mistakes_of(form, wrapper, program)]


def mistakes_of(
    form: HiddenForm, wrapper: AnyWrapper, program: Program | None
) -> Iterator[tuple[str, Span | None]]:
    """Yield everything about a form that makes no sense or does not fit its wrapper."""
    for what, name in (("TOTAL", form.total), ("MORE", form.more)):
        if name is not None and name not in wrapper.schema.names:
            yield f"{what}: {_no_attribute(wrapper, name)}", form.spans.get(what)
    near = () if form.near is None else _near_mistakes(form, form.near, wrapper)
    yield from ((message, form.spans.get("NEAR")) for message in near)
    asked = AskedForm(form, wrapper, {})
    for name in form.key:
        yield from ((f"KEY: {message}", form.spans.get("KEY")) for message in _name_mistakes(name, asked))
    for place, field in enumerate(form.fields):
        yield from ((message, field.span) for message in _name_mistakes(field.name, asked))
        if form.near is None or place > 1:
            yield from ((message, field.span) for message in _input_mistakes(field, wrapper))
        yield from ((message, field.span) for message in _value_mistakes(field, program))
    yield from _shared_inputs(form)
    yield from _algorithm_mistakes(form)
    for text in form.excludes:
        messages = _exclusion_mistakes(text, form)
        yield from ((message, form.spans.get(f"EXCLUDES {text}")) for message in messages)


def _no_attribute(wrapper: AnyWrapper, name: str) -> str:
    names = wrapper.schema.names
    return f"wrapper {wrapper.name!r} has no attribute {name!r}{suggestion(name, names)}"


def _name_mistakes(name: str, asked: AskedForm) -> Iterator[str]:
    if name not in asked.wrapper.schema.names:
        yield _no_attribute(asked.wrapper, name)
    elif name not in asked.schema.names:
        yield f"{name!r} belongs to the page, not to each tuple of it"


def _shared_inputs(form: HiddenForm) -> Iterator[tuple[str, Span | None]]:
    """Yield inputs that two conditions would fill: one of them would be lost."""
    near = form.near
    first = {} if near is None else dict.fromkeys((near.latitude, near.longitude, near.radius), "NEAR")
    for field in form.fields[0 if near is None else 2 :]:
        for name in field.inputs:
            if name in first:
                yield f"the input {name!r} belongs to {first[name]} already", field.span
            first.setdefault(name, repr(field.name))


def _algorithm_mistakes(form: HiddenForm) -> Iterator[tuple[str, Span | None]]:
    attributes: list[Attribute] = [
        Categorical(each.name) if each.kind in ("menu", "value") else Numeric(each.name)
        for each in form.fields
    ]
    try:
        check_algorithm(form.algorithm, Space(attributes))
    except AioflowError as error:
        yield str(error), form.spans.get("ALGORITHM", form.spans.get("NEAR"))


def _exclusion_mistakes(text: str, form: HiddenForm) -> Iterator[str]:
    fields = {field.name: field for field in form.fields}
    try:
        conditions = conditions_of(text)
    except AioflowError as error:
        yield str(error)
        return
    for name, value in conditions:
        field = fields.get(name)
        if field is None:
            yield f"the form has no attribute {name!r}{suggestion(name, list(fields))}"
        elif field.kind not in ("menu", "value"):
            yield f"dependencies are between values of menus, and {name!r} is a range"
        elif field.kind == "menu" and not field.values and field.menu_of is None:
            yield f"a dependency needs the values of {name!r}: in or of"
        elif field.values and not any(is_written(each, value) for each in field.values):
            yield f"{name!r} has no value {value!r}{suggestion(value, [str(each) for each in field.values])}"


def _near_mistakes(form: HiddenForm, near: Near, wrapper: AnyWrapper) -> Iterator[str]:
    inputs = [given.name for given in wrapper.inputs]
    for name in (near.latitude, near.longitude, near.radius):
        if name not in inputs:
            yield f"wrapper {wrapper.name!r} has no input {name!r}{suggestion(name, inputs)}"
    if form.limit is None and form.more is None and form.total is None:
        yield "NEAR needs LIMIT, TOTAL or MORE, to see that a circle has more"


def _value_mistakes(field: FormField, program: Program | None) -> Iterator[str]:
    if field.kind != "menu":
        try:
            numeric = numeric_of(field)
            scale_for(numeric)
            axis = RangeAxis(numeric)
            if field.kind == "value":
                single_values(axis)
        except AioflowError as error:
            yield str(error)
    if field.menu_of is None:
        return
    try:
        menu = find_wrapper(field.menu_of, program)
    except SettingError as error:
        yield error.message
        return
    if field.menu_attribute is not None and field.menu_attribute not in menu.schema.names:
        yield _no_attribute(menu, field.menu_attribute)


def _input_mistakes(field: FormField, wrapper: AnyWrapper) -> Iterator[str]:
    inputs = {given.name: given for given in wrapper.inputs}
    is_bound = field.required or (field.kind == "range" and None not in (field.low, field.high))
    for name in field.inputs:
        if name not in inputs:
            yield f"wrapper {wrapper.name!r} has no input {name!r}{suggestion(name, list(inputs))}"
        elif not inputs[name].optional and not is_bound:
            how = {"range": ", or give from and to", "menu": ", or make the menu required"}
            advice = f"make the input {name!r} optional{how.get(field.kind, '')}"
            yield f"queries leave {field.name!r} open: {advice}"
