"""The campaign query against the site: what a join of its three sources must give."""

from collections import Counter
from pathlib import Path

import pytest

from aioflow import AioflowError, Engine, load
from aioflow.demo.running import Site, running_site
from aioflow.demo.site.campaign import Campaign
from aioflow.runtime.session import MODES, Mode

PLAN = Path(__file__).parents[2] / "plans" / "contributions" / "contributions.plan"


def expected(campaign: Campaign) -> Counter[tuple[str, int, int]]:
    incomes, crimes = campaign.neighborhoods, campaign.crimes
    return Counter(
        (each.name, crimes[each.zip].index, incomes[each.zip].income)
        for each in campaign.contributions
        if each.zip in incomes and each.zip in crimes
    )


@pytest.mark.parametrize("mode", MODES)
async def test_contributors_are_joined_with_income_and_crime_where_they_live(site: Site, mode: Mode) -> None:
    async with Engine(configuration=site.configuration()) as engine:
        result = await engine.run(load(PLAN), campaign=[{"year": 2000, "site": site.url}], mode=mode)
    found = Counter((row["name"], row["crime"], row["income"]) for row in result)
    assert found == expected(Campaign())
    assert set(result[0]) == {"name", "crime", "income"}


async def test_each_zip_code_is_asked_about_once() -> None:
    with running_site(latency=0.05) as site:
        async with Engine(configuration=site.configuration()) as engine:
            await engine.run(load(PLAN), campaign=[{"site": site.url}])
        log = site.log()
    zips = {each.zip for each in Campaign().contributions}
    asked = Counter(entry.path for entry in log)
    assert asked == Counter(
        [
            "/fec/2000/contributions.csv",
            *(f"/yahoo/neighborhoods?zip={zip_code}" for zip_code in zips),
            *(f"/crime?zip={zip_code}" for zip_code in zips),
        ]
    )


async def test_an_election_that_the_source_does_not_have_is_an_error(site: Site) -> None:
    async with Engine(configuration=site.configuration()) as engine:
        with pytest.raises(AioflowError, match="404"):
            await engine.run(load(PLAN), campaign=[{"year": 1996, "site": site.url}])
