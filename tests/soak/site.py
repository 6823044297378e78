"""The site: lists of items in pages, a page for each, and all that goes wrong with such sites."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import Literal, TypeAlias
from urllib.parse import parse_qs, urlsplit

from aioflow.testing.scripted import AnyAnswer
from aioflow.web import Request
from aioflow.web.errors import ConnectionFailedError

HOST = "http://shop.example"
# What may be wrong on a day. All but the first two answer with status 200.
Fault: TypeAlias = Literal["", "down", "page", "details", "cut", "broken", "login", "flaky"]
FAULTS: tuple[Fault, ...] = ("down", "page", "details", "cut", "broken", "login", "flaky")


@dataclass(frozen=True)
class Design:
    """How pages are made: classes of rows and fields, and the paths of items."""

    row: str
    author: str
    path: str


DESIGNS = (
    Design("house", "author", "/item/"),
    Design("house", "written-by", "/item/"),  # a renamed field
    Design("card", "written-by", "/things/"),  # renamed rows, and other keys
)


@dataclass(frozen=True)
class Item:
    title: str
    price: int
    author: str


class Site:
    """What is true, and what is served of it."""

    def __init__(self, items: int, seed: int) -> None:
        self.random = Random(seed)
        self.page_size = max(2, items // 5)
        self.design = DESIGNS[0]
        self.fault: Fault = ""
        self.items: dict[int, Item] = {}
        self._next = 1
        self._flaky: set[str] = set()
        for _ in range(items):
            self.gain()

    # --- what is true ---------------------------------------------------------------------------

    def gain(self) -> None:
        number, self._next = self._next, self._next + 1
        author = self.random.choice(("Ann", "Bob", "Cyd"))
        self.items[number] = Item(f"Item {number}", self.random.randint(1, 99), author)

    def lose(self, count: int) -> None:
        for number in self.random.sample(sorted(self.items), min(count, len(self.items) - 1)):
            del self.items[number]

    def change(self, count: int) -> None:
        for number in self.random.sample(sorted(self.items), min(count, len(self.items))):
            item = self.items[number]
            self.items[number] = replace(item, price=item.price + self.random.randint(1, 9))

    def url(self, number: int) -> str:
        return f"{HOST}{self.design.path}{number}"

    @property
    def truth(self) -> dict[str, Item]:
        """The items by their present addresses."""
        return {self.url(number): item for number, item in self.items.items()}

    # --- what is served -------------------------------------------------------------------------

    def answer(self, request: Request) -> AnyAnswer:
        parts = urlsplit(request.url)
        if self.fault == "down":
            return 503
        if self.fault == "flaky" and self._fails_first(request.url):
            return _broken_off()
        if parts.path == "/list":
            return self._list(int(parse_qs(parts.query)["page"][0]))
        number = int(parts.path.rpartition("/")[2])
        if self.fault == "details" and number % 7 == 0:
            return 503
        return self._page(number) if number in self.items else 404

    def _fails_first(self, url: str) -> bool:
        fails = url not in self._flaky
        self._flaky ^= {url}
        return fails

    def _list(self, page: int) -> AnyAnswer:
        numbers = sorted(self.items)
        last = -(-len(numbers) // self.page_size)
        if self.fault == "page" and page == min(2, last):
            return 503
        if self.fault == "login":
            return "<html><body><form class='login'>Please log in</form></body></html>"
        if self.fault == "cut":
            numbers, last = numbers[: max(1, len(numbers) // 4)], 1
        shown = numbers[(page - 1) * self.page_size : page * self.page_size]
        rows = "".join(
            f"<li class='{self.design.row}'><a class='title' href='{self.design.path}{number}'>x</a></li>"
            for number in shown
        )
        link = f"<a class='next' href='/list?page={page + 1}'>Next</a>" if page < last else ""
        return _broken_off() if self.fault == "broken" else f"<html><body><ul>{rows}</ul>{link}</body></html>"

    def _page(self, number: int) -> str:
        item = self.items[number]
        return (
            f"<html><body><h1>{item.title}</h1><b class='price'>{item.price}</b>"
            f"<i class='{self.design.author}'>{item.author}</i></body></html>"
        )


def _broken_off() -> ConnectionFailedError:
    """What the transport makes of an answer that is cut."""
    return ConnectionFailedError("the connection was closed before the body was complete")
