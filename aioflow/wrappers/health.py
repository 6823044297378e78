"""How well extraction goes: rows and nulls of a run, compared with the wrapper's own earlier runs.

A page that changes seldom breaks a wrapper aloud: a column goes empty, or a page has fewer rows. What is
usual for a wrapper is learned from its history, which `health_store` keeps.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from math import exp, sqrt
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from aioflow.folders import data_folder, shown_path
from aioflow.relation import Relation, Row
from aioflow.wrappers.health_store import KEPT_RUNS, HealthFile, RunHealth, UnusableFileError

__all__ = ["HealthStore", "RunHealth", "Tally", "decay", "default_path"]

T = TypeVar("T")
FILE_NAME = "health.sqlite"
HISTORY_RUNS = 20  # good ones that a run is compared with
LEAST_RUNS = 3
LEAST_ROWS = 5  # of a run, for its shares to mean anything
# So many runs in a row that are worse are the new usual: the page may have changed for good.
ACCEPTED_AFTER = 10
_RISE = 0.3  # of a column's share of nulls, from which on it is told
_SPREADS = 4.0
_NORMAL = 1.4826  # a median absolute deviation as a standard deviation
_CHANCE = 0.05  # that nulls, or pages without rows, are chance; below it they are told


class Tally:
    """Counts the rows that a wrapper gave in a run, and the nulls among their values.

    `pages` are those that were read to their end; whoever reads them counts them.
    An embedded relation without rows counts as null: it is how a broken selector for many shows.
    """

    __slots__ = ("columns", "nulls", "pages", "rows")

    def __init__(self, columns: Sequence[str]) -> None:
        self.columns = tuple(columns)
        self.rows = 0
        self.pages = 0
        self.nulls = [0] * len(self.columns)

    def add(self, rows: Sequence[Row]) -> None:
        """Count a batch."""
        self.rows += len(rows)
        for place, values in enumerate(zip(*rows, strict=True)):
            empty = values.count(None)
            if isinstance(values[0], Relation):
                empty += sum(1 for value in values if isinstance(value, Relation) and not len(value))
            if empty:
                self.nulls[place] += empty

    def by_column(self) -> dict[str, int]:
        """The number of nulls in each column."""
        return dict(zip(self.columns, self.nulls, strict=True))


class HealthStore:
    """The history of all wrappers, in one file.

    Nothing that happens to the file makes a run fail: it is told once, as a message, and the run goes on
    without a history.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.problem: str | None = None  # why the file cannot be used
        self._was_told = False
        self._file: HealthFile | None = None

    @classmethod
    def open(cls, path: Path | str | None = None) -> HealthStore:
        """The store in a file, by default one in the user's data folder; to be used as a context."""
        return cls(Path(path) if path is not None else default_path())

    async def record(self, run_id: str, wrapper: str, tally: Tally) -> list[str]:
        """Keep the figures of a run that came to its end; what is worse about it than it used to be.

        A run that is worse is no measure for later ones, unless the following ones are worse as well.
        """
        run = RunHealth(run_id, tally.rows, tally.pages, tally.by_column())
        nothing: list[str] = []
        messages = await self._use(lambda file: _recorded(file, wrapper, run), nothing)
        return messages + self._untold()

    async def history(self, wrapper: str, most: int = KEPT_RUNS) -> list[RunHealth]:
        """The runs of a wrapper, the last one first."""
        return await self._use(lambda file: file.history(wrapper, most), [])

    async def wrappers(self) -> list[str]:
        """The wrappers that have a history."""
        return await self._use(lambda file: file.wrappers(), [])

    async def forget(self, wrapper: str) -> None:
        """Begin the history of a wrapper anew, after it was changed."""
        await self._use(lambda file: file.forget(wrapper), None)

    async def _use(self, work: Callable[[HealthFile], T], otherwise: T) -> T:
        """What is done with the file, or `otherwise` if it cannot be used."""
        if self.problem is not None:
            return otherwise
        try:
            return await _on_thread(lambda: work(self._opened()))
        except (UnusableFileError, sqlite3.Error, OSError) as error:
            self.problem = str(error) or type(error).__name__
            return otherwise

    def _opened(self) -> HealthFile:
        if self._file is None:
            self._file = HealthFile.open(self.path)
        return self._file

    async def close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            await _on_thread(file.close)

    def _untold(self) -> list[str]:
        if self.problem is None or self._was_told:
            return []
        self._was_told = True
        return [
            f"the history of wrappers in {shown_path(self.path)} cannot be used: {self.problem}; "
            "runs are not compared with earlier ones until it is moved away or mended"
        ]

    async def __aenter__(self) -> HealthStore:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def default_path() -> Path:
    """The user's own file."""
    return data_folder() / FILE_NAME


async def _on_thread(work: Callable[[], T]) -> T:
    """What is done on a thread. One that is cancelled cannot be stopped: it is waited for."""
    done = asyncio.get_running_loop().run_in_executor(None, work)
    try:
        return await asyncio.shield(done)
    except asyncio.CancelledError:
        while not done.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([done])
        done.exception()  # nobody else asks for it
        raise


def _recorded(file: HealthFile, wrapper: str, run: RunHealth) -> list[str]:
    with file.transaction():
        # A wrapper is known by its file, which is shown as people here would name it.
        shown = shown_path(Path(wrapper))
        messages = decay(shown, run, file.good_runs(wrapper, run.run_id, HISTORY_RUNS))
        file.save(wrapper, replace(run, is_good=not messages))
        latest = file.history(wrapper, ACCEPTED_AFTER)
        if len(latest) == ACCEPTED_AFTER and not any(past.is_good for past in latest):
            file.accept_latest(wrapper, ACCEPTED_AFTER)
    return messages


# --- decay ---------------------------------------------------------------------------------------


def decay(wrapper: str, run: RunHealth, history: Sequence[RunHealth]) -> list[str]:
    """What is worse about a run than about the good ones before it, each as a sentence."""
    if len(history) < LEAST_RUNS:
        return []
    messages = list(_fewer_rows(wrapper, run, history))
    if run.rows:
        for column in run.nulls:
            known = [past for past in history if past.rows and column in past.nulls]
            if len(known) >= LEAST_RUNS:
                messages.extend(_more_nulls(wrapper, column, run, known))
    return messages


def _fewer_rows(wrapper: str, run: RunHealth, history: Sequence[RunHealth]) -> Iterator[str]:
    """Pages are compared, not runs: who asks for less gets fewer pages, but pages as they always were."""
    known = [past for past in history if past.pages]
    if not run.pages or len(known) < LEAST_RUNS:
        return
    if _finds_nothing(run, known) or _finds_less(run, known):
        rows = "no rows" if not run.rows else "1 row" if run.rows == 1 else f"{run.rows:,} rows"
        pages = "1 page" if run.pages == 1 else f"{run.pages:,} pages"
        usual = _usual_rows(known)
        yield (
            f"wrapper {wrapper}: {rows} on {pages}, where its last {len(known)} runs had about "
            f"{round(usual, None if usual >= 10 else 1):,g} a page; has the page changed?"
        )


def _finds_nothing(run: RunHealth, history: Sequence[RunHealth]) -> bool:
    """Whether pages have no row at all, of a wrapper that found some in every run."""
    if run.rows or not all(past.rows for past in history):
        return False
    # Where rows are few, only a long history says that there always are some.
    return exp(-_usual_rows(history) * run.pages) < _CHANCE or 1 / (len(history) + 2) < _CHANCE


def _finds_less(run: RunHealth, history: Sequence[RunHealth]) -> bool:
    shares = [past.rows / past.pages for past in history]
    # Who asked for less than usual has a last page that may be as short as it likes.
    is_smaller = run.pages < _median(past.pages for past in history)
    expected = _usual_rows(history) * (run.pages - is_smaller)
    deviation = _deviation(shares) * run.pages
    # Few runs may look steadier than they are, and counts vary by about their root.
    spread = max(deviation, sqrt(expected) * ((0.5 if deviation else 0.3) + 1.5 / len(history)))
    return (
        run.rows < expected / 2
        and run.rows < expected - _SPREADS * spread
        and run.rows / run.pages < _low(shares)
    )


def _usual_rows(history: Sequence[RunHealth]) -> float:
    """How many rows a page has."""
    return _median(past.rows / past.pages for past in history)


def _more_nulls(wrapper: str, column: str, run: RunHealth, history: Sequence[RunHealth]) -> Iterator[str]:
    nulls = sum(past.nulls[column] for past in history)
    # A column that never was null has a small share of nulls all the same; how small, its rows tell.
    chance = (nulls + 1) / (sum(past.rows for past in history) + 2)
    share = run.share(column)
    if share == 1 and not nulls and chance**run.rows < _CHANCE:
        yield (
            f"wrapper {wrapper}: {column} is always null, and never was in the last {len(history)} runs; "
            "has the page changed?"
        )
        return
    shares = [past.share(column) for past in history]
    usual = _median(shares)
    spread = max(_deviation(shares), sqrt(chance * (1 - chance) / run.rows))
    highest = -_low([-past for past in shares])
    if run.rows >= LEAST_ROWS and share > usual + max(_RISE, _SPREADS * spread) and share > highest:
        yield (
            f"wrapper {wrapper}: {column} is null in {share:.0%} of {run.rows:,} rows, "
            f"where {usual:.0%} is usual; has the page changed?"
        )


def _median(values: Iterable[float]) -> float:
    """As that of `statistics`, which would be slow to import."""
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def _deviation(values: Sequence[float]) -> float:
    """The spread of values, whatever a few odd ones among them do."""
    middle = _median(values)
    return _NORMAL * _median(abs(value - middle) for value in values)


def _low(values: Sequence[float]) -> float:
    """About the lowest value: one in ten may be odd."""
    return sorted(values)[len(values) // 10]
