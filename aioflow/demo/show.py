"""Runs the demonstration and shows it: live on a terminal, as plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from aioflow.cli.loop import run_interruptibly
from aioflow.demo import site
from aioflow.demo.modes import WORKERS, DemoMode, Outcome, demo_modes

if TYPE_CHECKING:
    from rich.console import Console

    from aioflow.plan import Program

PLAN = Path(__file__).with_name("houses.plan")


def show_demo() -> None:
    """Run the plan in each mode and compare the times with what is physically possible."""
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=True)
    _introduce(console)
    outcomes = run_interruptibly(_run_modes(console))
    _compare(console, outcomes)
    _suggest(console)


def _introduce(console: Console) -> None:
    from rich.text import Text

    console.print(
        f"A site of {site.PAGES} result pages with {site.HOUSES_PER_PAGE} houses each; every request takes "
        f"{site.LATENCY_SECONDS * 1000:.0f} ms; {WORKERS} workers.\n"
        "The plan follows the Next links by recursion:\n"
    )
    for line in _essence(PLAN.read_text(encoding="utf-8")):
        console.print(Text(f"    {line}", style="bold" if line.startswith("PLAN") else "cyan"))
    console.print()


def _essence(plan: str) -> Iterator[str]:
    """The plan in brief: one line for each plan's header, then its statements."""
    header: list[str] = []
    for line in map(str.strip, plan.splitlines()):
        if line.startswith(("PLAN", "INPUT", "OUTPUT")):
            header.append(line)
        elif line.startswith("BODY"):
            yield "  ".join(header)
            header.clear()
        elif line.endswith(")"):
            yield f"  {line}"


async def _run_modes(console: Console) -> list[Outcome]:
    from aioflow import load

    program = load(str(PLAN))
    modes = demo_modes()
    return [await _run_mode(program, mode, console, modes[0].last_limit) for mode in modes]


async def _run_mode(program: Program, mode: DemoMode, console: Console, span_seconds: float) -> Outcome:
    from aioflow import Engine
    from aioflow.demo.live import arrivals_line, live

    console.print(f"[bold]{mode.name:<4}[/bold]  {mode.meaning}")
    arrivals: list[float] = []
    async with Engine(workers=WORKERS, mode=mode.name) as engine:
        started = time.perf_counter()
        async with engine.stream(program, start=[{"page-url": site.FIRST_PAGE}]) as stream:
            with live(console, stream, program, arrivals):
                # One by one: the display reads the list meanwhile.
                async for _ in stream:
                    arrivals.append(time.perf_counter() - started)  # noqa: PERF401
    outcome = Outcome(mode, len(arrivals), arrivals[0], arrivals[-1])
    if console.is_terminal:
        console.print(f"      {arrivals_line(arrivals, span_seconds)}")
    console.print(
        f"      first house after {outcome.first_seconds:.2f} s, all {outcome.houses} after "
        f"{outcome.last_seconds:.2f} s\n"
    )
    return outcome


def _compare(console: Console, outcomes: list[Outcome]) -> None:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("mode")
    for name in ("first tuple", "physical limit", "last tuple", "physical limit"):
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


def _suggest(console: Console) -> None:
    from rich.text import Text

    try:
        path = PLAN.relative_to(Path.cwd())
    except ValueError:
        path = PLAN
    console.print("\nSee the plan, run it, draw it:")
    start = f'{{"page-url": "{site.FIRST_PAGE}"}}'
    for command in (
        f"aioflow explain {path} --ops aioflow.demo.site",
        f"aioflow run {path} --ops aioflow.demo.site --input '{start}'",
        f"aioflow graph {path} --ops aioflow.demo.site --all -o houses.svg",
    ):
        console.print(Text(f"    {command}", style="cyan"))
