"""Circles around regions of a map: what a store locator is asked in the place of a rectangle."""

from __future__ import annotations

from math import asin, cos, radians, sin, sqrt
from typing import Any

from aioflow.hidden.forms.definition import Unit

_EARTH_KM = 6371.0088
_UNITS: dict[Unit, float] = {"km": 1.0, "miles": 1.609344, "m": 0.001}
# Servers compute with a globe of another size, or none.
_MARGIN = 1.01


def circle_around(
    latitudes: tuple[Any, Any], longitudes: tuple[Any, Any], unit: Unit
) -> tuple[float, float, float]:
    """Return the middle of a region in degrees, and a radius that reaches its corners."""
    south, north = map(float, latitudes)
    west, east = map(float, longitudes)
    middle = (south + north) / 2, (west + east) / 2
    corners = ((south, west), (south, east), (north, west), (north, east))
    radius = max(_distance(middle, corner) for corner in corners) * _MARGIN
    return round(middle[0], 7), round(middle[1], 7), max(round(radius / _UNITS[unit], 6), 1e-6)


def _distance(one: tuple[float, float], other: tuple[float, float]) -> float:
    """Return the distance of two places in kilometres, by the haversine formula."""
    (a, b), (c, d) = ((radians(each[0]), radians(each[1])) for each in (one, other))
    chord = sin((c - a) / 2) ** 2 + cos(a) * cos(c) * sin((d - b) / 2) ** 2
    return 2 * _EARTH_KM * asin(min(1.0, sqrt(chord)))
