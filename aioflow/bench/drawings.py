"""The drawings of a finding: its plots, then the rounds of its variants."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from aioflow.bench.dots import dot_plot
from aioflow.bench.pairs import Figure, compared
from aioflow.bench.plots import line_plot
from aioflow.bench.results import Finding, Origin
from aioflow.bench.wording import variant

_MOST_ROWS = 24


@dataclass(frozen=True)
class Drawing:
    title: str
    svg: str


def drawings(finding: Finding, origin: Origin) -> Iterator[Drawing]:
    """What there is to see in the part of a finding that has an origin: a name keeps its colour in all."""
    plots = [each for each in finding.plots if each.origin == origin and any(c.points for c in each.curves)]
    every = compared(finding.samples, origin, plots)
    names = [curve.name for plot in plots for curve in plot.curves]
    names += [variant(samples) for figure in every for samples in figure.samples]
    order = {name: number for number, name in enumerate(dict.fromkeys(names))}
    for plot in plots:
        yield Drawing(plot.title, line_plot(plot, order))
    for figure in every:
        if _is_worth_seeing(figure):
            name = figure.name or "Every round"
            yield Drawing(name[:1].upper() + name[1:], dot_plot(figure, order))


def _is_worth_seeing(figure: Figure) -> bool:
    """Whether there is something to lay side by side: variants, or a limit."""
    several = len(figure.samples) > 1 or figure.samples[0].limit is not None
    return several and len(figure.samples) <= _MOST_ROWS
