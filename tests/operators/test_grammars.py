"""parse: records of texts by a grammar, joined to the tuples that the texts stand in."""

from __future__ import annotations

import os
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from aioflow import AioflowError, Engine, Result, Row, function, loads
from aioflow import run as run_whole
from aioflow.authoring.function import functions
from aioflow.relation import Document, Relation, Schema
from aioflow.runtime.session import MODES, Mode
from aioflow.testing import Script, run_plan

DATES = """
GRAMMAR dates
{
  rule number is [0-9]+ end
  rule date : record is month=number() '/' day=number() ('/' year=number())? end
  rule all : list is (.+ | list += date())+ end
}
"""
# Prices are computed, so only results tell the attributes of these records.
PRICES = """
GRAMMAR prices
{
  rule price : record is amount=[0-9.]+ ' ' unit=[a-z]+
    do record.name = unit; record.price = amount * 2; end
  end
  rule all : list is (list += price())* end
}
"""


@pytest.fixture
def registered() -> Iterator[None]:
    before = dict(functions._functions)
    yield
    functions._functions = before


def plan(
    grammar: str, statement: str, schema: str = "(number number, text char)", outputs: str = "out"
) -> str:
    return f"{grammar}PLAN test {{ INPUT: rel {schema} OUTPUT: {outputs} BODY {{ {statement} }} }}"


def run(grammar: str, statement: str, *texts: Any, outputs: str = "out", mode: Mode = "D+S+") -> Result:
    rel = [{"number": place, "text": text} for place, text in enumerate(texts, 1)]
    return run_plan(plan(grammar, statement, outputs=outputs), mode=mode, rel=rel)


def out(grammar: str, statement: str, *texts: Any, **how: Any) -> list[Row]:
    return [record.row for record in run(grammar, statement, *texts, **how).outputs["out"]]


def rows_of(value: Any) -> list[Row]:
    assert isinstance(value, Relation)
    return list(value.rows)


def mistakes(grammar: str, statement: str, schema: str = "(number number, text char)") -> list[str]:
    return [
        str(each).splitlines()[0]
        for each in Engine().check(loads(plan(grammar, statement, schema), "p.plan"))
    ]


PARSE = 'parse (rel, "text", "dates" : out)'


@pytest.mark.parametrize("mode", MODES)
def test_each_record_is_joined_to_its_tuple(mode: Mode) -> None:
    result = run(DATES, PARSE, "due 4/7/98, paid 5/8", "none", "1/2/99", mode=mode)
    assert [dict(each) for each in result.outputs["out"]] == [
        {"number": 1, "text": "due 4/7/98, paid 5/8", "month": "4", "day": "7", "year": "98"},
        {"number": 1, "text": "due 4/7/98, paid 5/8", "month": "5", "day": "8", "year": None},
        {"number": 3, "text": "1/2/99", "month": "1", "day": "2", "year": "99"},
    ]


def test_outer_keeps_tuples_without_records_and_nulls_are_counted() -> None:
    rows = out(DATES, f"{PARSE} {{OUTER}}", "none", None, "4/7")
    assert [(row[0], *row[2:]) for row in rows] == [
        (1, None, None, None),
        (2, None, None, None),
        (3, "4", "7", None),
    ]


def test_without_tuples_there_are_none() -> None:
    assert out(DATES, PARSE) == []
    assert out(PRICES, 'parse (rel, "text", "prices" : out)') == []


@pytest.mark.parametrize("grammar", [DATES, PRICES])
def test_an_empty_input_of_which_nothing_is_known(grammar: str) -> None:
    name = "dates" if grammar is DATES else "prices"
    statement = f'parse (rel, "text", "{name}" : found) project (found, "text" : out)'
    assert list(run_plan(plan(grammar, statement, ""), rel=[]).outputs["out"]) == []


def test_a_dead_input_makes_a_dead_output() -> None:
    statements = f'null (source, source, source : rel, live) {PARSE} pack (out, "p" : result)'
    text = plan(DATES, statements, "", "result").replace("INPUT: rel", "INPUT: source")
    assert list(run_plan(text, source=[{"number": 1, "text": "4/7"}]).outputs["result"]) == []


def test_an_input_that_fails() -> None:
    source = Script({"number": 1, "text": "4/7"}).fail(OSError("gone"))
    with pytest.raises(AioflowError, match="gone"):
        run_plan(plan(DATES, PARSE), rel=source)


def test_a_reader_that_has_enough_stops_the_parsing() -> None:
    source = Script(*({"number": number, "text": "4/7"} for number in range(1000)))
    statement = 'parse (rel, "text", "dates" : found) limit (found, 2 : out)'
    result = run_plan(plan(DATES, statement), capacity_rows=2, rel=source)
    assert len(result.outputs["out"]) == 2
    assert source.closed


def test_any_rule_begins_and_any_variable_has_the_records() -> None:
    start = 'parse (rel, "text", "dates" : out) {START: "date"}'
    assert [row[2:] for row in out(DATES, start, "a 4/7 b 5/8")] == [("4", "7", None)]
    each = "GRAMMAR g { rule p : r is head=[A-Z]+ (names += n())+ end rule n is [a-z]+ end }"
    assert [row[2:] for row in out(each, 'parse (rel, "text", "g" : out) {EACH: "names"}', "A b c")] == [
        ("b",),
        ("c",),
    ]
    whole = out(each, 'parse (rel, "text", "g" : out)', "A b c")
    assert [(row[2], rows_of(row[3])) for row in whole] == [("A", [("b",), ("c",)])]


def test_records_in_records_are_embedded() -> None:
    grammar = """GRAMMAR g {
      rule size : r is number=[0-9]+ unit=[a-z]+ end
      rule good : r is name=[A-Z]+ ' ' size=size()? (' ' colours += colour())* (';' | '.') end
      rule colour : r is '#' code=[0-9]+ end
      rule all : list is (list += good())+ end
    }
    """
    rows = out(grammar, 'parse (rel, "text", "g" : out)', "A 3kg #1 #2;B  #7;C .")
    assert [(row[2], row[3] and rows_of(row[3]), rows_of(row[4])) for row in rows] == [
        ("A", [("3", "kg")], [("1",), ("2",)]),
        ("B", None, [("7",)]),
        ("C", None, []),
    ]
    assert {row[4].schema.names for row in rows} == {("code",)}


def test_attributes_that_only_results_tell_come_with_the_first() -> None:
    rows = run(PRICES, 'parse (rel, "text", "prices" : out) {OUTER}', "none", "1.5 kg 2 g", "3 t").outputs[
        "out"
    ]
    assert [dict(each) for each in rows] == [
        {"number": 1, "text": "none", "name": None, "price": None},
        {"number": 2, "text": "1.5 kg 2 g", "name": "kg", "price": Decimal("3.0")},
        {"number": 2, "text": "1.5 kg 2 g", "name": "g", "price": 4},
        {"number": 3, "text": "3 t", "name": "t", "price": 6},
    ]


def test_outer_keeps_tuples_if_no_result_tells_attributes() -> None:
    rows = run(PRICES, 'parse (rel, "text", "prices" : out) {OUTER}', "none", "nothing").outputs["out"]
    assert [(each["number"], each["text"]) for each in rows] == [(1, "none"), (2, "nothing")]


def test_a_text_that_no_interpretation_covers_is_a_failure_of_its_tuple() -> None:
    grammar = "GRAMMAR g { strict rule all : list is (list += d() ',')+ end strict rule d is [0-9]+ end }\n"
    statement = 'parse (rel, "text", "g" : out) {ERRORS: failed}'
    result = run(grammar, statement, "1,2,", "1,x,", "7,", outputs="out, failed")
    assert [each["value"] for each in result.outputs["out"]] == ["1", "2", "7"]
    (failed,) = result.outputs["failed"]
    assert failed["number"] == 2
    assert "at offset 2 in the rule" in failed["error"]


def test_code_and_functions_that_fail_are_failures_of_their_tuple(registered: None) -> None:
    function(pure=True, name="reciprocal")(lambda text: 1 / int(text))
    grammar = "GRAMMAR g { rule a is x=[0-9]+ do y = reciprocal(x); end end }\n"
    result = run(grammar, 'parse (rel, "text", "g" : out) {ERRORS: failed}', "0", "2", outputs="out, failed")
    assert [each["y"] for each in result.outputs["out"]] == [0.5]
    (failed,) = result.outputs["failed"]
    assert "ZeroDivisionError" in failed["error"]


def test_a_thesaurus_decides_what_is_accepted(registered: None) -> None:
    kinds = {"palmtop": "computer", "modem": "peripheral"}
    function(pure=True, name="known")(kinds.__contains__)
    function(pure=True, name="kind_of")(kinds.get)
    grammar = """GRAMMAR things {
      rule thing : r is accept word=[a-z]+ if known($$); do kind = kind_of(word); end end
      rule all : list is (list += thing())+ end
    }
    """
    rows = out(grammar, 'parse (rel, "text", "things" : out)', "a cheap modem, and a palmtop")
    assert [row[2:] for row in rows] == [("modem", "peripheral"), ("palmtop", "computer")]


def test_long_texts_are_parsed_in_other_processes(registered: None) -> None:
    function(pure=True)(os.getpid)
    grammar = "GRAMMAR g { rule a is x=[0-9]+ do process = getpid(); end end }\n"
    statement = 'parse (rel, "text", "g" : out)'
    rows = run_whole(
        loads(plan(grammar, statement)),
        rel=[{"number": 1, "text": "1"}, {"number": 2, "text": "x" * 5000 + "2"}],
    )
    here, there = (each["process"] for each in sorted(rows.outputs["out"], key=lambda each: each["number"]))
    assert here == os.getpid()
    assert there != os.getpid()


def test_a_text_that_is_too_much_says_where() -> None:
    grammar = "GRAMMAR g { strict rule a : r is x=.* accept .* if $$.length > 9; .* end }\n"
    result = run_whole(
        loads(
            plan(
                grammar,
                'parse (rel, "text", "g" : out) {SECONDS: 0.5; ERRORS: failed}',
                outputs="out, failed",
            )
        ),
        rel=[{"number": 1, "text": "x" * 10_000}],
    )
    (failed,) = result.outputs["failed"]
    assert "the parse takes longer than 0.5 seconds, at offset " in failed["error"]
    assert "in the rule 'a'" in failed["error"]


def test_records_within_records_have_a_limit() -> None:
    grammar = "GRAMMAR g { strict rule group : r is '(' inner=group()? ')' end }\n"
    statement = 'parse (rel, "text", "g" : out) {START: "group"; ERRORS: failed}'
    result = run(grammar, statement, "(" * 90 + ")" * 90, "(" * 500 + ")" * 500, outputs="out, failed")
    assert [each["number"] for each in result.outputs["out"]] == [1]
    (failed,) = result.outputs["failed"]
    assert failed["error"] == "a record is nested more than 100 levels deep"


def test_values_that_contain_themselves_are_a_failure() -> None:
    doubled = "b = list(a, a); a = list(b, b); " * 30
    grammar = f"GRAMMAR g {{ rule all : r is x=[0-9]+ do a = list(x, x); {doubled} end end }}\n"
    statement = 'parse (rel, "text", "g" : out) {ERRORS: failed}'
    (failed,) = run(grammar, statement, "1", outputs="out, failed").outputs["failed"]
    assert failed["error"] == "a record has more than 100,000 values"


def test_documents_are_texts_too() -> None:
    given = Relation(Schema(("number", "text")), [(1, Document("<b>4/7</b>"))])
    found = run_plan(plan(DATES, PARSE, ""), rel=given)
    assert [each["month"] for each in found.outputs["out"]] == ["4"]


# --- the check ----------------------------------------------------------------------------------


def test_the_checker_knows_the_attributes_of_records() -> None:
    select = 'parse (rel, "text", "dates" : x) select (x, "mont = \'4\'" : out)'
    (found,) = mistakes(DATES, select)
    assert "unknown attribute 'mont'; did you mean 'month'?" in found
    assert mistakes(PRICES, 'parse (rel, "text", "prices" : x) select (x, "price > 4" : out)') == []


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ('parse (rel, "text", "date" : out)', "unknown grammar 'date'; did you mean 'dates'?"),
        ('parse (rel, "txt", "dates" : out)', "unknown attribute 'txt'; did you mean 'text'?"),
        ('parse (rel, "number", "dates" : out)', "'number' is a number, not a text"),
        (
            'parse (rel, "text", "dates" : out) {START: "dat"}',
            "the grammar has no rule 'dat'; did you mean 'date'?",
        ),
        (
            'parse (rel, "text", "dates" : out) {EACH: "lisp"}',
            "the rule 'all' has no variable 'lisp'; did you mean 'list'?",
        ),
    ],
)
def test_mistakes_are_found_before_the_run(statement: str, expected: str) -> None:
    (found,) = mistakes(DATES, statement)
    assert expected in found
