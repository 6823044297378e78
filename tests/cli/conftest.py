"""A folder with plans and a module of functions, as a user would have it."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from aioflow.cli.app import app
from tests.cli.program import own_folders

PLANS = {
    "double.plan": """\
PLAN double
{
  INPUT: numbers (n number)
  OUTPUT: doubled
  BODY
  {
    project (numbers, "n, n * 2 as twice" : doubled)
  }
}
""",
    "sides.plan": """\
PLAN sides
{
  INPUT: numbers (n number)
  OUTPUT: low, high
  BODY
  {
    select (numbers, "n < 10" : low)
    select (numbers, "n >= 10" : high)
  }
}
""",
    "logged.plan": """\
PLAN logged
{
  INPUT: numbers (n number)
  BODY
  {
    log (numbers, "seen")
  }
}
""",
    "limited.plan": """\
PLAN limited
{
  INPUT: numbers
  OUTPUT: some
  PARAM: bound, name = "x"
  BODY
  {
    select (numbers, "n < ${bound}" : below)
    project (below, "n, '${name}' as name" : some)
  }
}
""",
    "houses.plan": """\
PLAN houses
{
  INPUT: pages (page number)
  OUTPUT: found
  BODY
  {
    apply (pages, "page_houses" : page)
    follow (page : found)
  }
}

PLAN follow
{
  INPUT: page
  OUTPUT: all
  BODY
  {
    project (page, "house" : here)
    project (page, "next as page" : next)
    distinct (next : links)
    apply (links, "page_houses" : following)
    follow (following : rest)
    union (here, rest : all)
  }
}
""",
    "wrong.plan": """\
PLAN wrong
{
  INPUT: numbers (n number)
  OUTPUT: out
  BODY
  {
    selct (numbers, "n < 10" : low)
    project (numbers, "m" : out)
  }
}
""",
}

# A plan for each function that keeps a run busy or breaks it.
PLANS |= {
    f"{function}.plan": f"""\
PLAN {function}_plan
{{
  INPUT: rows
  OUTPUT: results
  BODY
  {{
    apply (rows, "{function}" : results)
  }}
}}
"""
    for function in ("forever", "deaf", "blocked", "broken", "a_while")
}

FUNCTIONS = '''\
"""Functions that the tests of the command line call by name."""

import asyncio
import time
from pathlib import Path

from aioflow import function


@function(returns="house char, next number", pure=True)
async def page_houses(row):
    """Three pages of two houses."""
    if row["page"] is None:
        return
    await asyncio.sleep(0.01)
    following = row["page"] + 1 if row["page"] < 3 else None
    for number in (1, 2):
        yield {"house": f"{row['page']}-{number}", "next": following}


@function(pure=True)
async def forever(row):
    Path("started").touch()
    await asyncio.sleep(3600)


@function(pure=True)
async def deaf(row):
    """Does not hear that it is cancelled."""
    Path("started").touch()
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            print("cancelled", flush=True)


@function(pure=True, blocking=True)
def blocked(row):
    Path("started").touch()
    time.sleep(3600)


@function(pure=True)
async def broken(row):
    raise ValueError(f"cannot do {row['n']}")


@function(pure=True)
async def a_while(row):
    """At once for 0, else when the test says that it is over."""
    while row["n"] and not Path("over").exists():
        await asyncio.sleep(0.01)
    return {"slept": True}
'''


@dataclass(frozen=True)
class Ended:
    """How a command ended that ran inside the tests' process, which is faster than one of its own."""

    code: int
    output: str
    messages: str


@pytest.fixture
def command(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Callable[..., Ended]:
    for name in list(os.environ):
        if name.startswith("AIOFLOW_"):
            monkeypatch.delenv(name)
    for name, path in own_folders(folder).items():
        monkeypatch.setenv(name, path)
    monkeypatch.setenv("AIOFLOW_ACCOUNT", "false")
    monkeypatch.chdir(folder)

    def run(*arguments: str) -> Ended:
        with pytest.raises(SystemExit) as ended:
            app(arguments, prog_name="aioflow")
        code = ended.value.code
        captured = capfd.readouterr()
        return Ended(code if isinstance(code, int) else 0, captured.out, captured.err)

    return run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in PLANS.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "functions.py").write_text(FUNCTIONS)
    return tmp_path
