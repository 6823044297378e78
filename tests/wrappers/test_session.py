"""What the wrappers of a run share: whose extraction is compared with earlier runs', and secrets."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from aioflow import Engine, RunError, load, loads
from aioflow.configuration import read_configuration
from aioflow.folders import data_folder
from aioflow.web import Client, HttpSettings, Request, Response, WebSettings
from aioflow.wrappers import Web, wrapper
from aioflow.wrappers.health import HealthStore
from aioflow.wrappers.health_store import RunHealth
from tests.web.scripted import Site, answer

PLAN = """
WRAPPER list (page)
{
  GET: "http://homes.example/{page}"
  EACH: "li"
  title: "b"
}

PLAN p { INPUT: x OUTPUT: out BODY { wrapper ("list", x : out) } }
"""
SIX = "<li><b>One</b></li>" * 6


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user of this test's own, who has no settings and no history, in an empty folder."""
    for variable in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / "home"))
    for variable in [name for name in os.environ if name.startswith("AIOFLOW_")]:
        monkeypatch.delenv(variable)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "home"


async def gather(
    configuration: Mapping[str, Any] | None,
    text: str = SIX,
    plan: Any = None,
    pages: tuple[str, ...] = ("1",),
    **http: Any,
) -> tuple[str, ...]:
    """The warnings of a run whose pages all have this text."""
    settings = WebSettings(HttpSettings(robots=False, **http))
    network = Site(lambda request: answer(200, {"Content-Type": "text/html"}, text.encode()))
    async with (
        Client.open(settings, network=network) as client,
        Engine(services={Client: client}, configuration=configuration) as engine,
    ):
        result = await engine.run(plan or loads(PLAN), x=[{"page": page} for page in pages])
    return result.warnings


async def histories(path: Path | None = None) -> dict[str, list[RunHealth]]:
    async with HealthStore.open(path) as store:
        return {name: await store.history(name) for name in await store.wrappers()}


def is_there(path: Path) -> bool:
    return path.exists()


def whole(path: Path) -> Path:
    return path.resolve()


def write_plan(path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(PLAN)


# --- who keeps a history --------------------------------------------------------------------------


async def test_an_engine_without_configuration_writes_nothing_into_the_users_folders(home: Path) -> None:
    await gather(None)
    await gather({})
    await gather({"http": {"retries": 0}})
    assert not is_there(home)


async def test_what_was_read_as_configuration_keeps_a_history_even_if_nobody_set_anything() -> None:
    configuration = read_configuration()
    assert dict(configuration) == {}
    await gather(configuration)
    assert is_there(data_folder() / "health.sqlite")
    assert [run.rows for run in (await histories())["list"]] == [6]


async def test_an_engine_that_is_told_to_keeps_a_history(home: Path, tmp_path: Path) -> None:
    await gather({"http": {"health": str(tmp_path / "own.sqlite")}})
    assert not is_there(home)
    assert list(await histories(tmp_path / "own.sqlite")) == ["list"]
    await gather({"http": {"health": True}})
    assert list(await histories()) == ["list"]


async def test_a_history_that_is_switched_off_is_not_kept(home: Path) -> None:
    await gather(read_configuration(overrides={"http": {"health": False}}))
    assert not is_there(home)


async def test_offline_runs_are_neither_kept_nor_compared() -> None:
    for _ in range(4):
        await gather(read_configuration())
    assert await gather(read_configuration(overrides={"http": {"offline": True}}), "<p>") == ()
    assert len((await histories())["list"]) == 4


async def test_replayed_runs_are_neither_kept_nor_compared(tmp_path: Path) -> None:
    recording = tmp_path / "one.recording"
    await gather(None, record=recording)
    configuration = read_configuration(overrides={"http": {"replay": str(recording)}})
    async with Engine(configuration=configuration) as engine:
        assert len(await engine.run(loads(PLAN), x=[{"page": "1"}])) == 6
    assert not is_there(data_folder() / "health.sqlite")


# --- what is told -------------------------------------------------------------------------------


async def test_a_wrapper_that_finds_nothing_any_more_is_named(tmp_path: Path) -> None:
    health = {"http": {"health": str(tmp_path / "health.sqlite")}}
    for _ in range(3):
        assert await gather(health) == ()
    (warning,) = await gather(health, SIX.replace("li", "div"))
    assert warning.startswith("wrapper list: no rows on 1 page, where its last 3 runs had about 6 a page")


async def test_a_run_that_asks_for_less_is_as_good_as_the_others(tmp_path: Path) -> None:
    health = {"http": {"health": str(tmp_path / "health.sqlite")}}
    for _ in range(4):
        assert await gather(health, pages=tuple("12345678")) == ()
    assert await gather(health) == ()
    runs = (await histories(tmp_path / "health.sqlite"))["list"]
    assert [(run.rows, run.pages) for run in runs] == [(6, 1)] + [(48, 8)] * 4


# --- whose history it is ------------------------------------------------------------------------


async def test_wrappers_of_equal_names_in_files_of_equal_names_have_histories_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    health = {"http": {"health": str(tmp_path / "health.sqlite")}}
    for project in ("a", "b"):
        write_plan(tmp_path / project / "homes.plan")
        monkeypatch.chdir(tmp_path / project)
        await gather(health, plan=load("homes.plan"))
    assert list(await histories(tmp_path / "health.sqlite")) == [
        f"{whole(tmp_path)}/{project}/homes.plan:list" for project in ("a", "b")
    ]


async def test_a_file_is_the_same_however_it_is_named(tmp_path: Path) -> None:
    health = {"http": {"health": str(tmp_path / "health.sqlite")}}
    path = whole(Path("homes.plan"))
    write_plan(path)
    for name in ("homes.plan", "./homes.plan", "../work/homes.plan", path):
        assert await gather(health, plan=load(name)) == ()
    (warning,) = await gather(health, "<p>", plan=load("homes.plan"))
    # People are shown where it is from here.
    assert warning.startswith("wrapper homes.plan:list: no rows on 1 page")
    assert len((await histories(tmp_path / "health.sqlite"))[f"{path}:list"]) == 5


@wrapper(inputs="page char", returns="size number", name="session_sizes")
async def sizes(web: Web, page: str) -> Mapping[str, Any]:
    return {"size": len(await (await web.get(f"http://homes.example/{page}")).read())}


async def test_wrappers_in_python_are_known_by_their_file_and_count_the_pages_they_fetch(
    tmp_path: Path,
) -> None:
    health = {"http": {"health": str(tmp_path / "health.sqlite")}}
    plan = loads('PLAN p { INPUT: x OUTPUT: out BODY { wrapper ("session_sizes", x : out) } }')
    await gather(health, plan=plan, pages=("1", "2", "3"))
    ((key, (run,)),) = (await histories(tmp_path / "health.sqlite")).items()
    assert key == f"{whole(Path(__file__))}:session_sizes"
    assert (run.rows, run.pages) == (3, 3)


# --- secrets ------------------------------------------------------------------------------------

SECRETS = """
WRAPPER order (id)
{
  POST: "http://homes.example/order"
  AUTH: bearer "secret:SESSION_TOKEN"
  HEADERS: X-Key = "secret:SESSION_KEY"
  FORM: id, password = "secret:SESSION_PASSWORD"
  SAFE
  answer: "p"
}

PLAN p { INPUT: x OUTPUT: out BODY { wrapper ("order", x : out) } }
"""


def _order(request: Request) -> Response:
    assert request.headers["Authorization"] == "Bearer to/ken"
    assert b"pass%20word+%2B" in (request.body or b"") or b"pass+word+%2B" in (request.body or b"")
    return answer(200, {"Content-Type": "text/html"}, b"<p>done</p>")


async def _record_order(path: Path) -> None:
    settings = WebSettings(HttpSettings(robots=False, record=path))
    async with (
        Client.open(settings, network=Site(_order)) as client,
        Engine(services={Client: client}) as engine,
    ):
        assert len(await engine.run(loads(SECRETS), x=[{"id": 7}])) == 1


def test_what_was_recorded_with_secrets_is_replayed_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "order.recording"
    for name, value in (("TOKEN", "to/ken"), ("KEY", "the key"), ("PASSWORD", "pass word +")):
        monkeypatch.setenv(f"AIOFLOW_SECRET_SESSION_{name}", value)
    asyncio.run(_record_order(path))
    recorded = path.read_text()
    assert "ken" not in json.loads(recorded)["request"]["headers"]["Authorization"]
    for name in ("TOKEN", "KEY", "PASSWORD"):
        monkeypatch.delenv(f"AIOFLOW_SECRET_SESSION_{name}")

    async def replay(configuration: Mapping[str, Any]) -> list[str]:
        async with Engine(configuration=configuration) as engine:
            return [row["answer"] for row in await engine.run(loads(SECRETS), x=[{"id": 7}])]

    assert asyncio.run(replay({"http": {"replay": str(path)}})) == ["done"]
    with pytest.raises(RunError, match="there is no secret 'SESSION_"):
        asyncio.run(replay({}))
