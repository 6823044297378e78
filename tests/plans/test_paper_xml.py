"""The paper's examples of XML: an answer that is joined, a document put in order, a continuous query."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any
from xml.etree import ElementTree

import pytest

from aioflow import Engine, load
from aioflow.demo.running import Site
from aioflow.demo.site.houses import Catalogue
from aioflow.runtime.session import MODES, Mode
from aioflow.testing import run_plan
from tests.plans.monitoring import mails_in, run_with, settings_for, text_of

EXAMPLES = Path(__file__).parents[2] / "plans" / "examples"
FEED_HOUSES = 20


# --- a service that answers in XML, joined with a relation --------------------------------------


@pytest.mark.parametrize("mode", MODES)
async def test_entries_of_a_feed_are_joined_with_what_is_known_about_the_houses(
    site: Site, mode: Mode
) -> None:
    async with Engine(configuration=site.configuration()) as engine:
        program = load(EXAMPLES / "xml_join.plan")
        assert [str(each) for each in engine.check(program)] == []
        result = await engine.run(program, service=[{"site": site.url}], mode=mode)
    found = [
        (row["index"], row["url"], row["updated"].date(), row["agent"], row["price"], row["beds"], row["zip"])
        for row in result
    ]
    assert sorted(found) == [
        (place, site.url + house.path, house.listed, house.agent.name, house.price, house.beds, house.zip)
        for place, house in enumerate(Catalogue().newest(FEED_HOUSES), start=1)
    ]


# --- a document that is put in order ------------------------------------------------------------

HOUSES: list[dict[str, Any]] = [
    {"city": house.city, "address": house.address, "price": house.price} for house in Catalogue().houses
]


def listing_of(houses: list[dict[str, Any]]) -> str:
    ((listing,),) = (row.values() for row in run_plan(load(EXAMPLES / "xml_nesting.plan"), houses=houses))
    return str(listing)


def test_houses_are_nested_in_their_cities_by_price() -> None:
    expected = {
        city: sorted((house["price"], house["address"]) for house in HOUSES if house["city"] == city)
        for city in sorted({house["city"] for house in HOUSES})
    }
    found = {
        city.get("name"): [(int(house.get("price", "")), house.text) for house in city]
        for city in ElementTree.fromstring(listing_of(HOUSES))
    }
    assert found == expected
    assert list(found) == list(expected)


def test_the_document_does_not_depend_on_the_order_of_the_tuples() -> None:
    shuffled = Random(7).sample(HOUSES, len(HOUSES))
    assert listing_of(shuffled) == listing_of(HOUSES)


def test_the_nested_document_is_shorter_than_that_of_the_relation() -> None:
    plan = "PLAN flat { INPUT: houses OUTPUT: document BODY { rel2xml (houses : document) } }"
    (flat,) = run_plan(plan, houses=HOUSES)
    assert 2 * len(listing_of(HOUSES)) < len(str(flat["xml"]))


def test_no_houses_make_an_empty_listing() -> None:
    assert listing_of([]) == "<listing/>"


# --- a continuous query -------------------------------------------------------------------------


def criteria(site: Site, most: int) -> list[dict[str, Any]]:
    return [{"city": "Irvine", "max-price": most, "site": site.url}]


async def test_a_continuous_query_mails_the_houses_that_fit_in_each_run(site: Site, tmp_path: Path) -> None:
    settings = settings_for(f"sqlite:{tmp_path / 'outbox.db'}", tmp_path, site)
    newest = Catalogue().newest(FEED_HOUSES)
    most = sorted(house.price for house in newest if house.city == "Irvine")[3]
    expected: list[dict[str, Any]] = [
        {"title": f"{house.address}, Irvine", "price": house.price, "url": site.url + house.path}
        for house in newest
        if house.city == "Irvine" and house.price < most
    ]
    assert len(expected) == 3
    program = load(EXAMPLES / "continuous_query.plan")
    for _ in range(2):
        result = await run_with(
            settings, program, criteria=criteria(site, most), parameters={"to": "me@example.org"}
        )
        assert [dict(row) for row in result] == expected
    first, second = mails_in(tmp_path)
    assert first["subject"] == second["subject"] == "Houses: 3"
    assert all(house["url"] in text_of(first) for house in expected)


async def test_without_a_house_that_fits_there_is_no_mail(site: Site, tmp_path: Path) -> None:
    settings = settings_for(f"sqlite:{tmp_path / 'outbox.db'}", tmp_path, site)
    result = await run_with(
        settings,
        load(EXAMPLES / "continuous_query.plan"),
        criteria=criteria(site, 100_000),
        parameters={"to": "me@example.org"},
    )
    assert list(result) == []
    assert mails_in(tmp_path) == []
