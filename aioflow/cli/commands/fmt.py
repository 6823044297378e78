"""`aioflow fmt`: formats plans, or shows as a unified difference what formatting would change.

difflib alone takes quadratic time for a text whose lines repeat, as those of plans do. Here a text and its
formatted form are compared statement by statement: both have the same statements, in the same order.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Annotated, Literal

import typer

from aioflow.cli.exit import BAD_INPUT, FAILED, OK, for_terminal, guarded, has_colours, report
from aioflow.cli.output.destination import replace_file
from aioflow.errors import AioflowError
from aioflow.language import format_text
from aioflow.language.loader import read_plan_file
from aioflow.language.parser import read_text
from aioflow.language.scanner import plain_text
from aioflow.plan import Plan


@guarded
def fmt(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE", help="Plan files; - formats stdin to stdout.")
    ],
    check: Annotated[
        bool, typer.Option("--check", help="Change nothing; show what would, and exit 1 if any.")
    ] = False,
) -> None:
    """Format plans in place."""
    sys.exit(format_files(files, check_only=check))


def format_files(paths: Sequence[str], *, check_only: bool) -> int:
    """Format files in place, or show what would change; return the exit code."""
    changed = mistakes = False
    for path in paths:
        try:
            changed = _format_file(path, check_only=check_only) or changed
        except AioflowError as error:
            report(error)
            mistakes = True
    return BAD_INPUT if mistakes else FAILED if changed and check_only else OK


def _format_file(path: str, *, check_only: bool) -> bool:
    content = sys.stdin.buffer.read() if path == "-" else read_plan_file(path)
    after = format_text(content, "<stdin>" if path == "-" else path)
    before = content.decode()
    if check_only:
        if after != before:
            _show_difference(path, before, after)
    elif path == "-":
        sys.stdout.write(after)
    elif after != before:
        replace_file(path, after)
    return after != before


def _show_difference(path: str, before: str, after: str) -> None:
    codes = {"+": "32", "-": "31", "@": "36"}
    lines = list(unified_difference(before, after, path, f"{path} (formatted)"))
    for each in lines or [f"{path}: only its line ends, or a byte order mark, would change"]:
        line = for_terminal(each, sys.stdout)
        code = codes.get(line[:1]) if has_colours(sys.stdout) else None
        print(f"\x1b[{code}m{line}\x1b[0m" if code else line)


Tag = Literal["replace", "delete", "insert", "equal"]
Opcode = tuple[Tag, int, int, int, int]
_TAGS: tuple[Tag, ...] = ("equal", "replace", "equal")


def unified_difference(before: str, after: str, name: str, new_name: str) -> Iterator[str]:
    """Yield the lines of the difference between a text and its formatted form."""
    before = plain_text(before)
    old, new = _split(before), _split(after)
    groups = list(_Aligned(old, new, _anchors(before, after)).get_grouped_opcodes())
    if groups:
        yield f"--- {name}"
        yield f"+++ {new_name}"
    for group in groups:
        first, last = group[0], group[-1]
        yield f"@@ -{_range(first[1], last[2])} +{_range(first[3], last[4])} @@"
        for tag, start, end, new_start, new_end in group:
            if tag == "equal":
                yield from (f" {line}" for line in old[start:end])
            else:
                yield from (f"-{line}" for line in old[start:end])
                yield from (f"+{line}" for line in new[new_start:new_end])


def _split(text: str) -> list[str]:
    """Return the lines of a text as an editor counts them; `str.splitlines` knows more line ends."""
    return text.removesuffix("\n").split("\n") if text else []


def _range(start: int, end: int) -> str:
    """Return a range as a unified difference writes it: from 1, an empty one after the line before it."""
    return f"{start + (end > start)},{end - start}"


def _anchors(before: str, after: str) -> list[tuple[int, int]]:
    """Return the lines, counted from 0, on which the same item or statement begins in both texts."""
    found = [(0, 0)]
    for here, there in zip(_lines(before), _lines(after), strict=True):
        # Of several on one line the first counts. A comment may have moved to before its statement.
        if here > found[-1][0] and there > found[-1][1]:
            found.append((here, there))
    return found


def _lines(text: str) -> list[int]:
    plan_file, _ = read_text(text, "", contents=False)
    spans = []
    for entry in plan_file.entries:
        spans.append(entry.span)
        spans += [each.span for each in entry.statements] if isinstance(entry, Plan) else []
    return [span.line - 1 for span in spans if span is not None]


class _Aligned(SequenceMatcher[str]):
    """Two lists of lines, cut at the same statements; the standard library groups the differences."""

    def __init__(self, old: Sequence[str], new: Sequence[str], cuts: Sequence[tuple[int, int]]) -> None:
        super().__init__(None, [], [])
        self._cuts = [*cuts, (len(old), len(new))]
        self._old, self._new = old, new

    def get_opcodes(self) -> list[Opcode]:
        found: list[Opcode] = []
        for (start, new_start), (end, new_end) in pairwise(self._cuts):
            old, new = self._old[start:end], self._new[new_start:new_end]
            first = _common(old, new)
            last = _common(old[first:][::-1], new[first:][::-1])
            cuts = ((0, 0), (first, first), (len(old) - last, len(new) - last), (len(old), len(new)))
            for tag, (one, other) in zip(_TAGS, pairwise(cuts), strict=True):
                if one != other:
                    places = (start + one[0], start + other[0], new_start + one[1], new_start + other[1])
                    _append(found, (tag, *places))
        return found


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """Return how many lines are the same at the beginning."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((number for number, (a, b) in pairs if a != b), min(len(one), len(other)))


def _append(found: list[Opcode], code: Opcode) -> None:
    """Add a stretch of lines; join it with the last one if both are of the same kind."""
    if found and found[-1][0] == code[0]:
        _, start, _, new_start, _ = found.pop()
        code = (code[0], start, code[2], new_start, code[4])
    found.append(code)
