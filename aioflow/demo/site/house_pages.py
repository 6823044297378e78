"""The pages of Homeseekers for people: home, results of a search, hits for some words.

The page of one house. Some sellers' pages come from an older system, whose markup is its own.

Small drawings on the page of a house: where it is, and how its price went.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from html import escape
from random import Random
from typing import Generic, TypeVar
from urllib.parse import quote_plus, urlencode

from aioflow.demo.site import words
from aioflow.demo.site.houses import TODAY, Catalogue, House, School, Search
from aioflow.demo.site.markup import Markup, file_text, fill, joined
from aioflow.demo.site.pictures import front, garden

T = TypeVar("T")
NEW_DAYS = 14
HITS_PER_PAGE = 10


@dataclass(frozen=True)
class Slice(Generic[T]):
    """One page of a list."""

    all: Sequence[T]
    page: int
    size: int

    @property
    def pages(self) -> int:
        return max(1, -(-len(self.all) // self.size))

    @property
    def items(self) -> Sequence[T]:
        return self.all[(self.page - 1) * self.size : self.page * self.size]

    @property
    def shown(self) -> str:
        """Such as 1-6."""
        start = (self.page - 1) * self.size
        return f"{start + 1}-{start + len(self.items)}"


def house_page(title: str, summary: str, body: Markup, here: str = "") -> Markup:
    """A whole page in the site's frame; `here` is the part of the site it belongs to."""
    marks = {
        f"here_{part}": Markup(' class="here"' if part == here else "") for part in ("home", "search", "find")
    }
    style = file_text("homeseekers.css")
    return fill("layout.html", title=title, summary=summary, style=style, body=body, **marks)


def home_page(catalogue: Catalogue) -> Markup:
    """The way in."""
    towns = [
        fill(
            "town.html",
            name=town.name,
            state=town.state,
            query=urlencode({"city": town.name, "state": town.state}),
        )
        for town in words.TOWNS
    ]
    body = fill(
        "home.html",
        total=len(catalogue.houses),
        towns_count=len(words.TOWNS),
        form=search_form(Search(city="Irvine", state="CA", max_price=550_000), "search"),
        newest=joined(map(card, catalogue.newest(6))),
        towns=joined(towns),
    )
    return house_page(
        "Homeseekers: houses for sale", "Houses for sale, by people who live there.", body, "home"
    )


def search_form(search: Search, look: str) -> Markup:
    """The form, with what was searched for last."""
    states = dict.fromkeys(["", *(town.state for town in words.TOWNS)])
    beds = ["", *map(str, range(1, 6))]
    return fill(
        "search_form.html",
        look=look,
        heading=Markup("<h2>Your search</h2>\n  " if look == "filter" else ""),
        city=search.city or "",
        states=_options({state: state or "any" for state in states}, search.state or ""),
        max_price=search.max_price or "",
        beds=_options(
            {count: f"{count} or more" if count else "any" for count in beds}, str(search.min_beds or "")
        ),
    )


def _options(labels: dict[str, str], chosen: str) -> Markup:
    return joined(
        f'    <option value="{value}"{" selected" if value == chosen else ""}>{label}</option>'
        for value, label in labels.items()
    )


def card(house: House) -> Markup:
    """A house in a list."""
    parts = [f"{house.advertised_beds} beds", baths_text(house)]
    if house.square_feet is not None:
        parts.append(f"{house.square_feet:,} sq ft")
    return fill(
        "card.html",
        number=house.number,
        path=house.path,
        picture=front(house),
        price=f"{house.price:,}",
        address=house.address,
        city=house.city,
        state=house.town.state,
        zip=house.zip,
        brief=" · ".join(parts),
        tags=Markup(" ".join(_tags(house))),
    )


def baths_text(house: House) -> str:
    return f"{house.baths:g} {'bath' if house.baths == 1 else 'baths'}"


def _tags(house: House) -> Iterable[str]:
    yield f'<span class="tag">{house.kind}</span>'
    if house.listed is not None and (TODAY - house.listed).days <= NEW_DAYS:
        yield '<span class="tag new">new</span>'


# --- results ------------------------------------------------------------------------------------


def results_page(search: Search, results: Slice[House]) -> Markup:
    """One page of the houses that were found."""
    place = ", ".join(part for part in (search.city, search.state) if part) or "all towns"
    title = f"Houses in {place} · Homeseekers"
    form = search_form(search, "filter")
    if not results.items:
        return house_page(title, "Nothing found.", fill("none.html", place=place, form=form), "search")
    cards: list[str] = [card(house) for house in results.items]
    cards.insert(min(3, len(cards)), file_text("sponsored.html"))
    body = fill(
        "results.html",
        place=place,
        form=form,
        shown=results.shown,
        total=len(results.all),
        cards=joined(cards),
        pages=_page_links(results, "/search", _query(search)),
    )
    return house_page(title, f"{len(results.all)} houses for sale in {place}.", body, "search")


def _query(search: Search) -> dict[str, object]:
    asked = {
        "city": search.city,
        "state": search.state,
        "max-price": search.max_price,
        "min-beds": search.min_beds,
    }
    return {name: value for name, value in asked.items() if value is not None}


def _page_links(results: Slice[T], path: str, query: dict[str, object]) -> Markup:
    """Previous, the pages around this one, Next; nothing where one page is all."""
    if results.pages == 1:
        return Markup("")

    def link(page: int, text: str, attributes: str) -> str:
        href = f"{path}?{urlencode({**query, 'page': page})}".replace("&", "&amp;")
        return f'<a {attributes}href="{href}">{text}</a>'

    links: list[str] = []
    if results.page > 1:
        links.append(link(results.page - 1, "‹ Previous", 'class="previous" rel="prev" '))
    for page in range(max(1, results.page - 3), min(results.pages, results.page + 3) + 1):
        far = 'class="far" ' if abs(page - results.page) > 1 else ""
        links.append(f"<b>{page}</b>" if page == results.page else link(page, str(page), far))
    if results.page < results.pages:
        links.append(link(results.page + 1, "Next ›", 'class="next" rel="next" '))
    return joined(['<nav class="pages" aria-label="Pages">', *links, "</nav>"])


def hits_page(query: str, hits: Slice[House]) -> Markup:
    """One page of the houses whose description has some words."""
    shown = [
        fill(
            "hit.html",
            path=house.path,
            title=f"{house.address}, {house.city}",
            snippet=_snippet(house, query),
        )
        for house in hits.items
    ]
    body = fill(
        "hits.html",
        query=query,
        shown=hits.shown if shown else "0",
        total=len(hits.all),
        hits=joined(shown),
        pages=_page_links(hits, "/find", {"q": query}),
    )
    return house_page(f"{query} · Homeseekers", f"Houses with {query}.", body, "find")


def _snippet(house: House, query: str) -> str:
    """The sentence that has the words, else the features."""
    sentences = (
        f"{sentence}." for text in house.description for sentence in text.removesuffix(".").split(". ")
    )
    found = (sentence for sentence in sentences if query.casefold() in sentence.casefold())
    return next(found, ", ".join(house.features) + ".")


_MAP_WIDTH, _MAP_HEIGHT = 720, 300
_CURVE_WIDTH, _CURVE_HEIGHT = 720, 70


def street_map(house: House) -> Markup:
    """Streets around the house, which has a pin."""
    dice = Random(f"map {house.number}")
    turn = dice.randint(-14, 14)
    columns = "".join(f"M{x} -200V500" for x in _lines(dice, -100, 840))
    rows = "".join(f"M-100 {y}H820" for y in _lines(dice, -120, 440))
    bends = (dice.randint(-40, 200), dice.randint(100, 300), dice.randint(380, 560), dice.randint(560, 760))
    river = "M{} -20C{} 120 {} 140 {} 330".format(*bends)
    park_x, park_y = dice.randint(40, 520), dice.choice((24, 190))
    return Markup(
        f'<svg viewBox="0 0 {_MAP_WIDTH} {_MAP_HEIGHT}" role="img" aria-label="Map of {house.zip}">'
        f'<rect width="{_MAP_WIDTH}" height="{_MAP_HEIGHT}" fill="#eef0e8"/>'
        f'<g transform="rotate({turn} 360 150)">'
        f'<rect x="{park_x}" y="{park_y}" width="150" height="84" rx="10" fill="#cfe3c0"/>'
        f'<path d="{columns}{rows}" stroke="#fff" stroke-width="9"/>'
        f'<path d="M-100 {dice.randint(100, 210)}h1000" stroke="#fbe3a8" stroke-width="15"/></g>'
        f'<path d="{river}" stroke="#b9dcea" stroke-width="16" fill="none" stroke-linecap="round"/>'
        '<path d="M360 152c-16-24-26-36-26-52a26 26 0 0 1 52 0c0 16-10 28-26 52z" fill="#d9622b"/>'
        '<circle cx="360" cy="100" r="10" fill="#fff"/>'
        f'<text x="14" y="288" font-size="13" fill="#5d6b70">{house.city}, {house.zip}</text></svg>'
    )


def _lines(dice: Random, start: int, end: int) -> list[int]:
    """Places of parallel streets."""
    places, place = [], start
    while place < end:
        place += dice.randint(46, 92)
        places.append(place)
    return places


def price_curve(house: House) -> Markup:
    """Return the prices of the house over the years."""
    changes = sorted(house.history, key=lambda change: change.day)
    first, last = changes[0].day.toordinal(), changes[-1].day.toordinal()
    lowest = min(change.price for change in changes)
    span = max(1, max(change.price for change in changes) - lowest)
    points = [
        (
            12 + (change.day.toordinal() - first) / max(1, last - first) * (_CURVE_WIDTH - 24),
            _CURVE_HEIGHT - 12 - (change.price - lowest) / span * (_CURVE_HEIGHT - 24),
        )
        for change in changes
    ]
    line = " ".join(f"{x:.0f},{y:.0f}" for x, y in points)
    dots = "".join(f'<circle cx="{x:.0f}" cy="{y:.0f}" r="5" fill="#17594a"/>' for x, y in points)
    return Markup(
        f'<svg class="spark" viewBox="0 0 {_CURVE_WIDTH} {_CURVE_HEIGHT}" aria-hidden="true">'
        f'<polyline points="{line}" fill="none" stroke="#17594a" stroke-width="2.5"/>{dots}</svg>'
    )


_SIMILAR = 3
_MONTHLY_RATE = 0.06 / 12
_MONTHS = 360


def detail_page(house: House, catalogue: Catalogue) -> Markup:
    """Everything there is to say about a house."""
    body = fill(
        "detail.html",
        **_headline(house),
        **_pictures(house),
        **_agent(house),
        key=_key_figures(house),
        kind=house.kind,
        description=_description(house),
        facts=_facts(house),
        features=joined(f"<li>{escape(feature)}</li>" for feature in house.features),
        history=_history(house),
        schools=_schools(house),
        similar=joined(_similar(each) for each in catalogue.similar(house, _SIMILAR)),
        linked_data=_linked_data(house),
    )
    summary = f"{house.beds} bedrooms, {house.baths:g} baths, $ {house.price:,}"
    return house_page(f"{house.address}, {house.city} · Homeseekers", summary, body, "search")


def is_from_the_older_system(house: House) -> bool:
    return house.number % 3 == 0


def long_date(day: date) -> str:
    """As Americans write it: October 3, 2004."""
    return f"{day:%B} {day.day}, {day.year}"


def _headline(house: House) -> dict[str, object]:
    loan = house.price * 0.8
    monthly = loan * _MONTHLY_RATE / (1 - (1 + _MONTHLY_RATE) ** -_MONTHS)
    asking = f'<div class="asking">$ {house.price:,}</div>'
    if is_from_the_older_system(house):
        asking = (
            f'<div class="price-box"><SPAN CLASS="asking"><small>$</small>&nbsp;{house.price:,}</SPAN></div>'
        )
    return {
        "address": house.address,
        "city": house.city,
        "city_query": quote_plus(house.city),
        "state": house.town.state,
        "zip": house.zip,
        "asking": Markup(asking),
        "estimate": f"about $ {monthly:,.0f} a month with 20 % down",
    }


def _pictures(house: House) -> dict[str, object]:
    return {
        "photo_path": house.photo_path,
        "front": front(house),
        "dusk": front(house, at_dusk=True),
        "garden": garden(house),
        "map": street_map(house),
    }


def _agent(house: House) -> dict[str, object]:
    agent = house.agent
    phone = f'<div class="phone">{agent.phone}</div>' if agent.phone else ""
    return {
        "initials": "".join(word[0] for word in agent.name.split()),
        "agent": agent.name,
        "firm": agent.firm,
        "phone": Markup(phone),
    }


def _key_figures(house: House) -> Markup:
    figures = [(f"{house.beds}", "bedrooms"), (f"{house.baths:g}", baths_text(house).split()[1])]
    if house.square_feet is not None:
        figures.append((f"{house.square_feet:,}", "sq ft"))
        figures.append((f"${house.price / house.square_feet:,.0f}", "per sq ft"))
    return joined(f"<li><b>{figure}</b> {what}</li>" for figure, what in figures)


def _description(house: House) -> Markup:
    if is_from_the_older_system(house):
        return joined(
            [f"<!-- remarks {house.mls or 'none'} -->", *(f"<P>{escape(text)}" for text in house.description)]
        )
    return joined(f"<p>{escape(text)}</p>" for text in house.description)


def _fact_values(house: House) -> Iterator[tuple[str, str, str | None]]:
    """Class, label and text of each fact; None where the seller said nothing."""
    yield "type", "Type", house.kind.capitalize()
    yield "beds", "Bedrooms", f"{house.beds} + den" if house.has_den else str(house.beds)
    yield "baths", "Baths", f"{house.baths:g}"
    yield "area", "Living area", _if_said(house.square_feet, "{:,} sq ft")
    yield "lot", "Lot", _if_said(house.lot_square_feet, "{:,} sq ft")
    yield "built", "Year built", _if_said(house.year_built, "{}")
    yield "garage", "Garage", _if_said(house.garage, "{} cars" if house.garage != 1 else "{} car")
    yield "fee", "Association fee", _if_said(house.monthly_fee, "$ {} / month")
    yield "listed", "Listed on", None if house.listed is None else long_date(house.listed)
    yield "mls", "MLS number", house.mls


def _if_said(number: int | None, template: str) -> str | None:
    return None if number is None else template.format(number)


def _facts(house: House) -> Markup:
    said = [(name, label, text) for name, label, text in _fact_values(house) if text]
    if is_from_the_older_system(house):
        rows = (
            f'<TR class={name}><TD class="label">{label}:<TD class="value">\n  {text}&nbsp;'
            for name, label, text in said
        )
        return joined(['<TABLE class="facts" cellpadding=2>', *rows, "</TABLE>"])
    rows = (
        f'<tr class="{name}"><th scope="row">{label}</th><td class="value">{text}</td></tr>'
        for name, label, text in said
    )
    return joined(['<table class="facts">', "<tbody>", *rows, "</tbody>", "</table>"])


def _history(house: House) -> Markup:
    rows = (
        f'<tr><td class="day">{long_date(change.day)}</td><td class="event">{change.event}</td>'
        f'<td class="amount">$ {change.price:,}</td></tr>'
        for change in house.history
    )
    head = "<thead><tr><th>Date</th><th>Event</th><th>Price</th></tr></thead>"
    curve = [price_curve(house)] if len(house.history) > 1 else []
    return joined([*curve, '<table class="history">', head, "<tbody>", *rows, "</tbody>", "</table>"])


def _schools(house: House) -> Markup:
    if not house.schools:
        return Markup("")
    return joined(
        [
            "<section><h2>Schools</h2>",
            '<ul class="schools">',
            *map(_school, house.schools),
            "</ul></section>",
        ]
    )


def _school(school: School) -> str:
    rating = f'<span class="rating">{school.rating}</span>'
    if school.rating is None:
        rating = '<span class="rating none">–</span>'
    return fill("school.html", rating=Markup(rating), name=school.name, level=school.level)


def _similar(house: House) -> str:
    return fill(
        "similar.html",
        path=house.path,
        photo_path=house.photo_path,
        price=f"{house.price:,}",
        address=house.address,
        brief=f"{house.advertised_beds} beds · {baths_text(house)}",
    )


def _linked_data(house: House) -> Markup:
    data = {
        "@context": "https://schema.org",
        "@type": "SingleFamilyResidence" if house.kind == "single family home" else "Apartment",
        "name": house.address,
        "address": {
            "@type": "PostalAddress",
            "streetAddress": house.address,
            "addressLocality": house.city,
            "addressRegion": house.town.state,
            "postalCode": house.zip,
        },
        "numberOfBedrooms": house.beds,
        "numberOfBathroomsTotal": house.baths,
        "offers": {"@type": "Offer", "price": house.price, "priceCurrency": "USD"},
    }
    return Markup(json.dumps(data, indent=1).replace("</", "<\\/"))
