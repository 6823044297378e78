"""Every mistake in a wrapper is found at once, told in the user's words, and shown in its place."""

import re

import pytest

from aioflow import Engine, PlanError, loads
from aioflow.wrappers import parse_wrapper
from tests.wrappers.bad_wrappers import PROGRAMS, TEXTS, BadWrapper
from tests.wrappers.tiny_reader import tiny_reader  # noqa: F401  # registers the reader for each test

PLAN = "\nPLAN p { BODY { } }\n"


def mistakes(text: str) -> PlanError:
    with pytest.raises(PlanError) as caught:
        loads(text + PLAN, "bad.plan")
    return caught.value


def told(error: PlanError) -> list[str]:
    return [
        f"{each.span.line}:{each.span.column}: {each.message.split(' (there are:')[0]}"
        for each in error.diagnostics
        if each.span
    ]


@pytest.mark.parametrize("bad", [pytest.param(bad, id=bad.name) for bad in TEXTS])
def test_bad_texts_get_exact_messages(bad: BadWrapper) -> None:
    assert told(mistakes(bad.text)) == bad.messages


def test_there_are_many_bad_wrappers_and_no_two_alike() -> None:
    def template(message: str) -> str:
        return re.sub(r"\d+:\d+: |'\W?[\w…-]+'|\"[^\"]+\"|\d+", "x", message)

    told_so_far = {tuple(map(template, bad.messages)) for bad in [*TEXTS, *PROGRAMS]}
    assert len(told_so_far) >= 100


def test_a_mistake_is_shown_with_its_line_and_a_caret() -> None:
    text = 'WRAPPER w\n{\n\tprice: ".price" numbr "de"\n}\n'
    assert str(mistakes(text)) == (
        "bad.plan:3:18: unknown word 'numbr'; did you mean 'number'?\n"
        '    \tprice: ".price" numbr "de"\n'
        "    \t                ^^^^^"
    )


def test_mistakes_of_several_wrappers_and_plans_come_together() -> None:
    text = "WRAPPER v (a nmber) { }\nWRAPPER w { EACH: }\nPLAN q { BODY { op (a b) } }\n"
    assert [line.partition(":")[2] for line in str(mistakes(text)).split("\n") if "bad.plan" in line] == [
        "1:14: unknown type 'nmber'; did you mean 'number'?",
        "2:19: expected a selector in quotes after ':', found '}'",
        "3:23: expected ',', ':' or ')' after 'a', found 'b'",
    ]


def test_a_text_by_itself_names_the_wrapper() -> None:
    with pytest.raises(PlanError, match=r"<WRAPPER w>:1:6: unexpected '&'") as caught:
        parse_wrapper("w", "(a, b& c)", "x: numbr")
    assert [str(each).partition("\n")[0] for each in caught.value.diagnostics] == [
        "<WRAPPER w>:1:6: unexpected '&'",
        "<WRAPPER w>:3:4: unknown word 'numbr'; did you mean 'number'?",
    ]


def test_blocks_are_not_nested_without_end() -> None:
    deep = "x: each 'a' {" * 100 + "y: 'b'" + "}" * 100
    found = [each.message for each in mistakes(f"WRAPPER w {{ {deep} }}").diagnostics]
    assert "blocks are nested deeper than 50" in found
    assert len(found) < 5


def test_the_checker_of_plans_reports_what_is_wrong_with_wrappers() -> None:
    text = 'WRAPPER w (city) { GET: "https://a.example/{?citty}"; READ: tiny; x: "y" }\nPLAN p { BODY { } }'
    assert [str(found).partition("\n")[0] for found in Engine().check(loads(text, "bad.plan"))] == [
        "bad.plan:1:46: unknown variable 'citty'; did you mean 'city'?"
    ]
