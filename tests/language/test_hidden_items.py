"""The text of HIDDEN items: every mistake is found at once, at its place, and the layout is left alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from aioflow import Engine, PlanError, load, loads
from aioflow.errors import Diagnostic
from aioflow.hidden.forms.definition import HiddenForm
from aioflow.hidden.forms.language import form_of_text
from aioflow.language import format_text, parse
from aioflow.plan import Item, Program

PLANS = Path(__file__).parents[2] / "plans" / "hidden"
# Directives of the form begin in line 15.
WRAPPER = """\
WRAPPER search (make optional, type optional, low optional, high optional, near optional, city)
{
  GET: "https://cars.example/{?make,type,low,high,near,city}"
  EACH: "li"
  price: ".price" number
  make: ".make"
  type: ".type"
  total: page ".total" number
}

HIDDEN cars
{
  QUERY: search
  LIMIT: 5
"""
PLAN = "}\nPLAN p { INPUT: rel (city) OUTPUT: a BODY { crawl_hidden ('cars', rel : a) } }\n"


def mistakes_in(text: str) -> list[str]:
    try:
        found: list[Diagnostic] = list(Engine().check(loads(text, "bad.plan")))
    except PlanError as error:
        found = list(error.diagnostics)
    return [f"{each.span.line}:{each.span.column}: {each.message}" for each in found if each.span]


def mistakes(*lines: str) -> list[str]:
    return mistakes_in(WRAPPER + "".join(f"  {line}\n" for line in lines) + PLAN)


PRICE = "price: range low high"
DIRECTIVES = "QUERY, LIMIT, TOTAL, MORE, ALGORITHM, EXCLUDES, QUOTA, KEY, NEAR"
OF_THE_TEXT = {
    "an unknown directive": (
        ["LIMITS: 5", PRICE],
        ["15:3: unknown directive 'LIMITS'; did you mean 'LIMIT'?"],
    ),
    "a directive like no other": (
        ["VIN: 5", PRICE],
        [f"15:3: unknown directive 'VIN' (there are: {DIRECTIVES})"],
    ),
    "a directive twice": (
        ["QUOTA: 5", PRICE, "QUOTA: 6"],
        ["17:3: QUOTA stands twice; the first is in line 15"],
    ),
    "an attribute twice": ([PRICE, PRICE], ["16:3: the attribute 'price' stands here twice"]),
    "an unknown kind": (
        ["price: rnge low high"],
        ["15:10: unknown kind of attribute 'rnge'; did you mean 'range'?"],
    ),
    "no kind": (
        ["price:"],
        ["15:9: expected range, at_most, at_least, value or menu after ':', found the end of the line"],
    ),
    "no attributes": ([], ["13:3: a form needs attributes: name: range, value or menu"]),
    "no name": (["price range"], ["15:3: expected 'NAME: …', found 'price'"]),
    "an unknown algorithm": (
        [PRICE, "ALGORITHM: rank-shrunk"],
        ["16:14: unknown algorithm 'rank-shrunk'; did you mean 'rank-shrink'?"],
    ),
    "a number that is none": (
        ["QUOTA: 0", PRICE],
        ["15:10: expected a whole number, at least 1, found 0"],
    ),
    "one end of two": (["price: range low"], ["15:10: range needs two inputs of the wrapper"]),
    "too many inputs": (["make: menu make type"], ["15:9: menu needs one input of the wrapper"]),
    "a value without ends": (
        ["price: value low from 1"],
        ["15:10: value needs from and to: each value is a query of its own"],
    ),
    "a required menu without values": (
        ["make: menu required"],
        ["15:9: a required menu needs its values: in or of"],
    ),
    "values of two origins": (
        ["make: menu of search make in 'BMW'"],
        ["15:9: the values of a menu come from in or of, not from both"],
    ),
    "no values": (
        ["make: menu in"],
        ["15:16: expected the values of the menu after 'in', found the end of the line"],
    ),
    "a menu with ends": (
        ["make: menu from 1"],
        ["15:9: from, to and step belong to ranges and values, not to a menu"],
    ),
    "a range with values": (
        [f"{PRICE} in 1, 2"],
        ["15:10: in, of and required belong to a menu, not to range"],
    ),
    "places without ends": (
        ["NEAR: low high near", "price: range from 0 to 1", "make: range"],
        ["15:9: NEAR needs two ranges first, latitude and longitude, each with from and to"],
    ),
    "a radius of its own": (
        ["NEAR: low high near yards", "price: range from 0 to 1", "make: range from 0 to 1"],
        ["15:23: a radius is in km, miles or m"],
    ),
    "another algorithm for places": (
        ["NEAR: low high near", "ALGORITHM: auto", "price: range from 0 to 1", "make: range from 0 to 1"],
        ["16:14: with NEAR, the algorithm is squares"],
    ),
    "a dependency without quotes": (
        ["EXCLUDES: make", PRICE],
        [
            "15:13: expected a dependency, such as \"make = BMW excludes body = truck\" after ':', found "
            "'make'"
        ],
    ),
}


@pytest.mark.parametrize(("lines", "expected"), OF_THE_TEXT.values(), ids=OF_THE_TEXT)
def test_mistakes_in_the_text_of_a_form_have_their_places(lines: list[str], expected: list[str]) -> None:
    assert mistakes(*lines) == expected


MENUS = ["make: menu in 'BMW', 'Kia'", "type: menu"]
OF_THE_WRAPPER = {
    "an unknown attribute": (
        ["prise: range low high"],
        ["15:3: wrapper 'search' has no attribute 'prise'; did you mean 'price'?"],
    ),
    "an attribute of the page": (
        ["total: at_most high"],
        ["15:3: 'total' belongs to the page, not to each tuple of it"],
    ),
    "unknown inputs": (
        ["price: range lo hihg"],
        [
            "15:3: wrapper 'search' has no input 'lo'; did you mean 'low'?",
            "15:3: wrapper 'search' has no input 'hihg'; did you mean 'high'?",
        ],
    ),
    "inputs that are not optional": (
        ["make: menu city in 'BMW'", "price: at_most city"],
        [
            "15:3: queries leave 'make' open: make the input 'city' optional, or make the menu required",
            "16:3: queries leave 'price' open: make the input 'city' optional",
            "16:3: the input 'city' belongs to 'make' already",
        ],
    ),
    "a range whose inputs are not optional": (
        ["price: range low city"],
        ["15:3: queries leave 'price' open: make the input 'city' optional, or give from and to"],
    ),
    "an input of two attributes": (
        [PRICE, "make: menu low"],
        ["16:3: the input 'low' belongs to 'price' already"],
    ),
    "unknown attributes of directives": (
        ["TOTAL: totl", "MORE: next", "KEY: make, number, total", PRICE],
        [
            "15:10: TOTAL: wrapper 'search' has no attribute 'totl'; did you mean 'total'?",
            "16:9: MORE: wrapper 'search' has no attribute 'next'",
            "17:8: KEY: wrapper 'search' has no attribute 'number'",
            "17:8: KEY: 'total' belongs to the page, not to each tuple of it",
        ],
    ),
    "an unknown wrapper of a menu": (
        ["make: menu of serch make"],
        ["15:3: unknown wrapper 'serch'; did you mean 'search'?"],
    ),
    "an unknown attribute of a menu": (
        ["make: menu of search mak"],
        ["15:3: wrapper 'search' has no attribute 'mak'; did you mean 'make'?"],
    ),
    "a range from high to low": (
        [f"{PRICE} from 5 to 1"],
        ["15:3: 'price': low is 5, which is more than high, 1"],
    ),
    "a range from a text to a number": (
        [f"{PRICE} from 'x' to 1"],
        ["15:3: 'price': low, 'x', and high, 1, are not of one kind"],
    ),
    "a step of nothing": (
        [f"{PRICE} from 1 to 10 step 0"],
        ["15:3: 'price': the step must be more than 0, not 0"],
    ),
    "an end between two steps": (
        [f"{PRICE} from 0 to 10 step 3"],
        ["15:3: 'price': 10 is no end of its range: it is not 0 plus a multiple of 3"],
    ),
    "too many values": (
        ["price: value low from 1 to 10000001"],
        ["15:3: 'price': 10,000,001 single values are too many to ask for"],
    ),
    "an algorithm for ranges": (
        [PRICE, "make: menu", "ALGORITHM: rank-shrink"],
        ["17:14: rank-shrink works on ranges, and 'make' has single values; use hybrid or auto"],
    ),
    "an algorithm for menus": (
        ["ALGORITHM: dfs", PRICE],
        ["15:14: dfs works on single values, and 'price' is a range; use hybrid or auto"],
    ),
    "a dependency that is none": (
        [*MENUS, 'EXCLUDES: "make and body"'],
        ["17:13: a dependency is like 'make = BMW excludes body = truck', not 'make and body'"],
    ),
    "dependencies that fit nothing": (
        [
            *MENUS,
            PRICE,
            'EXCLUDES: "mke = BMW excludes price = 3"',
            'EXCLUDES: "make = BMV excludes type = truck"',
        ],
        [
            "18:13: the form has no attribute 'mke'; did you mean 'make'?",
            "18:13: dependencies are between values of menus, and 'price' is a range",
            "19:13: 'make' has no value 'BMV'; did you mean 'BMW'?",
            "19:13: a dependency needs the values of 'type': in or of",
        ],
    ),
    "an unknown input of a store locator": (
        ["NEAR: low high radius", "price: range from 0 to 1", "make: range from 0 to 1"],
        ["15:9: wrapper 'search' has no input 'radius'"],
    ),
    "an input of a place and of an attribute": (
        ["NEAR: low high near", "price: range from 0 to 1", "make: range from 0 to 1", "type: at_most near"],
        ["18:3: the input 'near' belongs to NEAR already"],
    ),
}


@pytest.mark.parametrize(("lines", "expected"), OF_THE_WRAPPER.values(), ids=OF_THE_WRAPPER)
def test_mistakes_that_the_wrapper_shows_have_their_places(lines: list[str], expected: list[str]) -> None:
    assert mistakes(*lines) == expected


def test_a_form_needs_its_wrapper() -> None:
    text = WRAPPER.replace("  QUERY: search\n", "") + f"  {PRICE}\n{PLAN}"
    assert mistakes_in(text) == ["13:3: a form needs QUERY: the wrapper that asks a query"]


def test_an_unknown_wrapper_is_a_mistake_of_the_form_and_of_the_statement() -> None:
    found = mistakes_in(WRAPPER.replace("QUERY: search", "QUERY: serch") + f"  {PRICE}\n{PLAN}")
    assert found == [
        "13:10: unknown wrapper 'serch'; did you mean 'search'?",
        "17:59: unknown wrapper 'serch'; did you mean 'search'?",
    ]


def test_a_form_has_no_header() -> None:
    text = WRAPPER.replace("HIDDEN cars", "HIDDEN cars (city)") + f"  {PRICE}\n{PLAN}"
    assert mistakes_in(text) == ["11:13: a form has no header: inputs are those of its wrapper"]


def test_places_need_a_sign_that_there_are_more() -> None:
    text = WRAPPER.replace("  LIMIT: 5\n", "  NEAR: low high near\n")
    found = mistakes_in(text + "  price: range from 0 to 1\n  make: range from 0 to 1\n" + PLAN)
    assert found == ["14:9: NEAR needs LIMIT, TOTAL or MORE, to see that a circle has more"]


def test_the_statement_says_what_it_lacks() -> None:
    text = WRAPPER + f"  {PRICE}\n{PLAN}"
    assert mistakes_in(text.replace("'cars'", "'car'")) == ["17:59: unknown form 'car'; did you mean 'cars'?"]
    assert mistakes_in(text.replace("rel (city)", "rel (town)")) == [
        "17:59: wrapper 'search' of form 'cars' needs the attribute 'city' (the tuples have: town)"
    ]


def test_all_mistakes_of_a_text_come_together() -> None:
    assert mistakes("LIMITS: 3", "price: rnge", "make: menu of", "QUOTA: none", "NEAR: 3") == [
        "15:3: unknown directive 'LIMITS'; did you mean 'LIMIT'?",
        "16:10: unknown kind of attribute 'rnge'; did you mean 'range'?",
        "17:16: expected the name of a wrapper after 'of', found the end of the line",
        "18:10: expected a whole number after ':', found 'none'",
        "19:9: expected the input for the latitude after ':', found 3",
    ]


def test_names_in_quotes_are_attributes_in_any_letters() -> None:
    text = WRAPPER.replace("  make: ", "  VIN: ").replace("(make", "(VIN") + "  'VIN': menu VIN\n" + PLAN
    assert mistakes_in(text.replace("{?make", "{?VIN")) == []


def test_a_form_without_mistakes_has_none() -> None:
    assert mistakes(f"{PRICE} from 0", *MENUS, "KEY: make", "TOTAL: total", "QUOTA: 100") == []


# --- the same form ------------------------------------------------------------------------------


def forms_of(program: Program) -> list[HiddenForm]:
    return [item.content for item in program.items if isinstance(item.content, HiddenForm)]


@pytest.mark.parametrize("path", sorted(PLANS.glob("*.plan")), ids=lambda path: path.stem)
def test_forms_that_are_laid_out_stay_so(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert format_text(text) == text


def test_formatting_twice_is_formatting_once_and_changes_no_form() -> None:
    text = (
        WRAPPER.replace("HIDDEN cars\n{", "hidden   cars{").replace(
            "  LIMIT: 5\n", "LIMIT:5;QUOTA : 7  # a\n"
        )
        + "price:range low high from 0;   make : menu in 'BMW',\n 'Kia'\n\n\n// b\n"
        + '  EXCLUDES:"make = BMW excludes make = Kia"\n'
        + PLAN
    )
    once = format_text(text)
    assert format_text(once) == once
    assert parse(once) == parse(text)
    assert mistakes_in(once) == []
    assert forms_of(loads(once)) == forms_of(loads(text))


@pytest.mark.parametrize("path", sorted(PLANS.glob("*.plan")), ids=lambda path: path.stem)
def test_a_form_built_from_texts_is_that_of_the_file(path: Path) -> None:
    program = load(path)
    (item,) = (each for each in program.items if isinstance(each, Item) and each.kind.upper() == "HIDDEN")
    assert form_of_text(item.name, item.header, item.body) == item.content
