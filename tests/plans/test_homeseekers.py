"""The Homeseekers plans against the site: exactly the houses that the site has, in every mode."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from aioflow import Engine, Record, load, loads
from aioflow.demo.running import Site, running_site
from aioflow.demo.site.houses import STANDARD_SEARCH, Catalogue, House, Search
from aioflow.demo.site.requests import DEFAULT_PORT, Switches, fate_of
from aioflow.runtime.session import MODES, Mode

PLANS = Path(__file__).parents[2] / "plans" / "homeseekers"
IRVINE = {"city": "Irvine", "state": "CA", "max-price": 550_000}


def expected(house: House, site: Site) -> dict[str, Any]:
    """What get_houses says of a house."""
    return {
        "house-url": site.url + house.path,
        "address": house.address,
        "city": house.city,
        "zip": house.zip,
        "price": house.price,
        "beds": house.beds,
        "baths": house.baths,
        "square-feet": house.square_feet,
        "year-built": house.year_built,
        "listed": house.listed,
        "mls": house.mls,
        "agent": house.agent.name,
        "phone": house.agent.phone,
        "picture": site.url + house.photo_path,
    }


def by_url(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: str(row["house-url"]))


async def houses_for(site: Site, mode: Mode = "D+S+", **criteria: Any) -> list[dict[str, Any]]:
    wanted = {"site": site.url, **{name.replace("_", "-"): value for name, value in criteria.items()}}
    async with Engine(configuration=site.configuration()) as engine:
        result = await engine.run(load(PLANS / "get_houses.plan"), criteria=[wanted], mode=mode)
    return by_url([dict(row) for row in result])


@pytest.mark.parametrize("mode", MODES)
async def test_get_houses_gives_the_houses_with_enough_bedrooms(site: Site, mode: Mode) -> None:
    wanted = [house for house in Catalogue().find(STANDARD_SEARCH) if house.beds >= 3]
    assert 0 < len(wanted) < 72
    assert any(None in expected(house, site).values() for house in wanted)
    found = await houses_for(site, mode, city="Irvine", state="CA", max_price=550_000, min_beds=3)
    assert found == by_url([expected(house, site) for house in wanted])


async def test_get_houses_needs_no_more_than_a_city(site: Site) -> None:
    wanted = Catalogue().find(Search("Lake Forest"))
    assert await houses_for(site, city="Lake Forest") == by_url([expected(house, site) for house in wanted])


async def test_get_houses_gives_nothing_where_nothing_is_for_sale(site: Site) -> None:
    assert await houses_for(site, city="Atlantis", min_beds=1) == []


async def test_each_page_and_each_house_is_asked_for_once_and_first_houses_before_the_last_page() -> None:
    with running_site(latency=0.02) as site:
        await houses_for(site, city="Irvine", state="CA", max_price=550_000)
        log = site.log()
    paths = [entry.path for entry in log]
    assert len(paths) == len(set(paths)) == 12 + 72
    last_page = next(entry for entry in log if entry.path.endswith("page=12"))
    first_house = next(entry for entry in log if entry.path.startswith("/houses/"))
    assert first_house.answered is not None
    assert first_house.answered < last_page.arrived
    assert max(entry.concurrency for entry in log) <= 15


async def test_details_in_full_embed_schools_and_prices(site: Site) -> None:
    plan = loads(
        """
        USE "wrappers.plan"
        PLAN look
        {
          INPUT: urls (house-url char)
          OUTPUT: houses
          BODY { wrapper ("detail-in-full", urls : houses) }
        }
        """,
        folder=PLANS,
    )
    houses = Catalogue().houses[:30]
    async with Engine(configuration=site.configuration()) as engine:
        rows = await engine.run(plan, urls=[{"house-url": site.url + house.path} for house in houses])
    found = {row["house-url"]: row for row in rows}
    for house in houses:
        row = found[site.url + house.path]
        assert row["description"] == " ".join(house.description)
        assert [feature["value"] for feature in records(row["features"])] == list(house.features)
        assert records(row["schools"]) == [
            {"name": school.name, "level": school.level, "rating": school.rating} for school in house.schools
        ]
        assert records(row["history"]) == [
            {"day": change.day, "event": change.event, "price": change.price} for change in house.history
        ]


def records(relation: Any) -> list[dict[str, Any]]:
    return [dict(Record(relation.schema, row)) for row in relation.rows]


async def test_what_fails_becomes_error_tuples_and_the_rest_goes_on() -> None:
    plan = loads(
        """
        USE "wrappers.plan"
        PLAN look
        {
          INPUT: urls (house-url char)
          OUTPUT: houses, failed
          BODY { wrapper ("detail", urls : houses) {ERRORS: failed} }
        }
        """,
        folder=PLANS,
    )
    switches = Switches(error_rate=0.3, seed=5)
    paths = [house.path for house in Catalogue(seed=5).find(STANDARD_SEARCH)]
    failing = {path for path in paths if fate_of(switches, path, 1).fails}
    assert 5 < len(failing) < 60
    with running_site(error_rate=0.3, seed=5) as site:
        configuration = site.configuration()
        configuration["http"] |= {"retries": 0, "breaker_failures": 0}
        async with Engine(configuration=configuration) as engine:
            result = await engine.run(plan, urls=[{"house-url": site.url + path} for path in paths])
    assert {row["house-url"] for row in result.outputs["failed"]} == {site.url + path for path in failing}
    assert {row["error-kind"] for row in result.outputs["failed"]} == {"HttpStatusError"}
    assert len(result.outputs["houses"]) == len(paths) - len(failing)


async def test_get_houses_goes_on_without_the_houses_that_fail() -> None:
    switches = Switches(error_rate=0.1, seed=2)
    houses = Catalogue(seed=2).find(STANDARD_SEARCH)
    wanted = [house for house in houses if not fate_of(switches, house.path, 1).fails]
    assert len(wanted) < len(houses)
    with running_site(error_rate=0.1, seed=2, per_page=100) as site:
        configuration = site.configuration()
        configuration["http"] |= {"retries": 0, "breaker_failures": 0}
        async with Engine(configuration=configuration) as engine:
            program = load(PLANS / "get_houses.plan")
            result = await engine.run(program, criteria=[{**IRVINE, "site": site.url}])
    assert sorted(row["address"] for row in result) == sorted(house.address for house in wanted)


@pytest.mark.parametrize("query", ["fireplace", "cul-de-sac", "dungeon"])
async def test_query_search_engine_gives_every_hit(site: Site, query: str) -> None:
    async with Engine(configuration=site.configuration()) as engine:
        program = load(PLANS / "query_search_engine.plan")
        result = await engine.run(program, query=[{"query": query, "site": site.url}])
    wanted = Catalogue().find(Search(text=query))
    assert sorted((row["url"], row["title"]) for row in result) == sorted(
        (site.url + house.path, f"{house.address}, {house.city}") for house in wanted
    )
    assert all(row["snippet"] for row in result)


@pytest.mark.parametrize("folder", ["homeseekers", "contributions"])
def test_the_configuration_beside_a_plan_allows_the_site_that_its_wrappers_ask(folder: str) -> None:
    place = PLANS.parent / folder
    settings = tomllib.loads((place / "aioflow.toml").read_text(encoding="utf-8"))
    host = f"127.0.0.1:{DEFAULT_PORT}"
    assert f'site char = "http://{host}"' in (place / "wrappers.plan").read_text(encoding="utf-8")
    assert settings == {"http": {"allow": [host]}, "host": {host: {"concurrency": 15, "robots": False}}}
