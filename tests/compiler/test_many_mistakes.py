"""One mistake hides no other: each kind is reported alone, and beside every other kind."""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import pytest

from aioflow.authoring.operator import load_operators
from aioflow.compiler.check import check, check_rest
from aioflow.errors import PlanError
from aioflow.language import loads


class Kind(NamedTuple):
    """A mistake in a text of its own; `{n}` makes its names unique."""

    name: str
    statements: str
    message: str


KINDS = [
    Kind("unknown option", 'select (a, "x > 1" : v{n}) {{COLOUR{n}: 1}}', "has no option 'COLOUR{n}'"),
    Kind("misspelt option", 'distinct (a, "x" : v{n}) {{WORKRES: 1}}', "has no option 'WORKRES'"),
    Kind("unknown setting", 'select (a, "x > 1", colour{n}=1 : v{n})', "has no setting 'colour{n}'"),
    Kind("unknown operator", "selecct{n} (a : v{n})", "unknown operator 'selecct{n}'"),
    Kind("bad condition", 'select (a, "x > > {n}" : v{n})', "expected"),
    Kind("unknown attribute", 'select (a, "zip{n} > 1" : v{n})', "unknown attribute 'zip{n}'"),
    Kind("unknown variable", 'select (nobody{n}, "x > 1" : v{n})', "unknown variable 'nobody{n}'"),
    Kind(
        "two producers",
        'select (a, "x > 1" : v{n})\n    select (a, "x > 2" : v{n})',
        "'v{n}' has two producers",
    ),
    Kind("too many inputs", "distinct (a, a, a : v{n})", "distinct takes"),
    Kind("too few inputs", "minus (a : v{n})", "minus takes 2 inputs"),
    Kind("too many outputs", "distinct (a : v{n}, w{n})", "distinct has 1 output"),
    Kind("missing constant", "unpack (a : v{n})", "unpack needs"),
    Kind("wrong workers", 'select (a, "x > 1" : v{n}) {{WORKERS: 0}}', "WORKERS must be a whole number"),
    Kind("option without value", 'pack (a, "p" : v{n}) {{BY}}', "option 'BY' needs a value"),
    Kind("wrong type of a setting", 'limit (a, "many{n}" : v{n})', "limit"),
    Kind(
        "unknown signal", 'select (a, "x > 1" : v{n}) {{WAIT: s{n}}}', "no statement sends the signal 's{n}'"
    ),
    Kind("unknown parameter", 'select (a, "x > ${{low{n}}}" : v{n})', "unknown parameter 'low{n}'"),
    Kind("cycle", 'select (d{n}, "x > 1" : c{n})\n    select (c{n}, "x > 1" : d{n})', "wait for each other"),
    Kind("unknown wrapper", 'wrapper ("page{n}", a : v{n})', "page{n}"),
    Kind("syntax", 'select (a "x > {n}" : v{n})', "after 'a', found \"x > {n}\""),
    Kind("unclosed string", 'select (a, "x > {n} : v{n})', "the string is not closed on its line"),
    Kind("bad number", "limit (a, {n}x7 : v{n})", "'{n}x7' is neither a number nor a name"),
]


def found(*kinds: Kind) -> list[str]:
    statements = "\n    ".join(kind.statements.format(n=number) for number, kind in enumerate(kinds, 1))
    text = f"PLAN p\n{{\n  INPUT: a (x number)\n  OUTPUT: a\n  BODY\n  {{\n    {statements}\n  }}\n}}\n"
    registry = load_operators()
    try:
        diagnostics = check(loads(text), registry)
    except PlanError as error:
        diagnostics = check_rest(error, registry)
    return [each.message for each in diagnostics if each.severity == "error"]


def missing(*kinds: Kind) -> list[str]:
    messages = found(*kinds)
    wanted = [kind.message.format(n=number) for number, kind in enumerate(kinds, 1)]
    return [text for text in wanted if not any(text in message for message in messages)]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_each_mistake_alone_is_reported_once(kind: Kind) -> None:
    messages = found(kind)
    assert kind.message.format(n=1) in messages[0]
    assert len(messages) == 1


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_two_mistakes_are_both_reported(kind: Kind) -> None:
    for one, other in combinations([kind, *KINDS], 2):
        if kind in (one, other):
            assert missing(one, other) == []
            assert missing(other, one) == []


def test_all_mistakes_are_reported_at_once() -> None:
    assert missing(*KINDS) == []


@pytest.mark.parametrize(
    ("statement", "messages"),
    [
        (
            'select (a, "zip > 1" : out) {COLOUR: 1; WORKERS: 0; WAIT: nobody}',
            ["unknown attribute 'zip'", "no option 'COLOUR'", "WORKERS must", "no statement sends"],
        ),
        (
            'selecct (b, "x >" : out) {WORKERS: 0}',
            ["unknown operator", "WORKERS must", "unknown variable 'b'"],
        ),
        ('pack (a, "p" : out, more) {BY: "zip"; BYY: 1}', ["has 1 output", "'zip'", "no option 'BYY'"]),
    ],
)
def test_mistakes_in_one_statement_are_all_reported(statement: str, messages: list[str]) -> None:
    kind = Kind("", statement.replace("{", "{{").replace("}", "}}"), "")
    reported = found(kind)
    assert [text for text in messages if not any(text in message for message in reported)] == []


@pytest.mark.parametrize("statement", ['select (a, "x > 1" : b) {{COLOUR: 1}}', 'limit (a, "many" : b)'])
def test_a_mistake_does_not_hide_what_comes_of_the_statement(statement: str) -> None:
    kind = Kind("", f'{statement}\n    select (b, "zap > 1" : c)', "")
    assert any("unknown attribute 'zap'" in message for message in found(kind))
