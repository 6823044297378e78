"""Grammars and sources from files, and the options that the commands of `aioflow grammar` share."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from aioflow.cli.exit import os_error_text
from aioflow.errors import InputError, PlanError, SettingError
from aioflow.grammars import Grammar, GrammarError, ParseError, ParseLimits, compile
from aioflow.source import Source
from aioflow.values.display import visible
from aioflow.values.quantities import byte_count, count_text, seconds
from aioflow.wrappers.charsets import decode

GRAMMAR_HELP = "A file of rules, `.jedi`, or a GRAMMAR item of a plan file: `shop.plan:goods`."
GrammarPath: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="GRAMMAR",
        help="A file of rules, `.jedi`, or a GRAMMAR item of a plan file: `shop.plan:goods`.",
    ),
]
SourcePath: TypeAlias = Annotated[str, typer.Argument(metavar="FILE", help="A source; `-` is stdin.")]
StartRule: TypeAlias = Annotated[
    str | None,
    typer.Option("--start", metavar="RULE", help="The rule to begin with, unless no other rule calls it."),
]
CharsetName: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--charset", metavar="NAME", help="The charset of sources, such as latin-1, if they do not say it."
    ),
]
FunctionModules: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--ops", metavar="MODULE", help="A module with functions that the grammar calls."),
]
SolutionLimit: TypeAlias = Annotated[
    int | None,
    typer.Option("--solutions", min=1, metavar="N", help="Most interpretations followed at once (2000)."),
]
ParseTimeout: TypeAlias = Annotated[
    str | None,
    typer.Option("--timeout", metavar="TIME", help="Most time for one source: 90s, 5m (60s)."),
]
ParseMemory: TypeAlias = Annotated[
    str | None,
    typer.Option("--memory", metavar="SIZE", help="Most memory of the matcher: 64MB, 2GB (1GB)."),
]

_ITEM = re.compile(r"(?P<path>.+\.plan)(?::(?P<name>[\w-]+))?")


def read_grammar(path: str, modules: Sequence[str] | None = None) -> Grammar:
    """Return the grammar of a file of rules, or of an item of a plan file; a PlanError has its mistakes."""
    if item := _ITEM.fullmatch(path):
        return _grammar_of_item(item["path"], item["name"], modules or ())
    try:
        text = Path(path).read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise InputError(f"cannot read grammar: {os_error_text(error)}") from error
    except (UnicodeDecodeError, ValueError) as error:
        raise InputError(f"cannot read grammar: {path!r} is not UTF-8 text") from error
    try:
        return compile(text, _functions(modules or ()), path)
    except GrammarError as error:
        raise PlanError(error.errors) from None


def _grammar_of_item(path: str, name: str | None, modules: Sequence[str]) -> Grammar:
    from aioflow.cli.program import load_modules, load_program
    from aioflow.grammars.items import ITEM, find_grammar

    program = load_program(path, None, load_modules(modules), any_plan=True)
    if name is None:
        names = [each.name for each in program.items if each.kind.upper() == ITEM]
        if len(names) != 1:
            choice = f"; name one: {path}:{names[0]}" if names else ""
            raise InputError(f"{path} has {count_text(len(names), 'grammar')}{choice}")
        (name,) = names
    try:
        return find_grammar(name, program).grammar()
    except SettingError as error:
        raise InputError(f"{path}: {error}") from None
    except GrammarError as error:
        raise PlanError(error.errors) from None


def _functions(modules: Sequence[str]) -> dict[str, Callable[..., Any]]:
    found: dict[str, Callable[..., Any]] = {}
    for name in modules:
        try:
            module = import_module(name)
        except ImportError as error:
            raise InputError(f"cannot import --ops {name}: {error}") from error
        members = {each: value for each, value in vars(module).items() if not each.startswith("_")}
        found |= {each: value for each, value in members.items() if callable(value)}
    return found


def read_source(path: str, charset: str | None = None) -> Source:
    """Return the text of a file, or of stdin, with the name to show for it."""
    try:
        body = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except (OSError, ValueError) as error:
        text = os_error_text(error) if isinstance(error, OSError) else f"{error}: {path!r}"
        raise InputError(f"cannot read source: {text}") from error
    return Source("<stdin>" if path == "-" else path, decode(body, charset=charset))


def parse_limits(solutions: int | None, timeout: str | None, memory: str | None) -> ParseLimits:
    """Return the limits of the options; those that are not given are the library's."""
    usual = ParseLimits()
    return ParseLimits(
        live_solutions=usual.live_solutions if solutions is None else solutions,
        seconds=usual.seconds if timeout is None else seconds(timeout),
        memory_bytes=usual.memory_bytes if memory is None else byte_count(memory),
    )


def place(source: Source, offset: int) -> str:
    """`line 3, column 7`, of an offset."""
    line, column = source.position(min(offset, len(source.text)))
    return f"line {line:,}, column {column:,}"


def excerpt(text: str, most: int = 60) -> str:
    """Return a text in quotes on one line, with its middle left out if it is long."""
    if len(text) > most:
        half = (most - 3) // 2
        text = f"{text[:half]} … {text[-half:]}"
    return repr(visible(text))


def failure_text(source: Source, error: ParseError) -> str:
    """Return what kept a source from being parsed, and where: `page.html:3:7: …`."""
    line, column = source.position(min(error.offset, len(source.text)))
    text = error.message.replace(f", at offset {error.offset:,}", "")
    rule = f" in the rule '{error.rule}'" if error.rule and f"the rule '{error.rule}'" not in text else ""
    return f"{source.name}:{line}:{column}: {text}, at offset {error.offset:,}{rule}"
