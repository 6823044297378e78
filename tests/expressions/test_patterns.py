"""`like`, `ilike` and `matches`."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioflow.relation import Document
from tests.clocks import effort_at_most
from tests.expressions.tools import counted, examples, holds, value


@pytest.mark.parametrize(
    ("text", "pattern", "expected"),
    [
        ("house", "house", True),
        ("house", "House", False),
        ("house", "ho%", True),
        ("house", "%se", True),
        ("house", "%us%", True),
        ("house", "h%e", True),
        ("house", "h_use", True),
        ("house", "_____", True),
        ("house", "____", False),
        ("house", "%", True),
        ("", "%", True),
        ("", "_", False),
        ("", "", True),
        ("a", "", False),
        ("a\nb", "a%b", True),
        ("a\nb", "a_b", True),
        ("a.b", "a.b", True),
        ("axb", "a.b", False),
        ("aXbXc", "a%b%c", True),
        ("100%", "100%", True),
        ("äöü", "ä_ü", True),
        ("(x)", "(%)", True),
        ("a\\b", "a\\b", True),
        ("abab", "ab%ab", True),
        ("aba", "ab%ba", False),
    ],
)
def test_like(text: str, pattern: str, expected: bool) -> None:
    assert value("x like p", x=text, p=pattern) is expected
    quoted = pattern.replace("'", "''")
    assert holds(f"x like '{quoted}'", x=text) is expected
    assert holds(f"x not like '{quoted}'", x=text) is not expected


def test_like_takes_an_escape_character() -> None:
    assert holds("x like '100!%' escape '!'", x="100%")
    assert not holds("x like '100!%' escape '!'", x="100 ")
    assert holds("x like '!%' escape '!'", x="%")
    assert holds("x like 'a!!b!_%' escape '!'", x="a!b_c")


def test_ilike_ignores_case() -> None:
    assert holds("x ilike 'HOU%'", x="house")
    assert holds("x ilike '%Ä%'", x="bär")
    assert not holds("x like 'HOU%'", x="house")
    assert holds("x not ilike 'b%'", x="house")


def test_like_reads_the_text_of_a_document() -> None:
    assert holds("x like '%sold%'", x=Document("<b>sold</b>"))


@pytest.mark.parametrize(
    ("text", "pattern", "expected"),
    [
        ("house 12", "[0-9]+", True),
        ("house", "^ou", False),
        ("house", "ou", True),
        ("house", "^house$", True),
        ("HOUSE", "(?i)house", True),
        ("äöü", r"^\pL+$", True),
        ("x", r"\d", False),
    ],
)
def test_matches_finds_a_regular_expression_anywhere(text: str, pattern: str, expected: bool) -> None:
    assert value("x matches p", x=text, p=pattern) is expected
    assert holds(f"x matches '{pattern}'", x=text) is expected
    assert holds(f"x not matches '{pattern}'", x=text) is not expected


def test_lone_surrogates_do_no_harm() -> None:
    assert holds("x matches 'a.b'", x="a\ud800b")
    assert holds("x like 'a_b%'", x="a\ud800b")
    assert value("regexp_replace(x, 'a', 'c')", x="a\ud800") == "c?"


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("(a*)*c", "a" * 100_000),
        ("(a|aa)+c", "a" * 100_000),
        ("(x+x+)+y", "x" * 100_000),
        ("a[ab]{200}c", "ab" * 300_000),
    ],
)
def test_patterns_take_linear_time(pattern: str, text: str) -> None:
    with effort_at_most(200):
        value("x matches p", x=text, p=pattern)
        value("x like '%a%a%a%a%a%a%a%a%a%b%c'", x=text)


def test_a_text_too_long_for_its_pattern_is_null_and_counted() -> None:
    assert counted("x matches '(a|b){0,500}c'", x="a" * 1_000_000) == {"text too long": 1}
    assert not holds("x matches '(a|b){0,500}c'", x="a" * 1_000_000)
    assert not holds("x not matches '(a|b){0,500}c'", x="a" * 1_000_000)


def test_a_pattern_has_a_longest_length() -> None:
    assert counted("'a' like x", x="a" * 10_001) == {"bad pattern": 1}
    assert counted("'a' matches x", x="a" * 10_001) == {"bad pattern": 1}
    assert value("x like y || '%_'", x="." * 9_000, y="." * 8_000) is True


def test_replacing_with_a_pattern_that_always_looks_ahead_gives_up() -> None:
    with effort_at_most(300):
        assert counted("regexp_replace(x, 'a(.*b)?', 'c')", x="a" * 500_000) == {"pattern took too long": 1}


def naive_like(text: str, pattern: str) -> bool:
    if not pattern:
        return not text
    if pattern[0] == "%":
        return any(naive_like(text[cut:], pattern[1:]) for cut in range(len(text) + 1))
    return bool(text) and pattern[0] in ("_", text[0]) and naive_like(text[1:], pattern[1:])


@examples(300)
@given(st.text("ab%_.\n", max_size=8), st.text("ab%_.\n", max_size=6))
def test_like_equals_its_definition(text: str, pattern: str) -> None:
    assert value("x like p", x=text, p=pattern) is naive_like(text, pattern)
