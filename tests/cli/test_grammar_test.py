"""aioflow grammar test: the records of sources, what was skipped, and failures with their place."""

import json
from pathlib import Path

import pytest

from aioflow.grammars import compile
from tests.cli.program import ROOT, aioflow

IRREGULAR = ROOT / "tests" / "data" / "pages"
GOODS = """\
rule article : record is
  '<b>' code=('MP' .*) '</b>' .* '<b>$' price=[0-9.]+ '</b>'
end
rule goods : list is
  (list += article())+
end
"""
PAGE = """\
<html><b>Palmtops</b> We sell
<b>MP10</b> Psion 3c for <b>$399.50</b> (or <b>less</b>)<p>
<b>MP22</b> Psion Siena <b>now only</b> <b>$199</b>
<b>bye</b></html>
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "goods.jedi").write_text(GOODS)
    (tmp_path / "shop.html").write_text(PAGE)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "count"), [("ca8.html", 76), ("okla.html", 7), ("tzdata_changelog.txt", 45)]
)
def test_records_of_a_real_page_are_lines_of_json(name: str, count: int, tmp_path: Path) -> None:
    page = IRREGULAR / name
    ran = aioflow("grammar", "test", str(page.with_suffix(".jedi")), str(page), cwd=tmp_path)
    assert ran.returncode == 0
    found = [json.loads(line) for line in ran.stdout.splitlines()]
    assert found == compile(page.with_suffix(".jedi").read_text()).parse(page.read_text()).value
    assert f"{count} records" in ran.stderr


def test_what_was_skipped_is_told_with_its_places(shop: Path) -> None:
    ran = aioflow("grammar", "test", "goods.jedi", "shop.html", cwd=shop)
    assert [json.loads(line) for line in ran.stdout.splitlines()] == [
        {"code": "MP10", "price": "399.50"},
        {"code": "MP22", "price": "199"},
    ]
    skipped = [
        len("<html><b>Palmtops</b> We sell\n"),
        len(" (or <b>less</b>)<p>\n"),
        len("\n<b>bye</b></html>\n"),
    ]
    assert f"{sum(skipped)} of {len(PAGE)} characters skipped" in ran.stderr
    assert "skipped: line 2, column 40: 21 characters: ' (or <b>less</b>)<p> '" in ran.stderr


def test_a_source_that_no_interpretation_covers_fails_with_its_place(shop: Path) -> None:
    (shop / "lines.jedi").write_text(
        r"strict rule lines : list is (list += line() '\n')+ end strict rule line is [0-9]+ end"
    )
    (shop / "bad.txt").write_text("12\n34\n5x\n")
    (shop / "good.txt").write_text("12\n")
    ran = aioflow("grammar", "test", "lines.jedi", "bad.txt", "good.txt", cwd=shop)
    assert ran.returncode == 1
    assert "error: bad.txt:3:2: " in ran.stderr
    assert "at offset 7" in ran.stderr
    assert json.loads(ran.stdout) == {"output": "good.txt", "row": {"value": "12"}}


def test_mistakes_of_a_grammar_are_told_all_with_their_places(shop: Path) -> None:
    (shop / "wrong.jedi").write_text("rule date is [9-0]+ end\nrule dates is (dat() | .+)* end")
    ran = aioflow("grammar", "test", "wrong.jedi", "shop.html", cwd=shop)
    assert ran.returncode == 2
    assert "wrong.jedi:1:15: the range '9-0' is reversed" in ran.stderr
    assert "wrong.jedi:2:16: unknown rule 'dat'; did you mean 'date'?" in ran.stderr


def test_another_rule_may_begin(shop: Path) -> None:
    ran = aioflow("grammar", "test", "goods.jedi", "shop.html", "--start", "article", cwd=shop)
    assert json.loads(ran.stdout) == {"code": "MP10", "price": "399.50"}
    ran = aioflow("grammar", "test", "goods.jedi", "shop.html", "--start", "artikle", cwd=shop)
    assert ran.returncode == 2
    assert "did you mean 'article'?" in ran.stderr


def test_a_source_without_records_is_told_by_the_exit_code(shop: Path) -> None:
    (shop / "maybe.jedi").write_text(
        "rule list : found is (found += number() | .)* end strict rule number is [0-9]+ end"
    )
    (shop / "empty.txt").write_text("nothing")
    ran = aioflow("grammar", "test", "maybe.jedi", "empty.txt", cwd=shop)
    assert (ran.returncode, ran.stdout) == (3, "")
    assert "0 records" in ran.stderr


def test_limits_can_be_set(shop: Path) -> None:
    (shop / "nested.jedi").write_text("rule r is '(' (r() | .)* ')' end")
    (shop / "deep.txt").write_text("(" * 400)
    ran = aioflow("grammar", "test", "nested.jedi", "deep.txt", "--solutions", "20", cwd=shop)
    assert ran.returncode == 1
    assert "deep.txt:1:" in ran.stderr
    assert "more than 20 interpretations are alive at once" in ran.stderr


def test_a_grammar_may_call_functions_of_a_module(shop: Path) -> None:
    (shop / "known.py").write_text("def is_known(text):\n    return text == 'modem'\n")
    (shop / "thing.jedi").write_text("rule thing is accept word=[a-z]+ if is_known($$); end")
    (shop / "advert.txt").write_text("a cheap modem, used")
    ran = aioflow("grammar", "test", "thing.jedi", "advert.txt", "--ops", "known", cwd=shop)
    assert json.loads(ran.stdout) == {"word": "modem"}


def test_what_cannot_be_read_is_told(shop: Path) -> None:
    ran = aioflow("grammar", "test", "goods.jedi", "none.html", cwd=shop)
    assert ran.returncode == 2
    assert "cannot read source: no such file or directory: 'none.html'" in ran.stderr
    (shop / "picture.jedi").write_bytes(b"\x89PNG\xff\xfe")
    ran = aioflow("grammar", "test", "picture.jedi", "shop.html", cwd=shop)
    assert ran.returncode == 2
    assert "'picture.jedi' is not UTF-8 text" in ran.stderr


def test_the_charset_of_a_source_can_be_given(shop: Path) -> None:
    (shop / "word.jedi").write_text("strict rule word is text=.* end")
    (shop / "word.txt").write_bytes("жук".encode("koi8-r"))
    ran = aioflow("grammar", "test", "word.jedi", "word.txt", "--charset", "koi8-r", cwd=shop)
    assert json.loads(ran.stdout) == {"text": "жук"}


def test_a_grammar_of_a_plan_file_is_named_after_a_colon(shop: Path) -> None:
    other = "GRAMMAR other { rule a is 'x' end }\n"
    (shop / "shop.plan").write_text(f"GRAMMAR goods {{\n{GOODS}}}\n{other}")
    (shop / "one.plan").write_text(f"GRAMMAR goods {{\n{GOODS}}}\n")
    by_file = aioflow("grammar", "test", "goods.jedi", "shop.html", cwd=shop).stdout
    for path in ("shop.plan:goods", "one.plan", "one.plan:goods"):
        assert aioflow("grammar", "test", path, "shop.html", cwd=shop).stdout == by_file


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("shop.plan:gods", "shop.plan: unknown grammar 'gods'; did you mean 'goods'?"),
        ("shop.plan", "shop.plan has 2 grammars; name one: shop.plan:goods"),
        ("none.plan", "none.plan has 0 grammars"),
        ("wrong.plan:goods", "wrong.plan:3:4: expected 'is'"),
        ("missing.plan:goods", "there is no file missing.plan"),
    ],
)
def test_a_grammar_of_a_plan_file_that_cannot_be_used_is_an_error(shop: Path, path: str, said: str) -> None:
    other = "GRAMMAR other { rule a is 'x' end }\n"
    (shop / "shop.plan").write_text(f"GRAMMAR goods {{\n{GOODS}}}\n{other}")
    (shop / "wrong.plan").write_text("GRAMMAR goods {\nrule\n a 'x' end }\n")
    (shop / "none.plan").write_text("PLAN p { OUTPUT: a BODY { read ('a.jsonl' : a) } }\n")
    ran = aioflow("grammar", "test", path, "shop.html", cwd=shop)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert said in ran.stderr
