"""What installed packages bring is found as importlib.metadata finds it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path
from zipfile import ZipFile

import pytest

from aioflow import installed as module
from aioflow.installed import EntryPoint, installed

TEXT = """# what it brings
[console_scripts]
made = made_up:main

[aioflow.operators]
first = made_up.operators
second = made_up:Outer.inner [extra]

[aioflow.items]
THING=made_up : THING
"""


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    module._all.cache_clear()
    yield
    module._all.cache_clear()


def package(folder: Path, name: str, text: str | None = TEXT) -> None:
    folder.mkdir(exist_ok=True)
    metadata = folder / name
    metadata.mkdir()
    (metadata / "METADATA").write_text("Name: made-up\nVersion: 1.0\n")
    if text is not None:
        (metadata / "entry_points.txt").write_text(text)


def found(group: str) -> list[tuple[str, str]]:
    return sorted((point.name, point.value) for point in installed(group))


def expected(group: str) -> list[tuple[str, str]]:
    return sorted((point.name, point.value) for point in entry_points(group=group))


GROUPS = ("channels", "databases", "formats", "items", "operators", "readers", "settings")


@pytest.mark.parametrize("group", GROUPS)
def test_all_that_is_installed_is_found(group: str) -> None:
    assert found(f"aioflow.{group}") == expected(f"aioflow.{group}")


def test_a_package_on_the_path_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package(tmp_path / "one", "made_up-1.0.dist-info")
    package(tmp_path / "one", "other-2.egg-info")
    package(tmp_path / "one", "without-3.dist-info", None)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path / "one"), str(tmp_path / "missing")])
    assert ("first", "made_up.operators") in found("aioflow.operators")
    assert found("aioflow.operators") == expected("aioflow.operators")
    assert found("aioflow.items") == expected("aioflow.items")


def test_of_a_package_that_is_there_twice_the_first_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package(tmp_path / "one", "made.up-2.0.dist-info", "[aioflow.operators]\nnewer = a\n")
    package(tmp_path / "two", "Made_up-1.0.dist-info", "[aioflow.operators]\nolder = a\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "one"), str(tmp_path / "two"), *sys.path])
    assert ("newer", "a") in found("aioflow.operators")
    assert found("aioflow.operators") == expected("aioflow.operators")


def test_packages_in_an_archive_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ZipFile(tmp_path / "packages.zip", "w") as archive:
        archive.writestr("made_up-1.0.dist-info/METADATA", "Name: made-up\nVersion: 1.0\n")
        archive.writestr("made_up-1.0.dist-info/entry_points.txt", TEXT)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path / "packages.zip")])
    assert ("first", "made_up.operators") in found("aioflow.operators")


def test_an_entry_point_gives_what_it_names() -> None:
    assert EntryPoint("a", "os.path", "").load() is __import__("os").path
    assert EntryPoint("a", "os : path.join [extra]", "").load() is __import__("os").path.join
    with pytest.raises(AttributeError, match="nothing"):
        EntryPoint("a", "os:nothing", "").load()
