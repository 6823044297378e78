"""The built distributions: what is in them, and that a plan runs where only the wheel is installed."""

import json
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

# In one process, so that everything is built and installed once.
pytestmark = pytest.mark.xdist_group("packaging")

ROOT = Path(__file__).parents[1]
SHIPPED = {
    "aioflow": "aioflow",
    "operators": "aioflow/operators",
    "plans": "aioflow/plans",
}

PLAN = """
PLAN evens {
  INPUT: numbers
  OUTPUT: out
  BODY { select (numbers, "n % 2 = 0" : out) }
}
"""
NUMBERS = [{"n": 1}, {"n": 2}, {"n": 3}, {"n": 4}]


@dataclass(frozen=True)
class Distributions:
    """The files a release consists of, and the wheel that somebody else builds from its sdist."""

    sdist: Path
    wheel: Path
    wheel_from_sdist: Path


def run(*command: str | Path, cwd: Path) -> str:
    # Nothing of this checkout may reach the new process by way of the environment.
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))
    }
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def build(kind: str, source: Path, target: Path) -> Path:
    run(
        sys.executable,
        "-m",
        "build",
        "--no-isolation",
        f"--{kind}",
        "--outdir",
        target,
        source,
        cwd=target.parent,
    )
    (built,) = target.iterdir()
    return built


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Distributions:
    folder = tmp_path_factory.mktemp("distributions")
    sdist = build("sdist", ROOT, folder / "sdist")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder / "unpacked", filter="data")
    (unpacked,) = (folder / "unpacked").iterdir()
    return Distributions(
        sdist, build("wheel", ROOT, folder / "wheel"), build("wheel", unpacked, folder / "wheel-from-sdist")
    )


@pytest.fixture(scope="module")
def clean_python(distributions: Distributions, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter whose environment holds the wheel and what it requires, nothing else."""
    folder = tmp_path_factory.mktemp("clean")
    run(sys.executable, "-m", "venv", "--without-pip", folder / "venv", cwd=folder)
    python = folder / "venv" / "bin" / "python"
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--disable-pip-version-check",
        "--python",
        str(python),
        "install",
        "--quiet",
    ]
    run(*pip, "--constraint", ROOT / "constraints.txt", distributions.wheel_from_sdist, cwd=folder)
    return python


def shipped_files() -> set[str]:
    """The names in a wheel of all the files under the folders that are shipped; links are not followed."""
    names = set()
    for folder, name in SHIPPED.items():
        for path in (ROOT / folder).rglob("*"):
            inside = path.relative_to(ROOT / folder)
            linked = folder == "aioflow" and inside.parts[0] in ("benchmarks", "operators", "plans")
            if path.is_file() and not linked and "__pycache__" not in inside.parts:
                names.add(f"{name}/{inside.as_posix()}")
    return names


def names_in(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return [name for name in archive.namelist() if ".dist-info/" not in name]


@pytest.mark.parametrize("which", ["wheel", "wheel_from_sdist"])
def test_a_wheel_holds_every_shipped_file_once(distributions: Distributions, which: str) -> None:
    names = names_in(getattr(distributions, which))
    assert sorted(names) == sorted(shipped_files())
    assert "aioflow/operators/__init__.py" in names
    assert any(name.startswith("aioflow/plans/") for name in names)
    assert not [name for name in names if "benchmarks" in name]


def test_the_sdist_holds_the_real_folders_and_no_links(distributions: Distributions) -> None:
    with tarfile.open(distributions.sdist) as archive:
        members = archive.getmembers()
    names = [member.name.partition("/")[2] for member in members]
    assert "operators/__init__.py" in names
    assert not [name for name in names if name.startswith(("aioflow/operators", "aioflow/plans"))]
    assert not [name for name in names if "benchmarks" in name]
    assert not [member.name for member in members if member.issym() or member.islnk()]
    assert len(names) == len(set(names))


def test_the_installed_wheel_is_not_the_checkout(clean_python: Path, tmp_path: Path) -> None:
    script = "import aioflow.operators as o, aioflow.version as v; print(o.__file__, v.__version__)"
    file, version = run(clean_python, "-c", script, cwd=tmp_path).split()
    assert Path(file).is_relative_to(clean_python.parents[1])
    assert run(clean_python.parent / "aioflow", "--version", cwd=tmp_path).split()[-1] == version


def test_a_plan_runs_where_only_the_wheel_is_installed(clean_python: Path, tmp_path: Path) -> None:
    (tmp_path / "evens.plan").write_text(PLAN)
    arguments = ["run", "evens.plan", "--input", f"numbers={json.dumps(NUMBERS)}", "--format", "jsonl"]
    output = run(clean_python, "-m", "aioflow", *arguments, cwd=tmp_path)
    assert [json.loads(line) for line in output.splitlines()] == [{"n": 2}, {"n": 4}]


def test_the_installed_wheel_says_that_benchmarks_need_a_checkout(clean_python: Path, tmp_path: Path) -> None:
    command = [str(clean_python), "-m", "aioflow", "bench", "list"]
    done = subprocess.run(command, cwd=tmp_path, env={}, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "benchmarks run from a checkout of the sources" in done.stderr


def test_every_optional_library_is_used() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    libraries = {
        (extra, re.split(r"[<>=;\[ ]", requirement)[0])
        for extra, requirements in project["optional-dependencies"].items()
        if extra != "dev"
        for requirement in requirements
    }
    imported = {
        "fast-sugiyama": "fast_sugiyama",
        "opentelemetry-api": "opentelemetry",
        "prometheus-client": "prometheus_client",
    }
    files = [
        path for folder in ("aioflow", "benchmarks", "operators") for path in (ROOT / folder).rglob("*.py")
    ]
    sources = "\n".join(path.read_text(encoding="utf-8") for path in files)
    unused = [
        (extra, library)
        for extra, library in sorted(libraries)
        if not re.search(rf"(?:import|from) {imported.get(library, library)}\b", sources)
    ]
    assert unused == []
