"""From the text of a form to one that can be asked: its wrappers are found, and what does not fit is told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, ClassVar

import msgspec

from aioflow.errors import SettingError, suggestion
from aioflow.hidden.attributes import Numeric, Predicates
from aioflow.hidden.forms.definition import FormField, HiddenForm
from aioflow.hidden.forms.language import form_of_text
from aioflow.plan import Program
from aioflow.relation import Schema, Value
from aioflow.values.json import decode_row
from aioflow.wrappers import AnyWrapper
from aioflow.wrappers.wrapper_item import find_wrapper

ITEM = "HIDDEN"
_PREDICATES: dict[str, Predicates] = {"at_most": "at_most", "at_least": "at_least", "value": "value"}


class AskedForm(msgspec.Struct, frozen=True, dict=True):
    """A form with the wrapper that asks its queries, and those that read its menus."""

    form: HiddenForm
    wrapper: AnyWrapper
    menus: dict[str, AnyWrapper]  # by attribute

    @cached_property
    def schema(self) -> Schema:
        """The attributes of the tuples behind the form: those of items, since a page is another each time."""
        whole = self.wrapper.schema
        names = [name for name in whole.names if name not in self._of_page]
        return Schema(tuple(names), tuple(whole.type_of(name) for name in names))

    @property
    def _of_page(self) -> set[str | None]:
        extraction = getattr(self.wrapper, "extraction", None)
        fields = () if extraction is None else extraction.fields
        of_page = {field.name for field in fields if field.scope in ("page", "response")}
        return of_page | {self.form.total, self.form.more}

    def keys_of(self, rows: Counter[tuple[Any, ...]]) -> Counter[tuple[Value, ...]]:
        """Return how often each value of KEY occurs among tuples of a crawl, whose last value is the text."""
        places = [self.schema.names.index(name) for name in self.form.key]
        found: Counter[tuple[Value, ...]] = Counter()
        for row, times in rows.items():
            whole = decode_row(row[-1])
            found[tuple(whole[place] for place in places)] += times
        return found

    @property
    def form_inputs(self) -> frozenset[str]:
        """The inputs of the wrapper that queries fill; tuples of the plan fill the others."""
        near = self.form.near
        place = () if near is None else (near.latitude, near.longitude, near.radius)
        return frozenset(place) | {
            name for field in self.form.fields[len(place) and 2 :] for name in field.inputs
        }


class HiddenName:
    """A setting that names a form of the program."""

    kind_name: ClassVar[str] = "the name of a HIDDEN item"

    @classmethod
    def bind_item(cls, value: Any, inputs: Sequence[Schema | None], program: Program | None) -> AskedForm:
        asked = asked_form(find_form(value, program), program)
        schema = inputs[0] if inputs else Schema(())
        if schema is not None:
            check_inputs(asked, schema)
        return asked


def find_form(name: Any, program: Program | None) -> HiddenForm:
    """Return the form of that name; raise a SettingError with a suggestion when there is none."""
    if not isinstance(name, str):
        raise SettingError(f"must be the name of a HIDDEN item, not {name!r}")
    item = None if program is None else program.item(ITEM, name)
    if item is None:
        items = program.items if program is not None else ()
        known = [each.name for each in items if each.kind.upper() == ITEM]
        listed = f" (there are: {', '.join(known)})" if known else "; the program has none"
        raise SettingError(f"unknown form {name!r}{suggestion(name, known) or listed}")
    if isinstance(item.content, HiddenForm):
        return item.content
    return form_of_text(item.name, item.header, item.body)


def asked_form(form: HiddenForm, program: Program | None) -> AskedForm:
    """Return a form with its wrappers; a SettingError says that there is no wrapper to ask."""
    menus: dict[str, AnyWrapper] = {}
    for field in form.fields:
        if field.menu_of is not None:
            with suppress(SettingError):  # mistakes in the form are reported at its own place
                menus[field.name] = find_wrapper(field.menu_of, program)
    return AskedForm(form, find_wrapper(form.query, program), menus)


def check_inputs(asked: AskedForm, schema: Schema) -> None:
    """Raise a SettingError if the tuples lack an input that no query fills."""
    for given in asked.wrapper.inputs:
        if given.name in asked.form_inputs or given.optional:
            continue
        if given.name in schema or schema.open:
            schema.type_of(given.name)  # a relation that told nothing has what it is asked for
            continue
        has = ", ".join(schema.names) or "no attributes"
        raise SettingError(
            f"wrapper {asked.wrapper.name!r} of form {asked.form.name!r} needs the attribute {given.name!r}"
            f"{suggestion(given.name, schema.names)} (the tuples have: {has})"
        )


def numeric_of(field: FormField) -> Numeric:
    return Numeric(field.name, field.low, field.high, field.step, _PREDICATES.get(field.kind, "range"))
