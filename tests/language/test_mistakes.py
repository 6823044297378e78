"""Every mistake of a text is found at once, told in the user's words, and shown in its place."""

import re

import pytest

from aioflow.errors import PlanError
from aioflow.language import parse
from tests.clocks import effort_at_most
from tests.language.bad_plans import BAD_TEXTS, BadText

ALL = [pytest.param(bad, id=bad.name) for table in BAD_TEXTS.values() for bad in table]


def mistakes(text: str | bytes) -> PlanError:
    with pytest.raises(PlanError) as caught:
        parse(text, "bad.plan")
    return caught.value


@pytest.mark.parametrize("bad", ALL)
def test_bad_texts_get_exact_messages(bad: BadText) -> None:
    found = [
        f"{each.span.line}:{each.span.column}: {each.message}" if each.span else each.message
        for each in mistakes(bad.text).diagnostics
    ]
    assert found == bad.messages


def template(message: str) -> str:
    """A message without its place, and without the names, texts and numbers in it."""
    without_names = re.sub(r"^\d+:\d+: |'\W?[\w…-]+'", "name", message)
    return re.sub(r"\d+", "number", re.sub(r'"[^"]+"', "text", without_names))


def test_there_are_many_bad_texts_and_no_two_alike() -> None:
    seen: dict[tuple[str, ...], str] = {}
    for place, table in BAD_TEXTS.items():
        for bad in table:
            known = seen.setdefault((place, *map(template, bad.messages)), bad.name)
            assert known == bad.name
    assert len(seen) >= 45


def test_a_mistake_is_shown_with_its_line_and_a_caret() -> None:
    text = 'PLAN p\n{\n  BODY\n  {\n\tselect (houses, "beds > 2"  chosen)\n  }\n}\n'
    assert str(mistakes(text)) == (
        "bad.plan:5:30: expected ',', ':' or ')' after \"beds > 2\", found 'chosen'\n"
        '    \tselect (houses, "beds > 2"  chosen)\n'
        "    \t                            ^^^^^^"
    )


def test_a_caret_can_stand_behind_the_line() -> None:
    text = "PLAN p {\n  BODY {\n    select (houses : chosen\n  }\n}\n"
    assert str(mistakes(text)) == (
        "bad.plan:3:28: expected ',' or ')' after 'chosen', found the end of the line\n"
        "        select (houses : chosen\n"
        "                               ^"
    )


def test_columns_count_characters_after_windows_line_ends() -> None:
    text = "PLAN p {\r\n  BODY {\r\n    é (日本 b)\r\n  }\r\n}\r\n"
    assert str(mistakes(text.encode())) == (
        "bad.plan:3:11: expected ',', ':' or ')' after '日本', found 'b'\n    "
        + "    é (日本 b)\n              ^"
    )


def test_one_broken_item_does_not_hide_mistakes_in_others() -> None:
    text = (
        "PLAN a { BODY { op (x y) }\n\nPLAN b { BODY { op (x y) } }\n\nUSE z\n\nPLAN c { INPT: x BODY { } }\n"
    )
    assert [(each.span.line, each.span.column) for each in mistakes(text).diagnostics if each.span] == [
        (1, 8),
        (1, 23),
        (3, 23),
        (5, 5),
        (7, 10),
    ]


@pytest.mark.parametrize(
    "mark", ["(", "[", "{", '"', "'", "/*", "\\", "a (", "a: ", "PLAN ", "PLAN a {", ",", "}"]
)
def test_texts_of_one_mark_again_and_again_are_refused_quickly(mark: str) -> None:
    with effort_at_most(100):
        mistakes(f"PLAN p {{ BODY {{ {mark * 20_000}")
