"""The second part of the demonstration: the search as a monitor that remembers houses and mails new ones."""

from __future__ import annotations

import asyncio
import email
import email.policy
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from email.message import EmailMessage
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aioflow.demo.running import Site
from aioflow.demo.timeline import WORKERS, Timeline
from aioflow.language.loader import LIBRARY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import Console

    from aioflow.engine import Engine
    from aioflow.plan import Program

PLAN = LIBRARY / "homeseekers" / "monitor.plan"
_TO = "you@example.org"
_ADDED_TO_THE_SEARCH = ("dbimport", "minus", "dbappend", "email")
_SHOWN_LINES = 6


@dataclass(frozen=True)
class _Watch:
    """What one run of the monitor took, and the mail that came of it."""

    seconds: float
    requests: int
    mail: EmailMessage | None


async def monitor(console: Console, site: Site, criteria: Mapping[str, Any]) -> None:
    """Run the monitor twice; in between the site gets a new house."""
    from aioflow import Engine, load

    program = load(PLAN)
    _introduce(console)
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


def _introduce(console: Console) -> None:
    from rich.text import Text

    console.print(
        "\nThe same search as a monitor: a database (embedded) remembers which houses were seen, and new "
        "ones are\nmailed (here into a folder), both or neither. The plan has these statements more:\n"
    )
    for line in map(str.strip, PLAN.read_text(encoding="utf-8").splitlines()):
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
