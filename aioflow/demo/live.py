"""What moves in the demonstration: a bar and the steps of a run; and a line of when its houses came."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from textwrap import indent
from typing import TYPE_CHECKING

from aioflow.demo.modes import HOUSES

if TYPE_CHECKING:
    from rich.console import Console

    from aioflow.plan import Program
    from aioflow.results import RunStream

_BAR_WIDTH = 40
_LINE_WIDTH = 60
_HEIGHTS = "▁▂▃▄▅▆▇█"


@contextmanager
def live(console: Console, stream: RunStream, program: Program, arrivals: Sequence[float]) -> Iterator[None]:
    """Show how the run is going, if there is a terminal to show it on."""
    if not console.is_terminal:
        yield
        return
    from aioflow.cli.progress import Progress, labels_of, render_steps

    labels = labels_of(program)

    def render(width: int, height: int) -> str:
        statistics = stream.statistics()
        done = len(arrivals) * _BAR_WIDTH // HOUSES
        bar = "█" * done + "░" * (_BAR_WIDTH - done)
        line = f"      {bar}  {len(arrivals):>2} of {HOUSES} houses  {statistics.elapsed_seconds:.1f} s\n"
        return line + indent(render_steps(statistics.steps, labels, width - 6, height - 1), 6 * " ")

    with Progress(render, file=console.file, first_seconds=0.05):
        yield


def arrivals_line(arrivals: Sequence[float], span_seconds: float) -> str:
    """When tuples arrived, on a line that is as long as the slowest run."""
    counts = [0] * _LINE_WIDTH
    for arrival in arrivals:
        counts[min(_LINE_WIDTH - 1, int(arrival / span_seconds * _LINE_WIDTH))] += 1
    most = max(counts)
    marks = [_HEIGHTS[(count * (len(_HEIGHTS) - 1)) // most] if count else "·" for count in counts]
    return f"0 s {''.join(marks)} {span_seconds:.1f} s"
