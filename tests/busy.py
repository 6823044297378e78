"""`python -m tests.busy`: all tests, three times in a row, beside six processes that keep the machine busy.

No test may need the machine to be quick. A run takes about four times as long as on a quiet machine of two
cores.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

# Ends with its input, so with the process that started it, however that ends.
_BUSY = """
import sys, threading
def watch():
    sys.stdin.read()
    import os
    os._exit(0)
threading.Thread(target=watch, daemon=True).start()
while True:
    pass
"""


@contextmanager
def busy_processes(number: int) -> Iterator[None]:
    """Keep a number of processes computing during a block."""
    started = [subprocess.Popen([sys.executable, "-c", _BUSY], stdin=subprocess.PIPE) for _ in range(number)]
    try:
        yield
    finally:
        for process in started:
            process.kill()
            process.communicate()


def main() -> int:
    """Run the tests again and again; return how many runs failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.busy", description=__doc__)
    parser.add_argument("--times", type=int, default=3, help="runs of all tests, one after the other")
    parser.add_argument("--processes", type=int, default=6, help="processes that keep the machine busy")
    parser.add_argument("arguments", nargs="*", help="arguments for pytest, after --")
    options = parser.parse_args()
    # Tests interrupt programs. A program that is started with SIGINT ignored, as in the background of a
    # script, would not notice.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    command = [sys.executable, "-m", "pytest", "-q", "-rs", "--numprocesses", "auto", "--dist", "loadgroup"]
    failures = 0
    with busy_processes(options.processes):
        for number in range(1, options.times + 1):
            begun = time.monotonic()
            ended = subprocess.run([*command, *options.arguments])
            failures += ended.returncode != 0
            minutes = (time.monotonic() - begun) / 60
            outcome = "passed" if ended.returncode == 0 else f"failed with exit code {ended.returncode}"
            print(f"run {number} of {options.times} {outcome} after {minutes:.1f} min", flush=True)
    return failures


if __name__ == "__main__":
    sys.exit(main())
