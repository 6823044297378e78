"""Random small databases with their forms, and what must hold of every crawl of them.

The short form is test_random_databases.py, the long one `python -m tests.hidden`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

import msgspec

from aioflow.hidden import Categorical, Numeric
from aioflow.testing import run
from tests.hidden.crawls import Attribute, Extracted, Row, Shown, comparable, extract
from tests.hidden.plain_forms import PlainForm, Tell, in_all, whether_more

OF_RANGES = ("binary-shrink", "rank-shrink", "hybrid", "auto")
OF_MENUS = ("dfs", "slice-cover", "lazy-slice-cover", "hybrid", "auto")
OF_BOTH = ("hybrid", "auto")
# Those with a bound in theorem 1; of the others the paper gives none.
BOUNDED = ("rank-shrink", "slice-cover", "lazy-slice-cover", "hybrid")
WORKERS = 7
HUGE = 10**40  # more than any machine integer or float counts


class Database(msgspec.Struct, frozen=True):
    """The tuples of a form in the order in which it shows them, and its attributes."""

    seed: int
    attributes: list[Numeric | Categorical]
    rows: list[Row]
    k: int
    tell: Tell

    @property
    def algorithms(self) -> tuple[str, ...]:
        menus = [isinstance(each, Categorical) or each.predicates == "value" for each in self.attributes]
        return OF_MENUS if all(menus) else OF_BOTH if any(menus) else OF_RANGES

    @property
    def overfull(self) -> list[Row]:
        """The points with more than k tuples."""
        return sorted((row for row, number in Counter(self.rows).items() if number > self.k), key=repr)

    def form(self, jitter: int | None = None) -> PlainForm:
        names = [each.name for each in self.attributes]
        return PlainForm(names, self.rows, self.k, tell=self.tell, jitter=jitter)


# --- values -----------------------------------------------------------------------------------------------

Decode = Callable[[int], Any]


def _scales() -> Iterator[tuple[Decode, Any]]:
    """Yield ways to make values of whole numbers, each with the step between them."""
    yield int, 1
    yield (lambda number: number - 50), 1
    yield (lambda number: HUGE + number * HUGE // 1000), 1
    yield (lambda number: number * HUGE - 40 * HUGE), 1
    yield (lambda number: 7 * number - 100), 7
    yield (lambda number: number * Decimal("0.01")), Decimal("0.01")
    yield (lambda number: float(Decimal(number) * Decimal("0.1"))), 0.1
    yield (lambda number: date(2024, 2, 20) + timedelta(number)), 1
    yield (lambda number: date(1969, 12, 1) + timedelta(7 * number)), timedelta(7)
    yield (lambda number: datetime(1999, 12, 31, 23, 59) + timedelta(seconds=number)), 1
    yield (
        (lambda number: datetime(2024, 3, 31, tzinfo=UTC) + timedelta(minutes=15 * number)),
        timedelta(minutes=15),
    )


def _numeric(random: Random, name: str) -> tuple[Numeric, list[Any]]:
    decode, step = random.choice(list(_scales()))
    numbers = random.sample(range(100), random.choice((1, 2, 5, 20, 100)))
    values = [decode(number) for number in numbers]
    # A day of the week, or a multiple of 7, counts from the first value that is known.
    needs_low = step in (7, timedelta(7), timedelta(minutes=15))
    low = min(values) if needs_low or random.random() < 0.5 else None
    high = max(values) if random.random() < 0.5 else None
    return Numeric(name, low, high, step), values


def _menu(random: Random, name: str) -> tuple[Attribute, list[Any]]:
    size = random.choice((1, 2, 3, 4, 8))
    if random.random() < 0.2:
        return Numeric(name, 1, size, predicates="value"), list(range(1, size + 1))
    domain = [*"abcdefgh"[:size]] if random.random() < 0.7 else [*range(10, 10 + size)]
    return Categorical(name, domain), random.sample(domain, random.randint(1, size))


# --- databases --------------------------------------------------------------------------------------------


def random_database(seed: int) -> Database:
    random = Random(seed)
    kind = random.choice(("ranges", "menus", "both"))
    columns = []
    for number in range(random.randint(2 if kind == "both" else 1, 4)):
        is_menu = kind == "menus" or (kind == "both" and (number == 0 or random.random() < 0.4))
        if kind == "both" and number == 1:
            is_menu = False
        columns.append((_menu if is_menu else _numeric)(random, f"A{number + 1}"))
    if kind == "both" and random.random() < 0.3:
        random.shuffle(columns)
    k = random.choice((1, 2, 3, 4, 5, 8))
    rows = _rows(random, [values for _, values in columns], k)
    attributes = [attribute for attribute, _ in columns]
    return Database(seed, attributes, rows, k, random.choice((whether_more, whether_more, in_all)))


def _rows(random: Random, pools: list[list[Any]], k: int) -> list[Row]:
    number = random.choice((0, 1, k, k + 1, 10, 30, 60, 60))
    skew = random.choice((1, 1, 3, 8))
    rows = [tuple(pool[int(len(pool) * random.random() ** skew)] for pool in pools) for _ in range(number)]
    if random.random() < 0.8:  # else a point may have too many
        rows = [row for row, times in Counter(rows).items() for _ in range(min(times, k))]
    if rows and random.random() < 0.5:
        full = random.choice(rows)
        rows = [row for row in rows if row != full] + [full] * k
    random.shuffle(rows)
    return _ranked(random, rows)


def _ranked(random: Random, rows: list[Row]) -> list[Row]:
    """Return the tuples in the order in which the form shows them."""
    way = random.choice(("at random", "up", "down", "many first"))
    if way == "many first":
        times = Counter(rows)
        return sorted(rows, key=lambda row: -times[row])
    if way != "at random" and rows:
        place = random.randrange(len(rows[0]))
        return sorted(rows, key=lambda row: row[place], reverse=way == "down")
    return rows


# --- what must hold ---------------------------------------------------------------------------------------


class Outcome(msgspec.Struct):
    """What a number of databases came to."""

    databases: int = 0
    crawls: int = 0
    queries: int = 0
    overfull: int = 0
    problems: list[str] = msgspec.field(default_factory=list)

    def add(self, other: Outcome) -> None:
        self.databases += other.databases
        self.crawls += other.crawls
        self.queries += other.queries
        self.overfull += other.overfull
        self.problems += other.problems


def check_database(seed: int) -> Outcome:
    """Crawl a random database by every algorithm, with one worker and with several."""
    database = random_database(seed)
    outcome = Outcome(1, overfull=bool(database.overfull))
    for algorithm in database.algorithms:
        asked: list[Counter[Shown]] = []
        for workers in (1, WORKERS):
            form = database.form(jitter=seed if workers > 1 else None)
            where = f"database {seed}, {algorithm}, {workers} workers"
            try:
                result = run(
                    extract(form, database.attributes, k=database.k, algorithm=algorithm, workers=workers),
                    seed=seed if workers > 1 else None,
                )
            except Exception as error:  # a campaign goes on
                outcome.problems.append(f"{where}: {error!r}")
                continue
            asked.append(comparable(form.queries))
            outcome.crawls += 1
            outcome.queries += len(form.queries)
            outcome.problems += [f"{where}: {each}" for each in _problems(database, algorithm, form, result)]
        if algorithm != "auto" and len(asked) == 2 and asked[0] != asked[1]:
            outcome.problems.append(f"database {seed}, {algorithm}: {WORKERS} workers send other queries")
    return outcome


def _problems(database: Database, algorithm: str, form: PlainForm, result: Extracted) -> Iterator[str]:
    report, overfull = result.report, database.overfull
    expected = {row: min(number, database.k) for row, number in Counter(database.rows).items()}
    if result.bag != expected:
        yield f"missing {Counter(expected) - result.bag}, too many {result.bag - Counter(expected)}"
    if report.complete != (not overfull):
        yield f"complete is {report.complete} with the points {overfull} too full: {report.reason}"
    points = sorted((_point(database, each.query) for each in report.unresolved), key=repr)
    if points != overfull:
        yield f"{points} are named as unresolved, not {overfull}"
    twice = [query for query, times in comparable(form.queries).items() if times > 1]
    if twice:
        yield f"asked twice: {twice}"
    if report.queries != len(form.queries):
        yield f"the report counts {report.queries} queries, but there were {len(form.queries)}"
    if report.tuples != len(result.rows):
        yield f"the report counts {report.tuples} tuples, but there were {len(result.rows)}"
    if not overfull and any(report.covered):
        yield f"all was resolved, but covered are {report.covered}"
    if sum(_is_covered(row, report.covered, database) for row in database.rows) != len(database.rows) - sum(
        database.rows.count(row) for row in overfull
    ):
        yield f"{report.covered} does not cover all points but {overfull}"
    bound = report.bound(len(database.rows))
    if algorithm in BOUNDED and not overfull and report.queries > bound:
        yield f"{report.queries} queries, more than the bound of {bound}"


def _is_covered(row: Row, covered: list[Mapping[str, Any]], database: Database) -> bool:
    form = PlainForm([each.name for each in database.attributes], [row], 1)
    return any(form.matching(query) for query in covered)


def _point(database: Database, query: Mapping[str, Any]) -> Row:
    """Return the point that a query is about. An attribute with one possible value may be left open."""
    return tuple(query.get(each.name, _only_value(each)) for each in database.attributes)


def _only_value(attribute: Attribute) -> Any:
    return attribute.low if isinstance(attribute, Numeric) and attribute.low == attribute.high else None
