"""Tools to test operators and plans: a loop with a virtual clock, scripted sources, checks for leaks."""

from aioflow.testing.leaks import assert_nothing_left
from aioflow.testing.loop import DeadlockError, VirtualLoop, run
from aioflow.testing.running import run_operator, run_plan
from aioflow.testing.sources import Script, rows

__all__ = [
    "DeadlockError",
    "Script",
    "VirtualLoop",
    "assert_nothing_left",
    "rows",
    "run",
    "run_operator",
    "run_plan",
]
