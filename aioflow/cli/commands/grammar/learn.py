"""`aioflow grammar learn`: proposes a grammar from a few marked records of a page."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from aioflow.cli.commands.grammar.files import CharsetName, read_source
from aioflow.cli.commands.grammar.test import skipped_text
from aioflow.cli.exit import for_terminal, guarded, os_error_text, print_message
from aioflow.cli.inputs import parsed_json, row_of
from aioflow.cli.output.colour import shortened
from aioflow.cli.output.formats import Columns
from aioflow.errors import InputError
from aioflow.grammars import LearnedGrammar, learn
from aioflow.values.quantities import count_text

_WIDTH = 100


@guarded
def grammar_learn(
    page: Annotated[str, typer.Argument(metavar="PAGE", help="A page with records; `-` is stdin.")],
    example: Annotated[
        list[str],
        typer.Option(
            "--example",
            metavar="JSON",
            help="The values of one record as they stand on the page, in that order; once for each record.",
        ),
    ],
    output: Annotated[
        str | None, typer.Option("-o", metavar="GRAMMAR", help="Write the grammar to a file, not to stdout.")
    ] = None,
    rows: Annotated[
        int, typer.Option("--rows", min=0, metavar="N", help="Show so many records, spread over all (10).")
    ] = 10,
    charset: CharsetName = None,
) -> None:
    """Propose a grammar from a few marked records; show what it extracts, and where it is unsure."""
    examples = [_example(number, text) for number, text in enumerate(example, 1)]
    source = read_source(page, charset)
    learned = learn(source.text, examples)
    if output is None:
        print(for_terminal(learned.text, sys.stdout), end="", flush=True)
    else:
        _write(output, learned.text)
    print(_table(learned, rows), end="", file=sys.stderr)
    count = count_text(len(learned.records), "record")
    print_message("note", f"{source.name}: {count}; {skipped_text(learned.parsed, source)}")
    for doubt in learned.doubts:
        print_message("unsure", doubt)
    if output is not None:
        print_message("note", f"wrote {output}")


def _example(number: int, text: str) -> dict[str, Any]:
    where = f"--example {number}"
    row_of(parsed_json(text, where), where)
    # Numbers stay as they are written: 399.50 is not 399.5.
    content: dict[str, Any] = json.loads(text, parse_float=str, parse_int=str)
    return content


def _write(path: str, text: str) -> None:
    try:
        Path(path).write_text(text, encoding="utf-8")
    except (OSError, ValueError) as error:
        said = os_error_text(error) if isinstance(error, OSError) else f"{error}: {path!r}"
        raise InputError(f"cannot write grammar: {said}") from error


def _table(learned: LearnedGrammar, most: int) -> str:
    names = list(dict.fromkeys(name for record in learned.records for name in record))
    count = len(learned.records)
    if not names or not most:
        return ""
    numbers = sorted({round(place * (count - 1) / max(1, most - 1)) for place in range(min(most, count))})
    if count <= most:
        numbers = list(range(count))
    width = shutil.get_terminal_size().columns if sys.stderr.isatty() else None
    room = (width or _WIDTH) // 2
    lines = [
        [str(number + 1), *(shortened(learned.records[number].get(name) or "", room) for name in names)]
        for number in numbers
    ]
    columns = Columns(["record", *names], lines, width)
    return columns.header() + "".join(columns.line(line) for line in lines)
