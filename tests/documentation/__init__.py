"""Runs the code blocks of a documentation page in the order of the text, in an empty folder.

    python -m tests.documentation [--update] docs/tutorial.md

What a block does depends on the words behind its opening fence:

    title="a.py"   the block is a file, which is written to the folder
    python         is executed; an `output` block right behind it is what it prints
    console        holds commands, each behind `$ `, and what they print; runs end with their account where
                   the fence says `console account`; a line `^C…` interrupts the command above it, once it has
                   printed the lines before
    plan           has no mistakes: a whole file, or some statements
    anything else  is left alone

Times and random identities differ from run to run, so they are not compared; where a command names a message
that the page has shown before, it is run with the key that was really there. Blocks in HTML comments count as
well: they hold what a reader would have and need not see. The folder is shown as /home/ann/houses.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from tests.clocks import PATIENCE_SECONDS

ROOT = Path(__file__).parents[2]

_FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_TITLE = re.compile(r'title="([^"]+)"')
# Shells find the commands of this very environment, whatever is installed elsewhere.
_PRELUDE = 'aioflow() { "$PYTHON" -m aioflow "$@"; }\npython() { "$PYTHON" "$@"; }\n'
_CHANGING = (
    (re.compile(r"\b\d+\.\d+(?= ?s\b)"), "T"),  # 0.42 s
    (re.compile(r"\b\d+h \d\dm\b"), "T"),  # 1h 55m ago
    (re.compile(r"\b\d+\.\d{3}\b"), "T"),  # the times of explain --analyze
    # When a run began; the times of a schedule, after their weekdays, keep their offsets.
    (re.compile(r"(?<!^  \w{3} )\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[+-]\d\d:\d\d", re.MULTILINE), "WHEN"),
    (re.compile(r"\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\b"), "WHEN"),  # when a message was sent
    # The date of a mail.
    (re.compile(r"\b[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d [+-]\d{4}\b"), "DATE"),
    (re.compile(r"\b[0-9a-f]{32}\b"), "ID"),
    (re.compile(r"(?<=^REST interface: )\S+", re.MULTILINE), "ADDRESS"),
    (re.compile(r"(?<=shown only now: )\S+"), "TOKEN"),
    (re.compile(r"^(\$ aioflow outbox \w+ )?[0-9a-f]{8}\b", re.MULTILINE), r"\1KEY"),
)
# The short key of a message, where a line begins with it, or a command is about it.
_KEY = re.compile(r"^(?:\$ aioflow outbox \w+ )?([0-9a-f]{8})\b", re.MULTILINE)

# The folder of a page, where a command prints its path.
_SHOWN_FOLDER = "/home/ann/houses"
_INTERRUPT = "^C"

# A process for each page and each command, forked from one that has imported everything: importing takes
# longer than most commands, and what one page registers must not be there in another.
_PROCESSES = get_context("forkserver")
_PROCESSES.set_forkserver_preload(
    [
        *(__name__, "aioflow.cli.app", "aioflow.cli.commands.run", "aioflow.operators", "aioflow.testing"),
        *("aioflow.cli.commands.outbox", "aioflow.messages.email.channel", "aioflow.messages.outbox.service"),
        *(
            "aioflow.messages.content.sandbox",
            "aioflow.state.system_tables",
            "aioflow.state.sqlite.driver",
            "aioflow.web",
        ),
    ]
)


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    info: str
    text: str
    line: int
    start: int  # of the text, in the page
    follows: int | None = None  # the block that ends right before this one, by number

    @property
    def kind(self) -> str:
        return self.info.split()[0] if self.info.split() else ""

    @property
    def title(self) -> str | None:
        found = _TITLE.search(self.info)
        return found[1] if found else None


def blocks_of(page: str) -> list[Block]:
    """The fenced blocks of a page."""
    blocks: list[Block] = []
    end = -1
    for match in _FENCE.finditer(page):
        follows = len(blocks) - 1 if blocks and not page[end : match.start()].strip() else None
        line = page.count("\n", 0, match.start()) + 1
        blocks.append(Block(match["info"].strip(), match["text"], line, match.start("text"), follows))
        end = match.end()
    return blocks


@dataclass(frozen=True)
class Difference:
    """A block that is not as the page says; `actual` is what should stand there, if anything."""

    block: Block
    message: str
    actual: str | None = None


# --- a page -------------------------------------------------------------------------------------


class Page:
    """Runs the blocks of one page in a folder."""

    def __init__(self, path: Path, folder: Path) -> None:
        self.path = path
        self.text = path.read_text(encoding="utf-8")
        self.blocks = blocks_of(self.text)
        self._folder = folder
        self._worker: Connection | None = None
        self._printed: dict[int, str] = {}
        self._exit_code = 0
        self._accounts = False
        self._keys: dict[str, str] = {}  # of messages: as the page has them, and as they are now

    def differences(self) -> Iterator[Difference]:
        for number, block in enumerate(self.blocks):
            try:
                yield from self._run(number, block)
            except Exception as error:
                yield Difference(block, f"{type(error).__name__}: {error}")
        if self._worker is not None:
            self._worker.send(None)

    def updated(self, differences: list[Difference]) -> str:
        """The page with the actual outputs."""
        text = self.text
        for difference in reversed(differences):
            if difference.actual is not None:
                start, old = difference.block.start, difference.block.text
                text = text[:start] + self._as_shown(difference.actual) + text[start + len(old) :]
        return text

    def _as_shown(self, text: str) -> str:
        for shown, actual in self._keys.items():
            text = text.replace(actual, shown)
        return text

    def _run(self, number: int, block: Block) -> Iterator[Difference]:
        if block.title is not None:
            self._write(block, block.title)
        elif block.kind == "python":
            self._printed[number] = self._ask(block)
        elif block.kind == "output":
            yield from _compared(block, self._printed.pop(-1 if block.follows is None else block.follows))
        elif block.kind == "console":
            self._accounts = "account" in block.info.split()
            actual = "".join(self._commands(block))
            keys = (_KEY.findall(text) for text in (block.text, actual))
            self._keys = {**dict(zip(*keys, strict=False)), **self._keys}
            yield from _compared(block, actual)
        elif block.kind == "plan" and (mistakes := self._ask(block)):
            yield Difference(block, mistakes)

    def _write(self, block: Block, title: str) -> None:
        file = self._folder / title
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(block.text, encoding="utf-8")
        if file.suffix == ".py":
            compile(block.text, title, "exec")

    def _ask(self, block: Block) -> str:
        """Have the page's own process run a block; what it prints, or the mistakes in a plan."""
        if self._worker is None:
            self._worker, theirs = _PROCESSES.Pipe()
            arguments = (theirs, str(self._folder), str(self.path))
            _PROCESSES.Process(target=_work, args=arguments, daemon=True).start()
        self._worker.send((block.kind, block.text, block.line))
        if not self._worker.poll(PATIENCE_SECONDS):
            raise TimeoutError("the block takes too long")
        well, answer = self._worker.recv()
        if not well:
            raise RuntimeError(answer)
        return str(answer)

    def _commands(self, block: Block) -> Iterator[str]:
        """The commands of a block, each followed by what it prints."""
        lines = block.text.splitlines(keepends=True)
        for place, line in enumerate(lines):
            if line.startswith("$ "):
                command = line[2:]
                while command.endswith("\\\n"):
                    place += 1
                    command += lines[place]
                for shown, key in self._keys.items():
                    command = command.replace(shown, key)
                expected = list(takewhile(lambda each: not each.startswith("$ "), lines[place + 1 :]))
                before = [number for number, each in enumerate(expected) if each.startswith(_INTERRUPT)]
                printed = self._interrupted(command, before[0]) if before else self._output(command)
                printed = printed.replace(str(self._folder), _SHOWN_FOLDER)
                yield f"$ {command}{printed}" + ("" if not printed or printed.endswith("\n") else "\n")

    def _output(self, command: str) -> str:
        words = shlex.split(command, comments=True)
        if words[0] != "aioflow" or _needs_shell(command):
            return self._shell(command)
        with tempfile.NamedTemporaryFile() as file:
            arguments = (words[1:], str(self._folder), file.name, self._accounts)
            process = _PROCESSES.Process(target=_run_aioflow, args=arguments)
            process.start()
            process.join(PATIENCE_SECONDS)
            if process.exitcode is None:
                process.kill()
                raise TimeoutError(f"takes too long: {command}")
            self._exit_code = process.exitcode
            return file.read().decode()

    def _interrupted(self, command: str, lines: int) -> str:
        """What a command prints that is interrupted after some lines."""
        with subprocess.Popen(
            [sys.executable, "-m", *shlex.split(command)],
            cwd=self._folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env=_environment(self._folder),
            text=True,
        ) as process:
            assert process.stdout is not None
            limit = threading.Timer(PATIENCE_SECONDS, process.kill)
            limit.start()
            try:
                first = [process.stdout.readline() for _ in range(lines)]
                process.send_signal(signal.SIGINT)
                rest = process.stdout.read()
            finally:
                limit.cancel()
        self._exit_code = process.returncode
        return "".join((*first, _INTERRUPT, rest))

    def _shell(self, command: str) -> str:
        ended = subprocess.run(
            ["sh", "-c", f"{_PRELUDE}(exit {self._exit_code})\n{command}"],
            cwd=self._folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env=_environment(self._folder, self._accounts),
            text=True,
            timeout=PATIENCE_SECONDS,
        )
        self._exit_code = ended.returncode
        return ended.stdout


def _needs_shell(command: str) -> bool:
    """Whether there are pipes or redirections outside of quotes."""
    words = shlex.shlex(command, punctuation_chars=True)
    words.whitespace_split = True
    return any(set(word) <= set("|<>;&()") for word in words)


def _environment(folder: Path, accounts: bool = False) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AIOFLOW_")}
    ours = {"PYTHON": sys.executable, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
    ours["XDG_DATA_HOME"] = str(folder / ".data")
    ours |= {} if accounts else {"AIOFLOW_ACCOUNT": "false"}
    return {**kept, **ours, "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "100", "TERM": "dumb", "TZ": "UTC"}


def _compared(block: Block, actual: str) -> Iterator[Difference]:
    if comparable(block.text) != comparable(actual):
        yield Difference(block, f"expected:\n{block.text}\nfound:\n{actual}", actual)


def comparable(text: str) -> str:
    """A text without what differs from run to run, and without space at the ends of lines."""
    for pattern, replacement in _CHANGING:
        text = pattern.sub(replacement, text)
    return "\n".join(line.rstrip() for line in text.rstrip().splitlines())


# --- in other processes -------------------------------------------------------------------------


def _enter(folder: str, accounts: bool = False) -> None:
    warnings.simplefilter("error")
    os.environ.clear()
    os.environ.update(_environment(Path(folder), accounts))
    time.tzset()
    os.chdir(folder)
    sys.path.insert(0, folder)
    sys.dont_write_bytecode = True


def _run_aioflow(arguments: list[str], folder: str, output: str, accounts: bool) -> None:
    """Be the command: `aioflow` with these arguments, everything it prints going to a file."""
    _enter(folder, accounts)
    descriptor = os.open(output, os.O_WRONLY | os.O_APPEND)
    for standard in (1, 2):
        os.dup2(descriptor, standard)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    # The test runner may have put its own files there.
    sys.stdout = open(1, "w", encoding="utf-8", buffering=1, closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", buffering=1, closefd=False)  # noqa: SIM115
    from aioflow.cli.app import app

    app(arguments, prog_name="aioflow")


def _work(blocks: Connection, folder: str, page: str) -> None:
    """Execute Python blocks in one namespace, and check plans with what they registered."""
    _enter(folder)
    names: dict[str, Any] = {"__name__": "__main__"}
    while (block := blocks.recv()) is not None:
        kind, text, line = block
        try:
            answer = _execute(text, line, page, names) if kind == "python" else mistakes_in(text)
        except BaseException:
            blocks.send((False, traceback.format_exc()))
        else:
            blocks.send((True, answer))


def _execute(text: str, line: int, page: str, names: dict[str, Any]) -> str:
    # Empty lines in front make line numbers in tracebacks those of the page.
    code = compile("\n" * line + text, page, "exec")
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(code, names)
    return printed.getvalue()


# --- plans --------------------------------------------------------------------------------------


def mistakes_in(text: str, items: str = "") -> str:
    """What is wrong with a plan file, or with statements, whose inputs may be anything, beside some items."""
    from aioflow import Engine, PlanError, loads

    engine = Engine()
    try:
        if re.search(r"^\s*(PLAN|USE)\b", text, re.MULTILINE):
            found = engine.check(loads(text, folder="."))
        else:
            found = [each for each in engine.check(_around(text, items)) if each.severity == "error"]
    except PlanError as error:
        return str(error)
    return "\n".join(map(str, found))


def _around(statements: str, items: str) -> Any:
    """A program of some statements: what they do not produce is its input, what they do its output."""
    from aioflow import loads
    from aioflow.plan import InputDeclaration, Variable

    program = loads(f"{items}\nPLAN fragment\n{{\nBODY\n{{\n{statements}\n}}\n}}")
    parsed = program.main
    produced: dict[str, None] = {}
    read: dict[str, None] = {}
    signals: set[str] = set()
    for statement in parsed.statements:
        errors = [statement.errors] if isinstance(statement.errors, Variable) else []
        produced |= dict.fromkeys(each.name for each in (*statement.outputs, *errors) if each.name != "_")
        signals |= {each.name for each in (*statement.enable, *statement.done)}
        read |= dict.fromkeys(each.name for each in statement.arguments if isinstance(each, Variable))
        read |= dict.fromkeys(each.name for each in statement.wait)
    inputs = [InputDeclaration(name) for name in read if name not in produced and name not in signals]
    plan = replace(parsed, inputs=tuple(inputs), outputs=tuple(map(Variable, produced)))
    return replace(program, main=plan, plans=(plan,), folder=".")
