"""The content of a message without a template: a table of tuples, as text and as HTML.

Tuples that have changed, as `diff` gives them, show which attributes have changed, and how texts differ by
words. A message about rows that may be wrong says so in its subject and in its first line.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date, datetime
from decimal import Decimal
from difflib import SequenceMatcher
from html import escape
from itertools import islice
from typing import Literal, TypeAlias

import msgspec

from aioflow.relation import Document, Relation, Row, Schema, Value
from aioflow.state.diff.settings import CHANGES, OLD
from aioflow.values.quantities import count_text
from aioflow.values.text import to_text

Piece: TypeAlias = tuple[Literal["same", "old", "new"], str]

_CONTEXT_WORDS = 8
_MOST_RUN_CHARACTERS = 500
# Finding what two texts share takes time by the product of their lengths.
_MOST_COMPARED = 250_000
_LEAST_SHARED = 0.2


class Shown(msgspec.Struct, frozen=True):
    """An attribute in a message: its value, and the one before if it has changed."""

    name: str
    value: Value
    before: Value = None
    is_changed: bool = False


def shown_changes(schema: Schema) -> Callable[[Row], list[Shown]] | None:
    """Return the attributes of a changed tuple, each once, or None for tuples without old values."""
    old = {name.removeprefix(OLD): name for name in schema.names if name.startswith(OLD)}
    old = {name: before for name, before in old.items() if name in schema}
    if not old or CHANGES not in schema:
        return None
    told = schema.position(CHANGES)
    columns = [
        (name, schema.position(name), schema.position(old[name]) if name in old else None)
        for name in schema.names
        if name != CHANGES and name not in old.values()
    ]

    def shown(row: Row) -> list[Shown]:
        changes = f", {row[told]}, "
        return [
            Shown(name, row[place])
            if before is None or f", {name}, " not in changes
            else Shown(name, row[place], row[before], is_changed=True)
            for name, place, before in columns
        ]

    return shown


# --- word by word -------------------------------------------------------------------------------


def word_diff(before: str, now: str, *, context: int = _CONTEXT_WORDS) -> list[Piece]:
    """The words that both texts have, those of the first only, and those of the second only, in order.

    Of what they share, so many words beside a change are given.
    """
    old, new = before.split(), now.split()
    runs = list(_runs(old, new))
    shared = sum(len(words) for kind, words in runs if kind == "same")
    if shared < _LEAST_SHARED * max(len(old), len(new)):
        runs = [("old", old), ("new", new)]
    pieces: list[Piece] = []
    last = len(runs) - 1
    for place, (kind, words) in enumerate(runs):
        if kind == "same":
            text = _around(words, context if place or not last else 0, context if place < last else 0)
        else:
            text = _cut_run(" ".join(words))
        if text:
            pieces.append((kind, text))
    return pieces


def _runs(old: list[str], new: list[str]) -> Iterator[tuple[Literal["same", "old", "new"], list[str]]]:
    """Runs of words; what the texts begin and end with alike is found first, since that is quick."""
    start = _alike(old, new)
    end = _alike(old[start:][::-1], new[start:][::-1])
    middle_old, middle_new = old[start : len(old) - end], new[start : len(new) - end]
    if start:
        yield "same", old[:start]
    if len(middle_old) * len(middle_new) > _MOST_COMPARED:
        yield "old", middle_old
        yield "new", middle_new
    else:
        matcher = SequenceMatcher(None, middle_old, middle_new, autojunk=False)
        for tag, first, last, new_first, new_last in matcher.get_opcodes():
            if tag == "equal":
                yield "same", middle_old[first:last]
                continue
            if last > first:
                yield "old", middle_old[first:last]
            if new_last > new_first:
                yield "new", middle_new[new_first:new_last]
    if end:
        yield "same", old[len(old) - end :]


def _alike(one: Sequence[str], other: Sequence[str]) -> int:
    """Return how many words two texts begin with alike."""
    for place, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return place
    return min(len(one), len(other))


def _around(words: list[str], after: int, before: int) -> str:
    """Words that stay the same: so many after a change, and so many before the next one."""
    if len(words) <= after + before + 2:
        return " ".join(words)
    return " ".join([*words[:after], "…", *(words[-before:] if before else ())])


def _cut_run(text: str) -> str:
    return text if len(text) <= _MOST_RUN_CHARACTERS else f"{text[: _MOST_RUN_CHARACTERS - 1]}…"


_MOST_CELL_CHARACTERS = 500
_MOST_LINK_CHARACTERS = 60
_MOST_TABLE_WIDTH = 100  # what is wider is written as one block a tuple
_TELEPHONE_WIDTH = 36  # characters beside each other on a screen of 390 pixels
_MOST_NESTED_ROWS = 20
_MOST_SHORT_CHARACTERS = 60  # longer texts that have changed are told word by word
_NOTHING = "(none)"
_GAP = "  "
_BLANKS = re.compile("[\x00-\x20\x7f-\xa0\u2028\u2029\ud800-\udfff]+")
_CONTROLS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_LINK = re.compile(r"https?://[^\s<>\"'`\\\x00-\x20\x7f-\x9f\u2028\u2029\ud800-\udfff]+", re.IGNORECASE)


class Excerpt(msgspec.Struct, frozen=True):
    """The first rows of a relation, as a message shows them; `count` is the number of all."""

    schema: Schema
    rows: Sequence[Row]
    count: int
    attached: bool = False  # all of them, as files
    plan: str = ""
    is_tuple: bool = False  # one tuple for itself: its attributes stand below each other
    heading: str = ""  # where a message is about several relations

    @property
    def title(self) -> str:
        """The heading with the number of rows; nothing without one."""
        return self.heading and f"{_line(self.heading)} ({self.count:,})"

    @property
    def more(self) -> str:
        """Return the line about the rows that are not shown."""
        left = self.count - len(self.rows)
        if not left:
            return ""
        # Without rows that are shown they are not "more".
        more = "more " if self.rows else ""
        text = f"… and {left:,} {more}{'row' if left == 1 else 'rows'}"
        return f"{text}; all are attached" if self.attached else text


def _shown(excerpts: Sequence[Excerpt]) -> Sequence[Excerpt]:
    """Of several relations those that have rows, if there are any."""
    return [excerpt for excerpt in excerpts if excerpt.count] or excerpts[:1]


def _origin(excerpts: Sequence[Excerpt]) -> str:
    """Return the origin of a message, for its readers."""
    first, count = excerpts[0], sum(excerpt.count for excerpt in excerpts)
    told = [] if first.is_tuple else [count_text(count, "row")]
    return ", ".join([*told, *([f"sent by the plan {first.plan}"] if first.plan else [])])


def value_text(value: Value) -> str:
    """A value for people: null is nothing, a relation its values."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "∞" if value > 0 else "-∞"
    if isinstance(value, datetime):
        return value.isoformat(" ")
    if isinstance(value, Document):
        return value.text
    if isinstance(value, Relation):
        return _nested(value)
    text = to_text(value)
    return "(a very long number)" if text is None else text


def _nested(relation: Relation) -> str:
    shown = ["; ".join(map(value_text, row)) for row in islice(relation.rows, _MOST_NESTED_ROWS)]
    more = len(relation) - len(shown)
    separator = ", " if len(relation.schema) == 1 else " / "
    return separator.join([*shown, *([f"… and {more:,} more"] if more else [])])


def _cell(value: Value) -> str:
    return _cut(value_text(value), _MOST_CELL_CHARACTERS)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _is_number(value: Value) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _numeric(rows: Iterable[Row], width: int) -> list[bool]:
    """Return which columns hold numbers only, and some."""
    columns = list(zip(*rows, strict=True)) or [()] * width
    present = [[value for value in column if value is not None] for column in columns]
    return [bool(column) and all(map(_is_number, column)) for column in present]


# --- text ---------------------------------------------------------------------------------------


def text_message(*excerpts: Excerpt) -> str:
    """A whole message: the tables, and how much of them this is."""
    origin = _origin(excerpts)
    return "\n\n".join(filter(None, [text_sections(excerpts), origin and f"-- \n{origin}"])) + "\n"


def text_sections(excerpts: Sequence[Excerpt]) -> str:
    """A table for each relation that has rows, under its heading."""
    parts: list[str] = []
    for excerpt in _shown(excerpts):
        title = excerpt.title if excerpt.count else ""
        heading = title and f"{title}\n{'=' * _width(title)}"
        parts += [heading, text_table(excerpt), excerpt.more]
    return "\n\n".join(filter(None, parts))


def text_table(excerpt: Excerpt) -> str:
    """Aligned columns, or a block for each row: where that is too wide, of one tuple, or of changed ones."""
    if not excerpt.rows:
        return "" if excerpt.count else "No rows."
    changes = shown_changes(excerpt.schema)
    if changes is not None:
        return _changed_blocks([changes(row) for row in excerpt.rows])
    names = [_line(name) for name in excerpt.schema.names]
    cells = [[_line(_cell(value)) for value in row] for row in excerpt.rows]
    if excerpt.is_tuple:
        return _blocks(names, cells)
    table = _aligned(names, cells, _numeric(excerpt.rows, len(names)))
    widest = max(map(_width, table))
    return "\n".join(table) if widest <= _MOST_TABLE_WIDTH else _blocks(names, cells)


def _line(text: str) -> str:
    return _BLANKS.sub(" ", text).strip()


def _width(text: str) -> int:
    from rich.cells import cell_len  # characters of East Asia take two places

    return cell_len(text)


def _aligned(names: list[str], rows: list[list[str]], numeric: list[bool]) -> list[str]:
    widths = [max(map(_width, column)) for column in zip(names, *rows, strict=True)]

    def line(cells: Sequence[str]) -> str:
        placed = []
        for cell, width, right in zip(cells, widths, numeric, strict=True):
            room = " " * (width - _width(cell))
            placed.append(room + cell if right else cell + room)
        return _GAP.join(placed).rstrip()

    return [line(names), _GAP.join("-" * width for width in widths), *map(line, rows)]


def _blocks(names: list[str], rows: list[list[str]]) -> str:
    width = max(map(_width, names), default=0)
    labels = [f"{name}{' ' * (width - _width(name))}{_GAP}" for name in names]
    blocks = [
        "\n".join(f"{label}{cell}" for label, cell in zip(labels, row, strict=True) if cell) for row in rows
    ]
    return "\n\n".join(blocks)


def _changed_blocks(rows: Sequence[Sequence[Shown]]) -> str:
    names = [_line(shown.name) for shown in rows[0]]
    return _blocks(names, [[_changed_text(shown) for shown in row] for row in rows])


def _changed_text(shown: Shown) -> str:
    if not shown.is_changed:
        return _line(_cell(shown.value))
    pieces = [(kind, _line(text)) for kind, text in _pieces(shown)]
    if _is_long(shown):
        marked = {"same": "{}", "old": "[-{}-]", "new": "{{+{}+}}"}
        return " ".join(marked[kind].format(text) for kind, text in pieces)
    return " → ".join(text for _, text in pieces)


def _is_long(shown: Shown) -> bool:
    """Return whether a change is told word by word."""
    texts = shown.before, shown.value
    if not all(isinstance(text, str) and " " in text.strip() for text in texts):
        return False
    return max(map(len, texts)) > _MOST_SHORT_CHARACTERS


def _pieces(shown: Shown) -> list[Piece]:
    if _is_long(shown):
        return word_diff(shown.before, shown.value)
    old, new = (_cell(value) or _NOTHING for value in (shown.before, shown.value))
    return [("old", old), ("new", new)]


# --- HTML ---------------------------------------------------------------------------------------

# Programs for mail know little of CSS, and some cut messages past 100 KB: what a table needs to be one stands
# in its elements, in few words, and all else where those find it that know more.
_FONT = "font:14px/1.45 -apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif"
_LINE = "border-bottom:1px solid #d5d9de"
_HEAD = f"background:#f1f3f5;{_LINE}"
_WRAPPED = "padding:8px 0;overflow-wrap:anywhere;word-break:break-word"
_DELETED, _INSERTED = '<del style="color:#b3261e">', '<ins style="color:#137333">'
_STYLE = (
    ":root{color-scheme:light dark;supported-color-schemes:light dark}"
    "th{font-weight:600}td{overflow-wrap:break-word;white-space:pre-line}a{color:#2b6cd4}"
    "td[nowrap]{white-space:nowrap;font-variant-numeric:tabular-nums}"
    "@media (prefers-color-scheme:dark){body{background:#17191c!important;color:#e4e6e8!important}"
    "th{background:#26292d!important}th,td{border-color:#3b3f44!important}a{color:#8ab4f8!important}"
    "div{border-color:#3b3f44!important}del{color:#f2b8b5!important}ins{color:#81c995!important}}"
)


def html_message(excerpt: Excerpt, title: str, *more: Excerpt) -> str:
    """A whole message as a page."""
    excerpts = (excerpt, *more)
    faint = "margin:14px 0 0;color:#80868c;font-size:12px"
    origin = _origin(excerpts)
    told = f'\n<p style="{faint}">{escape(origin)}</p>' if origin else ""
    return html_page(f"{html_sections(excerpts)}{told}", title)


def html_sections(excerpts: Sequence[Excerpt]) -> str:
    """A table for each relation that has rows, under its heading."""
    return "\n".join(map(_html_section, _shown(excerpts)))


def _html_section(excerpt: Excerpt) -> str:
    title = excerpt.title if excerpt.count else ""
    heading = f'<h2 style="margin:18px 0 6px;font-size:17px">{escape(title)}</h2>\n' if title else ""
    more = f'<p style="margin:10px 0 0">{escape(excerpt.more)}</p>' if excerpt.more else ""
    shown = _html_blocks(excerpt) if title and _is_wide(excerpt) else html_table(excerpt)
    return f"{heading}{shown}{more}"


def _is_wide(excerpt: Excerpt) -> bool:
    """Return whether a table would be wider than the screen of a telephone."""
    if not excerpt.rows or shown_changes(excerpt.schema) is not None:
        return False
    rows = [excerpt.schema.names, *excerpt.rows]
    widths = [max(_width(_line(_cell(value))) for value in column) for column in zip(*rows, strict=True)]
    return sum(widths) > _TELEPHONE_WIDTH


def _html_blocks(excerpt: Excerpt) -> str:
    """A block for each tuple, as for those that have changed."""
    names = excerpt.schema.names
    blocks = [list(map(Shown, names, row)) for row in excerpt.rows]
    return "\n".join(map(_html_block, blocks))


def html_page(body: str, title: str) -> str:
    """A page with this inside of its body."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{escape(_line(title))}</title><style>{_STYLE}</style></head>\n"
        f'<body style="margin:0;padding:16px;{_FONT}">\n{body}\n</body></html>\n'
    )


def html_table(excerpt: Excerpt) -> str:
    """A row for each tuple, under the names of the attributes; for one tuple a row for each of them.

    Tuples that have changed are blocks: beside their old values, no screen would be wide enough.
    """
    changes = shown_changes(excerpt.schema)
    if changes is not None and excerpt.rows:
        return "\n".join(_html_block(changes(row)) for row in excerpt.rows)
    if excerpt.is_tuple:
        return _html_tuple(excerpt.schema, excerpt.rows[0])
    if not excerpt.rows:
        return "" if excerpt.count else '<p style="margin:0">No rows.</p>'
    numeric = _numeric(excerpt.rows, len(excerpt.schema))
    heads = "".join(map(_html_head, excerpt.schema.names, numeric))
    rows = ["<tr>" + "".join(map(_html_cell, row, numeric)) + "</tr>" for row in excerpt.rows]
    return _html_frame(f"<thead><tr>{heads}</tr></thead>\n<tbody>\n" + "\n".join(rows) + "\n</tbody>")


def _html_block(row: Sequence[Shown]) -> str:
    lines = [line for line in map(_html_line, row) if line]
    return f'<div style="{_LINE};{_WRAPPED}">' + "\n".join(lines) + "</div>"


def _html_line(shown: Shown) -> str:
    """An attribute of a changed tuple; nothing for one without value, unless that is the change."""
    name = escape(_line(shown.name))
    if shown.is_changed:
        between = " " if _is_long(shown) else " → "
        return f"<div><b>{name}:</b> {between.join(map(_html_piece, _pieces(shown)))}</div>"
    text = _CONTROLS.sub(" ", value_text(shown.value)).strip()
    return text and f'<div dir="auto">{name}: {_html_text(text)}</div>'


def _html_piece(piece: Piece) -> str:
    kind, text = piece[0], escape(_CONTROLS.sub(" ", piece[1]).strip())
    return {"same": text, "old": f"{_DELETED}{text}</del>", "new": f"{_INSERTED}{text}</ins>"}[kind]


def _html_tuple(schema: Schema, row: Row) -> str:
    rows = [
        f"<tr>{_html_head(name, False, 'row')}{_html_cell(value, False)}</tr>"
        for name, value in zip(schema.names, row, strict=True)
    ]
    return _html_frame("<tbody>\n" + "\n".join(rows) + "\n</tbody>")


def _html_frame(inner: str) -> str:
    table = f'<table cellspacing="0" cellpadding="8" border="0" style="border-collapse:collapse;{_FONT}">'
    return f'<div style="overflow-x:auto">{table}\n{inner}</table></div>'


def _html_head(name: str, right: bool, scope: str = "col") -> str:
    side = "right" if right else "left"
    return f'<th scope="{scope}" align="{side}" valign="top" style="{_HEAD}">{escape(_line(name))}</th>'


def _html_cell(value: Value, right: bool) -> str:
    text = _CONTROLS.sub(" ", value_text(value)).strip()
    if right or isinstance(value, date):
        side = "right" if right else "left"
        return f'<td align="{side}" valign="top" nowrap style="{_LINE}">{escape(text)}</td>'
    return f'<td dir="auto" valign="top" style="{_LINE}">{_html_text(text)}</td>'


def _html_text(text: str) -> str:
    if _LINK.fullmatch(text):
        shown = _cut(text, _MOST_LINK_CHARACTERS)
        return f'<a href="{escape(text)}" rel="noopener noreferrer">{escape(shown)}</a>'
    return escape(_cut(text, _MOST_CELL_CHARACTERS))


_BODY = re.compile(r"<body[^>]*>", re.IGNORECASE)


def doubtful_subject(subject: str, doubt: str) -> str:
    """Return a subject that says so."""
    return f"May be wrong: {subject}".strip() if doubt else subject


def doubtful_text(text: str, doubt: str) -> str:
    """Return a text whose first line says so, and why."""
    return f"This may be wrong: {doubt}\n\n{text}" if doubt else text


def doubtful_html(html: str, doubt: str) -> str:
    """Return a page that says so first; none stays none."""
    if not doubt or not html:
        return html
    told = f"<p><strong>This may be wrong:</strong> {escape(doubt)}</p>"
    body = _BODY.search(html)
    end = body.end() if body is not None else 0
    return html[:end] + told + html[end:]
