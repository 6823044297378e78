"""`aioflow demo`: the demonstration of `aioflow.demo`."""

from __future__ import annotations

from aioflow.cli.exit import guarded
from aioflow.demo import show_demo


@guarded
def demo() -> None:
    """Search a bundled web site with a recursive plan, in the three modes, and draw its requests."""
    show_demo()
