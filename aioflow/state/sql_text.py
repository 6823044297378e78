"""SQL texts in plans, in which attributes are bound as `:zip` or `:"price-info"`, whatever the dialect.

A text is read only so far that its parameters, its end and its kind are known. The database reads the rest.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import msgspec
from msgspec.structs import replace

from aioflow.errors import InputError, SettingError, suggestion
from aioflow.relation import Row, Schema, picker
from aioflow.state.driver import Dialect
from aioflow.state.system_tables import HEALTH, HELD, OUTBOX, RUNS, SUSPECTS

_OURS = frozenset({"begin", "start", "commit", "end", "rollback", "abort", "savepoint", "release"})
_OUTSIDE = frozenset({"attach", "detach", "vacuum"})
_QUERIES = frozenset({"select", "with", "values", "table", "explain", "show", "pragma"})
_NO_QUERY = "is no query; what changes a database is done by dbupdate"
# Besides these only a function changes something, and only the database knows what functions do.
_CHANGES = frozenset({"insert", "update", "delete", "merge", "replace", "create", "refresh"})
_EXECUTED = frozenset({"analyze", "analyse", "verbose"})
# Pragmas that take a value and only read, and some that write without one.
_ASKING = frozenset(
    {"table_info", "table_xinfo", "table_list", "index_list", "index_info", "index_xinfo"}
    | {"foreign_key_list", "foreign_key_check", "integrity_check", "quick_check"}
)
_ACTING = frozenset({"wal_checkpoint", "optimize", "incremental_vacuum", "shrink_memory"})
_SCHEMA_SWITCH = "writable_schema"
_OWN = frozenset({"aioflow_meta", RUNS, OUTBOX, SUSPECTS, HELD, HEALTH})
_NAMES = frozenset({"word", "name", "ticked"})

_NAME = r"[^\W\d]\w*"
# In this order: what comes first at a place is what stands there. A token that is not closed ends at `$`.
_TOKEN = re.compile(
    rf"""
    (?P<space>\s+)
  | (?P<comment>--[^\n]*)
  | (?P<block>/\*)
  | (?P<escaped>[eE]'[^'\\]*(?:(?:''|\\.)[^'\\]*)*(?P<escaped_end>')?)
  | (?P<string>'[^']*(?:''[^']*)*(?P<string_end>')?)
  | (?P<name>"[^"]*(?:""[^"]*)*(?P<name_end>")?)
  | (?P<ticked>`[^`]*`)
  | (?P<dollar>\$(?P<tag>(?:{_NAME})?)\$)
  | (?P<numbered>\$\d+)
  | (?P<cast>::|:=)
  | :(?P<parameter>{_NAME})
  | :(?P<quoted>"[^"]*(?:""[^"]*)*(?P<quoted_end>")?)
  | (?P<word>[^\W\d][\w$]*)
  | (?P<number>\d[\w.]*)
  | (?P<foreign>\?\d*|[@$]{_NAME})
  | (?P<end>;)
  | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_BLOCK = re.compile(r"/\*|\*/")
_HYPHENATED = re.compile(r"(?:-\w+)+")
_CLOSED = {"escaped": "a text", "string": "a text", "name": "a name in quotes", "quoted": "a parameter"}
# After these a colon separates, as in slices of arrays, and begins no parameter.
_OPERANDS = frozenset({"escaped", "string", "number", "dollar"})


class SqlParameter(msgspec.Struct, frozen=True):
    """A position in a text at which the value of an attribute is bound."""

    name: str
    offset: int


class _Token(msgspec.Struct, frozen=True):
    kind: str
    start: int
    end: int
    text: str


class Sql(msgspec.Struct, frozen=True):
    """One statement of SQL, as a setting.

    `pieces` are its text, with a parameter between each two of them. `row` takes the values of the parameters
    from a tuple.
    """

    kind_name: ClassVar[str] = "a statement of SQL"

    text: str
    pieces: tuple[str, ...]
    parameters: tuple[SqlParameter, ...]
    words: tuple[str, ...]
    start: int = 0  # of the first word
    foreign: str | None = None  # a parameter as some dialect writes it itself
    positions: tuple[int, ...] | None = None  # of the attributes, once for each name

    @classmethod
    def bind(cls, value: Any, inputs: Sequence[Schema | None]) -> Sql:
        if not isinstance(value, str):
            raise SettingError(
                f"must be {cls.kind_name} in quotes, not {'null' if value is None else repr(value)}"
            )
        sql = parse(value)
        if not inputs and sql.parameters:
            first = sql.parameters[0]
            raise SettingError(
                f'there is no input to take :{first.name} from; name one, as in ("…", rel : out)',
                offset=first.offset,
            )
        return sql if not inputs or inputs[0] is None else sql.bound_to(inputs[0])

    @property
    def names(self) -> tuple[str, ...]:
        """Return the attributes that are bound, each once."""
        return tuple(dict.fromkeys(parameter.name for parameter in self.parameters))

    @property
    def verb(self) -> str:
        """Return the first word, in small letters."""
        return self.words[0] if self.words else ""

    @property
    def explains_pragma(self) -> bool:
        """Return whether a pragma is explained: SQLite sets some values as soon as it reads their pragmas."""
        begin = tuple(self.words[:4])
        return begin[:2] == ("explain", "pragma") or begin == ("explain", "query", "plan", "pragma")

    @property
    def returns_rows(self) -> bool:
        """Return whether a statement that changes something also returns rows."""
        return "returning" in self.words

    def bound_to(self, schema: Schema) -> Sql:
        """Return the statement for tuples of a schema.

        Raise a SettingError for an attribute that it lacks.
        """
        for parameter in self.parameters:
            if parameter.name not in schema and not schema.open:
                raise SettingError(self._unknown(parameter, schema), offset=parameter.offset)
        return replace(self, positions=tuple(schema.position(name) for name in self.names))

    def for_dialect(self, dialect: Dialect) -> tuple[str, Callable[[Row], Row]]:
        """Return the text that the database gets, and a function that takes its values from a tuple."""
        if self.foreign is not None and dialect.placeholder == "?":
            raise InputError(f"{self.foreign!r} binds nothing here: write :name, with an attribute's name")
        positions = self.positions or ()
        numbers = {name: number for number, name in enumerate(self.names)}
        places = [numbers[parameter.name] for parameter in self.parameters]
        if dialect.placeholder.format(1) == dialect.placeholder.format(2):
            # Without numbers, a value stands at each place.
            positions = tuple(positions[place] for place in places)
            places = list(range(len(places)))
        parts = [self.pieces[0]]
        for place, piece in zip(places, self.pieces[1:], strict=True):
            parts += [dialect.placeholder.format(place + 1), piece]
        return "".join(parts), picker(positions)

    def _unknown(self, parameter: SqlParameter, schema: Schema) -> str:
        hyphen = _HYPHENATED.match(self.text, parameter.offset + 1 + len(parameter.name))
        if hyphen is not None and (whole := _longest(parameter.name + hyphen.group(), schema)):
            return f'the attribute {whole!r} is bound as :"{whole}", in quotes because of its hyphen'
        known = ", ".join(schema.names) or "no attributes"
        near = suggestion(parameter.name, schema.names)
        return f"unknown attribute {parameter.name!r}{near} (there are: {known})"


class Query(Sql, frozen=True):
    """A statement that only reads."""

    kind_name: ClassVar[str] = "a query in SQL"

    @classmethod
    def bind(cls, value: Any, inputs: Sequence[Schema | None]) -> Sql:
        sql = super().bind(value, inputs)
        if sql.verb and sql.verb not in _QUERIES:
            raise SettingError(f"{sql.verb!r} {_NO_QUERY}", offset=sql.start)
        tokens = list(_statement(sql.text))
        changing = next(_changing(tokens, sql.verb), None)
        if changing is not None:
            raise SettingError(f"{changing.text.lower()!r} in it {_NO_QUERY}", offset=changing.start)
        if sql.explains_pragma or (sql.verb == "pragma" and not _only_asks(tokens)):
            raise SettingError(
                "a pragma with a value sets something; a query may only ask: pragma table_info(houses)",
                offset=sql.start,
            )
        return sql


class Change(Sql, frozen=True):
    """A statement that may change something, within the transaction of the run."""

    kind_name: ClassVar[str] = "a statement of SQL"

    @classmethod
    def bind(cls, value: Any, inputs: Sequence[Schema | None]) -> Sql:
        sql = super().bind(value, inputs)
        if sql.verb in _OURS | _OUTSIDE:
            reason = (
                "it takes hold, or not, when the run ends" if sql.verb in _OURS else "it cannot take part"
            )
            raise SettingError(
                f"{sql.verb!r} is not for plans: a run is one transaction, and {reason}", offset=sql.start
            )
        is_pragma = sql.verb == "pragma" or sql.explains_pragma
        for token in _statement(sql.text):
            if is_pragma and token.text.strip("\"'`[]").lower() == _SCHEMA_SWITCH:
                raise SettingError(
                    f"{_SCHEMA_SWITCH} is not for plans: a wrong schema makes a database unreadable",
                    offset=token.start,
                )
            if token.kind in _NAMES and token.text.strip('"`[]').lower() in _OWN:
                raise SettingError(
                    f"{token.text} is for aioflow alone: a change there could lose or repeat what was sent",
                    offset=token.start,
                )
        return sql


# --- what a text would do -----------------------------------------------------------------------


def _changing(tokens: Sequence[_Token], verb: str) -> Iterator[_Token]:
    """Yield the words of a query that begin a change of the database, as in `with … delete from`."""
    for before, token, after in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if token.kind != "word":
            continue
        word = token.text.lower()
        # PostgreSQL has columns with such names too: what a statement does is followed by what it does it to.
        begins = before.text in ("(", ")") or (verb == "explain" and before.text.lower() in _EXECUTED)
        if (word in _CHANGES and begins and after.kind in _NAMES) or word == "into":
            yield token


def _only_asks(tokens: Sequence[_Token]) -> bool:
    """Return whether a pragma sets nothing. The names of some say so; others have no value."""
    words = [token.text.lower() for token in tokens if token.kind in _NAMES]
    signs = {token.text for token in tokens if token.kind == "other"} - {"."}
    asked = words[2:3] if tokens[2:3] and tokens[2].text == "." else words[1:2]
    return bool(asked) and (asked[0] in _ASKING or (not signs and asked[0] not in _ACTING))


def _longest(hyphenated: str, schema: Schema) -> str | None:
    """Return the longest prefix of whole words that is an attribute."""
    while "-" in hyphenated:
        if hyphenated in schema:
            return hyphenated
        hyphenated = hyphenated.rpartition("-")[0]
    return None


# --- reading a text -----------------------------------------------------------------------------


def parse(text: str) -> Sql:
    """Find the parameters of one statement. Raise a SettingError for a text that is not one statement."""
    pieces: list[str] = []
    parameters: list[SqlParameter] = []
    words: list[str] = []
    foreign: str | None = None
    at = start = 0
    for token in _statement(text):
        if token.kind in ("parameter", "quoted"):
            pieces.append(text[at : token.start])
            parameters.append(SqlParameter(token.text, token.start))
            at = token.end
        elif token.kind == "word":
            start = start if words else token.start
            words.append(token.text.lower())
        elif token.kind == "foreign":
            foreign = foreign or token.text
        elif token.kind == "numbered":
            raise SettingError(
                f"{token.text!r} binds nothing here: write :name, with an attribute's name",
                offset=token.start,
            )
        elif token.kind == "end":
            return Sql(
                text, (*pieces, text[at : token.start]), tuple(parameters), tuple(words), start, foreign
            )
    raise AssertionError("a statement has an end")


def _statement(text: str) -> Iterator[_Token]:
    """Yield the tokens of one statement, without spaces and comments, and its end."""
    empty = True
    tokens = _parameters_told_apart(_tokens(text))
    for token in tokens:
        if token.kind == "end" and token.text:
            _expect_no_more(tokens)
            if empty:
                break
        if token.kind == "end":
            if empty:
                break
            yield token
            return
        empty = False
        yield token
    raise SettingError("there is no statement in this text", offset=0)


def _expect_no_more(tokens: Iterator[_Token]) -> None:
    for token in tokens:
        if token.text:
            raise SettingError(
                "a text is one statement of SQL; give each further one a statement of the plan",
                offset=token.start,
            )


def _parameters_told_apart(tokens: Iterator[_Token]) -> Iterator[_Token]:
    """Yield the tokens, with false parameters marked as such.

    False ones are the end of a slice `[a:b]` and the value in `'key' :value`.
    """
    before: _Token | None = None
    for token in tokens:
        if token.kind in ("parameter", "quoted") and before is not None:
            ends_operand = before.kind in _OPERANDS or before.text in (")", "]")
            ends_name = before.kind in ("word", "name", "ticked") and before.end == token.start
            if ends_operand or ends_name:
                token = replace(token, kind="other")
        yield token
        before = token


def _tokens(text: str) -> Iterator[_Token]:
    at = depth = 0
    while at < len(text):
        token = _bracket(text, at, depth > 0) if text[at] == "[" else _token_at(text, at)
        depth += (token.text == "[") - (token.text == "]")
        if token.kind not in ("space", "comment"):
            yield token
        at = token.end
    yield _Token("end", len(text), len(text), "")


def _token_at(text: str, at: int) -> _Token:
    found = _TOKEN.match(text, at)
    assert found is not None
    kind = next(name for name in _KINDS if found.group(name) is not None)
    end = found.end()
    if kind in _CLOSED and not found.group(f"{kind}_end"):
        raise SettingError(f"{_CLOSED[kind]} begins here and never ends", offset=at)
    if kind == "block":
        return _Token("comment", at, _end_of_comment(text, at), "")
    if kind == "dollar":
        end = text.find(found.group(), end)
        if end < 0:
            raise SettingError(f"a text begins here with {found.group()} and never ends", offset=at)
        return _Token(kind, at, end + len(found.group()), text[at:end])
    value = found.group(kind)
    return _Token(kind, at, end, value[1:-1].replace('""', '"') if kind == "quoted" else value)


_KINDS = tuple(name for name in _TOKEN.groupindex if not name.endswith("_end") and name != "tag")


def _end_of_comment(text: str, start: int) -> int:
    """Return the end of a comment.

    Comments nest in PostgreSQL. Where that leaves one open, it ends at the first sign, as in SQLite.
    """
    depth = 0
    for sign in _BLOCK.finditer(text, start):
        depth += 1 if sign.group() == "/*" else -1
        if depth == 0:
            return sign.end()
    first = text.find("*/", start + 2)
    if first < 0:
        raise SettingError("a comment begins here and never ends", offset=start)
    return first + 2


def _bracket(text: str, at: int, in_subscript: bool) -> _Token:
    """Return a name in brackets, as SQLite has them.

    Beside an operand, brackets are the subscript of an array.
    """
    beside_operand = at > 0 and (text[at - 1].isalnum() or text[at - 1] in '_)]"')
    end = -1 if in_subscript or beside_operand else text.find("]", at)
    if end < 0:
        return _Token("other", at, at + 1, "[")
    return _Token("name", at, end + 1, text[at : end + 1])
