"""Hostile sources and grammars end within their limits, with an error that has a place."""

import random
import string

import pytest

from aioflow.errors import Diagnostic
from aioflow.grammars import Grammar, GrammarError, ParseError, ParseLimitError, ParseLimits, compile

TEN_MILLION = 10_000_000
RECORDS = """
strict rule line : record is name=[^\\t\\n]+ '\\t' value=[^\\n]* '\\n' end
rule lines : list is (list += line() | [^\\n]* '\\n')* end
"""
NESTED = """
strict rule pair : parts is '(' (parts += pair() | [^()])* ')' end
rule pairs : list is (list += pair())+ end
"""
WITHIN = ParseLimits(live_solutions=500, seconds=30, memory_bytes=300_000_000)


@pytest.mark.parametrize("source", ["a" * TEN_MILLION, "\n" * 1_000_000, "\t" * 1_000_000, "ab" * 500_000])
def test_a_long_source_without_records_is_skipped(source: str) -> None:
    found = compile(RECORDS).parse(source, limits=WITHIN)
    assert found.value == []


def test_a_single_letter_that_every_alternative_matches_is_parsed() -> None:
    grammar = compile("strict rule r is ('a' | [a-z] | [a-z0-9])+ | .* end")
    assert len(grammar.parse("a" * TEN_MILLION, limits=WITHIN).value) == TEN_MILLION


def test_a_source_past_the_limit_on_memory_ends_with_an_error() -> None:
    grammar = compile("strict rule r is ('a' 'b')+ end")
    with pytest.raises(ParseLimitError, match="the parse takes more than 1,000,000 bytes") as failure:
        grammar.parse("ab" * 1_000_000, limits=ParseLimits(memory_bytes=1_000_000))
    assert 0 < failure.value.offset < 2_000_000
    assert failure.value.rule == "r"


def test_a_parse_past_the_limit_on_time_ends_with_an_error() -> None:
    with pytest.raises(ParseLimitError, match="the parse takes longer than 0 seconds, at offset"):
        compile(RECORDS).parse("a" * 1_000_000, limits=ParseLimits(seconds=0))


def test_deep_nesting_is_parsed_or_ends_with_an_error() -> None:
    assert compile(NESTED).parse("(" * 200 + ")" * 200, limits=WITHIN).value != []
    for source in ("(" * 100_000, "(" * 100_000 + ")" * 100_000):
        with pytest.raises(ParseError) as failure:
            compile(NESTED).parse(source, limits=WITHIN)
        assert failure.value.rule == "pair"


def test_a_list_by_recursion_takes_no_stack() -> None:
    grammar = compile("strict rule items : r is head=[0-9]+ (',' rest=items())? end")
    found = grammar.parse(",".join(["1"] * 20_000), limits=WITHIN).value
    depth = 0
    while found:
        found, depth = found.get("rest"), depth + 1
    assert depth == 20_000


def test_recursion_with_many_ways_ends_with_an_error() -> None:
    grammar = compile("rule a is 'x' (b() | a())* end rule b is 'x' (a() | b())* ('y' | 'x')? end")
    with pytest.raises(ParseLimitError):
        grammar.parse("x" * 100_000, "a", limits=ParseLimits(live_solutions=200, seconds=20))


def test_a_grammar_that_needs_too_many_nodes_is_a_mistake() -> None:
    body = "'x'?"
    for _ in range(20):
        body = f"({body})+"
    with pytest.raises(GrammarError, match="the rule 'r' makes the grammar too large"):
        compile(f"rule r is {body} end")


def test_many_rules_are_checked_in_time_that_grows_with_their_number() -> None:
    count = 10_000
    chain = "".join(f"rule r{number} is r{number + 1}() end\n" for number in range(count))
    assert compile(f"{chain} strict rule r{count} is 'x' end").parse("x", "r9000").value == "x"
    with pytest.raises(GrammarError, match="left recursion: 'r0' calls itself") as failure:
        compile(f"{chain} rule r{count} is 'x'? r0() end")
    assert len(failure.value.errors) == 1


def test_classes_of_many_ranges_are_matched() -> None:
    ranges = "".join(f"\\u{code:04x}" for code in range(0x100, 0x1000, 2))
    rules = "".join(f"| [{ranges[: n * 600]}a]" for n in range(1, 20))
    grammar = compile(f"strict rule r is (x=[a] {rules} | .)* end")
    assert grammar.parse("ab\u0100\u0102" * 100).variables == {"x": "a"}


def test_a_rule_that_can_never_finish_does_not_keep_others_from_it() -> None:
    grammar = compile("strict rule r is x='a' | never() end strict rule never is 'a' never() end")
    assert grammar.parse("a", "r").variables == {"x": "a"}


def test_a_source_that_no_interpretation_covers_tells_the_furthest_offset() -> None:
    grammar = compile("strict rule r is 'abc' | 'abde' | 'x'* end")
    for source, offset in (("abq", 2), ("abd", 3), ("abcc", 3), ("xxy", 2), ("q", 0)):
        with pytest.raises(ParseError) as failure:
            grammar.parse(source)
        assert failure.value.offset == offset, source


def test_lone_surrogates_and_controls_are_characters_like_others() -> None:
    grammar = compile(r"strict rule r is a=[\ud800] b=[^a-z]+ end")
    assert grammar.parse("\ud800\x00\U0010ffff").variables == {"a": "\ud800", "b": "\x00\U0010ffff"}


# --- fuzzing --------------------------------------------------------------------------------------

WORDS = [
    *("rule", "strict", "is", "end", "do", "accept", "if", "prune", ";", "(", ")", "|", "?", "*", "+", "."),
    *("=", "+=", ":", "'a'", "'", '"b"', "[a-z]", "[^", "]", "[]", "a()", "b()", "x", "y", "$$", "==", "&&"),
    *("1", "2.5", "println", "for", "in", "else", "{", "}", ",", "//", "/*", "*/", "\\", "\n", "é", "\x00"),
]


def random_grammar(chance: random.Random) -> str:
    words = chance.choices(WORDS, k=chance.randrange(40))
    if chance.random() < 0.5:
        return "rule a is " + " ".join(words) + " end rule b is 'b' end"
    return chance.choice(("", " ")).join(words)


@pytest.mark.parametrize("first", range(0, 3000, 1000))
def test_random_texts_are_grammars_or_have_mistakes(first: int) -> None:
    read = 0
    for seed in range(first, first + 1000):
        chance = random.Random(seed)
        text = random_grammar(chance)
        grammar = compiled(text)
        if grammar is not None:
            read += 1
            parse_somehow(grammar, chance)
    assert read > 0


def compiled(text: str) -> Grammar | None:
    """Return the grammar of a text, or None if it has mistakes, which must have places in it."""
    mistakes: tuple[Diagnostic, ...] = ()
    try:
        return compile(text)
    except GrammarError as error:
        mistakes = error.errors
    assert mistakes
    for each in mistakes:
        assert 1 <= each.line <= text.count("\n") + 1
        assert 1 <= each.column <= len(text) + 1
    return None


def parse_somehow(grammar: Grammar, chance: random.Random) -> None:
    for name in grammar.rules:
        source = "".join(chance.choices("ab1\n" + string.punctuation, k=chance.randrange(60)))
        offset = 0
        try:
            grammar.parse(source, name, limits=ParseLimits(live_solutions=200, seconds=5))
        except ParseError as error:
            offset = error.offset
        assert 0 <= offset <= len(source)


@pytest.mark.parametrize("seed", range(40))
def test_a_grammar_with_characters_changed_is_a_grammar_or_has_mistakes(seed: int) -> None:
    chance = random.Random(seed)
    for text in (RECORDS, NESTED):
        characters = list(text)
        for _ in range(chance.randrange(1, 4)):
            characters[chance.randrange(len(characters))] = chance.choice("'[]()|*+?.;=: \n\\a")
        grammar = compiled("".join(characters))
        if grammar is not None:
            parse_somehow(grammar, chance)
