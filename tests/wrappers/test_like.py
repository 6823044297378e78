"""LIKE: everything of another wrapper that one does not say itself."""

import pytest

from aioflow import loads
from aioflow.errors import SettingError
from aioflow.plan import Item, Plan, Program
from aioflow.relation import Schema, Type
from aioflow.wrappers import Wrapper, resolve
from tests.wrappers.tiny_reader import tiny_reader  # noqa: F401  # registers the reader for each test

BASE = """
WRAPPER base (city, max-price number optional)
{
  POST: "https://homes.example/search"
  FORM: city, max = "{max-price}"
  SAFE
  HEADERS: Accept = "text/html"
  AUTH: bearer "secret:TOKEN"
  READ: tiny separator ";"
  EACH: "li"
  OUTER
  CHARSET: "latin-1"
  PAGING: next "a.next"
  MAX_PAGES: 7
  EMPTY: 404, ".none"
  ROBOTS: off
  TIMEOUT: 20
  link: "a" url
  price: ".price" number
  note: page ".note"
}
"""


def program(*wrappers: str) -> Program:
    return loads("\n".join((BASE, *wrappers, "PLAN p { BODY { } }")), "like.plan")


def derived(text: str) -> Wrapper:
    return resolve("w", program(text))


def test_an_empty_wrapper_is_all_that_the_other_is() -> None:
    both = program("WRAPPER w LIKE base { }")
    base, other = resolve("base", both), resolve("w", both)
    assert other.name == "w"
    assert (other.inputs, other.request, other.extraction, other.paging, other.schema) == (
        base.inputs,
        base.request,
        base.extraction,
        base.paging,
        base.schema,
    )


def test_the_whole_wrapper() -> None:
    base = resolve("BASE", program())
    assert [(given.name, given.type, given.optional) for given in base.inputs] == [
        ("city", None, False),
        ("max-price", Type.NUMBER, True),
    ]
    request = base.request
    assert (request.method, request.url, request.safe, request.auth) == (
        "POST",
        "https://homes.example/search",
        True,
        "bearer secret:TOKEN",
    )
    assert request.form == (("city", "{city}"), ("max", "{max-price}"))
    assert (request.empty, request.robots, request.timeout_seconds) == ((404,), False, 20)
    extraction = base.extraction
    assert (extraction.reader, extraction.options, extraction.each) == ("tiny", {"separator": ";"}, "li")
    assert (extraction.outer, extraction.charset) == (True, "latin-1")
    assert extraction.next_page is not None
    assert extraction.next_page.selector == "a.next"
    assert base.paging is not None
    assert (base.paging.kind, base.paging.most_pages) == ("next", 7)
    assert base.schema == Schema(("link", "price", "note"), (Type.CHAR, Type.NUMBER, Type.CHAR))
    assert base.file == ""  # a text that is in no file
    assert not base.has_effects


def test_own_inputs_replace_those_of_the_other() -> None:
    assert derived("WRAPPER w (link) LIKE base { }").input_names == ("link",)
    assert derived("WRAPPER w () LIKE base { }").input_names == ()
    assert derived("WRAPPER w LIKE base { }").input_names == ("city", "max-price")


def test_a_get_replaces_the_whole_request() -> None:
    request = derived('WRAPPER w (link) LIKE base { GET: "{+link}" }').request
    assert (request.method, request.form, request.safe) == ("GET", None, False)
    assert request.headers == (("Accept", "text/html"),)


def test_another_url_keeps_the_form() -> None:
    request = derived('WRAPPER w LIKE base { POST: "https://homes.example/more" }').request
    assert request.form == (("city", "{city}"), ("max", "{max-price}"))
    assert not request.safe


def test_one_kind_of_body_replaces_another() -> None:
    request = derived("WRAPPER w LIKE base { JSON: city }").request
    assert (request.form, request.json) == (None, (("city", "{city}"),))


def test_a_field_of_the_same_name_keeps_its_place_and_new_ones_come_last() -> None:
    wrapper = derived('WRAPPER w LIKE base { more: "b"; price: "i" date }')
    assert wrapper.schema == Schema(
        ("link", "price", "note", "more"), (Type.CHAR, Type.DATE, Type.CHAR, Type.CHAR)
    )


def test_none_takes_back_fields_and_directives() -> None:
    wrapper = derived(
        "WRAPPER w LIKE base { price: none; PAGING: none; MAX_PAGES: none; AUTH: none; OUTER: off }"
    )
    assert wrapper.schema.names == ("link", "note")
    assert (wrapper.paging, wrapper.request.auth, wrapper.extraction.outer) == (None, None, False)


def test_like_goes_on_from_one_to_the_next() -> None:
    both = program('WRAPPER v LIKE base { price: "v" }', 'WRAPPER w LIKE V { note: "w" }')
    fields = {field.name: field.selector for field in resolve("w", both).extraction.fields}
    assert fields == {"link": "a", "price": "v", "note": "w"}


def test_a_very_long_line_of_likes_is_refused() -> None:
    chain = "\n".join(f"WRAPPER w{number} LIKE w{number + 1} {{ }}" for number in range(40))
    many = program(chain, "WRAPPER w40 LIKE base { }")
    with pytest.raises(SettingError, match="LIKE of wrapper 'w0' is wrong: LIKE goes through more than 20"):
        resolve("w0", many)
    found = [each for item in many.items for each in item.content.problems(many)]  # type: ignore[attr-defined]
    assert {each.message for each in found} == {"LIKE goes through more than 20 wrappers"}


def test_a_wrapper_is_resolved_once() -> None:
    both = program()
    assert resolve("base", both) is resolve("Base", both)


def test_an_unknown_wrapper_is_an_error_with_a_suggestion() -> None:
    with pytest.raises(SettingError, match=r"unknown wrapper 'bsae'; did you mean 'base'\?"):
        resolve("bsae", program())
    with pytest.raises(SettingError, match="unknown wrapper 'x'; the program has none"):
        resolve("x", loads("PLAN p { BODY { } }"))


def test_a_wrapper_whose_like_is_wrong_says_so() -> None:
    with pytest.raises(SettingError, match=r"LIKE of wrapper 'w' is wrong: unknown wrapper 'bsae'; did you"):
        resolve("W", program("WRAPPER w LIKE bsae { }"))


def test_items_that_were_built_in_python_are_read_when_they_are_needed() -> None:
    item = Item("WRAPPER", "w", "(a)", 'GET: "https://a.example/{a}"; READ: tiny; x: "y"')
    wrapper = resolve("w", Program(Plan("p"), items=(item,)))
    assert (wrapper.input_names, wrapper.schema.names) == (("a",), ("x",))
