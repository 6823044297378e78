"""The houses for machines: JSON, Atom, a sitemap and robots.txt."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any
from xml.sax.saxutils import escape

from aioflow.demo.site.houses import TODAY, Catalogue, House

API_HOUSES = 20
_FEED_HOUSES = 20
ROBOTS = """\
User-agent: *
Disallow: /_log
Disallow: /account/

Sitemap: {site}/sitemap.xml
"""


def api_answer(houses: Sequence[House], offset: int, limit: int) -> dict[str, Any]:
    """Some houses from a place on, and where the next are."""
    shown = houses[offset : offset + limit]
    following = offset + len(shown)
    return {
        "total": len(houses),
        "offset": offset,
        "next": f"/api/houses?offset={following}&limit={limit}" if following < len(houses) else None,
        "houses": [_house_data(house) for house in shown],
    }


def _house_data(house: House) -> dict[str, Any]:
    return {
        "id": house.number,
        "url": house.path,
        "address": {"street": house.address, "city": house.city, "state": house.town.state, "zip": house.zip},
        "price": house.price,
        "beds": house.beds,
        "baths": house.baths,
        "square_feet": house.square_feet,
        "year_built": house.year_built,
        "mls": house.mls,
        "listed": house.listed.isoformat() if house.listed else None,
        "features": list(house.features),
    }


def sitemap(catalogue: Catalogue, site: str) -> str:
    """Every house, with the day on which its page changed."""
    urls = (
        f"<url><loc>{site}{house.path}</loc><lastmod>{house.history[0].day}</lastmod></url>"
        for house in catalogue.houses
    )
    return "\n".join(
        [
            '<?xml version="1.0" encoding="UTF-8"?>',
            '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">',
            *urls,
            "</urlset>\n",
        ]
    )


def feed(catalogue: Catalogue, site: str) -> str:
    """What came to the market last, as Atom."""
    entries = (_entry(house, site) for house in catalogue.newest(_FEED_HOUSES))
    return "\n".join(
        [
            '<?xml version="1.0" encoding="UTF-8"?>',
            '<feed xmlns="http://www.w3.org/2005/Atom">',
            "<title>New on Homeseekers</title>",
            f'<link href="{site}/feed.xml" rel="self"/><link href="{site}/"/>',
            f"<id>{site}/</id><updated>{_moment(TODAY)}</updated>",
            *entries,
            "</feed>\n",
        ]
    )


def _entry(house: House, site: str) -> str:
    assert house.listed is not None
    summary = f"{house.beds} bedrooms, {house.baths:g} baths, $ {house.price:,}"
    return (
        f"<entry><title>{escape(house.address)}, {house.city}</title>"
        f'<link href="{site}{house.path}"/><id>{site}{house.path}</id>'
        f"<updated>{_moment(house.listed)}</updated><author><name>{escape(house.agent.name)}</name></author>"
        f"<summary>{summary}</summary></entry>"
    )


def _moment(day: date) -> str:
    return f"{day}T12:00:00Z"
