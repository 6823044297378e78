"""`make serve`: the tasks run, news arrives as mail, and Ctrl-C ends it with nothing left behind."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path


def test_the_served_demonstration_mails_new_houses_and_ends_on_a_signal() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "aioflow.demo.serving", "0", "2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    lines: list[str] = []
    try:
        for line in process.stdout:
            lines.append(line)
            if line.startswith("mail: 1 house"):
                break
        process.send_signal(signal.SIGINT)
        lines += process.stdout
        assert process.wait() == 0, "".join(lines)
    finally:
        process.kill()
        process.stdout.close()
    told = "".join(lines)
    assert "mail: New houses: 72" in told
    assert "house for sale: http://127.0.0.1:" in told
    home = re.search(r"--home (\S+)", told)
    assert home is not None
    assert not Path(home[1]).exists()
