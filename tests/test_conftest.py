"""The rules that conftest.py adds to pytest, proved by runs of pytest on small files."""

import os
import subprocess
import sys
from pathlib import Path

CONFTEST = Path(__file__).with_name("conftest.py")

LEAVES_A_TASK = """
import asyncio

async def test_it():
    global task
    task = asyncio.create_task(asyncio.sleep(60), name="forgotten")
"""

SKIPS = {
    "mark": "@pytest.mark.skip(reason='no browser')\ndef test_it(): pass\n",
    "condition": "@pytest.mark.skipif(True, reason='no browser')\ndef test_it(): pass\n",
    "call": "def test_it(): pytest.skip('no browser')\n",
    "async_call": "async def test_it(): pytest.skip('no browser')\n",
    "fixture": "@pytest.fixture\ndef browser(): pytest.skip('no browser')\ndef test_it(browser): pass\n",
    "module": "pytest.skip('no browser', allow_module_level=True)\n",
}


def outcome(folder: Path, sources: dict[str, str], *, all_tests: bool = False) -> tuple[int, str]:
    """Run pytest on the sources alone; return its exit code and output."""
    (folder / "conftest.py").write_text(CONFTEST.read_text())
    for name, source in sources.items():
        (folder / f"test_{name}.py").write_text("import pytest\n" + source)
    environment = {key: value for key, value in os.environ.items() if key != "AIOFLOW_TEST_ALL"}
    environment |= {"PYTEST_ADDOPTS": "", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    if all_tests:
        environment["AIOFLOW_TEST_ALL"] = "1"
    options = ["-q", "-rs", "-p", "no:cacheprovider", "--rootdir=.", "--continue-on-collection-errors"]
    command = [sys.executable, "-m", "pytest", *options]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_an_async_test_passes(tmp_path: Path) -> None:
    code, output = outcome(tmp_path, {"it": "async def test_it(tmp_path):\n    assert tmp_path.is_dir()\n"})
    assert code == 0, output
    assert "1 passed" in output


def test_an_async_test_fails(tmp_path: Path) -> None:
    code, output = outcome(tmp_path, {"it": "async def test_it():\n    assert 1 == 2\n"})
    assert code == 1, output
    assert "assert 1 == 2" in output


def test_a_task_left_running_fails_the_test(tmp_path: Path) -> None:
    code, output = outcome(tmp_path, {"it": LEAVES_A_TASK})
    assert code == 1, output
    assert "tasks left running" in output
    assert "forgotten" in output


def test_skips_are_listed_by_name_and_pass(tmp_path: Path) -> None:
    code, output = outcome(tmp_path, SKIPS | {"that_passes": "def test_it(): pass\n"})
    assert code == 0, output
    assert f"1 passed, {len(SKIPS)} skipped" in output
    assert all(f"test_{name}.py:" in output for name in SKIPS), output


def test_skips_fail_when_all_tests_must_run(tmp_path: Path) -> None:
    code, output = outcome(tmp_path, SKIPS, all_tests=True)
    assert code == 1, output
    assert "skipped in" not in output
    forbidden = [line for line in output.splitlines() if "AIOFLOW_TEST_ALL=1 forbids: " in line]
    for name in SKIPS:
        assert any(line.startswith(f"test_{name}.py") for line in forbidden), (name, output)


def test_an_expected_failure_is_no_skip(tmp_path: Path) -> None:
    source = "@pytest.mark.xfail(reason='known')\ndef test_it(): assert False\n"
    code, output = outcome(tmp_path, {"it": source}, all_tests=True)
    assert code == 0, output
    assert "1 xfailed" in output
