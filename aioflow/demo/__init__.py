"""The demonstration: a recursive plan over a simulated site, in the three modes; `aioflow demo`."""

from __future__ import annotations

from aioflow.demo.show import show_demo

__all__ = ["show_demo"]
