"""Regular expressions that are compiled when they are first used: most that a start imports never are.

What every page needs is better compiled by `re` at once, before the first page is waited for.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

__all__ = ["pattern"]

if TYPE_CHECKING:
    from re import compile as pattern
else:

    class pattern:  # noqa: N801  # called like a function
        """As `re.compile`, for those who use only methods and attributes of what it gives."""

        def __init__(self, text, flags=0):
            self._arguments = text, flags

        def __getattr__(self, name):
            """What is asked for the first time; kept here, it is found without us from then on."""
            value = getattr(re.compile(*self._arguments), name)
            setattr(self, name, value)
            return value
