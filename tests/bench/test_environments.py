"""Environments that a benchmark makes for what it compares with; nothing is fetched."""

import subprocess
import zipfile
from pathlib import Path

import pytest

from aioflow.benchmarks.harness import environments
from aioflow.benchmarks.harness.environments import EnvironmentMissingError, environment_with


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Where they are made; pip asks nobody."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setattr(environments, "environments_folder", lambda: tmp_path / "environments")
    return tmp_path / "environments"


def wheel(folder: Path, version: str) -> str:
    """A package of one module."""
    path = folder / f"made_up-{version}-py3-none-any.whl"
    info = f"made_up-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("made_up.py", f"version = {version!r}\n")
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: made-up\nVersion: {version}\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return str(path)


def test_an_environment_has_what_is_required_and_is_made_anew_for_something_else(tmp_path: Path) -> None:
    first = environment_with("made-up", wheel(tmp_path, "1.0"), may_install=True)
    assert first.versions == {"made-up": "1.0"}
    imported = [first.python, "-c", "import made_up; print(made_up.version)"]
    assert subprocess.run(imported, capture_output=True, text=True, check=True).stdout == "1.0\n"
    assert environment_with("made-up", wheel(tmp_path, "1.0"), may_install=False) == first
    second = environment_with("made-up", wheel(tmp_path, "2.0"), may_install=True)
    assert second.versions == {"made-up": "2.0"}


def test_nothing_is_installed_unasked(folder: Path) -> None:
    with pytest.raises(EnvironmentMissingError, match="only a run that is not quick installs it"):
        environment_with("made-up", "made-up==1.0", may_install=False)
    assert not folder.exists()


def test_what_cannot_be_installed_says_why_and_leaves_nothing(folder: Path) -> None:
    with pytest.raises(EnvironmentMissingError, match=r"No matching distribution found for made-up==3\.0"):
        environment_with("made-up", "made-up==3.0", may_install=True)
    assert not list(folder.iterdir())


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("ERROR: no wheel at https://packages.example/simple/x.whl\n[notice] a new pip", "no wheel at …"),
        ("ERROR: [Errno 28] No space left: '/home/somebody/x'", "[Errno 28] No space left: '…'"),
        ("Pool(host='packages.example', port=443) failed", "Pool(host=…, port=443) failed"),
        ("", "no more is known"),
    ],
)
def test_neither_hosts_nor_paths_of_this_machine_are_told(said: str, told: str) -> None:
    assert environments._reason(OSError(said)) == told
