"""The health of wrappers: figures of a run, the usual figures of earlier runs, and the warnings between them.

A page that changes rarely makes a wrapper fail outright: a column becomes empty, or a page has fewer rows.
Such a relation is marked as partial. `aioflow.state.health` stores the figures.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from math import exp, sqrt
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from aioflow.authoring.context import Context, RunInfo
from aioflow.authoring.services import ServiceHost
from aioflow.config.folders import shown_path
from aioflow.config.masking import mask
from aioflow.errors import AioflowError
from aioflow.relation import Relation, Row, is_empty
from aioflow.values.quantities import count_text
from aioflow.web.urls import without_userinfo
from aioflow.wholeness import Marks, Reason, partial
from aioflow.wrappers.python import PythonWrapper
from aioflow.wrappers.wrapper_item import AnyWrapper

if TYPE_CHECKING:
    from aioflow.state.databases import Databases
    from aioflow.state.driver import Address
    from aioflow.state.health import HealthWrite, RunHealth


HISTORY_RUNS = 20  # good ones that a run is compared with
LEAST_RUNS = 3
LEAST_ROWS = 5  # of a run, for its shares to mean anything
_RISE = 0.3  # of a column's share of nulls, from which on it is told
_SPREADS = 4.0
_NORMAL = 1.4826  # a median absolute deviation as a standard deviation
_CHANCE = 0.05  # that nulls, or pages without rows, are chance; below it they are told
# While more pages may come, the first may well be the poor ones: so many of the usual number of pages decide.
_NEARLY_ALL_PAGES = 0.9


class Tally:
    """Counts the rows that a wrapper gave in a run, and the nulls among their values.

    `pages` are those that were read to their end, but for those that are known to have no items.
    `looked_for` are the columns that come from pages; `has_found` says that one of them had a value. Nulls
    are counted if they are to be `compared`. An embedded relation without rows counts as null, and so does 0
    in a column that is `counting`: it is how a broken selector for many shows.
    """

    __slots__ = (
        *(
            "_compared",
            "_counting",
            "_looked_for",
            "columns",
            "empty_pages",
            "first_empty",
            "first_url",
            "has_found",
        ),
        *("nulls", "pages", "rows"),
    )

    def __init__(
        self,
        columns: Sequence[str],
        looked_for: Iterable[str],
        counting: Iterable[str] = (),
        *,
        compared: bool = True,
    ) -> None:
        self.columns = tuple(columns)
        self.rows = 0
        self.pages = 0
        self.first_url = ""
        self.empty_pages = 0
        self.first_empty = ""
        self.has_found = False
        self.nulls = [0] * len(self.columns)
        self._looked_for = frozenset(map(self.columns.index, looked_for))
        self._counting = frozenset(map(self.columns.index, counting))
        self._compared = compared

    def add_page(self, url: str, *, has_items: bool = True) -> None:
        self.first_url = self.first_url or url
        self.pages += 1
        if not has_items:
            self.first_empty = self.first_empty or url
            self.empty_pages += 1

    def add(self, rows: Sequence[Row]) -> None:
        """Count a batch."""
        self.rows += len(rows)
        if self.has_found and not self._compared:
            return
        for place, values in enumerate(zip(*rows, strict=True)):
            empty = values.count(None)
            if place in self._counting:
                empty += values.count(0)
            elif isinstance(next((value for value in values if value is not None), None), Relation):
                empty = sum(map(is_empty, values))
            if empty:
                self.nulls[place] += empty
            if empty < len(values) and place in self._looked_for:
                self.has_found = True
        self.has_found = self.has_found or (bool(rows) and not self._looked_for)

    def by_column(self) -> dict[str, int]:
        """Return the number of nulls in each column."""
        return dict(zip(self.columns, self.nulls, strict=True))


class HealthBaseline:
    """The usual figures of a baseline, from its good runs: the latest first, at most `HISTORY_RUNS`."""

    def __init__(self, history: Sequence[RunHealth]) -> None:
        self.history = history
        known = [past for past in history if past.pages]
        self._runs = len(known)
        if not known:
            return
        # Computed once: a recursion is judged at each of its levels.
        shares = [past.rows / past.pages for past in known]
        self._rows_a_page = _median(shares)
        self._deviation = _deviation(shares)
        self._lowest = _low(shares)
        self._pages = _median(past.pages for past in known)
        self._fewest_pages = _low([past.pages for past in known])
        self._always_found = all(past.rows for past in known)
        self._had_empty_pages = any(past.empty_pages for past in known)

    def lack(
        self, rows: int, pages: int, *, more_may_come: bool = False, leads_on: bool = False
    ) -> str | None:
        """Return in words that there are fewer rows than usual, or none; None if there are enough.

        Pages are compared, not runs: a run that asks for less gets fewer pages, but each as full as ever.
        Where more pages may come, nothing is said of the first ones, unless there are no rows, and rows are
        what leads on to further pages.
        """
        if not pages or not self._runs:
            return None
        if more_may_come and pages < _NEARLY_ALL_PAGES * self._fewest_pages and (rows or not leads_on):
            return None
        if not self._finds_nothing(rows, pages) and not self._finds_less(rows, pages):
            return None
        gave = count_text(rows, "row") if rows else "no rows"
        usual = round(self._rows_a_page, None if self._rows_a_page >= 10 else 1)
        runs = "last run" if self._runs == 1 else f"last {self._runs} runs"
        return (
            f"gave {gave} on {count_text(pages, 'page')}, where its {runs} had about {usual:,g} a page; "
            "has the page changed?"
        )

    def lacks_page(self, empty_pages: int, pages: int) -> str | None:
        """Return in words that some page has no item, where every page had some; None if that is usual."""
        if not empty_pages or not self._runs or self._had_empty_pages:
            return None
        found = "no item" if pages == 1 else f"no item on {empty_pages:,} of its {pages:,} pages"
        runs = "last run" if self._runs == 1 else f"last {self._runs} runs"
        return f"gave {found}, where every page of its {runs} had some"

    def _finds_nothing(self, rows: int, pages: int) -> bool:
        """Return whether pages have no row at all, of a wrapper that found some in every run."""
        if rows or not self._always_found:
            return False
        # Where rows are few, only a long history says that there always are some.
        return exp(-self._rows_a_page * pages) < _CHANCE or 1 / (self._runs + 2) < _CHANCE

    def _finds_less(self, rows: int, pages: int) -> bool:
        if self._runs < LEAST_RUNS:
            return False
        # A run that asked for less than usual has a last page that may be as short as it likes.
        expected = self._rows_a_page * (pages - (pages < self._pages))
        deviation = self._deviation * pages
        # Few runs may look steadier than they are, and counts vary by about their root.
        spread = max(deviation, sqrt(expected) * ((0.5 if deviation else 0.3) + 1.5 / self._runs))
        return rows < expected / 2 and rows < expected - _SPREADS * spread and rows / pages < self._lowest

    def lost_columns(self, run: RunHealth) -> Iterator[str]:
        """Yield, in words, the columns that are always null and never were."""
        for column, history in self._known_columns(run):
            nulls, chance = _nulls_of(column, history)
            if run.share(column) == 1 and not nulls and chance**run.rows < _CHANCE:
                yield (
                    f"{column} is always null, and never was in the last {len(history)} runs; "
                    "has the page changed?"
                )

    def poorer_columns(self, run: RunHealth) -> Iterator[str]:
        """Yield, in words, the columns that are null more often than usual."""
        if run.rows < LEAST_ROWS:
            return
        for column, history in self._known_columns(run):
            nulls, chance = _nulls_of(column, history)
            share = run.share(column)
            shares = [past.share(column) for past in history]
            usual = _median(shares)
            spread = max(_deviation(shares), sqrt(chance * (1 - chance) / run.rows))
            highest = -_low([-past for past in shares])
            rises = share > usual + max(_RISE, _SPREADS * spread) and share > highest
            if rises and (share < 1 or nulls):
                yield (
                    f"{column} is null in {share:.0%} of {run.rows:,} rows, where {usual:.0%} is usual; "
                    "has the page changed?"
                )

    def _known_columns(self, run: RunHealth) -> Iterator[tuple[str, list[RunHealth]]]:
        for column in run.nulls if run.rows else ():
            known = [past for past in self.history if past.rows and column in past.nulls]
            if len(known) >= LEAST_RUNS:
                yield column, known


def _nulls_of(column: str, history: Sequence[RunHealth]) -> tuple[int, float]:
    """Return how many nulls a column had, and the chance of one.

    A column that never was null has a small chance of nulls all the same; how small, its rows tell.
    """
    nulls = sum(past.nulls[column] for past in history)
    return nulls, (nulls + 1) / (sum(past.rows for past in history) + 2)


def _median(values: Iterable[float]) -> float:
    """As that of `statistics`, which would be slow to import."""
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def _deviation(values: Sequence[float]) -> float:
    """Return the spread of values, whatever a few odd ones among them do."""
    middle = _median(values)
    return _NORMAL * _median(abs(value - middle) for value in values)


def _low(values: Sequence[float]) -> float:
    """Return about the lowest value: one in ten may be odd."""
    return sorted(values)[len(values) // 10]


_NOTHING_KNOWN = HealthBaseline(())


class WrapperWatch:
    """One statement in a run, over all calls of its plan; `lack` is why its rows were found to be too few."""

    def __init__(self, wrapper: AnyWrapper, where: str, baseline: str, tally: Tally) -> None:
        self.wrapper = wrapper
        self.where = where
        self.baseline = baseline
        self.tally = tally
        self.usual: HealthBaseline | None = None  # not known yet
        self.lack: Reason | None = None

    def look(self, *, more_may_come: bool, leads_on: bool) -> Reason | None:
        """Judge what was counted so far; what was found once stays."""
        if self.lack is None and self.usual is not None:
            tally = self.tally
            words = self.usual.lack(tally.rows, tally.pages, more_may_come=more_may_come, leads_on=leads_on)
            if words is None and (lacks := self.usual.lacks_page(tally.empty_pages, tally.pages)):
                words = f"{lacks} (the first: {mask(without_userinfo(tally.first_empty))})"
            if words is not None:
                self.lack = Reason(f"{self.where}: {self.wrapper.name} {words}", self.baseline)
        return self.lack

    @property
    def silence(self) -> str | None:
        """Return the warning that nothing was found, with advice; None if something was."""
        tally = self.tally
        if not tally.pages or (tally.rows and tally.has_found):
            return None
        several = tally.pages > 1
        if tally.rows:
            pages = f"its {tally.pages:,} pages" if several else "its only page"
            what = f"all fields of its {count_text(tally.rows, 'row')} on {pages} are null or empty"
            hint = ""
        else:
            pages = f"any of its {tally.pages:,} pages" if several else "its only page"
            what = f"found no item on {pages}"
            hint = "; if there are none now, EMPTY can tell by the page"
        first = f", of which the first is {self._first_url}" if several else f", {self._first_url}"
        return f"{self.where}: {self.wrapper.name} {what}{first}; {self._advice}{hint}"

    @property
    def _first_url(self) -> str:
        return mask(without_userinfo(self.tally.first_url))

    @property
    def _advice(self) -> str:
        if isinstance(self.wrapper, PythonWrapper):
            return "has the page changed?"
        file = shlex.quote(shown_path(Path(self.wrapper.file))) if self.wrapper.file else "PLAN"
        is_get = self.wrapper.request.method == "GET"
        url = f" --url {shlex.quote(self._first_url)}" if is_get else ""
        return f"try `aioflow wrapper test {file} {shlex.quote(self.wrapper.name)}{url}`"


class HealthWatch:
    """All statements of one run that use wrappers.

    Where figures are kept (`is_kept`), nothing that happens to them makes a run fail: it is told once, and
    the run goes on without a history.
    """

    def __init__(self, host: ServiceHost, run: RunInfo, *, is_kept: bool) -> None:
        self._host = host
        self._run = run
        self._is_kept = is_kept
        self._watches: dict[str, WrapperWatch] = {}
        self.worse: list[str] = []  # sentences about statements that found less than usual
        self._reading = asyncio.Lock()
        if is_kept and run.writes:
            # Opened before this: so it takes all writes as complete after this has staged its figures.
            from aioflow.state.transaction import Transaction

            host.service(Transaction)

    def of(self, wrapper: AnyWrapper, context: Context) -> WrapperWatch:
        """Return the watch of a statement."""
        plan, number = context.number_in_plan("name")
        plans = (self._run.plan,) if plan == self._run.plan else (self._run.plan, plan)
        name = "/".join((*plans, wrapper.name, str(number)))
        found = self._watches.get(name)
        if found is None:
            baseline = f"{name} {self._run.task}".rstrip() if self._is_kept else name
            tally = Tally(
                wrapper.schema.names, wrapper.page_fields, wrapper.counting_fields, compared=self._is_kept
            )
            found = self._watches[name] = WrapperWatch(wrapper, context.where, baseline, tally)
        return found

    async def relation_ended(self, watch: WrapperWatch, context: Context, *, outer: bool) -> None:
        """Mark the results of a call that ends now, if by now the statement lacks rows.

        Where nothing is found, `outer` makes rows of nulls: those may be wrong.
        """
        if not watch.tally.pages:
            return
        await self._learn(watch)
        is_new = watch.lack is None
        lack = watch.look(more_may_come=not context.runs_once, leads_on=context.urgent)
        if lack is None:
            self._doubt_silence(watch, context)
            return
        if is_new:
            self._tell(lack.text)
        lacks_rows = bool(watch.tally.rows) or not outer
        context.mark(Marks(partial=(lack,) if lacks_rows else (), doubtful=(lack,) if outer else ()))

    def _doubt_silence(self, watch: WrapperWatch, context: Context) -> None:
        """Mark results as doubtful, if the wrapper never gave anything: everything may be missing."""
        is_known = watch.usual is not None and watch.usual.history
        if context.runs_once and not is_known and (silence := watch.silence) is not None:
            context.mark(partial(silence, watch.baseline))

    async def conclude(self) -> None:
        """The run has ended well: tell what is known only now, and leave its figures."""
        runs = {}
        for watch in self._watches.values():
            if watch.tally.pages or watch.tally.rows:
                await self._learn(watch)
                is_good = self._conclude(watch)
                if self._is_kept:
                    runs[watch.baseline] = replace(self._figures(watch), is_good=is_good)
        if runs and self._is_kept:
            await self._store(runs)

    def _conclude(self, watch: WrapperWatch) -> bool:
        """Tell what is to be told of a statement; whether this run may be a measure for later ones."""
        usual = watch.usual or _NOTHING_KNOWN
        silence = None if usual.history else watch.silence
        if silence is not None:
            self._host.found_nothing(silence)
            return False
        is_new = watch.lack is None
        lack = watch.look(more_may_come=False, leads_on=False)
        if lack is not None and is_new:
            self._tell(lack.text)
        if not usual.history:
            return True
        run = self._figures(watch)
        lost, poorer = list(usual.lost_columns(run)), list(usual.poorer_columns(run))
        for words in (*lost, *poorer):
            self._tell(f"{watch.where}: {watch.wrapper.name}: {words}")
        return lack is None and not lost

    def _tell(self, text: str) -> None:
        self.worse.append(text)
        self._host.warn(text)

    def _figures(self, watch: WrapperWatch) -> RunHealth:
        from aioflow.state.health import RunHealth

        tally = watch.tally
        return RunHealth(
            *(self._run.run_id, tally.rows, tally.pages, tally.by_column(), tally.empty_pages),
            ended=datetime.now(UTC),
        )

    # --- the database ---------------------------------------------------------------------------

    async def _learn(self, watch: WrapperWatch) -> None:
        """Read what is usual, once."""
        if watch.usual is not None:
            return
        async with self._reading:
            if watch.usual is None:
                watch.usual = await self._read(watch) if self._is_kept else _NOTHING_KNOWN

    async def _read(self, watch: WrapperWatch) -> HealthBaseline:
        from aioflow.state.health import good_runs

        try:
            databases, address = self._database()
            return HealthBaseline(await good_runs(databases, address, watch.baseline, HISTORY_RUNS))
        except AioflowError as error:
            self._give_up(error)
            return _NOTHING_KNOWN

    def _database(self) -> tuple[Databases, Address]:
        from aioflow.state.databases import Databases

        databases = self._host.service(Databases)
        return databases, databases.address(self._run.default("database", self._run.store), self._run.folder)

    async def _store(self, runs: dict[str, RunHealth]) -> None:
        from aioflow.state.health import HealthWrite, store_alone

        write = HealthWrite(self._host.warn)
        for baseline, run in runs.items():
            write.add(baseline, run)
        if self._run.writes:
            self._stage(write)
            return
        try:
            await store_alone(*self._database(), write, self._host.warn)
        except AioflowError as error:
            self._give_up(error)

    def _stage(self, write: HealthWrite) -> None:
        """Have the figures take hold with all that the run writes, which commits after this."""
        from aioflow.state.transaction import Transaction

        self._host.service(Transaction).stage(self._run.store, write)

    def _give_up(self, error: AioflowError) -> None:
        if self._is_kept:
            self._is_kept = False
            self._host.warn(
                f"the figures of wrappers are not compared with earlier runs: {error} "
                "([http] health = false does without)"
            )
