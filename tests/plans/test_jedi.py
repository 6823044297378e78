"""The plan that integrates two irregular sources: all goods, with one name, one currency and one unit."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from aioflow import Engine, Result, load
from aioflow.demo.running import Site

ROOT = Path(__file__).parents[2]
PLAN = ROOT / "plans" / "jedi" / "palmtops.plan"
PAGES = ROOT / "aioflow" / "demo" / "site" / "templates"
ADDRESS = "127.0.0.1:8640"  # what the plan names
# Read off the pages by hand: the key, dollars and grams; the key, marks and grams.
AMERICAN = {
    "psion3c": (399.5, 275),
    "psionsiena": (199, 179),
    "hp200lx": (549, 312),
    "hp320lx": (1049, 454),
    "casiocassiopeiaa11": (499, 380),
    "usrpilot1000": (249, 162),
    "sharpzauruszr5800": (599, 391),
}
GERMAN = {
    "psion3c": (729, 275),
    "psionsiena": (379, 180),
    "hp200lx": (1099, 312),
    "hp320lx": (1298, 440),
    "usrpilot1000": (449, 160),
    "sharpzauruszr5800": (998.5, 390),
    "nokia9000communicator": (1799, 397),
}


async def run(site: Site, **parameters: Any) -> Result:
    """The site serves as a proxy for the address in the plan."""
    configuration = site.configuration()
    configuration["http"]["allow"].append(ADDRESS)
    configuration["host"][ADDRESS] = {"proxy": site.url, "robots": False}
    async with Engine(configuration=configuration) as engine:
        assert [str(each) for each in engine.check(load(PLAN))] == []
        return await engine.run(load(PLAN), parameters=parameters)


async def test_every_offer_of_both_pages_is_found(site: Site) -> None:
    result = await run(site, dollar=1, mark=1)
    offers = {
        (each["shop"], each["key"]): (each["euros"], each["grams"]) for each in result.outputs["offers"]
    }
    expected = {("harry", key): values for key, values in AMERICAN.items()}
    expected |= {("krause", key): values for key, values in GERMAN.items()}
    assert {key: (float(euros), int(grams)) for key, (euros, grams) in offers.items()} == expected
    assert result.statistics.marks == {}


def test_a_count_by_regular_expressions_agrees() -> None:
    page, text = ((PAGES / name).read_text() for name in ("palmtops.html", "price_list.txt"))
    assert len(re.findall(r"(?i)<b>[^<$]+</b>.*\$", page)) == len(AMERICAN)
    assert len(re.findall(r"(?m)^\d{4}  .*k?g +[\d.]+,(?:-|\d\d)$", text)) == len(GERMAN)


async def test_the_offers_of_a_good_are_put_together(site: Site) -> None:
    result = await run(site)
    goods = {each["key"]: each for each in result.outputs["goods"]}
    assert {key: each["shops"] for key, each in goods.items()} == {
        key: (key in AMERICAN) + (key in GERMAN) for key in {**AMERICAN, **GERMAN}
    }
    for key, each in goods.items():
        prices = [AMERICAN[key][0] * 0.90] if key in AMERICAN else []
        prices += [GERMAN[key][0] * 0.51129] if key in GERMAN else []
        assert float(each["lowest"]) == pytest.approx(min(prices), abs=0.006)
        assert float(each["highest"]) == pytest.approx(max(prices), abs=0.006)
