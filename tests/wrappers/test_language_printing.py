"""A wrapper that is printed and read again is the same wrapper."""

from hypothesis import given, settings
from msgspec.structs import replace

from aioflow import load, loads
from aioflow.relation import Schema
from aioflow.source import Source, Span
from aioflow.wrappers import WrapperText, print_wrapper
from aioflow.wrappers.definition import Extraction, Field, RequestTemplate, Wrapper
from aioflow.wrappers.language.wrapper_text import Directive, Removal
from tests.wrappers.strategies import wrappers
from tests.wrappers.test_language import EXAMPLE


def read(text: str) -> WrapperText:
    (item,) = loads(f"{text}\nPLAN p {{ BODY {{ }} }}").items
    assert isinstance(item.content, WrapperText)
    return item.content


@given(wrappers)
@settings(max_examples=80, deadline=None)
def test_a_printed_wrapper_reads_back_equal(wrapper: WrapperText) -> None:
    text = print_wrapper(wrapper)
    assert read(text) == wrapper
    assert print_wrapper(read(text)) == text


def test_wrappers_differ_by_their_content_and_not_by_their_place() -> None:
    extraction = Extraction(fields=(Field("price", ".price"),))
    wrapper = Wrapper("w", (), RequestTemplate(), extraction, None, Schema(("price",)))
    assert replace(wrapper, file="/plans/w.plan") == wrapper
    assert not replace(wrapper, file="/plans/w.plan") != wrapper  # noqa: SIM202
    assert replace(wrapper, name="v") != wrapper
    assert Directive("SAFE", True, small=True) == Directive("SAFE", True)
    assert Directive("SAFE", True) != Directive("OUTER", True)
    place = Span(Source("<plan>", "x: none"), 0, 1)
    assert hash(Removal("x", place)) == hash(Removal("x"))
    assert repr(Removal("x", place)) == "Removal(name='x')"


def test_the_printed_form_is_the_one_that_people_write() -> None:
    printed = "\n".join(
        print_wrapper(item.content) for item in load(EXAMPLE).items if isinstance(item.content, WrapperText)
    )
    text = EXAMPLE.read_text(encoding="utf-8")
    assert printed in text


def test_all_forms_are_printed_as_they_are_read() -> None:
    text = """\
WRAPPER w (city, beds number = 2, `House No.` optional) LIKE other
{
  POST: "https://a.example/"
  FORM: city, b = "{beds}", c = [1, "x", null]
  HEADERS: Accept = "text/html", `a.b` = "c"
  AUTH: basic "me" "secret:PASSWORD"
  SAFE: off
  READ: csv delimiter ";" header false
  PAGING: cursor "$.next" lower as "after"
  EMPTY: 404, ".none", 410
  ROBOTS: off
  EACH: none
  `body`: 'say "x"' number "de" required
  rooms: page each "li" {
    name: "b" default "?"
    kind: = null
  }
  tag: response header "ETag"
  x: none
}
"""
    assert print_wrapper(read(text)) == text
