"""`aioflow grammar debug`: a page that shows what matched, what was bound, and what was skipped."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from aioflow.cli.commands.grammar.files import (
    GRAMMAR_HELP,
    CharsetName,
    FunctionModules,
    ParseMemory,
    ParseTimeout,
    SolutionLimit,
    SourcePath,
    StartRule,
    failure_text,
    parse_limits,
    read_grammar,
    read_source,
)
from aioflow.cli.exit import FAILED, OK, guarded, os_error_text, print_message
from aioflow.errors import InputError
from aioflow.grammars import ParsedSource, ParseError, debug_page


@guarded
def grammar_debug(
    file: SourcePath,
    grammar_path: Annotated[str, typer.Option("--grammar", metavar="GRAMMAR", help=GRAMMAR_HELP)],
    start: StartRule = None,
    output: Annotated[
        str | None,
        typer.Option("-o", metavar="PAGE", help="The page to write; by default FILE with .debug.html."),
    ] = None,
    charset: CharsetName = None,
    ops: FunctionModules = None,
    solutions: SolutionLimit = None,
    timeout: ParseTimeout = None,
    memory: ParseMemory = None,
) -> None:
    """Write a page that shows a source with what rules matched, what was bound, and what was skipped."""
    limits = parse_limits(solutions, timeout, memory)
    grammar = read_grammar(grammar_path, ops)
    start = grammar.start_rule(start)
    source = read_source(file, charset)
    parsed: ParsedSource | None = None
    failure: ParseError | None = None
    try:
        parsed = grammar.parse(source.text, start, limits=limits, traces=True)
    except ParseError as error:
        failure = error
    path = output or ("stdin.debug.html" if file == "-" else f"{file}.debug.html")
    _write(path, debug_page(grammar, source, parsed, failure))
    if failure is not None:
        print_message("error", failure_text(source, failure))
        print_message("note", f"{path} shows the place")
    else:
        print_message("note", f"wrote {path}")
    sys.exit(OK if failure is None else FAILED)


def _write(path: str, page: str) -> None:
    try:
        Path(path).write_text(page, encoding="utf-8", errors="replace")
    except (OSError, ValueError) as error:
        text = os_error_text(error) if isinstance(error, OSError) else f"{error}: {path!r}"
        raise InputError(f"cannot write page: {text}") from error
