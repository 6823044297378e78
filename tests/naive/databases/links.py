"""Chains of statements through which tuples (n, m) pass: each writes its row, changes it, or looks for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.naive.body import BROKEN, broken
from tests.naive.databases.sql import INSERTS, QUERIES, UPDATES
from tests.naive.writer import Names, Var, Writer

PAIR: Names = ("n", "m")


class Links:
    """Writes the statements of chains, and notes which signals tell that they are done with a table."""

    def __init__(self, writer: Writer, done: Mapping[str, list[str]], only_appends: bool) -> None:
        self.writer = writer
        self.done = done
        self._kinds: dict[Callable[[Var], Var], int] = {
            self._append: 5,
            self._lose: 2,
            self._doubt: 1,
            self._choose: 2,
        }
        if not only_appends:
            self._kinds |= {self._update: 3, self._insert: 1, self._query: 3}

    def link(self, given: Var) -> Var:
        """Write one more link; its result has each n once, as what it is given."""
        return self.writer.random.choices(list(self._kinds), list(self._kinds.values()))[0](given)

    def _table(self) -> str:
        return self.writer.random.choice(("many", "one"))

    def _done(self, table: str) -> str:
        signal = self.writer.fresh("d")
        self.done[table].append(signal)
        return f"DONE: {signal}"

    def _append(self, given: Var) -> Var:
        writer, table = self.writer, self._table()
        options = [self._done(table)]
        if table == "one":
            options.append('KEY: "n"')
            if writer.chance(0.5):
                options.append("ON_CONFLICT: update")
        return writer.add("dbappend", [given], [f'"{table}"'], [PAIR], options, signals=False)[0]

    def _update(self, given: Var) -> Var:
        writer, table = self.writer, self._table()
        text = writer.random.choice(UPDATES).text.format(table=table)
        names = (*PAIR, "changed")
        made = writer.add(
            "dbupdate", [given], [f'"{text}"'], [names], [self._done(table)], "tuple", signals=False
        )[0]
        writer.variables.remove(made)
        return writer.one("project", [made], ['"n, m + changed as m"'], PAIR)

    def _insert(self, given: Var) -> Var:
        """Where the key may be there already: then that tuple fails."""
        writer, table = self.writer, self._table()
        insert, names = INSERTS[table], (*PAIR, "changed")
        made = writer.add(
            "dbupdate",
            [given],
            [f'"{insert.text}"'],
            [names],
            [self._done(table)],
            "tuple",
            fails=insert.fails,
            signals=False,
        )[0]
        self._without_messages()
        writer.variables.remove(made)
        return writer.one("project", [made], ['"n, m"'], PAIR)

    def _without_messages(self) -> None:
        """What failed, without the words of the database."""
        writer = self.writer
        last = writer.variables[-1]
        if "error" in last.names:
            writer.variables.remove(last)
            writer.one("project", [last], ['"n, m, attempts as k"'], (*PAIR, "k"))

    def _query(self, given: Var) -> Var:
        writer, table = self.writer, self._table()
        queries = QUERIES if table == "one" else QUERIES[:-1]
        text = writer.random.choice(queries).text.format(table=table)
        options = [self._done(table), *(["OUTER"] if writer.chance(0.3) else [])]
        made = writer.add("dbquery", [given], [f'"{text}"'], [(*PAIR, "k")], options, "tuple", signals=False)
        result = writer.random.choice(("n, m", "n, k as m"))
        return writer.one("project", [made[0]], [f'"{result}"'], PAIR)

    # --- what may happen to tuples between databases ---

    def _lose(self, given: Var) -> Var:
        return self._paired(broken(self.writer, given, BROKEN[:-1]))

    def _paired(self, variable: Var) -> Var:
        return self.writer.one("project", [variable], ['"n, m"'], PAIR)

    def _doubt(self, given: Var) -> Var:
        some = broken(self.writer, given)
        return self.writer.one("minus", [given, some], [], PAIR, 'ON: "n"')

    def _choose(self, given: Var) -> Var:
        writer = self.writer
        match writer.random.randrange(3):
            case 0:
                return writer.one("select", [given], [f'"{writer.condition(given)}"'], PAIR)
            case 1:
                kept = writer.one("sort", [given], ['"n desc, m"'], PAIR)
                return writer.one("limit", [kept], [str(writer.random.randint(2, 5))], PAIR)
            case _:
                return self._paired(writer.one("apply", [given], ['"t_slow"'], (*PAIR, "k")))
