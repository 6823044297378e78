"""READ: grammar: records of irregular pages, typed, nested, streamed, explained, and refused with a place."""

from __future__ import annotations

import os
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioflow import Engine, PlanError, Result, function, loads
from aioflow.authoring.function import functions
from aioflow.grammars import GrammarText
from aioflow.plan import Program
from aioflow.relation import Row, Type
from aioflow.source import Source
from aioflow.testing import ScriptedSite, run_plan
from aioflow.wrappers import resolve
from aioflow.wrappers.language import parse_wrapper
from aioflow.wrappers.language.printing import print_wrapper
from aioflow.wrappers.readers.grammar import GrammarExtractor, GrammarReader
from tests.cli.program import aioflow
from tests.grammars.test_pages import FOLDER, KEYS, PAGES
from tests.wrappers.feeding import Feed, embedded, field, mistake

READER = GrammarReader()
PAGE = """<html><b>Palmtops</b> We sell
<b>MP10</b> Psion 3c <i>new!</i> for <b>$399.50</b> (or <b>less</b>)<p>
<b>MP22</b> Psion
  Siena <b>now only</b> <b>$199</b>
In stock: 3c, Siena
<b>bye</b></html>"""
GOODS = """
rule article : record is
  '<b>' code=('MP' .*) '</b>' description=.* '<b>$' price=[0-9.]+ '</b>'
end
rule goods : list is
  (list += article())+
end
"""
STOCK = (
    GOODS
    + r"""
rule page : record is title=('<b>' .* '</b>') articles=goods() stock=line() end
rule line : names is 'In stock: ' names += word() (', ' names += word())* '\n' end
strict rule word is [^,\n]+ end
"""
)
LINES = r"""
strict rule entry : record is time=[0-9:]+ ' ' text=[^\n]+ '\n' end
rule log : list is (list += entry() | [^\n]* '\n')* end
"""


def feed(rules: str, *fields: Any, **how: Any) -> Feed:
    how["name"] = GrammarText("g", Source("g.jedi", rules), 0, len(rules))
    return Feed(READER, *fields, **how)


def read(rules: str, page: str, *fields: Any, **how: Any) -> list[Row]:
    return feed(rules, *fields, **how).read(page)


def types(compiled: Feed) -> tuple[Type | None, ...]:
    assert isinstance(compiled.extractor, GrammarExtractor)
    return compiled.extractor.schema.types


def wrong(rules: str, *fields: Any, **how: Any) -> tuple[str | None, int | None, str]:
    return mistake(READER, *fields, name=GrammarText("g", Source("g.jedi", rules), 0, len(rules)), **how)


# --- fields -------------------------------------------------------------------------------------


def test_records_become_tuples_and_fields_name_their_variables() -> None:
    rows = read(GOODS, PAGE, "code", field("what", "description"), field("price", "", "number"))
    assert rows == [
        ("MP10", "Psion 3c <i>new!</i> for", 399.5),
        ("MP22", "Psion Siena <b>now only</b>", 199),
    ]


def test_raw_keeps_white_space_and_words_work_as_for_other_readers() -> None:
    rows = read(
        GOODS,
        PAGE,
        field("raw", "description", "raw"),
        field("brand", "description", ("match", r"(\w+)"), "lower"),
        field("url", "code", "url"),
    )
    assert rows[1] == (" Psion\n  Siena <b>now only</b> ", "psion", "https://feeds.example/MP22")


def test_the_types_of_variables_are_known() -> None:
    nested = feed(STOCK, "title", "articles", "stock", field("n", "articles", "count"), start="page")
    assert types(nested) == (Type.CHAR, Type.RELATION, Type.RELATION, Type.NUMBER)


def test_nested_records_are_embedded_with_and_without_a_block() -> None:
    block = field("priced", "articles", fields=(field("price", "", "number"), field("id", "code", "lower")))
    ((title, whole, priced, stock, first, last, prices),) = read(
        STOCK,
        PAGE,
        "title",
        "articles",
        block,
        "stock",
        field("first", "stock", "first"),
        field("last", "stock", "last"),
        field("prices", "articles.price", "number", "all"),
        start="page",
    )
    assert title == "<b>Palmtops</b>"
    assert whole.schema.names == ("code", "description", "price")
    assert [row[0] for row in whole.rows] == ["MP10", "MP22"]
    assert embedded(priced) == [(399.5, "mp10"), (199, "mp22")]
    assert (stock.is_list, embedded(stock)) == (True, [("3c",), ("Siena",)])
    assert (first, last, embedded(prices)) == ("3c", "Siena", [(399.5,), (199,)])


def test_each_names_the_variable_whose_values_are_items() -> None:
    rows = read(
        STOCK, PAGE, field("word", "value"), field("of", "title", scope="page"), start="page", each="stock"
    )
    assert rows == [("3c", "<b>Palmtops</b>"), ("Siena", "<b>Palmtops</b>")]


def test_required_and_default_count_as_for_other_readers() -> None:
    rules = "rule a : list is (list += b())* end rule b : r is '<' name=[a-z]+ (' ' price=[0-9]+)? '>' end"
    assert read(rules, "<x 1><y>", "name", field("price", "", "number", ("default", 0))) == [
        ("x", 1),
        ("y", 0),
    ]
    refusal = feed(rules, "name", field("price", required=True)).refusal("<x 1><y>")
    assert refusal == "item 2 has no 'price', which is required"


def test_values_of_code_keep_their_types() -> None:
    rules = (
        "rule a : list is (list += b())* end rule b : r is n=[0-9.]+ do twice = n * 2; big = n > 5; end end"
    )
    assert read(rules, "2.5 7", "n", "twice", "big") == [("2.5", Decimal("5.0"), False), ("7", 14, True)]
    assert types(feed(rules, "n", "twice")) == (Type.CHAR, None)
    changed = rules.replace("b())* end", "b())* do for each in list { each.n = 1; } end end")
    assert (types(feed(changed, "n")), read(changed, "2.5", "n")) == ((None,), [(1,)])


def test_paging_and_empty_look_at_variables_of_the_page() -> None:
    rules = """
    rule page : list is (list += item())* none=gone()? (next=link())? end
    rule item is [0-9]+ end
    strict rule gone is 'nothing' end
    rule link is 'n:' [a-z]+ end
    """
    following = field("PAGING", "next", scope="page")
    one = feed(rules, field("n", "value", "number"), next_page=following)
    assert (one.read("1 2 n:more"), one.next_page) == ([(1,), (2,)], "n:more")


# --- pieces -------------------------------------------------------------------------------------


def test_settled_records_leave_while_the_page_arrives() -> None:
    log = feed(LINES, "time", "text")
    assert log.extractor.is_incremental
    assert log.arriving("---\n" * 300 + "10:00 begins\n10:", "01 goes on\r\n---\n10:02", " ends\n") == [
        [("10:00", "begins")],
        [("10:01", "goes on")],
        [],
        [("10:02", "ends")],
    ]


def test_code_of_the_start_rule_and_fields_of_the_page_need_the_whole() -> None:
    with_code = GOODS.replace(
        "(list += article())+", "(list += article())+ do for each in list { each.price = 1; } end"
    )
    whole = feed(with_code, "code", "price")
    assert not whole.extractor.is_incremental
    assert [len(rows) for rows in whole.arriving(PAGE, "")] == [0, 0, 2]
    assert whole.read(PAGE) == [("MP10", 1), ("MP22", 1)]
    assert not feed(
        STOCK, field("t", "title", scope="page"), start="page", each="stock"
    ).extractor.is_incremental


@given(st.lists(st.integers(1, 40)))
def test_pieces_of_any_size_give_the_same_rows(sizes: list[int]) -> None:
    goods = feed(GOODS, "code", field("price", "", "number"))
    assert goods.extractor.is_incremental
    assert goods.read(PAGE, sizes=sizes) == [("MP10", 399.5), ("MP22", 199)]


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("size", [500, 70_000])
def test_real_pages_give_every_record_while_they_arrive(name: str, size: int) -> None:
    count, expression = PAGES[name]
    key = KEYS[name]
    rules = (FOLDER / name).with_suffix(".jedi").read_text()
    body = (FOLDER / name).read_bytes()
    charset = "latin-1" if name == "pgnews_1998_11.txt" else "utf-8"
    read = feed(rules, field("key", key, "first", "raw"), charset=charset)
    assert read.extractor.is_incremental
    pieces = read.arriving(*(body[place : place + size] for place in range(0, len(body), size)))
    rows = [row for piece in pieces for row in piece]
    assert [key for (key,) in rows] == re.findall(expression, body.decode(charset).replace("\r\n", "\n"))
    assert len(rows) == count
    if size == 500:
        assert len(pieces[-1]) <= 1


def test_line_ends_are_those_of_unix_and_charsets_are_heeded() -> None:
    page = "1:00 a\r\n2:00 é\r3:00 c\n".encode("latin-1")
    read = feed(LINES, "text", charset="latin-1")
    assert read.read(page, sizes=[7, 1], content_type="text/plain") == [("a",), ("é",), ("c",)]


# --- pages that cannot be read --------------------------------------------------------------------


def test_a_page_that_no_interpretation_covers_is_refused_with_the_offset() -> None:
    strict = "strict rule a : list is (list += b() ';')* end strict rule b is [0-9]+ end"
    refusal = feed(strict, "value").refusal("1;2;x;")
    assert refusal.startswith("no interpretation goes on with 'x', at offset 4 in the rule ")


def test_code_that_fails_is_refused_with_its_place() -> None:
    failing = "rule a : list is (list += b())* end\nrule b : r is n=[0-9]+ do m = 1 / n; end end"
    refusal = feed(failing, "n", "m").refusal("0")
    assert refusal.startswith("g.jedi:2:")
    assert "division by zero" in refusal


def test_a_limit_is_refused_with_the_rule_and_the_offset() -> None:
    many = "strict rule a : r is x=.* accept .* if $$.length > 9; .* end"
    refusal = feed(many, "x", solutions=50).refusal("x" * 5000)
    assert refusal.startswith("more than 50 interpretations are alive at once, at offset ")
    assert refusal.endswith("in the rule 'a'")


def test_values_that_contain_themselves_are_refused() -> None:
    doubled = "b = list(a, a); a = list(b, b); " * 30
    rules = f"rule a : list is (list += b())* end rule b : r is x=[0-9]+ do a = list(x, x); {doubled} end end"
    assert feed(rules, "a").refusal("1") == "a record has more than 100,000 values"


@pytest.mark.parametrize("page", ["", "x" * 300_000, "<b>" * 100_000, "\0" * 1000, "<b>MP" + "1" * 200_000])
def test_hostile_pages_are_read_or_refused(page: str) -> None:
    assert "no interpretation" in (text := feed(GOODS, "code").refusal(page)) or "the source ends" in text


# --- mistakes -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "how", "expected"),
    [
        (("cod",), {}, ("cod", None, "the rule 'article' has no variable 'cod'; did you mean 'code'?")),
        (
            (field("x", "code.y"),),
            {},
            ("x", 5, "there is no 'y': the record is a text, and its only variable is 'value'"),
        ),
        (
            ("code",),
            {"each": "lst"},
            ("EACH", None, "the rule 'goods' has no variable 'lst'; did you mean 'list'?"),
        ),
        (
            ("code",),
            {"start": "good"},
            ("READ", None, "the grammar has no rule 'good'; did you mean 'goods'?"),
        ),
        (
            ("code",),
            {"seconds": 0},
            ("READ", None, "the option 'seconds' of the reader grammar is written: seconds 9"),
        ),
        (
            (field("all", "list", scope="page", fields=(field("cod"),)),),
            {},
            ("all", 0, "the rule 'goods' has no variable 'list' (there are: none)"),
        ),
    ],
)
def test_mistakes_are_found_before_a_page_is_read(fields: Any, how: Any, expected: Any) -> None:
    assert wrong(GOODS, *fields, **how) == expected


def plan(read: str, fields: str = "code: char; price: number", rules: str = GOODS) -> str:
    return f"""GRAMMAR article-list
{{
{rules}
}}
WRAPPER goods ()
{{
  GET: "https://shop.example/list"
  READ: {read}
  {fields}
}}
PLAN list {{ OUTPUT: out, failed BODY {{ wrapper ("goods" : out) {{ERRORS: failed}} }} }}
"""


def mistakes(text: str) -> list[str]:
    try:
        found = list(Engine().check(loads(text, "p.plan")))
    except PlanError as error:
        found = list(error.diagnostics)
    return [str(each).splitlines()[0] for each in found]


@pytest.mark.parametrize(
    ("read", "expected"),
    [
        (
            "grammar articles-list",
            "p.plan:15:17: unknown grammar 'articles-list'; did you mean 'article-list'?",
        ),
        (
            "grammar article-list start good",
            "p.plan:15:36: the grammar has no rule 'good'; did you mean 'goods'?",
        ),
        ("grammar article-list starts goods", "p.plan:15:30: unknown option 'starts'"),
        ("grammar", "p.plan:15:16: expected the name of a GRAMMAR item"),
    ],
)
def test_mistakes_of_read_have_their_places(read: str, expected: str) -> None:
    found = mistakes(plan(read))
    assert found[0].startswith(expected), found


def test_a_wrong_field_has_its_place_in_the_plan() -> None:
    (found,) = mistakes(plan("grammar article-list", 'code: char; price: "prise" number'))
    assert found == "p.plan:16:23: the rule 'article' has no variable 'prise'; did you mean 'price'?"


def test_the_text_of_a_wrapper_can_be_written_again() -> None:
    reading = "READ: grammar article-list start Goods seconds 3.5 solutions 100"
    body = f'GET: "https://a.example/"\n{reading}\nx: "a.b"'
    text = parse_wrapper("w", "", body)
    written = print_wrapper(text)
    assert f"  {reading}\n" in written
    assert parse_wrapper("w", "", written.partition("{")[2].rpartition("}")[0]) == text


def test_like_brings_the_grammar() -> None:
    program: Program = loads(
        plan("grammar Article-List start goods") + "WRAPPER w LIKE goods { what: 'code' }"
    )
    assert [str(each) for each in Engine().check(program)] == []
    assert resolve("w", program).schema.names == ("code", "price", "what")
    assert resolve("w", program).schema.types == (Type.CHAR, Type.NUMBER, Type.CHAR)


# --- whole runs -----------------------------------------------------------------------------------


def run(text: str, page: str) -> Result:
    return run_plan(text, network=ScriptedSite({"https://shop.example/list": page}))


def test_a_plan_reads_pages_with_a_grammar_of_its_files() -> None:
    result = run(plan("grammar article-list start goods"), PAGE)
    assert [dict(each) for each in result.outputs["out"]] == [
        {"code": "MP10", "price": 399.5},
        {"code": "MP22", "price": 199},
    ]
    assert list(result.outputs["failed"]) == []


def test_errors_takes_a_page_that_no_interpretation_covers() -> None:
    result = run(plan("grammar article-list"), "<html>Sold out</html>")
    assert list(result.outputs["out"]) == []
    (failed,) = result.outputs["failed"]
    assert "the source ends before any interpretation does, at offset 21" in failed["error"]


def test_heavy_pages_are_read_in_other_processes() -> None:
    process = (
        "rule goods : list is (list += article())+ do n = 1; end end\n"
        "rule article : r is '<b>' code=('MP' [0-9]+) do p = getpid(); end end"
    )
    before = dict(functions._functions)
    try:
        function(pure=True)(os.getpid)
        small, large = (
            run(plan("grammar article-list", "code: char; p: number", process), page)
            for page in (PAGE, PAGE + " " * 300_000)
        )
    finally:
        functions._functions = before
    assert {each["p"] for each in small.outputs["out"]} == {os.getpid()}
    assert os.getpid() not in {each["p"] for each in large.outputs["out"]}
    assert len(large.outputs["out"]) == 2


def test_a_page_that_takes_long_is_read_in_another_process() -> None:
    hard = (
        "strict rule goods : list is list += all() end\n"
        "strict rule all : r is code=.* accept .* if $$.length > 9; .* end"
    )
    text = plan("grammar article-list start goods seconds 0.3", "code: char", hard)
    (failed,) = run(text, "x" * 20_000).outputs["failed"]
    assert "the parse takes longer than 0.3 seconds, at offset" in failed["error"]


# --- explaining -----------------------------------------------------------------------------------


def test_each_value_is_explained_by_rule_variable_and_place() -> None:
    block = field("priced", "articles", fields=(field("price", "", "number"),))
    found = feed(STOCK, "title", block, "stock", start="page").explain(PAGE)
    assert [(each.field, each.path, each.excerpt) for each in found] == [
        ("title", "page: title, line 1, column 7", "<b>Palmtops</b>"),
        ("priced.price", "article: price, line 2, column 42", "399.50"),
        ("priced.price", "article: price, line 4, column 29", "199"),
        ("stock", "page: stock, line 5, column 1", "In stock: 3c, Siena\n"),
    ]
    assert found[1].value == 399.5


def test_computed_values_and_texts_are_explained() -> None:
    rules = "rule a : list is (list += b())* end rule b : r is n=[0-9]+ do m = n * 2; end end"
    found = feed(rules, "n", "m").explain("1 22")
    assert [(each.row, each.field, each.path, each.value) for each in found] == [
        (0, "n", "b: n, line 1, column 1", "1"),
        (0, "m", "b: m, computed by code", 2),
        (1, "n", "b: n, line 1, column 3", "22"),
        (1, "m", "b: m, computed by code", 44),
    ]
    words = "rule a is (list += w())* end rule w is [a-z]+ end"
    assert [each.path for each in feed(words, "value").explain("ab\ncd")] == [
        "text, line 1, column 1",
        "text, line 2, column 1",
    ]


def test_wrapper_test_shows_where_values_came_from(tmp_path: Path) -> None:
    (tmp_path / "p.plan").write_text(plan("grammar article-list"))
    (tmp_path / "page.html").write_text(PAGE)
    shown = aioflow("wrapper", "test", "p.plan", "goods", "--file", "page.html", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert "  price = 399.5\n    article: price, line 2, column 42\n    399.50\n" in shown.stdout
