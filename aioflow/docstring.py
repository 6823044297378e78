"""Reads an operator's docstring: its text, what it says of inputs and settings, its examples.

Keep the tuples for which a condition holds.

Arguments:
    where: the condition.

Example:
    select (houses, "price < 550000" : cheap)
"""

from __future__ import annotations

import inspect

from aioflow.pattern import pattern

_HEADING = pattern(r"^(Arguments|Examples?):$")
_ARGUMENT = pattern(r"^(\w+): *(.*)$")


def parse_docstring(docstring: str) -> tuple[str, dict[str, str], list[str]]:
    """The text, the descriptions by argument name, and the examples (one a line)."""
    text: list[str] = []
    arguments: dict[str, str] = {}
    examples: list[str] = []
    section, latest = "", ""
    for line in inspect.cleandoc(docstring).splitlines():
        heading = _HEADING.match(line)
        if heading:
            section = heading[1]
        elif line and not line.startswith(" ") and section:
            section = ""
            text.append(line)
        elif section == "Arguments" and line.strip():
            argument = _ARGUMENT.match(line.strip())
            if argument and not line.startswith("     "):
                latest = argument[1].rstrip("_").lower()
                arguments[latest] = argument[2]
            elif latest:
                arguments[latest] += " " + line.strip()
        elif section.startswith("Example") and line.strip():
            examples.append(line.strip())
        elif not section:
            text.append(line)
    return "\n".join(text).strip(), arguments, examples
