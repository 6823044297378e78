"""rel2xml and xml2rel: documents made of relations, and relations read from documents."""

from __future__ import annotations

import subprocess
import sys
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings

from aioflow import AioflowError, Document, Engine, Relation, Row, Schema, loads
from aioflow.relation import identity
from aioflow.runtime.session import MODES, Mode
from aioflow.testing import Script, run_plan
from aioflow.xml import BadXmlError
from aioflow.xml.guard import etree, parse_xml
from aioflow.xml.names import attribute_name, element_name
from tests.operators.running import bag, out, plan, run
from tests.xml.values import NAMES, RELATIONS

HOUSES = """<houses>
  <house id="1"><price>10</price><address><city>A</city><zip>1</zip></address></house>
  <house id="2"><price>20</price><address><city>B &amp; C</city></address><note/></house>
</houses>"""


def given_xml(*texts: Any) -> list[dict[str, Any]]:
    return [{"n": number, "xml": text} for number, text in enumerate(texts, 1)]


def read(each: str, attributes: str, *texts: Any, clauses: str = "", **how: Any) -> list[Row]:
    statement = f'xml2rel (rel, "xml", "{each}", "{attributes}" : out) {{{clauses}}}'
    return [row[2:] for row in out(statement, rel=given_xml(*texts), **how)]


def written(*rows: dict[str, Any], clauses: str = "") -> str:
    ((document,),) = out(f"rel2xml (rel : out) {{{clauses}}}", rel=list(rows))
    assert isinstance(document, Document)
    assert document.kind == "xml"
    return document.text


def mistakes(statement: str, header: str = "rel (n number, xml char)") -> list[str]:
    return [str(each).splitlines()[0] for each in Engine().check(loads(plan(statement, [header]), "p.plan"))]


# --- rel2xml ------------------------------------------------------------------------------------


def test_an_element_for_each_tuple_and_attribute_in_their_order() -> None:
    text = written({"b": "x", "a": 1}, {"b": None, "a": Decimal("1.50")}, clauses='ROOT: "all"; ROW: "one"')
    root = etree.fromstring(text)
    assert root.tag == "all"
    assert [each.tag for each in root] == ["one", "one"]
    assert [[cell.tag for cell in each] for each in root] == [["b", "a"]] * 2
    assert [[cell.text for cell in each] for each in root] == [["x", "1"], [None, "1.50"]]
    assert '<b xsi:nil="true"/>' in text
    assert '<a xsi:type="xs:decimal">1.50</a>' in text


def test_texts_alone_need_no_marks() -> None:
    assert written({"a": "x < y"}) == "<relation>\n<row><a>x &lt; y</a></row>\n</relation>"


@pytest.mark.parametrize("mode", MODES)
def test_an_empty_relation_is_an_empty_document(mode: Mode) -> None:
    assert out("rel2xml (rel : out)", rel=[], mode=mode) == [(Document("<relation></relation>", "xml"),)]


def test_a_dead_input_makes_no_document() -> None:
    statements = "null (source, source, source : rel, live) rel2xml (rel : out)"
    assert out(statements, source=[{"a": 1}]) == []


def test_a_failing_input_makes_no_document() -> None:
    with pytest.raises(AioflowError, match="gone"):
        out("rel2xml (rel : out)", rel=Script({"a": 1}).fail(OSError("gone")))


def test_a_document_that_memory_has_no_room_for_is_an_error() -> None:
    rows = [{"a": "x" * 1000}] * 2000
    with pytest.raises(
        AioflowError, match=r"rel2xml: InputError: the XML document .* has no room for; make several"
    ):
        out("rel2xml (rel : out)", rel=rows, memory_bytes=500_000)


@pytest.mark.parametrize("name", ["a b", "1", "", "p:a", "<"])
def test_a_root_that_is_no_name_is_a_mistake(name: str) -> None:
    (found,) = mistakes(f'rel2xml (rel : out) {{ROOT: "{name}"}}')
    assert f"{name!r} is no name of an XML element" in found


# --- names --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("attribute", "element"),
    [
        ("price", "price"),
        ("price-info", "price-info"),
        ("left.a", "left.a"),
        ("price (EUR)", "price_x0020__x0028_EUR_x0029_"),
        ("1st", "_x0031_st"),
        ("xml", "_x0078_ml"),
        ("_x0041_", "_x005F_x0041_"),
        ("a:b", "a_x003A_b"),
        ("𝄞 ", "𝄞_x0020_"),
        ("", "_x_"),
    ],
)
def test_names_are_escaped_as_in_sql_xml(attribute: str, element: str) -> None:
    assert element_name(attribute) == element
    assert attribute_name(element) == attribute


@given(NAMES)
def test_every_name_has_an_element(name: str) -> None:
    element = element_name(name)
    assert etree.fromstring(f"<{element}/>".encode()).tag == element
    assert attribute_name(element) == name


# --- the round trip -----------------------------------------------------------------------------


def canonical(value: Any) -> Any:
    """The value, with XML documents as canonical XML."""
    if isinstance(value, Relation):
        rows = [tuple(map(canonical, row)) for row in value.rows]
        return Relation(value.schema, rows, is_list=value.is_list)
    if isinstance(value, Document) and value.kind == "xml":
        try:
            root = parse_xml(value.text, keeps_comments=True)
        except BadXmlError:
            return value
        return Document(etree.tostring(root, method="c14n", with_comments=True).decode(), "xml")
    return value


@settings(max_examples=300, deadline=None)
@given(RELATIONS)
def test_what_rel2xml_wrote_xml2rel_reads(relation: Relation) -> None:
    names = [f"a{number}" for number in range(len(relation.schema))]
    paths = ", ".join(
        f"{element_name(name)} as {short}" for name, short in zip(relation.schema.names, names, strict=True)
    )
    statements = f"""
    rel2xml (rel : written) {{ROOT: "r"; ROW: "t"}}
    xml2rel (written, "xml", "t", "{paths}" : found)
    project (found, "{", ".join(names)}" : out)
    """
    given_rows = [dict(zip(relation.schema.names, row, strict=True)) for row in relation.rows]
    found = out(statements, rel=given_rows)
    assert bag(map(identity_of, found)) == bag(map(identity_of, relation.rows))
    assert [list(map(type, row)) for row in found] == [list(map(type, row)) for row in relation.rows]


def identity_of(row: Row) -> Row:
    return identity(tuple(map(canonical, row)))


def test_embedded_relations_come_back_by_the_name_of_their_element_and_flat_by_a_path() -> None:
    rooms = Relation(Schema(("room", "size")), [("hall", 10), ("bath", None)])
    rel = [{"house": "h1", "rooms": rooms}, {"house": "h2", "rooms": Relation(rooms.schema)}]
    embedded = """
    rel2xml (rel : doc) xml2rel (doc, "xml", "row", "house, rooms" : r) project (r, "house, rooms" : out)
    """
    assert out(embedded, rel=rel) == [("h1", rooms), ("h2", Relation(rooms.schema))]
    flat = """
    rel2xml (rel : doc) xml2rel (doc, "xml", "row", "house, rooms/row/room, rooms/row/size" : r)
    project (r, "house, room, size" : out)
    """
    assert out(flat, rel=rel) == [("h1", "hall", 10), ("h1", "bath", None), ("h2", None, None)]


def test_an_attribute_called_index_comes_back_when_the_number_has_another_name() -> None:
    statements = """
    rel2xml (rel : doc)
    xml2rel (doc, "xml", "row", "index" : found) {INDEX: "place"}
    project (found, "place, index" : out)
    """
    assert out(statements, rel=[{"index": "x"}, {"index": "y"}]) == [(1, "x"), (2, "y")]
    (found,) = mistakes('xml2rel (rel, "xml", "row", "index" : out)')
    assert "'index' is the number of the element" in found


# --- xml2rel ------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_a_tuple_for_each_iterating_element(mode: Mode) -> None:
    rows = read("house", "@id, price number, address/city, address/zip, note", HOUSES, mode=mode)
    assert rows == [(1, "1", 10, "A", "1", None), (2, "2", 20, "B & C", None, "")]


def test_repeated_elements_are_flattened_as_a_cross_product_and_siblings_stay_together() -> None:
    text = "<r><i><a>1</a><a>2</a><b><c>x</c><d>y</d></b><b><c>z</c></b></i></r>"
    assert read("i", "a, b/c, b/d", text) == [
        (1, "1", "x", "y"),
        (1, "1", "z", None),
        (1, "2", "x", "y"),
        (1, "2", "z", None),
    ]


@pytest.mark.parametrize(
    ("each", "expected"),
    [
        ("i", ["a", "d"]),
        ("//i", ["a", "b", "d"]),
        ("/r/i", ["a"]),
        ("i/i", ["b"]),
        ("s/i", ["d"]),
        ("/i", []),
        ("{urn:x}i", []),
    ],
)
def test_the_path_to_iterating_elements(each: str, expected: list[str]) -> None:
    text = "<r><i k='a'><i k='b'/></i><s><i k='d'/></s></r>"
    assert [row[1] for row in read(each, "@k", text)] == expected


def test_namespaces_by_prefix_by_name_and_of_the_element() -> None:
    text = """<f xmlns="urn:f" xmlns:dc="urn:dc"><e><dc:date>1</dc:date><title>t</title>
    <o:x xmlns:o="urn:o">2</o:x></e></f>"""
    assert read("e", "title, dc:date, {urn:o}x as y, o:x as none", text) == [(1, "t", "1", "2", "2")]
    assert read("e", "date", text) == [(1, None)]


def test_declared_types_and_marks() -> None:
    text = """<r xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
    xmlns:xs="http://www.w3.org/2001/XMLSchema"><i><a>1.5</a><b xsi:type="xs:date">2020-02-03</b>
    <c xsi:nil="true"/><d xsi:type="unknown">x</d><e>true</e></i></r>"""
    assert read("i", "a number, b, c, d, e boolean", text) == [(1, 1.5, date(2020, 2, 3), None, "x", True)]


def test_elements_as_documents_go_on_to_the_next_xml2rel() -> None:
    text = "<r><i><o xmlns:p='urn:p'><p:k>1</p:k></o></i><i><o><k>2</k></o></i></r>"
    statements = """
    xml2rel (rel, "xml", "i", "o document" : inner)
    xml2rel (inner, "o", "o", "k, {urn:p}k as pk" : found) {INDEX: "place"}
    project (found, "k, pk" : out)
    """
    assert out(statements, rel=given_xml(text)) == [(None, "1"), ("2", None)]


def test_comments_and_instructions_are_no_text() -> None:
    assert read("i", "a, . as whole", "<r><i><a>x<!-- y -->z<?p q?></a><!-- a --></i></r>") == [
        (1, "xz", "xz")
    ]


def test_outer_keeps_tuples_without_elements_and_nulls_are_counted() -> None:
    result = run(
        'xml2rel (rel, "xml", "house", "price" : out) {OUTER; ORDERED}',
        rel=given_xml("<r/>", None, "<house><price>1</price></house>"),
    )
    assert [row.row[2:] for row in result.outputs["out"]] == [(None, None), (None, None), (1, "1")]
    assert "null documents" in str(result.statistics)


def test_a_result_called_like_an_attribute_replaces_it() -> None:
    statement = 'xml2rel (rel, "xml", "house", "price as xml" : out)'
    assert [row[1] for row in out(statement, rel=given_xml(HOUSES))] == ["10", "20"]


def test_a_reader_that_has_enough_stops_the_reading() -> None:
    source = Script(*given_xml(*[HOUSES] * 500))
    statements = 'xml2rel (rel, "xml", "house", "price" : found) limit (found, 3 : out)'
    assert len(out(statements, rel=source)) == 3
    assert source.closed


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("<r><i></r>", "line 1, column"),
        ("<r><i/>", "it is cut off"),
        ("", "it is empty"),
        ("just text", "does not begin with an element"),
        ("<r>&nbsp;</r>", "nbsp"),
        ('<!DOCTYPE r [<!ENTITY a "b">]><r>&a;</r>', "document types and entities are not read"),
        (
            '<!DOCTYPE r SYSTEM "file:///etc/passwd" [<!ENTITY a SYSTEM "file:///etc/passwd">]><r>&a;</r>',
            "are not read",
        ),
        ("<a>" * 1_000_000, "256 levels deep"),
        ("<a>" * 1_000_000 + "</a>" * 1_000_000, "256 levels deep"),
        (Document("{}", "json"), "this one is JSON"),
        (Relation(Schema(("a",)), []), "unpack"),
    ],
)
def test_bad_documents_fail_tuple_by_tuple(text: Any, reason: str) -> None:
    statement = 'xml2rel (rel, "xml", "i", "n number" : out) {ERRORS: failed}'
    good = "<r><i><n>1</n></i></r>"
    result = run(statement, outputs="out, failed", rel=given_xml(good, text, good))
    assert [row["n"] for row in result.outputs["out"]] == [1, 1]
    (failed,) = result.outputs["failed"]
    assert failed["n"] == 2
    assert reason in failed["error"]


def test_a_failed_document_gives_no_tuples_at_all() -> None:
    text = "<r>" + "<i><n>1</n></i>" * 20_000 + "<i></r>"
    result = run('xml2rel (rel, "xml", "i", "n number" : out) {ERRORS: skip}', rel=given_xml(text))
    assert list(result.outputs["out"]) == []


def test_a_value_that_is_not_of_its_type_is_null_and_counted() -> None:
    text = """<r xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xmlns:xs="http://www.w3.org/2001/XMLSchema">
    <i><v>ask</v><d xsi:type="xs:date">soon</d></i><i><v>5</v><d xsi:type="xs:date">2020-01-02Z</d></i></r>"""
    result = run('xml2rel (rel, "xml", "i", "v number, d" : out)', rel=given_xml(text))
    assert [record.row[2:] for record in result.outputs["out"]] == [(1, None, None), (2, 5, date(2020, 1, 2))]
    assert "values that are not a number" in str(result.statistics)
    assert "values that are not its xsi:type" in str(result.statistics)


def test_a_document_without_the_elements_is_counted() -> None:
    result = run('xml2rel (rel, "xml", "hose", "n" : out)', rel=given_xml(HOUSES))
    assert list(result.outputs["out"]) == []
    assert "documents without such elements" in str(result.statistics)


def test_without_nulls_a_query_computes_with_what_is_there() -> None:
    rel: list[dict[str, Any]] = [{"price": 3, "note": None}, {"price": None, "note": None}]
    document = written(*rel, clauses='NULLS: omit; AS: "prices"')
    assert "nil" not in document
    assert read("row", "price, note", document) == [(1, 3, None), (2, None, None)]
    inner = Relation(Schema(("a", "b")), [(1, None)])
    statements = """
    rel2xml (rel : doc) {NULLS: omit} xml2rel (doc, "xml", "row", "inner" : r) project (r, "inner" : out)
    """
    assert out(statements, rel=[{"inner": inner}]) == [(inner,)]


def test_marks_are_read_without_the_namespaces_that_a_query_left_out() -> None:
    text = """<r xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">
    <i><v xsi:type="xs:double">9.5</v></i></r>"""
    assert read("i", "v", text) == [(1, 9.5)]


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ('xml2rel (rel, "xml", "i", "../a" : out)', "a path leads down only"),
        ('xml2rel (rel, "xlm", "i", "a" : out)', "did you mean 'xml'"),
        ('xml2rel (rel, "n", "i", "a" : out)', "'n' is a number, not a document"),
        ('xml2rel (rel, "xml", "i[1]", "a" : out)', "no name of an XML element"),
        ('xml2rel (rel, "xml", "i", "a, a" : out)', "'a' appears twice"),
        ('xml2rel (rel, "xml", "i", "a nubmer" : out)', "unknown type 'nubmer'; did you mean 'number'"),
        ('xml2rel (rel, "xml", "i", "a b c" : out)', "expected a path"),
        ('xml2rel (rel, "xml", "i", "a, , b" : out)', "expected a path"),
        ('xml2rel (rel, "xml", "i", "." : out)', "the element itself needs a name"),
    ],
)
def test_mistakes_are_found_before_anything_runs(statement: str, message: str) -> None:
    found = mistakes(statement)
    assert len(found) == 1
    assert message in found[0]


READINGS = """
from aioflow.testing import run_plan
head = 'PLAN test { INPUT: rel OUTPUT: out BODY { xml2rel (rel, "xml", "i", "a" : '
items = "".join(f"<i><a>{n}</a></i>" for n in range(8000))
for number in range(4):
    for text in (f"<r>{items}</r>", f"<r>{items}<i></r>", f"<r>{items}<!DOCTYPE a>"):
        rel = [{"n": 1, "xml": text}] * 3
        run_plan(head + "out) {ERRORS: skip} } }", rel=rel)
        run_plan(head + "found) {ERRORS: skip} limit (found, 3 : out) } }", rel=rel)
        run_plan(head + "found) limit (found, 3 : out) } }", rel=rel)
print("fine")
"""


def test_memory_of_lxml_stays_in_one_thread() -> None:
    """Else it is freed by another thread than the one that it belongs to, which ends the process."""
    done = subprocess.run([sys.executable, "-c", READINGS], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout, done.stderr) == (0, "fine\n", "")


# --- documents between statements ---------------------------------------------------------------


def test_a_document_passes_statements_as_the_same_object() -> None:
    """Nothing writes or reads a document on its way through statements that only pass it on."""
    statements = """
    select (rel, "n > 0" : some)
    project (some, "xml as doc, n" : renamed)
    join (renamed, other, "left.n = right.n" : joined)
    pack (joined, "packed" : parcel)
    unpack (parcel, "packed" : out)
    """
    document = Document(HOUSES, "xml")
    (row,) = out(statements, rel=[{"n": 1, "xml": document}], other=[{"n": 1}])
    assert any(value is document for value in row)


def test_elements_do_not_carry_a_document_that_no_reader_wants() -> None:
    """A thousand elements of a large document take no thousand times its memory."""
    text = "<r>" + "<i><a>1</a></i>" * 1000 + f"<!--{'x' * 1_000_000}--></r>"
    statements = 'xml2rel (rel, "xml", "i", "a" : found) project (found, "a" : some) sort (some, "a" : out)'
    result = run(statements, rel=given_xml(text), memory_bytes=4_000_000, capacity_rows=64)
    assert len(result.outputs["out"]) == 1000
    assert result.statistics.spilled_rows == 0


def test_all_modes_read_the_same() -> None:
    results = [
        bag(
            record.row
            for record in run_plan(
                plan('xml2rel (rel, "xml", "house", "price, address/city" : out)', ["rel"]),
                mode=mode,
                rel=given_xml(HOUSES),
            ).outputs["out"]
        )
        for mode in MODES
    ]
    assert results[0] == results[1] == results[2]
