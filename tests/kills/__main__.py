"""`python -m tests.kills --count 200`: kills at every moment, then at random; prints what was hit."""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
import tempfile
import time
from contextlib import ExitStack
from functools import cache
from pathlib import Path

from tests.kills.commands import SABOTAGE, Commands, Forked, Fresh
from tests.kills.harness import Harness, Kind, harness
from tests.kills.moments import all_moments
from tests.kills.server import kill_server_while_plans_run
from tests.servers.postgres import Postgres, postgres_server

_WHILE_STREAMING = ("transaction begun", "writes applied", "transaction committed", "smtp-taken")


def main() -> int:
    options = _options()
    begun = time.monotonic()
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="aioflow-kills-"))
        commands: Commands = stack.enter_context(Forked()) if options.forked else Fresh()
        server = cache(lambda: stack.enter_context(postgres_server(durable=True)))
        variables = {SABOTAGE: "1"} if options.sabotage else {}
        work = stack.enter_context(harness(folder, commands, server, options.seed, **variables))
        work.tell = lambda line: print(f"{time.monotonic() - begun:7.1f} s  {line}", flush=True)
        _kill(work, options)
        if options.server_kills:
            _kill_server(work, server(), options)
    _print(work, time.monotonic() - begun)
    if work.report.problems:
        print(f"\nall that was there is kept in {folder}")
        return 1
    shutil.rmtree(folder)
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.kills", description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="kills at random times, on each database")
    parser.add_argument("--server-kills", type=int, default=0, help="also kill PostgreSQL itself so often")
    parser.add_argument("--database", choices=("sqlite", "postgresql", "both"), default="both")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--forked", action="store_true", help="fork processes off: quicker, less real")
    parser.add_argument("--no-moments", action="store_true", help="random kills only")
    parser.add_argument(
        "--sabotage", action="store_true", help="move the outbox out of the transaction: must turn red"
    )
    return parser.parse_args()


def _kill(work: Harness, options: argparse.Namespace) -> None:
    kinds: list[Kind] = ["sqlite", "postgresql"] if options.database == "both" else [options.database]
    print(f"seed {options.seed}", flush=True)
    for kind in kinds:
        if not options.no_moments:
            work.kill_at_all_moments(kind, passings=(1, 2, 3), chained=False)
            work.kill_deliveries(kind)
            work.kill_while_streaming(kind, _WHILE_STREAMING, passings=(1, 2, 3))
        if options.count:
            work.kill_at_random(kind, options.count)
    if not options.no_moments:
        work.check_all_were_hit()


def _kill_server(work: Harness, server: Postgres, options: argparse.Namespace) -> None:
    url = server.create_database()
    killing = kill_server_while_plans_run(server, url, options.server_kills, options.seed)
    report = asyncio.run(killing)
    work.report.problems += report.problems
    for what, times in sorted(report.kills.items()):
        print(f"{times:5} x PostgreSQL: {what}")


def _print(work: Harness, seconds: float) -> None:
    report = work.report
    print("\nkills by moment:")
    for name, meaning in all_moments().items():
        print(f"{report.hits[name]:5}  {name:24} {meaning}")
    print(f"{report.random_kills:5}  at random times")
    print(
        f"\n{report.kills} kills in {seconds:.0f} s ({report.missed} commands ended before theirs), "
        f"{report.told} changes told, {report.copies} copies in the permitted window, "
        f"{len(report.problems)} problems"
    )
    for problem in report.problems[:20]:
        print(f"  {problem}")


if __name__ == "__main__":
    sys.exit(main())
