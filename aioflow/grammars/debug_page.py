"""A page of HTML that shows a source with what its rules matched, what was bound, and what was skipped.

The page needs no network and no other file. Its script only adds hints and keys.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any, Literal, TypeAlias

import msgspec

from aioflow.grammars.debug_style import CSS, SCRIPT
from aioflow.grammars.errors import ParseError
from aioflow.grammars.grammar import Grammar, ParsedSource
from aioflow.grammars.replay import BoundSpan, RuleMatch, SourceSpan
from aioflow.source import Source
from aioflow.values.display import visible_lines

SHOWN_CHARACTERS = 4_000_000
# Browsers flatten documents of more than 512 levels.
DEEPEST_SHOWN = 64
_LINES_A_BLOCK = 100
_LONGEST_LINE = 4000
_LONGEST_VALUE = 120
_GOLDEN_ANGLE = 137.5
_FIRST_HUE = 210

_Kind: TypeAlias = Literal["rule", "variable", "skipped"]
_CLASSES: Mapping[_Kind, str] = {"rule": "r", "variable": "v", "skipped": "k"}


class _Mark(msgspec.Struct, frozen=True, eq=False):
    """A part of the source that is drawn in a colour."""

    kind: _Kind
    name: str
    start: int
    end: int
    is_record: bool = False
    value: Any = None


class _Edge(msgspec.Struct, frozen=True):
    """A mark begins or ends at an offset."""

    offset: int
    mark: _Mark
    opens: bool


def debug_page(
    grammar: Grammar, source: Source, parsed: ParsedSource | None, failure: ParseError | None = None
) -> str:
    """Return a page about a parse with traces, or about the failure of one."""
    edges = list(_edges_of(parsed, min(len(source.text), SHOWN_CHARACTERS)))
    legend = _Legend([each.mark for each in edges if each.opens])
    text = "".join(_Pages(source, legend, failure).blocks(edges))
    style = CSS + legend.style()
    policy = f"default-src 'none'; style-src {_hashed(style)}; script-src {_hashed(SCRIPT)}"
    title = escape(visible_lines(f"{source.name} by {grammar.source.name}"))
    head = (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width">\n'
        f"<title>{title}</title><style>{style}</style></head>\n"
    )
    body = [
        f"<body><header><h1>{title}</h1>\n{_summary(source, parsed, failure)}{legend.html()}</header>",
        f'<main tabindex="-1">{text}</main>',
        _details("Grammar", grammar.source.text)
        + _details("Printed by code", parsed.output if parsed else ""),
        '<footer id="where" aria-live="polite"></footer>',
        f"<script>{SCRIPT}</script></body></html>\n",
    ]
    return head + "\n".join(body)


def _hashed(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{b64encode(digest).decode()}'"


def _summary(source: Source, parsed: ParsedSource | None, failure: ParseError | None) -> str:
    length = len(source.text)
    lines = source.position(length)[0]
    said = [f"{length:,} characters on {lines:,} lines"]
    if parsed is not None:
        skipped = sum(end - start for start, end in parsed.skipped)
        said.append(f"{skipped:,} skipped ({100 * skipped / max(1, length):.0f} %)")
    if length > SHOWN_CHARACTERS:
        said.append(f"the first {SHOWN_CHARACTERS:,} are shown")
    if parsed is not None and _is_too_deep(parsed.match):
        said.append(f"rules more than {DEEPEST_SHOWN} levels deep are not drawn")
    text = f"<p>{'; '.join(said)}</p>\n"
    if failure is not None:
        line, column = source.position(min(failure.offset, length))
        message = escape(visible_lines(f"Line {line:,}, column {column:,}: {failure.message}"))
        text += f'<p class="failure" role="alert">{message} <a href="#failure">Go there</a></p>\n'
    return text


def _details(title: str, text: str) -> str:
    return f"<details><summary>{title}</summary><pre>{_safe(text)}</pre></details>" if text else ""


def _safe(text: str) -> str:
    """Return a text for HTML; control characters and marks of direction are shown by their codes."""
    return escape(visible_lines(text))


# --- marks --------------------------------------------------------------------------------------


def _edges_of(parsed: ParsedSource | None, length: int) -> Iterator[_Edge]:
    if parsed is None or parsed.match is None:
        return
    match = parsed.match
    before = [span for span in match.skipped if span[1] <= match.start]
    after = [span for span in match.skipped if span[0] >= match.end]
    yield from _skips(before)
    for edge in _edges(match, 0):
        if edge.offset > length:
            edge = _Edge(length, edge.mark, edge.opens)
        yield edge
    yield from _skips(after)


def _skips(spans: list[SourceSpan]) -> Iterator[_Edge]:
    for start, end in spans:
        mark = _Mark("skipped", "skipped", start, end)
        yield _Edge(start, mark, True)
        yield _Edge(end, mark, False)


def _edges(match: RuleMatch, depth: int) -> Iterator[_Edge]:
    """Yield the edges of a rule and of all inside, in the order of the source."""
    own = _Mark("rule", match.rule, match.start, match.end)
    yield _Edge(match.start, own, True)
    around: list[_Mark] = []
    for item in _items(match):
        start, end = item if isinstance(item, tuple) else (item.start, item.end)
        while around and (around[-1].end < start or (around[-1].end == start < end)):
            closed = around.pop()
            yield _Edge(closed.end, closed, False)
        if isinstance(item, tuple):
            yield from _skips([item])
        elif isinstance(item, RuleMatch):
            if depth < DEEPEST_SHOWN:
                yield from _edges(item, depth + 1)
        else:
            mark = _bound(item, is_record=item.collects and not depth)
            yield _Edge(mark.start, mark, True)
            around.append(mark)
    for closed in reversed(around):
        yield _Edge(closed.end, closed, False)
    yield _Edge(match.end, own, False)


def _items(match: RuleMatch) -> list[RuleMatch | BoundSpan | SourceSpan]:
    """Return what stands directly in a rule by its place, what is around before what is inside."""
    ranked: list[tuple[tuple[int, bool, int, int], RuleMatch | BoundSpan | SourceSpan]] = []
    # Of bindings around each other, the outer one ends last.
    for number, bound in enumerate(reversed(match.bindings)):
        ranked.append(((bound.start, bound.end > bound.start, -bound.end, number), bound))
    last = len(match.bindings)
    for child in match.children:
        ranked.append(((child.start, child.end > child.start, -child.end, last), child))
        ranked += [((start, True, -end, last), (start, end)) for start, end in child.skipped]
    ranked.sort(key=lambda each: each[0])
    return [item for _, item in ranked]


def _bound(bound: BoundSpan, *, is_record: bool) -> _Mark:
    value = bound.value
    return _Mark("variable", bound.variable, bound.start, bound.end, is_record, value)


def _is_too_deep(match: RuleMatch | None) -> bool:
    level = [match] if match is not None else []
    for _ in range(DEEPEST_SHOWN + 1):
        level = [child for each in level for child in each.children]
    return bool(level)


# --- the legend ---------------------------------------------------------------------------------


class _Legend:
    """The colours of rules and variables, in the order of their first appearance."""

    def __init__(self, marks: list[_Mark]) -> None:
        self._counts = Counter((mark.kind, mark.name) for mark in marks)
        self._skipped = sum(mark.end - mark.start for mark in marks if mark.kind == "skipped")
        self._numbers = {key: number for number, key in enumerate(self._counts)}

    def colour(self, mark: _Mark) -> str:
        """Return the class that has the colour of a mark."""
        return f"c{self._numbers[mark.kind, mark.name]}"

    def style(self) -> str:
        """Return the style sheet of the colours; those of names that follow one another differ most."""
        rules = []
        seen: Counter[_Kind] = Counter()
        for (kind, _), number in self._numbers.items():
            if kind != "skipped":
                rules.append(f".c{number}{{--h:{(_FIRST_HUE + seen[kind] * _GOLDEN_ANGLE) % 360:.0f}}}")
                seen[kind] += 1
            rules.append(
                f".off-c{number} main .c{number}{{background:none;box-shadow:none;border-color:transparent}}"
            )
            rules.append(f".off-c{number} main .c{number}::before{{display:none}}")
        return "\n".join(rules)

    def html(self) -> str:
        parts = [self._buttons("Rules", "rule"), self._buttons("Variables", "variable")]
        parts.append(self._buttons("Not matched", "skipped"))
        keys = (
            '<p class="keys"><kbd>n</kbd> <kbd>p</kbd> next and previous record · '
            "<kbd>s</kbd> <kbd>S</kbd> next and previous skipped text · <kbd>v</kbd> names of variables · "
            "a name above hides or shows its colour</p>"
        )
        return "".join(parts) + (keys if self._counts else "")

    def _buttons(self, title: str, kind: _Kind) -> str:
        found = []
        for (its, name), count in self._counts.items():
            if its != kind:
                continue
            number = self._numbers[its, name]
            size = f"{self._skipped:,} characters" if kind == "skipped" else f"{count:,}"
            found.append(
                f'<button type="button" aria-pressed="true" data-c="c{number}">'
                f'<span class="{_CLASSES[kind]} c{number}">{escape(name)}</span> {size}</button>'
            )
        return f'<p class="legend"><span>{title}</span> {" ".join(found)}</p>\n' if found else ""


# --- the source ---------------------------------------------------------------------------------


class _Pages:
    """Writes the source line by line, in blocks that a browser lays out when they come into view."""

    def __init__(self, source: Source, legend: _Legend, failure: ParseError | None) -> None:
        self._source = source
        self._legend = legend
        self._failed_at = -1 if failure is None else min(failure.offset, len(source.text))
        self._open: list[tuple[int, _Mark]] = []
        self._lines = 1
        self._pieces: list[str] = []
        self._length = 0

    def blocks(self, edges: list[_Edge]) -> Iterator[str]:
        shown = min(len(self._source.text), SHOWN_CHARACTERS)
        self._pieces.append('<div class="b"><div class="l" id="L1" data-l="1">')
        offset = number = 0
        for edge in edges:
            self._text(offset, edge.offset)
            offset = max(offset, edge.offset)
            if edge.opens:
                number += 1
                self._open.append((number, edge.mark))
                self._pieces.append(self._start(number, edge.mark, is_first=True))
            else:
                self._open.pop()
                self._pieces.append("</span>")
            if len(self._pieces) > 10_000:
                yield self._taken()
        self._text(offset, shown)
        if self._failed_at >= shown:
            self._pieces.append(_FAILURE)
        self._pieces.append("</div></div>")
        yield self._taken()

    def _taken(self) -> str:
        text = "".join(self._pieces)
        self._pieces.clear()
        return text

    def _text(self, start: int, end: int) -> None:
        if start <= self._failed_at < end:
            self._plain(start, self._failed_at)
            self._pieces.append(_FAILURE)
            start = self._failed_at
        self._plain(start, end)

    def _plain(self, start: int, end: int) -> None:
        text = self._source.text
        while start < end:
            newline = text.find("\n", start, end)
            last = min(end if newline < 0 else newline, start + _LONGEST_LINE - self._length)
            piece = text[start:last]
            self._length += len(piece)
            self._pieces.append(_safe(piece[:-1] if last == newline and piece.endswith("\r") else piece))
            start = last
            if last == newline:
                start += 1
                self._break(is_line=True)
            elif self._length >= _LONGEST_LINE:
                self._break(is_line=False)

    def _break(self, *, is_line: bool) -> None:
        """Go on with the next line; what is open ends with this one and begins again on the next."""
        self._length = 0
        self._pieces.append("</span>" * len(self._open) + "</div>")
        self._lines += is_line
        if is_line and self._lines % _LINES_A_BLOCK == 1:
            self._pieces.append('</div><div class="b">')
        self._pieces.append(
            f'<div class="l" id="L{self._lines}" data-l="{self._lines}">' if is_line else '<div class="l m">'
        )
        self._pieces += [self._start(number, mark, is_first=False) for number, mark in self._open]

    def _start(self, number: int, mark: _Mark, *, is_first: bool) -> str:
        classes = [_CLASSES[mark.kind], self._legend.colour(mark)]
        classes += ["rec"] if mark.is_record and is_first else []
        classes += ["more"] if not is_first else []
        text = f'<span class="{" ".join(classes)}" data-i="{number}" data-n="{escape(mark.name)}"'
        if is_first:
            text += f' data-p="{escape(self._place(mark))}"'
            if mark.kind == "variable" and isinstance(mark.value, str):
                text += _value(mark.value, self._source.text[mark.start : mark.end])
        return text + ">"

    def _place(self, mark: _Mark) -> str:
        line, column = self._source.position(mark.start)
        return f"line {line:,}, column {column:,}, {mark.end - mark.start:,} characters"


_FAILURE = '<span id="failure" class="f">here</span>'


def _value(value: str, text: str) -> str:
    """Return the attribute for a value that is not the very text that is marked."""
    if value == text:
        return ""
    shown = value if len(value) <= _LONGEST_VALUE else value[: _LONGEST_VALUE - 1] + "…"
    return f' data-x="{_safe(shown)}"'
