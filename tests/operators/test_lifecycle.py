"""What every operator does with an empty, a dead or a failing input, and when its reader leaves early."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import pytest

from aioflow import AioflowError, function, loads
from aioflow.authoring.operator import InputPort, Operator, load_operators
from aioflow.authoring.setting import SettingPort
from aioflow.operators import FAMILIES
from aioflow.testing import Script, rows
from aioflow.wrappers import Web, wrapper
from tests.operators.running import NO_MEMORY, Mode, bag, out, run


@dataclass(frozen=True)
class Case:
    """A statement from `rel` to `out`; whether it gives something for nothing, or only at the end."""

    statement: str
    for_nothing: int = 0
    waits: bool = False

    @property
    def name(self) -> str:
        return self.statement.partition(" ")[0]


CASES = (
    Case('select (rel, "n >= 0" : out)'),
    Case('project (rel, "n + 1 as n" : out)'),
    Case('join (rel, rel, "left.n = right.n" : out)'),
    Case('join (rel, rel, "left.n = right.n" : out) {TYPE: semi}'),
    Case('join (rel, rel, "left.n + 1 = right.n" : out) {TYPE: anti}', waits=True),
    Case('join (rel, rel, "left.n < right.n" : out) {TYPE: full}'),
    Case("distinct (rel : out)"),
    Case('seen (rel : out) {KEY: "n"}'),
    Case("union (rel, rel : out)"),
    Case("union (rel, rel : out) {ALL}"),
    Case("intersect (rel, rel : out)"),
    Case("minus (rel, rel : out)", waits=True),
    Case("null (rel, rel, rel : empty, out)"),
    Case("limit (rel, 50 : out)"),
    Case("sample (rel, 5 : out)", waits=True),
    Case("sample (rel : out) {FRACTION: 1}"),
    Case('sort (rel, "n" : out)', waits=True),
    Case('emit (rel, "extra" : out)'),
    Case("log (rel : out)"),
    Case("window (rel, 1 : out)"),
    Case("window (rel : out) {SECONDS: 1}"),
    Case('pack (rel, "packed" : out)', for_nothing=1, waits=True),
    Case("rel2xml (rel : out)", for_nothing=1, waits=True),
    Case('pack (rel, "packed" : out) {BY: "n"}', waits=True),
    Case('format (rel, "{n}" : out)'),
    Case('apply (rel, "l_sync" : out)'),
    Case('apply (rel, "l_async" : out)'),
    Case('apply (rel, "l_blocking" : out)'),
    Case('aggregate (rel, "sum(n) as s" : out)', for_nothing=1, waits=True),
    Case('aggregate (rel, "sum(n) as s, list(n) as l" : out) {BY: "n"}', waits=True),
    Case('aggregate (rel, "sum(n) as s" : out) {BY: "n"; RELATION: false}', waits=True),
    Case('write (rel, "file.jsonl" : out)'),
    Case('wrapper (rel, "l_wrapper" : out)'),
    Case('dbappend (rel, "appended" : out)'),
    Case('dbappend (rel, "keyed" : out) {KEY: "n"; ON_CONFLICT: update}'),
    Case('dbexport (rel, "exported" : out)'),
    Case('dbquery ("select :n + 1 as m", rel : out)'),
    Case('dbupdate ("create table if not exists t (n)", rel : out)'),
)
EVERY = pytest.mark.parametrize("case", CASES, ids=lambda case: case.statement)
NUMBERS = [{"n": number} for number in range(20)]
# Left alone by a reader that has enough: they change the world.
WITH_EFFECTS = ("dbappend", "dbexport", "dbupdate", "emit", "log", "write")
DEPEND_ON_ARRIVAL = ("window", "sample")


@pytest.fixture(autouse=True)
def functions_and_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    @function(name="l_sync", pure=True)
    def sync(row: object) -> int:
        return 1

    @function(name="l_async", pure=True)
    async def asynchronous(row: object) -> int:
        return 1

    @wrapper(name="l_wrapper", inputs="n number", returns="found number")
    async def found(web: Web, n: int) -> dict[str, int]:
        return {"found": n}

    @function(name="l_blocking", pure=True, blocking=True)
    def blocking(row: object) -> int:
        return 1


@EVERY
def test_an_empty_input(case: Case) -> None:
    assert len(out(case.statement, rel=rows(schema="n"))) == case.for_nothing


@EVERY
def test_an_empty_input_of_which_nothing_is_known(case: Case) -> None:
    assert len(out(case.statement, rel=[])) == case.for_nothing


@EVERY
def test_a_dead_input_makes_a_dead_output(case: Case) -> None:
    # pack fires for every input but a dead one.
    statements = f'null (source, source, source : rel, live) {case.statement} pack (out, "p" : result)'
    assert len(run(statements, outputs="result", source=NUMBERS)) == 0


@EVERY
def test_an_input_that_fails(case: Case) -> None:
    with pytest.raises(AioflowError, match="gone"):
        run(case.statement, rel=Script(*NUMBERS).fail(OSError("gone")))


@EVERY
def test_a_reader_that_leaves_early_stops_what_it_reads(case: Case) -> None:
    rel = Script(*NUMBERS)
    if not case.waits and case.name not in WITH_EFFECTS:
        rel.hang()
    statement = case.statement.replace(" out)", " all)")
    found = out(f"{statement} limit (all, 1 : out)", rel=rel)
    assert len(found) == (0 if case.name == "minus" else 1)
    assert rel.closed


SAME_IN_ANY_ORDER = pytest.mark.parametrize(
    "case", [case for case in CASES if case.name not in DEPEND_ON_ARRIVAL], ids=lambda case: case.statement
)


@SAME_IN_ANY_ORDER
@pytest.mark.parametrize("mode", ["D-", "D+S-"])
def test_the_other_modes_give_the_same_bag(case: Case, mode: Mode) -> None:
    assert bag(out(case.statement, rel=NUMBERS, mode=mode)) == bag(out(case.statement, rel=NUMBERS))


@SAME_IN_ANY_ORDER
@pytest.mark.parametrize("capacity_rows", [1, 64])
def test_no_memory_and_any_capacity_give_the_same_bag(case: Case, capacity_rows: int) -> None:
    found = out(case.statement, rel=NUMBERS, memory_bytes=NO_MEMORY, capacity_rows=capacity_rows)
    assert bag(found) == bag(out(case.statement, rel=NUMBERS))


# --- the reference ------------------------------------------------------------------------------

LIBRARY = [
    described
    for described in load_operators()
    if described.function.__module__.startswith("aioflow.operators.")
]
EVERY_OPERATOR = pytest.mark.parametrize("described", LIBRARY, ids=lambda described: described.name)


def test_every_operator_is_run_by_these_tests() -> None:
    assert {described.name for described in LIBRARY} - {case.name for case in CASES} == {
        *("dbimport", "read", "unpack"),  # they have no input, or need a packed one
        *("diff", "email", "notify", "phone"),  # they remember, or need accounts: tests of their own
        *("xml2rel", "xquery", "xslt"),  # they need documents: test_xml.py, test_xquery.py
        *("allowed", "near_duplicates", "normalize_url", "seed"),  # they need URLs: test_crawling.py
        # They need pages: test_fetching.py
        *("content_filter", "download", "extract_links", "extract_text", "soft_404_filter", "store"),
        "crawl_hidden",  # it needs a form: tests/operators/test_hidden.py
        "parse",  # it needs a grammar: tests/operators/test_grammars.py
        *("schedule", "unschedule"),  # they need plans and a service: tests/service/test_plans_of_tasks.py
    }


@EVERY_OPERATOR
def test_every_operator_has_examples_that_are_statements(described: Operator) -> None:
    assert described.examples
    for example in described.examples:
        [statement] = loads(f"PLAN p {{ BODY {{ {example} }} }}").main.statements
        assert statement.operator == described.name
        assert {option.name.lower() for option in statement.options} <= {
            *(setting.name for setting in described.settings),
            "workers",
            "ordered",
        }


@EVERY_OPERATOR
def test_every_input_and_setting_is_documented(described: Operator) -> None:
    ports: list[InputPort | SettingPort] = [*described.inputs, *described.settings]
    assert [port.name for port in ports if not port.doc] == []


@EVERY_OPERATOR
def test_the_docstring_begins_with_one_sentence(described: Operator) -> None:
    first, _, rest = described.doc.partition("\n")
    assert first.endswith(".")
    assert not rest or rest.startswith("\n")


def test_families_have_the_operators_that_they_are_expected_to_have() -> None:
    load_operators()
    for family, names in FAMILIES.items():
        module = import_module(f"aioflow.operators.{family}")
        registered = {
            described.name for described in LIBRARY if described.function.__module__ == module.__name__
        }
        assert registered == set(names), family
