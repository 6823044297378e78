"""Runs the site as a process of its own, for as long as a block lasts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from urllib.request import Request, urlopen

from aioflow.demo.site.requests import LoggedRequest

_PATIENCE_SECONDS = 10


@dataclass(frozen=True)
class Site:
    """Where a site listens; `farm_url` is the fast server of the link farm alone."""

    url: str
    farm_url: str
    process_id: int

    @property
    def host(self) -> str:
        """Such as 127.0.0.1:8640."""
        return self.url.removeprefix("http://")

    def configuration(self, concurrency: int = 15) -> dict[str, Any]:
        """Settings of an engine that may ask this site as often as it likes."""
        hosts = (self.host, self.farm_url.removeprefix("http://"))
        return {
            "http": {"allow": list(hosts), "health": False},
            "host": {host: {"concurrency": concurrency, "robots": False} for host in hosts},
        }

    def log(self) -> list[LoggedRequest]:
        """Return the requests so far, in order of arrival."""
        with urlopen(f"{self.url}/_log", timeout=_PATIENCE_SECONDS) as answer:
            return [LoggedRequest(**entry) for entry in json.load(answer)["requests"]]

    def add_house(self) -> str:
        """Put one more house on the market, in Irvine for less than $550,000; returns its URL."""
        with urlopen(Request(f"{self.url}/_houses", method="POST"), timeout=_PATIENCE_SECONDS) as answer:
            return f"{self.url}{json.load(answer)['path']}"

    def change_robots(self, text: str) -> None:
        """Have another robots.txt from now on; an empty text restores the first."""
        request = Request(f"{self.url}/_robots", text.encode(), method="PUT")
        with urlopen(request, timeout=_PATIENCE_SECONDS):
            pass

    def clear_log(self) -> None:
        with urlopen(Request(f"{self.url}/_log", method="DELETE"), timeout=_PATIENCE_SECONDS):
            pass


@contextmanager
def running_site(
    *,
    latency: float | str = 0.0,
    error_rate: float = 0.0,
    results: int = 72,
    per_page: int = 6,
    seed: int = 1,
    port: int = 0,
) -> Iterator[Site]:
    """A site that listens when the block begins; it ends with the block, or with this process."""
    switches = {
        "--port": port,
        "--latency": latency,
        "--error-rate": error_rate,
        "--results": results,
        "--per-page": per_page,
        "--seed": seed,
    }
    arguments = [f"{name}={value}" for name, value in switches.items()]
    process = subprocess.Popen(
        [sys.executable, "-m", "aioflow.demo.site", "--until-input-ends", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=_environment(),
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield Site(*_addresses(process.stdout), process.pid)
    finally:
        process.stdin.close()
        try:
            process.wait(_PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


def _environment() -> Mapping[str, str]:
    """The environment of this process; the other finds the same package in it."""
    package = str(Path(__file__).parents[2])
    paths = [package, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def _addresses(output: IO[str]) -> tuple[str, str]:
    """The addresses that the process prints once it listens."""
    found = dict(line.split() for line in (output.readline(), output.readline()) if line.strip())
    if set(found) != {"site", "farm"}:
        raise RuntimeError("the demonstration's site did not start; its messages are above")
    return found["site"], found["farm"]
