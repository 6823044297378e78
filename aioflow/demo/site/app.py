"""The site as an aiohttp application: which path gives what, after how long."""

from __future__ import annotations

import asyncio
import re
import zlib
from collections.abc import Awaitable, Callable
from functools import lru_cache

from aiohttp import web

from aioflow.demo.site import houses as house_files
from aioflow.demo.site.campaign import (
    YEAR,
    Campaign,
    contributions_csv,
    contributions_page,
    contributions_summary,
    crime_page,
    neighborhood_page,
)
from aioflow.demo.site.farm import PAGES, farm_page
from aioflow.demo.site.house_pages import (
    HITS_PER_PAGE,
    Slice,
    detail_page,
    hits_page,
    home_page,
    house_page,
    results_page,
)
from aioflow.demo.site.houses import STANDARD_SEARCH, Catalogue, House, Search
from aioflow.demo.site.limited import LimitedSources
from aioflow.demo.site.markup import Markup, file_text
from aioflow.demo.site.pictures import front
from aioflow.demo.site.requests import Fates, RequestLog, Switches
from aioflow.demo.site.traps import Traps

_LOG = "/_log"
_HOUSES = "/_houses"
_ROBOTS = "/_robots"
_WARM_HOUSES = 400
_ARRIVED = web.RequestKey("arrived", float)
_LATENCY = web.RequestKey("latency", float)
_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class SiteApp:
    """Answers requests; everything on the site stays as it was made at the start, unless a house is added."""

    def __init__(self, switches: Switches) -> None:
        self.switches = switches
        self.catalogue = Catalogue(switches.seed, switches.results)
        self._robots_text = house_files.ROBOTS
        self._results = switches.results
        self.campaign = Campaign(switches.seed)
        self.log = RequestLog()
        self._fates = Fates(switches)
        self._house_page = lru_cache(maxsize=2048)(self._make_house_page)
        self._result_page = lru_cache(maxsize=2048)(self._make_result_page)

    def application(self) -> web.Application:
        app = web.Application(middlewares=[self._take_time])
        get = app.router.add_get
        get(_LOG, self._show_log)
        app.router.add_delete(_LOG, self._clear_log)
        for path, handler in (
            ("/", self._home),
            ("/search", self._search),
            ("/find", self._find),
            (r"/houses/{slug:.*-}{number:\d+}", self._detail),
            (r"/photos/{number:\d+}.svg", self._photo),
            ("/api/houses", self._api),
            ("/sitemap.xml", self._sitemap),
            ("/feed.xml", self._feed),
            ("/robots.txt", self._robots),
            ("/fec/", self._contributions),
            (f"/fec/{YEAR}/contributions.csv", self._contributions_csv),
            (f"/fec/{YEAR}/summary.txt", self._summary),
            ("/yahoo/neighborhoods", self._neighborhood),
            ("/crime", self._crime),
            (r"/farm/{page:\d+}", self._farm),
            ("/goods/palmtops.html", self._palmtops),
            ("/goods/price_list.txt", self._price_list),
            *LimitedSources(self.switches.seed).routes(),
            *Traps(self.switches.seed).routes(),
            ("/{rest:.*}", self._nothing),
        ):
            get(path, handler)
        app.router.add_post("/find", self._find)
        app.router.add_post(_HOUSES, self._add_house)
        app.router.add_put(_ROBOTS, self._change_robots)
        return app

    # --- time and failure -----------------------------------------------------------------------

    @web.middleware
    async def _take_time(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        """Answer when the latency is over, counted from the request's arrival; or fail."""
        if request.path in (_LOG, _HOUSES, _ROBOTS):
            return await handler(request)
        clock = asyncio.get_running_loop().time
        request[_ARRIVED] = clock()
        entry = self.log.begin(request.path_qs, request[_ARRIVED])
        fate = self._fates.next(request.path_qs)
        request[_LATENCY] = fate.latency_seconds
        status = 500
        try:
            response = _failure() if fate.fails else await handler(request)
            await _sleep_until(request[_ARRIVED] + fate.latency_seconds)
            status = response.status
            return response
        except web.HTTPException as error:
            status = error.status
            raise
        finally:
            self.log.end(entry, clock(), status)

    async def _show_log(self, request: web.Request) -> web.StreamResponse:
        return web.json_response({"requests": list(self.log)})

    async def _clear_log(self, request: web.Request) -> web.StreamResponse:
        self.log.clear()
        return web.Response(status=204)

    # --- houses ---------------------------------------------------------------------------------

    async def _add_house(self, request: web.Request) -> web.StreamResponse:
        """One more house among the results of the standard search."""
        known = set(self.catalogue.paths)
        self._results += 1
        self.catalogue = Catalogue(self.switches.seed, self._results)
        self._house_page.cache_clear()
        self._result_page.cache_clear()
        (added,) = set(self.catalogue.paths) - known
        return web.json_response({"path": added}, status=201)

    def warm_up(self) -> None:
        """Make the pages of the standard search beforehand: a page in the making delays all other answers."""
        found = self.catalogue.find(STANDARD_SEARCH)
        for number, house in enumerate(found[:_WARM_HOUSES]):
            self._house_page(house)
            if number % self.switches.per_page == 0:
                self._result_page(STANDARD_SEARCH, 1 + number // self.switches.per_page)

    def _make_house_page(self, house: House) -> bytes:
        return detail_page(house, self.catalogue).encode()

    def _make_result_page(self, search: Search, page: int) -> bytes:
        found = Slice(self.catalogue.find(search), page, self.switches.per_page)
        return results_page(search, found).encode()

    async def _home(self, request: web.Request) -> web.StreamResponse:
        return _html(request, home_page(self.catalogue).encode())

    async def _search(self, request: web.Request) -> web.StreamResponse:
        query = request.query
        search = Search(
            city=query.get("city") or None,
            state=query.get("state") or None,
            max_price=_whole(query.get("max-price")),
            min_beds=_whole(query.get("min-beds")),
        )
        page = max(1, _whole(query.get("page")) or 1)
        return _html(request, self._result_page(search, page))

    async def _find(self, request: web.Request) -> web.StreamResponse:
        """Houses by words: asked by a form, paged by links."""
        asked = (await request.post()) if request.method == "POST" else request.query
        words = str(asked.get("q", "")).strip()
        page = max(1, _whole(str(asked.get("page", ""))) or 1)
        found = self.catalogue.find(Search(text=words)) if words else []
        return _html(request, hits_page(words, Slice(found, page, HITS_PER_PAGE)).encode())

    async def _detail(self, request: web.Request) -> web.StreamResponse:
        house = self.catalogue.house(int(request.match_info["number"]))
        return _html(request, self._house_page(house)) if house else await self._nothing(request)

    async def _photo(self, request: web.Request) -> web.StreamResponse:
        house = self.catalogue.house(int(request.match_info["number"]))
        if house is None:
            return await self._nothing(request)
        return web.Response(text=front(house), content_type="image/svg+xml")

    async def _api(self, request: web.Request) -> web.StreamResponse:
        offset = max(0, _whole(request.query.get("offset")) or 0)
        limit = min(200, max(1, _whole(request.query.get("limit")) or house_files.API_HOUSES))
        return web.json_response(house_files.api_answer(self.catalogue.houses, offset, limit))

    async def _sitemap(self, request: web.Request) -> web.StreamResponse:
        text = house_files.sitemap(self.catalogue, _own_address(request))
        return web.Response(text=text, content_type="application/xml")

    async def _feed(self, request: web.Request) -> web.StreamResponse:
        text = house_files.feed(self.catalogue, _own_address(request))
        return web.Response(text=text, content_type="application/atom+xml")

    async def _robots(self, request: web.Request) -> web.StreamResponse:
        return web.Response(text=self._robots_text.replace("{site}", _own_address(request)))

    async def _change_robots(self, request: web.Request) -> web.StreamResponse:
        """Another robots.txt from now on; an empty one restores the first."""
        self._robots_text = await request.text() or house_files.ROBOTS
        return web.Response(status=204)

    # --- campaign -------------------------------------------------------------------------------

    async def _contributions(self, request: web.Request) -> web.StreamResponse:
        return _html(request, contributions_page(self.campaign).encode())

    async def _contributions_csv(self, request: web.Request) -> web.StreamResponse:
        """A large file on a slow line: each piece takes as long as a page."""
        response = web.StreamResponse(headers={"Content-Type": "text/csv; charset=utf-8"})
        due = request[_ARRIVED] + request[_LATENCY]
        await _sleep_until(due)
        await response.prepare(request)
        for chunk in contributions_csv(self.campaign):
            await _sleep_until(due)
            await response.write(chunk)
            due += request[_LATENCY]
        await response.write_eof()
        return response

    async def _summary(self, request: web.Request) -> web.StreamResponse:
        return web.Response(text=contributions_summary(self.campaign))

    async def _neighborhood(self, request: web.Request) -> web.StreamResponse:
        return _html(request, neighborhood_page(self.campaign, request.query.get("zip", "")).encode())

    async def _crime(self, request: web.Request) -> web.StreamResponse:
        status, page = crime_page(self.campaign, request.query.get("zip", ""))
        return _html(request, page.encode(), status)

    # --- the rest -------------------------------------------------------------------------------

    async def _farm(self, request: web.Request) -> web.StreamResponse:
        page = int(request.match_info["page"])
        if page >= PAGES:
            return await self._nothing(request)
        return _html(request, farm_page(page, self.switches.seed))

    async def _palmtops(self, request: web.Request) -> web.StreamResponse:
        return web.Response(text=file_text("palmtops.html"), content_type="text/html")

    async def _price_list(self, request: web.Request) -> web.StreamResponse:
        return web.Response(text=file_text("price_list.txt"))

    async def _nothing(self, request: web.Request) -> web.StreamResponse:
        body = Markup('<main class="wrap none"><h1>No such page</h1><p>It may have been sold.</p></main>')
        return _html(request, house_page("No such page · Homeseekers", "", body).encode(), status=404)


def _html(request: web.Request, body: bytes, status: int = 200) -> web.StreamResponse:
    # Pages never change, but who keeps them has to ask.
    tag = f'"{zlib.crc32(body):08x}"'
    headers = {"ETag": tag, "Cache-Control": "no-cache"}
    if request.headers.get("If-None-Match") == tag:
        return web.Response(status=304, headers=headers)
    return web.Response(body=body, status=status, headers=headers, content_type="text/html", charset="utf-8")


def _failure() -> web.StreamResponse:
    body = Markup('<main class="wrap none"><h1>One moment</h1><p>We are very busy. Try again.</p></main>')
    page = house_page("One moment · Homeseekers", "", body)
    return web.Response(text=page, status=503, content_type="text/html")


def _whole(text: str | None) -> int | None:
    """Return the whole number in a text, without the characters around it."""
    found = re.search(r"\d+", (text or "").replace(",", ""))
    return int(found[0]) if found else None


def _own_address(request: web.Request) -> str:
    return f"{request.scheme}://{request.host}"


async def _sleep_until(time: float) -> None:
    left = time - asyncio.get_running_loop().time()
    if left > 0:
        await asyncio.sleep(left)
