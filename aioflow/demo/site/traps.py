"""A section of traps for crawlers, among which thirty articles are to be found: `/traps/`.

Nothing here leads to the rest of the site, and nothing of the rest leads here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import suppress
from hashlib import md5
from html import escape
from itertools import count
from random import Random
from typing import Final
from urllib.parse import parse_qsl, urlencode

from aiohttp import web

HOME: Final = "/traps/"
ARTICLES: Final = 30
_PER_LIST = 10
_CIRCLE = 3
_HUGE_BYTES = 12_000_000
_CHUNK = b"<p>" + b"There is more of this page. " * 2_000 + b"</p>\n"
_MENUS = {
    "colour": ("black", "blue", "green", "red"),
    "size": ("large", "medium", "small"),
    "brand": ("ash", "birch", "cedar", "elm"),
    "order": ("name", "price"),
}
_WORDS = (
    *("harbour", "lantern", "meadow", "copper", "winter", "orchard", "signal"),
    *("bridge", "quarry", "pepper", "ribbon", "thunder", "velvet", "saddle"),
    *("marble", "canyon", "ferry", "garden", "hammer", "island", "jacket"),
    *("kettle", "ladder", "mirror", "needle", "oyster", "paddle", "quiver", "rocket"),
    *("shadow", "timber", "umbrella", "valley", "window", "yellow", "anchor"),
    *("basket", "candle", "desert", "engine", "feather", "glacier", "hollow"),
)

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_Links = Iterable[tuple[str, str]]


def article_path(number: int) -> str:
    """Return the path of an article, from 1 to ARTICLES."""
    words = Random(f"title {number}").sample(_WORDS, 2)
    return f"{HOME}articles/{number}-{'-'.join(words)}"


class Traps:
    """The pages below `/traps/`. Session ids are the only thing that differs from request to request."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._sessions = count(1)

    def routes(self) -> Iterator[tuple[str, _Handler]]:
        yield HOME, self._home
        yield rf"{HOME}articles/{{number:\d+}}-{{slug:[a-z-]+}}", self._article
        yield f"{HOME}articles/", self._list
        yield rf"{HOME}calendar/{{year:\d{{4}}}}/{{month:\d\d}}/", self._calendar
        yield rf"{HOME}session/{{page:\d(?:;[^/]*)?}}", self._session
        yield rf"{HOME}{{id:\(S\(\w+\)\)}}/session/{{page:\d}}", self._session
        yield rf"{HOME}circle/{{number:\d+}}", self._circle
        yield rf"{HOME}hops/{{number:\d+}}", self._hops
        yield rf"{HOME}moved/{{number:\d+}}", self._moved
        yield f"{HOME}lost/{{rest:.*}}", self._lost
        yield f"{HOME}story{{rest:/?|/index.html}}", self._story
        yield f"{HOME}{{path:(?:a/b/)+}}", self._loop
        yield f"{HOME}shop", self._shop
        yield f"{HOME}endless", self._endless
        yield f"{HOME}huge", self._huge

    # --- what is to be found --------------------------------------------------------------------

    async def _home(self, request: web.Request) -> web.StreamResponse:
        story = f"{HOME}story"
        return _page(
            "Traps",
            "Thirty articles, and much that a crawler had better leave alone.",
            [
                (f"{HOME}articles/", "Articles"),
                (f"{HOME}moved/1", "An article that has moved"),
                (f"{HOME}calendar/2026/05/", "Calendar"),
                *self._session_links(),
                (f"{HOME}circle/1", "A circle of redirects"),
                (f"{HOME}hops/1", "Redirects without end"),
                (f"{HOME}lost/offers", "Offers"),
                (f"{HOME}lost/people/staff", "Staff"),
                (f"{story}?part=1&view=full", "Story"),
                (f"{story}?view=full&part=1", "Story, parameters in another order"),
                (f"{story}?part=1&view=full&utm_source=home", "Story, from here"),
                (f"{story}?part=1&view=full&gclid=1234", "Story, from an advertisement"),
                (f"{story}?part=1&view=full#end", "Story, its end"),
                (story, "Story, without parameters"),
                (f"{story}#top", "Story, its beginning"),
                (f"{story}/", "Story, with a slash"),
                (f"{story}/index.html", "Story, as a file"),
                (f"{story}?print=1", "Story, to be printed"),
                (f"{HOME}a/b/", "A path that repeats itself"),
                (f"{HOME}shop", "Shop"),
                (f"{HOME}endless", "A page without end"),
                (f"{HOME}huge", "A huge page"),
            ],
        )

    async def _list(self, request: web.Request) -> web.StreamResponse:
        """Articles, ten a page. The last article is in no list: a link to its old address leads to it."""
        asked = request.query.get("page", "1")
        page = int(asked) if asked.isdecimal() else 1
        numbers = range((page - 1) * _PER_LIST + 1, min(page * _PER_LIST + 1, ARTICLES))
        links = [(article_path(number), f"Article {number}") for number in numbers]
        others = range(2, ARTICLES // _PER_LIST + 1)
        links += [(f"{HOME}articles/?page={each}", f"Page {each}") for each in others]
        return _page(f"Articles, page {page}", "All articles are of interest.", links)

    async def _article(self, request: web.Request) -> web.StreamResponse:
        number = int(request.match_info["number"])
        if not 1 <= number <= ARTICLES or request.path != article_path(number):
            return _page("No such article", "There is none.", status=404)
        return _page(f"Article {number}", self._text(number), [(HOME, "Home")])

    def _text(self, number: int) -> str:
        return " ".join(Random(f"{self._seed} text {number}").choices(_WORDS, k=150)) + "."

    async def _moved(self, request: web.Request) -> web.StreamResponse:
        """Three redirects, the last of which leads to an article."""
        number = int(request.match_info["number"])
        raise web.HTTPFound(f"{HOME}moved/{number + 1}" if number < _CIRCLE else article_path(ARTICLES))

    # --- addresses without end ------------------------------------------------------------------

    async def _calendar(self, request: web.Request) -> web.StreamResponse:
        months = int(request.match_info["year"]) * 12 + int(request.match_info["month"]) - 1
        near = {"Previous month": months - 1, "Next month": months + 1}
        links = [(f"{HOME}calendar/{at // 12:04}/{at % 12 + 1:02}/", name) for name, at in near.items()]
        return _page(f"Calendar {months // 12}-{months % 12 + 1:02}", "Nothing happens this month.", links)

    def _session_links(self) -> list[tuple[str, str]]:
        """Links to three pages, each with an id that was never there before."""
        code = md5(f"{self._seed} {next(self._sessions)}".encode(), usedforsecurity=False).hexdigest()
        return [
            (f"{HOME}session/1?PHPSESSID={code}", "First, id as a parameter"),
            (f"{HOME}session/2;jsessionid={code.upper()}", "Second, id of a segment"),
            (f"{HOME}(S({code[:24]}))/session/3", "Third, id as a segment"),
        ]

    async def _session(self, request: web.Request) -> web.StreamResponse:
        return _page("Your session", "This page knows who you are.", self._session_links())

    async def _loop(self, request: web.Request) -> web.StreamResponse:
        return _page("Here again", "The link is relative, and the path grows.", [("a/b/", "Here")])

    async def _shop(self, request: web.Request) -> web.StreamResponse:
        """Filters in the order in which they were chosen, and as often as one likes."""
        chosen = parse_qsl(request.query_string)
        links = [
            (f"{HOME}shop?{urlencode([*chosen, (name, value)])}", f"{name}: {value}")
            for name, values in _MENUS.items()
            for value in values
            if (name, value) not in chosen[-1:]
        ]
        shown = ", ".join(value for _, value in chosen) or "everything"
        return _page(f"Shop: {shown}", "Choose from the menus.", links)

    async def _lost(self, request: web.Request) -> web.StreamResponse:
        """A page that is not there, with a status that says it is, and links to others of its kind."""
        code = md5(request.path.encode(), usedforsecurity=False).hexdigest()
        links = [(f"{HOME}lost/{code[:8]}", "You may like this"), (f"{code[8:16]}/more", "Or this")]
        text = (
            "We are sorry: the page that you asked for could not be found. It may have been moved, or it has "
            f"never existed. You asked for {request.path}. Please check the address, use the search above, "
            "or have a look at the pages that others have liked."
        )
        return _page("Page not found", text, links)

    # --- redirects and duplicates ---------------------------------------------------------------

    async def _circle(self, request: web.Request) -> web.StreamResponse:
        raise web.HTTPFound(f"{HOME}circle/{int(request.match_info['number']) % _CIRCLE + 1}")

    async def _hops(self, request: web.Request) -> web.StreamResponse:
        raise web.HTTPFound(f"{HOME}hops/{int(request.match_info['number']) + 1}")

    async def _story(self, request: web.Request) -> web.StreamResponse:
        text = " ".join(self._text(-number) for number in (1, 2, 3, 4))
        return _page("Story", text, [] if "print" in request.query else [(HOME, "Home")])

    # --- bodies ---------------------------------------------------------------------------------

    async def _endless(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/html; charset=utf-8"})
        await response.prepare(request)
        with suppress(ConnectionError):  # the client hangs up
            while True:
                await response.write(_CHUNK)
        return response

    async def _huge(self, request: web.Request) -> web.StreamResponse:
        return web.Response(body=_CHUNK * (_HUGE_BYTES // len(_CHUNK) + 1), content_type="text/html")


def _page(title: str, text: str, links: _Links = (), status: int = 200) -> web.Response:
    items = "".join(f'<li><a href="{escape(url)}">{escape(name)}</a></li>\n' for url, name in links)
    lines = (
        '<!DOCTYPE html>\n<html lang="en">',
        f'<head><meta charset="utf-8"><title>{escape(title)}</title></head>',
        f"<body><h1>{escape(title)}</h1>\n<p>{escape(text)}</p>",
        f"<ul>\n{items}</ul>\n</body></html>\n",
    )
    return web.Response(text="\n".join(lines), status=status, content_type="text/html", charset="utf-8")
