"""The plan that tests run as a job: all result pages of the bundled site, and the page of each house."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from aioflow.demo.running import Site
from tests.cli.program import aioflow

WORKERS = 8
WRAPPERS = """
WRAPPER search (city)
{
  GET: "%(site)s/search{?city}"
  EACH: "li.house"
  house: "a.title @href" url
  next: page "a.next @href" url
}

WRAPPER further (next) LIKE search
{
  GET: "{+next}"
}

WRAPPER detail (house)
{
  GET: "{+house}"
  address: "h1.address" required
  price: ".asking" number
}

PLAN pages
{
  INPUT: listed
  OUTPUT: all
  BODY
  {
    distinct (listed, "next" : links)
    wrapper ("further", links : following)
    pages (following : rest)
    union (listed, rest : all) {ALL}
  }
}
"""
PLAN = """
USE "wrappers.plan"

PLAN houses
{
  INPUT: cities (city char)
  OUTPUT: found
  BODY
  {
    wrapper ("search", cities : first)
    pages (first : listed)
    project (listed, "house" : urls)
    wrapper ("detail", urls : details) {ERRORS: skip}
    project (details, "house, address, price" : found)
    %(effects)s
  }
}
"""


EFFECTS = """
    diff (found, "houses" : new) {KEY: "house"; FIRST: news}
    email (new, to="me@example.org", subject="New houses")
"""


def write_plan(folder: Path, site: Site, effects: str = "") -> None:
    (folder / "wrappers.plan").write_text(WRAPPERS % {"site": site.url})
    (folder / "houses.plan").write_text(PLAN % {"effects": effects})
    (folder / "aioflow.toml").write_text(
        f'workers = {WORKERS}\n[http]\nallow = ["{site.host}"]\n[host."{site.host}"]\n'
        f"concurrency = {WORKERS}\nrobots = false\n"
        '[email.default]\nurl = "maildir:mail"\nfrom = "a@example.org"\n'
    )


def undisturbed(folder: Path) -> list[str]:
    done = aioflow("run", "houses.plan", "-i", "city=Irvine", "-O", "plain.jsonl", cwd=folder)
    assert done.returncode == 0, done.stderr
    return sorted((folder / "plain.jsonl").read_text().splitlines())


def pages(site: Site) -> Counter[str]:
    return Counter(request.path for request in site.log() if not request.path.startswith("/_"))
