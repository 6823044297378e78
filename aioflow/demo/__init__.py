"""The demonstration: a recursive plan over a web site of its own, in the three modes; `aioflow demo`."""

from __future__ import annotations

__all__ = ["show_demo"]


def show_demo(latency_seconds: float = 0.1) -> None:
    """Run the plan in each mode and compare the times with what is physically possible."""
    # The site's process imports this package too, and needs nothing of the show.
    from aioflow.demo.show import show

    show(latency_seconds)
