"""Shows findings: as a table, and as JSON for machines."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict

from rich.console import Console
from rich.table import Table

from benchmarks.experiment import Finding, Line

_COLUMNS = 150  # when the output is no terminal, whose width would be unknown


def show(findings: Sequence[Finding], *, quick: bool) -> None:
    """Print what was measured, what the goal was, and, unless the run was quick, whether it was reached."""
    console = Console(width=None if sys.stdout.isatty() else _COLUMNS, highlight=False)
    title = "Benchmarks, a quick run: these figures mean nothing" if quick else "Benchmarks"
    table = Table(title=title, title_justify="left")
    for heading in ("experiment", "what"):
        table.add_column(heading, overflow="fold")
    for heading in ("goal", "measured"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("reached", no_wrap=True)
    table.add_column("again with", no_wrap=True)
    for finding in findings:
        for number, line in enumerate(finding.lines):
            first = number == 0
            table.add_row(
                finding.name if first else "",
                described(line),
                goal_of(line),
                value_of(line),
                "" if quick or line.reached is None else "yes" if line.reached else "NO",
                finding.command if first else "",
                end_section=number == len(finding.lines) - 1,
            )
    console.print(table)


def described(line: Line) -> str:
    return f"{line.what} ({line.remark})" if line.remark else line.what


def goal_of(line: Line) -> str:
    return "" if line.goal is None else f"{line.goal.direction} {quantity(line.goal.value, line)}"


def value_of(line: Line) -> str:
    return "not measured" if line.measured is None else quantity(line.measured, line)


def quantity(value: float, line: Line) -> str:
    if line.unit in ("rows", "rows/s"):
        return f"{value:,.0f} {line.unit}"
    if line.unit == "x":
        return f"{value:.2f}x"
    return f"{value:.3g} {line.unit}" if value < 100 else f"{value:.0f} {line.unit}"


def as_json(findings: Sequence[Finding]) -> str:
    """The findings for a machine to read."""
    found = [
        {
            "name": finding.name,
            "question": finding.question,
            "command": finding.command,
            "lines": [{**asdict(line), "reached": line.reached} for line in finding.lines],
        }
        for finding in findings
    ]
    return json.dumps(found, indent=2) + "\n"
