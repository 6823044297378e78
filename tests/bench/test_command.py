"""`aioflow bench` as people use it: what it prints and writes, its exit status, and how it can be stopped."""

import importlib.util
import io
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from aioflow.benchmarks.harness import runner
from aioflow.benchmarks.harness.processes import ROOT
from aioflow.benchmarks.harness.progress import Progress
from aioflow.benchmarks.harness.results import Finding, load, save
from aioflow.cli.commands import bench as bench_command
from aioflow.cli.commands.bench import bench
from tests.bench.made_up import made_up_results
from tests.bench.packages import FAILING, HEADING, WORKING, package
from tests.clocks import PATIENCE_SECONDS

Run = Callable[..., Result]

MISSING_ITS_GOAL = WORKING.replace("at_most(0.6)", "at_most(0.1)").replace("working", "slow")
WAITING = """
@experiment("What if it never ends?", work="none")
def waiting(bench: Bench) -> None:
    import os, sys, threading
    from aioflow.benchmarks.harness.processes import run_process
    run_process(os.environ["SLEEPER"], os.environ["FIFO"])
"""
SLEEPER = """
import os, sys, threading
with open(sys.argv[1], "w") as pipe:
    pipe.write(str(os.getpid()))
threading.Event().wait()
"""
COMMAND = """
import sys
from aioflow.benchmarks.harness import runner
runner.PACKAGE = "stopped"
from aioflow.cli.commands.bench import bench
bench(prog_name="aioflow bench")
"""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)

    def invoke(*arguments: str) -> Result:
        return CliRunner().invoke(bench, arguments)

    return invoke


@pytest.fixture
def experiments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    modules = {"a": WORKING, "b": FAILING, "c": MISSING_ITS_GOAL}
    with package(tmp_path, "commanded", modules) as name:
        monkeypatch.setattr(runner, "PACKAGE", name)
        yield


def stored(folder: Path, name: str = "bench-results.json") -> list[str]:
    return [finding.name for finding in load(folder / name).findings]


# --- running ------------------------------------------------------------------------------------


@pytest.mark.usefixtures("experiments")
def test_names_are_experiments_and_their_figures_are_printed_and_kept(run: Run, tmp_path: Path) -> None:
    done = run("working")
    assert done.exit_code == 0
    assert "1 of 1 goals reached" in done.stdout
    assert "at most 0.60× │ ✓ reached" in done.stdout
    assert "working: round 1 of 5" in done.stderr
    assert "the results are in bench-results.json" in done.stderr
    assert stored(tmp_path) == ["working"]


@pytest.mark.usefixtures("experiments")
def test_all_run_without_a_name_and_a_failure_shows_in_the_status(run: Run, tmp_path: Path) -> None:
    done = run("-o", "all.json", "--quick")
    assert done.exit_code == 1
    assert "error: failing failed: ValueError: it fails" in done.stderr
    assert stored(tmp_path, "all.json") == ["working", "failing", "slow"]


@pytest.mark.usefixtures("experiments")
def test_a_missed_goal_shows_in_the_status_unless_the_run_is_quick(run: Run) -> None:
    missed, quick = run("slow"), run("slow", "--quick")
    assert (missed.exit_code, quick.exit_code) == (1, 0)
    assert "✗ missed" in missed.stdout
    assert "a quick run: these figures mean little" in quick.stdout


@pytest.mark.usefixtures("experiments")
@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("wroking",), "there is no experiment 'wroking'; did you mean 'working'?"),
        (("working", "-o", "missing/results.json"), "there is no folder missing for results.json"),
        (("working", "-o", "."), "is a folder; -o takes a file"),
        (("working", "--profile", "-o", "x.json"), "--profile keeps no results"),
        (("report", "missing.json"), "cannot read missing.json: no such file"),
        (("report", "commanded/a.py"), "holds no results of aioflow bench"),
        (("compare", "missing.json", "other.json"), "cannot read missing.json"),
    ],
)
def test_wrong_names_and_files_are_told_in_one_line(run: Run, arguments: tuple[str, ...], told: str) -> None:
    done = run(*arguments)
    assert done.exit_code == 2
    assert told in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.usefixtures("experiments")
def test_the_list_has_names_and_questions(run: Run) -> None:
    done = run("list")
    assert done.exit_code == 0
    assert "working" in done.stdout
    assert "How long does it take?" in done.stdout


def test_help_names_the_commands_and_the_way_to_run(run: Run) -> None:
    done = run("--help")
    assert done.exit_code == 0
    for word in ("[NAME…]", "--quick", "--profile", "list", "report", "compare"):
        assert word in done.stdout
    assert "hottest functions" in run("run", "--help").stdout


BUSY = """
@experiment("What is hot?", work="sums")
def hot(bench: Bench) -> None:
    from time import process_time
    end = process_time() + 0.3
    while process_time() < end:
        sum(i * i for i in range(500))
    bench.moved(1000)
"""


def test_a_profile_names_functions_and_their_cost_of_a_tuple(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with package(tmp_path, "profiled", {"a": BUSY}) as name:
        monkeypatch.setattr(runner, "PACKAGE", name)
        done = run("hot", "--profile")
    assert done.exit_code == 0
    assert "for 1,000 tuples" in done.stdout
    assert "µs a tuple" in done.stdout
    assert "profiled/a.py:" in done.stdout
    assert not (tmp_path / "bench-results.json").exists()


def test_a_profile_says_when_there_was_too_little_to_see(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    idle = "@experiment('Cold?', work='none')\ndef cold(bench): pass\n"
    with package(tmp_path, "unprofiled", {"a": idle}) as name:
        monkeypatch.setattr(runner, "PACKAGE", name)
        done = run("cold", "--profile", "--quick")
    assert done.exit_code == 0
    assert "note: cold computed too little to tell what is hot; a run that is not quick" in done.stderr


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_run_that_is_stopped_keeps_what_was_finished_and_ends_its_processes(
    tmp_path: Path, number: signal.Signals, status: int
) -> None:
    folder = tmp_path / "stopped"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "a.py").write_text(HEADING + WORKING)
    (folder / "b.py").write_text(HEADING + WAITING)
    (tmp_path / "sleeper.py").write_text(SLEEPER)
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(tmp_path)]),
        "SLEEPER": str(tmp_path / "sleeper.py"),
        "FIFO": str(fifo),
    }
    command = [sys.executable, "-c", COMMAND]
    process = subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True)
    sleeper = int(fifo.read_text())
    process.send_signal(number)
    _, said = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == status
    assert "1 experiment of 2 finished: what they found is in bench-results.json" in said
    assert "Traceback" not in said
    assert stored(tmp_path) == ["working"]
    with pytest.raises(ProcessLookupError):
        os.kill(sleeper, 0)


# --- where it runs ------------------------------------------------------------------------------


@pytest.fixture
def missing(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Have a package not found."""

    def hide(package: str) -> None:
        known = importlib.util.find_spec
        monkeypatch.setattr(bench_command, "find_spec", lambda name: None if name == package else known(name))

    return hide


@pytest.mark.parametrize("arguments", [("working",), ("list",), ("report",), ("compare", "a", "b")])
def test_an_installed_package_says_that_benchmarks_need_a_checkout(
    run: Run, missing: Callable[[str], None], arguments: tuple[str, ...]
) -> None:
    missing("aioflow.benchmarks")
    done = run(*arguments)
    assert done.exit_code == 2
    assert "benchmarks run from a checkout of the sources" in done.stderr
    assert "make bench" in done.stderr


@pytest.mark.parametrize("package", ["scipy", "matplotlib"])
def test_a_checkout_without_the_extra_says_so(run: Run, missing: Callable[[str], None], package: str) -> None:
    missing(package)
    done = run("list")
    assert done.exit_code == 2
    assert "aioflow bench needs an optional package: pip install 'aioflow[bench]'" in done.stderr


@pytest.mark.parametrize(
    "code",
    [
        "import aioflow.cli.app",  # as for `aioflow --help`
        "import aioflow.benchmarks.memory, aioflow.benchmarks.web_jobs",  # in processes that are measured
        "from aioflow.benchmarks.harness.runner import load_experiments; load_experiments()",
    ],
)
def test_neither_scipy_nor_matplotlib_is_loaded_where_nothing_is_reported(code: str) -> None:
    heavy = "{'numpy', 'scipy', 'matplotlib'} & set(sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print(sorted({heavy}))"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[]\n"


def test_the_commands_do_not_load_the_harness() -> None:
    code = "import sys, aioflow.cli.app; print([name for name in sys.modules if 'benchmarks' in name])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


# --- reading results ----------------------------------------------------------------------------


@pytest.fixture
def results(tmp_path: Path) -> Path:
    path = tmp_path / "bench-results.json"
    save(made_up_results(), path)
    return path


@pytest.mark.usefixtures("results")
def test_a_report_is_one_page(run: Run, tmp_path: Path) -> None:
    done = run("report")
    assert done.exit_code == 0
    assert "the report is in bench-report.html" in done.stderr
    assert (tmp_path / "bench-report.html").read_text().startswith("<!doctype html>")


@pytest.mark.usefixtures("results")
@pytest.mark.parametrize("arguments", [("--format", "markdown"), ("-o", "bench-report.md")])
def test_a_report_as_markdown_has_its_drawings_beside_it(
    run: Run, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    assert run("report", *arguments).exit_code == 0
    text = (tmp_path / "bench-report.md").read_text()
    drawings = sorted(path.name for path in (tmp_path / "bench-report-plots").iterdir())
    assert len(drawings) > 5
    assert all(f"(bench-report-plots/{name})" in text for name in drawings)


@pytest.mark.usefixtures("results")
def test_a_report_can_go_to_stdout(run: Run, tmp_path: Path) -> None:
    done = run("report", "-o", "-", "--format", "markdown")
    assert done.stdout.startswith("# Benchmarks\n")
    assert [path.name for path in tmp_path.iterdir()] == ["bench-results.json"]


def test_a_comparison_shows_what_changed_and_fails_when_something_became_slower(
    run: Run, tmp_path: Path, results: Path
) -> None:
    before = load(results)
    slower = [
        replace(each, values=tuple(value * 1.2 for value in each.values))
        if each.name == "D+S+, last tuple"
        else each
        for each in before.findings[0].samples
    ]
    finding = replace(before.findings[0], samples=tuple(slower))
    save(replace(before, findings=(finding, *before.findings[1:])), tmp_path / "after.json")
    done = run("compare", "bench-results.json", "after.json")
    assert done.exit_code == 1
    assert "22 figures compared, 1 changed significantly" in done.stdout
    assert "✗ slower" in done.stdout
    assert "D-, last tuple" not in done.stdout
    assert "D-, last tuple" in run("compare", "bench-results.json", "after.json", "--all").stdout
    better = run("compare", "after.json", "bench-results.json")
    assert (better.exit_code, "✓ faster" in better.stdout) == (0, True)


def test_a_quick_run_is_compared_with_a_full_one_only_by_force(
    run: Run, tmp_path: Path, results: Path
) -> None:
    save(replace(load(results), quick=True), tmp_path / "quick.json")
    refused = run("compare", "bench-results.json", "quick.json")
    assert refused.exit_code == 2
    assert "one run is quick and the other is full" in refused.stderr
    forced = run("compare", "bench-results.json", "quick.json", "--force")
    assert forced.exit_code == 0
    assert "warning: one run is quick" in forced.stderr


def test_a_comparison_warns_of_disturbed_runs(run: Run, tmp_path: Path, results: Path) -> None:
    before = load(results)
    busy = replace(before.findings[0], conditions={"others_share": 0.5})
    save(replace(before, findings=(busy, *before.findings[1:])), tmp_path / "after.json")
    done = run("compare", "bench-results.json", "after.json")
    assert "warning: after.json: Other programs took more than 10%" in done.stderr
    assert "bench-results.json: Other" not in done.stderr


def test_a_comparison_warns_of_experiments_that_were_changed(run: Run, tmp_path: Path, results: Path) -> None:
    before = load(results)
    first = before.findings[0]
    save(
        replace(before, findings=(replace(first, work="more"), *before.findings[1:])), tmp_path / "after.json"
    )
    warning = "warning: not the same work before and after"
    assert f"{warning}: {first.name}\n" in run("compare", "bench-results.json", "after.json").stderr
    assert warning not in run("compare", "after.json", "after.json").stderr


# --- progress -----------------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def progress_on(file: io.StringIO) -> str:
    ended, failed = (
        Finding("one", "", "", "", 1, seconds=3),
        Finding("two", "", "", "", 1, failure="no\nluck"),
    )
    with Progress(["one", "two"], file) as progress:
        progress.told("one", "round 1 of 3")
        progress.ended(ended)
        progress.told("two", "begins")
        progress.ended(failed)
    return file.getvalue()


def test_progress_is_plain_lines_where_there_is_no_terminal() -> None:
    assert progress_on(io.StringIO()) == "one: round 1 of 3\ntwo: begins\n"


def test_progress_on_a_terminal_is_one_line_and_what_ended_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    shown = progress_on(Terminal())
    assert "1/2 one  round 1 of 3" in shown
    assert "✓" in shown
    assert "no" in shown
    assert "luck" not in shown
