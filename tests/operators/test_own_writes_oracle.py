"""Chains of appends, updates and queries: what each tuple sees is what a dictionary tells, in every mode."""

from __future__ import annotations

import os
from collections import defaultdict
from dataclasses import dataclass
from typing import Any, Literal

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aioflow import Row
from aioflow.runtime.session import MODES
from aioflow.testing import Script, rows
from tests.operators.database_plans import out, run, table
from tests.operators.running import bag

IS_LONG = os.environ.get("AIOFLOW_TEST_LONG") == "1"

# In one of them each n stands once.
TABLES = ("many", "one")


@dataclass(frozen=True)
class Link:
    """A statement of the chain: it gets tuples (n, m) and gives such tuples."""

    kind: Literal["append", "update", "query"]
    table: Literal["many", "one"]
    updates: bool = False  # of an append: what becomes of rows that are there

    def text(self, number: int) -> str:
        """The statement, from x0 to x1 and so on."""
        before, after = f"x{number}", f"x{number + 1}"
        match self.kind:
            case "append":
                conflict = "update" if self.updates else "ignore"
                options = f'{{KEY: "n"; ON_CONFLICT: {conflict}}}' if self.table == "one" else ""
                return f'dbappend ({before}, "{self.table}" : {after}) {options}'
            case "update":
                return f"""dbupdate ("update {self.table} set m = m + 1 where n = :n", {before} : y{number})
                project (y{number}, "n, m + changed as m" : {after})"""
            case "query":
                # As an integer: a column that is widened is locked for the run's other readers.
                sql = f"select cast(coalesce(sum(m), -1) as bigint) as m from {self.table} where n = :n"
                return f'dbquery ("{sql}", {before} : {after})'

    def follow(self, stored: dict[int, list[int]], n: int, m: int) -> int:
        """What becomes of a tuple, and of the table."""
        there = stored[n]
        match self.kind:
            case "append":
                if self.table == "many" or not there:
                    there.append(m)
                elif self.updates:
                    there[:] = [m]
                return m
            case "update":
                there[:] = [each + 1 for each in there]
                return m + len(there)
            case "query":
                return sum(there) if there else -1


LINKS = st.lists(
    st.builds(
        Link, st.sampled_from(["append", "append", "update", "query"]), st.sampled_from(TABLES), st.booleans()
    ),
    min_size=2,
    max_size=6,
)


def expected(
    links: list[Link], tuples: list[Row], before: list[Row]
) -> tuple[list[Row], dict[str, list[Row]]]:
    """The tuples that come out, and the tables."""
    stored: dict[str, dict[int, list[int]]] = {name: defaultdict(list) for name in TABLES}
    for name in TABLES:
        for n, m in before:
            stored[name][n].append(m)
    results = []
    for n, m in tuples:
        for link in links:
            m = link.follow(stored[link.table], n, m)
        results.append((n, m))
    return results, {name: [(n, m) for n, found in stored[name].items() for m in found] for name in TABLES}


def prepare(url: str, before: list[Row]) -> None:
    run(url, " ".join(f'dbupdate ("drop table if exists {name}")' for name in TABLES))
    for name in TABLES:
        run(url, f'dbexport (rel, "{name}")', rel=rows(*before, schema="n m"))


@given(
    links=LINKS,
    numbers=st.lists(st.integers(0, 40), unique=True, max_size=30),
    known=st.sets(st.integers(0, 40), max_size=10),
    capacity=st.sampled_from([1, 2, 256]),
)
@settings(
    max_examples=25 if IS_LONG else 8,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_every_tuple_sees_its_own_rows_and_no_mode_sees_others(
    database_url: str, links: list[Link], numbers: list[int], known: set[int], capacity: int
) -> None:
    before: list[Row] = [(-1, 0), *((n, 1000 + n) for n in sorted(known))]
    tuples: list[Row] = [(n, 10 * n) for n in numbers]
    text = " ".join(link.text(number) for number, link in enumerate(links))
    renamed = f'project (rel, "n, m" : x0) {text} project (x{len(links)}, "n, m" : out)'
    results, tables = expected(links, tuples, before)
    for mode in MODES:
        prepare(database_url, before)
        source: Any = Script(*({"n": n, "m": m} for n, m in tuples))
        assert bag(out(database_url, renamed, rel=source, mode=mode, capacity_rows=capacity)) == bag(results)
        for name in TABLES:
            assert bag(table(database_url, name)) == bag(tables[name])
