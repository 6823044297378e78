"""plans/examples/cwc.plan: the crawler of the Cassiopeia paper, and the events of each of its plug-ins."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from aioflow import load
from aioflow.demo.running import Site
from aioflow.demo.site.farm import farm_links
from aioflow.runtime.session import MODES, Mode
from tests.plans.monitoring import run_with, settings_for

PLAN = Path(__file__).parents[2] / "plans" / "examples" / "cwc.plan"
# A part of the farm that is crawled in a moment: the pages with these numbers.
NUMBERS = "[0-9]|[1-9][0-9]|1[0-9][0-9]"


def links_of_part() -> dict[int, set[int]]:
    """Return the links of each page that is reached within the part."""
    links: dict[int, set[int]] = {}
    waiting = [0]
    while waiting:
        page = waiting.pop()
        if page not in links and re.fullmatch(NUMBERS, str(page)):
            links[page] = set(farm_links(page))
            waiting += links[page]
    return links


@pytest.mark.parametrize("mode", MODES)
async def test_each_plug_in_of_the_paper_handles_the_events_of_the_one_before(
    tmp_path: Path, site: Site, mode: Mode
) -> None:
    settings = settings_for(f"sqlite:{tmp_path / 'pages.db'}", tmp_path, site)
    farm = f"{site.farm_url}/farm"
    parameters = {"start": f"{farm}/0", "domains": "127.0.0.1", "follow": f"/\\/farm\\/({NUMBERS})$/"}
    result = await run_with(settings, load(PLAN), parameters=parameters, mode=mode)
    links = links_of_part()
    assert sorted(row["url"] for row in result) == sorted(f"{farm}/{page}" for page in links)
    found = sum(map(len, links.values()))
    pages, addresses = len(links), len(set(links).union(*links.values()))
    events = {step.operator: (step.rows_in, step.rows_out) for step in result.statistics.steps}
    assert events | {"union": (pages, pages)} == {
        "seed": (0, 1),
        "normalize_url": (1 + found, 1 + found),
        "seen": (1 + found, addresses),
        "allowed": (addresses, pages),
        "download": (pages, pages),
        "content_filter": (pages, pages),
        "store": (pages, pages),
        "extract_links": (pages, found),
        "union": (pages, pages),
    }
