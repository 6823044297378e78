"""Descriptors of operators: everything that is known of one without running it, and its package."""

from __future__ import annotations

import sys
from functools import cache
from importlib.metadata import Distribution, PackageNotFoundError, distribution, packages_distributions
from typing import Any, Literal

import msgspec

from aioflow.authoring.operator import ENTRY_POINT_GROUP, Operator
from aioflow.authoring.setting import SettingPort
from aioflow.config.entry_points import installed
from aioflow.version import __version__

_OWN = "aioflow"


class OperatorInput(msgspec.Struct, frozen=True):
    """An input; a `variadic` one stands for any number."""

    name: str
    description: str
    optional: bool
    variadic: bool


class OperatorSetting(msgspec.Struct, frozen=True):
    """A setting, or, if it is not `required`, an option with its default."""

    name: str
    description: str
    type: str
    required: bool
    default: Any = None


class OperatorReference(msgspec.Struct, frozen=True):
    """An operator. `fires` on its rows as a stream, for each tuple, or at the end of its input.

    `package` is the distribution that provides it, with its version and author; they are null for a module
    that is not installed and does not tell them. `entry_point` is the function: `module:name`.
    """

    name: str
    family: str
    form: str
    summary: str
    description: str
    inputs: list[OperatorInput]
    settings: list[OperatorSetting]
    outputs: list[str]
    fires: Literal["stream", "tuple", "end"]
    effects: Literal["never", "always", "by settings"]
    examples: list[str]
    entry_point: str
    package: str | None
    version: str | None
    author: str | None


def form(described: Operator) -> str:
    """Return the form of a statement with the operator: `join (left, right, where : out)`."""
    inputs = [port.name + (", …" if port.variadic else "") for port in described.inputs if not port.optional]
    inputs += [
        f"{port.name}, …" if port.variadic else f"[{port.name}]" for port in described.inputs if port.optional
    ]
    settings = [port.name for port in described.settings if port.required]
    outputs = ", ".join(described.outputs)
    return f"{described.name} ({', '.join(inputs + settings)} : {outputs})"


def summary(described: Operator) -> str:
    """Return the first paragraph of the documentation, on one line."""
    return " ".join(described.doc.split("\n\n")[0].split())


def operator_reference(described: Operator) -> OperatorReference:
    """Return the descriptor of an operator."""
    inputs = [OperatorInput(each.name, each.doc, each.optional, each.variadic) for each in described.inputs]
    function = described.function
    module = function.__module__
    provider = _provider(module)
    return OperatorReference(
        *(described.name, described.family, form(described), summary(described), described.doc, inputs),
        *([_setting(each) for each in described.settings], list(described.outputs), described.fires({})),
        effects="by settings" if callable(described.effects) else "always" if described.effects else "never",
        examples=list(described.examples),
        entry_point=f"{module}:{function.__qualname__}",
        package=provider.package,
        version=provider.version,
        author=provider.author,
    )


def _setting(port: SettingPort) -> OperatorSetting:
    name = port.name if port.required else port.name.upper()
    kind = "flag" if port.is_flag else port.type_name
    return OperatorSetting(name, port.doc, kind, port.required, _default(port.default))


def _default(value: Any) -> Any:
    """Return a default as JSON has it; kinds of settings may be classes of their own."""
    if value is None or isinstance(value, bool):
        return value
    for kind in (int, float):
        if isinstance(value, kind):
            return kind(value)
    return str(value)


# --- the package --------------------------------------------------------------------------------


class Provider(msgspec.Struct, frozen=True):
    """The distribution package of a module. Another module may tell version and author itself."""

    package: str | None = None
    version: str | None = None
    author: str | None = None


@cache
def _provider(module: str) -> Provider:
    if module.partition(".")[0] == _OWN:
        own = _distribution(_OWN)
        return Provider(_OWN, __version__, None if own is None else _author(own))
    found = _entry_point_distribution(module) or _listed_distribution(module)
    if found is not None:
        return Provider(found.metadata["Name"], found.version, _author(found))
    loaded = sys.modules.get(module)
    version, author = (getattr(loaded, name, None) for name in ("__version__", "__author__"))
    return Provider(None, _text(version), _text(author))


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _entry_point_distribution(module: str) -> Distribution | None:
    """Return the distribution with an entry point that names the module, or a package around it."""
    for entry_point in installed(ENTRY_POINT_GROUP):
        if f"{module}.".startswith(f"{entry_point.module}.") and entry_point.dist is not None:
            return entry_point.dist
    return None


def _listed_distribution(module: str) -> Distribution | None:
    names = _listed().get(module.partition(".")[0], ())
    return _distribution(names[0]) if names else None


@cache
def _listed() -> dict[str, list[str]]:
    return dict(packages_distributions())


def _distribution(name: str) -> Distribution | None:
    try:
        return distribution(name)
    except PackageNotFoundError:
        return None


def _author(found: Distribution) -> str | None:
    """Return the author that the metadata names, without an address."""
    metadata = found.metadata
    author = metadata["Author"] or (metadata["Author-email"] or "").partition("<")[0].strip(' "')
    return author or metadata["Maintainer"] or None
