"""The canonical layout, and what the formatter leaves alone."""

import pytest

from aioflow.errors import PlanError
from aioflow.language import format_text, parse
from tests.language.samples import WATCH_HOUSES


def body(*lines: str) -> str:
    return "PLAN p\n{\n  BODY\n  {\n" + "".join(f"    {line}\n" for line in lines) + "  }\n}\n"


def assert_formatted(text: str, expected: str) -> None:
    assert format_text(text) == expected
    assert format_text(expected) == expected
    assert parse(text) == parse(expected)


def test_the_example_of_the_language_is_laid_out_already() -> None:
    assert format_text(WATCH_HOUSES) == WATCH_HOUSES.lstrip()


def test_spaces_cases_and_line_ends() -> None:
    assert_formatted(
        "use 'a.plan'\r\nplan p{input:a ,b( city CHAR )\r\n"
        "once:'x' output : c body{op(a,b:c){all;by:'x'\r\n}}}",
        """\
USE 'a.plan'

PLAN p
{
  INPUT: a, b (city char)
  OUTPUT: c
  ONCE: 'x'

  BODY
  {
    op (a, b : c) {ALL; BY: 'x'}
  }
}
""",
    )


def test_comments_stay_where_they_are() -> None:
    text = """\
# about the file

# about the use
USE "a.plan"  # here
USE "b.plan"

# about the item
WRAPPER w (a)  # its inputs
{
  # inside
  GET: "x"
}  # its end

# about the plan
PLAN p  // named
{  // opened
  # before INPUT
  INPUT: a  # of one
  # before OUTPUT
  OUTPUT: b

  # before BODY
  BODY  # at BODY
  {  # opened too
    # before the first
    op (a : b)  # behind the first

    /* before
       the second */
    op (a : b)  /* one */ # two
    # at the end of BODY
  }  # behind BODY
  # at the end
}  # behind it

# at the end of the file
"""
    assert format_text(text) == text


def test_comments_inside_a_statement_move_before_it() -> None:
    assert_formatted(
        body("op (a, # first", "  b /* second */ : c)", "{ALL // third", "}"),
        body("# first", "/* second */", "// third", "op (a, b : c) {ALL}"),
    )


def test_a_block_comment_moves_as_a_whole() -> None:
    assert_formatted(
        "PLAN p { BODY {\n        /* one\n           two\n\n      three */\n  op (a) } }",
        body("/* one", "   two", "", "three */", "op (a)").replace("    \n", "\n"),
    )


def test_blank_lines_between_statements_are_kept_one_at_a_time() -> None:
    assert_formatted(
        body("", "", "op (a)", "", "", "op (b)", "op (c)", ""),
        body("op (a)", "", "op (b)", "op (c)").replace("    \n", "\n"),
    )


def test_strings_and_numbers_stay_as_written() -> None:
    text = body("""op ('it', "it's", \"\"\"two
 lines\"\"\", 1e3, .5, "\\u0041" : b) {N: 1E2}""")
    assert format_text(text) == text


def test_long_statements_are_broken() -> None:
    variables = ", ".join(f"variable_{number}" for number in range(9))
    assert_formatted(
        body(
            f"op ({variables} : out)",
            f"op (a : b) {{BY: 'a long list of attributes'; KEY: 'another long list'; WAIT: {variables}}}",
            f"op ({variables}, text='{'x' * 90}' : out) {{ALL}}",
        ),
        """\
PLAN p
{
  BODY
  {
    op (
      variable_0, variable_1, variable_2, variable_3, variable_4, variable_5, variable_6,
      variable_7, variable_8
      : out
    )
    op (a : b) {
      WAIT:
        variable_0, variable_1, variable_2, variable_3, variable_4, variable_5, variable_6,
        variable_7, variable_8
      BY: 'a long list of attributes'
      KEY: 'another long list'
    }
    op (
      variable_0, variable_1, variable_2, variable_3, variable_4, variable_5, variable_6,
      variable_7, variable_8,
      text='xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'
      : out
    ) {ALL}
  }
}
""",
    )


def test_long_entries_and_lists_are_broken() -> None:
    inputs = ", ".join(f"input_{number} (city char, price number)" for number in range(3))
    numbers = ", ".join(map(str, range(40)))
    assert_formatted(
        f"PLAN p {{ INPUT: {inputs} BODY {{ op (a, [{numbers}] : b) }} }}",
        """\
PLAN p
{
  INPUT:
    input_0 (city char, price number), input_1 (city char, price number),
    input_2 (city char, price number)

  BODY
  {
    op (a, [
        0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24,
        25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39
      ] : b)
  }
}
""",
    )


def test_bodies_of_other_items_stay_as_they_are() -> None:
    assert_formatted(
        "recipe G :x { one [a-z]\n        two   three  \n\n  'four }' }",
        "RECIPE G :x\n{\n  one [a-z]\n        two   three  \n\n  'four }'\n}\n",
    )
    with_comment = "WRAPPER w (a, # one\n  b)  # two\n{\n  # three\n}\n"
    assert format_text(with_comment) == with_comment
    four = "WRAPPER w\n{\n    a: b\n      c: d\n}\n"
    assert format_text(four) == four


@pytest.mark.parametrize(("text", "expected"), [("", ""), ("\n\n", ""), ("# a\n\n\n# b\n\n", "# a\n\n# b\n")])
def test_texts_without_items(text: str, expected: str) -> None:
    assert_formatted(text, expected)


def test_a_text_with_mistakes_is_not_formatted() -> None:
    with pytest.raises(PlanError, match=r"expected '\{' after 'p', found the end of the file"):
        format_text("PLAN p")
