"""The report as Markdown, for the documentation; its drawings are files beside it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from aioflow.benchmarks.harness.plots import drawings
from aioflow.benchmarks.harness.results import Finding, Origin, Results
from aioflow.benchmarks.harness.svg import standalone
from aioflow.benchmarks.harness.tables import (
    ReportTable,
    claims_table,
    goals_table,
    pairs_table,
    parts,
    samples_table,
)
from aioflow.benchmarks.harness.wording import (
    METHOD,
    QUICK,
    SIMULATED,
    condition_lines,
    disturbed_text,
    goals_summary,
    machine_lines,
)

_BLANKS = re.compile(r"\s+")


@dataclass(frozen=True)
class Markdown:
    """A text, and the drawings that it shows, by their file names relative to it."""

    text: str
    drawings: dict[str, str]


def markdown_report(results: Results, folder: str | None) -> Markdown:
    """Return the whole report; without a folder it has no drawings."""
    files: dict[str, str] = {}
    blocks = ["# Benchmarks", _about(results)]
    if results.quick:
        blocks.append(f"> **Quick run.** {QUICK}")
    disturbed = disturbed_text(results)
    if disturbed:
        blocks.append(f"> **Disturbed.** {disturbed}")
    blocks += _goals(results)
    blocks += _part("Measured", "measured", results, folder, files)
    blocks += _part("Simulated", "simulated", results, folder, files)
    blocks += ["## Method", *(f"**{title}** {text}" for title, text in METHOD)]
    lines = [*machine_lines(results), *results.versions.items()]
    blocks += ["## Machine and versions", _table(ReportTable(("", ""), tuple(lines)))]
    return Markdown("\n\n".join(blocks) + "\n", files)


def _goals(results: Results) -> Iterator[str]:
    measured, simulated = goals_table(results, "measured"), goals_table(results, "simulated")
    if not (measured.rows or simulated.rows):
        return
    yield "## Goals"
    if not results.quick:
        yield f"**{goals_summary(results)}.**"
    if measured.rows:
        yield _table(measured)
    if simulated.rows:
        yield "On the virtual clock, simulated:"
        yield _table(simulated)


def _about(results: Results) -> str:
    version = results.versions.get("aioflow", "?")
    made = "Made by `aioflow bench` and `aioflow bench report --format markdown`."
    return f"Measured on {results.started[:10]} with aioflow {version}. {made}"


def _part(
    title: str, origin: Origin, results: Results, folder: str | None, files: dict[str, str]
) -> Iterator[str]:
    found = parts(results, origin)
    if not found:
        return
    yield f"## {title}"
    if origin == "simulated":
        yield f"> {SIMULATED}"
    for finding in found:
        yield from _experiment(finding, origin, results.quick, folder, files)


def _experiment(
    finding: Finding, origin: Origin, quick: bool, folder: str | None, files: dict[str, str]
) -> Iterator[str]:
    label = "Simulated: " if origin == "simulated" else ""
    yield f"### {label}{_escaped(finding.question)}"
    yield _facts(finding, origin)
    if finding.failure:
        yield f"**✗ failed:** {_escaped(finding.failure)}"
    if finding.claims:
        yield _table(claims_table(finding.claims, quick=quick))
    if folder is not None:
        for drawing in drawings(finding, origin):
            name = f"{folder}/{drawing.name}.svg"
            files[name] = standalone(drawing.svg)
            yield f"![{_escaped(label + drawing.title)}]({name})"
    yield from (f"- {_prose(note)}" for note in finding.notes)
    if finding.samples:
        yield _table(samples_table(finding.samples, origin))
        compared = pairs_table(finding, origin)
        if compared.rows:
            yield "The paper's test, and our ratio:"
            yield _table(compared)


def _facts(finding: Finding, origin: Origin) -> str:
    facts = [f"- experiment: `{finding.name}`", f"- work: {_prose(finding.work)}"]
    facts += [f"- limit: {_prose(finding.limit)}"] if finding.limit else []
    facts += [f"- rounds: {finding.repetitions}"] if finding.repetitions else []
    facts += [f"- meanwhile: {' · '.join(condition_lines(finding))}"] if origin == "measured" else []
    return "\n".join(facts)


def _table(table: ReportTable) -> str:
    rules = ("--:" if place in table.numeric else "---" for place in range(len(table.headings)))
    rows = [table.headings, tuple(rules), *(tuple(map(_escaped, row)) for row in table.rows)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _prose(text: str) -> str:
    """Escape a text except for the code between backticks."""
    parts = text.split("`")
    return "`".join(part if number % 2 else _escaped(part) for number, part in enumerate(parts))


def _escaped(text: str) -> str:
    """Return a text that Markdown shows as it is."""
    for sign in "\\`*_[]<>|#":
        text = text.replace(sign, "\\" + sign)
    return _BLANKS.sub(" ", text)
