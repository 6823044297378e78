"""From text to a PlanFile, or to every mistake of the text at once.

Header entries and clauses are put into the fields that they are for; one that has no field is reported.
Comments and blank lines are assigned to the line that stands next to them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import Any, Literal, NamedTuple

from aioflow.errors import Diagnostic, PlanError, SettingError, suggestion
from aioflow.language.kinds import ItemKind, item_kinds
from aioflow.language.lalr import (
    AttributeParts,
    Clause,
    InputParts,
    ParameterParts,
    StatementParts,
    read_piece,
    value_of,
)
from aioflow.language.mistakes import Mistakes
from aioflow.language.scanner import NAME, Cursor, Token, open_source, show
from aioflow.language.splitter import HEADER, ItemPieces, ItemSplitter, Piece, Pieces, PlanPieces, UsePieces
from aioflow.plan import (
    InputDeclaration,
    Item,
    Option,
    Parameter,
    Plan,
    PlanFile,
    Statement,
    Use,
    Variable,
    Word,
    is_word,
)
from aioflow.relation import Schema, Type
from aioflow.source import Source, Span

Stretch = tuple[int, int]


class Notes(NamedTuple):
    """The comments before a line and after it; an empty text in `leading` is a blank line."""

    leading: tuple[str, ...] = ()
    trailing: str | None = None


NO_NOTES = Notes()


class NotesByPlace:
    """The notes of each stretch of text, found by the offset where it starts."""

    def __init__(self, source: Source, comments: Sequence[Stretch], stretches: Sequence[Stretch]) -> None:
        self._source = source
        self._comments = sorted(comments)
        self._next = 0
        self._notes: dict[int, Notes] = {}
        length = len(source.text)
        position, previous = 0, -1
        for start, end in (*stretches, (length, length)):
            position = self._give_trailing(previous, position, start)
            leading = self._take_leading(position, start, end)
            if leading:
                self._notes[start] = Notes(leading)
            position, previous = end, start
        # What stands at the end of the text has no stretch to lead.
        self.closing = self._notes.pop(length, NO_NOTES).leading

    def __getitem__(self, start: int) -> Notes:
        return self._notes.get(start, NO_NOTES)

    def _give_trailing(self, previous: int, position: int, limit: int) -> int:
        """Comments on the line where the previous stretch ended are its own."""
        trailing = []
        while previous >= 0 and self._next < len(self._comments):
            start, end = self._comments[self._next]
            if start >= limit or "\n" in self._source.text[position:end]:
                break
            trailing.append(self._source.text[start:end].rstrip())
            position = end
            self._next += 1
        if trailing:
            self._notes[previous] = Notes(self[previous].leading, " ".join(trailing))
        return position

    def _take_leading(self, position: int, start: int, end: int) -> tuple[str, ...]:
        """Comments before a stretch, and those inside it, which move to before it."""
        leading: list[str] = []
        while self._next < len(self._comments) and self._comments[self._next][0] < end:
            comment = self._comments[self._next]
            if comment[0] < start:
                self._add_blank_line(leading, position, comment[0])
                position = comment[1]
            elif position < start:
                self._add_blank_line(leading, position, start)
                position = start
            leading.append(self._text(comment))
            self._next += 1
        if position < start:
            self._add_blank_line(leading, position, start)
        return tuple(leading)

    def _add_blank_line(self, leading: list[str], position: int, start: int) -> None:
        if self._source.text.count("\n", position, start) > 1:
            leading.append("")

    def _text(self, comment: Stretch) -> str:
        """The comment, the lines after its first moved left by as much as that will be."""
        start, end = comment
        first, *others = self._source.text[start:end].split("\n")
        if not others:
            return first.rstrip()
        margin = self._source.position(start)[1] - 1
        moved = [line[min(margin, len(line) - len(line.lstrip(" "))) :].rstrip() for line in others]
        return "\n".join([first.rstrip(), *moved])


SIGNAL_CLAUSES = ("WAIT", "ENABLE", "DONE")
OWN_CLAUSES = (*SIGNAL_CLAUSES, "ERRORS")
_TAKES = {
    "WAIT": "variables or signals",
    "ENABLE": "the name of a signal",
    "DONE": "the name of a signal",
    "ERRORS": "a variable or the word skip",
}


def make_statement(
    parts: StatementParts, notes: Notes, mistakes: Mistakes, repaired: bool = False
) -> Statement:
    """The statement as data; mistakes in its clauses go to `mistakes`."""
    operator, arguments, outputs, clauses, last = parts
    span = Span(operator.source, operator.start, last.end)
    if not clauses:
        return Statement(
            operator.text,
            arguments,
            outputs,
            span=span,
            name_span=operator.span,
            comments=notes.leading,
            trailing_comment=notes.trailing,
        )
    if not repaired:
        clauses = _separate(clauses, mistakes)
    sorter = _ClauseSorter(mistakes)
    for clause in clauses:
        if isinstance(clause, Clause):
            sorter.add(clause)
    return Statement(
        operator.text,
        arguments,
        outputs,
        wait=sorter.signals.get("WAIT", ()),
        enable=sorter.signals.get("ENABLE", ()),
        done=sorter.signals.get("DONE", ()),
        errors=sorter.errors,
        options=tuple(sorter.options),
        span=span,
        name_span=operator.span,
        comments=notes.leading,
        trailing_comment=notes.trailing,
    )


def make_option(key: Token, values: list[Token]) -> Option:
    """An option with the places of its name and values."""
    return Option(
        key.text.upper(), tuple(map(value_of, values)), key.span, tuple(token.span for token in values)
    )


def _separate(clauses: list[Clause | Token], mistakes: Mistakes) -> list[Clause | Token]:
    """The clauses, each reported that no ';' or line end parts from the one before it."""
    kept: list[Clause | Token] = []
    for clause in clauses:
        previous = kept[-1] if kept else None
        if isinstance(clause, Clause) and isinstance(previous, Clause) and not clause.key.first:
            wanted = "',', ';' or a new line" if previous.values else "':', ';' or a new line"
            after = previous.values[-1] if previous.values else previous.key
            key = clause.key
            mistakes.add(f"expected {wanted} after {show(after)}, found {show(key)}", key.start, key.end)
            if clause.values is None:
                # Most likely a value of the clause before it.
                kept[-1] = Clause(previous.key, [*(previous.values or []), key])
                continue
        kept.append(clause)
    return kept


class _ClauseSorter:
    """Sorts clauses into the fields of a Statement."""

    def __init__(self, mistakes: Mistakes) -> None:
        self.signals: dict[str, tuple[Variable, ...]] = {}
        self.errors: Variable | Literal["skip"] | None = None
        self.options: list[Option] = []
        self._mistakes = mistakes
        self._keys: dict[str, Token] = {}

    def add(self, clause: Clause) -> None:
        key = clause.key
        name = key.text.upper()
        if name not in OWN_CLAUSES:
            self.options.append(make_option(key, clause.values or []))
            return
        if name in self._keys:
            self._mistakes.add(f"{name} stands here twice", key.start, key.end)
        self._keys[name] = key
        if clause.values is None:
            self._mistakes.add(f"expected ':' and a name after {show(key)}", key.start, key.end)
            return
        variables = self._variables(name, clause.values)
        if name in SIGNAL_CLAUSES:
            self.signals[name] = variables
        else:
            self._set_errors(variables, clause.values)

    def _variables(self, name: str, values: list[Token]) -> tuple[Variable, ...]:
        for token in values:
            if token.type != NAME:
                self._mistakes.add(f"{name} takes {_TAKES[name]}, not {show(token)}", token.start, token.end)
        return tuple(Variable(token.text, token.span) for token in values)

    def _set_errors(self, variables: tuple[Variable, ...], values: list[Token]) -> None:
        if len(variables) > 1:
            second = values[1]
            self._mistakes.add("ERRORS takes one variable only", second.start, second.end)
        self.errors = "skip" if variables[0].name.lower() == "skip" else variables[0]


_RULES = {"INPUT": "inputs", "OUTPUT": "names", "PARAM": "parameters"}


def make_plan(pieces: PlanPieces, notes: NotesByPlace, mistakes: Mistakes) -> Plan:
    """The plan as data; mistakes in its pieces go to `mistakes`."""
    header = _HeaderReader(mistakes, pieces.title)
    for piece in pieces.entries:
        header.read(piece)
    statements = tuple(_statements(pieces, notes, mistakes))
    first, last = pieces.keyword, pieces.closing or pieces.keyword
    labelled = [(label, notes[start]) for label, start, _ in pieces.stretches() if label]
    return Plan(
        pieces.name.text if pieces.name else "",
        statements=statements,
        span=Span(first.source, first.start, last.end),
        name_span=pieces.name.span if pieces.name else first.span,
        comments=notes[first.start].leading,
        header_comments={label: note.leading for label, note in labelled[1:-1] if note.leading},
        trailing_comments={label: note.trailing for label, note in labelled if note.trailing is not None},
        closing_comments=notes[pieces.closing.start].leading if pieces.closing else (),
        **header.fields,
    )


def _statements(pieces: PlanPieces, notes: NotesByPlace, mistakes: Mistakes) -> list[Statement]:
    statements = []
    for piece in pieces.statements:
        known = len(mistakes)
        parts = read_piece("statement", piece, mistakes)
        if parts is not None:
            repaired = len(mistakes) > known
            statements.append(make_statement(parts, notes[piece.tokens[0].start], mistakes, repaired))
    return statements


class _HeaderReader:
    """Reads the entries of one plan's header into the fields of a Plan."""

    def __init__(self, mistakes: Mistakes, title: str) -> None:
        self.fields: dict[str, Any] = {}
        self._mistakes = mistakes
        self._title = title
        self._keys: dict[str, Token] = {}
        self._setters: dict[str, Callable[[Token, Any], None]] = {
            "INPUT": self._set_inputs,
            "OUTPUT": self._set_outputs,
            "PARAM": self._set_parameters,
            "MAX_DEPTH": self._set_max_depth,
            "ONCE": self._set_once,
        }

    def read(self, piece: Piece) -> None:
        key = piece.tokens[0]
        name = key.text.upper()
        if name == "BODY":
            self._report(key, "BODY is followed by '{', not by ':'")
            return
        if name not in HEADER:
            known = (*HEADER, "BODY")
            self._report(key, f"unknown part of a plan {key.text!r}{suggestion(key.text, known)}")
            return
        if name in self._keys:
            line = key.source.position(self._keys[name].start)[0]
            self._report(key, f"{name} stands twice in {self._title}; the first is in line {line}")
        self._keys.setdefault(name, key)
        skip = 2 if piece.tokens[1:] and piece.tokens[1].text == ":" else 1
        result = read_piece(_RULES.get(name, "values"), piece, self._mistakes, skip)
        if result is not None:
            self._setters.get(name, self._add_option)(key, result)

    def _report(self, token: Token, message: str) -> None:
        self._mistakes.add(message, token.start, token.end)

    def _set_inputs(self, key: Token, inputs: list[InputParts]) -> None:
        self.fields["inputs"] = tuple(
            InputDeclaration(each.name.text, self._schema(each.attributes), each.name.span) for each in inputs
        )

    def _schema(self, attributes: list[AttributeParts] | None) -> Schema | None:
        if attributes is None:
            return None
        types: dict[str, Type | None] = {}
        for attribute in attributes:
            name = attribute.name.value if attribute.name.value is not None else attribute.name.text
            if name in types:
                self._report(attribute.name, f"attribute {name!r} stands here twice")
            types[str(name)] = self._type(attribute.type)
        return Schema(tuple(types), tuple(types.values()))

    def _type(self, token: Token | None) -> Type | None:
        if token is None:
            return None
        try:
            return Type(token.text.lower())
        except ValueError:
            hint = suggestion(token.text, map(str, Type)) or f" (there are: {', '.join(Type)})"
            self._report(token, f"unknown type {token.text!r}{hint}")
            return None

    def _set_outputs(self, key: Token, names: list[Token]) -> None:
        self.fields["outputs"] = tuple(Variable(token.text, token.span) for token in names)

    def _set_parameters(self, key: Token, parameters: list[ParameterParts]) -> None:
        self.fields["parameters"] = tuple(
            Parameter(name.text, None, required=True, span=name.span)
            if default is None
            else Parameter(name.text, value_of(default), span=name.span, default_span=default.span)
            for name, default in parameters
        )

    def _set_max_depth(self, key: Token, values: list[Token]) -> None:
        if not values:
            self._report(key, "MAX_DEPTH takes a whole number")
            return
        depth = values[0].value
        if not isinstance(depth, int) or isinstance(depth, bool) or depth < 1:
            self._report(values[0], f"MAX_DEPTH takes a whole number of at least 1, not {show(values[0])}")
        words = [value_of(token) for token in values[1:]]
        if words and not (len(words) == 1 and isinstance(words[0], Word) and words[0].text.lower() == "stop"):
            self._report(values[1], f"only 'stop' may follow MAX_DEPTH's number, found {show(values[1])}")
        self.fields.update(max_depth=depth, stop_at_max_depth=bool(words))

    def _set_once(self, key: Token, values: list[Token]) -> None:
        if len(values) != 1 or not isinstance(values[0].value, str):
            at = values[0] if len(values) == 1 else values[1] if values else key
            found = "" if not values else f", not {show(at)}" if len(values) == 1 else ""
            self._report(at, f'ONCE takes one string with attributes, such as "url"{found}')
            return
        self.fields.update(once=values[0].value, once_span=values[0].span)

    def _add_option(self, key: Token, values: list[Token]) -> None:
        if not values:
            self._report(key, f"{key.text.upper()} takes a value")
        self.fields["options"] = (*self.fields.get("options", ()), make_option(key, values))


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
    kind = item_kinds.of_file(name)
    if kind is not None:
        return _read_item_file(kind, text, name)
    source, mistakes = open_source(text, name)
    cursor = Cursor(source, mistakes.add)
    cut = ItemSplitter(cursor, mistakes).read()
    stretches = [(start, end) for pieces in cut for _, start, end in pieces.stretches()]
    notes = NotesByPlace(source, cursor.all_comments(), stretches)
    entries = tuple(_make(pieces, notes, mistakes, contents) for pieces in cut)
    return PlanFile(entries, source, notes.closing), mistakes.diagnostics()


def _read_item_file(kind: ItemKind, text: str | bytes, name: str) -> tuple[PlanFile, list[Diagnostic]]:
    """Return the item that a whole file is the body of."""
    source, mistakes = open_source(text, name)
    stem = PurePath(name).stem
    if not is_word(stem):
        message = (
            f"the name of this file cannot name a {kind.keyword}: names are letters, digits, '_' and '-'"
        )
        mistakes.add(message, 0)
    header, body = Span(source, 0, 0), Span(source, 0, len(source.text))
    content: object = None
    try:
        content = kind.parse(stem, "", source.text, header, body)
    except PlanError as error:
        mistakes.include(error.diagnostics)
    except SettingError as error:
        mistakes.include(
            (Diagnostic(error.message, body if error.offset is None else body.at(error.offset)),)
        )
    # The name stands nowhere in the file; a message about it shows its beginning.
    item = Item(
        kind.keyword,
        stem,
        body=source.text,
        content=content,
        span=body,
        name_span=header,
        header_span=header,
        body_span=body,
    )
    return PlanFile((item,), source), mistakes.diagnostics()


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
