"""The progress of a run on stderr: one line that changes on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from time import perf_counter
from types import TracebackType
from typing import IO, Self

from rich.console import Console
from rich.live import Live
from rich.text import Text

from aioflow.benchmarks.harness.results import Finding
from aioflow.values.quantities import duration_text


class Progress:
    """Shows the progress of experiments while the block lasts."""

    def __init__(self, names: Sequence[str], file: IO[str] | None = None) -> None:
        self._names = list(names)
        self._console = Console(file=file or sys.stderr, highlight=False, soft_wrap=True)
        # Drawn only on progress: a thread that draws would take part in every measurement.
        self._live = Live(console=self._console, auto_refresh=False, transient=True)
        self._begun: dict[str, float] = {}
        self._started = perf_counter()

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._console.is_terminal:
            self._live.stop()

    def told(self, name: str, text: str) -> None:
        """Show the progress of one experiment."""
        begun = self._begun.setdefault(name, perf_counter())
        if not self._console.is_terminal:
            self._console.print(f"{name}: {text}", markup=False)
            return
        place = f"{self._names.index(name) + 1}/{len(self._names)} " if name in self._names else ""
        elapsed = duration_text(perf_counter() - begun)
        shown = Text(f"{place}{name}  {text}  {elapsed}", style="dim", no_wrap=True, overflow="ellipsis")
        self._live.update(shown, refresh=True)

    def ended(self, finding: Finding) -> None:
        """Show that an experiment has ended: on a terminal its line stays."""
        if not self._console.is_terminal:
            return
        sign, style = ("✗", "red") if finding.failure else ("✓", "green")
        line = Text.assemble((sign, style), f" {finding.name}  {duration_text(finding.seconds)}")
        if finding.failure:
            line.append(f"  {finding.failure.splitlines()[0]}", style="red")
        self._console.print(line)
