"""Rows as JSON lines, CSV and tables."""

from datetime import date
from decimal import Decimal

import pytest

from aioflow.cli.output.formats import SAMPLE_ROWS, Table, format_for, present
from aioflow.errors import InputError
from aioflow.relation import Record, Relation, Schema


def record(**values: object) -> Record:
    return Record(Schema(tuple(values)), tuple(values.values()))


def test_json_lines_are_the_same_as_those_of_the_operators() -> None:
    lines = present("jsonl", several_outputs=False)
    embedded = Relation(Schema.of("n"), [(1,), (None,)])
    data = lines.rows("o", [record(text="é", exact=Decimal("0.10"), day=date(2024, 2, 29), houses=embedded)])
    expected = '{"text": "é", "exact": 0.10, "day": "2024-02-29", "houses": [{"n": 1}, {"n": null}]}\n'
    assert (data.decode(), lines.release(), lines.end()) == (expected, b"", b"")


def test_with_several_outputs_json_lines_name_theirs() -> None:
    lines = present("jsonl", several_outputs=True)
    data = lines.rows("houses", [record(n=1), record(n="\ud800")])
    assert data == b'{"output": "houses", "row": {"n": 1}}\n{"output": "houses", "row": {"n": "\\ud800"}}\n'


def test_csv_has_one_header() -> None:
    lines = present("CSV", several_outputs=False)
    assert lines.rows("o", [record(a='x, "y"', b=None)]) == b'a,b\n"x, ""y""",\n'
    assert lines.rows("o", [record(a=True, b=1.5)]) == b"true,1.5\n"


def test_csv_goes_on_under_the_same_columns_only() -> None:
    lines = present("csv", several_outputs=False, beginning=b"b,a\n")
    assert lines.rows("o", [record(a=1, b=2)]) == b"2,1\n"
    lines = present("csv", several_outputs=False, beginning=b"a,c\n")
    with pytest.raises(InputError, match="the file to append to has the columns a, c; the tuples have a, b"):
        lines.rows("o", [record(a=1, b=2)])


def test_csv_refuses_several_outputs() -> None:
    with pytest.raises(
        InputError,
        match="csv holds one output, the plan has several: choose one with --output, or take jsonl",
    ):
        present("csv", several_outputs=True)


def test_the_ending_of_a_file_tells_its_format() -> None:
    names = ["a.csv", "b.TSV", "c.jsonl", "d.json", "e.parquet", "f"]
    assert [format_for(name) for name in names] == ["csv", "tsv", "jsonl", "json", "parquet", "jsonl"]


@pytest.mark.parametrize("name", ["a.xlsx", "a.jsonl.gz"])
def test_other_endings_are_refused_with_those_that_there_are(name: str) -> None:
    with pytest.raises(InputError) as caught:
        format_for(name)
    endings = ".jsonl, .ndjson, .csv, .tsv, .json, .parquet"
    assert str(caught.value) == (
        f"no format is known by the ending of '{name}' (there are: {endings}); name one with --format"
    )


def test_json_is_an_array_also_without_rows() -> None:
    array = present("json", several_outputs=False)
    data = [array.rows("o", [record(n=1)]), array.rows("o", [record(n=2)]), array.end()]
    assert data == [b'[\n{"n": 1}', b',\n{"n": 2}', b"\n]\n"]
    assert present("json", several_outputs=False).end() == b"[]\n"


def test_csv_without_rows_has_the_header_that_is_known() -> None:
    assert present("csv", several_outputs=False).end(Schema.of("a", "b")) == b"a,b\n"
    assert present("csv", several_outputs=False).end() == b""
    assert present("csv", several_outputs=False, beginning=b"a,b\n").end() == b""


def test_csv_keeps_formulas_only_when_asked_to() -> None:
    row = record(a="=1+1", b=-5)
    assert present("csv", several_outputs=False).rows("o", [row]) == b"a,b\n'=1+1,-5\n"
    kept = present("csv", several_outputs=False, formulas="keep")
    assert kept.rows("o", [row]) == b"a,b\n=1+1,-5\n"


def test_parquet_is_not_for_a_terminal() -> None:
    with pytest.raises(InputError, match="parquet is not for a terminal: write it to a file"):
        present("parquet", several_outputs=False, width=80)


def shown(table: Table, output: str, row: Record) -> str:
    return table.rows(output, [row]).decode()


def test_a_table_aligns_its_columns_and_numbers_to_the_right() -> None:
    table = Table(several_outputs=False, width=None)
    assert shown(table, "o", record(city="Irvine", price=550000)) == ""
    assert shown(table, "o", record(city="Łódź", price=9)) == ""
    assert table.release().decode() == (
        "city     price\n"  #
        "──────  ──────\n"
        "Irvine  550000\n"
        "Łódź         9\n"
    )
    assert shown(table, "o", record(city="Costa Mesa", price=1)) == "Costa Mesa       1\n"


def test_a_table_shows_its_first_rows_when_it_has_seen_enough() -> None:
    table = Table(several_outputs=False, width=None)
    texts = [shown(table, "o", record(n=number)) for number in range(SAMPLE_ROWS)]
    assert "".join(texts[:-1]) == ""
    assert texts[-1].count("\n") == SAMPLE_ROWS + 2
    assert table.release().decode() == ""


def test_a_table_keeps_to_the_width_of_the_terminal() -> None:
    table = Table(several_outputs=False, width=30)
    shown(table, "o", record(a="x" * 50, b="short", c="y" * 50))
    lines = table.release().decode().splitlines()
    assert lines[-1] == "xxxxxxxxx…  short  yyyyyyyyyy…"
    assert len(lines[-1]) == 30


def test_a_column_grows_for_a_wider_cell_while_there_is_room() -> None:
    table = Table(several_outputs=False, width=12)
    shown(table, "o", record(a=1, b="x"))
    table.release().decode()
    assert shown(table, "o", record(a=0.25, b="x")) == "0.25  x\n"
    assert shown(table, "o", record(a=1, b="too long for it")) == "   1  too l…\n"


def test_texts_have_some_room_for_longer_ones_to_come() -> None:
    table = Table(several_outputs=False, width=40)
    shown(table, "o", record(street="Elm Street", beds=1))
    table.release()
    assert shown(table, "o", record(street="Maple Street", beds=2)) == "Maple Street      2\n"


def test_a_table_lets_no_control_character_through() -> None:
    table = Table(several_outputs=False, width=None)
    shown(table, "o", record(a="red \x1b[31m\r\nnext\x9b2J"))
    assert table.release().decode().splitlines()[-1] == "red \\x1b[31m next\\x9b2J"


def test_a_table_counts_wide_characters_twice() -> None:
    table = Table(several_outputs=False, width=None)
    shown(table, "o", record(a="東京", b=1))
    assert table.release().decode().splitlines()[1] == "────  ─"


def test_a_table_names_the_output_where_it_changes() -> None:
    table = Table(several_outputs=True, width=None)
    shown(table, "left", record(a=1))
    shown(table, "right", record(b=2))
    assert table.release().decode() == "left\na\n─\n1\n\nright\nb\n─\n2\n"
    assert shown(table, "right", record(b=3)) == "3\n"
    assert shown(table, "left", record(a=4)) == "\nleft\n4\n"
