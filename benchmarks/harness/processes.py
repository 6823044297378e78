"""Work in separate processes, and the time and memory that they use.

Processes end with the block or the process that started them, whichever way it ends.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from operator import add
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from time import perf_counter
from typing import IO, Any, TypeAlias

from aioflow.benchmarks.harness import child
from aioflow.benchmarks.harness.child import MEGABYTE, peak_megabytes, resident_megabytes
from aioflow.errors import AioflowError

__all__ = [
    "MEGABYTE",
    "ROOT",
    "CommandTiming",
    "MeasurementError",
    "ProcessUsage",
    "collections_apart",
    "measure_process",
    "peak_megabytes",
    "profiles_to",
    "resident_megabytes",
    "run_command",
    "run_process",
    "run_silently",
]

# The checkout. Experiments are imported through the link `aioflow/benchmarks`, so it is followed.
ROOT = Path(__file__).resolve().parents[2]
_END_SECONDS = 5
_SHOWN_LINES = 8

# Gets the name under which a process is profiled, what its sampler saw, and what it printed.
Receive: TypeAlias = Callable[[str, Mapping[str, Any], Any], None]
_receive: ContextVar[Receive | None] = ContextVar("receive", default=None)
# The sum over all processes measured so far.
_collections: list[int] = [0, 0, 0]


class MeasurementError(AioflowError):
    """A process that was to be measured failed; the message has the last lines that it wrote."""


@dataclass(frozen=True)
class ProcessUsage:
    """The JSON of a process's last line, and all that the process used, its start included."""

    found: Any
    seconds: float
    processor_seconds: float
    peak_megabytes: float


@dataclass(frozen=True)
class CommandTiming:
    """The times of a command; `first_line_seconds` is None when it printed nothing."""

    seconds: float
    processor_seconds: float
    first_line_seconds: float | None
    lines: int


@contextmanager
def profiles_to(receive: Receive) -> Iterator[None]:
    """Profile every process that is measured in the block, and pass its profile on."""
    token = _receive.set(receive)
    try:
        yield
    finally:
        _receive.reset(token)


def collections_apart() -> list[int]:
    """Return how often the processes measured so far collected garbage, in each generation."""
    return list(_collections)


def run_process(module: str | Path, *arguments: object, python: str = sys.executable) -> Any:
    """Run `python -m module arguments`, or a file, and return the JSON of its last line of output."""
    return measure_process(module, *arguments, python=python).found


def measure_process(
    module: str | Path,
    *arguments: object,
    python: str = sys.executable,
    environment: Mapping[str, str] | None = None,
    profiled_as: str | None = None,
) -> ProcessUsage:
    """Run a module or a file in a separate process.

    If the object that it prints has a `count`, that is the number of tuples that it moved, for profiles.
    """
    name = module.stem if isinstance(module, Path) else module.rpartition(".")[2]
    label = profiled_as or " ".join([name, *map(str, arguments[:1])])
    receive = _receive.get()
    with TemporaryDirectory(prefix="aioflow-bench-") as folder:
        report = Path(folder, "used.json")
        command = [python, "-P", child.__file__, str(report), "profile" if receive else "plain"]
        started = perf_counter()
        output = _run(
            [*command, str(module), *map(str, arguments)], {**_environment(), **(environment or {})}
        )
        seconds = perf_counter() - started
        used = json.loads(report.read_text())
    _collections[:] = map(add, _collections, used["collections"])
    found = _last_line(output, label)
    if receive is not None:
        receive(label, used["profile"], found)
    return ProcessUsage(found, seconds, used["processor_seconds"], used["peak_megabytes"])


def run_command(
    command: Sequence[str],
    *,
    environment: Mapping[str, str] | None = None,
    profiled_as: str | None = None,
) -> CommandTiming:
    """Run a command to its end and return its times.

    A command of the form `python -m module …` can be profiled: its lines count as the tuples that it moved.
    """
    receive = _receive.get()
    if receive is None or profiled_as is None or command[1] != "-m":
        return _ran(command, environment)
    with TemporaryDirectory(prefix="aioflow-bench-") as folder:
        report = Path(folder, "used.json")
        python, _, *work = command
        ran = _ran([python, "-P", child.__file__, str(report), "profile", *work], environment)
        receive(profiled_as, json.loads(report.read_text())["profile"], {"count": ran.lines})
    return ran


def _ran(command: Sequence[str], environment: Mapping[str, str] | None) -> CommandTiming:
    first: float | None = None
    lines = 0
    with TemporaryFile() as errors:
        started = perf_counter()
        with _started(command, {**_environment(), **(environment or {})}, errors) as process:
            assert process.stdout is not None
            for _ in process.stdout:
                first = perf_counter() - started if first is None else first
                lines += 1
            # Not `wait`, which does not return the processor time.
            _, status, used = os.wait4(process.pid, 0)
            seconds = perf_counter() - started
            process.returncode = os.waitstatus_to_exitcode(status)
        _expect_success(command, process.returncode, errors)
    return CommandTiming(seconds, used.ru_utime + used.ru_stime, first, lines)


def run_silently(command: Sequence[str], *, cwd: Path | None = None) -> None:
    """Run a command whose output is needed only when it fails."""
    with TemporaryFile() as errors:
        with _started(command, dict(os.environ), errors, stdout=errors, cwd=cwd) as process:
            process.wait()
        _expect_success(command, process.returncode, errors)


def _run(command: Sequence[str], environment: Mapping[str, str]) -> str:
    with TemporaryFile() as errors:
        with _started(command, environment, errors) as process:
            assert process.stdout is not None
            output = process.stdout.read()
            process.wait()
        _expect_success(command, process.returncode, errors)
        return output.decode(errors="replace")


@contextmanager
def _started(
    command: Sequence[str],
    environment: Mapping[str, str],
    errors: IO[bytes],
    *,
    stdout: int | IO[bytes] = subprocess.PIPE,
    cwd: Path | None = None,
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a process in a separate group: Ctrl-C is for this process, which then ends the whole group."""
    process = subprocess.Popen(
        command,
        env=environment,
        cwd=cwd,
        stdin=subprocess.PIPE,
        stdout=stdout,
        stderr=errors,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            _end_group(process)
        for file in (process.stdin, process.stdout):
            if file is not None:
                file.close()


def _end_group(process: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):  # it may have ended in between
            os.killpg(process.pid, number)
        try:
            process.wait(_END_SECONDS)
            return
        except subprocess.TimeoutExpired:
            continue


def _environment() -> dict[str, str]:
    """Return the environment of this process, in which the other finds the same package."""
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    # Byte code is kept, as that of installed packages is: no start includes compilation.
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONDONTWRITEBYTECODE": ""}


def _expect_success(command: Sequence[str], status: int, errors: IO[bytes]) -> None:
    if status == 0:
        return
    errors.seek(0)
    said = errors.read().decode(errors="replace").strip().splitlines()[-_SHOWN_LINES:]
    # The words that a reader recognises, without the paths of the interpreter and of our own files.
    words = [word for word in command[1:] if not word.endswith(("child.py", "used.json"))]
    ended = f"was ended by signal {-status}" if status < 0 else f"ended with status {status}"
    raise MeasurementError("\n  ".join([f"the process {' '.join(words)} {ended}", *said]))


def _last_line(output: str, label: str) -> Any:
    lines = output.strip().splitlines()
    try:
        return json.loads(lines[-1])
    except (IndexError, json.JSONDecodeError):
        shown = lines[-1] if lines else "nothing"
        raise MeasurementError(
            f"the process {label} printed no JSON on its last line but {shown!r}"
        ) from None
