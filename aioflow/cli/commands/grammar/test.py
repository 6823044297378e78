"""`aioflow grammar test`: shows the records that a grammar extracts from sources, and what it skipped."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from aioflow.cli.commands.grammar.files import (
    CharsetName,
    FunctionModules,
    GrammarPath,
    ParseMemory,
    ParseTimeout,
    SolutionLimit,
    StartRule,
    excerpt,
    failure_text,
    parse_limits,
    place,
    read_grammar,
    read_source,
)
from aioflow.cli.commands.grammar.records import ShownRecords, records_of
from aioflow.cli.exit import FAILED, NOTHING_FOUND, OK, guarded, print_message
from aioflow.grammars import Grammar, ParsedSource, ParseError, ParseLimits
from aioflow.source import Source
from aioflow.values.quantities import count_text

_SHOWN_SKIPS = 3


@guarded
def grammar_test(
    grammar_path: GrammarPath,
    files: Annotated[list[str], typer.Argument(metavar="FILE…", help="Sources; `-` is stdin.")],
    start: StartRule = None,
    json: Annotated[bool, typer.Option("--json", help="JSON lines, also on a terminal.")] = False,
    charset: CharsetName = None,
    ops: FunctionModules = None,
    solutions: SolutionLimit = None,
    timeout: ParseTimeout = None,
    memory: ParseMemory = None,
) -> None:
    """Show the records that a grammar extracts from sources, their number, and what was skipped."""
    limits = parse_limits(solutions, timeout, memory)
    grammar = read_grammar(grammar_path, ops)
    start = grammar.start_rule(start)
    shown = ShownRecords(several=len(files) > 1, as_json=json)
    codes = [_test(grammar, start, read_source(path, charset), limits, shown) for path in files]
    shown.end()
    sys.exit(FAILED if FAILED in codes else max(codes))


def _test(grammar: Grammar, start: str, source: Source, limits: ParseLimits, shown: ShownRecords) -> int:
    try:
        parsed = grammar.parse(source.text, start, limits=limits)
    except ParseError as error:
        print_message("error", failure_text(source, error))
        return FAILED
    records = records_of(parsed)
    shown.add(source.name, records)
    for line in parsed.output.splitlines():
        print_message("printed", line)
    print_message(
        "note", f"{source.name}: {count_text(len(records), 'record')}; {skipped_text(parsed, source)}"
    )
    for line in _longest_skips(parsed, source):
        print_message("skipped", line)
    return OK if records else NOTHING_FOUND


def skipped_text(parsed: ParsedSource, source: Source) -> str:
    """Return how much of a source was skipped: `12 of 40 characters skipped (30 %), in 2 places`."""
    length = len(source.text)
    skipped = sum(end - start for start, end in parsed.skipped)
    if not skipped:
        return f"none of {count_text(length, 'character')} skipped"
    share = f"{100 * skipped / length:.0f} %"
    places = count_text(len(parsed.skipped), "place")
    return f"{skipped:,} of {count_text(length, 'character')} skipped ({share}), in {places}"


def _longest_skips(parsed: ParsedSource, source: Source) -> list[str]:
    longest = sorted(parsed.skipped, key=lambda span: span[0] - span[1])[:_SHOWN_SKIPS]
    return [
        f"{place(source, start)}: {count_text(end - start, 'character')}: {excerpt(source.text[start:end])}"
        for start, end in sorted(longest)
    ]
