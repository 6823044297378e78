"""The library's persistent_diff: what is new since the last run, and remembered."""

from pathlib import Path
from typing import Any

import pytest

from aioflow import loads
from aioflow.errors import OperatorError, PlanError
from aioflow.runtime.session import MODES, Mode
from tests.plans.monitoring import run_with, settings_for

WATCH = """
USE "persistent_diff.plan"

PLAN watch
{
  INPUT: urls (url char)
  OUTPUT: new-urls
  BODY { persistent_diff (urls : new-urls) {TABLE: "seen"} }
}
"""


async def new_urls(url: str, folder: Path, *urls: str | None, **arguments: Any) -> list[Any]:
    rows = [{"url": each} for each in urls]
    result = await run_with(settings_for(url, folder), loads(WATCH), urls=rows, **arguments)
    return sorted([row["url"] for row in result], key=repr)


@pytest.mark.parametrize("mode", MODES)
async def test_only_what_is_new_comes_out(database_url: str, tmp_path: Path, mode: Mode) -> None:
    assert await new_urls(database_url, tmp_path, "a", "b", "a", None, mode=mode) == ["a", "b", None]
    assert await new_urls(database_url, tmp_path, "a", "b", None, mode=mode) == []
    assert await new_urls(database_url, tmp_path, "c", "b", mode=mode) == ["c"]
    # What was seen once is never new again.
    assert await new_urls(database_url, tmp_path, "a", mode=mode) == []


async def test_a_run_that_fails_remembers_nothing(tmp_path: Path) -> None:
    url = f"sqlite:{tmp_path / 'test.db'}"
    failing = WATCH.replace("} }", '} write (new-urls, "no/such/folder/urls.csv") }')
    with pytest.raises(OperatorError, match="no/such/folder"):
        await run_with(settings_for(url, tmp_path), loads(failing), urls=[{"url": "a"}])
    assert await new_urls(url, tmp_path, "a") == ["a"]


async def test_the_table_must_be_named(tmp_path: Path) -> None:
    program = loads(WATCH.replace('{TABLE: "seen"}', ""))
    with pytest.raises(PlanError, match="table"):
        await run_with(settings_for(f"sqlite:{tmp_path / 'x.db'}", tmp_path), program, urls=[])
