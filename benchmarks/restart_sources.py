"""Slow sources on the virtual clock, asked by the real client, and an oracle that knows the distribution."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from heapq import heapreplace
from math import isfinite
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from time import time
from typing import Any

from aioflow.restart import (
    Discrete,
    Distribution,
    Exponential,
    HalfNormal,
    LogNormal,
    Mixture,
    Uniform,
    hedge,
    k_restart,
)
from aioflow.restart.learning import Decision, RestartLimits, decide
from aioflow.restart.policies import read_policy
from aioflow.testing import Answer, ScriptedSite, run
from aioflow.web.client import Client
from aioflow.web.http import Request
from aioflow.web.latency_store import read_records

SITE = "http://slow.example/"
RESTARTS = 5
LEARNING = 1000
# In practice nobody waits forever; here everybody does, so that only restarts differ.
_PATIENT = dict.fromkeys(("connect_seconds", "first_byte_seconds", "idle_seconds", "total_seconds"), 86_400)

# Sources whose slow requests are worth sending again.
TAILED: Mapping[str, Distribution] = {
    "5 s or 20 s": Discrete({5: 0.6, 20: 0.4}),
    "bimodal": Mixture([(0.9, Uniform(0.9, 1.1)), (0.1, Uniform(18.0, 22.0))]),
    "5 % are 1 s late": Mixture([(0.95, Uniform(0.08, 0.12)), (0.05, Uniform(1.08, 1.12))]),
    "lognormal": LogNormal(0.1, 1.5),
    "heavy tail": Mixture([(0.9, LogNormal(0.1, 0.3)), (0.1, LogNormal(1.0, 1.2))]),
}
# Sources of which a restart gains nothing.
EVEN: Mapping[str, Distribution] = {
    "exponential": Exponential(1.0),
    "uniform": Uniform(0.0, 2.0),
    "half-normal": HalfNormal(1.0),
    "narrow": Uniform(0.95, 1.05),
}


@dataclass(frozen=True)
class Simulated:
    """The times of requests, in order of time, and the extra requests that they took."""

    seconds: tuple[float, ...]
    extra: int

    @property
    def mean(self) -> float:
        return sum(self.seconds) / len(self.seconds)

    @property
    def extra_share(self) -> float:
        return self.extra / len(self.seconds)

    def percentile(self, percent: float) -> float:
        return self.seconds[min(int(len(self.seconds) * percent / 100.0), len(self.seconds) - 1)]


def settings(rule: str, cap: float, latencies: Path | None = None) -> dict[str, Any]:
    """Return the configuration of a client that sends slow requests again by a rule."""
    http = {
        **_PATIENT,
        "restart": rule,
        "restarts": RESTARTS,
        "restart_extra": cap,
        "latencies": str(latencies) if latencies else False,
        "concurrency": 100_000,
        "retries": 0,
    }
    return {"http": http}


# --- one client after the other ---------------------------------------------------------------


def simulate(
    source: Distribution, rule: str, cap: float, count: int, *, learning: int = LEARNING, seed: int = 1
) -> Simulated:
    """Ask a source one request after the other; those that the client learns from first are left out."""
    random = Random(seed)

    async def main() -> Simulated:
        site = ScriptedSite(lambda request: Answer(seconds=source.sample(random)))
        async with site.client(settings(rule, cap)) as client:
            await _ask(client, learning)
            begun = len(site.requests)
            seconds = await _ask(client, count)
        return Simulated(tuple(sorted(seconds)), len(site.requests) - begun - count)

    return run(main())


async def _ask(client: Client, count: int) -> list[float]:
    clock = asyncio.get_running_loop().time
    seconds = []
    for _ in range(count):
        begun = clock()
        await client.fetch(Request(SITE))
        seconds.append(clock() - begun)
    return seconds


def learned(source: Distribution, cap: float, *, count: int = LEARNING, seed: int = 1) -> Decision:
    """Return what a client has decided after so many requests with `RESTART: auto`."""
    random = Random(seed)

    async def main(file: Path) -> None:
        site = ScriptedSite(lambda request: Answer(seconds=source.sample(random)))
        async with site.client(settings("auto", cap, file)) as client:
            await _ask(client, count)

    with _latency_file() as file:
        run(main(file))
        (record,) = read_records(file)
    return decide(read_policy("auto"), [record.latencies], RestartLimits(RESTARTS, cap), time())


@contextmanager
def _latency_file() -> Iterator[Path]:
    with TemporaryDirectory() as folder:
        yield Path(folder) / "latencies.sqlite"


# --- the oracle -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Oracle:
    """The best rule for a source whose distribution is known, with what is to be expected of it."""

    rule: str
    seconds: float
    extra: float


def expected_seconds(source: Distribution, decision: Decision, cap: float) -> float:
    """Return the true expected time of a decision under a cap, which lets through a share of its restarts."""
    after = decision.steps[0][1]
    if after is None:
        return source.mean
    seconds, extra = _priced(source, after, len(decision.steps) - 1, keeps_first=decision.keeps_first)
    share = (1.0 - decision.left_running) * min(1.0, cap / extra if extra else 1.0)
    return source.mean - share * (source.mean - seconds)


def _priced(source: Distribution, after: float, restarts: int, *, keeps_first: bool) -> tuple[float, float]:
    if keeps_first:
        both = hedge(source, after)
        return both.mean, both.extra
    restart = k_restart(source, after, restarts)
    return restart.mean, restart.queries - 1.0


def oracle(source: Distribution, cap: float) -> Oracle:
    """Return the best of all restarts, and of all hedges that are no more load than waiting.

    Where extra requests are free, a second one at once is always best. So without a cap there are no hedges.
    """
    best = Oracle("off", source.mean, 0.0)
    choices = [("", waited.after) for waited in source.times]
    if cap < 1.0:
        after = {source.quantile(1.0 - cap), *(waited.after for waited in source.times[::16])}
        choices += [("hedge ", each) for each in after if hedge(source, each).busy <= source.mean]
    for rule, each in choices:
        seconds, extra = _priced(source, each, RESTARTS, keeps_first=bool(rule))
        if not extra or not isfinite(seconds):
            continue
        share = min(1.0, cap / extra)
        found = source.mean - share * (source.mean - seconds)
        if found < best.seconds * (1.0 - 1e-9):
            best = Oracle(f"{rule}{each!r}", found, share * extra)
    return best


# --- many clients of one server ---------------------------------------------------------------


class CrowdedServer:
    """A server with so many places: requests that find none wait, also those that were given up."""

    def __init__(self, service: Distribution, places: int, random: Random) -> None:
        self._service = service
        self._free_at = [0.0] * places
        self._random = random
        self.slowness: Callable[[float], float] = lambda now: 1.0

    def answer(self, request: Request) -> Answer:
        now = asyncio.get_running_loop().time()
        begins = max(now, self._free_at[0])
        ends = begins + self._service.sample(self._random) * self.slowness(now)
        heapreplace(self._free_at, ends)
        return Answer(seconds=ends - now)


@dataclass(frozen=True)
class Crowd:
    """The requests of all clients, as (moment, seconds) in order of their moments, and the extra ones."""

    answered: tuple[tuple[float, float], ...]
    extra: int

    def mean(self, begin: float, end: float) -> float:
        """Return the mean time of the requests that were made between two moments."""
        seconds = [each for moment, each in self.answered if begin <= moment < end]
        return sum(seconds) / len(seconds) if seconds else 0.0

    def means(self, step: float) -> Iterator[tuple[float, float]]:
        """Yield the mean times of requests over time."""
        for place in range(int(self.answered[-1][0] / step)):
            begin = place * step
            yield begin + step / 2.0, self.mean(begin, begin + step)


@dataclass(frozen=True)
class CrowdPlan:
    """Clients that ask at random moments, for some time, during which the server is slow for a while."""

    service: Distribution = Mixture([(0.95, Uniform(0.05, 0.15)), (0.05, Uniform(1.0, 1.4))])  # noqa: RUF009
    clients: int = 20
    places: int = 20
    load: float = 0.6
    seconds: float = 300.0
    slow_from: float = 100.0
    slow_until: float = 120.0
    slowness: float = 2.5

    @property
    def parts(self) -> tuple[tuple[str, float, float], ...]:
        """What happens, from when until when; the first seconds are for learning."""
        calm = self.slow_until + (self.seconds - self.slow_until) / 2.0
        return (
            ("before the crisis", self.slow_from / 2.0, self.slow_from),
            ("in the crisis", self.slow_from, self.slow_until),
            ("after the crisis", calm, self.seconds),
        )


class _UnguardedClient:
    """A client as people write it: a timeout, and up to so many further tries."""

    def __init__(self, site: ScriptedSite, after: float) -> None:
        self._site = site
        self._after = after

    async def fetch(self, request: Request) -> None:
        for _ in range(RESTARTS):
            try:
                async with asyncio.timeout(self._after):
                    await self._site.fetch(request)
                    return
            except TimeoutError:
                pass
        await self._site.fetch(request)

    async def close(self) -> None:
        """Nothing is open."""


def crowd(plan: CrowdPlan, rule: str, cap: float, seed: int = 1, *, unguarded: bool = False) -> Crowd:
    """Let all clients send slow requests again by the same rule; unguarded ones are not aioflow's."""
    random = Random(seed)
    each_seconds = plan.clients * plan.service.mean / (plan.load * plan.places)
    answered: list[tuple[float, float]] = []

    async def ask(client: Client | _UnguardedClient, number: int) -> None:
        clock = asyncio.get_running_loop().time
        begun = clock()
        await client.fetch(Request(f"{SITE}{number}"))
        answered.append((begun, clock() - begun))

    async def arrivals(client: Client | _UnguardedClient, dice: Random) -> None:
        clock = asyncio.get_running_loop().time
        async with asyncio.TaskGroup() as group:
            number = 0
            while clock() < plan.seconds:
                await asyncio.sleep(dice.expovariate(1.0 / each_seconds))
                group.create_task(ask(client, number))
                number += 1

    async def main() -> Crowd:
        server = CrowdedServer(plan.service, plan.places, random)
        server.slowness = lambda now: plan.slowness if plan.slow_from <= now < plan.slow_until else 1.0
        site = ScriptedSite(server.answer)
        clients: list[Client | _UnguardedClient] = [
            _UnguardedClient(site, float(rule)) if unguarded else site.client(settings(rule, cap))
            for _ in range(plan.clients)
        ]
        try:
            async with asyncio.TaskGroup() as group:
                for number, client in enumerate(clients):
                    group.create_task(arrivals(client, Random(f"{seed} {number}")))
        finally:
            for client in clients:
                await client.close()
        return Crowd(tuple(sorted(answered)), len(site.requests) - len(answered))

    return run(main())
