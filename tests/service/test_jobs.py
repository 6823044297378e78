"""Tasks that are jobs: another attempt at an occurrence asks only for the rest."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from aioflow.demo.running import Site, running_site
from aioflow.errors import InputError
from aioflow.service.actions import LocalActions
from tests.cli.program import AIOFLOW, aioflow, environment, own_folders
from tests.clocks import PATIENCE_SECONDS
from tests.jobs.job_plan import EFFECTS, WORKERS, pages, undisturbed, write_plan
from tests.service.rest.served import served, task
from tests.service.world import World, world

__all__ = ["world"]

_SERVICE = (
    '[service]\nlease_seconds = 2\nlate_spread_seconds = 0\nport = 0\n[database.default]\nurl = "sqlite:{}"\n'
)


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with running_site(latency=0.03) as site:
        yield site


class Home:
    """A folder with the plan of jobs and a home, and commands about its one task."""

    def __init__(self, folder: Path, site: Site, effects: str) -> None:
        write_plan(folder, site)
        self.folder = folder
        self.houses = len(undisturbed(folder))
        self.pages = pages(site)
        write_plan(folder, site, effects)
        home = folder / "home"
        home.mkdir()
        settings = (folder / "aioflow.toml").read_text().replace("maildir:mail", f"maildir:{folder / 'mail'}")
        (home / "aioflow.toml").write_text(settings + _SERVICE.format(folder / "store.db"))
        site.clear_log()

    def __call__(self, *arguments: str, code: int = 0, **changes: str) -> str:
        ended = aioflow("task", *arguments, "--home", "home", cwd=self.folder, **changes)
        assert ended.returncode == code, ended.stdout + ended.stderr
        return ended.stdout

    def latest(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self("history", "--json").splitlines()[0])
        return found

    def stored(self) -> list[Path]:
        """The folders of occurrences that have records."""
        return list((self.folder / "home" / "jobs").glob("*"))

    @contextmanager
    def running(self, *arguments: str, **changes: str) -> Iterator[subprocess.Popen[bytes]]:
        """A command that is killed when the block is left."""
        with subprocess.Popen(
            [*AIOFLOW, *arguments, "--home", "home"],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment(**own_folders(self.folder), **changes),
        ) as process:
            try:
                yield process
            finally:
                process.kill()

    def wait_for(self, *states: str) -> dict[str, Any]:
        ended: dict[str, Any] = wait_for(lambda: one if (one := self.latest())["state"] in states else None)
        return ended


def wait_for(look: Callable[[], Any]) -> Any:
    until = time.monotonic() + PATIENCE_SECONDS
    while not (found := look()):
        assert time.monotonic() < until
        time.sleep(0.1)
    return found


@pytest.fixture
def home(tmp_path: Path, site: Site) -> Home:
    made = Home(tmp_path, site, EFFECTS)
    made("add", "houses.plan", "--name", "j", "-i", "city=Irvine", "--job")
    return made


def asked_twice(home: Home, site: Site) -> int:
    """The number of requests beyond those of an undisturbed run, which asks for every page once."""
    asked: Counter[str] = pages(site)
    assert asked.keys() == home.pages.keys()
    return sum(asked.values()) - len(asked)


def expect_effects_once(home: Home) -> None:
    (home.folder / "count.plan").write_text(
        'PLAN count { OUTPUT: out BODY { dbquery ("select count(*) as houses from houses" : out) } }'
    )
    url = f"sqlite:{home.folder / 'store.db'}"
    (home.folder / "aioflow.toml").write_text(f'[database.default]\nurl = "{url}"\n')
    counted = aioflow("run", "count.plan", "-q", cwd=home.folder)
    assert json.loads(counted.stdout) == {"houses": home.houses}, counted.stderr
    assert len(wait_for(lambda: list((home.folder / "mail" / "new").glob("*")))) == 1


# --- services that die --------------------------------------------------------------------------


def test_a_run_whose_service_is_killed_asks_only_for_the_rest(home: Home, site: Site) -> None:
    kills = 2
    home("run", "j", code=-signal.SIGKILL, AIOFLOW_KILL_AT="job record put:30")
    with home.running("serve", AIOFLOW_KILL_AT="job records stored:2") as service:
        assert service.wait(PATIENCE_SECONDS) == -signal.SIGKILL
    assert len(home.stored()) == 1
    with home.running("serve"):
        found = home.wait_for("succeeded", "failed")
        assert (found["state"], found["lost"]) == ("succeeded", kills)
        assert found["account"]["job"]["found"] > 0
        wait_for(lambda: not home.stored())
        expect_effects_once(home)
    # Those under way, and of the group that was open: a quarter of a second.
    assert asked_twice(home, site) <= kills * (WORKERS + 64)
    told = found["account"]["job"]
    assert told["made"] + told["found"] == len(home.pages)
    assert (told["failed"], told["under-way"], told["hosts"]) == (0, 0, {site.host: len(home.pages)})


@pytest.mark.parametrize("moment", ["transaction committed", "run ended", "run noted"])
def test_records_do_not_outlive_a_service_that_dies_after_the_commit(
    home: Home, site: Site, moment: str
) -> None:
    home("run", "j", code=-signal.SIGKILL, AIOFLOW_KILL_AT=moment)
    assert len(home.stored()) == 1
    assert asked_twice(home, site) == 0
    with home.running("serve"):
        assert home.wait_for("succeeded", "failed")["state"] == "succeeded"
        wait_for(lambda: not home.stored())
        expect_effects_once(home)
    assert asked_twice(home, site) == 0


def test_a_run_goes_on_while_a_process_that_hangs_has_its_records(home: Home) -> None:
    with home.running("task", "run", "j") as hung:
        wait_for(home.stored)
        hung.send_signal(signal.SIGSTOP)
        with home.running("serve"):
            assert home.wait_for("succeeded", "failed")["state"] == "succeeded"


# --- attempts of a service that lives -----------------------------------------------------------


def test_a_retry_asks_only_for_the_rest(tmp_path: Path) -> None:
    """The result pages alone take longer than an attempt may."""
    with running_site(latency=0.2) as site:
        home = Home(tmp_path, site, EFFECTS)
        options = ("timeout_seconds=2.3", "retries=30", "retry_pause_seconds=0.1")
        given = [part for option in options for part in ("--option", option)]
        home("add", "houses.plan", "--name", "j", "-i", "city=Irvine", "--job", *given)
        home("run", "j", code=1)
        with home.running("serve"):
            found = home.wait_for("succeeded", "failed")
            wait_for(lambda: not home.stored())
        assert found["state"] == "succeeded"
        assert found["attempts"] > 1
        assert asked_twice(home, site) <= (found["attempts"] - 1) * WORKERS


def test_a_run_that_is_cancelled_while_it_waits_leaves_no_records(home: Home) -> None:
    home("run", "j", code=-signal.SIGKILL, AIOFLOW_KILL_AT="job record put:30")
    home("cancel", "j")
    with home.running("serve"):
        assert home.wait_for("cancelled", "succeeded")["state"] == "cancelled"
        wait_for(lambda: not home.stored())


# --- definitions --------------------------------------------------------------------------------


def test_a_plan_that_commits_as_it_streams_is_no_job(world: World) -> None:
    world.plan.write_text(world.plan.read_text().replace("OUTPUT: done", "OUTPUT: done\n  COMMIT: batch"))

    async def test(actions: LocalActions) -> None:
        await actions.add_task(world.task("a", "every 1h"))
        with pytest.raises(InputError, match="plan work has COMMIT: batch, and a job commits once"):
            await actions.edit_task("a", {"job": True})
        with pytest.raises(InputError, match="COMMIT: batch"):
            await actions.add_task(world.task("b", "every 1h", job=True))
        with pytest.raises(InputError, match="job must be true or false, not 'perhaps'"):
            await actions.add_task(world.task("b", "every 1h", job="perhaps"))

    world.run(test)


async def test_a_task_becomes_a_job_by_rest_and_no_job_again(tmp_path: Path) -> None:
    async with served(tmp_path) as service:
        added = await service.post("/api/tasks", {"task": task(job=True)})
        assert added["definition"]["job"] is True
        assert await service.run("hello") == "succeeded"
        status, changed = await service.ask("PATCH", "/api/tasks/hello", {"changes": {"job": None}})
        assert status == 200
        assert "job" not in changed["definition"]
        status, _ = await service.ask("PATCH", "/api/tasks/hello", {"changes": {"job": "yes"}})
        assert status == 400
    assert not list((tmp_path / "home" / "jobs").iterdir())


async def test_the_progress_of_a_job_is_told_by_rest(tmp_path: Path, site: Site) -> None:
    async with served(tmp_path, site.configuration(concurrency=2)) as service:
        write_plan(service.plans, site)
        wanted = {**task("j", "houses.plan", job=True), "inputs": {"cities": [{"city": "Irvine"}]}}
        await service.post("/api/tasks", {"task": wanted})
        occurrence = (await service.post("/api/tasks/j/run"))["occurrence"]
        told = None
        while not told:
            run = await service.get(f"/api/runs/{quote(occurrence, safe='')}")
            assert run["occurrence"]["state"] in ("waiting", "running"), run
            status, progress = await service.ask("GET", f"/api/runs/{quote(occurrence, safe='')}/progress")
            told = progress["job"] if status == 200 and (progress["job"] or {}).get("hosts") else None
            await asyncio.sleep(0.05)
        assert told["hosts"] == {site.host: told["made"]}
        assert (told["found"], told["failed"]) == (0, 0)
        assert told["under_way"] >= 0


def test_the_command_line_makes_a_task_a_job(home: Home) -> None:
    assert "job           true" in home("show", "j")
    text = home("export", "j")
    assert "job = true" in text
    home("edit", "j", "--no-job")
    assert "job = true" not in home("export", "j")
    (home.folder / "tasks.toml").write_text(text)
    assert home("import", "tasks.toml") == "changed: j\n"
    assert json.loads(home("show", "j", "--json"))["definition"]["job"] is True
