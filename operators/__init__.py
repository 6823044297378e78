"""The operator library, imported as `aioflow.operators`: importing it registers every operator."""

from aioflow.operators import functions, nesting, relational, routing, sets, windows

__all__ = ["functions", "nesting", "relational", "routing", "sets", "windows"]
