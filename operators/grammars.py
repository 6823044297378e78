"""parse, which reads texts with a grammar."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing, suppress
from typing import cast

from aioflow import Context, Document, Schema, SettingError, Stream, map_concurrently, operator
from aioflow.authoring.operator import Settings
from aioflow.grammars import (
    GrammarError,
    GrammarName,
    GrammarRecords,
    GrammarText,
    ParseLimitError,
    ParseLimits,
)
from aioflow.operators.function_calls import DependentJoin
from aioflow.operators.settings import Positive
from aioflow.relation import UNTOLD, Batch, Row, Type, Value
from aioflow.runtime.spill import DiskPause
from aioflow.values.coercion import row_of_mapping

# Texts of this length are parsed on the event loop, if that takes no longer.
_SHORT_CHARACTERS = 4096
_LOOP_SECONDS = 0.02
_LOOP_VALUES = 2000
_SECONDS = Positive(30)
# The parser should be the first to notice that its time is over, since it says where.
_MORE_SECONDS = 10.0
_PROCESS_BYTES = 2_000_000_000


def _parse_schema(inputs: Sequence[Schema | None], settings: Settings) -> Schema | None:
    schema = inputs[0]
    if schema is not None:
        kind = schema.type_of(settings["attribute"])
        if kind not in (None, Type.CHAR, Type.DOCUMENT):
            raise SettingError(f"{settings['attribute']!r} is a {kind}, not a text", setting="attribute")
    text: GrammarText = settings["grammar"]
    try:
        records = GrammarRecords(text.grammar(), settings["start"], settings["each"])
    except GrammarError:
        return None  # its mistakes are reported at their places
    results = records.schema
    return None if schema is None or results is None else schema.add(results)


@operator(schema=_parse_schema, firing="tuple")
async def parse(
    rel: Stream,
    *,
    attribute: str,
    grammar: GrammarName,
    start: str | None = None,
    each: str | None = None,
    outer: bool = False,
    seconds: Positive = _SECONDS,
    context: Context,
) -> AsyncGenerator[Batch | Schema, None]:
    """Find records in the text of each tuple with a grammar, and join them to the tuple.

    The variables of a record become attributes; lists and records in it are embedded relations. A record that
    is a text becomes the attribute `value`. A tuple without records, or whose text is null, is dropped. A
    text that no interpretation covers is an error. Long texts are parsed in other processes.

    Arguments:
        rel: the tuples.
        attribute: the attribute with the text.
        grammar: a GRAMMAR item of the plan's files.
        start: the rule to begin with; by default the only one that no other rule calls.
        each: the variable of that rule whose values are the records. By default they are the result of the
            rule, or if that is a text, the values of its only variable with `+=`.
        outer: keep tuples without records, with nulls.
        seconds: the time that a text may take.

    Examples:
        parse (letters, "text", "dates" : dates)
        parse (letters, "text", "dates" : dates) {START: "all"; EACH: "list"; OUTER}
    """
    assert rel.schema is not None
    parsing = _Parsing(cast(GrammarText, grammar), start, each, seconds, context)
    position = rel.schema.position(attribute)

    async def found_in(row: Row) -> Batch:
        return await parsing.rows(row[position])

    with DependentJoin(rel.schema, parsing.schema, outer, context.memory) as joining:
        async with aclosing(map_concurrently(found_in, rel, context, permit=False).batches()) as results:
            async for found in results:
                for row, rows in found:
                    for given in _joined(row, rows, parsing.schema, joining):
                        if isinstance(given, DiskPause):
                            await given.over()
                        else:
                            yield given
        if joining.results is None:
            for given in joining.start(UNTOLD):
                if isinstance(given, DiskPause):
                    await given.over()
                else:
                    yield given


def _joined(
    row: Row, rows: Batch, schema: Schema | None, joining: DependentJoin
) -> Iterator[Schema | Batch | DiskPause]:
    """Yield a tuple with its records; the first ones determine attributes that the grammar does not tell."""
    if joining.results is None:
        if schema is None:
            joining.hold(row)
            return
        yield from joining.start(schema)
    if joined := joining.rows(row, rows):
        yield joined


class _Parsing:
    """Parses texts: short ones at once, others in another process."""

    def __init__(
        self, text: GrammarText, start: str | None, each: str | None, seconds: float, context: Context
    ) -> None:
        self._text = text
        self._grammar = text.grammar()
        self._start, self._each = start, each
        self._records = GrammarRecords(self._grammar, start, each)
        self._is_quick = not text.blocks
        self._seconds = seconds
        self._context = context
        # The attributes of records: if the grammar does not tell them, the first text does.
        self.schema = self._records.schema

    async def rows(self, value: Value) -> Batch:
        """Return the records of a text."""
        if value is None:
            self._context.count("null texts")
            return []
        if not isinstance(value, str | Document):
            raise SettingError(f"a text is parsed, not {value!r:.60}")
        records = await self._found(str(value))
        if self.schema is None and records:
            self.schema = Schema(tuple(dict.fromkeys(name for each in records for name in each)))
        return [row_of_mapping(self.schema or UNTOLD, each) for each in records]

    async def _found(self, text: str) -> list[dict[str, Value]]:
        if self._is_quick and len(text) <= _SHORT_CHARACTERS:
            with suppress(ParseLimitError):
                limits = ParseLimits(seconds=min(_LOOP_SECONDS, self._seconds))
                parsed = self._grammar.parse(text, self._records.start, limits=limits)
                return self._records.mappings(parsed, _LOOP_VALUES)
        return await self._context.in_process(
            _parsed_aside,
            self._text,
            self._start,
            self._each,
            text,
            ParseLimits(seconds=self._seconds),
            seconds=self._seconds + _MORE_SECONDS,
            memory_bytes=_PROCESS_BYTES,
        )


def _parsed_aside(
    text: GrammarText, start: str | None, each: str | None, source: str, limits: ParseLimits
) -> list[dict[str, Value]]:
    grammar = text.grammar()
    records = GrammarRecords(grammar, start, each)
    return records.mappings(grammar.parse(source, records.start, limits=limits))
