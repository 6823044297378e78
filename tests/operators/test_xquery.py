"""xquery and xslt: documents queried and transformed in other processes, joined to their tuples."""

from __future__ import annotations

import os
import subprocess
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from aioflow import AioflowError, Document, Engine, Relation, Schema, loads
from aioflow.runtime.session import MODES, Mode
from aioflow.testing import Script
from tests.operators.running import out, plan, run

HOUSES = "<houses><house zip='1'><price>30</price></house><house zip='2'><price>20</price></house></houses>"
SHORT_STYLESHEET = '<p xsl:version="3.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">x</p>'
SLOW = "count(for $a in 1 to 1000000, $b in 1 to 1000000 return $a * $b + //x)"


def given(*documents: Any, **more: Any) -> list[dict[str, Any]]:
    return [{"n": number, "xml": each, **more} for number, each in enumerate(documents, 1)]


def ask(query: str, *documents: Any, clauses: str = "", **more: Any) -> list[Any]:
    """The results of a query, one for each document that has one."""
    statement = (
        f'xquery (rel, "xml", """{query}""" : found) {{ORDERED; {clauses}}} project (found, "result" : out)'
    )
    return [value for (value,) in out(statement, rel=given(*documents or ["<x/>"], **more))]


def texts(query: str, *documents: Any, **more: Any) -> list[str]:
    answers = ask(query, *documents, **more)
    assert all(isinstance(each, Document) and each.kind == "xml" for each in answers)
    return [each.text for each in answers]


def value(query: str, kind: str, *documents: Any, **more: Any) -> Any:
    return ask(query, *documents, clauses=f'AS: "result {kind}"', **more)


def mistakes(
    query: str, header: str = "rel (n number, xml document, zip char)", clauses: str = ""
) -> list[str]:
    text = plan(f'xquery (rel, "xml", """{query}""" : out) {{{clauses}}}', [header])
    return [str(each) for each in Engine().check(loads(text, "p.plan"))]


# --- results ------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_the_result_is_joined_to_its_tuple(mode: Mode) -> None:
    rows = out('xquery (rel, "xml", "//house[1]" : out)', rel=given(HOUSES), mode=mode)
    assert rows == [(1, HOUSES, Document('<house zip="1"><price>30</price></house>', "xml"))]


@pytest.mark.parametrize(
    ("query", "result"),
    [
        ("<a>{1 + 1}</a>", "<a>2</a>"),
        ("document {<a/>}", "<a/>"),
        (
            "for $h in //house order by number($h/price) return $h/price",
            "<result><price>20</price><price>30</price></result>",
        ),
        ("count(//house)", "<result>2</result>"),
        ("1, 'x', <a/>, 'y'", "<result>1 x<a/>y</result>"),
        ("//house[1]/@zip", '<result zip="1"/>'),
        ("attribute a {1}, <b/>", '<result a="1"><b/></result>'),
        ("text {'a'}, text {'b'}", "<result>ab</result>"),
        ("'<&'", "<result>&lt;&amp;</result>".replace("&amp;", "&amp;")),
        ("''", "<result/>"),
        ("document {<a/>, <b/>}", "<result><a/><b/></result>"),
        ("<!-- c -->", "<result><!-- c --></result>"),
        ("<a>\U0001f600é\r\n</a>", "<a>\U0001f600é\n</a>"),
    ],
)
def test_the_result_is_one_document(query: str, result: str) -> None:
    query = query.replace("'<&'", "'&lt;&amp;'")
    assert texts(query, HOUSES) == [result]


def test_a_query_without_result_drops_its_tuple_unless_outer() -> None:
    assert texts("//flat", HOUSES, "<flat/>") == ["<flat/>"]
    assert ask("//flat", HOUSES, "<flat/>", clauses="OUTER") == [None, Document("<flat/>", "xml")]


def test_root_is_around_whatever_comes_out() -> None:
    assert texts("//house/price", HOUSES, "<r/>", clauses='ROOT: "prices"') == [
        "<prices><price>30</price><price>20</price></prices>",
        "<prices/>",
    ]


@pytest.mark.parametrize(
    ("query", "kind", "expected"),
    [
        ("count(//house)", "number", 2),
        ("sum(//house/xs:decimal(price)) + 0.5", "number", Decimal("50.5")),
        ("1 div 3e0", "number", 1 / 3),
        ("//house[1]/price", "number", 30),
        ("//house[1]/@zip", "char", "1"),
        ("string-join(//price, ' ')", "char", "30 20"),
        ("exists(//house)", "boolean", True),
        ("xs:date('2020-02-03')", "date", date(2020, 2, 3)),
        ("xs:dateTime('2020-02-03T04:05:06Z')", "date", datetime(2020, 2, 3, 4, 5, 6, tzinfo=UTC)),
        ("xs:integer('123456789012345678901234567890')", "number", 123456789012345678901234567890),
    ],
)
def test_a_typed_result_is_a_value(query: str, kind: str, expected: Any) -> None:
    (found,) = value(query, kind, HOUSES)
    assert (type(found), found) == (type(expected), expected)


def test_a_value_is_one_item() -> None:
    with pytest.raises(AioflowError, match="it gives 2 items, and a value is one"):
        value("//house", "char", HOUSES)
    assert value("()", "number") == []


# --- variables ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given_value", "kind"),
    [
        ("x", "xs:string"),
        (3, "xs:integer"),
        (10**30, "xs:integer"),
        (1.5, "xs:double"),
        (Decimal("1.50"), "xs:decimal"),
        (True, "xs:boolean"),
        (date(2020, 2, 3), "xs:date"),
        (datetime(2020, 2, 3, 4, 5), "xs:dateTime"),
        (Document("<a/>", "xml"), "document-node(element(a))"),
        (Document("[1]", "json"), "xs:string"),
        (Relation(Schema(("a",)), [(1,)]), "document-node(element(relation))"),
        (None, "empty-sequence()"),
    ],
)
def test_attributes_are_external_variables_of_their_type(given_value: Any, kind: str) -> None:
    query = f"declare variable $v external; $v instance of {kind}"
    assert value(query, "boolean", v=given_value) == [True]


def test_a_variable_with_a_default_needs_no_attribute() -> None:
    query = "declare variable $zip as xs:string? external := 'none'; $zip"
    assert value(query, "char") == ["none"]
    assert value(query, "char", zip="92612") == ["92612"]


def test_several_documents_of_a_tuple_are_joined_by_one_query() -> None:
    query = """declare variable $names external;
    for $h in //house, $n in $names//name where $n/@zip = $h/@zip
    return <h>{string($n), string($h/price)}</h>"""
    names = Document("<ns><name zip='2'>B</name><name zip='1'>A</name></ns>", "xml")
    assert texts(query, HOUSES, names=names) == ["<result><h>A 30</h><h>B 20</h></result>"]


def test_names_that_no_variable_can_have_are_escaped() -> None:
    name = "$price_x0020__x0028_EUR_x0029_"
    rows = out(
        f'xquery (rel, "xml", "declare variable {name} external; {name}" : out) {{AS: "result number"}}',
        rel=[{"xml": "<a/>", "price (EUR)": 5}],
    )
    assert rows == [("<a/>", 5, 5)]


def test_an_embedded_relation_is_queried_as_its_document() -> None:
    packed = Relation(Schema(("a",)), [(1,), (2,)])
    assert value("sum(//row/a)", "number", packed) == [3]


# --- failures -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "query", "reason"),
    [
        ("<a>", "1", "the XML cannot be read: line 1, column 4: "),
        ("", "1", "it is empty"),
        ('<!DOCTYPE a [<!ENTITY x "y">]><a>&x;</a>', "1", "entities are not read"),
        ("<a>" * 1_000_000, "1", "256 levels deep"),
        ("<a/>", "1 div 0 + count(//a)", "line 1, column 1: Integer division by zero (FOAR0001)"),
        ("<a/>", "\n  error(xs:QName('sold'), concat('no ', name(/*)))", "line 2, column "),
        ("<a/>", "function($x) {$x}", "function"),
        ("<a/>", "map {'a': /*}", "map"),
        (Document("[1]", "json"), "1", "parse-json"),
    ],
)
def test_failures_are_told_tuple_by_tuple(document: Any, query: str, reason: str) -> None:
    statement = f'xquery (rel, "xml", """{query}""" : out) {{ERRORS: failed; OUTER}}'
    result = run(statement, outputs="out, failed", rel=[*given(document), {"n": 2, "xml": None}])
    assert [row["n"] for row in result.outputs["out"]] == [2]
    (failed,) = result.outputs["failed"]
    assert reason in failed["error"]
    assert "\n" not in failed["error"]


def test_a_query_that_never_ends_is_stopped_and_the_others_go_on() -> None:
    query = f"if (/a) then {SLOW} else 5"
    statement = f'xquery (rel, "xml", "{query}" : out) {{ERRORS: failed; SECONDS: 1; AS: "r number"}}'
    result = run(statement, outputs="out, failed", rel=given("<a/>", "<b/>", "<a/>", "<b/>"))
    assert [row["n"] for row in result.outputs["out"]] == [2, 4]
    assert {row["n"] for row in result.outputs["failed"]} == {1, 3}
    assert all("took longer than 1 s" in row["error"] for row in result.outputs["failed"])


HUGE = "string-join(for $i in 1 to 200000000 return concat('abcdefghij', /*))"


def test_a_result_of_two_gigabytes_is_refused() -> None:
    with pytest.raises(AioflowError, match=r"the query needs more memory than 1 GiB \(xquery.memory_bytes\)"):
        ask(HUGE)


async def test_results_have_a_limit_of_their_own() -> None:
    text = plan('xquery (rel, "xml", "string-join(1 to 1000, string(/*))" : out)', ["rel"])
    async with Engine(configuration={"xquery": {"result_bytes": 1000}}) as engine:
        with pytest.raises(AioflowError, match=r"its result of 2,910 bytes is larger than 1,000"):
            await engine.run(loads(text), rel=given("<a/>"))


def test_a_reader_that_has_enough_stops_the_queries() -> None:
    source = Script(*given(*[HOUSES] * 300))
    statements = 'xquery (rel, "xml", "//house[1]" : found) limit (found, 2 : out)'
    assert len(out(statements, rel=source)) == 2
    assert source.closed


async def test_processes_start_with_the_first_query_and_end_with_the_engine() -> None:
    def ours() -> list[str]:
        listed = subprocess.run(
            ["ps", "-ww", "-o", "args=", "--ppid", str(os.getpid())], capture_output=True, text=True
        )
        return [line for line in listed.stdout.splitlines() if "aioflow.processes" in line]

    before = ours()
    text = loads(plan('xquery (rel, "xml", "/*" : out)', ["rel"]))
    async with Engine() as engine:
        await engine.run(text, rel=[])
        assert ours() == before
        await engine.run(text, rel=given("<a/>", "<b/>"))
        assert len(ours()) > len(before)
    assert ours() == before


@pytest.mark.parametrize(
    "statement",
    [
        'xquery (rel, "xml", "1" : out)',
        'xml2rel (rel, "xml", "a", ". as text" : out)',
        f"""xslt (rel, "xml", '{SHORT_STYLESHEET}' : out)""",
    ],
)
def test_inputs_that_are_empty_dead_or_fail_and_readers_that_leave(statement: str) -> None:
    assert out(statement, rel=[]) == []
    dead = f"null (source, source, source : rel, live) {statement} pack (out, 'p' : result)"
    assert list(run(dead, outputs="result", source=given("<a/>")).outputs["result"]) == []
    with pytest.raises(AioflowError, match="gone"):
        out(statement, rel=Script(*given("<a/>")).fail(OSError("gone")))
    waiting = Script(*given("<a/>")).hang()
    assert len(out(f"{statement.replace(' out)', ' all)')} limit (all, 1 : out)", rel=waiting)) == 1
    assert waiting.closed


# --- mistakes -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("for $h in //house", "p.plan:1:"),
        ("let $h := 1\nreturn $x", "p.plan:2:9: Unresolved reference to variable $x (XPST0008)"),
        ("declare variable $zpi external; $zpi", "$zpi: unknown attribute 'zpi'; did you mean 'zip'?"),
        ("import module namespace m = 'm' at 'm.xq'; 1", "prohibited"),
        ("m:f(1)", "prefix"),
    ],
)
def test_mistakes_of_queries_are_found_before_anything_runs(query: str, message: str) -> None:
    (found,) = mistakes(query)
    assert message in found


@pytest.mark.parametrize(
    ("clauses", "message"),
    [
        ('AS: "a, b"', "expected one name"),
        ('AS: "a relation"', "xml2rel"),
        ('AS: "a number"; ROOT: "x"', "only a document has a root"),
        ('ROOT: "1 x"', "no name of an XML element"),
        ("SECONDS: 0", "must be a number above 0"),
    ],
)
def test_mistakes_of_clauses(clauses: str, message: str) -> None:
    (found,) = mistakes("1", clauses=clauses)
    assert message in found


def test_without_the_extra_the_mistake_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aioflow.xquery.program.find_spec", lambda name: None)
    (found,) = mistakes("1 + 1")
    assert "pip install 'aioflow[xquery]'" in found


def test_a_query_that_would_run_for_ever_is_checked_in_time() -> None:
    assert mistakes("count(for $a in 1 to 1000000, $b in 1 to 1000000 return $a)") == []


def test_external_variables_are_not_looked_for_in_comments() -> None:
    assert mistakes("(: declare variable $a external; (: nested :) declare variable $b external; :) 1") == []


# --- stylesheets --------------------------------------------------------------------------------

STYLESHEET = """<xsl:stylesheet version="3.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">
<xsl:output method="METHOD"/><xsl:param name="zip" required="yes"/>
<xsl:template match="/"><p><xsl:value-of select="count(//house[@zip = $zip])"/><br/></p></xsl:template>
</xsl:stylesheet>"""


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("xml", Document("<p>1<br/></p>", "xml")),
        ("html", Document("<p>1<br></p>", "html")),
        ("text", "1"),
    ],
)
def test_stylesheets_write_documents_and_texts(method: str, expected: Any) -> None:
    stylesheet = STYLESHEET.replace("METHOD", method)
    rows = out(
        f"""xslt (rel, "xml", '''{stylesheet}''' : out) {{AS: "page"}}""".replace("'''", '"' * 3),
        rel=given(HOUSES, zip="1"),
    )
    assert rows == [(1, HOUSES, "1", expected)]


def test_mistakes_of_stylesheets_are_found_before_anything_runs() -> None:
    for text, message in (
        ("<a>", "line 1"),
        ("<a/>", "stylesheet"),
        (STYLESHEET.replace("$zip", "$zap"), "zap"),
    ):
        statement = f'xslt (rel, "xml", """{text}""" : out)'
        found = Engine().check(loads(plan(statement, ["rel (xml document, zip char)"]), "p.plan"))
        assert any(message in str(each) for each in found)
