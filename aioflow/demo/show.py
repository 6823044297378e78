"""Runs the demonstration and shows it: live on a terminal, as plain lines elsewhere.

Its second part is the search as a monitor that remembers houses and mails new ones.
"""

from __future__ import annotations

import asyncio
import email
import email.policy
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import EmailMessage
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aioflow.cli.exit import run_interruptibly
from aioflow.demo.picture import (
    HOUSES,
    PAGES,
    WORKERS,
    DemoMode,
    ModeOutcome,
    Timeline,
    demo_modes,
    run_picture,
)
from aioflow.demo.running import Site, running_site
from aioflow.language.loader import LIBRARY
from aioflow.relation import Record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import Console

    from aioflow.cli.output.progress import ProgressDisplay
    from aioflow.engine import Engine
    from aioflow.plan import Program

MONITOR_PLAN = LIBRARY / "homeseekers" / "monitor.plan"
_TO = "you@example.org"
_ADDED_TO_THE_SEARCH = ("dbimport", "minus", "dbappend", "email")
_SHOWN_LINES = 6


@dataclass(frozen=True)
class _Watch:
    """The cost of one run of the monitor, and its mail."""

    seconds: float
    requests: int
    mail: EmailMessage | None


async def monitor(console: Console, site: Site, criteria: Mapping[str, Any]) -> None:
    """Run the monitor twice; in between the site gets a new house."""
    from aioflow import Engine, load

    program = load(MONITOR_PLAN)
    _introduce_monitor(console)
    with tempfile.TemporaryDirectory(prefix="aioflow-demo-") as name:
        folder = Path(name)
        async with Engine(workers=WORKERS, configuration=_configuration(site, folder)) as engine:
            inputs = [{**criteria, "site": site.url}]
            _tell(console, "first run", await _watch(engine, program, inputs, folder))
            added = await asyncio.to_thread(site.add_house)
            console.print(f"            then a house is put up for sale: {added}")
            watch = await _watch(engine, program, inputs, folder)
            _tell(console, "second run", watch)
            for line in _first_lines(watch.mail):
                console.print(f"                {line}", markup=False)


def _introduce_monitor(console: Console) -> None:
    from rich.text import Text

    console.print(
        "\nThe same search as a monitor: a database (embedded) remembers which houses were seen, and new "
        "ones are\nmailed (here into a folder), both or neither. The plan has these statements more:\n"
    )
    for line in map(str.strip, MONITOR_PLAN.read_text(encoding="utf-8").splitlines()):
        if line.startswith(_ADDED_TO_THE_SEARCH):
            console.print(Text(f"      {line}", style="cyan"))
    console.print()


def _configuration(site: Site, folder: Path) -> dict[str, Any]:
    return {
        **site.configuration(WORKERS),
        "database": {"default": {"url": f"sqlite:{folder / 'houses.db'}"}},
        "email": {"default": {"url": f"maildir:{folder / 'mail'}", "from": "Homeseekers <demo@example.org>"}},
    }


async def _watch(engine: Engine, program: Program, inputs: list[dict[str, Any]], folder: Path) -> _Watch:
    clock = asyncio.get_running_loop().time
    timeline = Timeline()
    unsubscribe = engine.subscribe(timeline)
    known, timeline.started = set(_mails(folder)), clock()
    await engine.run(program, criteria=inputs, parameters={"to": _TO})
    seconds = clock() - timeline.started
    unsubscribe()
    new = [_read(file) for file in _mails(folder) if file not in known]
    return _Watch(seconds, len(timeline.requests), new[0] if new else None)


def _mails(folder: Path) -> list[Path]:
    return list((folder / "mail" / "new").glob("*"))


def _read(file: Path) -> EmailMessage:
    return email.message_from_bytes(file.read_bytes(), policy=email.policy.default)


def _tell(console: Console, run: str, watch: _Watch) -> None:
    mailed = "no mail" if watch.mail is None else f"a mail to {watch.mail['to']}, “{watch.mail['subject']}”"
    console.print(f"[bold]{run:<10}[/bold]  {watch.seconds:.2f} s, {watch.requests} requests: {mailed}")


def _first_lines(mail: EmailMessage | None) -> Iterator[str]:
    """The beginning of the text: the first attributes of a single house."""
    body = None if mail is None else mail.get_body(("plain",))
    if body is not None:
        yield from str(body.get_content()).splitlines()[:_SHOWN_LINES]


PLAN = LIBRARY / "homeseekers" / "get_houses.plan"
PICTURE = "aioflow-demo.svg"
_CRITERIA = {"city": "Irvine", "state": "CA", "max-price": 550_000, "min-beds": 2}


def show(latency_seconds: float) -> None:
    """Run the plan in each mode and compare the times with what is physically possible; then a monitor."""
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=True)
    with running_site(latency=latency_seconds) as site:
        _introduce(console, latency_seconds)
        outcomes = run_interruptibly(_run_modes(console, site, latency_seconds))
        _compare(console, outcomes)
        console.print(f"\nWhich request was under way when: {_save(run_picture(outcomes, latency_seconds))}")
        run_interruptibly(monitor(console, site, _CRITERIA))
    _suggest(console)


def _introduce(console: Console, latency_seconds: float) -> None:
    from rich.text import Text

    console.print(
        f"A web site on this machine: {HOUSES} houses in Irvine on {PAGES} result pages, every answer takes "
        f"{latency_seconds * 1000:.0f} ms.\nThe plan follows the Next links by recursion and looks at each "
        f"house, with {WORKERS} workers:\n"
    )
    for path in (PLAN, PLAN.with_name("get_urls.plan")):
        for line in _essence(path.read_text(encoding="utf-8")):
            console.print(Text(f"    {line}", style="bold" if line.startswith("PLAN") else "cyan"))
    console.print()


def _essence(plan: str) -> Iterator[str]:
    """The plan in brief: its name, then its statements."""
    for line in map(str.strip, plan.splitlines()):
        if line.startswith("PLAN"):
            yield line
        elif " : " in line and "(" in line:
            yield f"  {line}"


# --- running ------------------------------------------------------------------------------------


async def _run_modes(console: Console, site: Site, latency_seconds: float) -> list[ModeOutcome]:
    """The streaming mode first: it is what one came to see. The outcomes are in the order of the modes."""
    from aioflow import Engine, load

    program = load(PLAN)
    async with Engine(workers=WORKERS, configuration=site.configuration(WORKERS)) as engine:
        # A search without results: what it takes to get ready is no part of what is compared.
        await engine.run(program, criteria=[{"city": "Nowhere", "site": site.url}])
        outcomes = [
            await _run_mode(engine, program, mode, console, site)
            for mode in reversed(demo_modes(latency_seconds))
        ]
    return outcomes[::-1]


async def _run_mode(
    engine: Engine, program: Program, mode: DemoMode, console: Console, site: Site
) -> ModeOutcome:

    console.print(f"[bold]{mode.name:<4}[/bold]  {mode.meaning}")
    clock = asyncio.get_running_loop().time
    timeline = Timeline()
    unsubscribe = engine.subscribe(timeline)
    display = Display(console, timeline, shows_houses=mode.name == "D+S+")
    criteria = [{**_CRITERIA, "site": site.url}]
    async with engine.stream(program, criteria=criteria, mode=mode.name) as stream:
        # The plan has been checked; the run begins with the first read.
        timeline.started = clock()
        with display.live():
            async for house in stream:
                display.add(house, clock() - timeline.started)
    unsubscribe()
    outcome = ModeOutcome(mode, tuple(timeline.requests), tuple(display.arrivals))
    console.print(
        f"      first house after {outcome.first_seconds:.2f} s, all {len(outcome.arrivals)} after "
        f"{outcome.last_seconds:.2f} s\n"
    )
    return outcome


# --- the end ------------------------------------------------------------------------------------


def _compare(console: Console, outcomes: Sequence[ModeOutcome]) -> None:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("mode")
    for name in ("first house", "physical limit", "last house", "physical limit"):
        table.add_column(name, justify="right", style="dim" if "limit" in name else "")
    for outcome in outcomes:
        mode = outcome.mode
        times = (outcome.first_seconds, mode.first_limit, outcome.last_seconds, mode.last_limit)
        table.add_row(mode.name, *(f"{seconds:.2f} s" for seconds in times))
    console.print(table)
    slowest, streaming = outcomes[0], outcomes[-1]
    console.print(
        f"Streaming gave the first house {slowest.first_seconds / streaming.first_seconds:.0f} times and the "
        f"last {slowest.last_seconds / streaming.last_seconds:.1f} times as fast as one request at a time."
    )


def _save(picture: str) -> Path:
    """Write the picture here or, where that is not allowed, among temporary files."""
    for folder in (Path.cwd(), Path(tempfile.gettempdir())):
        file = folder / PICTURE
        try:
            file.write_text(picture, encoding="utf-8")
        except OSError:
            continue
        return file
    raise OSError(f"neither this folder nor {tempfile.gettempdir()} can be written to")


def _suggest(console: Console) -> None:
    from rich.text import Text

    console.print("\nStart the site, open http://127.0.0.1:8640 in a browser, and run the plans yourself:")
    houses = _shown(PLAN)
    contributions = _shown(LIBRARY / "contributions" / "contributions.plan")
    wish = '{"city": "Irvine", "max-price": 550000, "min-beds": 4}'
    for command in (
        f"{_program('python')} -m aioflow.demo.site --latency 0.1 &",
        f"{_program('aioflow')} run {houses} -i '{wish}'",
        f"{_program('aioflow')} run {contributions} -i '{{\"year\": 2000}}'",
        f"{_program('aioflow')} graph {houses} --all -o houses.svg",
    ):
        console.print(Text(f"    {command}", style="cyan"))


def _program(name: str) -> str:
    """Return the call of a program of this environment, which need not be active, as in `make demo`."""
    program = Path(sys.executable).parent / name
    found = shutil.which(name)
    if found is not None and Path(found) == program:
        return name
    return str(program.relative_to(Path.cwd())) if program.is_relative_to(Path.cwd()) else str(program)


def _shown(plan: Path) -> Path:
    """A plan of the library, by the shortest path."""
    for path in (plan, plan.resolve()):
        try:
            return path.relative_to(Path.cwd())
        except ValueError:
            continue
    return plan


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
        self._progress: ProgressDisplay | None = None

    @contextmanager
    def live(self) -> Iterator[None]:
        """Keep the bar moving, if there is a terminal to show it on."""
        if not self._console.is_terminal:
            yield
            return
        from aioflow.cli.output.progress import ProgressDisplay

        with ProgressDisplay(self._bar, file=self._console.file, first_seconds=0.05) as self._progress:
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
