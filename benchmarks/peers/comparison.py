"""The same jobs by aioflow, by hand, by Scrapy and by Crawlee: same work, same site, same rounds."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from aioflow.benchmarks.harness import Bench, Goal, at_least, at_most, experiment
from aioflow.benchmarks.harness.environments import Environment, EnvironmentMissingError, environment_with
from aioflow.benchmarks.harness.results import Unit
from aioflow.benchmarks.harness.statistics import paired_ratio
from aioflow.benchmarks.peers.running import (
    AIOFLOW,
    BY_HAND,
    Job,
    Measured,
    Peer,
    aioflow_run,
    measure,
    measure_all,
    program,
    seconds_to_first_line,
)
from aioflow.benchmarks.web_runs import (
    LARGE_PER_PAGE,
    LATENCY_SECONDS,
    PAGES,
    PER_PAGE,
    QUICK_LATENCY_SECONDS,
    UNLIKE_DEFAULTS,
    WORKERS,
)
from aioflow.demo.running import Site, running_site
from aioflow.demo.site.farm import LINKS
from aioflow.demo.site.farm import PAGES as FARM_PAGES

CRAWL_WORKERS = 64
SCRAPY, SCRAPY_IDIOMATIC = "Scrapy tuned", "Scrapy idiomatic"
CRAWLEE, CRAWLEE_IDIOMATIC = "Crawlee tuned", "Crawlee idiomatic"
# Slow, so measured once: a crawl by the first alone takes longer than one by all others together.
SELDOM = frozenset({SCRAPY_IDIOMATIC, CRAWLEE_IDIOMATIC})


@dataclass(frozen=True)
class Tool:
    """A tool in an environment of its own: what is installed, and the names of its two forms."""

    name: str
    module: str
    requirements: tuple[str, ...]
    told: tuple[str, ...]  # the packages whose versions matter
    tuned: str
    idiomatic: str


TOOLS = (
    Tool(
        "Scrapy",
        "benchmarks.peers._by_scrapy",
        ("scrapy==2.19.0", "twisted==26.10.0", "parsel==1.12.1", "lxml==6.1.3"),
        ("Scrapy", "Twisted", "parsel", "lxml"),
        SCRAPY,
        SCRAPY_IDIOMATIC,
    ),
    Tool(
        "Crawlee",
        "benchmarks.peers._by_crawlee",
        ("crawlee[parsel]==1.11.0", "impit==0.15.1", "parsel==1.12.1", "lxml==6.1.3"),
        ("crawlee", "impit", "pydantic", "parsel", "lxml"),
        CRAWLEE,
        CRAWLEE_IDIOMATIC,
    ),
)


@dataclass
class Peers:
    """Those that can run here, and why others cannot."""

    present: list[Peer] = field(default_factory=lambda: [AIOFLOW, BY_HAND])
    missing: dict[str, str] = field(default_factory=dict)

    def without(self, names: Collection[str], reason: str) -> Peers:
        """The same, but these are not to run."""
        left_out = {peer.name: reason for peer in self.present if peer.name in names}
        present = [peer for peer in self.present if peer.name not in names]
        return Peers(present, {**self.missing, **left_out})

    @property
    def others(self) -> list[str]:
        """All but aioflow and code by hand, whether they can run or not."""
        return [*(peer.name for peer in self.present if peer not in (AIOFLOW, BY_HAND)), *self.missing]


def find_peers(bench: Bench) -> Peers:
    """Make the environments that are not there yet, unless the run is quick."""
    peers = Peers()
    for tool in TOOLS:
        bench.tell(f"the environment of {tool.name}")
        try:
            environment = environment_with(tool.name.lower(), *tool.requirements, may_install=not bench.quick)
        except EnvironmentMissingError as error:
            peers.missing |= dict.fromkeys((tool.tuned, tool.idiomatic), f"{tool.name} {error}")
            bench.note(f"{tool.name} was not measured: it {error}.")
            continue
        bench.note(f"{_versions(tool, environment)}, in an environment of its own.")
        peers.present += [
            Peer(tool.tuned, tool.module, environment.python),
            Peer(tool.idiomatic, tool.module, environment.python, "idiomatic_"),
        ]
    return peers


def _versions(tool: Tool, environment: Environment) -> str:
    """Such as `Scrapy 2.19.0 with Twisted 26.10.0, lxml 6.1.3`."""
    known = {name.lower(): version for name, version in environment.versions.items()}
    first, *others = [f"{name} {known.get(name.lower(), 'of an unknown version')}" for name in tool.told]
    return f"{first[0].upper()}{first[1:]} with {', '.join(others)}"


# --- measuring ----------------------------------------------------------------------------------


def compare(
    bench: Bench, job: Job, peers: Sequence[Peer], rounds: int, seldom: Collection[str] = SELDOM
) -> Mapping[str, Measured]:
    """Sample every peer in every round, those of `seldom` in the first; returns the last run of each."""
    last: dict[str, Measured] = {}
    for each in bench.rounds(rounds, warm_up=0):
        taking_part = [peer for peer in peers if each.number == 0 or peer.name not in seldom]
        found = measure_all(each.shuffled(taking_part), job)
        for peer in taking_part:
            _sample(bench, job, peer.name, found[peer.name])
        last |= found
    return {peer.name: last[peer.name] for peer in peers}


def _sample(bench: Bench, job: Job, name: str, found: Measured) -> None:
    figures: dict[str, tuple[Unit, float]] = {}
    if job.name == "crawl":
        # To the end of it all: aioflow hands on a page when it is found, the others when it was read.
        figures["speed"] = "pages/s", job.tuples / found.whole_seconds
    else:
        figures["last tuple"] = "s", found.last
        figures["first tuple"] = "s", found.first
    figures["processor time with start-up"] = "s", found.process_processor_seconds
    figures["processor time"] = "s", found.processor_seconds
    figures["peak memory"] = "MB", found.peak_megabytes
    for figure, (unit, value) in figures.items():
        bench.sample(f"{name}, {job.label}: {figure}", unit, value)


def compare_shells(bench: Bench, job: Job, site: Site, peers: Sequence[Peer], rounds: int) -> None:
    """Sample how long each command takes from its start to the first tuple that it prints."""
    with TemporaryDirectory() as folder:
        commands = {peer.name: program(peer, job) for peer in peers}
        commands[AIOFLOW.name] = aioflow_run(site, job.workers, Path(folder))
        for each in bench.rounds(rounds, warm_up=0):
            for name in each.shuffled(commands):
                seconds = seconds_to_first_line(commands[name], name, job.tuples)
                bench.sample(f"{name}, shell to first tuple", "s", seconds)


# --- claiming -----------------------------------------------------------------------------------


def claim_beside(bench: Bench, peers: Peers, figure: str, of: str, to: str, goal: Goal | None = None) -> None:
    """The ratio of two peers. With a goal it is claimed even when one of them could not run."""
    what = f"{figure}, {of} / {to}"
    reason = peers.missing.get(of) or peers.missing.get(to)
    if reason:
        if goal is not None:
            bench.claim(what, None, "x", goal, f"not measured: {reason}")
        return
    ones, others = bench.values(f"{of}, {figure}"), bench.values(f"{to}, {figure}")
    if len(ones) == len(others):
        bench.claim_ratio(what, f"{of}, {figure}", f"{to}, {figure}", goal)
        return
    rounds = min(len(ones), len(others))
    ratio = paired_ratio(ones[:rounds], others[:rounds]).value
    bench.claim(what, ratio, "x", goal, f"rounds that had both: {rounds}")


def claim_beside_hand(bench: Bench, peers: Peers, figure: str, goal: Goal | None = None) -> None:
    """What aioflow takes of what code by hand takes, and what the others take."""
    for name in [AIOFLOW.name, *peers.others]:
        claim_beside(bench, peers, figure, name, BY_HAND.name, goal if name == AIOFLOW.name else None)


def claim_speeds(bench: Bench, peers: Peers, figure: str) -> None:
    goals = {SCRAPY: at_least(5), CRAWLEE_IDIOMATIC: at_least(8)}
    for name in [BY_HAND.name, *peers.others]:
        claim_beside(bench, peers, figure, AIOFLOW.name, name, goals.get(name))


def claim_memory(bench: Bench, peers: Peers, figure: str) -> None:
    for peer in peers.present:
        bench.claim_median(f"{figure}, {peer.name}", f"{peer.name}, {figure}")


# --- the experiment -----------------------------------------------------------------------------


@experiment(
    "How does aioflow compare with Scrapy, Crawlee and code by hand?",
    work=f"Homeseekers with {PAGES * PER_PAGE} and {PAGES * LARGE_PER_PAGE} houses on {PAGES} pages, "
    f"{WORKERS} connections, 100 ms a request; and a crawl of {FARM_PAGES:,} pages with {LINKS} links each, "
    f"{CRAWL_WORKERS} connections, no latency. Scrapy and Crawlee are tuned as an expert would, and "
    "idiomatic as well; each run and the site have a process of their own, and all must find the same",
    limit="1.3 s and 2.6 s to the last house, 0.2 s to the first; of the crawl, code by hand with aiohttp, "
    "selectolax and cheap resolution of links",
)
def peers(bench: Bench) -> None:
    found = find_peers(bench)
    bench.note(
        "aioflow and the code by hand share an environment: aiohttp, selectolax and Python are the same."
    )
    bench.note(UNLIKE_DEFAULTS)
    bench.note(
        "Goals beside code by hand are judged where only the two are measured, in more rounds: in the "
        "experiments homeseekers, crawl and shell."
    )
    bench.note(
        "The goal of 8× is beside Crawlee with Parsel as its documentation shows it. Its tuned form makes no "
        "requests of links that it has seen, and is about three times as fast; no goal was set for that."
    )
    compare_homeseekers(bench, found)
    if not bench.quick:
        compare_large_homeseekers(bench, found)
    compare_crawls(bench, found)


def compare_homeseekers(bench: Bench, peers: Peers) -> None:
    label, tuples = f"{PAGES} × {PER_PAGE}", PAGES * PER_PAGE
    peers = peers.without(SELDOM, "a quick run") if bench.quick else peers
    latency = bench.size(LATENCY_SECONDS, QUICK_LATENCY_SECONDS)
    with running_site(latency=latency, results=tuples, per_page=PER_PAGE) as site:
        job = Job(label, "houses", site.url, WORKERS, tuples)
        if not bench.quick:
            bench.tell("warming up")
            for peer in peers.present:
                measure(peer, job)
        runs = compare(bench, job, peers.present, rounds=5)
        tuned = [peer for peer in peers.present if peer.name not in SELDOM]
        compare_shells(bench, job, site, tuned, rounds=5)
    _plot(bench, label, runs)
    claim_beside_hand(bench, peers, f"{label}: last tuple")
    claim_beside_hand(bench, peers, f"{label}: processor time with start-up")
    claim_beside_hand(bench, peers, f"{label}: processor time")
    claim_memory(bench, peers, f"{label}: peak memory")
    tuned_alone = peers.without(SELDOM, "only what is tuned is started from a shell")
    claim_beside_hand(bench, tuned_alone, "shell to first tuple")


def compare_large_homeseekers(bench: Bench, peers: Peers) -> None:
    label, tuples = f"{PAGES} × {LARGE_PER_PAGE}", PAGES * LARGE_PER_PAGE
    with running_site(latency=LATENCY_SECONDS, results=tuples, per_page=LARGE_PER_PAGE) as site:
        job = Job(label, "houses", site.url, WORKERS, tuples)
        # The goal is beside code by hand: the others take their time once.
        runs = compare(bench, job, peers.present, rounds=5, seldom=peers.others)
    _plot(bench, label, runs)
    claim_beside_hand(bench, peers, f"{label}: last tuple", at_most(1.05))
    claim_beside_hand(bench, peers, f"{label}: processor time")


def compare_crawls(bench: Bench, peers: Peers) -> None:
    peers = peers.without(peers.others, "a quick run") if bench.quick else peers
    with running_site() as site:
        job = Job("crawl", "crawl", f"{site.farm_url}/farm/0", CRAWL_WORKERS, FARM_PAGES)
        if not bench.quick:
            bench.tell("warming up")
            measure(BY_HAND, job)
        compare(bench, job, peers.present, rounds=5)
    claim_speeds(bench, peers, "crawl: speed")
    claim_beside_hand(bench, peers, "crawl: processor time")


def _plot(bench: Bench, label: str, runs: Mapping[str, Measured]) -> None:
    curves = [run.curve(name) for name, run in runs.items()]
    bench.plot(f"Houses over time, {label}", "seconds", "houses", curves, steps=True)
