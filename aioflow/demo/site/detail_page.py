"""The page of one house. Some sellers' pages come from an older system, whose markup is its own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date
from html import escape
from urllib.parse import quote_plus

from aioflow.demo.site.house_pages import baths_text, house_page
from aioflow.demo.site.houses import Catalogue, House, School
from aioflow.demo.site.markup import Markup, fill, joined
from aioflow.demo.site.pictures import front, garden
from aioflow.demo.site.sketches import price_curve, street_map

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
