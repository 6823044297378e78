"""The operator library, imported as `aioflow.operators`: importing it registers every operator."""

from aioflow.operators import (
    databases,
    differences,
    email,
    files,
    functions,
    nesting,
    notifications,
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
    "email",
    "files",
    "functions",
    "nesting",
    "notifications",
    "relational",
    "routing",
    "sets",
    "text_formats",
    "web",
    "windows",
]
