"""Watches the wrappers of a run: marks relations that lack something, tells people, keeps figures.

What is usual, and what is not, is for `health`.
"""

from __future__ import annotations

import asyncio
import shlex
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from aioflow.context import Context, RunInfo
from aioflow.errors import AioflowError
from aioflow.folders import shown_path
from aioflow.masking import mask
from aioflow.quantities import count_text
from aioflow.services import ServiceHost
from aioflow.web.urls import without_userinfo
from aioflow.wholeness import Marks, Reason, partial
from aioflow.wrappers.health import HISTORY_RUNS, Tally, Usual
from aioflow.wrappers.naming import AnyWrapper
from aioflow.wrappers.python import PythonWrapper

if TYPE_CHECKING:
    from aioflow.state.databases import Databases
    from aioflow.state.driver import Address
    from aioflow.state.health import HealthWrite, RunHealth

_NOTHING_KNOWN = Usual(())


class WrapperWatch:
    """One statement in a run, over all calls of its plan; `lack` is why its rows were found to be too few."""

    def __init__(self, wrapper: AnyWrapper, where: str, baseline: str, tally: Tally) -> None:
        self.wrapper = wrapper
        self.where = where
        self.baseline = baseline
        self.tally = tally
        self.usual: Usual | None = None  # not known yet
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
        """That nothing was found, with words that help; None if something was."""
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


class Watching:
    """All statements of one run that use wrappers.

    Where figures are kept (`is_kept`), nothing that happens to them makes a run fail: it is told once, and
    the run goes on without a history.
    """

    def __init__(self, host: ServiceHost, run: RunInfo, *, is_kept: bool) -> None:
        self._host = host
        self._run = run
        self._is_kept = is_kept
        self._watches: dict[str, WrapperWatch] = {}
        self._reading = asyncio.Lock()
        if is_kept and run.writes:
            # Opened before this: so it is closed, and commits, after this has concluded.
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
            self._host.warn(lack.text)
        lacks_rows = bool(watch.tally.rows) or not outer
        context.mark(Marks(partial=(lack,) if lacks_rows else (), doubtful=(lack,) if outer else ()))

    def _doubt_silence(self, watch: WrapperWatch, context: Context) -> None:
        """What never gave anything may lack everything: its silence is told when the run concludes."""
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
            self._host.warn(lack.text)
        if not usual.history:
            return True
        run = self._figures(watch)
        lost, poorer = list(usual.lost_columns(run)), list(usual.poorer_columns(run))
        for words in (*lost, *poorer):
            self._host.warn(f"{watch.where}: {watch.wrapper.name}: {words}")
        return lack is None and not lost

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

    async def _read(self, watch: WrapperWatch) -> Usual:
        from aioflow.state.health import good_runs

        try:
            databases, address = self._database()
            return Usual(await good_runs(databases, address, watch.baseline, HISTORY_RUNS))
        except AioflowError as error:
            self._give_up(error)
            return _NOTHING_KNOWN

    def _database(self) -> tuple[Databases, Address]:
        from aioflow.state.databases import Databases

        databases = self._host.service(Databases)
        return databases, databases.address(self._run.store, self._run.folder)

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
                f"what wrappers find is not compared with earlier runs: {error} "
                "([http] health = false does without)"
            )
