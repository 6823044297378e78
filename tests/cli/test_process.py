"""The command as a process: pipes that close, signals, kills; what it leaves behind."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.program import environment, start
from tests.clocks import PATIENCE_SECONDS


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture
def many_rows(folder: Path) -> Path:
    path = folder / "rows.jsonl"
    path.write_text("".join(f'{{"n": {number}}}\n' for number in range(100_000)))
    return path


# --- pipes --------------------------------------------------------------------------------------


def test_a_reader_that_closes_the_pipe_ends_the_run_quietly(folder: Path, many_rows: Path) -> None:
    with start("run", "double.plan", "-i", f"@{many_rows}", cwd=folder) as process:
        assert process.output.readline() == b'{"n": 0, "twice": 0}\n'
        process.output.close()
        assert (process.end(), process.messages.read()) == (0, b"")


def test_a_reader_that_leaves_is_noticed_while_nothing_is_written(folder: Path) -> None:
    with start("run", "double.plan", "-i", "-", cwd=folder) as process:
        process.send(b'{"n": 1}\n')
        process.output.readline()
        process.output.close()
        # Nothing more ever comes from stdin, and yet the run ends.
        assert (process.end(), process.messages.read()) == (0, b"")


def test_a_reader_that_does_not_read_holds_the_source_back(folder: Path, many_rows: Path) -> None:
    data = many_rows.read_bytes()
    with start("run", "double.plan", "-i", "-", cwd=folder) as process:
        os.set_blocking(process.input.fileno(), False)
        taken = refused = 0
        while taken < len(data) and refused < 60:
            try:
                taken += os.write(process.input.fileno(), data[taken : taken + 4096])
                refused = 0
            except BlockingIOError:
                time.sleep(0.02)
                # A pipe holds 64 KiB: before it has taken more, the process is still starting.
                refused += taken > 100_000
        assert taken < len(data)


def test_the_shell_sees_a_pipeline_end_well(folder: Path, many_rows: Path) -> None:
    line = f'set -o pipefail; "{sys.executable}" -m aioflow run double.plan -i "@{many_rows}" | head -1'
    done = subprocess.run(
        ["bash", "-c", line], cwd=folder, env=environment(), capture_output=True, timeout=PATIENCE_SECONDS
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b'{"n": 0, "twice": 0}\n', b"")


SLOW_SERVICE = '''\
"""An operator with a service that takes until somebody lets it close."""

import asyncio
from pathlib import Path

from aioflow import Context, Stream, operator, same_as_input


class Slow:
    scope = "engine"

    @classmethod
    def open_service(cls, host):
        return cls()

    async def close(self):
        Path("closing").touch()
        while not Path("left").exists():
            await asyncio.sleep(0.01)
        # Whoever is told that the reader left acts within a few turns of the loop.
        for _ in range(20):
            await asyncio.sleep(0)
        Path("closed").touch()


@operator(schema=same_as_input)
async def served(rel: Stream, *, context: Context):
    """Pass every tuple."""
    context.service(Slow)
    async for row in rel:
        yield row
'''


@pytest.mark.parametrize("read", ["all", "some"])
def test_a_reader_that_leaves_while_the_run_is_closed_is_no_matter(
    folder: Path, many_rows: Path, read: str
) -> None:
    (folder / "slow.py").write_text(SLOW_SERVICE)
    (folder / "slow.plan").write_text("PLAN slow { INPUT: a OUTPUT: b BODY { served (a : b) } }")
    given = '{"n": 0}' if read == "all" else f"@{many_rows}"
    with start("run", "slow.plan", "--ops", "slow", "-i", given, cwd=folder) as process:
        assert process.output.readline() == b'{"n": 0}\n'
        if read == "all":
            wait_until((folder / "closing").exists)
        process.output.close()
        wait_until((folder / "closing").exists)
        (folder / "left").touch()
        assert (process.end(), process.messages.read()) == (0, b"")
    assert (folder / "closed").exists()


# --- signals ------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", ["forever", "blocked"])
def test_an_interrupted_run_ends_at_once_and_leaves_nothing(folder: Path, function: str) -> None:
    (folder / "out.jsonl").write_text("old")
    (folder / "tmp").mkdir()
    before = {*os.listdir(folder), "started"}
    arguments = ("run", f"{function}.plan", "--ops", "functions", "-i", '{"n": 1}', "-O", "out.jsonl")
    changes = {"PYTHONDONTWRITEBYTECODE": "1", "TMPDIR": str(folder / "tmp")}
    with start(*arguments, cwd=folder, **changes) as process:
        wait_until((folder / "started").exists)
        process.popen.send_signal(signal.SIGINT)
        assert process.end() == 130  # long before the hour that the function takes
        assert (process.output.read(), process.messages.read()) == (b"", b"interrupted\n")
    assert {*os.listdir(folder)} == before
    assert os.listdir(folder / "tmp") == []
    assert (folder / "out.jsonl").read_text() == "old"


def test_a_second_interrupt_ends_what_does_not_hear_the_first(folder: Path) -> None:
    with start(
        "run", "deaf.plan", "--ops", "functions", "-i", '{"n": 1}', "-O", "out", cwd=folder
    ) as process:
        wait_until((folder / "started").exists)
        process.popen.send_signal(signal.SIGINT)
        assert process.output.readline() == b"cancelled\n"
        process.popen.send_signal(signal.SIGINT)
        assert (process.end(), process.messages.read()) == (130, b"interrupted\n")
    assert list(folder.glob("*out*")) == []


def test_a_terminated_run_cleans_up_too(folder: Path) -> None:
    arguments = ("run", "forever.plan", "--ops", "functions", "-i", '{"n": 1}', "-O", "out.jsonl")
    with start(*arguments, cwd=folder) as process:
        wait_until((folder / "started").exists)
        process.popen.terminate()
        assert (process.end(), process.messages.read()) == (143, b"interrupted\n")
    assert list(folder.glob("*out.jsonl*")) == []


def test_a_killed_run_leaves_the_old_file(folder: Path) -> None:
    (folder / "out.jsonl").write_text("old\n")
    with start("run", "double.plan", "-i", "-", "-O", "out.jsonl", cwd=folder) as process:
        process.send(b'{"n": 1}\n')
        wait_until(lambda: any(path.stat().st_size for path in folder.glob(".out.jsonl.*.part")))
        process.popen.kill()
        process.end()
    assert (folder / "out.jsonl").read_text() == "old\n"
