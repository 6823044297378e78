"""Relations of every kind of value, for properties."""

from __future__ import annotations

from datetime import UTC, timedelta, timezone
from decimal import Decimal

from hypothesis import strategies as st

from aioflow.relation import Document, Relation, Row, Schema

TEXTS = st.text(st.characters(), max_size=12) | st.sampled_from(
    [
        "",
        " ",
        "\r\n",
        "\t",
        "a & b",
        "<b>",
        "]]>",
        "\x00",
        "\x0b",
        "\ud800",
        "\uffff",
        "\\u0000",
        "é",
        "𝄞",
        "\\",
    ]
)
NAMES = st.text(st.characters(), min_size=0, max_size=8) | st.sampled_from(
    [
        "a",
        "price (EUR)",
        "xml",
        "XmlLike",
        "_x0041_",
        "left.a",
        "a-b",
        "1st",
        "",
        ":",
        "a:b",
        "é",
        "_x",
        "x_x_",
    ]
)
ZONES = st.sampled_from([None, UTC, timezone(timedelta(hours=-5, minutes=-30))])
NUMBERS = (
    st.integers(-(10**30), 10**30)
    | st.floats()
    | st.decimals(places=3, allow_nan=False, allow_infinity=False)
    | st.sampled_from(
        [Decimal("NaN"), Decimal("Infinity"), Decimal("1E+40"), Decimal("1E-40"), Decimal("1.50")]
    )
)
DATES = st.dates() | st.datetimes(timezones=ZONES)
DOCUMENTS = st.sampled_from(
    [
        Document("<a/>", "xml"),
        Document(
            "<?xml version='1.0'?>\n<a xmlns='urn:u' xmlns:p='urn:v'>x<p:b q='1'/><!-- c --> y</a>", "xml"
        ),
        Document("no xml & at all", "xml"),
        Document("", "xml"),
        Document("<p>a<br>b &nbsp;", "html"),
        Document('{"a": [1, null, "\\u0000"]}', "json"),
        Document("\x00", "html"),
    ]
)
SCALARS = st.none() | st.booleans() | TEXTS | NUMBERS | DATES | DOCUMENTS


def relations_of(values: st.SearchStrategy[object]) -> st.SearchStrategy[Relation]:
    def with_names(names: list[str]) -> st.SearchStrategy[Relation]:
        rows: st.SearchStrategy[list[Row]] = st.lists(st.tuples(*[values] * len(names)), max_size=4)
        return rows.map(lambda found: Relation(Schema(tuple(names)), found))

    return st.lists(NAMES, min_size=1, max_size=4, unique=True).flatmap(with_names)


def lists_of(values: st.SearchStrategy[object]) -> st.SearchStrategy[Relation]:
    return st.lists(values, max_size=3).map(Relation.of_values)


VALUES = st.recursive(SCALARS, lambda inner: relations_of(inner) | lists_of(inner), max_leaves=8)
RELATIONS = relations_of(VALUES)
