"""`aioflow check`: shows every mistake and warning of plan files."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from aioflow.authoring.operator import Registry
from aioflow.cli.config import effective_settings
from aioflow.cli.exit import BAD_INPUT, OK, guarded, report, show_diagnostics
from aioflow.cli.options import Modules
from aioflow.cli.output.colour import print_json
from aioflow.cli.program import load_modules, load_program
from aioflow.compiler.check import check as find_mistakes
from aioflow.config.secrets import Secrets
from aioflow.errors import Diagnostic, InputError, PlanError


@guarded
def check(
    plans: Annotated[list[str], typer.Argument(metavar="PLAN", help="Plan files.")],
    json: Annotated[
        bool, typer.Option("--json", help="One JSON object for each mistake or warning.")
    ] = False,
    ops: Modules = None,
) -> None:
    """Find every mistake in plans without running them."""
    modules = {module: None for path in plans for module in effective_settings({"ops": ops}, path).ops}
    sys.exit(check_files(plans, as_json=json, modules=tuple(modules)))


def check_files(paths: Sequence[str], *, as_json: bool, modules: Sequence[str]) -> int:
    """Report on all files; return the exit code."""
    registry = load_modules(modules)
    mistakes = False
    for path in paths:
        try:
            found: Sequence[Diagnostic] = _check_file(path, registry)
        except PlanError as error:
            found = error.diagnostics
        except InputError as error:
            if not as_json:
                mistakes = bool(report(error)) or mistakes
                continue
            found = [Diagnostic(str(error))]
        mistakes = mistakes or any(diagnostic.severity == "error" for diagnostic in found)
        if as_json:
            _print_json(path, found)
        else:
            show_diagnostics(found)
    return BAD_INPUT if mistakes else OK


def _check_file(path: str, registry: Registry) -> list[Diagnostic]:
    # A file of plans for others to use need not have a main plan: all of its plans are checked.
    return find_mistakes(load_program(path, None, registry, any_plan=True), registry)


def _print_json(path: str, found: Sequence[Diagnostic]) -> None:
    Secrets().conceal_all()
    for diagnostic in found:
        span = diagnostic.span
        entry = {
            "file": span.source.name if span else path,
            "line": span.line if span else None,
            "column": span.column if span else None,
            "severity": diagnostic.severity,
            "message": diagnostic.shown_message,
        }
        print_json(entry)
