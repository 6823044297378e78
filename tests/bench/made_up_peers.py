"""Peers that need no site: each has its own idea of three houses."""

from collections.abc import Callable
from typing import Any

Found = Callable[[Any], None]


def houses(site: str, workers: int, found: Found) -> None:
    for number in (1, 2, 3):
        found({"number": number, "site": site})


async def backward_houses(site: str, workers: int, found: Found) -> None:
    for number in (3.0, 2.0, 1.0):
        found({"site": site, "number": number})


def forgetful_houses(site: str, workers: int, found: Found) -> None:
    for number in (1, 2):
        found({"number": number, "site": site})


def mistaken_houses(site: str, workers: int, found: Found) -> None:
    for number in (1, 2, 4):
        found({"number": number, "site": site})


def crawl(start: str, workers: int, found: Found) -> None:
    for number in range(10):
        found(f"{start}/{number}")
