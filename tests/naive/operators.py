"""The operators on whole relations, as LANGUAGE describes them, one function each.

A function gets the inputs (dead ones as empty), the settings by name and what failed; it gives one bag for
each output. Another one tells the marks of the outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from aioflow.expressions import Condition, JoinCondition, Projection, SortKeys
from aioflow.expressions.parser import ProjectionItem, parse_projection
from aioflow.relation import Relation, Row, identity
from tests.naive.bag import Bag
from tests.naive.functions import aggregate as aggregate_named
from tests.naive.functions import applicable
from tests.naive.marks import Range, united


class UndecidedError(Exception):
    """A program of which the naive evaluator says nothing: too big, or its meaning is left open."""


@dataclass(frozen=True)
class Failed:
    """A firing that failed: for one tuple (`whole` is false) or the statement on its whole input."""

    names: tuple[str, ...]
    rows: tuple[Row, ...]
    error: Exception
    whole: bool = False

    @property
    def lacks_rows(self) -> bool:
        """Whether nobody knows what the firing would have given.

        Some failures tell that there is nothing for this tuple; of a whole relation all results are lost.
        """
        return self.whole or not getattr(self.error, "means_absence", False)


@dataclass
class Work:
    """One statement's inputs and settings, and what came of its firings."""

    inputs: list[Bag]
    settings: Mapping[str, Any]
    only_names: bool = False  # nothing is evaluated, only the attributes are wanted
    failed: list[Failed] = field(default_factory=list)
    firings: int = 0
    happened: list[str] = field(default_factory=list)
    after: frozenset[int] = frozenset()  # the writes that came before it
    wrote: set[int] = field(default_factory=set)

    def __getitem__(self, name: str) -> Any:
        return self.settings.get(name)


Evaluate = Callable[[Work], list[Bag]]


def select(work: Work) -> list[Bag]:
    rows = work.inputs[0]
    if len(work.inputs) == 2:
        conditions = work.inputs[1]
        column = _condition_column(conditions, work["cond"])
        texts = [row[column] for row in conditions.rows]
    else:
        texts = [work["condition"]]
    tests = [Condition.bind(text, [rows.schema]) for text in texts] if rows.rows else []
    return [Bag(rows.names, tuple(row for row in rows.rows if all(test(row) for test in tests)))]


def _condition_column(conditions: Bag, named: str | None) -> int:
    names = conditions.known
    if named is None and len(names) == 1:
        return 0
    return names.index(named or "text") if names else 0


def project(work: Work) -> list[Bag]:
    rows = work.inputs[0]
    if rows.names is None:
        items = parse_projection(work["attributes"])
        known = all(isinstance(item, ProjectionItem) for item in items)
        return [
            Bag(tuple(item.name for item in items if isinstance(item, ProjectionItem)) if known else None)
        ]
    projection = Projection.bind(work["attributes"], [rows.schema])
    assert projection.schema is not None
    return [Bag(projection.schema.names, tuple(map(projection.row, rows.rows)))]


# --- two inputs ---------------------------------------------------------------------------------


def join(work: Work) -> list[Bag]:
    left, right = work.inputs
    kind = work["type"] or "inner"
    if left.names is None or right.names is None:
        return [_join_with_unknown(left, right, kind, work.only_names)]
    condition = JoinCondition.bind(work["condition"], [left.schema, right.schema])
    matches = _Matches(condition)
    pairs = [(one, other) for one in left.rows for other in right.rows if matches(one, other)]
    if kind in ("semi", "anti"):
        matched = {id(one) for one, _ in pairs}
        kept = (row for row in left.rows if (id(row) in matched) == (kind == "semi"))
        return [Bag(left.names, tuple(kept))]
    shape = _JoinShape(left, right, condition)
    rows = [shape.row(one, other) for one, other in pairs]
    if kind in ("left", "full"):
        matched = {id(one) for one, _ in pairs}
        rows += [shape.row(one, None) for one in left.rows if id(one) not in matched]
    if kind in ("right", "full"):
        matched = {id(other) for _, other in pairs}
        rows += [shape.row(None, other) for other in right.rows if id(other) not in matched]
    return [Bag(shape.names, tuple(rows))]


def _join_with_unknown(left: Bag, right: Bag, kind: str, only_names: bool) -> Bag:
    if kind in ("semi", "anti"):
        return Bag(left.names, left.rows if kind == "anti" else ())
    if kind != "inner" and not only_names:
        raise UndecidedError("an outer join with a relation of which nothing is known")
    return Bag(None)


class _Matches:
    """Whether two rows belong together; null equals nothing here."""

    def __init__(self, condition: Any) -> None:
        self.condition = condition

    def __call__(self, left: Row, right: Row) -> bool:
        condition = self.condition
        mine = tuple(left[place] for place in condition.left_key)
        its = tuple(right[place] for place in condition.right_key)
        if None in mine or None in its or identity(mine) != identity(its):
            return False
        return condition.rest is None or bool(condition.rest(left, right))


class _JoinShape:
    """The attributes of a join: equated ones of one name once, others of one name with their side."""

    def __init__(self, left: Bag, right: Bag, condition: Any) -> None:
        self.left, self.right = left.known, right.known
        once = {one for one, other in condition.equated if one == other}
        both = (set(self.left) & set(self.right)) - once
        self.once = once
        self.columns = [(f"left.{name}" if name in both else name, name, True) for name in self.left]
        self.columns += [
            (f"right.{name}" if name in both else name, name, False)
            for name in self.right
            if name not in once
        ]
        self.names = tuple(name for name, _, _ in self.columns)

    def row(self, left: Row | None, right: Row | None) -> Row:
        return tuple(self._value(name, of_left, left, right) for _, name, of_left in self.columns)

    def _value(self, name: str, of_left: bool, left: Row | None, right: Row | None) -> Any:
        if of_left and left is not None:
            return left[self.left.index(name)]
        if right is not None and (not of_left or name in self.once):
            return right[self.right.index(name)]
        return None


def _same_names(bags: Sequence[Bag]) -> tuple[str, ...] | None:
    known = [bag.names for bag in bags if bag.names is not None]
    assert len({frozenset(names) for names in known}) <= 1, f"inputs differ: {known}"
    return known[0] if known else None


def _once(rows: Iterable[Row], key: Callable[[Row], Hashable] = identity) -> tuple[Row, ...]:
    first: dict[Hashable, Row] = {}
    for row in rows:
        first.setdefault(key(row), row)
    return tuple(first.values())


def union(work: Work) -> list[Bag]:
    names = _same_names(work.inputs)
    rows = [row for bag in work.inputs for row in bag.in_order(names or ())]
    return [Bag(names, tuple(rows) if work["all"] else _once(rows))]


def _by_keys(work: Work, keep: bool) -> list[Bag]:
    left, right = work.inputs
    if work["on"]:
        attributes = _split(work["on"])
        mine, its = _key(left, attributes), _key(right, attributes)
        names = left.names
        found = {its(row) for row in right.rows}
        return [Bag(names, tuple(row for row in left.rows if (mine(row) in found) == keep))]
    names = _same_names(work.inputs)
    found = set(map(identity, right.in_order(names or ())))
    rows = left.in_order(names or ())
    return [Bag(names, _once(row for row in rows if (identity(row) in found) == keep))]


def intersect(work: Work) -> list[Bag]:
    return _by_keys(work, keep=True)


def minus(work: Work) -> list[Bag]:
    return _by_keys(work, keep=False)


def null(work: Work) -> list[Bag]:
    deciding, if_empty, otherwise = work.inputs
    if deciding.rows:
        return [Bag(if_empty.names, (), dead=True), otherwise]
    return [if_empty, Bag(otherwise.names, (), dead=True)]


# --- one input ----------------------------------------------------------------------------------


def _split(attributes: str) -> list[str]:
    return [part.strip().strip("`") for part in attributes.split(",")]


def _key(bag: Bag, attributes: Sequence[str]) -> Callable[[Row], Hashable]:
    places = [bag.known.index(name) for name in attributes] if bag.rows else []
    return lambda row: identity(tuple(row[place] for place in places))


def sort(work: Work) -> list[Bag]:
    rows = work.inputs[0]
    key = SortKeys.bind(work["by"], [rows.schema]).key if rows.rows else None
    return [Bag(rows.names, tuple(sorted(rows.rows, key=key)))]


def limit(work: Work) -> list[Bag]:
    rows = work.inputs[0]
    assert rows.is_sorted or not _cuts(work), "which rows come first is a matter of timing"
    if _cuts(work):
        work.happened.append("limit that cut")
    return [Bag(rows.names, rows.rows[: work["count"]])]


def _cuts(work: Work) -> bool:
    """Whether limit leaves before it sees the end of its input."""
    return bool(len(work.inputs[0].rows) >= work["count"])


def sample(work: Work) -> list[Bag]:
    """All tuples: fewer than asked for."""
    assert not _cuts(replace(work, settings={"count": work["size"]})), "a matter of chance"
    return [work.inputs[0]]


def window(work: Work) -> list[Bag]:
    """One piece, with times that nobody may look at."""
    rows = work.inputs[0]
    assert len(rows.rows) < work["count"], "which rows share a piece is a matter of timing"
    packed = [(Bag(rows.known, rows.rows).relation(), None, None)] if rows.rows else []
    return [Bag(("window", "start", "end"), tuple(packed))]


def distinct(work: Work) -> list[Bag]:
    rows = work.inputs[0]
    attributes = work["attributes"]
    key = _key(rows, _split(attributes)) if attributes else identity
    return [Bag(rows.names, _once(rows.rows, key))]


def _groups(bag: Bag, by: str | None) -> list[tuple[tuple[Any, ...], list[Row]]]:
    if not by:
        return [((), list(bag.rows))]
    places = [bag.known.index(name) for name in _split(by)] if bag.rows else []
    groups: dict[Hashable, tuple[tuple[Any, ...], list[Row]]] = {}
    for row in bag.rows:
        values = tuple(row[place] for place in places)
        groups.setdefault(identity(values), (values, []))[1].append(row)
    return list(groups.values())


def pack(work: Work) -> list[Bag]:
    rows, by = work.inputs[0], work["by"]
    keys = _split(by) if by else []
    groups = _groups(rows, by)
    packed = [(*values, Bag(rows.known, tuple(group)).relation()) for values, group in groups]
    return [Bag((*keys, work["attribute"]), tuple(packed))]


def unpack(work: Work) -> list[Bag]:
    rows, attribute = work.inputs[0], work["attribute"]
    if not rows.rows:
        return [Bag(None)]
    joined = []
    for row in rows.rows:
        outer = dict(zip(rows.known, row, strict=True))
        embedded = outer.pop(attribute)
        inner = embedded if isinstance(embedded, Relation) else ()
        joined += [{**outer, **each} for each in inner]
    rest = [name for name in rows.known if name != attribute]
    place = rows.known.index(attribute)
    inside = next((row[place].schema.names for row in rows.rows if row[place].schema.names), None)
    names = None if inside is None else tuple(dict.fromkeys((*rest, *inside)))
    return [Bag(names, tuple(tuple(each[name] for name in names or ()) for each in joined))]


def format_(work: Work) -> list[Bag]:
    rows, template = work.inputs[0], work["template"]
    attributes = _split(work["attributes"]) if work["attributes"] else []
    texts = []
    for row in rows.rows:
        shown = {name: _shown(value) for name, value in zip(rows.known, row, strict=True)}
        listed = tuple(shown[name] for name in attributes)
        texts.append(template % listed if listed else template.format_map(shown))
    return [with_results(rows, [work["as"] or "text"], [[(text,)] for text in texts])]


def _shown(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def with_results(rows: Bag, added: Sequence[str], results: Sequence[Sequence[Row]]) -> Bag:
    """A dependent join: each tuple with its results; one named like an attribute replaces it."""
    names = tuple(dict.fromkeys((*rows.known, *added)))
    joined = []
    for row, own in zip(rows.rows, results, strict=True):
        given = dict(zip(rows.known, row, strict=True))
        joined += [{**given, **dict(zip(added, result, strict=True))} for result in own]
    unknown = rows.names is None
    return Bag(None if unknown else names, tuple(tuple(each[name] for name in names) for each in joined))


def apply(work: Work) -> list[Bag]:
    rows, function = work.inputs[0], applicable(work["function"])
    kept, results = [], []
    for row in rows.rows:
        try:
            found = function.results(dict(zip(rows.known, row, strict=True)))
        except Exception as error:
            work.failed.append(Failed(rows.known, (row,), error))
            continue
        work.firings += 1
        kept.append(row)
        values = [tuple(each.get(name) for name in function.returns) for each in found]
        results.append(values or ([(None,) * len(function.returns)] if work["outer"] else []))
    return [with_results(Bag(rows.names, tuple(kept)), function.returns, results)]


def aggregate(work: Work) -> list[Bag]:
    rows, by = work.inputs[0], work["by"]
    keys = _split(by) if by else []
    calls = [_AggregateCall(part, rows) for part in work["functions"].split(",")]
    names = (*keys, "relation", *(call.name for call in calls))
    try:
        made = [
            (*values, Bag(rows.known, tuple(group)).relation(), *(call(group) for call in calls))
            for values, group in _groups(rows, by)
        ]
    except Exception as error:
        work.failed.append(Failed(rows.known, rows.rows, error, whole=True))
        return [Bag(names)]
    return [Bag(names, tuple(made))]


class _AggregateCall:
    """`sum(price) as total`."""

    def __init__(self, text: str, rows: Bag) -> None:
        call, _, self.name = (part.strip() for part in text.partition(" as "))
        function, _, argument = call.partition("(")
        self.function = function.strip()
        self.argument = argument.rstrip(") ").strip()
        self.column = rows.known.index(self.argument) if self.argument and rows.rows else 0

    def __call__(self, rows: Sequence[Row]) -> Any:
        if not self.argument:
            assert self.function == "count"
            return len(rows)
        values = [row[self.column] for row in rows if row[self.column] is not None]
        match self.function:
            case "count":
                return len(values)
            case "sum":
                return sum(values) if values else None
            case "min":
                return min(values, default=None)
            case "max":
                return max(values, default=None)
        return aggregate_named(self.function).call(values)


def series(work: Work) -> list[Bag]:
    return [Bag(("n",), tuple((number,) for number in range(work["count"])))]


def log(work: Work) -> list[Bag]:
    return [work.inputs[0]]


# --- marks --------------------------------------------------------------------------------------


def passed_on(work: Work, needs_whole: Iterable[int], orders: bool = False) -> Range:
    """What the inputs tell of the results; those in which a missing row makes a row make doubt."""
    doubted = set(needs_whole)
    marks = united(
        bag.marks.as_doubt if place in doubted else bag.marks for place, bag in enumerate(work.inputs)
    )
    return marks.as_sorted if orders else marks


def marks_of_limit(work: Work) -> list[Range]:
    """Where a row is missing, another one is among the first."""
    marks = work.inputs[0].marks
    return [marks.of_first_rows if _cuts(work) else marks.as_doubt]


def marks_of_null(work: Work) -> list[Range]:
    """The output that is not taken is told at once, whatever may still come of the input that is."""
    deciding, if_empty, otherwise = work.inputs
    if deciding.rows:
        decision = deciding.marks.of_one_row
        return [decision | otherwise.marks.or_less, decision | otherwise.marks]
    decision = deciding.marks.as_doubt
    return [decision | if_empty.marks, decision | if_empty.marks.or_less]


# A tuple without partner leaves because of what the other side does not have.
_PADDED = {"left": (1,), "right": (0,), "full": (0, 1), "anti": (1,)}


@dataclass(frozen=True)
class Known:
    """An operator: its function, the names of its settings by position, when it fires, and what it doubts."""

    evaluate: Evaluate
    settings: tuple[str, ...] = ()
    firing: str = "stream"
    by_tuple: bool = False  # with one input it fails tuple by tuple
    needs_whole: tuple[int, ...] = ()
    orders: bool = False
    keeps_order: bool = False
    own_marks: Callable[[Work], list[Range]] | None = None

    def fails_by_tuple(self, inputs: int) -> bool:
        return self.firing == "tuple" or (self.by_tuple and inputs == 1)

    def fires_at_end(self, settings: Mapping[str, Any]) -> bool:
        return self.firing == "end" and not settings.get("by")

    def marks(self, work: Work, outputs: int) -> list[Range]:
        """The marks of each output, apart from what failed."""
        if self.own_marks is not None:
            return self.own_marks(work)
        needed = _PADDED.get(work["type"], ()) if self.evaluate is join else self.needs_whole
        return [passed_on(work, needed, self.orders)] * outputs

    def is_sorted(self, work: Work) -> bool:
        """Whether the results come in the order of its first output's rows."""
        return self.orders or (self.keeps_order and len(work.inputs) == 1 and work.inputs[0].is_sorted)


OPERATORS: Mapping[str, Known] = {
    "select": Known(select, ("condition",), by_tuple=True, needs_whole=(1,), keeps_order=True),
    "project": Known(project, ("attributes",), by_tuple=True, keeps_order=True),
    "join": Known(join, ("condition",)),
    "union": Known(union),
    "intersect": Known(intersect),
    "minus": Known(minus, needs_whole=(1,)),
    "distinct": Known(distinct, ("attributes",), keeps_order=True),
    "null": Known(null, own_marks=marks_of_null),
    "pack": Known(pack, ("attribute",), "end", needs_whole=(0,)),
    "unpack": Known(unpack, ("attribute",), by_tuple=True),
    "format": Known(format_, ("template", "attributes"), by_tuple=True, keeps_order=True),
    "apply": Known(apply, ("function",), "tuple"),
    "aggregate": Known(aggregate, ("functions",), "end", needs_whole=(0,)),
    "sort": Known(sort, ("by",), orders=True),
    "limit": Known(limit, ("count",), own_marks=marks_of_limit),
    "sample": Known(sample, ("size",), needs_whole=(0,)),
    "window": Known(window, ("count",), needs_whole=(0,)),
    "log": Known(log, ("message",)),
    "series": Known(series, ("count",), "start"),
}
