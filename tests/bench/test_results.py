"""Results in files: what is written is read again, and other files are refused in words."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aioflow.benchmarks.harness.results import FORMAT, load, save
from aioflow.errors import InputError
from tests.bench.made_up import made_up_results


def test_results_are_read_as_they_were_written(tmp_path: Path) -> None:
    results = made_up_results()
    save(results, tmp_path / "results.json")
    assert load(tmp_path / "results.json") == results
    assert [path.name for path in tmp_path.iterdir()] == ["results.json"]


def written(tmp_path: Path, **changes: Any) -> Path:
    path = tmp_path / "results.json"
    save(made_up_results(), path)
    found = json.loads(path.read_text())
    path.write_text(json.dumps(found | changes))
    return path


def test_what_an_older_format_did_not_have_takes_its_default(tmp_path: Path) -> None:
    path = written(tmp_path)
    found = json.loads(path.read_text())
    del found["dirty"], found["findings"][0]["failure"], found["findings"][0]["samples"][0]["figure"]
    found["added later"] = True
    path.write_text(json.dumps(found))
    assert load(path).findings[0].samples[0].figure == ""


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"has format {FORMAT + 1}, which a newer aioflow wrote"):
        load(written(tmp_path, format=FORMAT + 1))


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"{}", "holds no results of aioflow bench"),
        (b"[1, 2]", "holds no results of aioflow bench"),
        (b'{"format": 1,\n"fin', "line 2 is no JSON"),
        (b"\xff\xfe\x00", "holds no results of aioflow bench"),
        (b"", "line 1 is no JSON"),
    ],
)
def test_a_foreign_file_is_refused(tmp_path: Path, content: bytes, told: str) -> None:
    path = tmp_path / "other.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match=told):
        load(path)


@pytest.mark.parametrize(
    "changes", [{"findings": 3}, {"findings": [{}]}, {"findings": [{"samples": [{"values": ["fast"]}]}]}]
)
def test_a_file_that_was_changed_by_hand_is_refused_in_words(tmp_path: Path, changes: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="does not hold together"):
        load(written(tmp_path, **changes))


def test_a_missing_file_and_a_missing_folder_are_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot read .*no such file"):
        load(tmp_path / "missing.json")
    with pytest.raises(InputError, match=r"cannot write .*no such file"):
        save(made_up_results(), tmp_path / "missing" / "results.json")


def test_a_figure_that_is_none_never_gets_into_a_file(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    save(made_up_results(), path)
    before = path.read_text()
    with pytest.raises(ValueError, match="Out of range"):
        save(replace(made_up_results(), machine={"cores": float("nan")}), path)
    assert path.read_text() == before
