"""Somebody who watches the site day by day, believes what is told, and looks at what is held back."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

from aioflow import Engine, Result, RunError, loads
from aioflow.state.databases import Databases
from aioflow.state.diff.suspects import Suspect, confirm_suspect, read_suspects
from aioflow.state.driver import Connection
from aioflow.testing import ScriptedSite, run
from aioflow.web import Client
from tests.soak.site import DESIGNS, FAULTS, HOST, Design, Fault, Item, Site

SETTLING_DAYS = 8
START = datetime(2026, 1, 1, 8, tzinfo=UTC)
PLAN = """
WRAPPER list (link char = "HOST/list?page=1")
{
  GET: "{+link}"
  EACH: "li.ROW"
  url: "a.title @href" url
  next: page "a.next @href" url
}

WRAPPER item (url char)
{
  GET: "{+url}"
  title: "h1"
  price: ".price" number
  author: ".AUTHOR"
}

PLAN all_urls
{
  INPUT: page
  OUTPUT: urls
  BODY
  {
    project (page, "url" : here)
    select (page, "next is not null" : more)
    distinct (more, "next" : pages)
    project (pages, "next as link" : links)
    wrapper ("list", links : following) {ERRORS: skip}
    all_urls (following : rest)
    union (here, rest : urls)
  }
}

PLAN watch
{
  OUTPUT: added, changed, removed
  BODY
  {
    wrapper ("list" : page) {ERRORS: skip}
    all_urls (page : urls)
    wrapper ("item", urls : details) {ERRORS: skip}
    project (details, "url, title, price, author" : items)
    diff (items, "items" : added, changed, removed) {KEY: "url"}
  }
}
"""


class LieError(AssertionError):
    """Something was told that did not happen, or was told twice."""


@dataclass
class Account:
    """What a soak saw."""

    days: int = 0
    failed_runs: int = 0
    told: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    suspicions: Counter[str] = field(default_factory=Counter)
    confirmed: int = 0
    longest_delay_days: int = 0

    def __str__(self) -> str:
        told = ", ".join(f"{count} {name}" for name, count in sorted(self.told.items()))
        return (
            f"{self.days} days, told: {told or 'nothing'}; {sum(self.faults.values())} faults, "
            f"{sum(self.suspicions.values())} days with suspicions, {self.confirmed} confirmed by a person, "
            f"{self.failed_runs} failed runs, longest delay {self.longest_delay_days} days"
        )


class Watcher:
    """Believes what is told, and checks it against what is true."""

    def __init__(self, site: Site, folder: Path) -> None:
        self.site = site
        self.design: Design = DESIGNS[0]  # the one that the plan is written for
        self.now = START
        self.believed: dict[str, Item] = {}
        self.account = Account()
        self._url = f"sqlite:{folder / 'soak.db'}"
        self._behind = 0
        self._moving: set[str] = set()  # addresses of which a person has said that only they have changed

    # --- a day ----------------------------------------------------------------------------------

    def live_through(self, *, looks: bool) -> None:
        """Run the plan on one day; the person looks at what is held back, or not."""
        self.now += timedelta(days=1)
        self.account.days += 1
        self.account.faults[self.site.fault] += bool(self.site.fault)
        try:
            result = run(self._run())
        except RunError:
            self.account.failed_runs += 1
        else:
            self._move()
            self._believe(result)
        for suspect in run(self._suspects()):
            self._check_words(suspect)
            if looks:
                self._look(suspect)
        self._behind = 0 if self.believed == self.site.truth else self._behind + 1
        self.account.longest_delay_days = max(self.account.longest_delay_days, self._behind)

    def begin(self) -> None:
        """The first day, on which nothing is told."""
        self.live_through(looks=False)
        self.believed = dict(self.site.truth)

    async def _run(self) -> Result:
        text = PLAN.replace("ROW", self.design.row).replace("AUTHOR", self.design.author)
        program = loads(text.replace("HOST", HOST), plan="watch")
        tables = {"database": {"default": {"url": self._url}}, "http": {"health": True, "rate": 1000}}
        client = ScriptedSite(self.site.answer).client(tables)
        engine = Engine(configuration=tables, services={Client: client}, clock=lambda: self.now)
        async with client, engine:
            return await engine.run(program)

    # --- what is told ---------------------------------------------------------------------------

    def _believe(self, result: Result) -> None:
        truth = self.site.truth
        for name, told in (("added", self._added), ("changed", self._changed), ("removed", self._removed)):
            for record in result.outputs[name]:
                self.account.told[name] += 1
                told(dict(record), truth)

    def _added(self, row: Mapping[str, Any], truth: Mapping[str, Item]) -> None:
        url = row["url"]
        if url in self.believed:
            raise LieError(f"{url} was told as new, and is known")
        self._check_true(row, truth)
        self.believed[url] = truth[url]

    def _changed(self, row: Mapping[str, Any], truth: Mapping[str, Item]) -> None:
        url = row["url"]
        before = self.believed.get(url)
        if before is None or (row["old-price"], row["old-title"]) != (before.price, before.title):
            raise LieError(f"{url} was told as changed from {dict(row)}, and was believed to be {before}")
        if row["changes"] != "price":
            raise LieError(f"{url} was told as changed in {row['changes']}, and only prices change")
        self._check_true(row, truth)
        self.believed[url] = truth[url]

    def _removed(self, row: Mapping[str, Any], truth: Mapping[str, Item]) -> None:
        url = row["url"]
        if url in truth:
            raise LieError(f"{url} was told as gone, and is there")
        if self.believed.pop(url, None) is None:
            raise LieError(f"{url} was told as gone, and nobody knew of it")

    def _check_true(self, row: Mapping[str, Any], truth: Mapping[str, Item]) -> None:
        item = truth.get(row["url"])
        if item is None or (row["title"], row["price"]) != (item.title, item.price):
            raise LieError(f"{dict(row)} was told, and true is {item}")
        if row["author"] not in (None, item.author):
            raise LieError(f"{dict(row)} was told, and its author is {item.author}")

    # --- what is held back ----------------------------------------------------------------------

    def _check_words(self, suspect: Suspect) -> None:
        if not suspect.reasons or not all(reason.text for reason in suspect.reasons):
            raise LieError(f"{suspect.held} is held back, and nothing says why")
        self.account.suspicions[suspect.reasons[0].text.partition(":")[0][:40]] += 1

    def _look(self, suspect: Suspect) -> None:
        """What a person does who looks at the site: waits, mends the plan, or says what is true."""
        if self.site.fault:
            return
        if self.design != self.site.design:
            self.design = self.site.design
            return
        gone = self.believed.keys() - self.site.truth.keys()
        if suspect.gone and suspect.gone == len(gone) and not suspect.confirmed:
            moved = not any(_is_now(url, self.design) for url in gone)
            if moved and not suspect.added:
                return  # the rows under their new addresses are still to be seen
            run(self._confirm(quietly=moved))
            self.account.confirmed += 1
            if moved:
                self._moving = set(self.site.truth)

    def _move(self) -> None:
        """The same items under other addresses are taken over without a word, as runs come to see them."""
        truth, stored = self.site.truth, run(self._stored())
        for url in tuple(self._moving):
            if url in stored:
                for known in [known for known in self.believed if not _is_now(known, self.design)]:
                    del self.believed[known]
                self.believed[url] = truth[url]
                self._moving.remove(url)

    # --- the database ---------------------------------------------------------------------------

    async def _stored(self) -> set[str]:
        async with self._connection() as connection:
            return {url for (url,) in await connection.fetch("select url from items")}

    async def _suspects(self) -> list[Suspect]:
        async with self._connection() as connection:
            return await read_suspects(connection)

    async def _confirm(self, *, quietly: bool) -> None:
        async with self._connection() as connection, connection.transaction("write"):
            await confirm_suspect(connection, "items", quietly=quietly)

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[Connection]:
        databases = Databases({"database": {"default": {"url": self._url}}})
        connection = await databases.connect(databases.address("default", Path()))
        try:
            yield connection
        finally:
            await connection.close()


class Faults:
    """What is wrong from day to day, often for several days.

    A list that is cut, with all else as always, is a list that has shrunk: after three whole runs that is
    believed. So it is cut on two days at most before everything is there again.
    """

    def __init__(self, random: Random) -> None:
        self._random = random
        self._fault: Fault = ""
        self._days_left = 0
        self._days_cut = 0

    def of_the_day(self) -> Fault:
        if self._days_left:
            self._days_left -= 1
        else:
            self._fault = self._random.choice(FAULTS) if self._random.random() < 0.25 else ""
            self._days_left = self._random.choice((0, 0, 1, 4)) if self._fault else 0
        if self._fault == "cut" and self._days_cut == 2:
            self._fault, self._days_left = "", 0
        self._days_cut = 0 if not self._fault else self._days_cut + (self._fault == "cut")
        return self._fault


def _is_now(url: str, design: Design) -> bool:
    """Whether an address is one of the present design."""
    return url.startswith(HOST + design.path)


def soak(items: int, days: int, seed: int, folder: Path) -> Account:
    """Watch a site for so many days; a LieError says what was wrong. Return what was seen."""
    site = Site(items, seed)
    random = site.random
    watcher = Watcher(site, folder)
    watcher.begin()
    redesigns = {days // 3: DESIGNS[1], 2 * days // 3: DESIGNS[2]}
    faults = Faults(random)
    for day in range(1, days):
        site.design = redesigns.get(day, site.design)
        _happen(site, items)
        site.fault = faults.of_the_day()
        watcher.live_through(looks=random.random() < 0.5)
    site.fault = ""
    for _ in range(SETTLING_DAYS):
        watcher.live_through(looks=True)
    if watcher.believed != site.truth:
        raise LieError(f"believed is {watcher.believed}, and true is {site.truth}")
    return watcher.account


def _happen(site: Site, items: int) -> None:
    """What happens to the items on a day."""
    random = site.random
    for _ in range(random.choice((0, 0, 1, 2))):
        if len(site.items) < 2 * items:
            site.gain()
    if random.random() < 0.4:
        site.lose(max(1, len(site.items) // 20))
    if random.random() < 0.03:  # a true clearance
        site.lose(len(site.items) // 2)
    if random.random() < 0.5:
        site.change(max(1, len(site.items) // 10))
