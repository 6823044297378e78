"""Sites on the virtual clock: small pages, each of which takes as long as a seed says."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from random import Random
from typing import Any
from urllib.parse import parse_qs, urlsplit

from aioflow.benchmarks.arrivals import Arrivals
from aioflow.benchmarks.web_jobs import Job, configuration
from aioflow.testing import Answer, ScriptedSite, run
from aioflow.web.http import Request

SITE = "http://homes.example:8640"
CRIME_SITE = "http://crime.example:8640"
_HOUSE = """<h1 class="address">1 Main Street</h1><p class="asking">$ 500,000</p>
<p class="facts"><span class="beds"><b class="value">3</b></span></p>"""
_CSV = {"Content-Type": "text/csv; charset=utf-8"}


@dataclass(frozen=True)
class Latencies:
    """How long requests take: lognormal around a median, the same for the same seed and URL."""

    seed: int
    median_seconds: float
    sigma: float = 0.0

    def of(self, url: str) -> float:
        return self.median_seconds * Random(f"{self.seed} {url}").lognormvariate(0, self.sigma)


@dataclass(frozen=True)
class SimulatedHomes:
    """Result pages with links to houses and to the next page."""

    latencies: Latencies
    pages: int = 12
    per_page: int = 6

    @property
    def count(self) -> int:
        return self.pages * self.per_page

    def answer(self, request: Request) -> Answer:
        path = urlsplit(request.url).path
        page = re.fullmatch(r"/page/(\d+)", path)
        is_house = path.startswith("/house/")
        body = _HOUSE if is_house else self._results(int(page[1]) if page else 1)
        return Answer(body, seconds=self.latencies.of(path))

    def page_seconds(self) -> list[float]:
        """How long each result page takes, in their order."""
        paths = ["/search", *(f"/page/{number}" for number in range(2, self.pages + 1))]
        return list(map(self.latencies.of, paths))

    def house_seconds(self) -> list[list[float]]:
        """How long the houses of each page take."""
        return [list(map(self.latencies.of, self._houses(page))) for page in range(1, self.pages + 1)]

    def _houses(self, page: int) -> list[str]:
        return [f"/house/{page}-{number}" for number in range(self.per_page)]

    def _results(self, page: int) -> str:
        links = (f'<a class="title" href="{path}">A house</a>' for path in self._houses(page))
        houses = "".join(f'<li class="house">{link}</li>' for link in links)
        following = f'<a class="next" href="/page/{page + 1}">Next</a>' if page < self.pages else ""
        return f"<ul>{houses}</ul>{following}"


@dataclass(frozen=True)
class SimulatedCampaign:
    """Contributors, each of whom lives elsewhere: so each takes a request of both other sources."""

    yahoo: Latencies
    crime: Latencies
    count: int

    def answer(self, request: Request) -> Answer:
        address = urlsplit(request.url)
        if address.path.endswith(".csv"):
            rows = "".join(f"Contributor {n},{10_000 + n},Nader,100\n" for n in range(self.count))
            seconds = self.yahoo.of("contributions")
            return Answer(f"NAME,ZIP,CANDIDATE,AMOUNT\n{rows}", headers=_CSV, seconds=seconds)
        (zip_code,) = parse_qs(address.query)["zip"]
        if address.path == "/crime":
            page = '<p class="profile"><b class="index">5</b></p>'
            return Answer(page, seconds=self.crime.of(f"crime {zip_code}"))
        page = '<p class="profile"><b class="income">$ 50,000</b><b class="population">9,000</b></p>'
        return Answer(page, seconds=self.yahoo.of(f"yahoo {zip_code}"))


def simulate(job: Job, site: SimulatedHomes | SimulatedCampaign, workers: int, *more: Any) -> Arrivals:
    """Do a job of `web_jobs` on the virtual clock; raises when it does not find all that is there."""
    moments: list[float] = []  # by the virtual clock

    async def main() -> None:
        clock = asyncio.get_running_loop().time
        settings = configuration(SITE, CRIME_SITE, concurrency=workers)
        async with ScriptedSite(site.answer).client(settings) as client:
            services = {type(client): client}
            await job(lambda found: moments.append(clock()), SITE, workers, *more, services=services)

    run(main())
    if len(moments) != site.count:
        raise AssertionError(f"{job.__name__} found {len(moments)} of {site.count}")
    return Arrivals(moments)
