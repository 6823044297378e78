"""The service at work: a site of its own, and two tasks that watch it. `make serve` starts it.

The site gets a new house from time to time, so that there is news. The home is a temporary folder, which is
removed at the end.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tomli_w

from aioflow.cli.commands.serve import serve_until_stopped
from aioflow.cli.config import effective_settings
from aioflow.cli.exit import guarded
from aioflow.cli.output.logs import LogOptions, logged
from aioflow.demo.running import Site, running_site
from aioflow.language.loader import LIBRARY
from aioflow.service import MonitorService
from aioflow.service.actions import LocalActions
from aioflow.service.home import open_service_database

_PLANS = LIBRARY / "homeseekers"
_SEARCH = {"city": "Irvine", "state": "CA", "max-price": 550_000}
_HOUSE_EVERY_SECONDS = 20.0
_MAIL = "mail"


@guarded
def main(arguments: Sequence[str] = sys.argv[1:]) -> None:
    """Serve the two tasks until Ctrl-C. Arguments: the port of the REST interface, seconds between houses."""
    port = int(arguments[0]) if arguments else None
    pace = float(arguments[1]) if arguments[1:] else _HOUSE_EVERY_SECONDS
    with running_site() as site, tempfile.TemporaryDirectory(prefix="aioflow-serve-") as name:
        home = Path(name)
        (home / "aioflow.toml").write_text(tomli_w.dumps(_settings(site, home)), encoding="utf-8")
        with logged(LogOptions()):
            asyncio.run(_serve(home, site, port, pace))


def _settings(site: Site, home: Path) -> dict[str, Any]:
    account = {"url": f"maildir:{home / _MAIL}", "from": "Homeseekers <demo@example.org>"}
    database = {"url": f"sqlite:{home / 'houses.db'}"}
    return {**site.configuration(), "database": {"default": database}, "email": {"default": account}}


async def _serve(home: Path, site: Site, port: int | None, pace: float) -> None:
    settings = effective_settings({"service": {"port": port}}, str(home / "aioflow.toml"))
    actions = LocalActions(home, settings, open_service_database(settings, home))
    try:
        for plan, name in (("monitor", "homeseekers monitor"), ("watch", "houses in Irvine")):
            await actions.add_task(_task(plan, name, site, f"every {pace * 0.75:g}s"))
            await actions.run_task(name)
    finally:
        await actions.close()
    print(f"The site is {site.url}. It gets a new house every {pace:g} seconds.")
    print(f"Two tasks look at it every {pace * 0.75:g} seconds, and mail new houses into {home / _MAIL}.")
    print(f"In another terminal: aioflow task list --home {home}")
    others = [asyncio.create_task(_add_houses(site, pace)), asyncio.create_task(_tell_mails(home / _MAIL))]
    try:
        await serve_until_stopped(MonitorService(home, settings))
    finally:
        for each in others:
            each.cancel()


def _task(plan: str, name: str, site: Site, schedule: str) -> dict[str, Any]:
    return {
        "name": name,
        "plan": str(_PLANS / f"{plan}.plan"),
        "schedule": schedule,
        "inputs": {"criteria": [{**_SEARCH, "site": site.url}]},
        "parameters": {"to": "you@example.org"},
    }


async def _add_houses(site: Site, pace: float) -> None:
    while True:
        await asyncio.sleep(pace)
        added = await asyncio.to_thread(site.add_house)
        print(f"house for sale: {added}", flush=True)


async def _tell_mails(folder: Path) -> None:
    """Print the subject of each mail that arrives."""
    known: set[str] = set()
    while True:
        await asyncio.sleep(0.5)
        for name in sorted(_names(folder / "new") - known):
            known.add(name)
            lines = (folder / "new" / name).read_text(errors="replace").splitlines()
            subject = next((line for line in lines if line.lower().startswith("subject:")), "")
            print(f"mail: {subject.partition(':')[2].strip()}", flush=True)


def _names(folder: Path) -> set[str]:
    return set(os.listdir(folder)) if folder.is_dir() else set()


if __name__ == "__main__":
    main()
