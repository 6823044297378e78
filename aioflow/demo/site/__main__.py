"""`python -m aioflow.demo.site`: serves until it is interrupted or, if told so, its standard input ends."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

from aiohttp import web

from aioflow.demo.site.app import SiteApp
from aioflow.demo.site.farm import Farm, farm_answers
from aioflow.demo.site.requests import DEFAULT_PORT, Latency, Switches

_HOST = "127.0.0.1"


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    switches = Switches(options.latency, options.error_rate, options.results, options.per_page, options.seed)
    farm_port = options.farm_port if options.farm_port is not None else options.port and options.port + 1
    try:
        asyncio.run(_serve(switches, options.port, farm_port, until_input_ends=options.until_input_ends))
    except OSError as error:
        sys.exit(f"the site cannot listen: {error.strerror}; --port 0 picks a free port")


def _parser() -> argparse.ArgumentParser:
    default = Switches()
    parser = argparse.ArgumentParser(
        prog="python -m aioflow.demo.site", description="The demonstration's site."
    )
    add = parser.add_argument
    add("--port", type=int, default=DEFAULT_PORT, help=f"0 picks a free one (default {DEFAULT_PORT})")
    add("--farm-port", type=int, help="of the fast link farm (default: the port after the site's)")
    add("--latency", type=Latency.parse, default=default.latency, help="seconds, or lognormal:MEDIAN,SIGMA")
    add("--error-rate", type=float, default=default.error_rate, help="share of requests answered with 503")
    add("--results", type=int, default=default.results, help="houses in Irvine up to $550,000 (default 72)")
    add("--per-page", type=int, default=default.per_page, help="houses on a result page (default 6)")
    add("--seed", type=int, default=default.seed, help="of everything on the site (default 1)")
    add(
        "--until-input-ends",
        action="store_true",
        help="end with the standard input, so with the program that started it",
    )
    return parser


async def _serve(switches: Switches, port: int, farm_port: int, *, until_input_ends: bool) -> None:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):  # on Windows
            loop.add_signal_handler(number, stop.set)
    if until_input_ends:
        threading.Thread(target=_wait_for_end_of_input, args=(loop, stop), daemon=True).start()
    # Connections are for those who ask, and nobody asks any more when the site ends.
    site = SiteApp(switches)
    if switches.latency.median_seconds:
        site.warm_up()
    runner = web.AppRunner(site.application(), access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, _HOST, port, backlog=1024).start()
    answers = farm_answers(switches.seed)
    farm = await loop.create_server(partial(Farm, answers), _HOST, farm_port, backlog=1024)
    print(f"site http://{_HOST}:{runner.addresses[0][1]}", flush=True)
    print(f"farm http://{_HOST}:{farm.sockets[0].getsockname()[1]}", flush=True)
    try:
        await stop.wait()
    finally:
        farm.close()
        await runner.cleanup()


def _wait_for_end_of_input(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    # Read past Python's buffer, whose lock this thread would hold when the interpreter ends.
    while os.read(0, 4096):
        pass
    loop.call_soon_threadsafe(stop.set)


if __name__ == "__main__":
    main()
