"""Sources that show a limited number of results: an API of used cars, a form with menus, a store locator."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from html import escape
from math import asin, cos, radians, sin, sqrt
from random import Random
from typing import Any

import msgspec
from aiohttp import web

API_LIMIT, FORM_LIMIT, NEAR_LIMIT = 50, 40, 20
CARS, STORES = 2_000, 400
MAKES = (
    *("Alfa Romeo", "BMW", "Chevrolet", "Citroën", "Ford", "Honda"),
    *("Kia", "Mazda", "Nissan", "Renault", "Toyota", "Volvo"),
)
STYLES = ("convertible", "coupé", "hatchback", "sedan", "truck", "van")
_TRUCKS = ("Chevrolet", "Ford", "Nissan", "Toyota")
FUELS = ("diesel", "electric", "petrol")
# The region of the stores, in degrees.
SOUTH, NORTH, WEST, EAST = 32.0, 42.0, -124.0, -114.0
_EARTH_KM = 6371.0088


class Car(msgspec.Struct, frozen=True):
    number: int
    make: str
    style: str
    fuel: str
    year: int
    price: int


class Store(msgspec.Struct, frozen=True):
    number: int
    name: str
    latitude: float
    longitude: float


class LimitedSources:
    """The cars and stores, and the answers about them. Which of too many are shown depends on the seed."""

    def __init__(self, seed: int) -> None:
        random = Random(f"limited {seed}")
        self.cars = [_car(number, random) for number in range(CARS)]
        self.stores = [_store(number, random) for number in range(STORES)]

    def routes(self) -> Iterator[tuple[str, Callable[[web.Request], Awaitable[web.StreamResponse]]]]:
        yield "/cars", self._form
        yield "/cars/results", self._results
        yield "/api/cars", self._api
        yield "/api/stores/near", self._near

    def matching(self, query: Mapping[str, str]) -> list[Car]:
        """Return the cars that a query asks for, in the order in which they are shown."""
        names = [name for name in ("make", "style", "fuel") if query.get(name)]
        ends = [
            (name, sign, _number(query[f"{end}-{name}"]))
            for name in ("price", "year")
            for end, sign in (("min", 1), ("max", -1))
            if query.get(f"{end}-{name}")
        ]
        return [
            car
            for car in self.cars
            if all(getattr(car, name) == query[name] for name in names)
            and all(sign * getattr(car, name) >= sign * value for name, sign, value in ends)
        ]

    async def _api(self, request: web.Request) -> web.StreamResponse:
        found = self.matching(request.query)
        shown = [msgspec.to_builtins(car) for car in found[:API_LIMIT]]
        return web.json_response({"total": len(found), "cars": shown})

    async def _form(self, request: web.Request) -> web.StreamResponse:
        menus = {"make": MAKES, "style": STYLES, "fuel": FUELS}
        selects = "".join(
            f'<label>{name} <select name="{name}"><option value="">any</option>'
            + "".join(f'<option value="{escape(value)}">{escape(value)}</option>' for value in values)
            + "</select></label>"
            for name, values in menus.items()
        )
        return _page("Used cars", f'<form action="/cars/results">{selects}<button>Search</button></form>')

    async def _results(self, request: web.Request) -> web.StreamResponse:
        found = self.matching(request.query)
        items = "".join(
            f'<li class="car" id="{car.number}"><b class="make">{escape(car.make)}</b> '
            f'<span class="style">{escape(car.style)}</span>, <span class="fuel">{car.fuel}</span>, '
            f'<span class="year">{car.year}</span>: <span class="price">{car.price:,} €</span></li>'
            for car in found[:FORM_LIMIT]
        )
        more = (
            '<p class="more">There are more results. Narrow your search.</p>'
            if len(found) > FORM_LIMIT
            else ""
        )
        return _page("Results", f'<ul class="cars">{items}</ul>{more}')

    async def _near(self, request: web.Request) -> web.StreamResponse:
        query = request.query
        try:
            here = float(query["lat"]), float(query["lon"])
            radius = float(query["radius"])
        except (KeyError, ValueError):
            return web.json_response({"error": "lat, lon and radius are numbers"}, status=400)
        distances = ((_distance_km(here, (store.latitude, store.longitude)), store) for store in self.stores)
        found = sorted(((km, store) for km, store in distances if km <= radius), key=lambda pair: pair[0])
        shown = [{**msgspec.to_builtins(store), "km": round(km, 3)} for km, store in found[:NEAR_LIMIT]]
        return web.json_response({"stores": shown})


def _car(number: int, random: Random) -> Car:
    make = random.choices(MAKES, [1 / (place + 2) for place in range(len(MAKES))])[0]
    styles = [
        style for style in STYLES if style != "truck" or make in ("Chevrolet", "Ford", "Nissan", "Toyota")
    ]
    year = 2026 - int(random.expovariate(1 / 6)) % 30
    price = max(500, int(random.lognormvariate(10, 0.5) * 0.93 ** (2026 - year)) // 100 * 100)
    return Car(number, make, random.choice(styles), random.choices(FUELS, (4, 1, 6))[0], year, price)


def _store(number: int, random: Random) -> Store:
    """Most stores are in a few cities."""
    if random.random() < 0.7:
        latitude, longitude = random.choice(
            ((34.05, -118.25), (37.77, -122.42), (38.58, -121.49), (36.17, -115.14))
        )
        place = latitude + random.gauss(0, 0.2), longitude + random.gauss(0, 0.2)
    else:
        place = random.uniform(SOUTH, NORTH), random.uniform(WEST, EAST)
    latitude = min(max(place[0], SOUTH), NORTH)
    longitude = min(max(place[1], WEST), EAST)
    return Store(number, f"Store {number + 1}", round(latitude, 4), round(longitude, 4))


def _distance_km(one: tuple[float, float], other: tuple[float, float]) -> float:
    (a, b), (c, d) = ((radians(each[0]), radians(each[1])) for each in (one, other))
    chord = sin((c - a) / 2) ** 2 + cos(a) * cos(c) * sin((d - b) / 2) ** 2
    return 2 * _EARTH_KM * asin(min(1.0, sqrt(chord)))


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise web.HTTPBadRequest(text=f"{text!r} is no number") from None


def _page(title: str, body: str) -> web.StreamResponse:
    text: Any = (
        f"<!doctype html><html lang=en><title>{title}</title><main><h1>{title}</h1>{body}</main></html>"
    )
    return web.Response(text=text, content_type="text/html", charset="utf-8")
