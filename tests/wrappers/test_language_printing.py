"""A wrapper that is printed and read again is the same wrapper."""

from hypothesis import given, settings

from aioflow import load, loads
from aioflow.wrappers import WrapperText, print_wrapper
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
