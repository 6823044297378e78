"""Rows as JSON lines, CSV and tables."""

import csv
import io
import json
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from aioflow.cli.encoding import json_object
from aioflow.cli.formats import FormatName, make_format
from aioflow.cli.table import SAMPLE_ROWS, Table
from aioflow.errors import InputError
from aioflow.relation import Document, Record, Relation, Schema


def record(**values: object) -> Record:
    return Record(Schema(tuple(values)), tuple(values.values()))


def test_every_kind_of_value_has_its_json() -> None:
    embedded = Relation(Schema.of("n"), [(1,), (None,)])
    text = json_object(
        record(
            text='a "b"\n\u2028é',
            number=3,
            exact=Decimal("0.10"),
            real=2.5,
            yes=True,
            nothing=None,
            day=date(2024, 2, 29),
            moment=datetime(2024, 2, 29, 12, 30, tzinfo=UTC),
            houses=embedded,
            page=Document("<p>x</p>"),
        )
    )
    assert json.loads(text) == {
        "text": 'a "b"\n\u2028é',
        "number": 3,
        "exact": 0.1,
        "real": 2.5,
        "yes": True,
        "nothing": None,
        "day": "2024-02-29",
        "moment": "2024-02-29T12:30:00+00:00",
        "houses": [{"n": 1}, {"n": None}],
        "page": "<p>x</p>",
    }
    assert '"exact": 0.10' in text
    assert "é" in text


def test_what_json_cannot_hold_is_null_or_escaped() -> None:
    text = json_object(record(a=float("nan"), b=float("-inf"), c=Decimal("NaN"), d="\ud800"))
    assert text == '{"a": null, "b": null, "c": null, "d": "\\ud800"}'


def test_with_several_outputs_json_lines_name_theirs() -> None:
    lines = make_format(FormatName.JSONL, several_outputs=True)
    assert lines.row("houses", record(n=1)) == '{"output": "houses", "row": {"n": 1}}\n'


def test_csv_has_a_header_and_reads_back() -> None:
    lines = make_format(FormatName.CSV, several_outputs=False)
    embedded = Relation(Schema.of("n"), [(1,)])
    text = lines.row("o", record(a='x, "y"', b=None, c=True, d=embedded)) + lines.row(
        "o", record(a="\n", b=1.5, c=False, d=None)
    )
    assert list(csv.reader(io.StringIO(text))) == [
        ["a", "b", "c", "d"],
        ['x, "y"', "", "true", '[{"n": 1}]'],
        ["\n", "1.5", "false", ""],
    ]


def test_csv_appends_under_the_same_header_only() -> None:
    lines = make_format(FormatName.CSV, several_outputs=False, existing_start="a,b\n")
    assert lines.row("o", record(a=1, b=2)) == "1,2\n"
    lines = make_format(FormatName.CSV, several_outputs=False, existing_start="a,c\n")
    with pytest.raises(
        InputError, match="the file to append to has the columns a, c; the plan's output has a, b"
    ):
        lines.row("o", record(a=1, b=2))


def test_csv_refuses_several_outputs() -> None:
    with pytest.raises(InputError, match="choose one with --output"):
        make_format(FormatName.CSV, several_outputs=True)


def test_a_table_aligns_its_columns_and_numbers_to_the_right() -> None:
    table = Table(several_outputs=False, width=None)
    assert table.row("o", record(city="Irvine", price=550000)) == ""
    assert table.row("o", record(city="Łódź", price=9)) == ""
    assert table.release() == (
        "city     price\n"  #
        "──────  ──────\n"
        "Irvine  550000\n"
        "Łódź         9\n"
    )
    assert table.row("o", record(city="Costa Mesa", price=1)) == "Costa Mesa       1\n"


def test_a_table_shows_its_first_rows_when_it_has_seen_enough() -> None:
    table = Table(several_outputs=False, width=None)
    texts = [table.row("o", record(n=number)) for number in range(SAMPLE_ROWS)]
    assert "".join(texts[:-1]) == ""
    assert texts[-1].count("\n") == SAMPLE_ROWS + 2
    assert table.release() == ""


def test_a_table_keeps_to_the_width_of_the_terminal() -> None:
    table = Table(several_outputs=False, width=30)
    table.row("o", record(a="x" * 50, b="short", c="y" * 50))
    lines = table.release().splitlines()
    assert lines[-1] == "xxxxxxxxx…  short  yyyyyyyyyy…"
    assert len(lines[-1]) == 30


def test_a_column_grows_for_a_wider_cell_while_there_is_room() -> None:
    table = Table(several_outputs=False, width=12)
    table.row("o", record(a=1, b="x"))
    table.release()
    assert table.row("o", record(a=0.25, b="x")) == "0.25  x\n"
    assert table.row("o", record(a=1, b="too long for it")) == "   1  too l…\n"


def test_a_table_lets_no_control_character_through() -> None:
    table = Table(several_outputs=False, width=None)
    table.row("o", record(a="red \x1b[31m\r\nnext\x9b2J"))
    assert table.release().splitlines()[-1] == "red  [31m next 2J"


def test_a_table_counts_wide_characters_twice() -> None:
    table = Table(several_outputs=False, width=None)
    table.row("o", record(a="東京", b=1))
    assert table.release().splitlines()[1] == "────  ─"


def test_a_table_names_the_output_where_it_changes() -> None:
    table = Table(several_outputs=True, width=None)
    table.row("left", record(a=1))
    table.row("right", record(b=2))
    assert table.release() == "left\na\n─\n1\n\nright\nb\n─\n2\n"
    assert table.row("right", record(b=3)) == "3\n"
    assert table.row("left", record(a=4)) == "\nleft\n4\n"
