"""`aioflow grammar explain`: where the best interpretation parts from the next one, and why it wins."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import typer

from aioflow.cli.commands.grammar.files import (
    CharsetName,
    FunctionModules,
    GrammarPath,
    ParseMemory,
    ParseTimeout,
    SolutionLimit,
    SourcePath,
    StartRule,
    failure_text,
    parse_limits,
    place,
    read_grammar,
    read_source,
)
from aioflow.cli.commands.grammar.records import plain_json, records_of
from aioflow.cli.exit import FAILED, for_terminal, guarded, print_message
from aioflow.cli.output.colour import shortened
from aioflow.errors import InputError
from aioflow.grammars import Grammar, Interpretation, ParseError, Parting, interpretations, parting
from aioflow.grammars.characters import ANY, FALLBACK_SPECIFICITY
from aioflow.grammars.checking import items_within
from aioflow.grammars.syntax import Terminals
from aioflow.source import Source, Span
from aioflow.values.display import visible
from aioflow.values.quantities import count_text

_LINE_AND_COLUMN = re.compile(r"(\d+):(\d+)")
_LONGEST_SHOWN = 100
_COMPARED = 6


@guarded
def grammar_explain(
    grammar_path: GrammarPath,
    file: SourcePath,
    start: StartRule = None,
    at: Annotated[
        str | None,
        typer.Option(
            "--at",
            metavar="OFFSET|LINE:COLUMN",
            help="Compare with the best interpretation that reads this place otherwise.",
        ),
    ] = None,
    charset: CharsetName = None,
    ops: FunctionModules = None,
    solutions: SolutionLimit = None,
    timeout: ParseTimeout = None,
    memory: ParseMemory = None,
) -> None:
    """Tell why one interpretation of a source wins over the next one: where they part, and by which sets."""
    limits = parse_limits(solutions, timeout, memory)
    grammar = read_grammar(grammar_path, ops)
    source = read_source(file, charset)
    offset = None if at is None else _offset(at, source)
    try:
        found = interpretations(grammar, source.text, start, _COMPARED, limits, offset)
        if offset is None and _are_alike(found):
            by_size = interpretations(grammar, source.text, start, 2, limits, len(source.text))
            found = by_size if len(by_size) > 1 else found
    except ParseError as error:
        print_message("error", failure_text(source, error))
        sys.exit(FAILED)
    lines = _only(source, offset) if len(found) == 1 else _explained(grammar, source, found)
    print(for_terminal("\n".join(lines), sys.stdout))


def _are_alike(found: Sequence[Interpretation]) -> bool:
    """Return whether interpretations differ in nothing but the written order."""
    first = records_of(found[0].parsed)
    return all(each.sizes == found[0].sizes and records_of(each.parsed) == first for each in found)


def _offset(text: str, source: Source) -> int:
    found = _LINE_AND_COLUMN.fullmatch(text)
    if found is None and not text.isdecimal():
        raise InputError(f"--at {text}: expected an offset like 120, or a line and column like 3:7")
    if found is None:
        offset = int(text)
    else:
        lines = source.text.split("\n")
        line, column = int(found[1]), int(found[2])
        if not (0 < line <= len(lines) and 0 < column <= len(lines[line - 1]) + 1):
            raise InputError(f"--at {text}: {source.name} has no such place; it has {len(lines):,} lines")
        offset = sum(len(each) + 1 for each in lines[: line - 1]) + column - 1
    if offset >= len(source.text):
        raise InputError(f"--at {text}: {source.name} has only {count_text(len(source.text), 'character')}")
    return offset


def _only(source: Source, offset: int | None) -> Iterator[str]:
    if offset is None:
        yield f"{source.name}: only one interpretation covers the source"
    else:
        yield f"{source.name}: every interpretation reads the source alike up to {place(source, offset)}"


def _explained(grammar: Grammar, source: Source, found: Sequence[Interpretation]) -> Iterator[str]:
    best = found[0]
    records = records_of(best.parsed)
    # A runner-up with the same records tells nothing, if there is another.
    number = next((n for n, each in enumerate(found) if records_of(each.parsed) != records), 1)
    other = found[number]
    parted = parting(best, other)
    if parted.sizes[0] != parted.sizes[1]:
        yield f"{_where(source, parted.offset)} the winner parts from the runner-up:"
        yield Span(source, parted.offset, parted.offset + 1).excerpt
        yield from _terminals(grammar, source, parted)
        yield "The smaller set wins at the first character whose sets differ in size, whatever follows."
    else:
        yield from _by_order(source, best, other)
    yield from _results(records, records_of(other.parsed))
    if number > 1:
        yield f"{count_text(number - 1, 'interpretation')} with the winner's records left out."


def _by_order(source: Source, best: Interpretation, other: Interpretation) -> Iterator[str]:
    yield f"{source.name}: sets of the same sizes match all characters, so the written order decides:"
    yield "the first alternative, an option taken, a repetition continued, inner ones first, a rule begun."
    pairs = enumerate(zip(best.rules, other.rules, strict=True))
    offset = next((place for place, rules in pairs if rules[0] != rules[1]), None)
    if offset is not None:
        yield f"{_where(source, offset)} their rules differ first:"
        yield Span(source, offset, offset + 1).excerpt
        yield f"  winner     in the rule '{best.rules[offset]}'"
        yield f"  runner-up  in the rule '{other.rules[offset]}'"


def _where(source: Source, offset: int) -> str:
    line, column = source.position(offset)
    return f"{source.name}:{line}:{column}: at offset {offset:,}"


def _terminals(grammar: Grammar, source: Source, parted: Parting) -> Iterator[str]:
    character = source.text[parted.offset]
    names = [
        _terminal(grammar, character, size, rule)
        for size, rule in zip(parted.sizes, parted.rules, strict=True)
    ]
    width = max(map(len, names))
    for who, name, size, rule in zip(("winner", "runner-up"), names, parted.sizes, parted.rules, strict=True):
        counted = "larger than all" if size == FALLBACK_SPECIFICITY else count_text(size, "character")
        yield f"  {who:<9}  {name:<{width}}  {counted}, in the rule '{rule}'"


def _terminal(grammar: Grammar, character: str, size: int, rule: str) -> str:
    """Return a terminal as it is written in the rule; those of one size that match alike are joined."""
    if size == FALLBACK_SPECIFICITY:
        return "skipped"
    if size == ANY.size:
        return "."
    texts = [
        each.text
        for each in items_within(grammar.rules[rule].body)
        if isinstance(each, Terminals)
        and any(one.size == size and ord(character) in one for one in each.sets)
    ]
    if size == 1:
        texts = [repr(visible(text)) for text in texts]
    written = " or ".join(dict.fromkeys(texts)) or "a class"
    return f"{character!r} of {written}" if size == 1 else written


def _results(ours: Sequence[dict[str, Any]], theirs: Sequence[dict[str, Any]]) -> Iterator[str]:
    if ours == theirs:
        yield "Both give the same records."
        return
    pairs = enumerate(zip(ours, theirs, strict=False))
    number = next((n for n, pair in pairs if pair[0] != pair[1]), min(len(ours), len(theirs)))
    yield f"They differ first in record {number + 1:,}:"
    both = [records[number] if number < len(records) else None for records in (ours, theirs)]
    for who, record, records in zip(("winner", "runner-up"), both, (ours, theirs), strict=True):
        yield f"  {who:<9}  {_shown(record, both)} ({count_text(len(records), 'record')} in all)"


def _shown(record: dict[str, Any] | None, both: Sequence[dict[str, Any] | None]) -> str:
    """Return the values of a record that are not the same in both."""
    if record is None:
        return "none"
    one, other = ({} if each is None else each for each in both)
    differing = {name: value for name, value in record.items() if one.get(name) != other.get(name)}
    return shortened(plain_json(differing), _LONGEST_SHOWN)
