"""The paper's own plans: figures 5 and 8 are well formed; for 13a and 13b the messages say what is wrong."""

from collections.abc import AsyncGenerator

from aioflow.authoring.operator import Registry, describe, load_operators
from aioflow.compiler.check import check
from aioflow.language import parse
from aioflow.plan import Plan, Program
from aioflow.relation import Row
from aioflow.runtime.stream import Stream

FIGURE_5 = """\
PLAN example_plan
{
  INPUT: a, b
  OUTPUT: f

  BODY
  {
    Op1 (a, b : c)
    Op2 (c : d)
    Op3 (c : ) {ENABLE: e}
    Op4 (d : f, g)
    Op5 (g : ) {WAIT : e}
  }
}
"""

FIGURE_8 = """\
PLAN parent_plan
{
  INPUT: w, x
  OUTPUT: z

  BODY
  {
    Op6 (w : y)
    example_plan (x, y : z)
  }
}
"""

FIGURE_13A = """\
PLAN get_houses
{
  INPUT: criteria
  OUTPUT: filtered-house-details

  BODY
  {
    project (criteria, "price-range", price-info)
    format ("beds = %s", "beds" : bed-info)
    wrapper ("initial", price-info : result-page-info)
    get_urls (house_urls : all-house-urls)
    wrapper ("detail", all-house-urls : all-house-details)
    select (raw-house-details, bed-info : filtered-house-details)
  }
}
"""

FIGURE_13B = """\
PLAN get_urls
{
  INPUT: result-page-info
  OUTPUT: combined-urls

  BODY
  {
    project(result-page-info, "house-url" : curr-urls)
    distinct(result-page-info, "next-page-link" : next-status)
    null (next-status, next-status, next-status : next-page-info, next-urls)
    wrapper ("result-page", next-page-info : next-urls)
    union ( curr-urls, next-urls : combined-urls)
  }
}
"""

WELL_FORMED_URLS = """\
PLAN get_urls
{
  INPUT: result-page-info
  OUTPUT: combined-urls

  BODY
  {
    project (result-page-info, "house-url" : curr-urls)
    distinct (result-page-info, "next-page-link" : next-page-info)
    wrapper ("result-page", next-page-info : next-page)
    get_urls (next-page : next-urls)
    union (curr-urls, next-urls : combined-urls)
  }
}
"""


async def op1(first: Stream, second: Stream) -> AsyncGenerator[Row, None]:
    yield ()


async def op2(rows: Stream) -> AsyncGenerator[Row, None]:
    yield ()


async def op3(rows: Stream) -> AsyncGenerator[Row, None]:
    yield ()


async def op4(rows: Stream) -> AsyncGenerator[Row, None]:
    yield ()


async def op6(rows: Stream) -> AsyncGenerator[Row, None]:
    yield ()


async def wrapper(rows: Stream, *, name: str) -> AsyncGenerator[Row, None]:
    yield ()


def registry() -> Registry:
    """The library, with a wrapper that fetches nothing and the operators of figures 5 and 8."""
    return Registry(
        [
            *load_operators(),
            describe(wrapper, firing="tuple"),
            describe(op1),
            describe(op2),
            describe(op3, outputs=()),
            describe(op4, outputs=("first", "second")),
            describe(op3, name="op5", outputs=()),
            describe(op6),
        ]
    )


def messages(*texts: str) -> list[str]:
    plans = tuple(
        entry for text in texts for entry in parse(text, "figure").entries if isinstance(entry, Plan)
    )
    return [str(diagnostic) for diagnostic in check(Program(plans[0], plans), registry())]


def test_figure_5_is_well_formed() -> None:
    assert messages(FIGURE_5) == []


def test_figure_8_is_well_formed() -> None:
    assert messages(FIGURE_8, FIGURE_5) == []


def test_the_mistakes_of_figure_13a_are_named() -> None:
    assert messages(FIGURE_13A, WELL_FORMED_URLS) == [
        "figure:8:39: a ':' is missing before 'price-info': it is used as an output\n"
        '        project (criteria, "price-range", price-info)\n'
        "                                          ^^^^^^^^^^",
        "figure:9:5: format takes 1 input, none is given: "
        'format (rel, "template", ["attributes"], ["as"] : out)\n'
        '        format ("beds = %s", "beds" : bed-info)\n'
        "        ^^^^^^",
        "figure:11:15: unknown variable 'house_urls': nothing produces it\n"
        "        get_urls (house_urls : all-house-urls)\n"
        "                  ^^^^^^^^^^",
        "figure:13:13: unknown variable 'raw-house-details'; did you mean 'all-house-details'?\n"
        "        select (raw-house-details, bed-info : filtered-house-details)\n"
        "                ^^^^^^^^^^^^^^^^^",
    ]


def test_the_mistakes_of_figure_13b_are_named() -> None:
    assert messages(FIGURE_13B) == [
        "figure:10:5: warning: 'next-page-info' never has a tuple: it gets 'next-status' only when "
        "'next-status' is empty; null is used the wrong way round\n"
        "        null (next-status, next-status, next-status : next-page-info, next-urls)\n"
        "        ^^^^",
        "figure:11:46: 'next-urls' has two producers: null (line 10) and wrapper (line 11)\n"
        '        wrapper ("result-page", next-page-info : next-urls)\n'
        "                                                 ^^^^^^^^^",
        "figure:11:46: warning: wrapper (line 11) gives 'next-urls' anew from what null (line 10) gives, "
        "as in a loop, but nothing recurs: get_urls does not call itself\n"
        '        wrapper ("result-page", next-page-info : next-urls)\n'
        "                                                 ^^^^^^^^^",
    ]


def test_what_figure_13b_means_is_well_formed() -> None:
    assert messages(WELL_FORMED_URLS) == []
