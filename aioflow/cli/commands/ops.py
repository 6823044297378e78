"""`aioflow ops`: lists the operators and shows their reference, from signatures and docstrings."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import msgspec
import typer

from aioflow.authoring.descriptor import form, operator_reference, summary
from aioflow.authoring.operator import InputPort, Operator, registry
from aioflow.authoring.setting import SettingPort
from aioflow.cli.config import effective_settings
from aioflow.cli.exit import guarded, has_colours
from aioflow.cli.options import Modules
from aioflow.cli.program import load_modules
from aioflow.errors import InputError, suggestion

_FIRINGS = {
    "stream": "on rows as they come",
    "tuple": "once for each tuple",
    "end": "once, at the end of its input",
}
_COMMON_OPTIONS = (
    ("ERRORS: v", "`v` takes the tuples that failed, with `error`, `error-kind` and `attempts`"),
    ("ERRORS: skip", "tuples that failed are dropped and counted"),
    ("WORKERS: n", "most firings of this statement at once"),
    ("ORDERED", "results leave in the order of their inputs"),
    ("BUFFER: n", "most rows that wait for each reader of its outputs"),
    ("WHOLE", "the results count as whole, whatever became of the inputs"),
    ("WAIT: s", "it fires only after signal or variable `s`"),
    ("ENABLE: s", "sends signal `s` after its first success"),
    ("DONE: s", "sends signal `s` when it has ended well"),
)


@guarded
def ops(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="An operator, for its reference.")
    ] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="All references as a Markdown page.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Descriptors as JSON: of all operators, or of one.")
    ] = False,
    modules: Modules = None,
) -> None:
    """List the operators, or show the reference of one."""
    if markdown and as_json:
        raise InputError("--markdown and --json are two forms; choose one")
    settings = effective_settings({"ops": modules})
    show_operators(name, markdown=markdown, as_json=as_json, modules=settings.ops)


def show_operators(name: str | None, *, markdown: bool, as_json: bool, modules: Sequence[str]) -> None:
    """List all operators, or print the reference of one, or all references as Markdown or JSON."""
    load_modules(modules)
    if name is not None:
        found = registry.get(name)
        if found is None:
            raise InputError(f"no operator {name!r}{suggestion(name, registry.names())}")
        if as_json:
            print(_json(operator_reference(found)))
        else:
            print("\n".join(_markdown(found, "##") if markdown else _reference(found)))
    elif as_json:
        print(_json([operator_reference(each) for each in registry]))
    elif markdown:
        print("\n".join(_page()))
    else:
        print("\n".join(_list()))


def by_family() -> dict[str, list[Operator]]:
    """Return all operators by family, which is the module that they stand in."""
    families: dict[str, list[Operator]] = defaultdict(list)
    for described in registry:
        families[described.family].append(described)
    return dict(sorted(families.items()))


def _json(content: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(content), indent=2).decode()


# --- plain text ---------------------------------------------------------------------------------


def _list() -> Iterator[str]:
    bold, plain = ("\x1b[1m", "\x1b[0m") if has_colours(sys.stdout) else ("", "")
    width = max((len(described.name) for described in registry), default=0)
    for number, (family, members) in enumerate(by_family().items()):
        if number:
            yield ""
        yield f"{bold}{family}{plain}"
        for described in members:
            yield f"  {described.name:<{width}}  {summary(described)}"


def _reference(described: Operator) -> Iterator[str]:
    bold, plain = ("\x1b[1m", "\x1b[0m") if has_colours(sys.stdout) else ("", "")
    yield f"{bold}{form(described)}{plain}"
    yield ""
    yield described.doc
    for title, entries in _sections(described):
        yield ""
        yield f"{bold}{title}{plain}"
        width = max(len(entry) for entry, _ in entries)
        for entry, text in entries:
            yield f"  {entry:<{width}}  {text}".rstrip()
    if described.examples:
        yield ""
        yield f"{bold}Example{'s' if len(described.examples) > 1 else ''}{plain}"
        yield from (f"  {example}" for example in described.examples)


def _sections(described: Operator) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    if described.inputs:
        whole = described.whole_inputs({})
        yield (
            "Inputs",
            [(port.name, _input_text(port, place in whole)) for place, port in enumerate(described.inputs)],
        )
    required = [port for port in described.settings if port.required]
    options = [port for port in described.settings if not port.required]
    if required:
        yield "Settings", [(port.name, _setting_text(port)) for port in required]
    if options:
        yield "Options", [(_option(port), _setting_text(port)) for port in options]
    if len(described.outputs) > 1:
        yield "Outputs", [(name, "") for name in described.outputs]
    yield "Fires", [(_FIRINGS[described.fires({})], _effects_text(described))]


def _input_text(port: InputPort, needs_whole: bool) -> str:
    optional = "may be left out" if port.optional else ""
    doubt = "results are doubtful where it is partial" if needs_whole else ""
    remarks = "; ".join(filter(None, [optional, doubt]))
    return f"{port.doc} ({remarks})".strip() if remarks else port.doc


def _option(port: SettingPort) -> str:
    return port.name.upper() if port.is_flag else f"{port.name.upper()}: …"


def _setting_text(port: SettingPort) -> str:
    kind = "" if port.is_flag else port.type_name
    is_shown = not port.required and not port.is_flag and port.default not in (None, "", ())
    default = f", default {port.default}" if is_shown else ""
    described = f"({kind}{default})" if kind else ""
    return " ".join(filter(None, [port.doc, described]))


def _effects_text(described: Operator) -> str:
    if callable(described.effects):
        return "with effects, depending on its settings"
    return "with effects" if described.effects else ""


# --- Markdown -----------------------------------------------------------------------------------


def _page() -> Iterator[str]:
    yield "# Operators"
    yield ""
    yield "<!-- Written by `make docs` from the operators themselves: edit their docstrings instead. -->"
    yield ""
    yield "| family | operators |"
    yield "|---|---|"
    for family, members in by_family().items():
        yield f"| {family} | {', '.join(f'[{each.name}](#{each.name})' for each in members)} |"
    yield ""
    yield "Clauses that every statement takes:"
    yield ""
    yield "| clause | meaning |"
    yield "|---|---|"
    yield from (f"| `{clause}` | {meaning} |" for clause, meaning in _COMMON_OPTIONS)
    for family, members in by_family().items():
        yield ""
        yield f"## {family}"
        for described in members:
            yield ""
            yield from _markdown(described, "###")


def _markdown(described: Operator, heading: str) -> Iterator[str]:
    yield f"{heading} {described.name}"
    yield ""
    yield f"    {form(described)}"
    yield ""
    yield described.doc
    for title, entries in _sections(described):
        yield ""
        if title == "Fires":
            yield f"Fires {', '.join(filter(None, entries[0]))}."
            continue
        yield f"{title}:"
        yield ""
        yield from (f"- `{entry}`" + (f": {text}" if text else "") for entry, text in entries)
    if described.examples:
        yield ""
        yield "```"
        yield from described.examples
        yield "```"
