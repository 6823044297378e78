"""`python -m tests.service_kills --random 100`: kills services, stops them, and prints the kills."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from contextlib import ExitStack
from functools import cache
from pathlib import Path

from tests.kills.moments import all_moments, service_moments
from tests.kills.receivers import receivers
from tests.servers.postgres import postgres_server
from tests.service_kills.campaign import OF_RUNS, TABLES, Harness
from tests.service_kills.world import Kind

_COPIED = "tables copied"  # passed in an upgrade alone
_STOPS = ("run claimed", "run ended", "run noted", "message claimed", "smtp-data", "writes applied")


def main() -> int:
    options = _options()
    begun = time.monotonic()
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="aioflow-service-kills-"))
        server = cache(lambda: stack.enter_context(postgres_server(durable=True)))
        work = Harness(folder, stack.enter_context(receivers(folder)), server, options.seed)
        work.tell = lambda line: print(f"{time.monotonic() - begun:7.1f} s  {line}", flush=True)
        print(f"seed {options.seed}", flush=True)
        kinds: list[Kind] = ["sqlite", "postgresql"] if options.database == "both" else [options.database]
        for kind in kinds:
            _kill(work, kind, options)
        if options.moments == "all":
            work.check_all_were_hit()
    _print(work, time.monotonic() - begun)
    if work.report.problems:
        print(f"\nall that was there is kept in {folder}")
        return 1
    shutil.rmtree(folder)
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.service_kills", description=__doc__)
    parser.add_argument("--random", type=int, default=100, help="kills at random times, on each database")
    parser.add_argument("--stops", type=int, default=10, help="stops at random times, on each database")
    parser.add_argument("--database", choices=("sqlite", "postgresql", "both"), default="both")
    parser.add_argument("--moments", choices=("all", "service", "none"), default="all")
    parser.add_argument("--passings", type=int, default=2, help="passings of each moment")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    return parser.parse_args()


def _kill(work: Harness, kind: Kind, options: argparse.Namespace) -> None:
    if options.moments != "none":
        moments = list(all_moments())
        with work.campaign(kind) as campaign:
            tables = [name for name in moments if name.startswith(TABLES) and name != _COPIED]
            campaign.kill_while_tables_are_made(tables)
            campaign.begin()
            of_runs = [name for name in moments if name.startswith(OF_RUNS)]
            chosen = [*service_moments(), *(of_runs if options.moments == "all" else ())]
            campaign.kill_at_moments(chosen, range(1, options.passings + 1))
    if options.random:
        half = options.random // 2
        with work.campaign(kind) as campaign:
            campaign.begin()
            campaign.kill_at_random(options.random - half)
        with work.campaign(kind) as campaign:
            campaign.begin()
            campaign.kill_at_random(half, services=2)
    if options.stops:
        with work.campaign(kind) as campaign:
            campaign.begin()
            campaign.stop_at_moments(_STOPS)
            campaign.stop_at_random(options.stops)


def _print(work: Harness, seconds: float) -> None:
    report = work.report
    print("\nkills by moment:")
    for name, times in report.hits.items():
        print(f"{times:5}  {name}")
    print(f"{report.random_kills:5}  at random times")
    print(f"{report.stops.total():5}  stops: {', '.join(f'{n} {t}' for n, t in report.stops.items())}")
    print(f"due times: {', '.join(f'{times} {state}' for state, times in report.times.items())}")
    print(
        f"\n{report.hits.total() + report.random_kills} kills and {report.stops.total()} stops in "
        f"{seconds:.0f} s, {report.told} changes told, {report.copies} copies in the permitted window, "
        f"{len(report.problems)} problems"
    )
    for problem in report.problems[:20]:
        print(f"  {problem}")


if __name__ == "__main__":
    sys.exit(main())
