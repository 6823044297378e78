"""The standard library's `dataclass`, quick to import: a method is written when it is called, and `__init__`
when it is called often.

The standard library compiles up to six methods for each class, which takes a millisecond. A program imports
some two hundred of these classes at its start, calls few of their methods, and has few objects of most.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls=None, /, *, eq=True, frozen=False, slots=False):
        """As the standard library's; of its options those that are used here."""
        if cls is None:
            return lambda cls: dataclass(cls, eq=eq, frozen=frozen, slots=slots)
        # Else one is made of the signature, which takes longer than all the rest.
        cls.__doc__ = cls.__doc__ or cls.__name__
        # It finds the fields, and writes no method.
        cls = dataclasses.dataclass(cls, init=False, repr=False, eq=False, slots=slots)
        writers = {"__repr__": _write_repr}
        if eq:
            writers["__eq__"] = _write_eq
            writers["__hash__"] = _write_hash if frozen else None
        own = set(vars(cls))
        if "__eq__" in own and cls.__hash__ is None:
            own.discard("__hash__")  # Python's own doing: who defines the one loses the other
        for name in writers.keys() - own:
            setattr(cls, name, writers[name] and _late(cls, name, writers[name]))
        if "__init__" not in own:
            cls.__init__ = _patient_init(cls)
        if frozen:
            _freeze(cls)
        if frozen and slots:
            # Copies and pickles would set the attributes one by one.
            cls.__getstate__, cls.__setstate__ = _get_state, _set_state
        return cls


_Class: TypeAlias = type[Any]
_Method: TypeAlias = Callable[..., Any]


def _late(cls: _Class, name: str, write: Callable[[_Class], _Method]) -> _Method:
    """A method that writes the one which takes its place, when it is first called."""

    def method(self: Any, *arguments: Any, **keywords: Any) -> Any:
        written = write(cls)
        setattr(cls, name, written)
        return written(self, *arguments, **keywords)

    return method


# To compile an __init__ takes as long as to do without for so many objects.
_OBJECTS_WITHOUT = 16


def _patient_init(cls: _Class) -> _Method:
    """An __init__ that gives way to a compiled one, which also says what is wrong with arguments."""
    left = _OBJECTS_WITHOUT

    def __init__(self: Any, *arguments: Any, **keywords: Any) -> None:  # noqa: N807  # a method of the class
        nonlocal left
        left -= 1
        values = _values(cls, arguments, keywords) if left > 0 else None
        if values is None:
            written = _write_init(cls)
            cls.__init__ = written
            written(self, *arguments, **keywords)
            return
        for name, value in values.items():
            object.__setattr__(self, name, value)
        if hasattr(cls, "__post_init__"):
            self.__post_init__()

    return __init__


def _values(cls: _Class, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> dict[str, Any] | None:
    """The attributes of an object; None where the arguments do not fit."""
    values: dict[str, Any] = {}
    given, used = iter(arguments), 0
    for field in dataclasses.fields(cls):
        name = field.name
        if field.init and not field.kw_only and (value := next(given, given)) is not given:
            values[name] = value
        elif field.init and name in keywords:
            values[name] = keywords[name]
            used += 1
        elif field.default_factory is not dataclasses.MISSING:
            values[name] = field.default_factory()
        elif field.default is not dataclasses.MISSING:
            if field.init:
                values[name] = field.default
        elif field.init:
            return None
    return values if used == len(keywords) and next(given, given) is given else None


def _write_init(cls: _Class) -> _Method:
    set_attribute: Any = object.__setattr__
    # What a frozen class refuses, its own __init__ may do.
    assign = "self.{} = {}" if cls.__setattr__ is set_attribute else "__set(self, '{}', {})"
    names: dict[str, Any] = {"__set": set_attribute, "__missing": dataclasses.MISSING}
    positional, by_name, lines = ["self"], ["*"], []
    for field in dataclasses.fields(cls):
        value, default = field.name, ""
        if field.default_factory is not dataclasses.MISSING:
            names[f"__make_{field.name}"] = field.default_factory
            value, default = f"__make_{value}() if {value} is __missing else {value}", " = __missing"
        elif field.default is not dataclasses.MISSING:
            names[f"__default_{field.name}"] = field.default
            default = f" = __default_{field.name}"
        if field.init:
            (by_name if field.kw_only else positional).append(field.name + default)
        elif field.default_factory is not dataclasses.MISSING:
            value = f"__make_{field.name}()"
        else:
            continue
        lines.append(assign.format(field.name, value))
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    arguments = positional + (by_name if len(by_name) > 1 else [])
    text = f"def __init__({', '.join(arguments)}):\n    " + "\n    ".join(lines or ["pass"])
    exec(text, names)
    names["__init__"].__qualname__ = f"{cls.__qualname__}.__init__"
    written: _Method = names["__init__"]
    return written


def _write_repr(cls: _Class) -> _Method:
    shown = [field.name for field in dataclasses.fields(cls) if field.repr]

    @recursive_repr()
    def __repr__(self: Any) -> str:  # noqa: N807  # a method of the class
        values = (f"{name}={getattr(self, name)!r}" for name in shown)
        return f"{type(self).__qualname__}({', '.join(values)})"

    return __repr__


def _write_eq(cls: _Class) -> _Method:
    values_of = _getter([field.name for field in dataclasses.fields(cls) if field.compare])

    def __eq__(self: Any, other: object) -> Any:  # noqa: N807  # a method of the class
        if other.__class__ is not self.__class__:
            return NotImplemented
        return values_of(self) == values_of(other)

    return __eq__


def _write_hash(cls: _Class) -> _Method:
    fields = dataclasses.fields(cls)
    hashed = (field for field in fields if (field.compare if field.hash is None else field.hash))
    values_of = _getter([field.name for field in hashed])
    return lambda self: hash(values_of(self))


def _getter(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    """Gives these attributes as a tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda value: tuple(getattr(value, name) for name in names)


def _freeze(cls: _Class) -> None:
    # As the standard library's: a subclass may have attributes of its own.
    def __setattr__(self: Any, name: str, value: object) -> None:  # noqa: N807  # a method of the class
        if type(self) is cls or name in cls.__dataclass_fields__:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def __delattr__(self: Any, name: str) -> None:  # noqa: N807  # a method of the class
        if type(self) is cls or name in cls.__dataclass_fields__:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    for method in (__setattr__, __delattr__):
        setattr(cls, method.__name__, method)


def _get_state(self: Any) -> list[Any]:
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)
