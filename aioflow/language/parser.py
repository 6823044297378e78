"""From text to a PlanFile, or to every mistake of the text at once."""

from __future__ import annotations

from aioflow.errors import Diagnostic, PlanError, SettingError
from aioflow.language.comments import NotesByPlace
from aioflow.language.decoding import open_source
from aioflow.language.kinds import item_kinds
from aioflow.language.mistakes import Mistakes
from aioflow.language.scanner import Cursor
from aioflow.language.splitter import ItemPieces, ItemSplitter, Pieces, UsePieces
from aioflow.language.statements import make_plan
from aioflow.plan import Item, Plan, PlanFile, Use
from aioflow.source import Span


def parse(text: str | bytes, name: str = "<plan>") -> PlanFile:
    """Read a text; a PlanError lists every mistake of its syntax.

    Items of kinds that no installed package provides are kept as they are; `load` reports them.
    """
    plan_file, diagnostics = read_text(text, name)
    if diagnostics:
        raise PlanError(diagnostics)
    return plan_file


def read_text(text: str | bytes, name: str, *, contents: bool = True) -> tuple[PlanFile, list[Diagnostic]]:
    """Return the readable part of a text, and its mistakes; without `contents` other items are not parsed."""
    source, mistakes = open_source(text, name)
    cursor = Cursor(source, mistakes.add)
    cut = ItemSplitter(cursor, mistakes).read()
    stretches = [(start, end) for pieces in cut for _, start, end in pieces.stretches()]
    notes = NotesByPlace(source, cursor.all_comments(), stretches)
    entries = tuple(_make(pieces, notes, mistakes, contents) for pieces in cut)
    return PlanFile(entries, source, notes.closing), mistakes.diagnostics()


def _make(pieces: Pieces, notes: NotesByPlace, mistakes: Mistakes, contents: bool) -> Plan | Item | Use:
    if isinstance(pieces, UsePieces):
        note = notes[pieces.keyword.start]
        return Use(str(pieces.path.value), pieces.path.span, note.leading, note.trailing)
    if isinstance(pieces, ItemPieces):
        return _make_item(pieces, notes, mistakes, contents)
    return make_plan(pieces, notes, mistakes)


def _make_item(pieces: ItemPieces, notes: NotesByPlace, mistakes: Mistakes, contents: bool) -> Item:
    source = pieces.keyword.source
    before, after = notes[pieces.keyword.start], notes[pieces.opening]
    header, body = Span(source, *pieces.header), Span(source, *pieces.body)
    header_text, body_text = source.text[header.start : header.end], source.text[body.start : body.end]
    kind = item_kinds.get(pieces.keyword.text) if contents else None
    content: object = None
    if kind is not None:
        try:
            content = kind.parse(pieces.name.text, header_text, body_text, header, body)
        except PlanError as error:
            mistakes.include(error.diagnostics)
        except SettingError as error:
            whole = header if error.setting == "header" else body
            span = whole if error.offset is None else whole.at(error.offset)
            mistakes.include((Diagnostic(error.message, span),))
    return Item(
        pieces.keyword.text.upper(),
        pieces.name.text,
        header_text,
        body_text,
        content,
        span=Span(source, pieces.keyword.start, pieces.closing + 1),
        name_span=pieces.name.span,
        header_span=header,
        body_span=body,
        comments=before.leading + tuple(filter(None, after.leading)),
        header_comment=before.trailing,
        trailing_comment=after.trailing,
    )
