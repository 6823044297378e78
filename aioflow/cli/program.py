"""Loads what a command works on: modules of operators, then the plan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from aioflow.authoring.operator import Registry
from aioflow.errors import PlanError
from aioflow.plan import Program

if TYPE_CHECKING:
    from aioflow.compiler.analysis import Analysis


def load_modules(modules: Sequence[str]) -> Registry:
    """Return all operators, including those of the user's modules."""
    from aioflow.authoring.operator import load_operators

    return load_operators(modules)


def load_program(path: str, plan: str | None, registry: Registry, *, any_plan: bool = False) -> Program:
    """Return the plan of a file with all that it uses; a PlanError has the mistakes of the rest as well."""
    from aioflow.compiler.check import check_rest
    from aioflow.language import load

    try:
        return load(path, plan, any_plan=any_plan)
    except PlanError as error:
        raise PlanError(check_rest(error, registry)) from None


def load_checked(path: str, plan: str | None, modules: Sequence[str]) -> Analysis:
    """Return all that is known of a plan that has no mistakes."""
    from aioflow.compiler.check import analyse

    registry = load_modules(modules)
    program = load_program(path, plan, registry)
    analysis = analyse(program, registry)
    analysis.raise_mistakes()
    return analysis
