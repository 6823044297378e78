"""Operators: a decorated async generator becomes an operator that plans can name.

The docstring of the function documents the operator. Its first part is the text; `Arguments:` and `Example:`
describe inputs and settings, and show a statement:

    Keep the tuples for which a condition holds.

    Arguments:
        where: the condition.

    Example:
        select (houses, "price < 550000" : cheap)
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Callable,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import (
    Any,
    Literal,
    TypeAlias,
    TypeVar,
    cast,
    get_args,
    get_type_hints,
    overload,
)

import msgspec

from aioflow.authoring.context import Context
from aioflow.authoring.setting import SettingPort
from aioflow.config.entry_points import installed
from aioflow.errors import AioflowError, InputError, SettingError
from aioflow.plan import Program
from aioflow.relation import Batch, Row, Schema
from aioflow.runtime.stream import Stream

_HEADING = re.compile(r"^(Arguments|Examples?):$")
_ARGUMENT = re.compile(r"^(\w+): *(.*)$")


def parse_docstring(docstring: str) -> tuple[str, dict[str, str], list[str]]:
    """Return the text, the descriptions by argument name, and the examples (one a line)."""
    text: list[str] = []
    arguments: dict[str, str] = {}
    examples: list[str] = []
    section, latest = "", ""
    for line in inspect.cleandoc(docstring).splitlines():
        heading = _HEADING.match(line)
        if heading:
            section = heading[1]
        elif line and not line.startswith(" ") and section:
            section = ""
            text.append(line)
        elif section == "Arguments" and line.strip():
            argument = _ARGUMENT.match(line.strip())
            if argument and not line.startswith("     "):
                latest = argument[1].rstrip("_").lower()
                arguments[latest] = argument[2]
            elif latest:
                arguments[latest] += " " + line.strip()
        elif section.startswith("Example") and line.strip():
            examples.append(line.strip())
        elif not section:
            text.append(line)
    return "\n".join(text).strip(), arguments, examples


# As authors write it: an async generator function, which may be annotated as an AsyncIterator.
OperatorFunction: TypeAlias = Callable[..., AsyncIterator[Any]]
Settings: TypeAlias = Mapping[str, Any]
# Schemas of the inputs (None where one is not known) and the bound settings -> schema of each output.
SchemaRule: TypeAlias = Callable[[Sequence[Schema | None], Settings], Schema | Sequence[Schema | None] | None]
# Names of a statement's inputs and of its outputs (None if its readers act on more than tuples, or it has no
# reader), bound settings -> warnings.
Lint: TypeAlias = Callable[[Sequence[str], Sequence[str | None], Settings], Iterable[str]]
BatchFunction: TypeAlias = Callable[[Sequence[Row]], Batch]
# Bound settings -> the statement's use of a store; None if it uses none with these settings.
StoreRule: TypeAlias = Callable[[Settings], "StoreUse | None"]
# Bound settings and the run's services -> problems that keep the statement from running.
Requirement: TypeAlias = Callable[[Settings, Any], Iterable[str]]
Trait: TypeAlias = Literal["effects", "depends_on_arrival", "endless", "ends_early", "outside"]
Firing: TypeAlias = Literal["stream", "tuple", "end"]
# Places of inputs, or bound settings -> these.
Places: TypeAlias = Sequence[int] | Callable[[Settings], Sequence[int]]


class StoreUse(msgspec.Struct, frozen=True):
    """The use of a store, such as a database, by a statement: `name` is None for the default store.

    Writes are committed when the run has ended successfully, and later reads of the same run see them. A
    "compare" both reads and writes. A "post" (a message) is never read. An "update" is done at once, and
    other writers wait from then to the end. A statement that acts on a relation as a `whole` does so when its
    input has ended. `table` is the one that is written with the tuples of the first input, if it is known; a
    statement that `evolves` it may add attributes to those of others.
    """

    name: str | None
    access: Literal["read", "compare", "write", "post", "update"]
    whole: bool = False
    table: str | None = None
    evolves: bool = False


class InputPort(msgspec.Struct, frozen=True):
    """An input of an operator: a parameter annotated `Stream`."""

    name: str
    variadic: bool = False
    optional: bool = False
    doc: str = ""


@dataclass(frozen=True)
class Operator:
    """A description of an operator, made from its signature, docstring and decorator."""

    name: str
    function: Callable[..., AsyncGenerator[Any, None]] = field(repr=False)
    inputs: tuple[InputPort, ...]
    settings: tuple[SettingPort, ...]
    outputs: tuple[str, ...]
    schema: SchemaRule | None = field(default=None, repr=False)
    firing: Firing | Callable[[Settings], Firing] = "stream"
    grouped_by: str | None = None
    effects: bool | Callable[[Settings], bool] = False
    flattens: Callable[[Settings], Hashable | None] | None = field(default=None, repr=False)
    opens_late: bool = False
    batchwise: Callable[[Settings], BatchFunction] | None = field(default=None, repr=False)
    reads: Callable[[Settings], frozenset[str] | None] | None = field(default=None, repr=False)
    depends_on_arrival: bool | Callable[[Settings], bool] = False
    endless: bool | Callable[[Settings], bool] = False
    ends_early: bool | Callable[[Settings], bool] = False
    outside: bool | Callable[[Settings], bool] = False
    blocking_input: int | None = None
    exclusive_outputs: bool = False
    needs_whole: Places = ()
    orders: bool = False
    lint: Lint | None = field(default=None, repr=False)
    emits_to: str | None = None
    input_names: str | None = None
    store: StoreRule | None = field(default=None, repr=False)
    requires: Requirement | None = field(default=None, repr=False)
    takes_context: bool = False
    family: str = ""
    doc: str = ""
    examples: tuple[str, ...] = ()
    # For a statement of a program, the program whose items settings may name.
    program: Program | None = field(default=None, repr=False, compare=False)

    @property
    def key(self) -> str:
        return self.name.lower()

    def setting(self, name: str) -> SettingPort | None:
        folded = name.lower()
        return next((port for port in self.settings if port.name == folded), None)

    def within(self, program: Program) -> Operator:
        """Return this operator for the statements of a program, if one of its settings names an item."""
        return replace(self, program=program) if any(port.names_item for port in self.settings) else self

    def bind(self, values: Mapping[str, Any], inputs: Sequence[Schema | None]) -> dict[str, Any]:
        """Return all settings, by parameter name; raise a SettingError for the first that is wrong."""
        bound = {}
        for port in self.settings:
            if port.name in values:
                bound[port.name] = port.bind(values[port.name], inputs, self.program)
            else:
                bound[port.name] = port.default_for(inputs)
        return bound

    def is_batchwise(self, inputs: int) -> bool:
        """Return whether a statement with so many inputs is a function from batch to batch."""
        return self.batchwise is not None and inputs == len(self.outputs) == 1

    def fails_by_tuple(self, settings: Settings, inputs: int) -> bool:
        """Return whether tuples fail one by one, and not the statement on its whole input."""
        return self.is_batchwise(inputs) or self.fires(settings) == "tuple"

    def fires(self, settings: Settings) -> Firing:
        """Return the firing of a statement with these settings."""
        if callable(self.firing):
            return self.firing(settings)
        grouped = self.grouped_by is not None and settings.get(self.grouped_by) is not None
        return "stream" if grouped else self.firing

    def arguments(self, bound: Settings) -> dict[str, Any]:
        """Return bound settings by the names of the function's parameters."""
        return {port.parameter or port.name: bound[port.name] for port in self.settings}

    def output_schemas(self, inputs: Sequence[Schema | None], bound: Settings) -> tuple[Schema | None, ...]:
        """Return a schema for each output; None if it is known only in the run."""
        if self.schema is None:
            return (None,) * len(self.outputs)
        result = self.schema(inputs, bound)
        if result is None or isinstance(result, Schema):
            return (result,) * len(self.outputs)
        return tuple(result)

    def whole_inputs(self, settings: Settings) -> frozenset[int]:
        """Return the places of inputs in which a missing row makes a row, with these settings."""
        if not callable(self.needs_whole):
            return frozenset(self.needs_whole)
        try:
            return frozenset(self.needs_whole(self.bind(settings, (None,) * len(self.inputs))))
        except SettingError:  # only the schemas of a run can bind them
            return frozenset(range(len(self.inputs)))

    def has(self, trait: Trait, bound: Settings) -> bool:
        """Return whether a statement with these settings has a trait that may depend on them."""
        answer = getattr(self, trait)
        return bool(answer(bound)) if callable(answer) else bool(answer)


# --- schema rules -------------------------------------------------------------------------------


def same_as_input(inputs: Sequence[Schema | None], settings: Settings) -> Schema | None:
    """A schema rule: the output has the attributes of the first input."""
    return inputs[0]


def attributes(**types: str | None) -> SchemaRule:
    """Return a rule for an output with just these attributes: `attributes(title="char", n="number")`."""
    schema = Schema.of(**types)
    return lambda inputs, settings: schema


def adds(**types: str | None) -> SchemaRule:
    """Return a rule for an output with the first input's attributes and these (a dependent join)."""
    schema = Schema.of(**types)
    return lambda inputs, settings: inputs[0].add(schema) if inputs[0] is not None else None


# --- the decorator ------------------------------------------------------------------------------

_Function = TypeVar("_Function", bound=OperatorFunction)


@overload
def operator(function: _Function, /) -> _Function: ...
@overload
def operator(
    *,
    name: str | None = None,
    outputs: Sequence[str] = ("out",),
    schema: SchemaRule | None = None,
    firing: Firing | Callable[[Settings], Firing] = "stream",
    grouped_by: str | None = None,
    effects: bool | Callable[[Settings], bool] = False,
    flattens: Callable[[Settings], Hashable | None] | None = None,
    opens_late: bool = False,
    batchwise: Callable[[Settings], BatchFunction] | None = None,
    reads: Callable[[Settings], frozenset[str] | None] | None = None,
    depends_on_arrival: bool | Callable[[Settings], bool] = False,
    endless: bool | Callable[[Settings], bool] = False,
    ends_early: bool | Callable[[Settings], bool] = False,
    outside: bool | Callable[[Settings], bool] = False,
    blocking_input: int | None = None,
    exclusive_outputs: bool = False,
    needs_whole: Places = (),
    orders: bool = False,
    lint: Lint | None = None,
    emits_to: str | None = None,
    input_names: str | None = None,
    store: StoreRule | None = None,
    requires: Requirement | None = None,
) -> Callable[[_Function], _Function]: ...
def operator(function: Any = None, /, **traits: Any) -> Any:
    """Make an async generator an operator that plans can name.

    Parameters annotated `Stream` are its inputs, keyword-only ones its settings, one named `context`
    gets the Context. It yields rows (tuples), batches (lists of rows), mappings, or, with several
    outputs, `To("name", …)`.

    `schema` is a rule for the attributes of outputs; without it the first mapping determines them. `firing`
    is "stream" if it works on tuples as they come, "tuple" if each tuple is a firing of its own (and it
    reports failures with `context.fail`), "end" if it fires once at the end of its input, even an empty one;
    `grouped_by` names a setting with which it fires once for each group. `firing` may also be a function that
    chooses one of these by the settings of a statement (by name, not all of them). `effects` marks an
    operator that changes the world. `flattens` returns a key: a statement that reads another with the same
    key could as well read the other's inputs. `opens_late` lets it start before the schemas of inputs after
    the first are known. `blocking_input` is the position of the input that is read to its end before there
    are results. `exclusive_outputs` says that one of its two outputs always ends dead. `needs_whole` are the
    positions of inputs in which a missing row makes a row, or a wrong one, as in the second input of minus:
    if rows are missing there, the results are doubtful. `orders` says that results have an order of their
    own, so that the first rows alone may be wrong if any are missing. `lint` returns warnings about the use
    in a plan.

    `batchwise` returns, for bound settings, a function from a batch to a batch that does the same without
    state. If there is one input and one output, it is called in place of the generator: it needs no task, and
    tuples that fail are found by calling it for single ones. `reads` returns the attributes of its input that
    it needs, None for all: the operator that produces them can ask with `context.reads_attribute`, and leave
    out the others.

    `endless` marks an operator that never ends, `ends_early` one that may end before its input does,
    `outside` one that waits on the outside world for each tuple. `emits_to` is the setting that names an
    output of the run, which the plan must not declare itself. `input_names` is the setting that has the names
    of the statement's inputs, unless the plan sets it. `store` returns the StoreUse of a statement that reads
    or writes a store; a run writes to one only. `requires` returns, for bound settings and the run's
    services, the problems that keep it from running.
    """
    if function is None:
        return lambda decorated: _register(decorated, **traits)
    return _register(function)


def describe(function: OperatorFunction, **traits: Any) -> Operator:
    """Return the Operator that a function's signature, docstring and these traits define."""
    hints = get_type_hints(function)
    text, documented, examples = parse_docstring(function.__doc__ or "")
    inputs, settings = [], []
    for parameter in inspect.signature(function).parameters.values():
        annotation = hints.get(parameter.name)
        if annotation is Context:
            continue
        name = parameter.name.rstrip("_").lower()
        if _is_stream(annotation):
            variadic = parameter.kind is parameter.VAR_POSITIONAL
            optional = variadic or parameter.default is not parameter.empty
            inputs.append(InputPort(name, variadic, optional, documented.get(name, "")))
        elif parameter.kind is parameter.KEYWORD_ONLY:
            required = parameter.default is parameter.empty
            default = None if required else parameter.default
            doc = documented.get(name, "")
            settings.append(SettingPort(name, annotation, default, required, doc, parameter.name))
        else:
            raise TypeError(
                f"operator {function.__name__!r}: parameter {parameter.name!r} must be annotated Stream "
                "(an input) or be keyword-only (a setting)"
            )
    name = traits.pop("name", None) or function.__name__
    outputs = tuple(traits.pop("outputs", ("out",)))
    family = function.__module__.rpartition(".")[2]
    return Operator(
        name,
        cast("Callable[..., AsyncGenerator[Any, None]]", function),  # `operator` checks that it is one
        tuple(inputs),
        tuple(settings),
        outputs,
        takes_context=Context in hints.values(),
        family=family,
        doc=text,
        examples=tuple(examples),
        **traits,
    )


def _register(function: _Function, **traits: Any) -> _Function:
    is_generator = inspect.isasyncgenfunction(function)
    if not is_generator:
        raise TypeError(f"operator {function.__name__!r} must be an async generator (async def with yield)")
    description = describe(function, **traits)
    registry.add(description)
    function.operator = description  # type: ignore[attr-defined]  # lets tests and docs find it
    return function


def _is_stream(annotation: Any) -> bool:
    return annotation is Stream or Stream in get_args(annotation)


class Registry:
    """Operators by name. Each Engine starts from the process-wide one, `registry`."""

    def __init__(self, operators: Sequence[Operator] = ()) -> None:
        self._operators: dict[str, Operator] = {described.key: described for described in operators}
        self._expected: dict[str, str] = {}  # the modules of operators that were not used yet

    def expect(self, module: str, *names: str) -> None:
        """Declare the operators of a module, which is imported when one of them is used."""
        self._expected.update(dict.fromkeys(names, module))

    def add(self, described: Operator) -> None:
        if self._expected.get(described.key) == described.function.__module__:
            del self._expected[described.key]
        known = self.get(described.name)
        if known is not None and known.function.__module__ != described.function.__module__:
            raise TypeError(
                f"operator {described.name!r} is defined in {known.function.__module__} "
                f"and in {described.function.__module__}"
            )
        self._operators[described.key] = described

    def get(self, name: str) -> Operator | None:
        key = name.lower()
        if key in self._expected:
            import_module(self._expected[key])
        return self._operators.get(key)

    def names(self) -> list[str]:
        return sorted({*self._operators, *self._expected})

    def __iter__(self) -> Iterator[Operator]:
        found = map(self.get, self.names())
        return iter([described for described in found if described is not None])


registry = Registry()


ENTRY_POINT_GROUP = "aioflow.operators"


def load_operators(modules: Iterable[str] = ()) -> Registry:
    """Return the operators of the library, of installed packages and of these modules or files."""
    _load_installed()
    for module in modules:
        _load_module(module)
    return registry


@cache
def _load_installed() -> None:
    import_module("aioflow.operators")
    for entry_point in installed(ENTRY_POINT_GROUP):
        try:
            entry_point.load()
        except Exception as error:
            raise InputError(
                f"operators of the installed package {entry_point.value!r} cannot be loaded: "
                f"{type(error).__name__}: {error}"
            ) from error


def _load_module(name: str) -> None:
    """Load a file or a module; one in the current folder wins over a module of that name elsewhere."""
    path = Path(name) if name.endswith(".py") else Path.cwd() / (name.replace(".", "/") + ".py")
    folder = str(path.resolve().parent if name.endswith(".py") else Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        if path.exists():
            _load_file(path.resolve())
        elif name.endswith(".py"):
            raise InputError(f"there is no file {name!r} with operators")
        else:
            import_module(name)
    except AioflowError:
        raise
    except ModuleNotFoundError as error:
        if error.name != name:
            message = f"module {name!r} with operators needs {error.name!r}, which is not installed"
            raise InputError(message) from error
        raise InputError(f"there is no module {name!r} with operators (looked in {folder} too)") from None
    except Exception as error:
        message = f"module {name!r} with operators cannot be loaded: {type(error).__name__}: {error}"
        raise InputError(message) from error


def _load_file(path: Path) -> None:
    """Run a file as a module once, even if another module has its name."""
    loaded = sys.modules.get(path.stem)
    if loaded is not None and getattr(loaded, "__file__", None) == str(path):
        return
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    if loaded is None:
        sys.modules[path.stem] = module
    spec.loader.exec_module(module)
