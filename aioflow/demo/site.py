"""The web site of the demonstration, in this process: every request takes a while, nothing else does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from aioflow import Record, function

PAGES = 12
HOUSES_PER_PAGE = 6
LATENCY_SECONDS = 0.1

FIRST_PAGE = "/houses?page=1"
_STREETS = (
    "Alder",
    "Birch",
    "Cedar",
    "Elm",
    "Juniper",
    "Maple",
    "Oak",
    "Pine",
    "Sage",
    "Spruce",
    "Walnut",
    "Willow",
)


@function(returns="house-url char, next-url char", pure=True)
async def fetch_page(row: Record) -> AsyncIterator[dict[str, Any]]:
    """The links of a result page: to its houses, and to the next page (null on the last)."""
    url = row["page-url"]
    if url is None:
        return
    await asyncio.sleep(LATENCY_SECONDS)
    page = int(url.rpartition("=")[2])
    following = f"/houses?page={page + 1}" if page < PAGES else None
    for number in range(HOUSES_PER_PAGE):
        yield {"house-url": f"/houses/{page}-{number + 1}", "next-url": following}


@function(returns="address char, beds number, price number", pure=True)
async def fetch_house(row: Record) -> dict[str, Any]:
    """The details of a house."""
    await asyncio.sleep(LATENCY_SECONDS)
    page, number = map(int, row["house-url"].rpartition("/")[2].split("-"))
    return {
        "address": f"{page * 100 + number} {_STREETS[page - 1]} Street",
        "beds": 1 + (page + number) % 5,
        "price": 310_000 + 17_500 * ((page * 7 + number * 3) % 20),
    }
