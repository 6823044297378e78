"""`aioflow wrapper list`: lists the wrappers of plan files; finds the file that defines a wrapper."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Annotated

import typer

from aioflow.cli.config import effective_settings
from aioflow.cli.exit import guarded, os_error_text, print_message
from aioflow.cli.options import Modules
from aioflow.cli.output.colour import Colour, print_json
from aioflow.cli.pages import wrapper_of
from aioflow.cli.program import load_modules
from aioflow.errors import Diagnostic, InputError, PlanError, suggestion
from aioflow.language import load
from aioflow.language.loader import SUFFIX
from aioflow.plan import Program
from aioflow.wrappers.definition import WrapperInput
from aioflow.wrappers.python import PythonWrapper, python_wrapper, python_wrapper_names
from aioflow.wrappers.wrapper_item import AnyWrapper

_DEFINED = re.compile(r"^[ \t]*WRAPPER\s+([^\W\d][\w-]*)", re.MULTILINE | re.IGNORECASE)


@guarded
def wrapper_list(
    plan_path: Annotated[
        str | None, typer.Argument(metavar="PLAN", help="A plan file; without one, all of this folder.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object for each wrapper.")] = False,
    ops: Modules = None,
) -> None:
    """List the wrappers of a plan file, or of those in this folder: inputs, request and fields."""
    list_wrappers(plan_path, as_json=json, modules=effective_settings({"ops": ops}, plan_path).ops)


def load_wrappers(path: str) -> Program:
    """Load a file with all that it uses; unlike a program that is run, it need not have a plan."""
    return load(path, any_plan=True)


def file_of(name: str) -> str:
    """Return the one plan file of the current folder that defines a wrapper."""
    defined = _defined_here()
    files = [file for file, names in defined.items() if name.lower() in names]
    if len(files) == 1:
        return files[0]
    if files:
        raise InputError(f"wrapper {name!r} stands in {' and in '.join(files)}: say which, as PLAN NAME")
    registered = python_wrapper(name)
    if registered is not None:
        raise in_python(registered)
    known = [*chain.from_iterable(defined.values()), *python_wrapper_names()]
    near = suggestion(name, known) or "; name the file before it, as PLAN NAME"
    raise InputError(f"no plan file of this folder defines a wrapper {name!r}{near}")


def in_python(wrapper: PythonWrapper) -> InputError:
    """Return the error that a wrapper written in Python cannot be tried on a page."""
    return InputError(
        f"wrapper {wrapper.name!r} is written in Python ({_place(wrapper)}) and fetches its pages itself: "
        "run a plan that uses it instead"
    )


def _place(wrapper: PythonWrapper) -> str:
    return f"{wrapper.call.__module__}.{wrapper.call.__qualname__}"


def _defined_here() -> dict[str, list[str]]:
    """Return the names of wrappers, in lower case, by plan file of the current folder."""
    found = {}
    for file in sorted(Path().glob(f"*{SUFFIX}")):
        try:
            text = file.read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            print_message("warning", f"cannot read {os_error_text(error)}")
            continue
        found[file.name] = list(dict.fromkeys(name.lower() for name in _DEFINED.findall(text)))
    return found


def find(name: str, program: Program) -> AnyWrapper:
    """Return a wrapper of a program, or one that is registered in Python, if it has no mistakes."""
    registered = python_wrapper(name)
    if program.item("wrapper", name) is None and registered is not None:
        return registered
    return wrapper_of(program, name)


# --- wrapper list -------------------------------------------------------------------------------


def list_wrappers(path: str | None, *, as_json: bool, modules: Sequence[str]) -> None:
    """Print the wrappers of a file and the files it uses, or of this folder, and of the user's modules."""
    load_modules(modules)
    mistakes: list[Diagnostic] = []
    listed = list(_of_program(load_wrappers(path), mistakes) if path else _of_folder(mistakes))
    listed += [(found, None) for name in python_wrapper_names() if (found := python_wrapper(name))]
    if not listed and not mistakes and path is None:
        raise InputError("no plan file of this folder defines a wrapper; name a file, as PLAN")
    for wrapper, file in listed:
        if as_json:
            print_json(_described(wrapper, file))
        else:
            _print(wrapper, file if path is None else None)
    if mistakes:
        raise PlanError(mistakes)


def _of_program(
    program: Program, mistakes: list[Diagnostic], only: str | None = None
) -> Iterator[tuple[AnyWrapper, str | None]]:
    """Yield wrappers and the files that they stand in; with `only`, those of one file."""
    for item in program.items:
        file = item.span.source.name if item.span else None
        if item.kind.lower() != "wrapper" or (only is not None and file != only):
            continue
        try:
            yield wrapper_of(program, item.name), file
        except PlanError as error:
            mistakes += error.diagnostics


def _of_folder(mistakes: list[Diagnostic]) -> Iterator[tuple[AnyWrapper, str | None]]:
    for name, defined in _defined_here().items():
        if not defined:
            continue
        try:
            program = load_wrappers(name)
        except PlanError as error:
            mistakes += error.diagnostics
            continue
        # Wrappers of the files that it uses are listed with those files.
        yield from _of_program(program, mistakes, only=name)


def _print(wrapper: AnyWrapper, file: str | None) -> None:
    paint = Colour()
    place = f"  {paint('dim', file)}" if file else ""
    print(f"{paint('bold', wrapper.name)} ({', '.join(map(_input, wrapper.inputs))}){place}")
    print(f"  {paint('dim', _request(wrapper))}")
    print(f"  {wrapper.schema}")


def _described(wrapper: AnyWrapper, file: str | None) -> dict[str, object]:
    fields = zip(wrapper.schema.names, wrapper.schema.types, strict=True)
    return {
        "wrapper": wrapper.name,
        "file": file,
        "inputs": [given.name for given in wrapper.inputs],
        "request": _request(wrapper),
        "fields": {name: None if kind is None else str(kind) for name, kind in fields},
        "effects": wrapper.has_effects,
    }


def _input(given: WrapperInput) -> str:
    words = [given.name, str(given.type) if given.type else "", "optional" if given.optional else ""]
    return " ".join(filter(None, words))


def _request(wrapper: AnyWrapper) -> str:
    if isinstance(wrapper, PythonWrapper):
        return f"Python: {_place(wrapper)}"
    return f"{wrapper.request.method} {wrapper.request.url}"
