"""The plans that empty search forms, against the sources of the site: everything is found, and said to be."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from aioflow import Engine, load
from aioflow.demo.running import Site
from aioflow.demo.site.limited import LimitedSources
from aioflow.demo.site.requests import Switches

PLANS = Path(__file__).parents[2] / "plans" / "hidden"
ADDRESS = "127.0.0.1:8640"  # what the plans name
SOURCES = LimitedSources(Switches().seed)
CARS = Counter((car.number, car.make, car.style, car.fuel, car.year, car.price) for car in SOURCES.cars)
STORES = Counter((each.number, each.name, each.latitude, each.longitude) for each in SOURCES.stores)


@pytest.fixture(autouse=True)
def own_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers are stored in the folder of the test."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))


def configuration(site: Site) -> dict[str, Any]:
    """The site serves as a proxy for the address in the plans."""
    found = site.configuration()
    found["http"]["allow"].append(ADDRESS)
    found["host"][ADDRESS] = {"proxy": site.url, "concurrency": 15, "robots": False}
    return found


@pytest.mark.parametrize(
    ("name", "output", "expected"),
    [("api", "cars", CARS), ("form", "cars", CARS), ("stores", "found", STORES)],
)
async def test_every_tuple_behind_the_form_is_found(
    site: Site, name: str, output: str, expected: Counter[Any]
) -> None:
    async with Engine(configuration=configuration(site)) as engine:
        result = await engine.run(load(PLANS / f"{name}.plan"))
    assert Counter(record.row for record in result.outputs[output]) == expected
    (report,) = result.outputs["report"]
    assert (report["complete"], report["tuples"]) == (True, expected.total())
    assert report["queries"] < report["bound"]
    assert result.statistics.marks == {}
    assert result.warnings == ()
