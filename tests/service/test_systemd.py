"""The messages of `aioflow serve` to systemd: it is ready, alive, and stopping."""

from __future__ import annotations

import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.program import AIOFLOW, environment, own_folders
from tests.clocks import PATIENCE_SECONDS

_MESSAGES_AT_MOST = 1000


@pytest.mark.parametrize("is_abstract", [False, True])
def test_systemd_hears_that_a_service_is_ready_alive_and_stopping(tmp_path: Path, is_abstract: bool) -> None:
    address = f"@{tmp_path}" if is_abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(address.replace("@", "\0"))
        manager.settimeout(PATIENCE_SECONDS)
        heard = Heard(manager)
        with served(tmp_path, NOTIFY_SOCKET=address, WATCHDOG_USEC="300000") as service:
            heard.until("READY=1")
            heard.until("WATCHDOG=1")
            heard.until("WATCHDOG=1")
            service.send_signal(signal.SIGTERM)
            heard.until("STOPPING=1")
            assert service.wait(PATIENCE_SECONDS) == 0
    assert heard.words == {"READY=1", "WATCHDOG=1", "STOPPING=1"}


def test_a_service_whose_manager_is_gone_works_all_the_same(tmp_path: Path) -> None:
    gone = str(tmp_path / "gone")
    with served(tmp_path, NOTIFY_SOCKET=gone, WATCHDOG_USEC="300000", WATCHDOG_PID="1") as service:
        assert service.stderr is not None
        assert "serving 0 tasks" in service.stderr.readline()
        service.send_signal(signal.SIGTERM)
        assert service.wait(PATIENCE_SECONDS) == 0


@contextmanager
def served(folder: Path, **variables: str) -> Iterator[subprocess.Popen[str]]:
    """A service in a process of its own, with variables as systemd sets them."""
    with subprocess.Popen(
        [*AIOFLOW, "serve", "--home", "home", "--port", "0"],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(**own_folders(folder), **variables),
    ) as service:
        try:
            yield service
        finally:
            service.kill()


class Heard:
    """All that a manager has heard so far."""

    def __init__(self, manager: socket.socket) -> None:
        self._manager = manager
        self.words: set[str] = set()

    def until(self, wanted: str) -> None:
        for _ in range(_MESSAGES_AT_MOST):
            word = self._manager.recv(200).decode()
            self.words.add(word)
            if word == wanted:
                return
        pytest.fail(f"no {wanted} among {sorted(self.words)}")
