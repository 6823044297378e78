"""Which wrappers a plan file has: `aioflow wrapper list`, and the file that defines a wrapper."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

from aioflow.cli.ending import os_error_text, tell
from aioflow.cli.pages import wrapper_of
from aioflow.cli.paint import Paint
from aioflow.cli.program import load_modules
from aioflow.errors import Diagnostic, InputError, PlanError, suggestion
from aioflow.language import loads
from aioflow.language.literals import write_string
from aioflow.language.loader import SUFFIX
from aioflow.plan import Program
from aioflow.wrappers.definition import WrapperInput
from aioflow.wrappers.naming import AnyWrapper
from aioflow.wrappers.python import python_wrapper, python_wrapper_names

_DEFINED = re.compile(r"^[ \t]*WRAPPER\s+([^\W\d][\w-]*)", re.MULTILINE | re.IGNORECASE)


def load_wrappers(path: str) -> Program:
    """A file with all that it uses; unlike a program that is run it need not have a plan."""
    file = Path(path)
    if file.is_dir():
        raise InputError(f"{path} is a folder, not a plan file")
    if not file.exists():
        plans = [each.name for each in file.parent.glob(f"*{SUFFIX}")]
        raise InputError(f"there is no file {path}{suggestion(file.name, plans)}")
    text = f"USE {write_string(file.name)}\nPLAN {_NO_PLAN} {{ BODY {{ }} }}"
    return loads(text, f"<{file.name}>", file.parent)


# The name of a plan that no file has.
_NO_PLAN = "wrapper-of-no-plan"


def file_of(name: str) -> str:
    """The only plan file of the current folder that defines a wrapper."""
    defined: dict[str, list[str]] = {}
    for file in sorted(Path().glob(f"*{SUFFIX}")):
        try:
            text = file.read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            tell("warning", f"cannot read {os_error_text(error)}")
            continue
        for found in _DEFINED.findall(text):
            defined.setdefault(found.lower(), []).append(file.name)
    files = list(dict.fromkeys(defined.get(name.lower(), ())))
    if len(files) == 1:
        return files[0]
    if files:
        raise InputError(f"wrapper {name!r} stands in {' and in '.join(files)}: say which, as PLAN NAME")
    near = suggestion(name, defined)
    raise InputError(
        f"no plan file of this folder defines a wrapper {name!r}{near or ''}"
        + ("" if near else "; name the file before it, as PLAN NAME")
    )


def find(name: str, program: Program) -> AnyWrapper:
    """The wrapper of a program, or one that is registered in Python, without mistakes."""
    registered = python_wrapper(name)
    if program.item("wrapper", name) is None and registered is not None:
        return registered
    return wrapper_of(program, name)


# --- wrapper list -------------------------------------------------------------------------------


def list_wrappers(path: str, *, as_json: bool, modules: Sequence[str]) -> None:
    """The wrappers of a file, of those that it uses, and of modules of the user's own."""
    load_modules(modules)
    program = load_wrappers(path)
    names = [item.name for item in program.items if item.kind.lower() == "wrapper"]
    mistakes: list[Diagnostic] = []
    paint = Paint()
    for name in (*names, *python_wrapper_names()):
        try:
            wrapper = find(name, program)
        except PlanError as error:
            mistakes += error.diagnostics
            continue
        if as_json:
            print(json.dumps(_described(wrapper), ensure_ascii=False))
        else:
            print(f"{paint('bold', wrapper.name)} ({', '.join(map(_input, wrapper.inputs))})")
            print(f"  {paint('dim', _request(wrapper))}")
            print(f"  {wrapper.schema}")
    if mistakes:
        raise PlanError(mistakes)


def _described(wrapper: AnyWrapper) -> dict[str, object]:
    fields = zip(wrapper.schema.names, wrapper.schema.types, strict=True)
    return {
        "wrapper": wrapper.name,
        "inputs": [given.name for given in wrapper.inputs],
        "request": _request(wrapper),
        "fields": {name: None if kind is None else str(kind) for name, kind in fields},
        "effects": wrapper.has_effects,
    }


def _input(given: WrapperInput) -> str:
    words = [given.name, str(given.type) if given.type else "", "optional" if given.optional else ""]
    return " ".join(filter(None, words))


def _request(wrapper: AnyWrapper) -> str:
    from aioflow.wrappers.python import PythonWrapper

    if isinstance(wrapper, PythonWrapper):
        return f"Python: {wrapper.call.__module__}.{wrapper.call.__qualname__}"
    return f"{wrapper.request.method} {wrapper.request.url}"
