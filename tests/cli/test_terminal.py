"""What a user sees in a terminal: progress on stderr, a table on stdout."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

from aioflow.cli.holds import held
from aioflow.web.statistics import SourceStatistics
from tests.cli.program import AIOFLOW, environment, own_folders
from tests.cli.site import served
from tests.clocks import PATIENCE_SECONDS

_SEQUENCE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def in_terminal(*arguments: str, cwd: Path, output: int | None = None, **settings: str) -> tuple[int, str]:
    """Run in a terminal of 80 x 24, stdout elsewhere if told so; exit code and what the terminal got."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    changes = environment(TERM="xterm-256color", **own_folders(cwd), **settings)
    del changes["COLUMNS"], changes["LINES"]
    process = subprocess.Popen(
        [*AIOFLOW, *arguments],
        cwd=cwd,
        env=changes,
        stdin=subprocess.DEVNULL,
        stdout=theirs if output is None else output,
        stderr=theirs,
    )
    os.close(theirs)
    watchdog = threading.Timer(PATIENCE_SECONDS, process.kill)
    watchdog.start()
    shown = b""
    try:
        while chunk := os.read(ours, 65536):
            shown += chunk
    except OSError:
        pass  # this is how a terminal says that its last writer has left
    finally:
        watchdog.cancel()
        os.close(ours)
    return process.wait(PATIENCE_SECONDS), shown.decode().replace("\r\n", "\n")


def plain(text: str) -> str:
    return _SEQUENCE.sub("", text)


def test_progress_is_shown_on_stderr_and_data_only_on_stdout(folder: Path) -> None:
    arguments = ("run", "a_while.plan", "--ops", "functions", "-i", '[{"n": 1}]')
    with (folder / "output").open("wb") as file:
        code, shown = in_terminal(*arguments, cwd=folder, output=file.fileno())
    assert (code, (folder / "output").read_text()) == (0, '{"n": 1, "slept": true}\n')
    assert re.search(r"a_while_plan · 0\.\d\d s · 0 rows · 1 permit used", plain(shown))
    assert re.search(r"in +out +waiting +errors", plain(shown))
    assert re.search(r"▸ apply a_while +1 +· +· +·", plain(shown))
    assert re.search(r"1 row in 1\.\d\d s\n$", plain(shown))
    # The cursor is there again.
    assert shown.rindex("\x1b[?25h") > shown.rindex("\x1b[?25l")


def test_a_terminal_gets_a_table_above_the_progress(folder: Path) -> None:
    arguments = ("run", "a_while.plan", "--ops", "functions", "-i", '[{"n": 1.25}, {"n": 0}]')
    code, shown = in_terminal(*arguments, cwd=folder)
    lines = plain(shown).splitlines()
    assert code == 0
    # The first row came long before the second, and did not wait for it.
    progress = [place for place, line in enumerate(lines) if "· 1 row ·" in line]
    assert lines.index("n  slept") < lines.index("0  true") < progress[-1] < lines.index("1.25  true")


def test_progress_tells_of_a_host_that_asked_for_a_pause(folder: Path) -> None:
    with served() as site:
        (folder / "busy.plan").write_text(
            f'WRAPPER busy ()\n{{\n  GET: "{site.url("/busy")}"\n  title: "h1"\n}}\n'
            'PLAN busy { OUTPUT: b BODY { wrapper ("busy" : b) } }\n'
        )
        code, shown = in_terminal("run", "busy.plan", cwd=folder, AIOFLOW_HTTP_ALLOW=site.host)
        assert (code, site.requests.count("GET /busy")) == (0, 2)
        until = r"asked us to wait until \d\d:\d\d:\d\d \(\d\.\d\d s\); 1 request waiting\n"
        assert re.search(f"   {re.escape(site.host)} {until}", plain(shown))


def test_lines_about_hosts_say_why_and_how_long() -> None:
    soon = datetime.now(UTC) + timedelta(seconds=30)
    sources = [
        SourceStatistics("quick:80"),
        SourceStatistics("busy:80", paused_until=soon, waiting=2),
        SourceStatistics("broken:80", breaker="open", breaker_until=soon),
    ]
    busy, broken = held(sources)
    assert re.fullmatch(r"busy:80 asked us to wait until [\d:]{8} \([\d.]+ s\); 2 requests waiting", busy)
    assert broken.startswith("broken:80 failed too often and is left alone until ")


def test_a_short_run_shows_no_progress(folder: Path) -> None:
    code, shown = in_terminal("run", "double.plan", "-i", '{"n": 1}', cwd=folder)
    assert code == 0
    assert "\x1b[?25l" not in shown
    assert re.fullmatch(r"n  twice\n─  ─────\n1      2\n1 row in \d\.\d\d s\n", plain(shown))


def test_mistakes_are_coloured_for_a_terminal(folder: Path) -> None:
    code, shown = in_terminal("check", "wrong.plan", cwd=folder)
    assert code == 2
    assert "\x1b[1mwrong.plan:7:5:\x1b[0m\x1b[31m unknown operator" in shown
