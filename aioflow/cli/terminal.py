"""The lines that a shell is given: typed at a terminal, with history and completion, or piped in."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from aioflow.cli.ending import FAILED, OK, for_terminal, report, tell
from aioflow.cli.pages import Browser, Page
from aioflow.cli.paint import Paint
from aioflow.cli.shell import COMMANDS, Shell
from aioflow.configuration import Configuration
from aioflow.errors import AioflowError, PlanError
from aioflow.folders import data_folder
from aioflow.web.configuration import web_settings

PROMPT = "aioflow> "
HISTORY_LINES = 1000
_MOST_NAMES = 5000
_NAMES = (
    re.compile(rb"<([A-Za-z][\w-]*)"),
    re.compile(rb"\s([a-z][\w-]*)\s*="),
    re.compile(rb'"([A-Za-z_][\w-]*)"\s*:'),
)
_CLASSES = re.compile(rb"""\sclass\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'<>=`]+))""", re.IGNORECASE)
_IDENTITIES = re.compile(rb"""\sid\s*=\s*["']?([^\s"'<>=`]+)""", re.IGNORECASE)


def run_shell(target: str, configuration: Configuration) -> int:
    """Open a page and carry out lines until they end; returns the exit code."""
    browser = Browser(web_settings(configuration))
    shell = Shell(browser, Paint())
    try:
        if not _carried_out(shell, f":open {target}"):
            return FAILED
        if sys.stdin.isatty():
            _converse(shell)
            return OK
        # Nobody is there to try again: what went wrong shows in the exit code.
        well = [_carried_out(shell, line) for line in _lines(shell)]
        return OK if all(well) else FAILED
    finally:
        browser.close()


def _lines(shell: Shell) -> Iterator[str]:
    for line in sys.stdin:
        if shell.has_ended:
            return
        yield line


def _converse(shell: Shell) -> None:
    with _line_editing(shell):
        print("Type a selector, a field or :help.")
        while not shell.has_ended:
            try:
                line = input(PROMPT)
            except EOFError:
                print()
                return
            except KeyboardInterrupt:
                print()
                continue
            _carried_out(shell, line)


def _carried_out(shell: Shell, line: str) -> bool:
    """Carry out a line and show what it gives; False if it went wrong, which is told."""
    try:
        for text in shell.do(line):
            print(text)
        sys.stdout.flush()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return False
    except PlanError as error:
        for diagnostic in error.diagnostics:
            tell("error", diagnostic.message)
            if diagnostic.span is not None:
                print(for_terminal(diagnostic.span.excerpt, sys.stderr), file=sys.stderr)
        return False
    except (AioflowError, OSError) as error:
        if isinstance(error, BrokenPipeError):
            raise
        report(error)
        return False
    return True


# --- readline -----------------------------------------------------------------------------------


@contextmanager
def _line_editing(shell: Shell) -> Iterator[None]:
    """History and completion, where the interpreter has readline."""
    try:
        import readline
    except ImportError:
        yield
        return
    history = data_folder() / "shell_history"
    with suppress(OSError):
        readline.read_history_file(history)
    readline.set_history_length(HISTORY_LINES)
    readline.set_completer_delims(" \t\n>+~,\"'()[]/|")
    readline.set_completer(completer(shell))
    readline.parse_and_bind("tab: complete")
    try:
        yield
    finally:
        with suppress(OSError):
            history.parent.mkdir(parents=True, exist_ok=True)
            readline.write_history_file(history)


def completer(shell: Shell) -> Callable[[str, int], str | None]:
    """Completes commands, and names of the page: elements, attributes, .classes, #identities, keys."""
    names: dict[str, Any] = {"page": None, "words": []}

    def complete(text: str, state: int) -> str | None:
        if names["page"] is not shell.page:
            names["page"], names["words"] = shell.page, names_in(shell.page)
        found = list(completions(text, names["words"], in_brackets=_follows_bracket()))
        return found[state] if state < len(found) else None

    return complete


def _follows_bracket() -> bool:
    """Whether the word that is to be completed is the name of an attribute: `li[da`."""
    import readline

    return readline.get_line_buffer()[: readline.get_begidx()].endswith("[")


def completions(text: str, words: list[str], *, in_brackets: bool = False) -> Iterator[str]:
    """What a word that has been begun may become; `in_brackets` of CSS it is an attribute."""
    if in_brackets:
        yield from (word[1:] for word in words if word.startswith(f"@{text}") and word != f"@{text}")
        return
    if text.startswith(":"):
        yield from (f":{name} " for name in COMMANDS if name.startswith(text[1:]))
        return
    # Of li.house only the last part is completed.
    start = max(text.rfind("."), text.rfind("#"), text.rfind("@"), 0)
    before, begun = text[:start], text[start:]
    yield from (before + word for word in words if word.startswith(begun) and word != begun)


def names_in(page: Page | None) -> list[str]:
    """The names that a selector for this page may be made of."""
    if page is None:
        return []
    found: dict[bytes, None] = {}
    elements, attributes, keys = (dict.fromkeys(pattern.findall(page.body)) for pattern in _NAMES)
    found |= dict.fromkeys(name.lower() for name in elements) | keys
    found |= dict.fromkeys(b"@" + name for name in attributes)
    for quoted_ways in _CLASSES.findall(page.body):
        found |= dict.fromkeys(b"." + name for name in b"".join(quoted_ways).split())
    found |= dict.fromkeys(b"#" + name for name in _IDENTITIES.findall(page.body))
    return sorted(name.decode("utf-8", "replace") for name in list(found)[:_MOST_NAMES])
