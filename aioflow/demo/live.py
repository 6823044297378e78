"""What moves in the demonstration: the first houses as they come, and how far a run is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from aioflow.demo.modes import HOUSES, PAGES
from aioflow.demo.timeline import Timeline
from aioflow.relation import Record

if TYPE_CHECKING:
    from rich.console import Console

    from aioflow.cli.progress import Progress

_BAR_WIDTH = 36
_SHOWN_HOUSES = 8
_INDENT = 6 * " "
_HEADING = f"{_INDENT}  after  {'house':<24}  {'price':<9}  bedrooms  meanwhile"


class Display:
    """Shows one run; on a terminal there is a bar below what it says."""

    def __init__(self, console: Console, timeline: Timeline, *, shows_houses: bool) -> None:
        self.arrivals: list[float] = []
        self._console = console
        self._timeline = timeline
        self._shows_houses = shows_houses
        self._progress: Progress | None = None

    @contextmanager
    def live(self) -> Iterator[None]:
        """Keep the bar moving, if there is a terminal to show it on."""
        if not self._console.is_terminal:
            yield
            return
        from aioflow.cli.progress import Progress

        with Progress(self._bar, file=self._console.file, first_seconds=0.05) as self._progress:
            yield

    def add(self, house: Record, after_seconds: float) -> None:
        """A house came out of the plan."""
        self.arrivals.append(after_seconds)
        if not self._shows_houses or len(self.arrivals) > _SHOWN_HOUSES:
            return
        text = self._line(house, after_seconds)
        if len(self.arrivals) == 1:
            text = f"{_HEADING}\n{text}"
        if self._progress is None:
            self._say(text)
        else:
            self._progress.aside(lambda: self._say(text))

    def _say(self, text: str) -> None:
        self._console.file.write(f"{text}\n")
        self._console.file.flush()

    def _line(self, house: Record, after_seconds: float) -> str:
        followed = self._pages_answered()
        state = f"page {followed + 1} is on its way" if followed < PAGES else "all pages are there"
        address, price, beds = house["address"], house["price"], house["beds"]
        return f"{_INDENT}{after_seconds:5.2f} s  {address:<24}  $ {price:,}  {beds:>8}  {state}"

    def _bar(self, width: int, height: int) -> str:
        done, fetched = len(self.arrivals), self._timeline.count("house")
        solid = done * _BAR_WIDTH // HOUSES
        faint = max(0, fetched * _BAR_WIDTH // HOUSES - solid)
        bar = "█" * solid + "▒" * faint + "░" * (_BAR_WIDTH - solid - faint)
        counts = (
            f"{self._pages_answered():>2} of {PAGES} pages, {fetched:>2} of {HOUSES} houses, {done:>2} out"
        )
        return f"{_INDENT}{bar}  {counts}; {self._timeline.under_way:>2} under way"[:width] + "\n"

    def _pages_answered(self) -> int:
        return self._timeline.count("search page") + self._timeline.count("next page")
