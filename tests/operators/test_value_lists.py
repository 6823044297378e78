"""Lists of values, as `all` and `list` give them, in whatever is written of them."""

from __future__ import annotations

import json
import pickle
import sqlite3
from pathlib import Path

import pytest

from aioflow import Relation
from aioflow.cli.output.formats import present
from aioflow.messages.content.attachments import FileKind, ValueEncoding, make_file
from aioflow.messages.content.short_text import ShortText
from aioflow.messages.content.tables import value_text
from aioflow.messages.content.templates import BodyTemplate
from aioflow.relation import Record, Schema
from aioflow.values.cells import cell, json_text
from aioflow.values.json import decode_json, encode_json
from tests.operators.running import NO_MEMORY, out, run

TAGS = Relation.of_values(["One", None, 2])
GATHERED = 'aggregate (rel, "list(tag) as tags" : out) {RELATION: false}'


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("memory", [NO_MEMORY, 1 << 20])
def test_files_have_a_json_list_of_values(folder: Path, memory: int) -> None:
    rel = [{"tag": "One"}, {"tag": "Two"}]
    gathered = GATHERED.replace(": out", ": all")
    run(f'{gathered} write (all, "a.jsonl" : out)', rel=rel, memory_bytes=memory)
    assert (folder / "a.jsonl").read_text() == '{"tags": ["One", "Two"]}\n'
    run(f'{gathered} write (all, "a.csv" : out)', rel=rel, memory_bytes=memory)
    assert (folder / "a.csv").read_text() == 'tags\n"[""One"", ""Two""]"\n'


def test_a_list_is_read_back_as_one(folder: Path) -> None:
    run('write (rel, "a.csv" : out)', rel=[{"tags": TAGS}])
    [(tags,)] = out('read ("a.csv" : out) {TYPES: "tags relation"}')
    assert (tags, tags.is_list) == (TAGS, True)


def test_a_list_within_a_relation_is_a_list_too() -> None:
    relation = Relation(Schema.of("tags"), [(TAGS,)])
    assert json_text(relation) == '[{"tags": ["One", null, 2]}]'
    assert json_text(Relation.of_values([TAGS])) == '[["One", null, 2]]'


def test_output_of_the_command_line_has_a_json_list() -> None:
    record = Record(Schema.of("tags"), (TAGS,))
    assert present("jsonl", several_outputs=False).rows("o", [record]) == b'{"tags": ["One", null, 2]}\n'
    table = present("table", several_outputs=False)
    table.rows("o", [record])
    assert table.end().decode().splitlines()[-1] == '["One", null, 2]'


def test_attachments_have_lists_of_values() -> None:
    kinds: tuple[FileKind, ...] = ("csv", "json", "xml")
    encoding, schema = ValueEncoding(cell, json_text), Schema.of("tags")
    files = {kind: make_file(kind, "x", schema, [[(TAGS,)]], encoding, 1000).data.decode() for kind in kinds}
    assert json.loads(files["json"]) == [{"tags": ["One", None, 2]}]
    assert '"[""One"", null, 2]"' in files["csv"]
    assert "<tags><value>One</value><value></value><value>2</value></tags>" in files["xml"]


def test_messages_show_the_values() -> None:
    assert value_text(Relation.of_values(["a", "b"])) == "a, b"
    schema = Schema.of("tags")
    template = BodyTemplate("{% for tag in tags %}<{{ tag }}>{% endfor %} {{ tags }} {{ tags[1] }}", schema)
    assert ShortText(template).of_row(schema, (Relation.of_values(["a", "b"]),)) == "<a><b> a, b b"


def test_a_database_keeps_the_list(folder: Path) -> None:
    stored = 'dbappend (rel, "t" : stored) dbquery ("select * from t" : out) {WAIT: stored}'
    [(tags,)] = out(stored, rel=[{"tags": TAGS}])
    assert (tags, tags.is_list) == (TAGS, True)
    connection = sqlite3.connect(folder / "aioflow.db")
    assert connection.execute("select json_extract(tags, '$[0]') from t").fetchall() == [("One",)]
    connection.close()


def test_a_list_in_a_value_of_several_types_comes_back_as_one() -> None:
    found = decode_json(encode_json(Relation(Schema.of("tags"), [(TAGS,)])))
    [(tags,)] = found.rows
    assert (tags, tags.is_list) == (TAGS, True)
    assert encode_json(TAGS) == '{"$list":["One",null,2]}'


def test_a_list_stays_one_on_disk() -> None:
    found = pickle.loads(pickle.dumps(TAGS))
    assert (found, found.is_list) == (TAGS, True)


def test_a_packed_relation_of_one_attribute_is_no_list() -> None:
    [(packed,)] = out('pack (rel, "p" : out)', rel=[{"value": 1}])
    assert json_text(packed) == '[{"value": 1}]'
