"""The end of a command: its last messages, its exit code, and the effect of a signal.

0    all is well
1    the run failed (or `fmt --check` would change a file)
2    bad input: mistakes in a plan, bad options, missing files
3    the run ended well, but a source brought nothing: no item, nulls only, or failures only
130  interrupted by Ctrl-C (143: by SIGTERM): once with everything released, twice at once
"""

from __future__ import annotations

import functools
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, NoReturn, ParamSpec, TextIO, TypeVar

from aioflow.config.masking import mask
from aioflow.config.secrets import Secrets
from aioflow.errors import (
    AioflowError,
    Diagnostic,
    InputError,
    MissingExtraError,
    PlanError,
    SettingError,
)
from aioflow.values.display import visible_lines

if TYPE_CHECKING:
    import asyncio

OK: Final = 0
FAILED: Final = 1
BAD_INPUT: Final = 2
NOTHING_FOUND: Final = 3
INTERRUPTED: Final = 130

P = ParamSpec("P")
T = TypeVar("T")


def guarded(command: Callable[P, T]) -> Callable[P, T]:
    """Return a command that ends with a message and an exit code whatever happens, never with a traceback."""

    @functools.wraps(command)
    def run(*arguments: P.args, **settings: P.kwargs) -> T:
        try:
            return command(*arguments, **settings)
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)
            sys.exit(INTERRUPTED)
        except BrokenPipeError:
            # The reader of our output has seen enough. Buffered output must not fail again at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            sys.exit(OK)
        except Exception as error:
            sys.exit(report(error))

    return run


def exit_code(error: BaseException) -> int:
    """Return what a command exits with that ends with this exception."""
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else FAILED if error.code else OK
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(error, BrokenPipeError):
        return OK
    if isinstance(error, PlanError | SettingError):
        return BAD_INPUT
    return BAD_INPUT if isinstance(error, AioflowError) and _is_about_input(error) else FAILED


def report(error: BaseException) -> int:
    """Tell the user what went wrong; returns the exit code."""
    Secrets().conceal_all()
    if os.environ.get("AIOFLOW_DEBUG") == "1":
        from traceback import format_exception

        # Values that were made of secrets stand in the messages of whatever library met them.
        text = mask("".join(format_exception(error)))
        print(for_terminal(text, sys.stderr), end="", file=sys.stderr)
    if isinstance(error, PlanError):
        show_diagnostics(error.diagnostics)
    elif isinstance(error, AioflowError):
        print_message("error", str(error))
    elif isinstance(error, OSError):
        print_message("error", os_error_text(error))
    else:
        print_message("error", f"{type(error).__name__}: {error}")
        print_message(
            "note", "this is a defect of aioflow or of an operator; AIOFLOW_DEBUG=1 shows where it happened"
        )
    return exit_code(error)


def _is_about_input(error: BaseException | None) -> bool:
    """Return whether something failed because what it was given is wrong, however deep that was found."""
    while error is not None:
        if isinstance(error, InputError | PlanError | MissingExtraError):
            return True
        error = error.__cause__
    return False


def os_error_text(error: OSError) -> str:
    """`no such file or directory: 'a.plan'`."""
    text = (error.strerror or str(error)).lower()
    return f"{text}: {error.filename!r}" if error.filename else text


def show_diagnostics(diagnostics: Sequence[Diagnostic]) -> None:
    """Every mistake and warning, as `file:line:column: …` with its source line."""
    if diagnostics:
        # A plan may have the value of a secret written out.
        Secrets().conceal_all()
    for diagnostic in diagnostics:
        text = for_terminal(mask(str(diagnostic)), sys.stderr)
        if has_colours(sys.stderr):
            first, newline, rest = text.partition("\n")
            code = "31" if diagnostic.severity == "error" else "33"
            place = for_terminal(f"{diagnostic.span.place}:", sys.stderr) if diagnostic.span else ""
            first = f"\x1b[1m{place}\x1b[0m\x1b[{code}m{first.removeprefix(place)}\x1b[0m"
            text = first + newline + rest
        print(text, file=sys.stderr)


def print_message(label: str, message: str) -> None:
    """A line on stderr, as `error: …`."""
    shown = label
    if has_colours(sys.stderr):
        code = {"error": "1;31", "warning": "1;33"}.get(label, "1")
        shown = f"\x1b[{code}m{label}\x1b[0m"
    print(f"{shown}: {for_terminal(mask(message), sys.stderr)}", file=sys.stderr)


def for_terminal(text: str, file: TextIO) -> str:
    """Return a text as it is or, if the file is a terminal, as it can be shown there."""
    return visible_lines(text) if file.isatty() else text


def has_colours(file: object) -> bool:
    """Return whether a file is a terminal whose user wants colours."""
    isatty = getattr(file, "isatty", None)
    return bool(isatty and isatty()) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


# Work to be done even if the user does not wait for the end of the run: a temporary file, a hidden cursor.
exit_callbacks: list[Callable[[], None]] = []
# Signals since a coroutine was last begun, for code that writes a last message.
signals_received: list[int] = []


def run_interruptibly(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end; a first signal cancels it, a second one ends the process."""
    import asyncio  # here, since most commands do without

    received = signals_received
    received.clear()

    async def supervised() -> T:
        task = asyncio.current_task()
        assert task is not None
        with _signals(task, received):
            return await main

    # Not a `with`: that would wait for threads that still work for the run; an interrupted user would not.
    runner = asyncio.Runner()
    try:
        result = runner.run(supervised())
    except BaseException:
        if received:
            exit_by_signal(received[0])
        runner.close()
        raise
    runner.close()
    return result


@contextmanager
def _signals(task: asyncio.Task[Any], received: list[int]) -> Iterator[None]:
    loop = task.get_loop()

    def on_signal(number: int, frame: FrameType | None) -> None:
        received.append(number)
        if len(received) > 1:
            exit_by_signal(number)
        loop.call_soon_threadsafe(task.cancel)

    # A handler of the interpreter, unlike the loop's, also runs while an operator keeps the loop busy.
    previous = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def exit_by_signal(number: int) -> NoReturn:
    """End the process because of a signal, without waiting for threads."""
    for words in tuple(exit_callbacks):
        with suppress(OSError):
            words()
    with suppress(OSError, ValueError):
        sys.stderr.write("interrupted\n")
        sys.stderr.flush()
    os._exit(128 + number)
