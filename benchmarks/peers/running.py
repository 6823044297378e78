"""Runs the jobs of peers, each in a separate process and environment, and checks that they find the same."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from aioflow.benchmarks.arrivals import Arrivals
from aioflow.benchmarks.contenders import expect_same
from aioflow.benchmarks.harness.processes import measure_process, run_command
from aioflow.benchmarks.web_jobs import HOMESEEKERS, SEARCH
from aioflow.demo.running import Site

# Not `aioflow.benchmarks.peers`: environments of peers have nothing that aioflow would import.
_PACKAGE = "benchmarks.peers"


@dataclass(frozen=True)
class Peer:
    """A tool, and how it does the jobs: in a module that has a function for each."""

    name: str
    module: str
    python: str = sys.executable
    form: str = ""  # what the functions' names begin with

    def function(self, job: str) -> str:
        return self.form + job


AIOFLOW = Peer("aioflow", f"{_PACKAGE}.by_aioflow")
# The crawl alone: by the blocks of crawlers, in place of a wrapper.
BLOCKS = Peer("aioflow's blocks", f"{_PACKAGE}.by_aioflow", form="composed_")
BY_HAND = Peer("by hand", f"{_PACKAGE}.by_hand")


@dataclass(frozen=True)
class Job:
    """What is to be done: `label` names it in figures, `name` is that of its function."""

    label: str
    name: str
    address: str
    workers: int
    tuples: int


@dataclass(frozen=True)
class Measured(Arrivals):
    """How a peer did a job; `contents` is the same for the same tuples in whatever order."""

    whole_seconds: float
    processor_seconds: float
    process_processor_seconds: float  # with the start of Python and all imports
    peak_megabytes: float
    contents: str


def measure_all(peers: Iterable[Peer], job: Job) -> Mapping[str, Measured]:
    """Do a job once by each, in this order; raises when not all found the same."""
    found = {peer.name: measure(peer, job) for peer in peers}
    expect_same({name: each.contents for name, each in found.items()})
    return found


def measure(peer: Peer, job: Job) -> Measured:
    """Do a job once."""
    used = measure_process(
        _PACKAGE,
        "measure",
        peer.module,
        peer.function(job.name),
        job.address,
        job.workers,
        python=peer.python,
        profiled_as=f"{job.label}, {peer.name}",
    )
    found = used.found
    if found["count"] != job.tuples:
        raise AssertionError(f"{peer.name} found {found['count']} of {job.tuples} tuples ({job.label})")
    return Measured(
        tuple(found["arrivals"]),
        found["whole"],
        found["processor"],
        used.processor_seconds,
        used.peak_megabytes,
        found["contents"],
    )


def seconds_to_first_line(command: Sequence[str], name: str, tuples: int) -> float:
    """From the start of a process to its first tuple; it must print all of them."""
    ran = run_command(command)
    if ran.lines != tuples or ran.first_line_seconds is None:
        raise AssertionError(f"{name} printed {ran.lines} of {tuples} tuples")
    return ran.first_line_seconds


def program(peer: Peer, job: Job) -> Sequence[str]:
    """A command that prints the tuples of a job as they come."""
    arguments = (peer.module, peer.function(job.name), job.address, str(job.workers))
    return (peer.python, "-m", _PACKAGE, "print", *arguments)


def aioflow_run(site: Site, workers: int, folder: Path) -> Sequence[str]:
    """`aioflow run` of Homeseekers; a copy of its plans has a configuration that allows this site."""
    plans = Path(shutil.copytree(HOMESEEKERS.parent, folder / "homeseekers"))
    host = f'[host."{site.host}"]\nconcurrency = {workers}\nrobots = false\n'
    (plans / "aioflow.toml").write_text(f'[http]\nallow = ["{site.host}"]\n\n{host}')
    criteria = json.dumps({**SEARCH, "site": site.url})
    command = (sys.executable, "-m", "aioflow", "run", str(plans / HOMESEEKERS.name))
    return (*command, "--workers", str(workers), "--input", criteria, "--format", "jsonl")
