"""read and write, and the formats of files."""

from __future__ import annotations

import asyncio
import json
import math
import os
import threading
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aioflow import Document, Engine, PlanError, Row, RunError, Schema, load, loads
from aioflow.errors import DeadlineError
from aioflow.operators import formats as formats_module
from aioflow.operators import text_formats
from aioflow.operators.formats import Format, Formats
from aioflow.relation import Batch
from aioflow.testing import Script, rows, run_plan
from tests.clocks import PATIENCE_SECONDS
from tests.operators.running import bag, out, plan, run


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A plan that was given as text has its files in the current folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run_allowing(allowed: str | Path, statements: str, **inputs: Any) -> None:
    """Run statements where a folder besides that of the plan is allowed."""
    run_plan(plan(statements, inputs), configuration={"files": {"allow": [str(allowed)]}}, **inputs)


# --- reading ------------------------------------------------------------------------------------


def test_read_gives_the_objects_of_json_lines(folder: Path) -> None:
    (folder / "a.jsonl").write_text('{"n": 1, "s": "x"}\n\n{"s": null, "n": 2.5}\n')
    assert out('read ("a.jsonl" : out)') == [(1, "x"), (2.5, None)]


def test_read_gives_the_rows_of_csv_as_texts(folder: Path) -> None:
    (folder / "a.csv").write_text('n,s\n1,"x, ""y"""\n2,\n')
    assert out('read ("a.csv" : out)') == [("1", 'x, "y"'), ("2", None)]


def test_read_gives_types_where_it_is_told_to(folder: Path) -> None:
    (folder / "a.csv").write_text("n,d,b,t\n1.50,2026-01-31,true,2026-01-31T08:00:00+01:00\n,,,\n")
    found = out('read ("a.csv" : out) {TYPES: "n number, d date, b boolean, t date"}')
    assert found[0][:3] == (1.5, date(2026, 1, 31), True)
    assert found[0][3].utcoffset().total_seconds() == 3600
    assert found[1] == (None, None, None, None)


def test_numbers_that_a_float_cannot_keep_become_decimals(folder: Path) -> None:
    (folder / "a.csv").write_text("n\n0.12345678901234567890\nNaN\n-Infinity\n")
    found = out('read ("a.csv" : out) {TYPES: "n number"}')
    assert found[0] == (Decimal("0.12345678901234567890"),)
    assert math.isnan(found[1][0])
    assert found[2] == (-math.inf,)


def test_missing_attributes_of_json_objects_are_null(folder: Path) -> None:
    (folder / "a.jsonl").write_text('{"a": 1}\n{"b": 2}\n')
    assert out('read ("a.jsonl" : out)') == [(1, None), (None, 2)]


def test_types_declare_attributes_that_come_late(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_formats, "_CHUNK_BYTES", 9)
    (folder / "a.jsonl").write_text('{"a": 1}\n{"b": 2}\n')
    assert out('read ("a.jsonl" : out) {TYPES: "b number"}') == [(1, None), (None, 2)]
    with pytest.raises(RunError, match=r"a\.jsonl:2: unknown attribute 'b'"):
        run('read ("a.jsonl" : out)')


def test_arrays_of_objects_are_relations_and_other_structures_documents(folder: Path) -> None:
    (folder / "a.jsonl").write_text('{"r": [{"x": 1}], "d": {"y": [2]}}\n')
    assert out('read ("a.jsonl" : out)') == [(rows((1,), schema="x"), Document('{"y": [2]}', "json"))]


def test_an_empty_file_has_no_tuples(folder: Path) -> None:
    for name in ("a.csv", "a.jsonl"):
        (folder / name).touch()
        assert out(f'read ("{name}" : out)') == []


def test_a_header_alone_tells_the_attributes(folder: Path) -> None:
    (folder / "a.csv").write_text("x,y\n")
    assert out('read ("a.csv" : a) pack (a, "p" : out)') == [(rows(schema="x y"),)]


def test_a_byte_order_mark_is_no_part_of_the_first_name(folder: Path) -> None:
    (folder / "a.csv").write_bytes(b"\xef\xbb\xbfx\r\n1\r\n")
    assert run('read ("a.csv" : out)')[0] == {"x": "1"}


def test_cells_go_on_over_lines_and_portions(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_formats, "_CHUNK_BYTES", 5)
    (folder / "a.csv").write_text('x,y\n"one\ntwo\nthree",1\n"é",2')
    assert out('read ("a.csv" : out)') == [("one\ntwo\nthree", "1"), ("é", "2")]


def test_tabs_separate_values_in_tsv(folder: Path) -> None:
    (folder / "a.tsv").write_text("x\ty\n1,5\t2\n")
    assert out('read ("a.tsv" : out)') == [("1,5", "2")]


def test_format_overrides_the_ending(folder: Path) -> None:
    (folder / "a.txt").write_text("x\n1\n")
    assert out('read ("a.txt" : out) {FORMAT: csv}') == [("1",)]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", b'{"a": 1}\n{"a": }\n', "a.jsonl:2: not JSON: Expecting value"),
        ("a.jsonl", b"[1]\n", "a.jsonl:1: expected a JSON object, found [1]"),
        ("a.jsonl", b'{"a": 1}\n{"a": "x"}\n', "a.jsonl:2: attribute 'a': 'x' is not a number"),
        ("a.csv", b"a,b\n1,2\n1,2,3\n", "a.csv:3: 3 cells under 2 columns"),
        ("a.csv", b"a,a\n1,2\n", "a.csv:1: attribute 'a' appears twice"),
        ("a.csv", b"b\n1\n", "a.csv:1: unknown attribute 'a'"),
        ("a.csv", b'a\n1\n"2\n', "a.csv:3: unexpected end of data"),
        ("a.csv", b"a\n1\n\xff\n", "a.csv:3: not UTF-8 text: byte 0xff"),
    ],
)
def test_errors_name_file_and_line(folder: Path, name: str, content: bytes, message: str) -> None:
    (folder / name).write_bytes(content)
    with pytest.raises(RunError) as caught:
        run(f'read ("{name}" : out) {{TYPES: "a number"}}')
    assert message in str(caught.value)


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(RunError, match=r"cannot read 'no\.csv': No such file or directory"):
        run('read ("no.csv" : out)')


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (
            'read ("a.xyz" : out)',
            "no format is known by the ending of 'a.xyz' "
            "(there are: .jsonl, .ndjson, .csv, .tsv, .json, .parquet); name one with FORMAT",
        ),
        ('read ("a.csv" : out) {FORMAT: cvs}', "unknown format 'cvs'; did you mean 'csv'?"),
        ('read ("a.csv" : out) {TYPES: "a"}', "expected 'name type' (types: char, number"),
        ('read ("a.csv" : out) {TYPES: "a number, a date"}', "attribute 'a' appears twice"),
    ],
)
def test_bad_settings_are_mistakes(statement: str, message: str) -> None:
    with pytest.raises(PlanError) as caught:
        run(statement)
    assert message in str(caught.value)


def test_a_limit_closes_the_file(folder: Path) -> None:
    (folder / "a.jsonl").write_text('{"n": 1}\n' * 100_000)
    assert out('read ("a.jsonl" : all) limit (all, 1 : out)') == [(1,)]


def test_paths_are_relative_to_the_plan(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "a.jsonl").write_text('{"n": 1}\n')
    (elsewhere / "copy.plan").write_text(
        'PLAN copy { OUTPUT: out BODY { read ("a.jsonl" : rel) write (rel, "b.csv" : out) } }'
    )

    async def copy() -> None:
        async with Engine() as engine:
            await engine.run(load(str(elsewhere / "copy.plan")))

    asyncio.run(copy())
    assert (elsewhere / "b.csv").read_text() == "n\n1\n"


# --- standard input and output ------------------------------------------------------------------


@pytest.fixture
def stdin() -> Iterator[int]:
    """A pipe in the place of standard input; gives the end to write to."""
    kept = os.dup(0)
    reader, writer = os.pipe()
    os.dup2(reader, 0)
    os.close(reader)
    try:
        yield writer
    finally:
        os.dup2(kept, 0)
        os.close(kept)
        os.close(writer)


async def from_stdin(statements: str) -> list[Row]:
    async with Engine() as engine:
        result = await asyncio.wait_for(engine.run(loads(plan(statements, ()))), PATIENCE_SECONDS)
    return [record.row for record in result]


async def test_standard_input_is_read_as_it_comes(stdin: int) -> None:
    os.write(stdin, b'{"n": 1}\n{"n":')
    assert await from_stdin('read ("-" : all) limit (all, 1 : out)') == [(1,)]


async def test_standard_input_may_be_csv(stdin: int) -> None:
    os.write(stdin, b"n\n1\n2\n")
    assert await from_stdin('read ("-" : all) {FORMAT: csv} limit (all, 2 : out)') == [("1",), ("2",)]


async def test_waiting_for_standard_input_can_be_cancelled(stdin: int) -> None:
    async with Engine() as engine:
        with pytest.raises(DeadlineError):
            await engine.run(loads(plan('read ("-" : out)', ())), timeout=0.05)


def test_standard_output_gets_json_lines(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    run('write (rel, "-" : out)', rel=rows((1, "é"), (None, 'a"b')))
    assert capsysbinary.readouterr().out == '{"a": 1, "b": "é"}\n{"a": null, "b": "a\\"b"}\n'.encode()


# --- writing ------------------------------------------------------------------------------------

ROW: Row = (
    1,
    'a"b\n,c',
    Decimal("1.10"),
    float("nan"),
    date(2026, 1, 2),
    datetime(2026, 1, 2, 3, 4, tzinfo=UTC),
    True,
    None,
    rows((1, None), schema="x y"),
    Document("<p>é</p>"),
    Document('{"deep": [1]}', "json"),
)
ALL_KINDS = rows(ROW, schema="i s d f day time b n r h j")
TYPES = "i number, d number, f number, day date, time date, b boolean, r relation, h document, j document"


def test_json_lines_of_all_kinds_of_values(folder: Path) -> None:
    run('write (rel, "a.jsonl" : out)', rel=ALL_KINDS)
    assert (folder / "a.jsonl").read_text() == (
        '{"i": 1, "s": "a\\"b\\n,c", "d": 1.10, "f": "NaN", "day": "2026-01-02", '
        '"time": "2026-01-02T03:04:00+00:00", "b": true, "n": null, "r": [{"x": 1, "y": null}], '
        '"h": "<p>é</p>", "j": {"deep": [1]}}\n'
    )


def test_csv_of_all_kinds_of_values(folder: Path) -> None:
    run('write (rel, "a.csv" : out)', rel=ALL_KINDS)
    assert (folder / "a.csv").read_text() == (
        'i,s,d,f,day,time,b,n,r,h,j\n1,"a""b\n,c",1.10,NaN,2026-01-02,2026-01-02T03:04:00+00:00,true,,'
        '"[{""x"": 1, ""y"": null}]",<p>é</p>,"{""deep"": [1]}"\n'
    )


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv", "a.tsv"])
def test_what_was_written_is_read_back_with_its_types(name: str) -> None:
    run(f'write (rel, "{name}" : out)', rel=ALL_KINDS)
    found = out(f'read ("{name}" : out) {{TYPES: "{TYPES}"}}')
    assert bag(found) == bag([(*ROW[:2], 1.1, *ROW[3:])])


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(TEXTS, st.one_of(st.none(), st.integers(), st.floats())), max_size=5))
@pytest.mark.parametrize("name", ["a.jsonl", "a.csv", "a.json", "a.parquet"])
def test_texts_and_numbers_survive_a_file(name: str, table: list[Row]) -> None:
    run(f'write (rel, "{name}" : out) {{FORMULAS: keep}}', rel=rows(*table, schema="s n"))
    found = out(f'read ("{name}" : out) {{TYPES: "s char, n number"}}')
    if name == "a.csv":  # which has no empty texts
        table = [(text or None, number) for text, number in table]
    assert bag(found) == bag(table)


def test_an_empty_relation_is_written_too(folder: Path) -> None:
    run('write (rel, "a.csv" : out)', rel=rows(schema="x y"))
    assert (folder / "a.csv").read_text() == "x,y\n"
    run('write (rel, "a.jsonl" : out)', rel=[])
    assert (folder / "a.jsonl").read_text() == ""


def test_write_passes_the_tuples_on() -> None:
    assert out('write (rel, "a.csv" : out)', rel=rows((1,), (2,))) == [(1,), (2,)]


def test_write_replaces_the_file_and_keeps_its_mode(folder: Path) -> None:
    (folder / "a.csv").write_text("old")
    (folder / "a.csv").chmod(0o640)
    run('write (rel, "a.csv" : out)', rel=rows((1,)))
    assert (folder / "a.csv").read_text() == "a\n1\n"
    assert (folder / "a.csv").stat().st_mode & 0o777 == 0o640


def test_write_replaces_what_a_link_points_to(folder: Path) -> None:
    (folder / "real.csv").write_text("old")
    (folder / "a.csv").symlink_to("real.csv")
    run('write (rel, "a.csv" : out)', rel=rows((1,)))
    assert (folder / "a.csv").is_symlink()
    assert (folder / "real.csv").read_text() == "a\n1\n"


def test_a_run_that_fails_leaves_the_file_as_it_was(folder: Path) -> None:
    (folder / "a.csv").write_text("old")
    with pytest.raises(Exception, match="gone"):
        run('write (rel, "a.csv" : out)', rel=Script().row(a=1).fail(OSError("gone")))
    assert (folder / "a.csv").read_text() == "old"
    assert [path.name for path in folder.iterdir()] == ["a.csv"]


async def test_a_run_that_is_cancelled_leaves_nothing(folder: Path) -> None:
    program = loads(plan('write (rel, "a.csv" : out)', ["rel"]))
    async with Engine() as engine:
        with pytest.raises(DeadlineError):
            await engine.run(program, {"rel": Script().row(a=1).hang()}, timeout=0.05)
    assert os.listdir(folder) == []


def test_a_limit_does_not_stop_write(folder: Path) -> None:
    rel = rows(*((number,) for number in range(300)))
    run('write (rel, "a.csv" : same) limit (same, 1 : out)', rel=rel)
    assert len((folder / "a.csv").read_text().splitlines()) == 301


def test_write_for_a_dead_input_does_nothing(folder: Path) -> None:
    run('null (rel, rel, rel : t, f) write (t, "a.csv") project (f, "a" : out)', rel=rows((1,)))
    assert list(folder.iterdir()) == []


def test_done_comes_when_the_file_is_there(folder: Path) -> None:
    statements = 'write (rel, "a.csv") {DONE: stored} read ("a.csv" : out) {WAIT: stored}'
    assert out(statements, rel=rows((1,), (2,))) == [("1",), ("2",)]


def test_append_adds_to_json_lines(folder: Path) -> None:
    (folder / "a.jsonl").write_text('{"n": 0}')
    run('write (rel, "a.jsonl" : out) {APPEND}', rel=rows((1,), schema="n"))
    assert (folder / "a.jsonl").read_text() == '{"n": 0}\n{"n": 1}\n'


def test_append_adds_to_csv_in_the_order_of_its_columns(folder: Path) -> None:
    (folder / "a.csv").write_text("y,x\n1,2\n")
    run('write (rel, "a.csv" : out) {APPEND}', rel=rows((4, 3), schema="x y"))
    assert (folder / "a.csv").read_text() == "y,x\n1,2\n3,4\n"


def test_append_to_a_file_that_is_not_there_makes_it(folder: Path) -> None:
    run('write (rel, "a.csv" : out) {APPEND}', rel=rows((1,)))
    assert (folder / "a.csv").read_text() == "a\n1\n"


def test_append_to_other_columns_is_an_error(folder: Path) -> None:
    (folder / "a.csv").write_text("x\n1\n")
    with pytest.raises(RunError, match="the file to append to has the columns x; the tuples have y"):
        run('write (rel, "a.csv" : out) {APPEND}', rel=rows((1,), schema="y"))
    assert (folder / "a.csv").read_text() == "x\n1\n"


def test_a_folder_that_is_not_there_is_named() -> None:
    with pytest.raises(RunError, match=r"cannot write 'no/a\.csv': No such file or directory"):
        run('write (rel, "no/a.csv" : out)', rel=rows((1,)))


def test_devices_are_written_to_and_not_replaced() -> None:
    run_allowing("/dev", 'write (rel, "/dev/null" : out) {FORMAT: csv}', rel=rows((1,)))
    assert not Path("/dev/null").is_file()


# --- formulas -----------------------------------------------------------------------------------

FORMULAS = ["=1+1", "+cmd", "-2+3", "@SUM(A1)", "\tx", "\rx", " =1"]


@pytest.mark.parametrize("name", ["a.csv", "a.tsv"])
def test_a_text_that_a_spreadsheet_would_compute_gets_an_apostrophe(name: str) -> None:
    table = [(text, -5) for text in FORMULAS]
    run(f'write (rel, "{name}" : out)', rel=rows(*table, schema="s n"))
    found = out(f'read ("{name}" : out)')
    assert found == [(f"'{text}", "-5") for text in FORMULAS]


def test_numbers_and_other_texts_stay_as_they_are_in_csv(folder: Path) -> None:
    row = (-5, Decimal("-1.10"), "-5", "+49", "a=b", "'x", Document("=1+1"), rows((-1,), schema="=n"))
    run('write (rel, "a.csv" : out)', rel=rows(row, schema="a b c d e f g =h"))
    assert (folder / "a.csv").read_text() == (
        'a,b,c,d,e,f,g,\'=h\n-5,-1.10,-5,+49,a=b,\'x,\'=1+1,"[{""=n"": -1}]"\n'
    )


def test_formulas_are_kept_where_the_plan_or_the_configuration_says_so(folder: Path) -> None:
    run('write (rel, "a.csv" : out) {FORMULAS: keep}', rel=rows(("=1+1",), schema="s"))
    assert (folder / "a.csv").read_text() == "s\n=1+1\n"
    keep = {"files": {"formulas": "keep"}}
    text = plan('write (rel, "b.csv" : out)', ["rel"])
    run_plan(text, configuration=keep, rel=rows(("=1+1",), schema="s"))
    assert (folder / "b.csv").read_text() == "s\n=1+1\n"
    text = plan('write (rel, "c.csv" : out) {FORMULAS: neutral}', ["rel"])
    run_plan(text, configuration=keep, rel=rows(("=1+1",), schema="s"))
    assert (folder / "c.csv").read_text() == "s\n'=1+1\n"


def test_append_knows_a_header_that_looks_like_a_formula(folder: Path) -> None:
    for _ in range(2):
        run('write (rel, "a.csv" : out) {APPEND}', rel=rows((1, 2), schema="=a b"))
    assert (folder / "a.csv").read_text() == "'=a,b\n1,2\n1,2\n"


# --- where files may lie ------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["absolute", "upwards", "linked folder", "linked file"])
@pytest.mark.parametrize("purpose", ["read", "write"])
def test_a_path_that_leads_out_of_the_folder_of_the_plan_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str, purpose: str
) -> None:
    inside, outside = tmp_path / "plan", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    (outside / "a.jsonl").write_text('{"n": 1}\n')
    (inside / "folder").symlink_to(outside)
    (inside / "file.jsonl").symlink_to(outside / "a.jsonl")
    monkeypatch.chdir(inside)
    path = {
        "absolute": str(outside / "a.jsonl"),
        "upwards": "../outside/a.jsonl",
        "linked folder": "folder/a.jsonl",
        "linked file": "file.jsonl",
    }[way]
    write = f'write (rel, "{path}" : out)'
    statement = write if purpose == "write" else f'read ("{path}" : all) minus (all, rel : out)'
    with pytest.raises(RunError) as caught:
        run(statement, rel=rows((2,), schema="n"))
    assert (
        f"cannot {purpose} '{path}': it leads out of the folder of the plan; if it is meant, write "
        in str(caught.value)
    )
    assert f"allow = ['{outside}'] under [files] in aioflow.toml" in str(caught.value)
    assert (outside / "a.jsonl").read_text() == '{"n": 1}\n'
    run_allowing(outside, statement, rel=rows((2,), schema="n"))
    assert (outside / "a.jsonl").read_text() == ('{"n": 2}\n' if purpose == "write" else '{"n": 1}\n')
    assert (inside / "file.jsonl").is_symlink()


def test_links_and_detours_within_the_folder_are_fine(folder: Path) -> None:
    (folder / "real").mkdir()
    (folder / "linked").symlink_to(folder / "real")
    run('write (rel, "linked/../real/a.jsonl" : out)', rel=rows((1,), schema="n"))
    assert out(f'read ("{folder}/linked/a.jsonl" : out)') == [(1,)]


def test_a_path_with_a_nul_is_refused_in_words() -> None:
    text = plan("write (rel, $path : out) {FORMAT: csv}", ["rel"]).replace("OUTPUT", "PARAM: path OUTPUT")
    with pytest.raises(RunError, match=r"cannot write 'a\\x00b': a path has no NUL"):
        run_plan(text, parameters={"path": "a\0b"}, rel=rows((1,)))


# --- JSON arrays --------------------------------------------------------------------------------


def test_json_is_one_array(folder: Path) -> None:
    run('write (rel, "a.json" : out)', rel=ALL_KINDS)
    assert json.loads((folder / "a.json").read_text())[0]["j"] == {"deep": [1]}
    run('write (rel, "b.json" : out)', rel=rows((1,), (2,), schema="n"))
    assert (folder / "b.json").read_text() == '[\n{"n": 1},\n{"n": 2}\n]\n'
    assert out('read ("b.json" : out)') == [(1,), (2,)]


@pytest.mark.parametrize("rel", [[], rows(schema="n")])
def test_json_of_no_tuples_is_an_empty_array(folder: Path, rel: Any) -> None:
    run('write (rel, "a.json" : out)', rel=rel)
    assert (folder / "a.json").read_text() == "[]\n"
    assert out('read ("a.json" : out)') == []


def test_a_json_file_cannot_be_appended_to() -> None:
    with pytest.raises(PlanError, match="files in the format json cannot be appended to; jsonl and csv can"):
        run('write (rel, "a.json" : out) {APPEND}', rel=rows((1,)))


JSON_TEXTS = st.lists(
    st.dictionaries(st.just("a"), st.recursive(st.text() | st.integers(), st.lists), min_size=1)
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(JSON_TEXTS, st.integers(1, 9), st.sampled_from([None, 1]))
def test_a_json_array_is_found_however_it_is_cut(
    objects: list[dict[str, Any]], size: int, indent: int | None
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_formats, "_CHUNK_BYTES", size)
        patch.setattr(text_formats, "_SHORT_CHARACTERS", 8)
        Path("a.json").write_text(json.dumps(objects, indent=indent))
        found = out('read ("a.json" : out) {TYPES: "a char"}')
        assert len(found) == len(objects)
        # Objects one after the other, as others write them.
        Path("a.json").write_text("\n".join(json.dumps(each, indent=indent) for each in objects))
        assert out('read ("a.json" : out) {TYPES: "a char"}') == found


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'[{"a": 1}, {"a": }]', "a.json, row 2: not JSON: Expecting value"),
        (b'[{"a": 1}' + b" " * 100, "a.json, row 2: the array does not end"),
        (b'[{"a": 1}, {"a": "', "a.json, row 2: not JSON: Unterminated string"),
        (b'[{"a": 1},]', "a.json, row 2: expected a JSON object, found ]"),
        (b'[{"a": 1} {"a": 2}]', "a.json, row 2: expected ',' or ']', found '{'"),
        (b"[1]", "a.json, row 1: expected a JSON object, found 1]"),
        (b'[{"a": 1}] x', "a.json, row 2: found 'x' after the end of the array"),
        (b'[{"a": "\xff"}]', "a.json: not UTF-8 text: byte 0xff"),
        (b'[{"a": 1}, {"a": "x"}]', "a.json, row 2: attribute 'a': 'x' is not a number"),
        (b'[{"a": ' + b"[" * 100_000, "a.json, row 1: not JSON: "),
    ],
)
def test_errors_in_json_name_the_row(folder: Path, content: bytes, message: str) -> None:
    (folder / "a.json").write_bytes(content)
    with pytest.raises(RunError) as caught:
        run('read ("a.json" : out) {TYPES: "a number"}')
    assert message in str(caught.value)


# --- formats as plug-ins ------------------------------------------------------------------------


class Lengths:
    """Writes how many tuples there are; cannot be appended to."""

    def __init__(self, file: BinaryIO, schema: Schema, beginning: bytes) -> None:
        self._file = file
        self._count = 0

    def write(self, batch: Batch) -> None:
        self._count += len(batch)

    def end(self) -> None:
        self._file.write(str(self._count).encode())


def read_length(file: BinaryIO, name: str, types: Any) -> Iterator[Schema | Batch]:
    yield Schema(("count",))
    yield [(int(file.read()),)]


LENGTH = Format("length", (".length",), read_length, Lengths, appends=False)


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Formats]:
    """Formats as if a package with an entry point were installed."""
    entry_point = EntryPoint("length", f"{__name__}:LENGTH", "aioflow.formats")
    monkeypatch.setattr(EntryPoint, "load", lambda self: LENGTH)
    monkeypatch.setattr(formats_module, "installed", lambda group: [entry_point])
    monkeypatch.setattr(formats_module.formats, "_is_loaded", False)
    yield formats_module.formats
    formats_module.formats._formats.pop("length", None)


@pytest.mark.usefixtures("installed")
def test_a_package_may_add_a_format(folder: Path) -> None:
    run('write (rel, "a.length" : out)', rel=rows((1,), (2,)))
    assert (folder / "a.length").read_text() == "2"
    assert out('read ("a.length" : out)') == [(2,)]


@pytest.mark.usefixtures("installed")
def test_a_format_that_cannot_append_says_so() -> None:
    with pytest.raises(PlanError, match="files in the format length cannot be appended to"):
        run('write (rel, "a.length" : out) {APPEND}', rel=rows((1,)))


def test_formats_that_are_being_loaded_are_waited_for_on_other_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = formats_module.formats.get("jsonl")
    assert known is not None
    begun, goes_on = threading.Event(), threading.Event()

    def slow(group: str) -> tuple[()]:
        begun.set()
        assert goes_on.wait(30)
        return ()

    monkeypatch.setattr("aioflow.operators.formats._LIBRARY", ())
    monkeypatch.setattr("aioflow.operators.formats.installed", slow)
    late = Formats()
    found: list[Format | None] = []
    loader = threading.Thread(target=late.names)
    loader.start()
    assert begun.wait(30)
    other = threading.Thread(target=lambda: found.append(late.get("jsonl")))
    other.start()
    other.join(0.2)  # a thread that does not wait has its answer by now
    late.add(known)
    goes_on.set()
    loader.join()
    other.join()
    assert found == [known]
