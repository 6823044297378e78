"""The best interpretations of a source, and the place where they part."""

import random

import pytest

from aioflow.errors import InputError
from aioflow.grammars import (
    GrammarError,
    ParseError,
    ParseLimitError,
    ParseLimits,
    Parting,
    ScriptError,
    compile,
    interpretations,
    parting,
)
from tests.grammars.oracle import CODE_POINTS, SKIPPED, Oracle, TooManyError, written
from tests.grammars.random_grammars import ALPHABET, GrammarMaker


def test_the_runner_up_takes_a_number_for_anything() -> None:
    grammar = compile("rule r is (numbers += number() | .)* end strict rule number is [0-9]+ end")
    best, other = interpretations(grammar, "a12", "r")
    assert best.parsed.variables == {"numbers": ["12"]}
    assert best.rules == ("r", "number", "number")
    assert best.sizes == (CODE_POINTS, 10, 10)
    assert other.sizes == (CODE_POINTS, 10, CODE_POINTS)
    assert parting(best, other) == Parting(2, (10, CODE_POINTS), ("number", "r"))


def test_a_skipped_character_is_the_largest_size() -> None:
    grammar = compile("rule r is x=[a-z]+ end")
    best, other = interpretations(grammar, "-ab", "r")
    assert best.sizes == (SKIPPED, 26, 26)
    assert best.parsed.skipped == [(0, 1)]
    assert other.sizes == (SKIPPED, 26, SKIPPED)
    assert other.parsed.skipped == [(0, 1), (2, 3)]
    with pytest.raises(ParseError):
        interpretations(grammar, "--")


def test_the_first_interpretation_is_that_of_the_matcher() -> None:
    compared = 0
    for seed in range(400):
        chance = random.Random(seed)
        rules = GrammarMaker(chance).rules()
        try:
            grammar = compile(written(rules))
        except GrammarError:
            continue
        source = "".join(chance.choices(ALPHABET, k=4))
        start = rules[0].name
        try:
            sizes = sorted({way[1] for way in Oracle(rules, source).interpretations(start)})
            found = interpretations(grammar, source, start, count=3)
        except (ParseError, TooManyError):
            continue
        compared += 1
        whole = grammar.parse(source, start)
        assert (found[0].parsed.value, found[0].parsed.variables) == (whole.value, whole.variables)
        assert found[0].sizes == sizes[0]
        assert [each.sizes for each in found] == sorted(each.sizes for each in found)
        assert {each.sizes for each in found} <= set(sizes)
    assert compared > 50


def test_comparisons_have_limits() -> None:
    grammar = compile("rule r is '(' (r() | .)* ')' end")
    with pytest.raises(ParseLimitError):
        interpretations(grammar, "(" * 200, limits=ParseLimits(live_solutions=5))
    with pytest.raises(InputError, match="take a part of it"):
        interpretations(grammar, "(" * 200_000)
    with pytest.raises(ScriptError):
        interpretations(compile("rule r is accept .+ if 1 / 0; end"), "a")
