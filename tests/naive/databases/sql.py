"""The statements of SQL in random plans, each beside what it does to a list of rows (n, m)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aioflow.relation import Row

Tuple = Mapping[str, Any]


class ViolatedError(Exception):
    """A row that the table refuses."""


@dataclass(frozen=True)
class Query:
    """A query with the names of its results."""

    text: str
    names: tuple[str, ...]
    rows: Callable[[Sequence[Row], Tuple], list[Row]]


@dataclass(frozen=True)
class Update:
    """A statement that changes rows in place and tells how many; `fails`: it may refuse a tuple."""

    text: str
    change: Callable[[list[Row], Tuple], int]
    fails: bool = False


def _sum(rows: Sequence[Row]) -> int | None:
    known = [m for _, m in rows if m is not None]
    return sum(known) if known else None


def _of(rows: Sequence[Row], given: Tuple) -> list[Row]:
    return [row for row in rows if row[0] == given["n"]]


def _sum_or_none(rows: Sequence[Row], given: Tuple) -> list[Row]:
    found = _sum(_of(rows, given))
    return [(-1 if found is None else found,)]


def _each(rows: Sequence[Row], given: Tuple) -> list[Row]:
    return [(m,) for _, m in _of(rows, given)]


def _same(rows: Sequence[Row], given: Tuple) -> list[Row]:
    return [(sum(m is not None and m == given["m"] for _, m in _of(rows, given)),)]


def _all(rows: Sequence[Row], given: Tuple) -> list[Row]:
    return list(rows)


def _count(rows: Sequence[Row], given: Tuple) -> list[Row]:
    return [(len(rows), _sum(rows) or 0)]


def _increase(rows: list[Row], given: Tuple) -> int:
    return _replace(rows, lambda n, m: (n, None if m is None else m + 1), given)


def _set(rows: list[Row], given: Tuple) -> int:
    return _replace(rows, lambda n, m: (n, given["m"]), given)


def _replace(rows: list[Row], changed: Callable[[Any, Any], Row], given: Tuple) -> int:
    places = [place for place, row in enumerate(rows) if row[0] == given["n"]]
    for place in places:
        rows[place] = changed(*rows[place])
    return len(places)


def _delete(rows: list[Row], given: Tuple) -> int:
    gone = _of(rows, given)
    rows[:] = [row for row in rows if row[0] != given["n"]]
    return len(gone)


def _insert(rows: list[Row], given: Tuple) -> int:
    rows.append((given["n"], given["m"]))
    return 1


def _insert_new(rows: list[Row], given: Tuple) -> int:
    if _of(rows, given):
        raise ViolatedError("the key is there already")
    return _insert(rows, given)


def _increase_all(rows: list[Row], given: Tuple) -> int:
    rows[:] = [(n, None if m is None else m + 10) for n, m in rows]
    return len(rows)


# For each tuple; they look at rows of its own n alone, which no other tuple of the run has.
QUERIES = (
    Query("select coalesce(sum(m), -1) as k from {table} where n = :n", ("k",), _sum_or_none),
    Query("select count(*) as k from {table} where n = :n and m = :m", ("k",), _same),
    Query("select m as k from {table} where n = :n", ("k",), _each),  # one row, if n is a key
)
UPDATES = (
    Update("update {table} set m = m + 1 where n = :n", _increase),
    Update("update {table} set m = :m where n = :n", _set),
    Update("delete from {table} where n = :n", _delete),
)
INSERTS = {
    "many": Update("insert into many (n, m) values (:n, :m)", _insert),
    "one": Update("insert into one (n, m) values (:n, :m)", _insert_new, fails=True),
}
# Without an input.
WHOLE_QUERIES = (
    Query("select n, m from {table}", ("n", "m"), _all),
    Query("select count(*) as k, coalesce(sum(m), 0) as i from {table}", ("k", "i"), _count),
)
WHOLE_UPDATE = Update("update {table} set m = m + 10", _increase_all)


def _by_text(statements: Sequence[Query | Update]) -> dict[str, tuple[str, Any]]:
    return {
        statement.text.format(table=table): (table, statement)
        for statement in statements
        for table in ("many", "one")
    }


_QUERIES = _by_text((*QUERIES, *WHOLE_QUERIES))
_UPDATES = _by_text((*UPDATES, WHOLE_UPDATE)) | {
    insert.text: (table, insert) for table, insert in INSERTS.items()
}


def query_of(text: str) -> tuple[str, Query]:
    """The table and the query of a text."""
    table, query = _QUERIES[text]
    assert isinstance(query, Query)
    return table, query


def update_of(text: str) -> tuple[str, Update]:
    table, update = _UPDATES[text]
    assert isinstance(update, Update)
    return table, update
