"""The operator library, imported as `aioflow.operators`: importing it registers every operator."""

from aioflow.operators import (
    databases,
    differences,
    files,
    functions,
    nesting,
    relational,
    routing,
    sets,
    text_formats,
    web,
    windows,
)

__all__ = [
    "databases",
    "differences",
    "files",
    "functions",
    "nesting",
    "relational",
    "routing",
    "sets",
    "text_formats",
    "web",
    "windows",
]
