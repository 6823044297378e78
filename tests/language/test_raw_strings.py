r"""Raw strings, `r"…"`: a backslash is itself, and the string ends with the first quote."""

from __future__ import annotations

import pytest

import aioflow
from aioflow.authoring.operator import load_operators
from aioflow.compiler.check import check
from aioflow.errors import PlanError
from aioflow.language import format_text, loads, parse, print_file
from aioflow.plan import Plan, Setting
from aioflow.wrappers.language.wrapper_text import WrapperText


def plan(statement: str) -> str:
    return f"PLAN p\n{{\n  INPUT: a (x char)\n  OUTPUT: out\n\n  BODY\n  {{\n    {statement}\n  }}\n}}\n"


def value_of(literal: str) -> object:
    (entry,) = parse(plan(f"op (a, {literal} : out)")).entries
    assert isinstance(entry, Plan)
    setting = entry.statements[0].arguments[1]
    assert isinstance(setting, Setting)
    return setting.value


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        (r'r"\d+\.\w"', r"\d+\.\w"),
        (r"r'a\n'", r"a\n"),
        (r'R"\"', "\\"),
        ('r"""one\\\n"two" \\d"""', 'one\\\n"two" \\d'),
        ('r""', ""),
        ("r''", ""),
        (r"""r'say "\"'""", 'say "\\"'),
        (r'[r"\d", "\\d", 1]', (r"\d", r"\d", 1)),
    ],
)
def test_a_backslash_is_itself(literal: str, value: object) -> None:
    assert value_of(literal) == value


@pytest.mark.parametrize("literal", [r'r"\d+"', r"R'\s'", 'r"""a\\\nb"""', r'[r"\d", "b", 1]', r'name=r"\d"'])
def test_formatting_keeps_them_as_they_are_written(literal: str) -> None:
    text = plan(f"op (a, {literal} : out)")
    assert format_text(text) == text
    long = (
        plan(f"op (a, [{', '.join([literal] * 9)}] : out)")
        if literal[0] in "rR" and "\n" not in literal
        else text
    )
    assert format_text(format_text(long)) == format_text(long)
    assert parse(format_text(long)) == parse(long)


def test_they_are_printed_as_strings_of_the_same_value() -> None:
    text = plan(r'op (a, r"\d" : out)')
    assert parse(print_file(parse(text))) == parse(text)


def test_once_and_use_take_them() -> None:
    text = 'USE r"b.plan"\n\n' + plan("op (a : out)").replace("OUTPUT: out\n", 'OUTPUT: out\n  ONCE: r"x"\n')
    assert format_text(text) == text


def test_r_alone_is_a_name() -> None:
    (entry,) = parse(plan("op (r, r : out)")).entries
    assert isinstance(entry, Plan)
    assert [each.name for each in entry.statements[0].arguments] == ["r", "r"]


def test_a_mistake_in_one_is_shown_at_its_place() -> None:
    registry = load_operators()
    text = plan(r"""select (a, r"x matches '\d+' and zip = 1" : out)""")
    (found,) = [each for each in check(loads(text), registry) if each.severity == "error"]
    assert found.span is not None
    line = text.split("\n")[found.span.line - 1]
    assert line[found.span.column - 1 :].startswith("zip")


def test_parameters_are_put_in() -> None:
    text = plan(r'select (a, r"x like ${low}" : out)').replace(
        "OUTPUT: out\n", 'OUTPUT: out\n  PARAM: low = "y"\n'
    )
    assert "unknown attribute 'y'" in check(loads(text), load_operators())[0].message


def test_one_that_is_not_closed_is_a_mistake_on_its_line() -> None:
    with pytest.raises(PlanError) as caught:
        parse(plan('op (a, r"\\d : out)'))
    assert "not closed on its line" in caught.value.diagnostics[0].message


async def test_an_expression_takes_its_backslashes_from_them() -> None:
    text = plan(r"""select (a, r"x matches '^\d+$'" : out)""")
    rows = [dict(row) async for row in aioflow.Engine().stream(loads(text), a=[{"x": "12"}, {"x": "ab"}])]
    assert rows == [{"x": "12"}]


def test_wrappers_take_them() -> None:
    text = (
        'WRAPPER w (x)\n{\n  GET: "http://a.example/{x}"\n  READ: text\n'
        '  EACH: r"(?P<y>\\d+)\\}"\n  y: "y"\n}\n\n' + plan('wrapper ("w", a : out)')
    )
    program = loads(text)
    (item,) = program.items
    assert isinstance(item.content, WrapperText)
    assert r'r"(?P<y>\d+)\}"' in item.body
    assert format_text(text) == text
