"""The operators of databases on whole relations and lists of rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from aioflow.relation import Row, identity
from tests.naive.bag import Bag
from tests.naive.databases.sql import query_of, update_of
from tests.naive.databases.tables import COLUMNS, Tables, World
from tests.naive.operators import OPERATORS, Failed, Known, UndecidedError, Work, with_results


def operators_on(world: World) -> Mapping[str, Known]:
    """All operators; those of databases work on this world."""
    own = _Operators(world)
    return {
        **OPERATORS,
        "dbimport": Known(own.dbimport, ("table",), "start"),
        "dbquery": Known(own.dbquery, ("sql",), "tuple"),
        "dbappend": Known(own.dbappend, ("table",)),
        "dbexport": Known(own.dbexport, ("table",), "end"),
        "dbupdate": Known(own.dbupdate, ("sql",), "tuple"),
        "diff": Known(own.diff, ("table",), "end"),
    }


class _Operators:
    def __init__(self, world: World) -> None:
        self.world = world

    # --- reading ---

    def dbimport(self, work: Work) -> list[Bag]:
        names = COLUMNS[work["table"]]
        rows = [] if work.only_names else self.world.view(work.after).of(work["table"])
        return [Bag(names, tuple(rows))]

    def dbquery(self, work: Work) -> list[Bag]:
        table, query = query_of(work["sql"])
        rows = [] if work.only_names else self.world.view(work.after).of(table)
        if not work.inputs:
            work.firings += 1
            return [Bag(query.names, () if work.only_names else tuple(query.rows(rows, {})))]
        given = work.inputs[0]
        results = []
        for row in given.rows:
            found = query.rows(rows, dict(zip(given.known, row, strict=True)))
            work.firings += 1
            results.append(found or ([(None,) * len(query.names)] if work["outer"] else []))
        return [with_results(given, query.names, results)]

    # --- writing ---

    def dbappend(self, work: Work) -> list[Bag]:
        given, table = work.inputs[0], work["table"]
        rows = given.in_order(COLUMNS[table])
        if work["key"] is None:
            self._write(work, lambda tables: tables.rows[table].extend(rows))
        else:
            updates = work["on_conflict"] == "update"
            self._write(work, lambda tables: _store_keyed(tables.rows[table], rows, updates))
        return [given]

    def dbexport(self, work: Work) -> list[Bag]:
        given, table = work.inputs[0], work["table"]
        if not work.only_names and work["partial"] != "allow" and self._mark(given) != "whole":
            work.happened.append("export refused")
            return [Bag(given.names)]
        rows = list(given.in_order(COLUMNS[table]))
        self._write(work, lambda tables: tables.rows.update({table: rows}))
        return [given]

    def dbupdate(self, work: Work) -> list[Bag]:
        table, update = update_of(work["sql"])
        given = work.inputs[0] if work.inputs else Bag((), ((),))
        names = given.known
        tables = self.world.view(work.after) if not work.only_names else Tables()
        done: list[Row] = []
        results: list[list[Row]] = []
        for row in given.rows if not work.only_names else ():
            try:
                changed = update.change(tables.rows[table], dict(zip(names, row, strict=True)))
            except Exception as error:
                work.failed.append(Failed(names, (row,), error))
                continue
            work.firings += 1
            done.append(row)
            results.append([(changed,)])

        def change(tables: Tables) -> None:
            for row in done:
                update.change(tables.rows[table], dict(zip(names, row, strict=True)))

        self._write(work, change)
        return [with_results(Bag(names, tuple(done)), ["changed"], results)]

    def diff(self, work: Work) -> list[Bag]:
        given = work.inputs[0]
        names = COLUMNS["watched"]
        changed = (*names, "old-a", "old-k", "changes")
        if work.only_names:
            return [Bag(names), Bag(changed), Bag(names)]
        rows, mark, now = given.in_order(names), self._mark(given), self.world.now
        found = self.world.view(work.after).watched.diff(rows, mark, now)
        work.happened.append(f"diff of a {mark} relation")
        work.happened += [f"diff that told {name}" for name, each in zip(_TOLD, found, strict=True) if each]

        def compare(tables: Tables) -> None:
            tables.watched.diff(rows, mark, now)

        self._write(work, compare)
        return [Bag(names, tuple(each)) for names, each in zip((names, changed, names), found, strict=True)]

    def _write(self, work: Work, effect: Callable[[Tables], None]) -> None:
        if not work.only_names:
            work.wrote.add(self.world.write(effect))

    def _mark(self, bag: Bag) -> str:
        if not bag.marks.is_exact:
            raise UndecidedError("what is done depends on what arrives first")
        marks = bag.marks.least
        return "doubtful" if marks.doubtful else "partial" if marks.partial else "whole"


_TOLD = ("added", "changed", "removed")


def _store_keyed(stored: list[Row], rows: tuple[Row, ...], updates: bool) -> None:
    for row in rows:
        places = [place for place, old in enumerate(stored) if identity(old[:1]) == identity(row[:1])]
        if not places:
            stored.append(row)
        elif updates:
            stored[places[0]] = row
