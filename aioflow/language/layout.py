"""How the pieces of a statement or a header entry share lines: on one if they fit, else broken."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

# A key and its values; a flag has none.
Clause: TypeAlias = tuple[str, Sequence[str]]
WIDTH = 100
STEP = "  "


def fits(lines: Iterable[str]) -> bool:
    """Whether no line is too long; a string over several lines counts line by line."""
    return all(len(part) <= WIDTH for line in lines for part in line.split("\n"))


def fill(items: Sequence[str], indent: str) -> list[str]:
    """Items with commas between them, as many on each line as fit."""
    lines: list[str] = []
    for number, item in enumerate(items, 1):
        text = item if number == len(items) else f"{item},"
        if lines and fits([f"{lines[-1]} {text}"]):
            lines[-1] += f" {text}"
        else:
            lines.append(indent + text)
    return lines


def entry_lines(key: str, values: Sequence[str], indent: str) -> list[str]:
    """`KEY: values`, the values on lines of their own when they do not fit."""
    line = f"{indent}{key}: {', '.join(values)}".rstrip()
    return [line] if fits([line]) else [f"{indent}{key}:", *fill(values, indent + STEP)]


def statement_lines(
    operator: str, arguments: Sequence[str], outputs: Sequence[str], clauses: Sequence[Clause], indent: str
) -> list[str]:
    """A statement in the first of these forms that fits: on one line, clauses below it, all of it broken."""
    head = f"{indent}{operator} ({_inside(arguments, outputs)})"
    broken_head = [
        f"{indent}{operator} (",
        *fill(arguments, indent + STEP),
        *_output_lines(outputs, indent + STEP),
        f"{indent})",
    ]
    forms = [
        _with_clauses(lines, clauses, indent, broken)
        for lines in ([head], broken_head)
        for broken in (False, True)
    ]
    # A constant that is too long by itself is no reason to break the clauses as well.
    return next(filter(fits, forms), forms[-2] if fits(forms[-2][-1:]) else forms[-1])


def _inside(arguments: Sequence[str], outputs: Sequence[str]) -> str:
    if not outputs:
        return ", ".join(arguments)
    return f"{', '.join(arguments)} : {', '.join(outputs)}".lstrip()


def _output_lines(outputs: Sequence[str], indent: str) -> list[str]:
    lines = fill(outputs, indent + STEP)
    return [f"{indent}: {lines[0].lstrip()}", *lines[1:]] if lines else []


def _with_clauses(head: list[str], clauses: Sequence[Clause], indent: str, broken: bool) -> list[str]:
    if not clauses:
        return head
    if not broken:
        listed = "; ".join(line for clause in clauses for line in _clause_lines(clause, "", broken=False))
        return [*head[:-1], f"{head[-1]} {{{listed}}}"]
    lines = [line for clause in clauses for line in _clause_lines(clause, indent + STEP, broken=True)]
    return [*head[:-1], f"{head[-1]} {{", *lines, f"{indent}}}"]


def _clause_lines(clause: Clause, indent: str, broken: bool) -> list[str]:
    key, values = clause
    if not values:
        return [f"{indent}{key}"]
    return entry_lines(key, values, indent) if broken else [f"{indent}{key}: {', '.join(values)}"]
