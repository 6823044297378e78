"""Calls in other processes: what comes back, what ends them, and that none is left."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from aioflow.errors import ProcessError
from aioflow.processes.frames import Limits, UnimportableError
from aioflow.processes.pool import Processes

FREE = Limits()


def with_processes(use: Callable[[Processes], Coroutine[Any, Any, Any]]) -> Any:
    async def main() -> Any:
        processes = Processes()
        try:
            return await use(processes)
        finally:
            await processes.close()

    return asyncio.run(main())


def call(function: Callable[..., Any], *arguments: Any, limits: Limits = FREE) -> Any:
    return with_processes(lambda processes: processes.call(function, *arguments, limits=limits))


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def number_after_printing() -> int:
    print("this goes to standard error")
    os.write(1, b"and so does this\n")
    return os.getpid()


class AwkwardError(Exception):
    """Cannot be made from its message alone."""

    def __init__(self, one: int, *, two: int) -> None:
        super().__init__(f"{one} and {two}")


def raise_awkwardly() -> None:
    raise AwkwardError(1, two=2)


def give_a_function() -> Callable[[], int]:
    return lambda: 1


def run_for_ever() -> None:
    while True:
        pass


def tell_and_sleep(path: Path) -> None:
    path.write_text(str(os.getpid()))
    time.sleep(600)


def test_a_process_is_used_again_and_ends_with_the_pool() -> None:
    async def use(processes: Processes) -> list[int]:
        return [await processes.call(number_after_printing, limits=FREE) for _ in range(3)]

    first, *others = with_processes(use)
    assert first != os.getpid()
    assert others == [first, first]
    assert not is_alive(first)


def test_what_is_raised_there_is_raised_here_with_its_place() -> None:
    with pytest.raises(ValueError, match="invalid literal") as caught:
        call(int, "x")
    assert any("in another process" in note for note in caught.value.__notes__)


@pytest.mark.parametrize(
    ("function", "arguments", "message"),
    [
        (raise_awkwardly, (), "AwkwardError: 1 and 2"),
        (sys.exit, (3,), r"wants to end its process: SystemExit\(3\)"),
        (os._exit, (3,), "its process ended with status 3"),
        (os.abort, (), "its process ended by signal 6"),
        (give_a_function, (), "the result cannot be sent from one process to another"),
    ],
)
def test_whatever_becomes_of_a_call_is_told(
    function: Callable[..., Any], arguments: tuple[Any, ...], message: str
) -> None:
    async def use(processes: Processes) -> int:
        with pytest.raises((RuntimeError, TypeError, ProcessError), match=message):
            await processes.call(function, *arguments, limits=FREE)
        return await processes.call(abs, -1, limits=FREE)

    assert with_processes(use) == 1


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (Limits(seconds=0.5), r"more than 0\.5 seconds$"),
        (Limits(processor_seconds=0.3), r"more than 0\.3 seconds of processor time"),
    ],
)
def test_a_call_that_takes_too_long_ends_with_its_process(limits: Limits, message: str) -> None:
    with pytest.raises(ProcessError, match=message) as caught:
        call(run_for_ever, limits=limits)
    assert caught.value.is_late


def test_memory_is_limited_for_one_call_only() -> None:
    async def use(processes: Processes) -> int:
        with pytest.raises(MemoryError):
            await processes.call(bytes, 400_000_000, limits=Limits(memory_bytes=200_000_000))
        return len(await processes.call(bytes, 210_000_000, limits=FREE))

    assert with_processes(use) == 210_000_000


def test_a_cancelled_call_leaves_no_process(tmp_path: Path) -> None:
    told = tmp_path / "pid"
    os.mkfifo(told)  # to be read when something was written

    async def use(processes: Processes) -> None:
        waiting = asyncio.ensure_future(processes.call(tell_and_sleep, told, limits=FREE))
        process = int(await asyncio.to_thread(told.read_text))
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert not is_alive(process)

    with_processes(use)


def wait_for_the_answer(processes: Processes) -> None:
    """Keep the loop busy until the process is idle, so that it does not see the answer."""
    while not processes._idle:
        time.sleep(0.001)


def test_cancelling_a_call_that_was_answered_leaves_its_process_to_others() -> None:
    async def use(processes: Processes) -> int:
        answered = asyncio.ensure_future(processes.call(os.getpid, limits=FREE))
        await asyncio.sleep(0)
        wait_for_the_answer(processes)
        answered.cancel()
        with pytest.raises(asyncio.CancelledError):
            await answered
        return await processes.call(abs, -1, limits=FREE)

    assert with_processes(use) == 1


def test_a_process_that_died_while_idle_is_replaced() -> None:
    async def use(processes: Processes) -> tuple[int, int]:
        first = await processes.call(os.getpid, limits=FREE)
        os.kill(first, signal.SIGKILL)
        await asyncio.to_thread(os.waitid, os.P_PID, first, os.WEXITED | os.WNOWAIT)
        return first, await processes.call(os.getpid, limits=FREE)

    first, then = with_processes(use)
    assert first != then


def test_a_process_that_cannot_be_started_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(ProcessError, match="no process could be started for it: No such file or directory"):
        call(os.getpid)


def deep(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


def test_values_that_are_too_deep_are_told() -> None:
    with pytest.raises(TypeError, match="the result cannot be sent"):
        call(deep, 100_000)
    with pytest.raises(UnimportableError):
        call(len, deep(100_000))


def test_a_lower_limit_of_the_system_holds() -> None:
    text = "import asyncio, resource\nfrom aioflow.processes.pool import Processes\n"
    text += "from aioflow.processes.frames import Limits\n"
    text += "resource.setrlimit(resource.RLIMIT_DATA, (800 << 20, 800 << 20))\n"
    text += "print(asyncio.run(Processes().call(abs, -1, limits=Limits(memory_bytes=1 << 30))))"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("1\n", "")


def test_calls_that_wait_for_a_process_can_be_cancelled(tmp_path: Path) -> None:
    told = tmp_path / "0"
    os.mkfifo(told)

    async def use(processes: Processes) -> None:
        calls = [
            asyncio.ensure_future(processes.call(tell_and_sleep, tmp_path / str(n), limits=FREE))
            for n in range(20)
        ]
        await asyncio.to_thread(told.read_text)
        for each in calls:
            each.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        assert all(each.cancelled() for each in calls)

    with_processes(use)


def test_what_nobody_can_import_is_refused() -> None:
    with pytest.raises(UnimportableError):
        call(lambda: 1)


SCRIPT = """
import asyncio, os, threading
import aioflow
from aioflow import Context, Stream, operator

print("main", flush=True)

def where():
    return os.getpid() == parent, threading.current_thread() is threading.main_thread()

parent = os.getpid()

@operator
async def elsewhere(rows: Stream, *, context: Context):
    async for _ in rows:
        here, in_main = await context.in_process(where)
        there = await context.in_process(os.getpid)
        yield {"here": here, "in_main": in_main, "there": there != parent}

plan = aioflow.loads("PLAN p { INPUT: x OUTPUT: out BODY { elsewhere (x : out) } }")
print(dict(aioflow.run(plan, x=[{"n": 1}])[0]))
"""


def test_what_the_main_module_defines_goes_to_a_thread(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stdout == "main\n{'here': True, 'in_main': False, 'there': True}\n", done.stderr


def test_an_engine_that_nobody_closes_leaves_no_process(tmp_path: Path) -> None:
    text = "import asyncio, os\nfrom aioflow.processes.pool import Processes\n"
    text += "from aioflow.processes.frames import Limits\n"
    text += "print(asyncio.run(Processes().call(os.getpid, limits=Limits())))"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert not is_alive(int(done.stdout))
    assert done.stderr == ""
