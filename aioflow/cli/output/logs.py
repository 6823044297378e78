"""Logs of a command: on stderr what `log` statements write and warnings, with -v and -vv more; in a file all.

The library only writes to loggers; that anything is shown is arranged here.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Final

import msgspec

from aioflow.cli.exit import os_error_text, print_message
from aioflow.config.masking import mask
from aioflow.config.secrets import Secrets
from aioflow.errors import InputError
from aioflow.values.display import visible, visible_json

if TYPE_CHECKING:
    from aioflow.cli.output.progress import ProgressDisplay

REQUESTS: Final = "aioflow.web.requests"
STATEMENTS: Final = "aioflow.log"
MESSAGES: Final = "aioflow.messages"
# The command itself prints these on stderr anyway; the log is for the file.
COMMAND: Final = "aioflow.cli"
_TOLD_ANYWAY: Final = (COMMAND, "aioflow.engine.warnings")


class LogOptions(msgspec.Struct, frozen=True):
    """The options of the command line for logs; `verbose` counts the -v, `quiet` shows warnings only."""

    verbose: int = 0
    file: str | None = None
    format: str = "text"
    quiet: bool = False

    @property
    def level(self) -> int:
        """The least level that is shown of most loggers."""
        if self.verbose:
            return logging.INFO if self.verbose < 2 else logging.DEBUG
        return logging.WARNING if self.quiet else logging.INFO


class CommandLog:
    """The log of a command; `progress` is what stands on the terminal meanwhile, if anything."""

    def __init__(self) -> None:
        self.progress: ProgressDisplay | None = None


@contextmanager
def logged(options: LogOptions | None = None) -> Iterator[CommandLog]:
    """Show the log meanwhile, unless a module of the user has arranged for that; -v shows it anyway."""
    # Functions of users may know secrets that aioflow did not look up.
    Secrets().conceal_all()
    options = options or LogOptions()
    log = CommandLog()
    with ExitStack() as stack:
        if options.file is not None:
            stack.enter_context(
                _handled(_file_handler(options.file, options.format), {"aioflow": logging.DEBUG})
            )
        is_arranged = logging.getLogger().handlers or _others(logging.getLogger("aioflow"))
        if options.verbose or not is_arranged:
            handler = _StandardError(log, options)
            stack.enter_context(_handled(handler, handler.levels))
        yield log


def _others(logger: logging.Logger) -> bool:
    """Return whether the logger has handlers of other origin."""
    return any(not isinstance(handler, _LogFile) for handler in logger.handlers)


@contextmanager
def _handled(handler: logging.Handler, levels: dict[str, int]) -> Iterator[None]:
    """Have a handler get what is logged; loggers that show more already go on to."""
    loggers = {logging.getLogger(name): level for name, level in levels.items()}
    before = {logger: logger.level for logger in loggers}
    for logger, level in loggers.items():
        logger.setLevel(min(level, logger.level or level))
    logging.getLogger("aioflow").addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger("aioflow").removeHandler(handler)
        handler.close()
        for logger, level in before.items():
            logger.setLevel(level)


# --- stderr -------------------------------------------------------------------------------------


class _StandardError(logging.Handler):
    """Lines as `web: GET …`, above the progress display if there is one."""

    def __init__(self, log: CommandLog, options: LogOptions) -> None:
        super().__init__()
        self._log = log
        self.levels = {"aioflow": options.level}
        if options.verbose:
            self.levels |= dict.fromkeys((REQUESTS, STATEMENTS, MESSAGES), logging.DEBUG)
        if options.format == "json":
            self.setFormatter(_JsonFormatter())
        self._is_json = options.format == "json"

    def emit(self, record: logging.LogRecord) -> None:
        # A log file may have its loggers tell more than is wanted here.
        if record.name in _TOLD_ANYWAY or record.levelno < self.levels.get(
            record.name, self.levels["aioflow"]
        ):
            return

        def write() -> None:
            text, is_terminal = self.format(record), sys.stderr.isatty()
            if self._is_json:
                print(visible_json(text) if is_terminal else text, file=sys.stderr)
            else:
                # A line end in a value must not make it look like another line of the log.
                has_trace = record.exc_info or record.stack_info
                print_message(_label(record), visible(text) if is_terminal and not has_trace else text)
            sys.stderr.flush()

        if self._log.progress is None:
            write()
        else:
            self._log.progress.aside(write)


def _label(record: logging.LogRecord) -> str:
    """Return the level of a warning or error, `log` for an ordinary line, `web` for a detail of
    `aioflow.web`.
    """
    if record.levelno > logging.INFO:
        return record.levelname.lower()
    part = record.name.partition(".")[2].partition(".")[0]
    return part if part and record.levelno < logging.INFO else "log"


# --- a file -------------------------------------------------------------------------------------


class _LogFile(logging.FileHandler):
    """A file to which everything is added."""


def _file_handler(path: str, format: str) -> _LogFile:
    try:
        handler = _LogFile(path, encoding="utf-8")
    except OSError as error:
        error.filename = path
        raise InputError(f"cannot write the log: {os_error_text(error)}") from error
    handler.setFormatter(_JsonFormatter() if format == "json" else _TextFormatter())
    return handler


def _moment(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created).astimezone().isoformat(timespec="milliseconds")


class _TextFormatter(logging.Formatter):
    """`2026-01-31T12:00:00.000+01:00 DEBUG aioflow.web.requests GET …`."""

    def format(self, record: logging.LogRecord) -> str:
        return mask(f"{_moment(record)} {record.levelname} {record.name} {super().format(record)}")


class _JsonFormatter(logging.Formatter):
    """An object a line."""

    def format(self, record: logging.LogRecord) -> str:
        entry = {
            "time": _moment(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": mask(super().format(record)),
        }
        return json.dumps(entry, ensure_ascii=False)
