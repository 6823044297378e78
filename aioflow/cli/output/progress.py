"""Progress of a run on a terminal: a few lines, redrawn in place a few times a second.

Which hosts a run has to wait for, and why, in a few lines for the progress display.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from types import TracebackType
from typing import IO, TYPE_CHECKING, Self, TypeAlias

from aioflow.cli.exit import exit_callbacks
from aioflow.drawing.diagram import constant_text
from aioflow.plan import Program, Setting, Statement
from aioflow.values.display import visible
from aioflow.values.quantities import count_text, duration_text

if TYPE_CHECKING:
    from aioflow.authoring.services import Services
    from aioflow.runtime.statistics import RunStatistics, StepStatistics
    from aioflow.web.statistics import SourceStatistics


# A run that is over sooner shows nothing.
FIRST_SECONDS = 0.3
EVERY_SECONDS = 0.12


class ProgressDisplay:
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
        exit_callbacks.append(self._erase)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        with self._lock:
            self._erase()
        exit_callbacks.remove(self._erase)

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
        size = _terminal_size(self._file)
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


def _terminal_size(file: IO[str]) -> os.terminal_size:
    """The size of the terminal that a file is, also where stdout is none."""
    columns, lines = 80, 24
    try:
        own = os.get_terminal_size(file.fileno())
    except (OSError, ValueError):
        pass  # no terminal at all
    else:
        columns, lines = own.columns or columns, own.lines or lines
    return shutil.get_terminal_size((columns, lines))


# --- what it shows ------------------------------------------------------------------------------
#
# Written by hand: a table of rich takes milliseconds, which a run would spend several times a second.

_BOLD, _DIM, _RED, _PLAIN = "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[0m"
_MARKS = {"running": "▸", "ended": "✓"}
_COLUMNS = ("in", "out", "waiting", "errors")
_COLUMN_WIDTH = 9
# However large the terminal: what somebody takes in at a glance.
_STATEMENTS_AT_MOST = 6

# The names of steps by plan and line, each with its operator, in the order of the text.
Labels: TypeAlias = Mapping[tuple[str, int | None], Sequence[tuple[str, str]]]


def labels_of(program: Program) -> Labels:
    """A name for each statement that tells it from its neighbours: `apply fetch_page`."""
    labels: dict[tuple[str, int | None], list[tuple[str, str]]] = {}
    for plan in program:
        for statement in plan.statements:
            place = plan.name, statement.span.line if statement.span else None
            labels.setdefault(place, []).append((statement.operator.lower(), _label(statement)))
    return labels


def _names(steps: Sequence[StepStatistics], labels: Labels) -> list[str]:
    """The names of steps, which are in the order of the text; not all statements need have begun."""
    alike = Counter((step.plan, step.line, step.operator) for step in steps)
    seen: Counter[tuple[str, int | None, str]] = Counter()
    names = []
    for step in steps:
        key = step.plan, step.line, step.operator
        of_line = [label for operator, label in labels.get(key[:2], ()) if operator == step.operator.lower()]
        if len(set(of_line)) == 1:
            names.append(of_line[0])
        else:
            # Which of several on one line it is shows only when all of them are there.
            names.append(of_line[seen[key]] if len(of_line) == alike[key] else step.operator)
        seen[key] += 1
    return names


def _label(statement: Statement) -> str:
    settings = [each.value for each in statement.arguments if isinstance(each, Setting)]
    return visible(" ".join([statement.operator, *map(constant_text, settings[:1])]))


def render_run(
    statistics: RunStatistics,
    title: str,
    labels: Labels,
    width: int,
    height: int,
    notes: Sequence[str] = (),
) -> str:
    """A summary, what else there is to say, and in, out, waiting and errors of the statements at work."""
    title = visible(title)
    summary = f"{title}{_summary(statistics)}"[:width]
    bold = f"{_BOLD}{summary[: len(title)]}{_PLAIN}{summary[len(title) :]}"
    below = "".join(f"   {visible(note)[: width - 3]}\n" for note in notes)
    room = min(height - 1 - len(notes), 1 + _STATEMENTS_AT_MOST)
    return f"{bold}\n{below}" + render_steps(statistics.steps, labels, width, room, only_at_work=True)


def render_steps(
    steps: Sequence[StepStatistics], labels: Labels, width: int, height: int, *, only_at_work: bool = False
) -> str:
    """A table of the steps, as many as fit; or of those that are at work, and of those with errors."""
    told = [place for place, step in enumerate(steps) if not only_at_work or _is_at_work(step)]
    places = _most_telling(steps, told, height - 1)
    hidden = len(told) - len(places)
    if not places:
        return ""
    every_name = _names(steps, labels)
    shown, names = [steps[place] for place in places], [every_name[place] for place in places]
    room = max(8, width - 4 - _COLUMN_WIDTH * len(_COLUMNS))
    name_width = min(room, max(map(len, names), default=0) + 2)
    header = "".join(column.rjust(_COLUMN_WIDTH) for column in _COLUMNS)
    lines = [f"{_DIM}   {'':<{name_width}}{header}{_PLAIN}"]
    for step, name in zip(shown, names, strict=True):
        lines.append(_step_line(step, name, name_width))
    if hidden:
        lines.append(f"{_DIM}   … and {count_text(hidden, 'more statement')}{_PLAIN}")
    return "\n".join(lines) + "\n"


def _step_line(step: StepStatistics, name: str, name_width: int) -> str:
    cut = name if len(name) < name_width else name[: name_width - 2] + "…"
    cells = "".join(_cell(count) for count in (step.rows_in, step.rows_out, step.waiting_rows))
    errors = f"{_RED}{_cell(step.errors)}{_PLAIN}" if step.errors else _cell(0)
    style = _DIM if step.state == "ended" else ""
    return f"{style} {_MARKS.get(step.state, ' ')} {cut:<{name_width}}{cells}{errors}{_PLAIN}"


def _cell(count: int) -> str:
    return (f"{count:,}" if count else "·").rjust(_COLUMN_WIDTH)


def _summary(statistics: RunStatistics) -> str:
    parts = [duration_text(statistics.elapsed_seconds), count_text(statistics.rows_out, "row")]
    if statistics.spilled_rows:
        parts.append(f"{count_text(statistics.spilled_rows, 'row')} on disk")
    return " · ".join(["", *parts])


def _is_at_work(step: StepStatistics) -> bool:
    return step.state == "running" or bool(step.errors)


def _most_telling(steps: Sequence[StepStatistics], places: Sequence[int], room: int) -> Sequence[int]:
    """Those places that fit, in the order of the text: of steps under way before those that have ended."""
    if len(places) <= room:
        return places
    ranked = sorted(places, key=lambda place: (steps[place].state != "running", place))
    return sorted(ranked[: max(1, room - 1)])


# Statistics of many hosts take a while: they are not asked for each time that the display is drawn.
HOSTS_EVERY_SECONDS = 0.5
SHOWN_HOSTS = 3


class HostWaits:
    """Looks at the client of an engine from time to time, if it has one."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._looked = float("-inf")
        self._lines: Sequence[str] = ()

    def lines(self) -> Sequence[str]:
        now = asyncio.get_running_loop().time()
        if now - self._looked >= HOSTS_EVERY_SECONDS:
            self._looked = now
            self._lines = self._look()
        return self._lines

    def _look(self) -> list[str]:
        # A run that has asked for nothing has not loaded the client, and need not.
        module = sys.modules.get("aioflow.web.client")
        client = None if module is None else self._services.opened(module.Client)
        if client is None:
            return []
        found = list(host_wait_lines(client.statistics().sources))
        more = len(found) - SHOWN_HOSTS
        return found[:SHOWN_HOSTS] + ([f"… and {count_text(more, 'more host')}"] if more > 0 else [])


def host_wait_lines(sources: Sequence[SourceStatistics]) -> Iterator[str]:
    """A line for each host that asked for a pause, or is left alone because it fails."""
    for source in sources:
        if source.breaker == "open" and source.breaker_until is not None:
            yield f"{source.host} failed too often and is left alone {_until(source.breaker_until)}"
        elif source.paused_until is not None:
            waiting = f"; {count_text(source.waiting, 'request')} waiting" if source.waiting else ""
            yield f"{source.host} asked us to wait {_until(source.paused_until)}{waiting}"


def _until(end: datetime) -> str:
    left = max(0.0, (end - datetime.now(UTC)).total_seconds())
    return f"until {end.astimezone():%H:%M:%S} ({duration_text(left)})"
