"""Regular expressions that are compiled late."""

import re

import pytest

from aioflow.pattern import pattern


def test_a_pattern_does_what_a_compiled_one_does() -> None:
    words = pattern(r"(?P<word>[a-z]+)", re.IGNORECASE)
    assert words.findall("One two") == ["One", "two"]
    assert words.sub("-", "a b") == "- -"
    found = words.fullmatch("Three")
    assert found is not None
    assert found["word"] == "Three"
    assert words.groups == 1
    assert words.pattern == r"(?P<word>[a-z]+)"


def test_it_is_compiled_when_it_is_first_used() -> None:
    wrong = pattern("(")
    with pytest.raises(re.error, match="unterminated subpattern"):
        wrong.match("")


def test_what_was_used_is_kept() -> None:
    digits = pattern(r"\d+")
    assert digits.search is digits.search
