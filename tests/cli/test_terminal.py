"""What a user sees in a terminal: progress on stderr, a table on stdout."""

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import termios
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from aioflow.cli.output.progress import host_wait_lines
from aioflow.web.statistics import SourceStatistics
from tests.cli.program import AIOFLOW, environment, own_folders
from tests.cli.site import served
from tests.clocks import PATIENCE_SECONDS

_SEQUENCE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
# From where the cursor is hidden to where all is erased.
_PROGRESS = re.compile(r"\x1b\[\?25l.*?\x1b\[\?25h", re.DOTALL)


def in_terminal(
    *arguments: str,
    cwd: Path,
    output: int | None = None,
    once: tuple[str, Callable[[subprocess.Popen[bytes]], object]] | None = None,
    columns: int = 80,
    **settings: str,
) -> tuple[int, str]:
    """Run in a terminal of 24 lines, stdout elsewhere if told so; exit code and what the terminal got.

    `once` is a pattern, and what is done with the process when the terminal shows it.
    """
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    changes = environment(
        TERM="xterm-256color", **own_folders(cwd), **{"AIOFLOW_ACCOUNT": "true", **settings}
    )
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
            if once is not None and re.search(once[0], plain(_text(shown)), re.DOTALL):
                once[1](process)
                once = None
    except OSError:
        pass  # this is how a terminal says that its last writer has left
    finally:
        watchdog.cancel()
        os.close(ours)
    code = process.wait(PATIENCE_SECONDS)
    assert once is None, plain(_text(shown))
    return code, _text(shown)


def _text(shown: bytes) -> str:
    return shown.decode(errors="ignore").replace("\r\n", "\n")


def plain(text: str) -> str:
    return _SEQUENCE.sub("", text)


def test_progress_is_shown_on_stderr_and_data_only_on_stdout(folder: Path) -> None:
    arguments = ("run", "a_while.plan", "--ops", "functions", "-i", '[{"n": 1}]')
    line = r"▸ apply a_while +1 +· +· +·"
    with (folder / "output").open("wb") as file:
        code, shown = in_terminal(
            *arguments, cwd=folder, output=file.fileno(), once=(line, lambda _: (folder / "over").touch())
        )
    assert (code, (folder / "output").read_text()) == (0, '{"n": 1, "slept": true}\n')
    assert re.search(r"a_while_plan · [\d.]+ s · 0 rows\n", plain(shown))
    assert re.search(r"in +out +waiting +errors", plain(shown))
    assert re.search(r"1 row in [\d.]+ s\n$", plain(shown))
    # The cursor is there again.
    assert shown.rindex("\x1b[?25h") > shown.rindex("\x1b[?25l")


def test_progress_is_as_wide_as_its_terminal_also_where_rows_go_elsewhere(folder: Path) -> None:
    arguments = ("run", "a_while.plan", "--ops", "functions", "-i", '[{"n": 1}]')
    shown_once = (r"▸ apply", lambda _: (folder / "over").touch())
    code, shown = in_terminal(*arguments, cwd=folder, output=subprocess.DEVNULL, once=shown_once, columns=52)
    assert code == 0
    assert max(map(len, plain(shown).splitlines())) < 52


def test_a_terminal_gets_a_table_above_the_progress(folder: Path) -> None:
    arguments = ("run", "a_while.plan", "--ops", "functions", "-i", '[{"n": 1.25}, {"n": 0}]')
    # The second row does not wait for the first, which comes when this was shown.
    above = r"n  slept\n.*\n0  true\n.*· 1 row\n"
    code, shown = in_terminal(*arguments, cwd=folder, once=(above, lambda _: (folder / "over").touch()))
    assert code == 0
    assert re.search(above + r".*[\r\n]1\.25  true\n", plain(shown), re.DOTALL)


def test_progress_tells_of_a_host_that_asked_for_a_pause(folder: Path) -> None:
    with served() as site:
        (folder / "busy.plan").write_text(
            f'WRAPPER busy ()\n{{\n  GET: "{site.url("/busy")}"\n  title: "h1"\n}}\n'
            'PLAN busy { OUTPUT: b BODY { wrapper ("busy" : b) } }\n'
        )
        until = r"asked us to wait until \d\d:\d\d:\d\d \([^)]+\); 1 request waiting\n"
        code, _ = in_terminal(
            *("run", "busy.plan"),
            cwd=folder,
            once=(f"   {re.escape(site.host)} {until}", lambda process: process.send_signal(signal.SIGINT)),
            AIOFLOW_HTTP_ALLOW=site.host,
        )
        assert (code, site.requests.count("GET /busy")) == (130, 1)


def test_lines_about_hosts_say_why_and_how_long() -> None:
    soon = datetime.now(UTC) + timedelta(seconds=30)
    sources = [
        SourceStatistics("quick:80"),
        SourceStatistics("busy:80", paused_until=soon, waiting=2),
        SourceStatistics("broken:80", breaker="open", breaker_until=soon),
    ]
    busy, broken = host_wait_lines(sources)
    assert re.fullmatch(r"busy:80 asked us to wait until [\d:]{8} \([\d.]+ s\); 2 requests waiting", busy)
    assert broken.startswith("broken:80 failed too often and is left alone until ")


def test_progress_leaves_nothing_but_the_table_and_how_long_it_took(folder: Path) -> None:
    code, shown = in_terminal("run", "double.plan", "-i", '{"n": 1}', cwd=folder)
    assert code == 0
    left = plain(_PROGRESS.sub("", shown))
    assert re.fullmatch(r"n  twice\n─  ─────\n1      2\n1 row in [\d.]+ s\n", left)


def test_mistakes_are_coloured_for_a_terminal(folder: Path) -> None:
    code, shown = in_terminal("check", "wrong.plan", cwd=folder)
    assert code == 2
    assert "\x1b[1mwrong.plan:7:5:\x1b[0m\x1b[31m unknown operator" in shown
