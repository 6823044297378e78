"""Progress of a run on a terminal: a line for each step, redrawn in place a few times a second."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import threading
from collections.abc import Callable, Sequence
from io import StringIO
from types import TracebackType
from typing import IO, TYPE_CHECKING, Self

from aioflow.cli.loop import last_words
from aioflow.cli.quantities import count_text, duration_text

if TYPE_CHECKING:
    from rich.console import RenderableType

    from aioflow.statistics import RunStatistics, StepStatistics

# A run that is over sooner shows nothing.
FIRST_SECONDS = 0.3
EVERY_SECONDS = 0.12


class Progress:
    """A display that is there while the block runs; `aside` lets something else write to the terminal.

    `render` gives its text for a width and a height, each line with its end.
    """

    def __init__(
        self,
        render: Callable[[int, int], str],
        *,
        file: IO[str] | None = None,
        first_seconds: float = FIRST_SECONDS,
    ) -> None:
        self._render = render
        self._file = file or sys.stderr
        self._first_seconds = first_seconds
        self._lines = 0
        self._lock = threading.Lock()
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(self._first_seconds, self._tick)
        last_words.append(self._erase)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        with self._lock:
            self._erase()
        last_words.remove(self._erase)

    def aside(self, write: Callable[[], None]) -> None:
        """Write rows to the same terminal, above the display."""
        with self._lock:
            self._erase()
            write()

    def _tick(self) -> None:
        self._timer = self._loop.call_later(EVERY_SECONDS, self._tick)
        # While rows are being written there is no place for it: the next tick will bring it back.
        if self._lock.acquire(blocking=False):
            try:
                self._draw()
            finally:
                self._lock.release()

    def _draw(self) -> None:
        size = shutil.get_terminal_size()
        text = self._render(size.columns - 1, max(4, size.lines - 2))
        self._erase()
        # The cursor is hidden while the display stands, so that it does not flicker over it.
        self._file.write("\x1b[?25l" + text)
        self._file.flush()
        self._lines = text.count("\n")

    def _erase(self) -> None:
        if self._lines:
            self._file.write(f"\r\x1b[{self._lines}A\x1b[J\x1b[?25h")
            self._file.flush()
            self._lines = 0


# --- what it shows ------------------------------------------------------------------------------


def render_run(statistics: RunStatistics, title: str, width: int, height: int) -> str:
    """A summary, and in, out, waiting and errors of each step."""
    from rich.text import Text

    summary = Text.assemble((title, "bold"), _summary(statistics), no_wrap=True, overflow="ellipsis")
    return _to_text(summary, width) + render_steps(statistics.steps, width, height - 1)


def render_steps(steps: Sequence[StepStatistics], width: int, height: int) -> str:
    """A table of the steps, as many as fit."""
    from rich.table import Table

    table = Table(box=None, padding=(0, 1), show_edge=False, header_style="dim")
    table.add_column("", width=1)
    table.add_column("step", no_wrap=True, overflow="ellipsis", min_width=24)
    for name in ("in", "out", "waiting", "errors"):
        table.add_column(name, justify="right", no_wrap=True, min_width=7)
    shown, hidden = _most_telling(steps, height - 1)
    for step in shown:
        table.add_row(*_cells(step), style="dim" if step.state == "ended" else "")
    if hidden:
        table.add_row("", f"… and {count_text(hidden, 'more step', 'more steps')}", style="dim")
    return _to_text(table, width)


def _to_text(shown: RenderableType, width: int) -> str:
    from rich.console import Console

    file = StringIO()
    Console(
        file=file,
        force_terminal=True,
        width=width,
        highlight=False,
        no_color=bool(os.environ.get("NO_COLOR")),
    ).print(shown)
    return file.getvalue()


def _summary(statistics: RunStatistics) -> str:
    parts = [duration_text(statistics.elapsed_seconds), count_text(statistics.rows_out, "row")]
    if statistics.calls > 1:
        parts.append(count_text(statistics.calls, "call"))
    parts.append(f"{count_text(statistics.permits_used, 'permit')} used")
    if statistics.permits_waiting:
        parts.append(f"{statistics.permits_waiting} waiting")
    if statistics.spilled_rows:
        parts.append(f"{count_text(statistics.spilled_rows, 'row')} on disk")
    return " · ".join(["", *parts])


def _cells(step: StepStatistics) -> list[str]:
    mark = {"running": "▸", "ended": "✓"}.get(step.state, " ")
    place = f"{step.plan}:{step.line}" if step.line else step.plan
    return [
        mark,
        f"{step.operator}  [dim]{place}[/dim]",
        f"{step.rows_in:,}",
        f"{step.rows_out:,}",
        f"{step.waiting_rows:,}" if step.waiting_rows else "·",
        f"[red]{step.errors:,}[/red]" if step.errors else "·",
    ]


def _most_telling(steps: Sequence[StepStatistics], room: int) -> tuple[Sequence[StepStatistics], int]:
    """The steps that fit, in the order of the text: those under way before those that have ended."""
    if len(steps) <= room:
        return steps, 0
    ranked = sorted(range(len(steps)), key=lambda place: (steps[place].state != "running", place))
    kept = sorted(ranked[: max(1, room - 1)])
    return [steps[place] for place in kept], len(steps) - len(kept)
