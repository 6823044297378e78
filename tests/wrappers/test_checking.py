"""What is wrong with a wrapper in its program is found when the program is checked."""

from collections.abc import Sequence

import pytest

from aioflow import Engine, loads
from aioflow.errors import Diagnostic, PlanError
from aioflow.wrappers import WrapperText
from tests.wrappers.bad_wrappers import PROGRAMS, BadWrapper
from tests.wrappers.tiny_reader import tiny_reader  # noqa: F401  # registers the reader for each test


def problems(text: str) -> list[Diagnostic]:
    program = loads(text + "\nPLAN p { BODY { } }\n", "bad.plan")
    found: list[Diagnostic] = []
    for item in program.items:
        assert isinstance(item.content, WrapperText)
        found += item.content.problems(program)
    return found


def told(found: Diagnostic) -> str:
    assert found.span is not None
    severity = "warning: " if found.severity == "warning" else ""
    message = found.message.split(" (there are:")[0]
    return f"{found.span.line}:{found.span.column}: {severity}{message}"


@pytest.mark.parametrize("bad", [pytest.param(bad, id=bad.name) for bad in PROGRAMS])
def test_bad_programs_get_exact_messages(bad: BadWrapper) -> None:
    assert list(map(told, problems(bad.text))) == bad.messages


def test_a_good_wrapper_has_no_problems() -> None:
    text = """
WRAPPER w (city, page number optional, tags = "x")
{
  POST: "https://{city}.a.example/search{?page}"
  FORM: city, t = "{tags}", n = 5, all = [1, 2]
  HEADERS: Accept = "text/html", X-City = "{city}"
  SAFE
  READ: tiny quick separator ";" alias "a" "b"
  EACH: "li"
  PAGING: next "a.next"
  MAX_PAGES: 3
  x: "y" number required
  z: each "u" { v: "w" }
}
"""
    assert problems(text) == []


def test_the_place_of_a_mistake_counts_escapes_and_quotes() -> None:
    text = 'WRAPPER w { GET: "https://a.example/"; READ: tiny; x: """a\\"\\u0041\nb!c""" }'
    (found,) = problems(text)
    assert found.span is not None
    assert (found.span.line, found.span.column) == (2, 2)


def test_a_mistake_in_a_selector_is_underlined_where_it_is() -> None:
    text = "WRAPPER w { GET: 'https://a.example/'; READ: tiny; x: 'a!b' }"
    (found,) = problems(text)
    assert str(found).split("\n")[1:] == [f"    {text}", "    " + " " * text.index("!") + "^"]


def test_an_unknown_reader_names_those_that_there_are() -> None:
    (found,) = problems("WRAPPER w { GET: 'https://a.example/'; READ: parchment; x: 'a' }")
    readers = "csv, grammar, html, json, text, tiny, xml"
    assert found.message.startswith(f"unknown reader 'parchment' (there are: {readers}")


def test_warnings_do_not_keep_a_wrapper_from_being_used() -> None:
    found = problems("WRAPPER w (a) { GET: 'https://a.example/'; READ: tiny; x: 'a' }")
    assert [each.severity for each in found] == ["warning"]


def mistakes(text: str) -> list[str]:
    try:
        found: Sequence[Diagnostic] = Engine().check(loads(text, "bad.plan"))
    except PlanError as error:
        found = error.diagnostics
    return list(map(told, found))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('WRAPPER w () GET: "https://a.example/"; t: "a" }', "1:14: expected '{' after ')', found 'GET'"),
        (
            'WRAPPER w (a)\n  GET: "https://a.example/"\n  t: "a"\n}',
            "1:14: expected '{' after ')', found the end of the line",
        ),
        ('WRAPPER w LIKE v t: "a" }', "1:18: expected '{' after 'v', found 't'"),
        ("WRAPPER w (a)", "1:14: expected '{' after ')', found the end of the line"),
    ],
)
def test_a_missing_brace_is_told_where_it_is_missing(text: str, message: str) -> None:
    assert mistakes(f"{text}\nPLAN p {{ BODY {{ }} }}") == [message]


def test_the_name_of_a_wrapper_that_is_no_variable_wants_quotes() -> None:
    text = 'WRAPPER w (a) { GET: "https://a.example/{a}"; t: "a" }\n'
    found = mistakes(f"{text}PLAN p {{ INPUT: i (a char) OUTPUT: x BODY {{ wrapper (w, i : x) }} }}")
    assert found[0].startswith(
        "2:54: 'w' is a variable, but wrapper takes the constant 'name' here; write it"
    )


def test_a_wrapper_that_is_wrong_as_a_whole_is_told_at_its_name() -> None:
    text = 'WRAPPER base { t: "a" }\nWRAPPER w /* one */ LIKE base { }\nWRAPPER v(a) { x: "y" }'
    assert [told(found)[:5] for found in problems(text)] == ["1:9: ", "2:9: ", "3:9: "]
