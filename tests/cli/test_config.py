"""Settings from command line, environment and files."""

from pathlib import Path

import pytest

from aioflow.cli.config import effective_settings
from aioflow.errors import InputError


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("OPS", "WORKERS", "CAPACITY", "MEMORY", "MODE"):
        monkeypatch.delenv(f"AIOFLOW_{name}", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_nothing_set_leaves_everything_to_the_engine() -> None:
    settings = effective_settings({"workers": None, "ops": None})
    assert settings.engine_arguments() == {}
    assert settings.ops == ()


def test_the_command_line_wins_over_environment_over_both_files(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "pyproject.toml").write_text(
        '[tool.aioflow]\nworkers = 1\ncapacity = 1\nmemory = "1MB"\nmode = "D-"\n'
    )
    (folder / "aioflow.toml").write_text('workers = 2\ncapacity = 2\nmemory = "2MB"\n')
    monkeypatch.setenv("AIOFLOW_WORKERS", "3")
    monkeypatch.setenv("AIOFLOW_CAPACITY", "3")
    settings = effective_settings({"workers": 4})
    assert settings.engine_arguments() == {
        "workers": 4,
        "capacity_rows": 3,
        "memory_bytes": 2_000_000,
        "mode": "D-",
    }
    assert {name: origin.where for name, origin in settings.origins.items()} == {
        "workers": "--workers",
        "capacity": "AIOFLOW_CAPACITY",
        "memory": "aioflow.toml",
        "mode": "pyproject.toml [tool.aioflow]",
    }


def test_modules_of_operators_are_taken_from_everywhere(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "aioflow.toml").write_text('ops = ["files", "shared"]\n')
    monkeypatch.setenv("AIOFLOW_OPS", "environment, shared")
    assert effective_settings({"ops": ["mine"]}).ops == ("mine", "environment", "shared", "files")


def test_tables_are_left_to_the_services_they_belong_to(folder: Path) -> None:
    (folder / "aioflow.toml").write_text("workers = 2\n[databases]\nmain = 'sqlite:x'\n")
    assert effective_settings({}).get("workers") == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("worker = 2", r"aioflow.toml: unknown setting 'worker'; did you mean 'workers'\?"),
        ("workers = 0", "aioflow.toml: workers: must be a whole number of at least 1, not 0"),
        ("workers = true", "aioflow.toml: workers: must be a whole number of at least 1, not True"),
        ("ops = [1]", r"aioflow.toml: ops: must be a list of module names, not \[1\]"),
        ('memory = "much"', "aioflow.toml: memory: not an amount of memory: 'much'"),
        ('mode = "fast"', r"aioflow.toml: mode: must be one of D-, D\+S-, D\+S\+, not 'fast'"),
        ("workers = ", "aioflow.toml: Invalid value"),
    ],
)
def test_mistakes_in_a_file_name_it(folder: Path, text: str, message: str) -> None:
    (folder / "aioflow.toml").write_text(text)
    with pytest.raises(InputError, match=message):
        effective_settings({})


def test_a_mistake_in_the_environment_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIOFLOW_WORKERS", "many")
    with pytest.raises(
        InputError, match="AIOFLOW_WORKERS: workers: must be a whole number of at least 1, not 'many'"
    ):
        effective_settings({})
