"""A relation that ends empty before anything told its attributes: it has every attribute that is asked of it, as null.

The oracle is the same plan on an empty relation that told its attributes: the results must be the same.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from aioflow import AioflowError, Relation, Row, Schema, function
from aioflow.operators import FAMILIES
from aioflow.plugins import load_operators
from aioflow.relation import identity
from aioflow.testing import rows, run_plan
from aioflow.wrappers import Web, wrapper
from tests.operators.running import Mode, plan

Rows: TypeAlias = list[dict[str, Any]]
Outcome: TypeAlias = dict[str, Counter[Any]] | str

MODES: tuple[Mode, ...] = ("D+S+", "D+S-", "D-")
PARTS = Relation(Schema(("part", "size")), [("door", 2), ("roof", 3)])
HOUSES: Rows = [
    {"k": 1, "price": 10, "email": "ann@example.org", "mobile": "+4915112345678", "parts": PARTS},
    {"k": 2, "price": 3, "email": "bob@example.org", "mobile": "+4915112345679", "parts": PARTS},
]
OWNERS: Rows = [{"k": 1, "price": 99, "owner": "Ann"}, {"k": 3, "price": 2, "owner": "Bob"}]
PEOPLE: Rows = [{"id": 1, "owner": "Ann", "age": 30}, {"id": 3, "owner": "Bob", "age": 40}]
CONDITIONS: Rows = [{"text": "price > 5"}]
CONFIGURATION = {
    "email": {"default": {"url": "maildir:mail", "from": "me@example.org", "allow": ["example.org"]}},
    "notify": {"default": {"url": "json://one.example"}},
    "outbox": {"deliver_seconds": 0},
    "phone": {"default": {"url": "https://gateway.example/send", "allow": ["+49*"]}},
}


@dataclass(frozen=True)
class Case:
    """Statements from inputs to outputs; the rows that an input has when it is not empty."""

    statements: str
    inputs: Mapping[str, Rows] = field(default_factory=lambda: {"a": HOUSES})
    outputs: Sequence[str] = ("out",)

    @property
    def operator(self) -> str:
        return self.statements.partition(" ")[0]

    def __str__(self) -> str:
        return self.statements


def _joins() -> Iterator[Case]:
    conditions = (
        ("left.k = right.k", OWNERS),
        ("left.k = right.k and left.price < right.price", OWNERS),
        ("left.price < right.price", OWNERS),
        ("left.k = right.id", PEOPLE),
        ("k = id and age > price", PEOPLE),
        ("true", PEOPLE),
    )
    for kind, (condition, other) in itertools.product(
        ("inner", "left", "right", "full", "semi", "anti"), conditions
    ):
        yield Case(f'join (a, b, "{condition}" : out) {{TYPE: {kind}}}', {"a": HOUSES, "b": other})


CASES = (
    Case('select (a, "price > 5" : out)'),
    Case("select (a, b : out)", {"a": HOUSES, "b": CONDITIONS}),
    Case(
        'select (a, b : out) {COND: "wish"}', {"a": HOUSES, "b": [{"wish": "price > 5", "of": "Ann"}]}
    ),
    Case('project (a, "k, price * 2 as double" : out)'),
    Case('project (a, "* except price" : out)'),
    Case('project (a, "*, price * 2 as double" : out)'),
    *_joins(),
    Case("distinct (a : out)"),
    Case('distinct (a, "k, price" : out)'),
    *(
        Case(f"{operator} (a, b : out){options}", {"a": HOUSES, "b": HOUSES[:1]})
        for operator, options in itertools.product(("intersect", "minus"), ("", ' {ON: "k"}'))
    ),
    Case("union (a, b : out)", {"a": HOUSES, "b": HOUSES[:1]}),
    Case("union (a, b, c : out) {ALL}", {"a": HOUSES, "b": HOUSES[:1], "c": HOUSES}),
    Case("union (a, b, c : out) {ORDERED}", {"a": HOUSES, "b": HOUSES[:1], "c": HOUSES}),
    Case("null (a, b, c : out, other)", {"a": HOUSES, "b": OWNERS, "c": PEOPLE}, ("out", "other")),
    Case("limit (a, 1 : out) {OFFSET: 1}"),
    Case("sample (a, 5 : out)"),
    Case("sample (a : out) {FRACTION: 1}"),
    Case('sort (a, "price desc, k" : out)'),
    Case('emit (a, "extra" : out)'),
    Case('log (a, "found" : out)'),
    Case('window (a, 5 : windows) unpack (windows, "window" : inside) project (inside, "k, price" : out)'),
    Case('pack (a, "packed" : packs) unpack (packs, "packed" : out)'),
    Case('pack (a, "packed" : packs) unpack (packs, "packed" : out) {OUTER}'),
    Case('pack (a, "packed" : out) {BY: "k"}'),
    Case('unpack (a, "parts" : out)'),
    Case('unpack (a, "parts" : out) {OUTER}'),
    Case('format (a, "{k} for {price}" : out)'),
    Case('format (a, "%s for %s", "k, price" : out) {AS: "label"}'),
    *(
        Case(f'apply (a, "u_{name}" : out){options}')
        for name, options in itertools.product(
            ("taking", "reading", "asynchronous", "nothing"), ("", " {OUTER}", " {ERRORS: failed}")
        )
    ),
    Case('apply (a, "u_failing" : out) {ERRORS: failed}', outputs=("out", "failed")),
    Case('aggregate (a, "count() as n, sum(price) as total" : out) {RELATION: false}'),
    Case('aggregate (a, "max(price) as top" : out) {BY: "k"}'),
    Case('write (a, "houses.csv" : out)'),
    Case('write (a, "houses.jsonl" : out)'),
    Case('wrapper (a, "u_wrapper" : out)'),
    Case('wrapper (a, "u_wrapper" : out) {OUTER; ERRORS: failed}', outputs=("out", "failed")),
    Case('project (a, "k, price" : b) dbappend (b, "t" : out)'),
    Case('project (a, "* except parts" : b) dbappend (b, "t" : out) {KEY: "k"; ON_CONFLICT: update}'),
    Case('project (a, "* except parts" : b) dbexport (b, "t" : out)'),
    Case('dbquery ("select :k + 1 as m", a : out)'),
    Case('dbquery ("select 1 as m where :k > 1", a : out) {OUTER; ERRORS: failed}', outputs=("out", "failed")),
    Case('dbupdate ("create table if not exists t (k)", a : out)'),
    Case('dbupdate ("delete from aioflow_none where k = :k", a : out) {ERRORS: f}', outputs=("out", "f")),
    Case('project (a, "* except parts" : b) diff (b, "t" : out, changed, removed) {KEY: "k"; IGNORE: "price"}'),
    Case('project (a, "* except parts" : b) diff (b, "t" : out)'),
    Case('email (a, to="me@example.org", subject="{count} houses" : out) {EVEN_IF_EMPTY; ATTACH: csv}'),
    Case('email (a, to="{email}", subject="House {k}" : out) {EACH; BODY: "{{ price }} {{ row.k }}"}'),
    Case('notify (a, "{count} houses" : out) {BODY: "{% for h in rows %}{{ h.price }}{% endfor %}"}'),
    Case('phone (a, to="{mobile}" : out) {EACH; BODY: "{{ k }} for {{ price }}"}'),
)  # fmt: skip
EVERY = pytest.mark.parametrize("case", CASES, ids=str)


@pytest.fixture(autouse=True)
def functions() -> None:
    function(name="u_taking", takes="k, price", returns="total number", pure=True)(lambda k, price: price)
    function(name="u_nothing", takes="price", pure=True)(lambda price: None)

    @function(name="u_reading", pure=True)
    def reading(row: Mapping[str, Any]) -> Any:
        return {"total": row["price"]}

    @function(name="u_asynchronous", pure=True)
    async def asynchronous(row: Mapping[str, Any]) -> Any:
        return {"total": row["price"]}

    @function(name="u_failing", takes="price", returns="total number", pure=True)
    def failing(price: Any) -> Any:
        raise ValueError("as always")

    @wrapper(name="u_wrapper", inputs="k number, price number", returns="found number")
    async def found(web: Web, k: int, price: int) -> dict[str, int]:
        return {"found": price}


class Runs:
    """Runs cases, each in a folder of its own, so that none sees what another has stored."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._folders = (folder / str(number) for number in itertools.count())
        self._monkeypatch = monkeypatch

    def __call__(self, statements: str, outputs: Sequence[str], mode: Mode, **inputs: Any) -> Outcome:
        """The bags of the outputs, or why there are none."""
        folder = next(self._folders)
        folder.mkdir()
        self._monkeypatch.chdir(folder)
        text = plan(statements, inputs, ", ".join(outputs))
        try:
            result = run_plan(text, mode=mode, configuration=CONFIGURATION, **inputs)
        except AioflowError as error:
            return str(error).partition("\n")[0]  # then comes the tuple, which may tell less
        return {
            name: Counter((tuple(record), _shown(record.row)) for record in result.outputs[name])
            for name in outputs
        }


def _shown(row: Row) -> Any:
    """A tuple; of embedded relations only the number of tuples, since they may tell less."""
    return identity(tuple([len(value) if isinstance(value, Relation) else value for value in row]))


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runs:
    return Runs(tmp_path, monkeypatch)


def asked(case: Case, run: Runs) -> tuple[str, Sequence[str]]:
    """The statements of a case, and after them some that ask for every attribute that full results have."""
    full = run(case.statements, case.outputs, "D+S+", **case.inputs)
    assert isinstance(full, dict), full
    statements = [case.statements]
    for output, bag in full.items():
        listed = ", ".join(next(iter(bag))[0] if bag else ("k",))
        statements.append(f'project ({output}, "{listed}" : {output}-asked)')
    return " ".join(statements), [f"{output}-asked" for output in full]


def told(given: Rows) -> Relation:
    """An empty relation that tells its attributes."""
    return rows(schema=Schema(tuple(given[0])))


@EVERY
def test_empty_inputs_give_the_same_whether_they_told_their_attributes_or_not(case: Case, run: Runs) -> None:
    statements, outputs = asked(case, run)
    names = list(case.inputs)
    choices = [
        chosen for count in range(1, len(names) + 1) for chosen in itertools.combinations(names, count)
    ]
    for chosen in choices:
        empty: dict[str, Any] = {**case.inputs, **{name: told(case.inputs[name]) for name in chosen}}
        expected = run(statements, outputs, "D+S+", **empty)
        assert isinstance(expected, dict), expected
        for mode in MODES:
            untold = {**case.inputs, **dict.fromkeys(chosen, [])}
            assert run(statements, outputs, mode, **untold) == expected, (chosen, mode)


UNARY = [case for case in CASES if list(case.inputs) == ["a"]]


@pytest.mark.parametrize("case", UNARY, ids=str)
def test_tuples_beside_an_untold_relation_have_null_for_what_is_asked(case: Case, run: Runs) -> None:
    """The statement gets tuples of an outer join whose other side tells nothing."""
    given = [{"id": number, **house} for number, house in enumerate(HOUSES)]
    statements = f'join (ids, houses, "left.id = right.id" : a) {{TYPE: left}} {case.statements}'
    ids = [{"id": 0}, {"id": 1}, {"id": 2}]
    extended = Case(statements, {"ids": ids[:2], "houses": given}, case.outputs)
    statements, outputs = asked(extended, run)
    expected = run(statements, outputs, "D+S+", ids=ids, houses=told(given))
    for mode in MODES:
        assert run(statements, outputs, mode, ids=ids, houses=[]) == expected, mode


def test_every_operator_has_a_case() -> None:
    load_operators()
    with_inputs = {
        described.operator.name
        for family in FAMILIES
        for described in vars(import_module(f"aioflow.operators.{family}")).values()
        if hasattr(described, "operator") and described.operator.inputs
    }
    assert with_inputs - {name for name in with_inputs if any(name in case.statements for case in CASES)} == set()
