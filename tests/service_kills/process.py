"""`aioflow`, which stops itself as by SIGSTOP at a moment that a variable names: `run claimed:2`."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable

from aioflow.cli import main
from aioflow.state.crash_points import watch
from tests.service_kills.world import STOP_AT


def stopper(setting: str) -> Callable[[str], None]:
    wanted, _, number = setting.partition(":")
    passed: Counter[str] = Counter()

    def watcher(name: str) -> None:
        passed[name] += 1
        if name == wanted and passed[name] == int(number or 1):
            os.kill(os.getpid(), signal.SIGSTOP)

    return watcher


if __name__ == "__main__":
    with watch(stopper(os.environ[STOP_AT])):
        main()
