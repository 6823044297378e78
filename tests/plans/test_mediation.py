"""The mediation layer: two irregular pages and a database as one XML document, and questions to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from aioflow import AioflowError, Document, Engine, Result, load
from aioflow.demo.running import Site
from aioflow.runtime.session import MODES, Mode
from aioflow.testing import ScriptedSite, run_plan

ROOT = Path(__file__).parents[2]
PLANS = ROOT / "plans" / "mediation"
PAGES = ROOT / "aioflow" / "demo" / "site" / "templates"
ADDRESS = "127.0.0.1:8640"  # what the plans name
PALMTOPS, PRICE_LIST = f"http://{ADDRESS}/goods/palmtops.html", f"http://{ADDRESS}/goods/price_list.txt"
# Read off the pages and stock.csv by hand. Harry has dollars (0.90 euros) and ounces (28.35 g), Krause has
# marks (0.51129 euros), the stores have cents and kilograms. Each good by its name in the first source that
# has it: for each source the name there, euros and grams.
OFFERS: dict[str, dict[str, tuple[str, float, int]]] = {
    "Psion 3c": {
        "harry": ("Psion 3c", 359.55, 275),  # $399.50, 9.7 oz
        "krause": ("PSION Series 3c", 372.73, 275),  # 729 DM
        "stores": ("PSION 3C", 379, 275),
    },
    "Psion Siena": {
        "harry": ("Psion Siena", 179.1, 179),  # $199, 6.3 oz
        "krause": ("Psion Siena", 193.78, 180),  # 379 DM
        "stores": ("PSION SIENA", 189, 200),
    },
    "HP 200LX": {
        "harry": ("HP 200LX", 494.1, 312),  # $549, 11 oz
        "krause": ("Hewlett-Packard 200 LX", 561.91, 312),  # 1099 DM
        "stores": ("HP200LX", 559, 312),
    },
    "HP 320LX": {
        "harry": ("HP 320LX", 944.1, 454),  # $1049, 16 oz
        "krause": ("HP 320 LX mit Windows CE", 663.65, 440),  # 1298 DM
        "stores": ("HP320LX", 649, 440),
    },
    "Casio Cassiopeia A-11": {
        "harry": ("Casio Cassiopeia A-11", 449.1, 380),  # $499, 13.4 oz
    },
    "USR Pilot 1000": {
        "harry": ("USR Pilot 1000", 224.1, 162),  # $249, 5.7 oz
        "krause": ("U.S. Robotics Pilot 1000", 229.57, 160),  # 449 DM
        "stores": ("3COM PILOT 1000", 219, 160),
    },
    "Sharp Zaurus ZR-5800": {
        "harry": ("Sharp Zaurus ZR-5800", 539.1, 391),  # $599, 13.8 oz
        "krause": ("Sharp Zaurus ZR 5800", 510.52, 390),  # 998.50 DM
        "stores": ("SHARP ZAURUS ZR5800", 525, 400),
    },
    "Nokia 9000 Communicator": {
        "krause": ("Nokia 9000 Communicator", 919.81, 397),  # 1799 DM
        "stores": ("NOKIA 9000", 949, 450),
    },
    "APPLE NEWTON MP130": {
        "stores": ("APPLE NEWTON MP130", 649, 480),
    },
}
# The pieces on the shelves, read off stock.csv; shelves that are empty are left out.
STOCK = {
    "Psion 3c": {"Darmstadt": 2, "Frankfurt": 1},
    "Psion Siena": {"Frankfurt": 2},
    "HP 200LX": {"Frankfurt": 4},
    "HP 320LX": {"Darmstadt": 1},
    "USR Pilot 1000": {"Darmstadt": 3, "Frankfurt": 6},
    "Nokia 9000 Communicator": {"Darmstadt": 1},
    "APPLE NEWTON MP130": {"Frankfurt": 1},
}
# The answers, found by looking at the tables.
CHEAPEST = {
    "Psion 3c": ("harry", 359.55),
    "Psion Siena": ("harry", 179.1),
    "HP 200LX": ("harry", 494.1),
    "HP 320LX": ("stores", 649),
    "USR Pilot 1000": ("stores", 219),
    "Nokia 9000 Communicator": ("krause", 919.81),
    "APPLE NEWTON MP130": ("stores", 649),
}
WITH_SEVERAL_NAMES = ["HP 200LX", "HP 320LX", "Nokia 9000 Communicator", "Psion 3c", "USR Pilot 1000"]
WITH_SEVERAL_WEIGHTS = ["Nokia 9000 Communicator", "Psion Siena"]
WORTH = [
    # 2 * 359.55 + 649 + 3 * 219 + 919.81
    {"store": "Darmstadt", "goods": 4, "pieces": 7, "euros": 2944.91},
    # 359.55 + 2 * 179.1 + 4 * 494.1 + 6 * 219 + 649
    {"store": "Frankfurt", "goods": 5, "pieces": 14, "euros": 4657.15},
]


async def run(
    site: Site,
    database_url: str,
    name: str,
    *,
    mode: Mode = "D+S+",
    is_filled: bool = True,
    **parameters: Any,
) -> Result:
    """Run a plan after the stock is filled; the site serves as a proxy for the address in the plans."""
    configuration = site.configuration()
    configuration["http"]["allow"].append(ADDRESS)
    configuration["host"][ADDRESS] = {"proxy": site.url, "robots": False}
    configuration["database"] = {"default": {"url": database_url}}
    async with Engine(configuration=configuration) as engine:
        if is_filled:
            await engine.run(load(PLANS / "stock.plan"))
        program = load(PLANS / f"{name}.plan")
        assert [str(each) for each in engine.check(program)] == []
        return await engine.run(program, parameters=parameters, mode=mode)


def goods_of(result: Result) -> list[ElementTree.Element]:
    (view,) = result.outputs["view"]
    assert isinstance(view["catalogue"], Document)
    return list(ElementTree.fromstring(view["catalogue"].text))


def offers_of(good: ElementTree.Element) -> dict[str, tuple[str, float, int]]:
    rows = [[child.text or "" for child in offer] for offer in good.findall("offer")]
    return {shop: (name, float(euros), int(grams)) for shop, name, euros, grams in rows}


# --- the view -----------------------------------------------------------------------------------


async def test_the_view_has_every_offer_of_each_good_in_euros_and_grams(
    site: Site, database_url: str
) -> None:
    result = await run(site, database_url, "catalogue")
    goods = goods_of(result)
    assert {good.findtext("name"): offers_of(good) for good in goods} == OFFERS
    assert len(goods) == len(OFFERS)
    assert result.statistics.marks == {}


async def test_the_view_has_what_the_stores_have(site: Site, database_url: str) -> None:
    found = {
        good.findtext("name"): {
            each.findtext("store"): int(each.findtext("pieces") or 0) for each in good.findall("stock")
        }
        for good in goods_of(await run(site, database_url, "catalogue"))
    }
    assert {name: stores for name, stores in found.items() if stores} == STOCK


# --- the questions ------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
async def test_the_cheapest_offer_of_each_good_in_stock(site: Site, database_url: str, mode: Mode) -> None:
    found = await run(site, database_url, "cheapest", mode=mode)
    assert [dict(row) for row in found] == [
        {"name": name, "shop": CHEAPEST[name][0], "euros": CHEAPEST[name][1], "store": store}
        for name in sorted(CHEAPEST)
        for store in sorted(STOCK[name])
    ]


async def test_an_expensive_dollar_makes_other_offers_the_cheapest(site: Site, database_url: str) -> None:
    found = await run(site, database_url, "cheapest", dollar=2)
    assert {row["name"]: row["shop"] for row in found} == {
        "Psion 3c": "krause",
        "Psion Siena": "stores",
        "HP 200LX": "stores",
        "HP 320LX": "stores",
        "USR Pilot 1000": "stores",
        "Nokia 9000 Communicator": "krause",
        "APPLE NEWTON MP130": "stores",
    }


async def test_names_and_weights_that_contradict_each_other(site: Site, database_url: str) -> None:
    found = await run(site, database_url, "contradictions")
    names = [
        (good, "name", shop, name)
        for good in WITH_SEVERAL_NAMES
        for shop, (name, _, _) in OFFERS[good].items()
    ]
    weights = [
        (good, "grams", shop, str(grams))
        for good in WITH_SEVERAL_WEIGHTS
        for shop, (_, _, grams) in OFFERS[good].items()
    ]
    rows = [(row["name"], row["about"], row["shop"], row["says"]) for row in found]
    assert sorted(rows) == sorted(names + weights)


async def test_how_much_weights_may_differ_is_a_parameter(site: Site, database_url: str) -> None:
    found = await run(site, database_url, "contradictions", percent=3)
    several = {row["name"] for row in found if row["about"] == "grams"}
    assert several == {*WITH_SEVERAL_WEIGHTS, "HP 320LX"}  # 454 g are 3.2 % more than 440 g


async def test_the_worth_of_each_store(site: Site, database_url: str) -> None:
    found = await run(site, database_url, "worth")
    assert [dict(row) for row in found] == WORTH
    assert {type(row[name]) for row in found for name in ("goods", "pieces")} == {int}


# --- sources that fail --------------------------------------------------------------------------


def run_scripted(folder: Path, name: str, **pages: Any) -> Result:
    """Run a plan after the stock is filled; `palmtops` and `price_list` take the places of the pages."""
    answers = {
        PALMTOPS: pages.get("palmtops", (PAGES / "palmtops.html").read_text()),
        PRICE_LIST: pages.get("price_list", (PAGES / "price_list.txt").read_text()),
    }
    settings = {
        "http": {"retries": 0},
        "database": {"default": {"url": f"sqlite:{folder / 'stock.db'}"}},
    }
    run_plan(load(PLANS / "stock.plan"), configuration=settings)
    return run_plan(load(PLANS / f"{name}.plan"), network=ScriptedSite(answers), configuration=settings)


def test_a_shop_that_is_down_is_left_out_and_the_answer_says_so(tmp_path: Path) -> None:
    found = run_scripted(tmp_path, "cheapest", price_list=503)
    offers = {row["name"]: (row["shop"], row["euros"]) for row in found}
    nokia = {"NOKIA 9000": ("stores", 949)}  # the name in the only source that is left
    assert offers == {name: each for name, each in CHEAPEST.items() if each[0] != "krause"} | nokia
    (reason,) = found.statistics.marks["offers"].doubtful
    assert "price_list.txt" in reason.text


def test_a_shop_whose_page_is_gone_has_no_offers(tmp_path: Path) -> None:
    found = run_scripted(tmp_path, "cheapest", price_list=404)
    assert {row["shop"] for row in found} == {"harry", "stores"}
    assert found.statistics.marks == {}


def test_without_both_shops_the_stores_have_the_only_offers(tmp_path: Path) -> None:
    found = run_scripted(tmp_path, "cheapest", palmtops=503, price_list=503)
    assert {row["shop"] for row in found} == {"stores"}
    assert len(found) == sum(map(len, STOCK.values()))


def test_a_good_without_a_weight_is_in_the_view(tmp_path: Path) -> None:
    page = "<b>Psion Siena</b> only $199<br>\n<b>HP 200LX</b> 11 oz $549<br>\n"
    found = run_scripted(tmp_path, "catalogue", palmtops=page)
    (siena,) = [good for good in goods_of(found) if good.findtext("name") == "Psion Siena"]
    offers = {offer.findtext("shop"): offer.findtext("grams") for offer in siena.findall("offer")}
    assert offers == {"harry": "", "krause": "180", "stores": "200"}
    claims = run_scripted(tmp_path, "contradictions", palmtops=page)
    assert [
        (row["shop"], row["says"])
        for row in claims
        if (row["name"], row["about"]) == ("Psion Siena", "grams")
    ] == [("krause", "180"), ("stores", "200")]


async def test_without_the_database_the_run_says_what_is_missing(site: Site, tmp_path: Path) -> None:
    with pytest.raises(AioflowError, match="no table 'stock'"):
        await run(site, f"sqlite:{tmp_path / 'none.db'}", "cheapest", is_filled=False)
