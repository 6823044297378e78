"""Small drawings on the page of a house: where it is, and how its price went."""

from __future__ import annotations

from random import Random

from aioflow.demo.site.houses import House
from aioflow.demo.site.markup import Markup

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
    """What the house cost over the years."""
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
