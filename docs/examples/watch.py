"""Streams a recursive plan, watches its statements by events, and stops it when enough has come.

Prints:
    The Dataflow Book
    Streams at Work
    A Small Garden
    fetched 2 of 4 pages
"""

import asyncio

from aioflow import Engine, function, loads
from aioflow.runtime.events import Event, FiringEnded

PAGES = {
    "/books": (["The Dataflow Book", "Streams at Work"], "/books?page=2"),
    "/books?page=2": (["A Small Garden", "Rivers"], "/books?page=3"),
    "/books?page=3": (["Bridges"], "/books?page=4"),
    "/books?page=4": (["Harbours"], None),
}


@function(returns="title char, next char", pure=True)
async def fetch_books(page):
    """The books of a page; every request takes a while."""
    await asyncio.sleep(0.05)
    titles, following = PAGES[page["url"]]
    return [{"title": title, "next": following} for title in titles]


PLAN = """
USE "examples/follow_next.plan"

PLAN books
{
  INPUT: start (url char)
  OUTPUT: titles
  BODY
  {
    follow_next (start : found) {FETCH: "fetch_books"}
    project (found, "title" : titles)
  }
}
"""


async def main() -> None:
    fetched = 0

    def count(event: Event) -> None:
        nonlocal fetched
        fetched += isinstance(event, FiringEnded) and event.error is None

    async with Engine(workers=4) as engine:
        engine.subscribe(count)
        number = 0
        async for book in engine.stream(loads(PLAN), start=[{"url": "/books"}]):
            print(book["title"])
            number += 1
            if number == 3:
                break  # stops everything behind it
    print(f"fetched {fetched} of {len(PAGES)} pages")


if __name__ == "__main__":
    asyncio.run(main())
