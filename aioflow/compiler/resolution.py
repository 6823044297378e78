"""Binds a statement to the operator or plan that it names: inputs, outputs, settings and clauses.

It looks at one statement alone. `naming` checks that the variables exist, `fitting` that the value of a
setting suits its operator.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import chain
from typing import TypeAlias

import msgspec

from aioflow.authoring.operator import Operator, Registry
from aioflow.compiler.parameters import substitute
from aioflow.errors import Diagnostic, suggestion
from aioflow.plan import (
    Constant,
    Option,
    ParameterReference,
    Plan,
    Program,
    Setting,
    Statement,
    Variable,
    Word,
)
from aioflow.source import Span

__all__ = ["Report", "Resolved", "Target", "input_limits", "resolve_statement", "signature", "substitute"]

Target: TypeAlias = Operator | Plan
Report: TypeAlias = Callable[[Diagnostic], None]

# Clauses that every statement takes; the first four have places of their own in a Statement.
SIGNAL_CLAUSES = ("wait", "enable", "done", "errors")
UNIVERSAL_OPTIONS = (*SIGNAL_CLAUSES, "workers", "ordered", "buffer", "whole")
_OPTIONAL_SHOWN = 2


class Resolved(msgspec.Struct, frozen=True, eq=False):
    """A statement with everything in its place.

    `inputs` are in the order of the target's; optional ones left out at the end are missing.
    `outputs` has one for each of the target's, None where it is not needed. `settings` holds, by
    lower-case name, an operator's settings or the parameters that a call sets, before `substitute`.
    """

    statement: Statement
    target: Target
    inputs: tuple[str, ...]
    outputs: tuple[str | None, ...]
    settings: Mapping[str, Constant]
    setting_spans: Mapping[str, Span | None]
    wait: tuple[str, ...] = ()
    enable: tuple[str, ...] = ()
    done: tuple[str, ...] = ()
    errors: str | None = None
    skip_errors: bool = False
    workers: int | ParameterReference | None = None
    ordered: bool = False
    buffer: int | ParameterReference | None = None
    whole: bool = False  # its author vouches that the results lack nothing
    # Unknown because of reported mistakes: the values of these settings, and the order of the inputs.
    unknown: frozenset[str] = frozenset()
    has_wrong_inputs: bool = False

    @property
    def plan(self) -> Plan | None:
        """The plan that this calls, if it is a call."""
        return self.target if isinstance(self.target, Plan) else None


def resolve_statement(
    statement: Statement,
    program: Program,
    registry: Registry,
    report: Report,
    variables: Collection[str] = (),
    parameters: Collection[str] = (),
    suggest: Callable[[str, Iterable[str]], str] = suggestion,
) -> Resolved | None:
    """Bind a statement as far as it can be understood, and report every mistake in it.

    So one mistake hides no other: parts that cannot be understood count as unknown from here on. Return None
    when there is no such operator or plan. `variables` and `parameters` (in lower case) are those of its
    plan: they and `suggest` serve the hints.
    """
    target = find_target(statement.operator, program, registry)
    if target is None:
        known = chain(registry.names(), (plan.name for plan in program))
        hint = suggest(statement.operator, known)
        report(Diagnostic(f"unknown operator {statement.operator!r}{hint}", statement.name_span))
        _Universal(statement, report)
        return None
    if isinstance(target, Operator):
        target = target.within(program)
    return _Binding(statement, target, report, variables, parameters).resolved()


def find_target(name: str, program: Program, registry: Registry) -> Target | None:
    """Plans first: where one is named like an operator, which is a mistake, its calls at least make sense."""
    return program.by_name.get(name.lower()) or registry.get(name)


def input_limits(target: Target) -> tuple[int, int | None]:
    """Return the fewest and the most inputs that a target takes; None: any number."""
    if isinstance(target, Plan):
        return len(target.inputs), len(target.inputs)
    fewest = sum(not port.optional for port in target.inputs)
    if any(port.variadic for port in target.inputs):
        return max(1, fewest), None
    return fewest, len(target.inputs)


def setting_names(target: Target) -> list[str]:
    """Return the settings of an operator, or parameters of a plan, in order and lower case."""
    if isinstance(target, Plan):
        return [parameter.name.lower() for parameter in target.parameters]
    return [port.name for port in target.settings]


def output_names(target: Target) -> list[str]:
    if isinstance(target, Plan):
        return [output.name for output in target.outputs]
    return list(target.outputs)


def signature(target: Target) -> str:
    """Return the form of a statement with that target: `format (rel, "template", ["attributes"] : out)`."""
    if isinstance(target, Plan):
        arguments = [declaration.name for declaration in target.inputs]
    else:
        arguments = [_shown_input(port.name, port.variadic, port.optional) for port in target.inputs]
        arguments += [f'"{port.name}"' for port in target.settings if port.required]
        optional = [f'["{port.name}"]' for port in target.settings if not port.required]
        arguments += optional if len(optional) <= _OPTIONAL_SHOWN else [*optional[:_OPTIONAL_SHOWN], "…"]
    outputs = "".join(f"{', ' if index else ' : '}{name}" for index, name in enumerate(output_names(target)))
    return f"{target.name} ({', '.join(arguments)}{outputs})"


def _shown_input(name: str, variadic: bool, optional: bool) -> str:
    if variadic:
        return f"{name}, …"
    return f"[{name}]" if optional else name


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number or 'no'} {noun}s"


class _Binding(msgspec.Struct, dict=True):
    """One statement on its way to a Resolved."""

    statement: Statement
    target: Target
    report: Report
    variables: Collection[str]
    parameters: Collection[str]
    settings: dict[str, Constant] = msgspec.field(default_factory=dict)
    spans: dict[str, Span | None] = msgspec.field(default_factory=dict)
    # Settings without a value because of a mistake that was reported: their names were misspelt, for one.
    excused: set[str] = msgspec.field(default_factory=set)
    has_wrong_inputs: bool = False

    def __post_init__(self) -> None:
        arguments = self.statement.arguments
        self.inputs = [argument for argument in arguments if isinstance(argument, Variable)]
        self.constants = [argument for argument in arguments if isinstance(argument, Setting)]
        self.known_settings = setting_names(self.target)

    def mistake(self, message: str, span: Span | None) -> None:
        self.report(Diagnostic(message, span or self.statement.name_span))

    def resolved(self) -> Resolved:
        self._unquote_variables()
        self._constants()
        self._options()
        self._inputs_and_required_settings()
        self._input_names()
        self._outputs()
        statement = self.statement
        universal = _Universal(statement, self.report)
        errors = statement.errors.name if isinstance(statement.errors, Variable) else None
        return Resolved(
            statement,
            self.target,
            self._inputs(),
            self._output_names(),
            self.settings,
            self.spans,
            tuple(variable.name for variable in statement.wait),
            tuple(variable.name for variable in statement.enable),
            tuple(variable.name for variable in statement.done),
            errors,
            statement.errors == "skip",
            universal.workers,
            universal.ordered,
            universal.buffer,
            universal.whole,
            frozenset(self.excused - self.settings.keys()),
            self.has_wrong_inputs,
        )

    def _inputs(self) -> tuple[str, ...]:
        """Return the inputs by name; where it is not clear which is which, as many unknown ones as needed."""
        if self.has_wrong_inputs:
            return ("_",) * input_limits(self.target)[0]
        return tuple(variable.name for variable in self.inputs)

    def _input_names(self) -> None:
        if isinstance(self.target, Operator) and self.target.input_names is not None:
            self.settings.setdefault(self.target.input_names, tuple(each.name for each in self.inputs))

    def _unquote_variables(self) -> None:
        """Take a text that is the name of a variable for that variable, if inputs are missing."""
        fewest, _ = input_limits(self.target)
        for constant in tuple(self.constants):
            if len(self.inputs) >= fewest:
                return
            name = constant.value
            if isinstance(name, str) and constant.name is None and name in self.variables:
                self.mistake(f"{name!r} is a variable: write it without quotes", constant.span)
                self.has_wrong_inputs = True
                self.constants.remove(constant)
                self.inputs.append(Variable(name, constant.span))

    # --- settings -------------------------------------------------------------------------------

    def _set(self, name: str, value: Constant, span: Span | None) -> None:
        if name in self.settings:
            self.mistake(f"{self.target.name}: {name!r} is given twice", span)
            return
        self.settings[name] = value
        self.spans[name] = span

    def _constants(self) -> None:
        unnamed = 0
        ports = self.target.settings if isinstance(self.target, Operator) else ()
        takes_all = bool(ports) and ports[0].takes_all_constants
        for constant in self.constants:
            if constant.name is not None:
                self._named_constant(constant, constant.name.lower())
                continue
            if takes_all:
                self._add_to_list(self.known_settings[0], constant)
                continue
            if unnamed < len(self.known_settings):
                self._set(self.known_settings[unnamed], constant.value, constant.span)
            else:
                self._excess_constant(constant)
            unnamed += 1

    def _add_to_list(self, name: str, constant: Setting) -> None:
        earlier = self.settings.get(name, ())
        assert isinstance(earlier, tuple)
        self.settings[name] = (*earlier, constant.value)  # type: ignore[arg-type]  # lists do not nest
        self.spans.setdefault(name, constant.span)

    def _named_constant(self, constant: Setting, name: str) -> None:
        if name in self.known_settings:
            self._set(name, constant.value, constant.span)
        elif name in UNIVERSAL_OPTIONS:
            clause = f"{{{name.upper()}: …}}"
            message = f"{name!r} is a clause, not a setting: write {clause} after the ')'"
            self.mistake(message, constant.name_span)
        else:
            hint = self._hint(name, self.known_settings)
            noun = "parameter" if isinstance(self.target, Plan) else "setting"
            self.mistake(f"{self.target.name} has no {noun} {constant.name!r}{hint}", constant.name_span)

    def _excess_constant(self, constant: Setting) -> None:
        if constant.value in self.variables and isinstance(constant.value, str):
            message = f"{constant.value!r} is a variable: write it without quotes"
        else:
            most = counted(len(self.known_settings), "constant")
            message = f"{self.target.name} takes {most}: {signature(self.target)}"
        self.mistake(message, constant.span)

    def _options(self) -> None:
        """Set the options that belong to the target."""
        for option in self.statement.options:
            name = option.name.lower()
            if name in UNIVERSAL_OPTIONS:
                continue
            if name not in self.known_settings:
                self._unknown_option(option)
            elif self._has_value(option, name):
                self._set(name, _option_value(option), option_span(option))

    def _unknown_option(self, option: Option) -> None:
        noun = "parameter" if isinstance(self.target, Plan) else "option"
        known = [*self.known_settings, *UNIVERSAL_OPTIONS]
        if not option.values or not all(isinstance(value, Word) for value in option.values):
            known = [name for name in known if name not in SIGNAL_CLAUSES]  # those take names only
        hint = self._hint(option.name, [name.upper() for name in known])
        self.mistake(f"{self.target.name} has no {noun} {option.name!r}{hint}", option.span)

    def _hint(self, name: str, known: list[str]) -> str:
        hint = suggestion(name, known)
        self.excused.update(each.lower() for each in known if repr(each) in hint)
        return hint

    def _has_value(self, option: Option, name: str) -> bool:
        if option.values or isinstance(self.target, Plan):
            return True
        port = self.target.setting(name)
        if port is None or port.is_flag:
            return True
        self.mistake(f"option {option.name!r} needs a value: {port.type_name}", option.span)
        self.excused.add(name)  # that it is missing would be the same mistake again
        return False

    # --- inputs and outputs ---------------------------------------------------------------------

    def _inputs_and_required_settings(self) -> None:
        fewest, most = input_limits(self.target)
        missing = self._missing_settings()
        if most is not None and len(self.inputs) > most:
            # A name that nothing produces is rather the constant that was meant than the last one is.
            unknown = [each for each in self.inputs if missing and each.name not in self.variables]
            is_likely = 0 < len(unknown) < len(self.inputs)
            self.has_wrong_inputs = True
            self._excess_input(unknown[0] if is_likely else self.inputs[most], missing)
        elif len(self.inputs) < fewest:
            found = f"not {len(self.inputs)}" if self.inputs else "none is given"
            self.has_wrong_inputs = True
            self.mistake(self._number_message(found), None)
        for name in missing:
            self.excused.add(name)
            self.mistake(f"{self.target.name} needs {name!r}: {signature(self.target)}", None)

    def _excess_input(self, excess: Variable, missing: list[str]) -> None:
        """Report an input too many; the setting that it was probably meant for is no longer missing."""
        is_parameter = excess.name.lower() in self.parameters
        if missing:
            self.excused.add(missing[0])
            place = f"{self.target.name} takes the constant {missing.pop(0)!r} here"
            form = "" if is_parameter else f"; write it in quotes: {signature(self.target)}"
            message = f"{excess.name!r} is a variable, but {place}{form}"
        else:
            message = self._number_message(f"not {len(self.inputs)}")
        hint = f"; the parameter is written ${excess.name}" if is_parameter else ""
        self.mistake(message + hint, excess.span)

    def _missing_settings(self) -> list[str]:
        if isinstance(self.target, Plan):  # whether a call may leave a parameter out is for `check`
            return []
        given = self.settings.keys() | self.excused
        return [port.name for port in self.target.settings if port.required and port.name not in given]

    def _number_message(self, found: str) -> str:
        fewest, most = input_limits(self.target)
        if most is None:
            takes = f"at least {counted(fewest, 'input')}"
        elif fewest == most:
            takes = counted(most, "input")
        else:
            takes = f"{fewest} {'or' if most == fewest + 1 else 'to'} {counted(most, 'input')}"
        return f"{self.target.name} takes {takes}, {found}: {signature(self.target)}"

    def _outputs(self) -> None:
        named = self.statement.outputs
        names = output_names(self.target)
        if len(named) > len(names):
            found = f"{self.target.name} has {counted(len(names), 'output')}, not {len(named)}"
            self.mistake(f"{found}: {signature(self.target)}", named[len(names)].span)

    def _output_names(self) -> tuple[str | None, ...]:
        wanted = len(output_names(self.target))
        named = [None if output.name == "_" else output.name for output in self.statement.outputs]
        return (*named[:wanted], *(None for _ in range(wanted - len(named))))


class _Universal:
    """The options of a statement that do not depend on its operator."""

    def __init__(self, statement: Statement, report: Report) -> None:
        self._statement = statement
        self._report = report
        given: dict[str, Option] = {}
        for option in statement.options:
            name = option.name.lower()
            if name in SIGNAL_CLAUSES:
                self.mistake(f"{name.upper()} takes names of variables", option.span)
            elif name in given and name in UNIVERSAL_OPTIONS:
                self.mistake(f"option {option.name!r} is given twice", option.span)
            given[name] = option
        self.workers = self._positive(given.get("workers"))
        self.buffer = self._positive(given.get("buffer"))
        self.ordered = self._flag(given.get("ordered"))
        self.whole = self._flag(given.get("whole"))

    def mistake(self, message: str, span: Span | None) -> None:
        self._report(Diagnostic(message, span or self._statement.name_span))

    def _positive(self, option: Option | None) -> int | ParameterReference | None:
        if option is None:
            return None
        value = _option_value(option)
        if isinstance(value, ParameterReference):
            return value
        problem = not_positive(value) if option.values else "needs a value: a whole number of at least 1"
        if problem is None and isinstance(value, int):
            return value
        self.mistake(f"{option.name.upper()} {problem}", option_span(option))
        return None

    def _flag(self, option: Option | None) -> bool:
        if option is None:
            return False
        value = _option_value(option)
        if isinstance(value, bool):
            return value
        self.mistake(f"{option.name.upper()} must be true or false, not {value!r}", option_span(option))
        return False


def not_positive(value: object) -> str | None:
    """Return the mistake in a number of workers or rows; None if there is none."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
        return None
    shown = "null" if value is None else repr(value)
    return f"must be a whole number of at least 1, not {shown}"


def _option_value(option: Option) -> Constant:
    values = tuple(value.text if isinstance(value, Word) else value for value in option.values)
    if not values:
        return True
    return values[0] if len(values) == 1 else values  # type: ignore[return-value]  # lists do not nest


def option_span(option: Option) -> Span | None:
    """From the option's first value to its last; the option itself when it has none."""
    spans = [span for span in option.spans if span is not None]
    if not spans:
        return option.span
    return Span(spans[0].source, spans[0].start, spans[-1].end)
