"""Crawls of building blocks as jobs."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aioflow.demo.running import Site, running_site
from tests.cli.program import aioflow

FIELDS = "url, `final-url`, status, mime, title, size, depth"


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with running_site() as site:
        yield site


@pytest.fixture
def folder(tmp_path: Path, site: Site) -> Path:
    host = site.farm_url.removeprefix("http://")
    (tmp_path / "aioflow.toml").write_text(
        f'workers = 16\n[http]\nallow = ["{host}"]\n[host."{host}"]\nconcurrency = 16\nrobots = false\n'
    )
    return tmp_path


def crawl(folder: Path, site: Site, *options: str, **changes: str) -> int:
    arguments = ("crawl", f"{site.farm_url}/farm/0", "--depth", "2", "--fields", FIELDS, *options)
    return aioflow(*arguments, cwd=folder, **changes).returncode


def rows(path: Path) -> list[dict[str, Any]]:
    return sorted(
        (json.loads(line) for line in path.read_text().splitlines()), key=lambda row: str(row["url"])
    )


def done(folder: Path) -> tuple[int, int, str]:
    shown = json.loads(aioflow("job", "show", "c", "--json", cwd=folder).stdout)
    return shown["done"], shown["failed"], shown["state"]


def test_a_crawl_that_is_killed_again_and_again_equals_one_without_kills(folder: Path, site: Site) -> None:
    assert crawl(folder, site, "-O", "plain.jsonl") == 0
    for moment in ("job record put:3", "job records stored", "job record put:200", "job outcome known:2"):
        status = crawl(folder, site, "--job", "c", "-O", "out.jsonl", AIOFLOW_KILL_AT=moment)
        assert status == -signal.SIGKILL, moment
    assert crawl(folder, site, "--job", "c", "-O", "out.jsonl") == 0
    assert rows(folder / "out.jsonl") == rows(folder / "plain.jsonl")
    assert done(folder) == (len(rows(folder / "plain.jsonl")), 0, "finished")


def test_max_pages_bounds_all_attempts_together(folder: Path, site: Site) -> None:
    """What was asked for and lost in a kill is asked for again, and nothing else in its place."""
    limit = ("--job", "c", "--max-pages", "150", "-O", "out.jsonl")
    for moment in ("job record put:20", "job records stored", "job record put:40"):
        assert crawl(folder, site, *limit, AIOFLOW_KILL_AT=moment) == -signal.SIGKILL, moment
    assert crawl(folder, site, *limit) == 0
    assert len(rows(folder / "out.jsonl")) == 150
    assert done(folder) == (150, 0, "finished")
