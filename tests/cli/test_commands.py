"""The other commands: check, fmt, graph, explain, ops, config, and what is common to all."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import aioflow as package
from aioflow.authoring import descriptor
from aioflow.cli.app import COMMANDS
from aioflow.cli.commands.explain import _COLUMNS
from tests.cli.conftest import PLANS, Ended
from tests.cli.program import ROOT, aioflow, environment

Command = Callable[..., Ended]


# --- common -------------------------------------------------------------------------------------


def test_the_version_is_told_without_loading_what_it_does_not_need(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "aioflow", "--version"],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (0, f"aioflow {package.__version__}\n")
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert loaded.isdisjoint({"typer", "rich", "lark", "pydantic", "aioflow.engine", "aioflow.language"})


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_has_what_each_says_of_itself(name: str, command: Command) -> None:
    _, about, *_ = " ".join(command(name, "--help").output.split()).partition(COMMANDS[name])
    assert about == COMMANDS[name]


def test_help_imports_no_command(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "aioflow", "--help"],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
    )
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "aioflow.cli.app" in loaded
    assert not [name for name in loaded if name.startswith("aioflow.cli.commands")]


def test_checking_a_plan_of_wrappers_imports_no_service_and_nothing_for_slow_requests(folder: Path) -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-X",
            "importtime",
            "-m",
            "aioflow",
            "check",
            str(ROOT / "plans/homeseekers/monitor.plan"),
        ],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
    )
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "aioflow.wrappers.language" in loaded
    unused = ("aioflow.service", "aioflow.hidden", "aioflow.restart", "aioflow.web.client", "aiohttp")
    assert not [name for name in loaded if name.startswith(unused)]


def test_the_version_is_an_option_among_others_too(command: Command) -> None:
    assert command("--version", "run") == Ended(0, f"aioflow {package.__version__}\n", "")


def test_help_lists_the_commands(command: Command) -> None:
    for arguments in (("--help",), ("-h",)):
        done = command(*arguments)
        assert done.code == 0
        names = re.findall(r"^  (\w+) ", done.output.partition("Commands:")[2], re.MULTILINE)
        assert names == [*COMMANDS]


def test_a_completion_script_is_made(folder: Path) -> None:
    done = aioflow(
        "--show-completion", "bash", cwd=folder, _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="true"
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "_AIOFLOW_COMPLETE=complete_bash" in done.stdout


def test_commands_and_options_are_completed(folder: Path) -> None:
    completing = {"_AIOFLOW_COMPLETE": "complete_bash", "COMP_CWORD": "1", "COMP_WORDS": "aioflow e"}
    assert aioflow(cwd=folder, **completing).stdout.split() == ["explain"]
    completing |= {"COMP_CWORD": "3", "COMP_WORDS": "aioflow run x.plan --mo"}
    assert aioflow(cwd=folder, **completing).stdout.split() == ["--mode"]


# --- check and fmt ------------------------------------------------------------------------------


def test_check_is_silent_about_a_good_plan(command: Command) -> None:
    assert command("check", "double.plan", "sides.plan") == Ended(0, "", "")


def test_check_reads_a_file_that_has_wrappers_only(command: Command, folder: Path) -> None:
    text = 'WRAPPER house ()\n{\n  GET: "http://example.org/"\n  title: "h1"\n}\n'
    (folder / "good.plan").write_text(text)
    (folder / "bad.plan").write_text(text.replace("h1", "h1["))
    (folder / "empty.plan").write_text("# nothing\n")
    assert command("check", "good.plan") == Ended(0, "", "")
    done = command("check", "bad.plan")
    assert (done.code, done.output) == (2, "")
    assert done.messages.startswith("bad.plan:4:")
    assert command("check", "empty.plan") == Ended(2, "", "error: empty.plan has no plan\n")


def test_check_reports_on_all_files(command: Command) -> None:
    done = command("check", "wrong.plan", "nowhere.txt", "double.plan")
    assert (done.code, done.output) == (2, "")
    assert "wrong.plan:7:5: unknown operator 'selct'" in done.messages
    assert done.messages.endswith("error: there is no file nowhere.txt\n")


def test_check_warns_and_is_content(folder: Path, command: Command) -> None:
    (folder / "unused.plan").write_text(
        PLANS["double.plan"].replace("BODY\n  {", 'BODY\n  {\n    select (numbers, "n > 1" : unused)')
    )
    done = command("check", "unused.plan")
    assert (done.code, done.output) == (0, "")
    assert re.match(r"unused\.plan:\d+:\d+: warning: .*unused", done.messages)


def test_check_speaks_json(command: Command) -> None:
    done = command("check", "--json", "wrong.plan", "nowhere.txt")
    found = [json.loads(line) for line in done.output.splitlines()]
    assert (done.code, done.messages) == (2, "")
    assert found[0] == {
        "file": "wrong.plan",
        "line": 7,
        "column": 5,
        "severity": "error",
        "message": "unknown operator 'selct'; did you mean 'select'?",
    }
    assert (found[-1]["file"], found[-1]["line"]) == ("nowhere.txt", None)


def test_fmt_formats_in_place_and_then_has_nothing_to_do(folder: Path, command: Command) -> None:
    untidy = (
        'plan  double{ input:numbers (n number)\noutput:doubled body{project(numbers,"n":doubled)}}  # end\n'
    )
    (folder / "untidy.plan").write_text(untidy)
    assert command("fmt", "untidy.plan") == Ended(0, "", "")
    tidy = (folder / "untidy.plan").read_text()
    assert '    project (numbers, "n" : doubled)\n' in tidy
    assert "# end" in tidy
    assert command("fmt", "--check", "untidy.plan") == Ended(0, "", "")


def test_fmt_check_shows_the_difference_and_changes_nothing(folder: Path, command: Command) -> None:
    (folder / "untidy.plan").write_text(PLANS["double.plan"].replace("project (numbers", "project(numbers"))
    before = (folder / "untidy.plan").read_text()
    done = command("fmt", "--check", "untidy.plan")
    assert (done.code, done.messages) == (1, "")
    assert '-    project(numbers, "n, n * 2 as twice" : doubled)\n' in done.output
    assert '+    project (numbers, "n, n * 2 as twice" : doubled)\n' in done.output
    assert (folder / "untidy.plan").read_text() == before


def test_fmt_leaves_a_file_that_it_cannot_read(folder: Path, command: Command) -> None:
    (folder / "broken.plan").write_text("PLAN {")
    done = command("fmt", "broken.plan", "double.plan")
    assert (done.code, done.output) == (2, "")
    assert "broken.plan:1:6: expected a name after 'PLAN', found '{'\n" in done.messages
    assert (folder / "broken.plan").read_text() == "PLAN {"


def test_fmt_works_as_a_filter(folder: Path) -> None:
    done = aioflow("fmt", "-", cwd=folder, input=PLANS["double.plan"])
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("PLAN double\n{\n")


# --- graph, explain -----------------------------------------------------------------------------


def test_graph_draws_by_format_or_ending(folder: Path, command: Command) -> None:
    assert command("graph", "double.plan").output.startswith("flowchart TD\n")
    assert command("graph", "double.plan", "--format", "dot").output.startswith('digraph "double" {')
    assert command("graph", "double.plan", "-o", "double.svg") == Ended(0, "", "")
    assert (folder / "double.svg").read_text().startswith("<svg ")


def test_explain_tells_schemas_buffers_permits_and_tail_calls(folder: Path) -> None:
    arguments = ("houses.plan", "--ops", "functions", "--workers", "4", "--capacity", "9")
    done = aioflow("explain", *arguments, cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    text = done.stdout
    assert text.startswith(
        "mode D+S+ · 4 workers · queues of 9 rows · 32 MiB before disk\n\nPLAN houses · no effects\n"
    )
    assert "          → page (page number, house char, next number) · 1 reader, 9 rows each\n" in text
    assert "fires for each tuple · up to 4 permits · goes first: leads into a recursive call" in text
    assert "tail call: results go straight to the outermost call" in text
    assert "PLAN follow · no effects · recursive\n" in text


def test_explain_analyze_runs_the_plan_and_tells_rows_and_waiting(folder: Path) -> None:
    arguments = ("houses.plan", "--ops", "functions", "--analyze", "-i", '{"page": 1}')
    done = aioflow("explain", *arguments, cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    summary, table = done.stdout.split("\n\n")[-2:]
    assert re.match(r"6 rows in \d\.\d\d s · first row after \d\.\d\d s · 4 calls · 0 rows spilled", summary)
    lines = table.splitlines()
    assert lines[0].strip() == "seconds waiting for"
    assert lines[1].split() == list(_COLUMNS)
    assert re.fullmatch(r" +7  apply \(houses\) +1 +1 +2 +0 +3( +\d\.\d{3}){3}", lines[2])


# --- ops, config --------------------------------------------------------------------------------


def test_ops_lists_operators_by_family(command: Command) -> None:
    done = command("ops")
    assert (done.code, done.messages) == (0, "")
    assert re.search(r"^relational$(?s:.)*^  join +Join the tuples", done.output, re.MULTILINE)


def test_ops_shows_the_reference_of_one(command: Command) -> None:
    done = command("ops", "JOIN")
    assert done.output.startswith(
        "join (left, right, on : out)\n\nJoin the tuples of two inputs that match.\n"
    )
    assert re.search(r"^  TYPE: …  .*one of inner, left", done.output, re.MULTILINE)


def test_ops_tells_which_inputs_must_be_whole(command: Command) -> None:
    lines = command("ops", "minus").output.splitlines()
    (lhs,), (rhs,) = ([line for line in lines if line.startswith(f"  {name}  ")] for name in ("lhs", "rhs"))
    assert rhs.endswith("(results are doubtful where it is partial)")
    assert "doubtful" not in lhs


def test_ops_shows_defaults_as_a_plan_would_write_them(command: Command) -> None:
    assert "(a time span such as 90s, 5m or 1h30m, default 24h)" in command("ops", "diff").output
    assert "ATTACH: …" in (mail := command("ops", "email").output)
    assert "default ()" not in mail


def test_ops_gives_descriptors_as_json(command: Command) -> None:
    every = json.loads(command("ops", "--json").output)
    described = {each["name"]: each for each in every}
    assert list(described) == sorted(described)
    join = described["join"]
    assert json.loads(command("ops", "JOIN", "--json").output) == join
    assert (join["package"], join["version"], join["author"]) == (
        "aioflow",
        package.__version__,
        "The aioflow authors",
    )
    assert join["entry_point"] == "aioflow.operators.relational:join"
    assert join["description"].startswith("Join the tuples of two inputs that match.")
    assert [each["name"] for each in join["inputs"]] == ["left", "right"]
    assert [each["name"] for each in join["settings"]] == ["on", "TYPE"]
    assert (join["outputs"], described["diff"]["outputs"]) == (["out"], ["added", "changed", "removed"])
    assert all(each["summary"] and each["outputs"] and each["entry_point"] for each in every)


def test_ops_gives_the_package_of_a_plug_in(command: Command, folder: Path, monkeypatch: Any) -> None:
    code = "from aioflow import Stream, operator\n\n@operator\nasync def plug{n}(rel: Stream):\n"
    code += '    """Pass everything."""\n    async for row in rel:\n        yield row\n'
    (folder / "plug_in_one").mkdir()
    (folder / "plug_in_one" / "__init__.py").write_text(code.format(n="_one"))
    metadata = folder / "plug_in_one-2.5.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: plug-in-one\nVersion: 2.5\nAuthor-email: Ada <ada@example.org>\n"
    )
    (metadata / "top_level.txt").write_text("plug_in_one\n")
    (folder / "plug_in_two.py").write_text(f'__version__ = "7"\n{code.format(n="_two")}')
    monkeypatch.syspath_prepend(str(folder))
    descriptor._listed.cache_clear()
    one = json.loads(command("ops", "plug_one", "--ops", "plug_in_one", "--json").output)
    two = json.loads(command("ops", "plug_two", "--ops", "plug_in_two", "--json").output)
    keys = ("entry_point", "package", "version", "author")
    assert [one[key] for key in keys] == ["plug_in_one:plug_one", "plug-in-one", "2.5", "Ada"]
    assert [two[key] for key in keys] == ["plug_in_two:plug_two", None, "7", None]


def test_ops_has_one_form_at_a_time(command: Command) -> None:
    done = command("ops", "--json", "--markdown")
    assert (done.code, done.output) == (2, "")
    assert "choose one" in done.messages


def test_ops_writes_the_page_of_the_documentation(command: Command) -> None:
    page = command("ops", "--markdown").output
    assert page.startswith("# Operators\n")
    assert "\n### join\n\n    join (left, right, on : out)\n" in page
    for name in re.findall(r"\]\(#(\w+)\)", page):
        assert f"\n### {name}\n" in page
