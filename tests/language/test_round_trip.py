"""Text and data: reading what was printed gives the same, and formatting changes nothing but the layout."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aioflow.errors import InputError
from aioflow.language import format_text, parse, print_file, print_plan
from aioflow.language.scanner import Cursor
from aioflow.plan import (
    Item,
    Option,
    Parameter,
    Plan,
    PlanFile,
    Setting,
    Statement,
    Variable,
    Word,
)
from aioflow.source import Source
from tests.language.samples import SAMPLES
from tests.language.strategies import commented_texts, files, plans

MANY = settings(max_examples=100, deadline=None)


def plan_texts() -> st.SearchStrategy[str]:
    return plans.map(print_plan)


def comments_in(text: str) -> list[str]:
    """The comments of a text without their white space, in any order."""
    cursor = Cursor(Source("x", text), lambda message, start, end: None)
    while cursor.token.type != "$END":
        cursor.take()
    found = [text[start:end] for start, end in cursor.all_comments()]
    return sorted(re.sub(r"\s+", " ", comment).strip() for comment in found)


@MANY
@given(plans)
def test_a_printed_plan_reads_back_equal_and_needs_no_formatting(plan: Plan) -> None:
    text = print_plan(plan)
    (again,) = parse(text).entries
    # The text of both is compared too: True == 1 and 1 == 1.0 in Python, but not in a plan.
    assert (again, repr(again)) == (plan, repr(plan))
    assert format_text(text) == text


@settings(max_examples=50, deadline=None)
@given(files)
def test_a_printed_file_reads_back_equal(plan_file: PlanFile) -> None:
    assert parse(print_file(plan_file)) == plan_file


@MANY
@given(commented_texts(st.one_of(plan_texts(), st.sampled_from(list(SAMPLES.values())[:4]))))
def test_formatting_keeps_comments_and_meaning_and_is_idempotent(text: str) -> None:
    formatted = format_text(text)
    assert parse(formatted) == parse(text)
    assert comments_in(formatted) == comments_in(text)
    assert format_text(formatted) == formatted


@pytest.mark.parametrize("text", SAMPLES.values(), ids=SAMPLES)
def test_samples_are_formatted_without_change_of_meaning(text: str) -> None:
    formatted = format_text(text)
    assert parse(formatted) == parse(text)
    assert format_text(formatted) == formatted
    assert parse(print_file(parse(text))) == parse(text)


@pytest.mark.parametrize("text", SAMPLES.values(), ids=SAMPLES)
def test_line_ends_and_a_byte_order_mark_change_nothing(text: str) -> None:
    content = "\ufeff" + text.replace("\n", "\r\n")
    assert parse(content.encode()) == parse(text)
    assert format_text(content.encode()) == format_text(text)


UNPRINTABLE = [
    (Plan("two words"), "'two words' cannot be the name of a plan"),
    (Plan("p", outputs=(Variable("true"),)), "'true' is not a name that a plan can hold"),
    (Plan("p", statements=(Statement("a b"),)), "'a b' cannot be the name of an operator"),
    (Plan("p", stop_at_max_depth=True), "a plan that stops at its MAX_DEPTH must have one"),
    (Plan("p", max_depth=0), "MAX_DEPTH must be at least 1, not 0"),
    (Plan("p", parameters=(Parameter("a", 1, True),)), "parameter 'a' cannot be required and have a default"),
    (Plan("p", options=(Option("INPUT", (1,)),)), "'INPUT' cannot be an option of a plan"),
    (
        Plan("p", statements=(Statement("op", (Setting(float("nan")),)),)),
        "a plan cannot hold the number nan",
    ),
    (
        Plan("p", statements=(Statement("op", (Setting("\ud800"),)),)),
        "a plan cannot hold text with half a character: '\\ud800'",
    ),
    (
        Plan("p", statements=(Statement("op", (Setting(10**5000),)),)),
        "a plan cannot hold a number of so many digits",
    ),
    (
        Plan("p", statements=(Statement("op", (Setting(((1,), 2)),)),)),  # type: ignore[arg-type]
        "a list in a plan holds strings, numbers, true, false and null only: ((1,), 2)",
    ),
    (
        Plan("p", statements=(Statement("op", (Setting(b"x"),)),)),  # type: ignore[arg-type]
        "a plan cannot hold b'x', a value of type bytes",
    ),
    (
        Plan("p", statements=(Statement("op", (Setting(Word("x")),)),)),  # type: ignore[arg-type]
        "x cannot stand among the arguments of a statement",
    ),
    (
        Plan("p", statements=(Statement("op", options=(Option("X", (Word("a b"),)),)),)),
        "'a b' is not a name that a plan can hold",
    ),
    (
        Plan("p", statements=(Statement("op", options=(Option("wait", (1,)),)),)),
        "wait cannot be an option: every statement has such a clause",
    ),
    (
        Plan("p", statements=(Statement("op", errors=Variable("Skip")),)),
        "a variable for ERRORS cannot be called 'skip'",
    ),
]


@pytest.mark.parametrize(("plan", "message"), UNPRINTABLE, ids=[message for _, message in UNPRINTABLE])
def test_what_no_text_can_say_is_refused(plan: Plan, message: str) -> None:
    with pytest.raises(InputError) as caught:
        print_plan(plan)
    assert str(caught.value) == message


def test_a_body_that_would_not_end_where_it_should_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        print_file(PlanFile((Item("WRAPPER", "a", "", "x }"),)))
    assert str(caught.value) == "the body of WRAPPER 'a' does not end where it should"
