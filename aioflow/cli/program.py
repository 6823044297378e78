"""Loads what a command works on: modules of operators, then the plan."""

from __future__ import annotations

from collections.abc import Sequence

from aioflow.errors import PlanError
from aioflow.operator import Registry
from aioflow.plan import Program


def load_modules(modules: Sequence[str]) -> Registry:
    """The operators there are, with those of the user's modules."""
    from aioflow.plugins import load_operators

    return load_operators(modules)


def load_program(path: str, plan: str | None = None) -> Program:
    """The plan of a file with all that it uses."""
    from aioflow.language import load

    return load(path, plan)


def load_checked(path: str, plan: str | None, modules: Sequence[str]) -> tuple[Program, Registry]:
    """A plan that has no mistakes, and the operators that it may use."""
    from aioflow.analysis.check import check

    registry = load_modules(modules)
    program = load_program(path, plan)
    mistakes = [found for found in check(program, registry) if found.severity == "error"]
    if mistakes:
        raise PlanError(mistakes)
    return program, registry
