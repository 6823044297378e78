"""Settings of operators: a constant in a plan becomes the value that the function gets."""

from __future__ import annotations

import types
from collections.abc import Sequence
from importlib import import_module
from typing import Any, ClassVar, Literal, Protocol, Union, get_args, get_origin

import msgspec

from aioflow.errors import SettingError, suggestion
from aioflow.plan import Program
from aioflow.relation import Schema


class SettingKind(Protocol):
    """A class for annotations of settings: makes the value from the constant in the plan.

    `bind` is called when the plan is checked, with the schemas that are known then, and again for each schema
    that the inputs have in the run. It raises a SettingError for a mistake. A kind can also say
    `binds_default = True`, or `takes_all_constants = True` for a list of constants: see SettingPort.
    """

    kind_name: ClassVar[str]

    @classmethod
    def bind(cls, value: Any, inputs: Sequence[Schema | None]) -> Any: ...


class ItemSettingKind(Protocol):
    """A setting that names an item of the program, such as a wrapper."""

    kind_name: ClassVar[str]

    @classmethod
    def bind_item(cls, value: Any, inputs: Sequence[Schema | None], program: Program | None) -> Any: ...


class SettingPort(msgspec.Struct, frozen=True):
    """A setting of an operator: a keyword-only parameter."""

    name: str
    annotation: Any
    default: Any = None
    required: bool = True
    doc: str = ""
    parameter: str = ""  # the name in Python, which may need an underscore: `as_`

    @property
    def is_flag(self) -> bool:
        return self.annotation is bool

    @property
    def names_item(self) -> bool:
        return any(hasattr(member, "bind_item") for member in _members(self.annotation))

    def bind(self, value: Any, inputs: Sequence[Schema | None], program: Program | None = None) -> Any:
        """Return the value that the function gets for a constant; raise a SettingError if it does not fit."""
        try:
            return _convert(self.annotation, value, inputs, program)
        except SettingError as error:
            if error.setting is None:
                error.setting = self.name
            raise

    @property
    def takes_all_constants(self) -> bool:
        """True if all constants without a name that a statement has belong to this setting, as a list."""
        return any(getattr(member, "takes_all_constants", False) for member in _members(self.annotation))

    def default_for(self, inputs: Sequence[Schema | None]) -> Any:
        """Return the value of a setting that a statement leaves out; raise a SettingError if it does not fit.

        A kind that `binds_default` looks at the inputs for its default too.
        """
        if not any(getattr(member, "binds_default", False) for member in _members(self.annotation)):
            return self.default
        return self.bind(self.default, inputs)

    @property
    def type_name(self) -> str:
        return _describe(self.annotation)


# The kinds of settings in the header of a plan. The package of a kind adds it when it is imported, which
# happens when the first plan has such a setting.
plan_settings: dict[str, Any] = {}
_BROUGHT_BY = {"once": "aioflow.expressions"}


def bind_plan_setting(name: str, value: Any, schema: Schema | None) -> Any:
    """Return the value of a setting in the header of a plan, for an input of this schema."""
    if name not in plan_settings:
        import_module(_BROUGHT_BY[name])
    return plan_settings[name].bind(value, (schema,))


def _members(annotation: Any) -> tuple[Any, ...]:
    """Return the alternatives of a union, or the annotation itself."""
    if get_origin(annotation) in (Union, types.UnionType):
        return get_args(annotation)
    return (annotation,)


def _convert(
    annotation: Any, value: Any, inputs: Sequence[Schema | None], program: Program | None = None
) -> Any:
    members = _members(annotation)
    if value is None and type(None) in members:
        return None
    problems = []
    for member in members:
        if member is type(None):
            continue
        try:
            if hasattr(member, "bind_item"):
                return member.bind_item(value, inputs, program)
            return _convert_one(member, value, inputs)
        except SettingError as error:
            problems.append(error)
    if len(problems) > 1 and all(each.message.startswith("must be ") for each in problems):
        _, near, hint = problems[-1].message.partition("; did you mean")
        raise SettingError(f"must be {_describe(annotation)}, not {_show(value)}{near}{hint}")
    raise problems[-1]


def _choose(choices: Sequence[Any], value: Any) -> Any:
    chosen = value.lower() if isinstance(value, str) else value
    if chosen in choices:
        return chosen
    hint = suggestion(str(value), map(str, choices))
    raise SettingError(f"must be one of {', '.join(map(str, choices))}, not {value!r}{hint}")


def _convert_one(annotation: Any, value: Any, inputs: Sequence[Schema | None]) -> Any:
    if annotation is Any or annotation is None:
        return value
    if hasattr(annotation, "bind"):
        return annotation.bind(value, inputs)
    if get_origin(annotation) is Literal:
        return _choose(get_args(annotation), value)
    if get_origin(annotation) in (tuple, list):
        values = value if isinstance(value, tuple | list) else (value,)
        member = get_args(annotation)[0]
        return tuple(_convert_one(member, each, inputs) for each in values)
    if annotation is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, annotation) and not (isinstance(value, bool) and annotation is not bool):
        return value
    raise SettingError(f"must be {_describe(annotation)}, not {_show(value)}")


_TYPE_NAMES: dict[Any, str] = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}


def _describe(annotation: Any) -> str:
    if hasattr(annotation, "kind_name"):
        return str(annotation.kind_name)
    if get_origin(annotation) is Literal:
        choices = get_args(annotation)
        return str(choices[0]) if len(choices) == 1 else "one of " + ", ".join(map(str, choices))
    if get_origin(annotation) in (tuple, list):
        return f"a list of {_describe(get_args(annotation)[0])}"
    alternatives = [member for member in _members(annotation) if member is not type(None)]
    if len(alternatives) > 1 or alternatives[0] is not annotation:
        return " or ".join(_describe(member) for member in alternatives)
    return _TYPE_NAMES.get(annotation, getattr(annotation, "__name__", str(annotation)))


def _show(value: Any) -> str:
    return "null" if value is None else repr(value)
