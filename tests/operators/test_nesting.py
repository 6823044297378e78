"""pack, unpack, format."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aioflow import Document, PlanError, Relation, Row, RunError, Schema
from aioflow.relation import identity
from aioflow.testing import Script, rows, run_plan
from tests.operators.running import NO_MEMORY, bag, out, run, tables

HOUSES = rows(("Irvine", 3), ("Tustin", 5), ("Irvine", 4), schema="city beds")


# --- pack ---------------------------------------------------------------------------------------


def test_pack_embeds_the_whole_relation_in_one_tuple() -> None:
    assert out('pack (rel, "houses" : out)', rel=HOUSES) == [(HOUSES,)]


def test_pack_fires_for_an_empty_relation() -> None:
    assert out('pack (rel, "houses" : out)', rel=rows(schema="city")) == [(rows(schema="city"),)]


def test_pack_by_embeds_groups_of_whole_tuples() -> None:
    irvine = rows(("Irvine", 3), ("Irvine", 4), schema="city beds")
    tustin = rows(("Tustin", 5), schema="city beds")
    found = out('pack (rel, "houses" : out) {BY: "city"}', rel=HOUSES)
    assert bag(found) == bag([("Irvine", irvine), ("Tustin", tustin)])


def test_pack_by_of_an_empty_relation_gives_nothing() -> None:
    assert out('pack (rel, "houses" : out) {BY: "city"}', rel=rows(schema="city")) == []


def test_pack_may_not_be_named_like_what_it_groups_by() -> None:
    with pytest.raises(PlanError, match="'city' is an attribute that BY groups by"):
        run('pack (rel, "city" : out) {BY: "city"}', rel=HOUSES)


def test_pack_on_disk_gives_the_same() -> None:
    table = [(number, str(number)) for number in range(3000)]
    rel = rows(*table, schema="n s")
    [(packed,)] = out('pack (rel, "p" : out)', rel=rel, memory_bytes=NO_MEMORY, capacity_rows=256)
    assert list(packed.rows) == table


@settings(max_examples=50, deadline=None)
@given(tables(2), st.sampled_from([NO_MEMORY, 1 << 20]))
def test_pack_by_groups_as_tuples_compare(table: list[Row], memory_bytes: int) -> None:
    rel = rows(*table, schema="a b")
    found = out('pack (rel, "p" : out) {BY: "a"}', rel=rel, memory_bytes=memory_bytes)
    groups: dict[object, list[Row]] = {}
    for row in table:
        groups.setdefault(identity(row[:1]), []).append(row)
    assert bag((row[1],) for row in found) == bag((rows(*group, schema="a b"),) for group in groups.values())


# --- unpack -------------------------------------------------------------------------------------

PARCELS = [
    {"city": "Irvine", "houses": rows((1,), (2,), schema="n")},
    {"city": "Tustin", "houses": rows(schema="n")},
    {"city": "Orange", "houses": None},
]


def test_unpack_joins_the_embedded_tuples_to_the_rest() -> None:
    assert out('unpack (rel, "houses" : out)', rel=PARCELS) == [("Irvine", 1), ("Irvine", 2)]


def test_unpack_outer_keeps_tuples_without_embedded_ones() -> None:
    assert out('unpack (rel, "houses" : out) {OUTER}', rel=PARCELS) == [
        ("Irvine", 1),
        ("Irvine", 2),
        ("Tustin", None),
        ("Orange", None),
    ]


def test_unpack_outer_holds_tuples_until_a_relation_tells_the_attributes() -> None:
    assert run('unpack (rel, "houses" : out) {OUTER}', rel=PARCELS[::-1])[0] == {"city": "Orange", "n": None}


def test_unpack_outer_without_any_relation_keeps_the_rest() -> None:
    assert out('unpack (rel, "houses" : out) {OUTER}', rel=PARCELS[2:]) == [("Orange",)]


def test_an_embedded_attribute_replaces_one_of_the_same_name() -> None:
    rel = [{"city": "all", "beds": 0, "houses": HOUSES}]
    assert run('unpack (rel, "houses" : out)', rel=rel)[0] == {"city": "Irvine", "beds": 3}


def test_unpack_is_the_inverse_of_pack() -> None:
    statements = 'pack (rel, "p" : packed) {BY: "city"} unpack (packed, "p" : out)'
    assert bag(out(statements, rel=HOUSES)) == bag(HOUSES.rows)


def test_what_a_later_relation_lacks_is_null() -> None:
    rel = [{"p": rows((1, 2), schema="a b")}, {"p": rows((3,), schema="b")}]
    assert out('unpack (rel, "p" : out)', rel=rel) == [(1, 2), (None, 3)]


def test_what_a_later_relation_has_in_addition_is_an_error() -> None:
    rel = [{"p": rows((1,), schema="a")}, {"p": rows((3, 4), schema="a b")}]
    with pytest.raises(RunError, match="unknown attribute 'b'"):
        run('unpack (rel, "p" : out)', rel=rel)


def test_unpack_reads_json_texts_and_documents() -> None:
    rel = rows(('[{"n": 1}]',), (Document('[{"n": 2}, {"n": null}]', "json"),), ("[]",), schema="p")
    assert out('unpack (rel, "p" : out)', rel=rel) == [(1,), (2,), (None,)]


def test_unpack_of_a_list_gives_its_values_under_its_own_name() -> None:
    rel = [{"id": 1, "tags": Relation.of_values(["a", "b"])}, {"id": 2, "tags": '["c"]'}]
    assert list(run('unpack (rel, "tags" : out)', rel=rel)) == [
        {"id": 1, "tags": "a"},
        {"id": 1, "tags": "b"},
        {"id": 2, "tags": "c"},
    ]
    assert run('unpack (rel, "tags" : out) {SCHEMA: "tag char"}', rel=rel)[2] == {"id": 2, "tag": "c"}
    empty = [{"id": 1, "tags": Relation.of_values([])}]
    assert list(run('unpack (rel, "tags" : out) {OUTER}', rel=empty)) == [{"id": 1, "tags": None}]


def test_what_list_gathers_is_unpacked_again() -> None:
    statements = 'aggregate (rel, "list(n) as ns" : all) {RELATION: false} unpack (all, "ns" : out)'
    assert list(run(statements, rel=rows((1,), (2,), schema="n"))) == [{"ns": 1}, {"ns": 2}]


@pytest.mark.parametrize("value", [5, "no json", '{"n": 1}', Document("<p>")])
def test_unpack_of_what_is_no_relation_is_an_error(value: object) -> None:
    with pytest.raises(RunError, match="attribute 'p' holds no relation, but"):
        run('unpack (rel, "p" : out)', rel=rows((value,), schema="p"))


def test_unpack_of_a_number_is_a_mistake() -> None:
    text = 'PLAN p { INPUT: rel (n number) OUTPUT: out BODY { unpack (rel, "n" : out) } }'
    with pytest.raises(PlanError, match="'n' is a number, not a relation"):
        run_plan(text, rel=[])


def test_unpack_of_a_long_relation_comes_in_pieces() -> None:
    long = Relation(Schema(("n",)), [(number,) for number in range(2048)])
    found = out('unpack (rel, "p" : out) {OUTER}', rel=[{"p": long}], capacity_rows=256)
    assert found == list(long.rows)


# --- format -------------------------------------------------------------------------------------


def test_format_writes_listed_attributes_into_conversions() -> None:
    found = out('format (rel, "%s has %s beds", "city, beds" : out)', rel=HOUSES)
    assert found[0] == ("Irvine", 3, "Irvine has 3 beds")


def test_format_fills_placeholders() -> None:
    assert run('format (rel, "{city}!" : out) {AS: "label"}', rel=HOUSES)[0]["label"] == "Irvine!"


def test_format_replaces_an_attribute_of_the_same_name() -> None:
    assert out('format (rel, "in {city}" : out) {AS: "city"}', rel=HOUSES)[0] == ("in Irvine", 3)


def test_format_writes_literals_that_select_understands() -> None:
    wishes = rows(("Irvine", "o'clock"), schema="city other")
    statements = """format (wishes, "city = %q and %q = 'o''clock'", "city, other" : conditions)
        select (rel, conditions : out)"""
    assert len(out(statements, wishes=wishes, rel=HOUSES)) == 2


def test_format_works_beside_clauses_that_need_a_task() -> None:
    rel = Script().row(n=1).row(n=2)
    assert out('format (rel, "{n}" : out) {WAIT: rel}', rel=rel) == [(1, "1"), (2, "2")]


def test_a_bad_format_is_a_mistake() -> None:
    with pytest.raises(PlanError, match="2 conversions, but 1 attribute is listed"):
        run('format (rel, "%s %s", "city" : out)', rel=HOUSES)
