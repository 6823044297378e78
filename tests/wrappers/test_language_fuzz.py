"""Mutated wrappers are read as wrappers or told their mistakes, and nothing else happens."""

import random

import pytest

from aioflow import Engine, PlanError, loads
from aioflow.errors import AioflowError, InputError
from aioflow.plan import Program
from aioflow.wrappers import RequestMaker, Wrapper, WrapperText, print_wrapper, resolve
from tests.wrappers.bad_wrappers import PROGRAMS, TEXTS
from tests.wrappers.test_language import EXAMPLE
from tests.wrappers.tiny_reader import tiny_reader  # noqa: F401  # registers the reader for each test

PLAN = "\nPLAN p { BODY { } }\n"
WHOLE = """
WRAPPER base (city, n number = 5, `x y` optional)
{
  POST: "https://a.example/{?city,n}"   # where
  FORM: city, n = "{n}", l = [1, "a"], `x y`
  HEADERS: Accept = "text/html", X-Key = "secret:KEY"
  AUTH: basic "me" "secret:PASSWORD"; SAFE
  READ: tiny quick separator ";" alias "a" "b"
  EACH: "li"; OUTER; CHARSET: "latin-1"
  PAGING: cursor "a" as "after"; MAX_PAGES: 5
  EMPTY: 404, ".none", 410; ROBOTS: off; TIMEOUT: 20
  price: ".price" number "de" default 0
  rooms: each "li" { a: "b"; c: page each "d" { e: = 5 } }
  when: response header "Date" date "%d.%m.%Y"
  note: page "//p" match "(a)(b)" 2 all join ", "
}
WRAPPER w (link) LIKE base
{
  GET: "{+link}"
  price: none
  PAGING: none; MAX_PAGES: none; AUTH: none; HEADERS: none
}
"""
SAMPLES = [WHOLE, EXAMPLE.read_text(encoding="utf-8"), *(bad.text for bad in [*TEXTS, *PROGRAMS])]
TOKENS = (
    *"(){}[],:;=$#\"'`\\/-.!\n",
    *('"""', "/*", "*/", " ", "GET:", "EACH: ", "each", "page", "none", "LIKE", "PAGING: next ", "FORM: "),
    *(
        "number",
        "required",
        "default",
        "null",
        "true",
        "5",
        "-1.5e3",
        '"x"',
        "{+a}",
        "secret:X",
        "é",
        "\0",
        "\ud800",
    ),
)


def mutated(chance: random.Random) -> str:
    text = chance.choice(SAMPLES) if chance.random() < 0.5 else WHOLE
    for _ in range(chance.choice((1, 1, 2, 4))):
        start = chance.randint(0, len(text))
        kind = chance.randrange(5)
        if kind == 0:
            text = text[:start] + text[start + chance.choice((1, 2, 5, 30)) :]
        elif kind == 1:
            text = text[:start] + chance.choice(TOKENS) * chance.choice((1, 1, 2, 40)) + text[start:]
        elif kind == 2:
            text = text[:start] + chance.choice(TOKENS) + text[start + chance.randint(1, 3) :]
        elif kind == 3:
            other = chance.choice(SAMPLES)
            text = text[:start] + other[chance.randint(0, len(other)) :]
        else:
            lines = text.split("\n")
            chance.shuffle(lines)
            text = "\n".join(lines)
    return text


def examine(text: str) -> str:
    """What became of a text; raises what should not happen."""
    try:
        program = loads(text + PLAN, "fuzz.plan")
    except PlanError as error:
        told = error.diagnostics
    except InputError:
        return "no plan"
    else:
        return check(program)
    assert told
    assert all(each.span and each.message for each in told)
    return "mistakes"


def check(program: Program) -> str:
    found = Engine().check(program)
    assert all(str(each) for each in found)
    if any(each.severity == "error" for each in found):
        return "problems"
    for item in program.items:
        if isinstance(item.content, WrapperText):
            assert loads(print_wrapper(item.content) + PLAN).items[0].content == item.content
            use(resolve(item.name, program))
    return "wrappers"


def use(wrapper: Wrapper) -> None:
    """A wrapper that was found to be right makes requests, or refuses values."""
    maker = RequestMaker(wrapper, secret=str)
    for value in ("https://a.example/", "a\r\nb", "", 5, None):
        try:
            maker.make((value,) * len(wrapper.inputs))
        except AioflowError:
            continue


@pytest.mark.parametrize("seed", range(4))
def test_mutated_texts_are_wrappers_or_mistakes(seed: int) -> None:
    chance = random.Random(seed)
    outcomes: dict[str, int] = {}
    for _ in range(250):
        text = mutated(chance)
        try:
            outcome = examine(text)
        except Exception as error:
            raise AssertionError(f"seed {seed}: {error!r} for\n{text}") from error
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
    assert {"mistakes", "problems", "wrappers"} <= set(outcomes)
