"""The operator library, imported as `aioflow.operators`: importing it registers every operator."""

from aioflow.operators import files, functions, nesting, relational, routing, sets, text_formats, web, windows

__all__ = ["files", "functions", "nesting", "relational", "routing", "sets", "text_formats", "web", "windows"]
