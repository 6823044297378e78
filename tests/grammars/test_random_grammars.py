"""Random small grammars: the matcher finds what listing all interpretations finds, whole and in pieces."""

import pytest

from tests.grammars.random_grammars import Outcome, check_grammar, check_long_source


@pytest.mark.parametrize("first", range(0, 4000, 1000))
def test_the_matcher_finds_the_best_of_all_interpretations(first: int) -> None:
    total = Outcome()
    for seed in range(first, first + 1000):
        total.add(check_grammar(seed))
    assert total.problems == []
    assert total.matched > 1000


def test_the_matcher_finds_what_a_plain_one_finds_on_longer_sources() -> None:
    total = Outcome()
    for seed in range(600):
        total.add(check_long_source(seed))
    assert total.problems == []
    assert total.matched > 150
