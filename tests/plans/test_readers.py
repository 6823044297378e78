"""Wrappers for what the site has for machines: JSON with paging, XML with namespaces, text, feeds."""

from collections import Counter
from typing import Any

from aioflow import Engine, loads
from aioflow.demo.running import Site
from aioflow.demo.site.campaign import Campaign
from aioflow.demo.site.houses import Catalogue


async def rows_of(site: Site, wrapper: str, name: str) -> list[dict[str, Any]]:
    body = f'wrapper ("{name}", sites : found)'
    plan = f"{wrapper}\nPLAN all {{ INPUT: sites (site char) OUTPUT: found BODY {{ {body} }} }}"
    async with Engine(configuration=site.configuration()) as engine:
        result = await engine.run(loads(plan), sites=[{"site": site.url}])
    return [dict(row) for row in result]


async def test_houses_come_from_the_api_page_by_page(site: Site) -> None:
    rows = await rows_of(
        site,
        """
        WRAPPER api (site char)
        {
          GET: "{+site}/api/houses?offset=0"
          READ: json
          EACH: "houses"
          PAGING: next "next"
          id: number
          street: "address.street"
          listed: date
        }
        """,
        "api",
    )
    assert [(row["id"], row["street"], row["listed"]) for row in rows] == [
        (house.number, house.address, house.listed) for house in Catalogue().houses
    ]


async def test_houses_come_from_the_sitemap(site: Site) -> None:
    rows = await rows_of(
        site,
        """
        WRAPPER sitemap (site char)
        {
          GET: "{+site}/sitemap.xml"
          READ: xml namespace "s" "http://www.sitemaps.org/schemas/sitemap/0.9"
          EACH: "//s:url"
          url: "s:loc"
          changed: "s:lastmod" date
        }
        """,
        "sitemap",
    )
    assert [(row["url"], row["changed"]) for row in rows] == [
        (site.url + house.path, house.history[0].day) for house in Catalogue().houses
    ]


async def test_totals_come_from_a_report_in_columns(site: Site) -> None:
    rows = await rows_of(
        site,
        r"""
        WRAPPER totals (site char)
        {
          GET: "{+site}/fec/2000/summary.txt"
          READ: text lines
          EACH: "^(?P<candidate>[A-Z]\\w+) +(?P<number>[\\d,]+) +(?P<total>[\\d,]+)$"
          candidate: char
          number: number
          total: number
        }
        """,
        "totals",
    )
    wanted = Counter[str]()
    for contribution in Campaign().contributions:
        wanted[contribution.candidate] += contribution.amount
    assert {row["candidate"]: row["total"] for row in rows} == wanted
