"""Plans built in Python; they equal plans that are read from text."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, overload

from msgspec.structs import replace

from aioflow.errors import InputError, suggestion
from aioflow.plan import (
    Constant,
    InputDeclaration,
    Option,
    Parameter,
    ParameterReference,
    Plan,
    Setting,
    Statement,
    Variable,
    Word,
    is_name,
    is_word,
)
from aioflow.relation import Schema, Type

_REQUIRED: Any = object()
Names = str | Variable | Sequence[str | Variable]


class PlanBuilder:
    """Builds a plan statement by statement.

    plan = PlanBuilder("get_houses")
    criteria = plan.input("criteria", "city char, beds number")
    page = plan.add("wrapper", "search", criteria, output="page")
    plan.output(plan.add("select", page, "beds > 2"))
    get_houses = plan.build()
    """

    def __init__(self, name: str) -> None:
        if not is_word(name):
            raise InputError(f"{name!r} cannot be the name of a plan: {_NAMES}")
        self._name = name
        self._inputs: list[InputDeclaration] = []
        self._outputs: list[Variable] = []
        self._parameters: list[Parameter] = []
        self._statements: list[Statement] = []
        self._options: list[Option] = []
        self._max_depth: int | None = None
        self._stop = False
        self._once: str | None = None
        # Generated names; outputs with one and without a reader are left out of the plan.
        self._generated: set[str] = set()
        self._used: set[str] = set()
        self._known: set[str] = set()
        self._numbers: defaultdict[str, int] = defaultdict(lambda: 1)

    # --- the header -----------------------------------------------------------------------------

    def input(self, name: str, schema: str | Schema | None = None) -> Variable:
        """Declare an input; `schema` is a Schema or a text such as `"city char, beds number"`."""
        if any(declaration.name == name for declaration in self._inputs):
            raise InputError(f"{self._name} has an input {name!r} already")
        declared = _read_schema(schema) if isinstance(schema, str) else schema
        self._inputs.append(InputDeclaration(_checked_name(name), declared))
        self._known.add(name)
        return Variable(name)

    def output(self, *variables: str | Variable) -> None:
        """Make variables outputs of the plan, after its present ones."""
        self._outputs += [self._use(variable, "an output") for variable in variables]

    def param(self, name: str, default: Any = _REQUIRED) -> ParameterReference:
        """Declare a parameter; one without default must be set by the caller of the plan."""
        if any(parameter.name.lower() == name.lower() for parameter in self._parameters):
            raise InputError(f"{self._name} has a parameter {name!r} already")
        required = default is _REQUIRED
        value = None if required else _constant(default, f"the default of parameter {name!r}")
        self._parameters.append(Parameter(_checked_name(name), value, required))
        return ParameterReference(name)

    def max_depth(self, depth: int, *, stop: bool = False) -> None:
        """Limit the depth of a recursion: past it there is an error, or with `stop` an end and a warning."""
        if not isinstance(depth, int) or isinstance(depth, bool) or depth < 1:
            raise InputError(f"max_depth takes a whole number of at least 1, not {depth!r}")
        self._max_depth, self._stop = depth, stop

    def once(self, attributes: str) -> None:
        """Have a recursion work once on each value of these attributes or expressions."""
        if not isinstance(attributes, str):
            raise InputError(f"once takes a text with attributes, not {attributes!r}")
        self._once = attributes

    def option(self, name: str, *values: Any) -> None:
        """Set an option of the plan itself, such as COMMIT."""
        self._options.append(_option(name, values))

    # --- statements -----------------------------------------------------------------------------

    def variable(self, name: str) -> Variable:
        """Return a variable or signal by its name, even one that a later statement produces."""
        return Variable(_checked_name(name))

    @overload
    def add(
        self, operator: str, /, *arguments: Any, outputs: int | Sequence[str], **clauses: Any
    ) -> tuple[Variable, ...]: ...
    @overload
    def add(
        self, operator: str, /, *arguments: Any, output: str | None = None, **clauses: Any
    ) -> Variable: ...
    def add(
        self,
        operator: str,
        /,
        *arguments: Any,
        output: str | None = None,
        outputs: int | Sequence[str] | None = None,
        settings: Mapping[str, Any] | None = None,
        wait: Names = (),
        enable: Names = (),
        done: Names = (),
        errors: str | Variable | None = None,
        options: Mapping[str, Any] | None = None,
        **more_options: Any,
    ) -> Variable | tuple[Variable, ...]:
        """Add a statement and return its output, or all outputs if `outputs` names or counts them.

        Among the arguments a Variable is an input, and everything else is a constant. `settings` are
        constants given by name; every other keyword is an option: `workers=8`, `by="city"`, `ordered=True`. A
        tuple gives an option several values, a list is one value. `options` is for option names that Python
        or this method uses itself. An output without a name gets one if it has a reader.
        """
        if not isinstance(operator, str) or not is_word(operator):
            raise InputError(f"{operator!r} cannot be the name of an operator: {_NAMES}")
        if output is not None and outputs is not None:
            raise InputError(f"{operator}: give output= or outputs=, not both")
        names = self._output_names(operator, [output] if outputs is None else outputs)
        statement = Statement(
            operator,
            (*self._arguments(operator, arguments), *_settings(operator, settings or {})),
            names,
            wait=self._names(wait, operator),
            enable=self._names(enable, operator),
            done=self._names(done, operator),
            errors=self._errors(errors, operator),
            options=_options({**(options or {}), **more_options}),
        )
        self._statements.append(statement)
        return names[0] if outputs is None else names

    def build(self) -> Plan:
        """The plan as it stands; the builder can be used further."""
        return Plan(
            self._name,
            tuple(self._inputs),
            tuple(self._outputs),
            tuple(map(self._without_unread, self._statements)),
            tuple(self._parameters),
            self._max_depth,
            self._stop,
            self._once,
            tuple(self._options),
        )

    # --- details --------------------------------------------------------------------------------

    def _output_names(self, operator: str, wanted: int | Sequence[str | None]) -> tuple[Variable, ...]:
        if isinstance(wanted, str):
            raise InputError(f"{operator}: outputs= takes several names or their number, not {wanted!r}")
        listed = [None] * wanted if isinstance(wanted, int) else wanted
        return tuple(self._generate(operator) if name is None else self._new_name(name) for name in listed)

    def _new_name(self, name: str | Variable) -> Variable:
        text = name.name if isinstance(name, Variable) else name
        if text in self._generated:
            raise InputError(f"{text!r} is a name that was made up for another output; choose another one")
        self._known.add(_checked_name(text))
        return Variable(text)

    def _generate(self, operator: str) -> Variable:
        name = f"{operator}-{self._numbers[operator]}"
        while name in self._known:
            self._numbers[operator] += 1
            name = f"{operator}-{self._numbers[operator]}"
        self._generated.add(name)
        self._known.add(name)
        return Variable(name)

    def _use(self, variable: object, role: str) -> Variable:
        name = variable.name if isinstance(variable, Variable) else variable
        if not isinstance(name, str):
            raise InputError(f"{role} must be a variable or its name, not {variable!r}")
        self._used.add(_checked_name(name))
        self._known.add(name)
        return Variable(name)

    def _arguments(self, operator: str, arguments: Iterable[Any]) -> Iterable[Variable | Setting]:
        for argument in arguments:
            if isinstance(argument, tuple) and any(isinstance(each, Variable) for each in argument):
                raise InputError(
                    f"{operator}: an argument is a tuple of variables; pick one, or pass them by *"
                )
            if isinstance(argument, Variable):
                yield self._use(argument, operator)
            else:
                yield Setting(_constant(argument, f"an argument of {operator}"))

    def _names(self, names: Names, operator: str) -> tuple[Variable, ...]:
        listed = names if isinstance(names, list | tuple) else (names,)
        return tuple(self._use(name, f"a signal of {operator}") for name in listed)

    def _errors(self, errors: str | Variable | None, operator: str) -> Variable | Literal["skip"] | None:
        if errors is None:
            return None
        if errors == "skip":
            return "skip"
        variable = self._use(errors, f"errors of {operator}")
        if variable.name.lower() == "skip":
            raise InputError("a variable for errors cannot be called 'skip'")
        return variable

    def _without_unread(self, statement: Statement) -> Statement:
        """Leave out generated outputs without a reader: dropped at the end, `_` before others."""
        unread = self._generated - self._used
        outputs = [Variable("_") if output.name in unread else output for output in statement.outputs]
        while outputs and outputs[-1].name == "_" and statement.outputs[len(outputs) - 1].name in unread:
            outputs.pop()
        return _with_outputs(statement, tuple(outputs))


def _with_outputs(statement: Statement, outputs: tuple[Variable, ...]) -> Statement:
    return statement if outputs == statement.outputs else replace(statement, outputs=outputs)


_NAMES = "names are letters, digits, '_' and '-', beginning with a letter or '_'"


def _checked_name(name: object) -> str:
    if not isinstance(name, str) or not is_name(name):
        raise InputError(f"{name!r} is not a name: {_NAMES}")
    return name


def _settings(operator: str, settings: Mapping[str, Any]) -> Iterable[Setting]:
    for name, value in settings.items():
        yield Setting(_constant(value, f"{name} of {operator}"), _checked_name(name))


def _options(options: Mapping[str, Any]) -> tuple[Option, ...]:
    return tuple(
        _option(name, value) for name, value in options.items() if value is not None and value is not False
    )


def _option(name: str, value: Any) -> Option:
    label = _checked_name(name).upper()
    if label in ("WAIT", "ENABLE", "DONE", "ERRORS"):
        raise InputError(f"{label} is a clause of its own: give it as {label.lower()}=")
    values = () if value is True else value if isinstance(value, tuple) else (value,)
    return Option(
        label, tuple(each if isinstance(each, Word) else _constant(each, f"{label}") for each in values)
    )


def _constant(value: Any, role: str) -> Constant:
    """Return a value in the form that a plan has; lists become tuples."""
    if isinstance(value, list | tuple):
        members = tuple(_constant(each, role) for each in value)
        if any(isinstance(each, tuple | ParameterReference) for each in members):
            raise InputError(f"{role} is a list in which not all values are text, numbers, booleans or None")
        return members  # type: ignore[return-value]  # the line above has excluded all but scalars
    if isinstance(value, float) and not math.isfinite(value):
        raise InputError(f"{role} is the number {value}, which no plan can hold")
    if value is None or isinstance(value, str | int | float | ParameterReference):
        return value
    raise InputError(
        f"{role} cannot be {value!r}: text, a number, a boolean, None, a list of those or a parameter"
    )


def _read_schema(text: str) -> Schema:
    types: dict[str, Type | None] = {}
    for part in filter(None, map(str.strip, text.split(","))):
        name, *kind = part.split()
        if len(kind) > 1:
            raise InputError(f"{part!r} must be an attribute and its type, such as 'beds number'")
        if name in types:
            raise InputError(f"attribute {name!r} stands twice in {text!r}")
        types[name] = _read_type(kind[0]) if kind else None
    return Schema(tuple(types), tuple(types.values()))


def _read_type(text: str) -> Type:
    try:
        return Type(text.lower())
    except ValueError:
        hint = suggestion(text, map(str, Type)) or f" (there are: {', '.join(Type)})"
        raise InputError(f"unknown type {text!r}{hint}") from None
