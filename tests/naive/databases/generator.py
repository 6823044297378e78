"""Random runs on one database, in which nothing depends on timing.

- Tuples of a chain have numbers of their own. Whatever reads or changes the tables for a tuple looks at rows
  of its number alone, so that no other chain can interfere, and no other tuple of the same one.
- Who reads a table as a whole comes after all that write to it, by DONE; or after none, and sees it as it was
  before the run; or after some, where nothing else reads what the run has written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.naive.bag import Bag
from tests.naive.body import BROKEN, broken, statement
from tests.naive.databases.links import PAIR, Links
from tests.naive.databases.sql import WHOLE_QUERIES, WHOLE_UPDATE
from tests.naive.databases.tables import COLUMNS
from tests.naive.generator import MAIN, Example
from tests.naive.writer import TYPES, Names, PlanText, Var, Writer

CHAINS = 3
_NOISE = 3


@dataclass(frozen=True)
class Run:
    """One run: a program with its inputs, the hours since the run before, and whether a person confirms."""

    example: Example
    hours: int
    confirms: bool


def story(seed: int) -> list[Run]:
    """The runs of a seed, one after the other on one database."""
    random = Random(f"database {seed}")
    runs: list[Run] = []
    watched: list[tuple[Any, ...]] = []
    watches = random.random() < 0.6
    for number in range(random.choice((3, 4, 5, 6) if watches else (1, 2, 3))):
        watched = _next_day(random, watched)
        example = _Plan(random, seed * 10 + number, watched, watches).example()
        runs.append(Run(example, random.choice((1, 24, 30)), random.random() < 0.4))
    return runs


def _next_day(random: Random, before: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Rows (n, a, k) as they were, some of them changed, gone or new; sometimes very different."""
    if not before and random.random() < 0.4:
        return []  # for some days there is nothing
    lost = random.choice((0.0, 0.1, 0.1, 0.2, 0.5, 1.0))
    kept = [row for row in before if random.random() >= lost]
    rows = {
        n: (n, random.choice("xyz") if random.random() < 0.2 else a, random.randint(0, 9)) for n, a, k in kept
    }
    for _ in range(random.randint(0, 4) if before else random.randint(3, 20)):
        n = random.randint(0, 40)
        rows.setdefault(n, (n, random.choice("xyz"), 0))
    if random.random() < 0.1:
        rows = {n: (n, None, k) for n, _, k in rows.values()}
    return list(rows.values())


class _Plan:
    """The plan of one run that is being written."""

    def __init__(self, random: Random, seed: int, watched: Sequence[tuple[Any, ...]], watches: bool) -> None:
        self.random = random
        self.watches = watches or random.random() < 0.3
        self.seed = seed
        self.inputs: dict[str, Bag] = {}
        for chain in range(random.randint(0 if watches else 1, CHAINS - watches)):
            self.inputs[f"input{chain}"] = Bag(PAIR, self._tuples(chain))
        self.inputs["input9"] = Bag(COLUMNS["watched"], tuple(watched))
        self.subplans: list[PlanText] = []
        self.done: dict[str, list[str]] = {name: [] for name in COLUMNS}
        # Where only some of the writes are waited for, nothing else may read what the run has written.
        self.only_appends = not self.watches and random.random() < 0.4
        # What commits as it streams shows others what it has, and cannot take it back.
        self.commits = not (self.only_appends or self.watches) and random.random() < 0.3
        variables = tuple(Var(name, bag.known) for name, bag in self.inputs.items())
        self.writer = Writer(random, MAIN, variables, taken=0.85)

    def _tuples(self, chain: int) -> tuple[tuple[Any, ...], ...]:
        numbers = self.random.sample(range(10), self.random.randint(0, 8))
        return tuple((CHAINS * each + chain, self.random.choice((0, 1, 2, 5, None))) for each in numbers)

    def example(self) -> Example:
        writer = self.writer
        results = [self._read(name, ()) for name in COLUMNS if writer.chance(0.2) and not self.commits]
        results += [self._chain(variable) for variable in writer.inputs[:-1]]
        if self.watches:
            results += self._diff(writer.inputs[-1])
        results += [statement(writer) for _ in range(self.random.randint(0, _NOISE))]
        if not self.commits and writer.chance(0.5):
            results.append(self._export())
        if not self.only_appends and writer.chance(0.25):
            self._update_all(self.random.choice(("many", "one")))
        results += self._reads()
        results += [statement(writer) for _ in range(self.random.randint(0, _NOISE))]
        outputs = list({variable.name: variable for variable in reversed(results)}.values())
        chosen = self.random.sample(outputs, min(len(outputs), self.random.randint(2, 5)))
        header = ["COMMIT: batch"] if self.commits and not writer.may_fail else []
        text = writer.text(chosen, header, declared=set(self.inputs))
        return Example(self.seed, (*self.subplans, text), self.inputs)

    # --- chains: each tuple is written, changed and looked for ---

    def _chain(self, variable: Var) -> Var:
        length = self.random.randint(1, 5)
        if not self.only_appends and self.random.random() < 0.35:
            return self._called(variable, length)
        links = Links(self.writer, self.done, self.only_appends)
        self.writer.waits = not self.only_appends
        for _ in range(length):
            variable = links.link(variable)
        self.writer.waits = True
        return variable

    def _called(self, variable: Var, length: int) -> Var:
        """A part of the chain in a plan of its own."""
        name = f"part{len(self.subplans)}"
        top = Var("top", PAIR)
        inner = Writer(self.random, name, (top,), taken=0.85)
        done: dict[str, list[str]] = {table: [] for table in COLUMNS}
        links = Links(inner, done, False)
        result = top
        for _ in range(length):
            result = links.link(result)
        self.subplans.append(inner.text([result], declared={top.name}))
        signal = self.writer.fresh("d")
        options = [f"DONE: {signal}"]
        made = self.writer.add(
            name, [variable], [], [PAIR], options, "call", fails=inner.may_fail, signals=False
        )[0]
        self.writer.signals.append(signal)
        for table, signals in done.items():
            if signals:
                self.done[table].append(signal)
        last = self.writer.variables[-1]
        if "error" in last.names:  # in the words of the database
            self.writer.variables.remove(last)
            self.writer.one("project", [last], ['"attempts as k"'], ("k",))
        return made

    # --- whole tables ---

    def _read(self, table: str, signals: Sequence[str]) -> Var:
        """A table as it is before the run, or after these signals."""
        wait = f"WAIT: {', '.join(signals)}" if signals else ""
        if table in ("many", "one") and self.writer.chance(0.5):
            query = self.random.choice(WHOLE_QUERIES)
            constants, names = f'"{query.text.format(table=table)}"', query.names
            made = Var(self.writer.fresh("v"), names)
            text = f"dbquery ({constants} : {made.name}) {{{wait}}}"
        else:
            schema = ", ".join(f"{name} {TYPES[name]}" for name in COLUMNS[table])
            made = Var(self.writer.fresh("v"), COLUMNS[table])
            clauses = f'IF_MISSING: empty; SCHEMA: "{schema}"' + (f"; {wait}" if wait else "")
            text = f'dbimport ("{table}" : {made.name}) {{{clauses}}}'
        self.writer.lines.append(text)
        self.writer.variables.append(made)
        return made

    def _reads(self) -> list[Var]:
        written = [table for table, signals in self.done.items() if signals]
        if not written:
            return []
        if self.only_appends:
            table = self.random.choice(written)
            signals = self.done[table]
            return [self._read(table, self.random.sample(signals, self.random.randint(1, len(signals))))]
        return [self._read(table, self.done[table]) for table in written if self.writer.chance(0.7)]

    def _update_all(self, table: str) -> None:
        signals = self.done[table]
        signal = self.writer.fresh("d")
        wait = f"WAIT: {', '.join(signals)}; " if signals else ""
        text = WHOLE_UPDATE.text.format(table=table)
        self.writer.lines.append(f'dbupdate ("{text}") {{{wait}DONE: {signal}}}')
        self.done[table] = [signal]
        self.writer.signals.append(signal)

    def _export(self) -> Var:
        names = COLUMNS["whole"]
        given = self.writer.adapt(self.writer.pick_sure(), names)
        options = ["PARTIAL: allow"] if self.writer.chance(0.3) else []
        return self._written("dbexport", given, "whole", [names], options)[0]

    def _diff(self, variable: Var) -> list[Var]:
        """What has changed of a relation that may lack rows, or have wrong ones."""
        writer, names = self.writer, COLUMNS["watched"]
        kind = self.random.random()
        if kind < 0.4:
            # Where few are missing, the share that vanishes at once is not suspect by itself.
            some = broken(writer, variable, ("t_few_fail", "t_few_fail", *BROKEN[:2]))
            variable = writer.one("project", [some], ['"n, a, k"'], names)
        elif kind < 0.55:
            some = broken(writer, variable)
            variable = writer.one("minus", [variable, some], [], names, 'ON: "n"')
        changed = (*names, "old-a", "old-k", "changes")
        options = ['KEY: "n"', 'IGNORE: "k"']
        made = self._written("diff", variable, "watched", [names, changed, names], options)
        writer.variables.remove(made[2])
        # A table that is not there tells no attributes.
        return [made[0], made[1], writer.one("project", [made[2]], ['"n, a, k"'], names)]

    def _written(
        self, operator: str, given: Var, table: str, outputs: Sequence[Names], options: Sequence[str]
    ) -> list[Var]:
        signal = self.writer.fresh("d")
        clauses = [*options, f"DONE: {signal}"]
        made = [Var(self.writer.fresh("v"), names) for names in outputs]
        shown = ", ".join(variable.name for variable in made)
        self.writer.lines.append(f'{operator} ({given.name}, "{table}" : {shown}) {{{"; ".join(clauses)}}}')
        if given.name in self.writer.open_failures:
            self.writer.open_failures.update(variable.name for variable in made)
        self.writer.variables += made
        self.writer.signals.append(signal)
        self.done[table].append(signal)
        return made
