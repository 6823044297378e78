"""Tools to test operators and plans: a loop with a virtual clock, scripted inputs and sites, and more."""

from aioflow.testing.running import assert_nothing_left, run_operator, run_plan
from aioflow.testing.scripted import Answer, Script, ScriptedSite, rows
from aioflow.testing.virtual_loop import DeadlockError, VirtualLoop, run

__all__ = [
    "Answer",
    "DeadlockError",
    "Script",
    "ScriptedSite",
    "VirtualLoop",
    "assert_nothing_left",
    "rows",
    "run",
    "run_operator",
    "run_plan",
]
