"""aioflow grammar explain: where the winner parts from the runner-up, by which sets, or the written order."""

from pathlib import Path

import pytest

from aioflow.grammars import compile, interpretations, parting
from tests.cli.program import aioflow
from tests.cli.test_grammar_test import GOODS, PAGE


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "goods.jedi").write_text(GOODS)
    (tmp_path / "shop.html").write_text(PAGE)
    (tmp_path / "order.jedi").write_text("rule r is x=('a' | b()) end strict rule b is 'a' end")
    (tmp_path / "number.jedi").write_text(
        "strict rule r : list is (list += number() | .)* end strict rule number is [0-9]+ end"
    )
    (tmp_path / "a.txt").write_text("a")
    (tmp_path / "number.txt").write_text("x\na12")
    return tmp_path


def test_sets_and_sizes_are_told_at_the_character_where_they_part(shop: Path) -> None:
    ran = aioflow("grammar", "explain", "number.jedi", "number.txt", cwd=shop)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines() == [
        "number.txt:2:3: at offset 4 the winner parts from the runner-up:",
        "    a12",
        "      ^",
        "  winner     [0-9]  10 characters, in the rule 'number'",
        "  runner-up  .      1,114,112 characters, in the rule 'r'",
        "The smaller set wins at the first character whose sets differ in size, whatever follows.",
        "They differ first in record 1:",
        '  winner     {"value": "12"} (1 record in all)',
        '  runner-up  {"value": "1"} (1 record in all)',
    ]


def test_a_runner_up_that_reads_all_alike_is_passed_over(shop: Path) -> None:
    ran = aioflow("grammar", "explain", "goods.jedi", "shop.html", cwd=shop)
    assert "the winner parts from the runner-up:" in ran.stdout
    assert "They differ first in record 2:" in ran.stdout


def test_a_place_is_compared_with_the_best_interpretation_that_reads_it_otherwise(shop: Path) -> None:
    ran = aioflow("grammar", "explain", "goods.jedi", "shop.html", "--at", "2:10", cwd=shop)
    assert "shop.html:2:8: at offset 37 the winner parts from the runner-up:" in ran.stdout
    assert "  winner     '<' of '<b>' or '</b>' or '<b>$'  1 character, in the rule 'article'" in ran.stdout
    assert '{"code": "MP10"}' not in ran.stdout
    assert '"code": "MP10</b> Psion 3c for <b>$399.50"' in ran.stdout
    by_offset = aioflow("grammar", "explain", "goods.jedi", "shop.html", "--at", "39", cwd=shop)
    assert by_offset.stdout == ran.stdout


def test_the_library_finds_the_best_interpretation_that_parts_at_a_place() -> None:
    grammar = compile("strict rule r is (x=[a-c] | y=.)+ end")
    for place in range(4):
        best, other = interpretations(grammar, "abca", at=place)
        assert parting(best, other).offset == place
        assert other.sizes[place + 1 :] == best.sizes[place + 1 :]


def test_skipped_text_is_told_as_such(shop: Path) -> None:
    (shop / "word.jedi").write_text("rule r is x=[a-z]+ end")
    (shop / "word.txt").write_text("-ab")
    ran = aioflow("grammar", "explain", "word.jedi", "word.txt", cwd=shop)
    assert "  runner-up  skipped  larger than all, in the rule 'r'" in ran.stdout


def test_the_written_order_is_told_where_sizes_are_equal(shop: Path) -> None:
    ran = aioflow("grammar", "explain", "order.jedi", "a.txt", cwd=shop)
    assert "sets of the same sizes match all characters, so the written order decides" in ran.stdout
    assert "  winner     in the rule 'r'\n  runner-up  in the rule 'b'" in ran.stdout
    assert "Both give the same records." in ran.stdout


def test_a_single_interpretation_is_told(shop: Path) -> None:
    (shop / "one.jedi").write_text("strict rule r is 'a' end")
    ran = aioflow("grammar", "explain", "one.jedi", "a.txt", cwd=shop)
    assert ran.stdout == "a.txt: only one interpretation covers the source\n"
    ran = aioflow("grammar", "explain", "one.jedi", "a.txt", "--at", "0", cwd=shop)
    assert ran.stdout == "a.txt: every interpretation reads the source alike up to line 1, column 1\n"


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("here", "--at here: expected an offset like 120, or a line and column like 3:7"),
        ("9:1", "--at 9:1: number.txt has no such place; it has 2 lines"),
        ("99", "--at 99: number.txt has only 5 characters"),
    ],
)
def test_a_place_that_is_not_there_is_told(place: str, message: str, shop: Path) -> None:
    ran = aioflow("grammar", "explain", "number.jedi", "number.txt", "--at", place, cwd=shop)
    assert ran.returncode == 2
    assert message in ran.stderr


def test_sources_that_cannot_be_compared_are_told(shop: Path) -> None:
    (shop / "bad.jedi").write_text("strict rule r is 'b' end")
    ran = aioflow("grammar", "explain", "bad.jedi", "a.txt", cwd=shop)
    assert ran.returncode == 1
    assert "error: a.txt:1:1: no interpretation goes on with 'a'" in ran.stderr
    (shop / "long.txt").write_text("a" * 100_001)
    ran = aioflow("grammar", "explain", "number.jedi", "long.txt", cwd=shop)
    assert ran.returncode == 2
    assert "the source has more than 100,000 characters; take a part of it" in ran.stderr
