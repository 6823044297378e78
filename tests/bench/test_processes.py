"""Work in processes of its own: what it gives, what it used, and that it ends whatever happens."""

import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from aioflow.benchmarks.harness.child import resident_megabytes
from aioflow.benchmarks.harness.processes import (
    ROOT,
    MeasurementError,
    collections_apart,
    measure_process,
    profiles_to,
    run_command,
    run_process,
    run_silently,
)
from tests.clocks import PATIENCE_SECONDS

Write = Callable[[str], Path]


@pytest.fixture
def script(tmp_path: Path) -> Write:
    def write(text: str) -> Path:
        path = tmp_path / "work.py"
        path.write_text(text)
        return path

    return write


def test_the_last_line_of_output_is_read_as_json(script: Write) -> None:
    work = script('import sys, json\nprint("hello")\nprint(json.dumps({"given": sys.argv[1:]}))')
    assert run_process(work, "a", 2) == {"given": ["a", "2"]}


def test_a_module_runs_as_the_main_one_and_finds_aioflow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "some_module.py").write_text("import aioflow\nprint(f'[\"{__name__}\"]')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert run_process("some_module") == ["__main__"]


def test_memory_and_processor_time_are_those_of_the_process(script: Write) -> None:
    small = measure_process(script("print(1)"))
    large = measure_process(script('kept = b"x" * 80_000_000\nsum(range(2_000_000))\nprint(1)'))
    assert large.peak_megabytes - small.peak_megabytes == pytest.approx(80, abs=8)
    assert large.processor_seconds > small.processor_seconds > 0
    assert large.seconds > 0


def test_the_peak_of_a_process_does_not_begin_with_that_of_its_parent(script: Write) -> None:
    work = script("print(1)")
    kept = b"x" * 150_000_000
    assert measure_process(work).peak_megabytes < 80 < resident_megabytes()
    del kept


def test_a_process_that_fails_tells_its_last_words(script: Write) -> None:
    with pytest.raises(MeasurementError, match=r"(?s)work\.py .*ended with status 1.*ValueError: no luck"):
        run_process(script('raise ValueError("no luck")'))
    with pytest.raises(MeasurementError, match="was ended by signal 9"):
        run_process(script("import os\nos.kill(os.getpid(), 9)"))


def test_a_process_that_prints_no_json_is_told(script: Write) -> None:
    with pytest.raises(MeasurementError, match="printed no JSON on its last line but 'hello'"):
        run_process(script('print("hello")'))
    with pytest.raises(MeasurementError, match="printed no JSON on its last line but 'nothing'"):
        run_process(script(""))


def test_a_command_tells_when_its_first_line_came(script: Write) -> None:
    ran = run_command([sys.executable, str(script('print("one", flush=True)\nprint("two")'))])
    assert ran.lines == 2
    assert ran.first_line_seconds is not None
    assert 0 < ran.first_line_seconds <= ran.seconds
    assert ran.processor_seconds > 0
    silent = run_command([sys.executable, "-c", ""])
    assert (silent.lines, silent.first_line_seconds) == (0, None)


def test_a_command_that_fails_tells_what_it_said() -> None:
    with pytest.raises(MeasurementError, match=r"(?s)ended with status 3.*no such thing"):
        run_command(
            [sys.executable, "-c", "import sys; print('no such thing', file=sys.stderr); sys.exit(3)"]
        )
    with pytest.raises(MeasurementError, match="said on stdout"):
        run_silently([sys.executable, "-c", "print('said on stdout'); raise SystemExit(1)"])


def test_profiles_are_handed_over_only_where_asked_for(script: Write) -> None:
    received: list[tuple[str, Any]] = []
    work = script("sum(range(3_000_000))\nprint('{\"count\": 7}')")
    with profiles_to(lambda name, seen, found: received.append((name, found))):
        measure_process(work, "x", profiled_as="a name")
    measure_process(work)
    assert received == [("a name", {"count": 7})]


# --- the end ------------------------------------------------------------------------------------

# Starts a grandchild, says both ids to the file that it is given, and waits for what never comes.
FOREVER = """
import os, subprocess, sys, threading
other = subprocess.Popen([sys.executable, "-c", "import threading; threading.Event().wait()"])
with open(sys.argv[1], "w") as pipe:
    pipe.write(f"{os.getpid()} {other.pid}")
threading.Event().wait()
"""
PARENT = """
import sys
from aioflow.benchmarks.harness.processes import run_process
run_process(sys.argv[1], sys.argv[2])
"""


@contextmanager
def started_parent(tmp_path: Path, script: Write) -> Iterator[tuple[subprocess.Popen[bytes], list[int]]]:
    """A process that measures another, and the ids of that one and of its child."""
    fifo = tmp_path / "ids"
    os.mkfifo(fifo)
    command = [sys.executable, "-c", PARENT, str(script(FOREVER)), str(fifo)]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL) as parent:
        ids = [int(each) for each in fifo.read_text().split()]
        try:
            yield parent, ids
        finally:
            for each in (parent.pid, *ids):
                with suppress(ProcessLookupError):
                    os.kill(each, signal.SIGKILL)


def wait_until_gone(process: int) -> None:
    """Return when the process is no more, or nothing but its status is left."""
    try:
        descriptor = os.pidfd_open(process)
    except ProcessLookupError:
        return
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    ended = poll.poll(1000 * PATIENCE_SECONDS)
    os.close(descriptor)
    assert ended, f"process {process} is still there"


needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has what this looks with")


@needs_linux
def test_an_interrupted_measurement_ends_the_process_and_its_children(tmp_path: Path, script: Write) -> None:
    with started_parent(tmp_path, script) as (parent, ids):
        parent.send_signal(signal.SIGINT)
        for each in ids:
            wait_until_gone(each)


@needs_linux
def test_a_measured_process_ends_with_the_one_that_was_killed(tmp_path: Path, script: Write) -> None:
    with started_parent(tmp_path, script) as (parent, ids):
        parent.kill()
        wait_until_gone(ids[0])


def test_garbage_that_processes_collect_is_counted(script: Write) -> None:
    before = collections_apart()
    run_process(script("import gc\nfor _ in range(9):\n    gc.collect()\nprint(1)"))
    assert collections_apart()[2] - before[2] == pytest.approx(
        9, abs=1
    )  # and those of the interpreter itself


def test_a_command_of_a_module_is_profiled_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "some_command.py").write_text(
        "import sys\ndef busy():\n    sum(range(20_000_000))\nbusy()\nprint(*sys.argv[1:], 'two', sep='\\n')"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    received = []
    with profiles_to(lambda name, seen, found: received.append((name, seen, found))):
        ran = run_command([sys.executable, "-m", "some_command", "one"], profiled_as="the command")
        run_command([sys.executable, "-c", "print()"], profiled_as="no module")
    ((name, seen, found),) = received
    assert (name, found, ran.lines) == ("the command", {"count": 2}, 2)
    assert any(function == "busy" for _, _, function, *_ in seen["functions"])


def test_a_process_without_a_name_is_profiled_under_that_of_its_module() -> None:
    received = []
    with profiles_to(lambda name, seen, found: received.append(name)):
        run_process("aioflow.benchmarks.in_flight", 16, 20)
    assert received == ["in_flight 16"]
