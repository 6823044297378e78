"""Parquet files, by pyarrow: the first row group determines the types of columns if none are declared."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias
from zoneinfo import ZoneInfo

import msgspec

from aioflow import Document, InputError, Row, Schema, SettingError
from aioflow.errors import MissingExtraError
from aioflow.operators.formats import Format, Types, formats
from aioflow.operators.text_formats import PLAIN, Typed
from aioflow.relation import Batch, Type, Value, decimal_of, type_of_value
from aioflow.values.cells import cell, json_text
from aioflow.values.coercion import value_of

if TYPE_CHECKING:
    import pyarrow

_GROUP_ROWS = 20_000
_GROUP_CHARACTERS = 1 << 24
_READ_ROWS = 1024
# Key in the metadata of a text column: the type of the values that were written as texts.
_TYPE = b"aioflow.type"
_LARGEST_INTEGER = (1 << 63) - 1
_LARGEST_EXACT = 1 << 53
_DIGITS, _MOST_DIGITS = 38, 76

# Returns a value as the column holds it; None for one that does not fit.
Convert: TypeAlias = Callable[[Value], Any]


def _arrow() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtraError("a Parquet file", "parquet") from error
    return pyarrow


# --- writing ------------------------------------------------------------------------------------


class _Column(msgspec.Struct, frozen=True):
    """A column of the file: its name and type in the file, and the conversion of values."""

    name: str
    kind: Any
    convert: Convert
    of: Type | None = None  # the type of values that are written as texts

    def array(self, values: Sequence[Value], first_row: int) -> pyarrow.Array:
        converted = []
        for number, value in enumerate(values, first_row):
            fitting = None if value is None else self.convert(value)
            if fitting is None and value is not None:
                raise InputError(
                    f"row {number}, column {self.name!r}: {_shown(value)} does not fit into a column of "
                    f"{self.kind}, the type that the first rows gave it; jsonl and csv have no such types"
                )
            converted.append(fitting)
        return _arrow().array(converted, type=self.kind)

    def field(self) -> pyarrow.Field:
        metadata = None if self.of is None else {_TYPE: self.of.encode()}
        return _arrow().field(self.name, self.kind, metadata=metadata)


class ParquetWriter:
    """Writes row groups of some thousand tuples. The first group fixes the types of columns."""

    def __init__(self, file: BinaryIO, schema: Schema, beginning: bytes) -> None:
        _arrow()
        self._sink = _Sink(file)
        self._schema = schema
        self._held: Batch = []
        self._characters = 0
        self._written = 0
        self._columns: list[_Column] = []
        self._writer: Any = None

    def write(self, batch: Batch) -> None:
        for row in batch:
            self._held.append(row)
            self._characters += _length(row)
            if len(self._held) >= _GROUP_ROWS or self._characters >= _GROUP_CHARACTERS:
                self._flush()

    def end(self) -> None:
        self._flush()
        self._writer.close()

    def _flush(self) -> None:
        arrow = _arrow()
        columns = list(zip(*self._held, strict=True)) or [()] * len(self._schema)
        if self._writer is None:
            self._columns = list(map(_column, self._schema.names, self._schema.types, columns))
            schema = arrow.schema([column.field() for column in self._columns])
            self._writer = arrow.parquet.ParquetWriter(self._sink, schema)
        if not self._held:
            return
        arrays = [
            column.array(values, self._written + 1)
            for column, values in zip(self._columns, columns, strict=True)
        ]
        self._writer.write_table(arrow.Table.from_arrays(arrays, schema=self._writer.schema))
        self._written += len(self._held)
        self._held, self._characters = [], 0


class _Sink:
    """A write-only file, which counts its bytes itself. Its owner closes it."""

    closed = False

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._size = 0

    def write(self, data: Any) -> int:
        written = bytes(data)
        # An abandoned writer ends its file when it is garbage-collected, long after the file was removed.
        if not self._file.closed:
            self._file.write(written)
        self._size += len(written)
        return len(written)

    def tell(self) -> int:
        return self._size

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass


def _length(row: Row) -> int:
    return sum(len(value) for value in row if isinstance(value, str)) + sum(
        len(value.text) for value in row if isinstance(value, Document)
    )


def _shown(value: Value) -> str:
    text = cell(value)
    return repr(text if len(text) <= 60 else text[:59] + "…")


# --- the types of columns -----------------------------------------------------------------------


def _column(name: str, declared: Type | None, values: Sequence[Value]) -> _Column:
    """Return a column for values of a declared type, or else of their own; for mixed types, one of texts."""
    kinds = {type_of_value(value) for value in values} | {declared}
    kinds.discard(None)
    present = [value for value in values if value is not None]
    text = _arrow().string()
    if len(kinds) > 1:
        return _Column(name, text, lambda value: _text(cell(value)))
    match next(iter(kinds), None):
        case Type.BOOLEAN:
            return _Column(name, _arrow().bool_(), lambda value: value if isinstance(value, bool) else None)
        case Type.NUMBER:
            return _Column(name, *_numbers(present))
        case Type.DATE:
            return _Column(name, *_dates(present))
        case Type.RELATION | Type.DOCUMENT as kind:
            return _Column(name, text, _embedded(kind), kind)
    return _Column(name, text, lambda value: _text(value) if isinstance(value, str) else None)


def _text(text: str) -> str:
    # Half a surrogate pair, which UTF-8 cannot write.
    return text.encode(errors="backslashreplace").decode()


def _embedded(kind: Type) -> Convert:
    def convert(value: Value) -> str | None:
        if type_of_value(value) is not kind:
            return None
        return _text(value.text if isinstance(value, Document) else json_text(value))

    return convert


def _is_number(value: Value) -> bool:
    return type_of_value(value) is Type.NUMBER


def _numbers(values: Sequence[Any]) -> tuple[Any, Convert]:
    """Return the type that can hold all numbers: 64-bit integers, floats, decimals, or else texts."""
    arrow = _arrow()
    if values and all(isinstance(value, int) and abs(value) <= _LARGEST_INTEGER for value in values):
        return arrow.int64(), _integer
    are_floats = all(_float(value) is not None for value in values)
    if are_floats and not any(isinstance(value, Decimal) for value in values):
        return arrow.float64(), _float
    if (decimals := _decimals(values)) is not None:
        return decimals
    if are_floats:
        return arrow.float64(), _float
    return arrow.string(), lambda value: cell(value) if _is_number(value) else None


def _decimals(values: Sequence[Any]) -> tuple[Any, Convert] | None:
    """The narrowest type of decimals that holds all values; None if there is none."""
    decimals = [decimal for value in values if (decimal := _decimal_of(value)) is not None]
    if len(decimals) < len(values):
        return None
    scale = max([0, *(-int(each.as_tuple().exponent) for each in decimals)])
    digits = scale + max([0, *(each.adjusted() + 1 for each in decimals)])
    if digits <= _DIGITS:
        return _arrow().decimal128(_DIGITS, scale), _decimal(scale, _DIGITS - scale)
    if digits <= _MOST_DIGITS:
        return _arrow().decimal256(_MOST_DIGITS, scale), _decimal(scale, _MOST_DIGITS - scale)
    return None


def _integer(value: Value) -> int | None:
    exact = _decimal_of(value)
    if exact is None or exact.adjusted() > 19:
        return None
    whole = int(exact)
    return whole if whole == exact and abs(whole) <= _LARGEST_INTEGER else None


def _float(value: Value) -> float | None:
    """Return the float that equals a number; None if there is none."""
    if isinstance(value, float):
        return value
    if not _is_number(value):
        return None
    if isinstance(value, int):
        return float(value) if abs(value) <= _LARGEST_EXACT else None
    if value.is_nan():
        return math.nan
    rounded = float(value)
    is_equal = not value.is_finite() or (math.isfinite(rounded) and decimal_of(rounded) == value)
    return rounded if is_equal else None


def _decimal_of(value: Value) -> Decimal | None:
    if not _is_number(value):
        return None
    if isinstance(value, float):
        return decimal_of(value) if math.isfinite(value) else None
    exact = Decimal(value)
    return exact if exact.is_finite() else None


def _decimal(scale: int, whole_digits: int) -> Convert:
    def convert(value: Value) -> Decimal | None:
        exact = _decimal_of(value)
        if exact is None or -int(exact.as_tuple().exponent) > scale or exact.adjusted() >= whole_digits:
            return None
        return exact

    return convert


def _dates(values: Sequence[Any]) -> tuple[Any, Convert]:
    """Return the type for dates: days, times without a zone, or times in their common zone, else in UTC."""
    arrow = _arrow()
    times = [value for value in values if isinstance(value, datetime)]
    if values and not times:
        return arrow.date32(), _day
    if not any(value.tzinfo for value in times):
        return arrow.timestamp("us"), _time
    zones = {_zone(value) for value in times}
    return arrow.timestamp("us", zones.pop() if len(zones) == 1 else "UTC"), _moment


def _zone(value: datetime) -> str:
    if isinstance(value.tzinfo, ZoneInfo) and value.tzinfo.key:
        return value.tzinfo.key
    offset = value.utcoffset()
    if not offset or offset.seconds % 60 or offset.microseconds:
        return "UTC"
    minutes = int(offset.total_seconds()) // 60
    return f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"


def _day(value: Value) -> date | None:
    if isinstance(value, datetime):
        return value.date() if value.tzinfo is None and value.time() == time() else None
    return value if isinstance(value, date) else None


def _time(value: Value) -> datetime | None:
    if isinstance(value, datetime):
        return value if value.tzinfo is None else None
    return datetime.combine(value, time()) if isinstance(value, date) else None


def _moment(value: Value) -> datetime | None:
    """Return a time in UTC; a time without a zone counts as UTC."""
    if not isinstance(value, datetime) or value.tzinfo is None:
        found = _time(value)
        return None if found is None else found.replace(tzinfo=UTC)
    try:
        return value.astimezone(UTC)
    except OverflowError:  # near the years 1 and 9999
        return None


# --- reading ------------------------------------------------------------------------------------


def read_parquet(file: BinaryIO, name: str, types: Types) -> Iterator[Schema | Batch]:
    """Yield the tuples row group by row group; not from a pipe, since the end of the file is read first."""
    arrow = _arrow()
    if not file.seekable():
        raise InputError(f"{name}: Parquet is read from files only, not from a pipe")
    try:
        source = arrow.parquet.ParquetFile(file)
        columns = [_ReadColumn.of(field, name) for field in source.schema_arrow]
        schema = Schema(tuple(column.name for column in columns), tuple(column.kind for column in columns))
        yield _declared(schema, types)
        kept = {column.name: column.kind for column in columns if column.is_embedded}
        typed = Typed(schema, {**kept, **types})
        number = 0
        for portion in source.iter_batches(batch_size=_READ_ROWS):
            values = [column.values(found) for column, found in zip(columns, portion.columns, strict=True)]
            rows = list(zip(*values, strict=True)) if values else [()] * portion.num_rows
            yield [_row(typed, row, f"{name}, row {place}") for place, row in enumerate(rows, number + 1)]
            number += len(rows)
    except SettingError as error:
        raise InputError(f"{name}: {error.message}") from None
    except (arrow.ArrowException, OSError) as error:
        raise InputError(f"{name}: not a Parquet file that can be read: {error}") from error


def _declared(schema: Schema, types: Types) -> Schema:
    for each in types:
        schema.position(each)
    kinds = [types.get(each) or kind for each, kind in zip(schema.names, schema.types, strict=True)]
    return Schema(schema.names, tuple(kinds))


def _row(typed: Typed, row: Row, place: str) -> Row:
    try:
        return typed.row(row)
    except SettingError as error:
        raise InputError(f"{place}: {error.message}") from None


class _ReadColumn(msgspec.Struct, frozen=True):
    """A column of a file: the type of its values, and the type that it is cast to before it is read."""

    name: str
    kind: Type | None
    cast: Any = None
    is_embedded: bool = False

    @classmethod
    def of(cls, field: Any, file: str) -> _ReadColumn:
        kinds, kind = _arrow().types, field.type
        cast = None
        if kinds.is_dictionary(kind):
            cast = kind = kind.value_type
        if kinds.is_timestamp(kind):
            cast = _arrow().timestamp("us", kind.tz)
        said = (field.metadata or {}).get(_TYPE)
        if said is not None and said.decode() in tuple(Type):
            return cls(field.name, Type(said.decode()), cast, True)
        found = next((of for test, of in _TYPES if getattr(kinds, test)(kind)), "none")
        if found == "none":
            raise InputError(f"{file}: the column {field.name!r} is of the type {kind}, which no value has")
        return cls(field.name, None if found is None else Type(found), cast)

    def values(self, array: pyarrow.Array) -> list[Value]:
        if self.cast is not None:
            array = array.cast(self.cast, safe=False)
        values: list[Value] = array.to_pylist()
        if self.kind is not None or PLAIN.issuperset(map(type, values)):
            return values
        return list(map(value_of, values))


# The types by pyarrow's tests; None if each value has a type of its own.
_TYPES: tuple[tuple[str, Type | None], ...] = (
    ("is_string", Type.CHAR),
    ("is_large_string", Type.CHAR),
    ("is_boolean", Type.BOOLEAN),
    ("is_integer", Type.NUMBER),
    ("is_floating", Type.NUMBER),
    ("is_decimal", Type.NUMBER),
    ("is_date", Type.DATE),
    ("is_timestamp", Type.DATE),
    ("is_null", None),
    ("is_list", None),
    ("is_large_list", None),
    ("is_struct", None),
)


formats.add(
    Format(
        "parquet",
        (".parquet",),
        read_parquet,
        ParquetWriter,
        appends=False,
        is_text=False,
        has_frame=True,
    )
)
