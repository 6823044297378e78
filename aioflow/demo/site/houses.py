"""The houses for sale, made from a seed; how they look on a page is for `house_pages`.

The houses for machines: JSON, Atom, a sitemap and robots.txt.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property
from random import Random
from typing import Any, Literal, TypeAlias, TypeVar
from xml.sax.saxutils import escape

from aioflow.demo.site import words
from aioflow.demo.site.words import Town

# The day on which the site stands still.
TODAY = date(2004, 11, 15)
STANDARD_TOWN = words.TOWNS[0]
STANDARD_PRICE = 550_000
_STANDARD_THOUSANDS = (500, 549)

T = TypeVar("T")
Kind: TypeAlias = Literal["single family home", "townhouse", "condominium"]
_KINDS: Sequence[Kind] = ("single family home", "townhouse", "condominium")


@dataclass(frozen=True)
class Agent:
    """The seller of a house."""

    name: str
    firm: str
    phone: str | None


@dataclass(frozen=True)
class School:
    """A school near a house."""

    name: str
    level: str
    rating: int | None


@dataclass(frozen=True)
class PriceChange:
    """The price of a house on a day, offered or sold."""

    day: date
    event: str
    price: int


@dataclass(frozen=True, eq=False)
class House:
    """A house for sale; None is what its seller did not say."""

    number: int
    kind: Kind
    address: str
    town: Town
    zip: str
    price: int
    beds: int
    has_den: bool
    baths: float
    square_feet: int | None
    lot_square_feet: int | None
    year_built: int | None
    garage: int | None
    monthly_fee: int | None
    mls: str | None
    listed: date | None
    agent: Agent
    description: tuple[str, ...]
    features: tuple[str, ...]
    schools: tuple[School, ...]
    history: tuple[PriceChange, ...]

    @property
    def advertised_beds(self) -> int:
        """Beds as lists of results count them: a den is one more."""
        return self.beds + self.has_den

    @cached_property
    def path(self) -> str:
        slug = re.sub(r"[^a-z0-9]+", "-", f"{self.address} {self.town.name}".lower())
        return f"/houses/{slug}-{self.number}"

    @property
    def photo_path(self) -> str:
        return f"/photos/{self.number}.svg"

    @property
    def city(self) -> str:
        return self.town.name


@dataclass(frozen=True)
class Search:
    """The criteria of a search; None is anything."""

    city: str | None = None
    state: str | None = None
    max_price: int | None = None
    min_beds: int | None = None
    text: str | None = None

    def fits(self, house: House) -> bool:
        return (
            (self.city is None or self.city.casefold() == house.city.casefold())
            and (self.state is None or self.state.casefold() == house.town.state.casefold())
            and (self.max_price is None or house.price <= self.max_price)
            and (self.min_beds is None or house.advertised_beds >= self.min_beds)
            and (self.text is None or self.text.casefold() in _words_of(house))
        )


def _words_of(house: House) -> str:
    return " ".join((house.address, house.kind, *house.description, *house.features)).casefold()


# What gives as many results as the switch says.
STANDARD_SEARCH = Search(STANDARD_TOWN.name, STANDARD_TOWN.state, STANDARD_PRICE)


class Catalogue:
    """All houses of the site."""

    def __init__(self, seed: int = 1, results: int = 72) -> None:
        self.houses = tuple(_houses(seed, results))
        self._by_number = {house.number: house for house in self.houses}

    @property
    def paths(self) -> list[str]:
        return [house.path for house in self.houses]

    def house(self, number: int) -> House | None:
        return self._by_number.get(number)

    def find(self, search: Search) -> list[House]:
        """The houses that fit, the cheapest first."""
        found = (house for house in self.houses if search.fits(house))
        return sorted(found, key=lambda house: (house.price, house.number))

    def newest(self, count: int) -> list[House]:
        """Those that came to the market last."""
        listed = [(house.listed, house.number, house) for house in self.houses if house.listed is not None]
        return [house for _, _, house in sorted(listed, key=lambda each: each[:2], reverse=True)[:count]]

    def similar(self, house: House, count: int) -> list[House]:
        """Houses of the same town with prices near this one's."""
        others = (each for each in self.houses if each.town is house.town and each is not house)
        return sorted(others, key=lambda each: (abs(each.price - house.price), each.number))[:count]


# --- making them --------------------------------------------------------------------------------


def _houses(seed: int, results: int) -> Iterator[House]:
    for index in range(results):
        dice = Random(f"{seed} standard {index}")
        yield _house(dice, 1_000_000 + 7 * index, STANDARD_TOWN, _STANDARD_THOUSANDS)
    for place, town in enumerate(words.TOWNS, start=2):
        for index in range(town.houses):
            # A dice for each house: what one is like does not depend on how many there are.
            dice = Random(f"{seed} {town.name} {index}")
            yield _house(dice, place * 1_000_000 + 7 * index, town, (town.lowest, town.highest))


def _house(dice: Random, number: int, town: Town, thousands: tuple[int, int]) -> House:
    kind = dice.choices(_KINDS, (5, 3, 2))[0]
    street = dice.choice(words.STREETS)
    price = dice.randint(*thousands) * 1000 + dice.choice((0, 0, 500, 900))
    beds = dice.choices((2, 3, 4, 5), (20, 40, 30, 10))[0]
    built = dice.randint(1966, 2001)
    listed = TODAY - timedelta(days=dice.randint(1, 140))
    return House(
        number=number,
        kind=kind,
        address=f"{dice.randint(1, 480)} {street}",
        town=town,
        zip=dice.choice(town.zips),
        price=price,
        beds=beds,
        has_den=dice.random() < 0.25,
        baths=max(1.0, beds - dice.choice((0.5, 1, 1, 1.5))),
        square_feet=_unless(dice, 0.07, 420 * beds + dice.randint(120, 900)),
        lot_square_feet=None if kind == "condominium" else _unless(dice, 0.1, dice.randint(24, 98) * 100),
        year_built=_unless(dice, 0.08, built),
        garage=_unless(dice, 0.15, dice.randint(1, 3)),
        monthly_fee=None if kind == "single family home" else dice.randint(9, 42) * 10,
        mls=_unless(dice, 0.05, f"S{dice.randint(300_000, 499_999)}"),
        listed=_unless(dice, 0.06, listed),
        agent=_agent(dice),
        description=_description(dice, kind, street),
        features=tuple(sorted(dice.sample(words.FEATURES, dice.randint(7, 13)))),
        schools=_schools(dice),
        history=_history(dice, price, built, listed),
    )


def _unless(dice: Random, share: float, value: T) -> T | None:
    return None if dice.random() < share else value


def _agent(dice: Random) -> Agent:
    name = f"{dice.choice(words.FIRST_NAMES)} {dice.choice(words.LAST_NAMES)}"
    # Numbers from 555-0100 to 555-0199 belong to nobody.
    phone = f"(949) 555-01{dice.randint(0, 99):02}"
    return Agent(name, dice.choice(words.FIRMS), _unless(dice, 0.1, phone))


def _description(dice: Random, kind: str, street: str) -> tuple[str, ...]:
    opening = dice.choice(words.OPENINGS).format(kind=kind, street=street)
    rooms = dice.sample(words.ROOMS, dice.randint(2, 3))
    outside = [*dice.sample(words.GARDENS, dice.randint(1, 2)), dice.choice(words.CLOSINGS)]
    return (" ".join([opening, *rooms]), " ".join(outside))


def _schools(dice: Random) -> tuple[School, ...]:
    chosen = dice.sample(words.SCHOOLS, dice.choice((0, 2, 3, 3, 4)))
    order = ("Elementary", "Middle", "High")
    return tuple(
        School(f"{name} {level} School", level, _unless(dice, 0.2, dice.randint(4, 10)))
        for name, level in sorted(chosen, key=lambda school: order.index(school[1]))
    )


def _history(dice: Random, price: int, built: int, listed: date) -> tuple[PriceChange, ...]:
    """From the latest to the earliest; the latest has today's price."""
    changes = [PriceChange(listed, "Listed", price)]
    if dice.random() < 0.4:
        higher = price + dice.randint(5, 30) * 1000
        changes.append(PriceChange(listed - timedelta(days=dice.randint(14, 60)), "Listed", higher))
        changes[0] = PriceChange(listed, "Price changed", price)
    year = dice.randint(max(built, 1985), 2002)
    while year < 2003 and len(changes) < 5:
        sold = int(price * (0.45 + 0.5 * (year - 1985) / 19)) // 500 * 500
        changes.append(PriceChange(_day(dice, year), "Sold", sold))
        year += dice.randint(4, 12)
    return tuple(sorted(changes, key=lambda change: change.day, reverse=True))


def _day(dice: Random, year: int) -> date:
    return date(year, dice.randint(1, 12), dice.randint(1, 28))


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
    """Return the houses that came to the market last, as Atom."""
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
