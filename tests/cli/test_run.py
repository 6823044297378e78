"""`aioflow run`: inputs, parameters, outputs and their formats."""

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Ended
from tests.cli.program import aioflow, start
from tests.cli.test_trace import assert_sane_nesting

NUMBERS = '[{"n": 1}, {"n": 20}]'


def rows(text: str) -> list[object]:
    return [json.loads(line) for line in text.splitlines()]


def test_a_plan_runs_from_json_to_json_lines(folder: Path) -> None:
    done = aioflow("run", "double.plan", "--input", f"numbers={NUMBERS}", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == '{"n": 1, "twice": 2}\n{"n": 20, "twice": 40}\n'


def test_rows_of_stdin_stream_through_before_its_end(folder: Path) -> None:
    with start("run", "double.plan", "--input", "numbers=-", cwd=folder) as process:
        for number in (1, 2, 3):
            process.send(b'{"n": %d}\n' % number)
            # The next row is not there before this one has come out.
            assert process.output.readline() == b'{"n": %d, "twice": %d}\n' % (number, 2 * number)
        process.send(b'{"n": 4}')
        process.input.close()
        assert process.output.read() == b'{"n": 4, "twice": 8}\n'
        assert (process.end(), process.messages.read()) == (0, b"")


# --- inputs -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("rows.jsonl", '{"n": 1}\n\n{"n": 20}'),
        ("rows.json", NUMBERS),
        ("rows.txt", '\ufeff{"n": 1}\r\n{"n": 20}\r\n'),
        ("rows.csv", "\ufeffn\n1\n20\n"),
    ],
)
def test_input_is_read_from_files_by_their_form(
    folder: Path, command: Callable[..., Ended], name: str, text: str
) -> None:
    (folder / name).write_text(text, encoding="utf-8")
    done = command("run", "double.plan", "-i", f"@{name}")
    assert (done.messages, rows(done.output)) == ("", [{"n": 1, "twice": 2}, {"n": 20, "twice": 40}])


def test_one_object_is_one_row(command: Callable[..., Ended]) -> None:
    assert rows(command("run", "double.plan", "-i", '{"n": 4}').output) == [{"n": 4, "twice": 8}]


def test_an_empty_cell_is_null(folder: Path, command: Callable[..., Ended]) -> None:
    (folder / "rows.csv").write_text('n\n""\n\n7\n')
    done = command("run", "double.plan", "-i", "numbers=@rows.csv")
    assert rows(done.output) == [{"n": None, "twice": None}, {"n": 7, "twice": 14}]


def test_parameters_are_json_or_text(command: Callable[..., Ended]) -> None:
    done = command("run", "limited.plan", "-i", NUMBERS, "--set", "bound=15", "--set", "NAME=a b")
    assert rows(done.output) == [{"n": 1, "name": "a b"}]


def test_operators_come_from_modules_named_in_configuration(folder: Path) -> None:
    (folder / "pyproject.toml").write_text('[tool.aioflow]\nops = ["functions"]\n')
    done = aioflow("run", "houses.plan", "-i", '{"page": 3}', cwd=folder)
    assert (done.stderr, len(rows(done.stdout))) == ("", 2)


# --- pipes as files -----------------------------------------------------------------------------


def write_into_pipe(path: Path, text: str) -> None:
    """Write when somebody reads; a daemon, for if nobody does this must not go on forever."""
    threading.Thread(target=path.write_text, args=(text,), daemon=True).start()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("rows", '{"n": 1}\n{"n": 20}\n'),
        ("rows.json", '[{"n": 1},\n {"n": 20}]'),
        ("rows.csv", "n\n1\n20\n"),
    ],
)
def test_a_pipe_can_be_given_as_a_file(folder: Path, name: str, text: str) -> None:
    os.mkfifo(folder / name)
    with start("run", "double.plan", "-i", f"@{name}", cwd=folder) as process:
        write_into_pipe(folder / name, text)
        assert process.output.read() == b'{"n": 1, "twice": 2}\n{"n": 20, "twice": 40}\n'
        assert (process.end(), process.messages.read()) == (0, b"")


def test_rows_of_a_pipe_stream_through_before_its_end(folder: Path) -> None:
    os.mkfifo(folder / "rows")
    with start("run", "double.plan", "-i", "@rows", cwd=folder) as process:
        with (folder / "rows").open("wb", buffering=0) as pipe:
            for number in (1, 2, 3):
                pipe.write(b'{"n": %d}\n' % number)
                assert process.output.readline() == b'{"n": %d, "twice": %d}\n' % (number, 2 * number)
        assert (process.output.read(), process.end(), process.messages.read()) == (b"", 0, b"")


def test_rows_of_a_pipe_that_do_not_fit_are_told(folder: Path) -> None:
    os.mkfifo(folder / "rows")
    with start("run", "double.plan", "-i", "@rows", cwd=folder) as process:
        write_into_pipe(folder / "rows", '{"n": 1}\n{"n": x}\n')
        assert process.end() == 2
        assert process.messages.read().startswith(b"error: rows:2: not JSON: ")


# --- outputs ------------------------------------------------------------------------------------


def test_several_outputs_are_named_or_one_is_chosen(command: Callable[..., Ended]) -> None:
    both = command("run", "sides.plan", "-i", NUMBERS)
    expected = [{"output": "high", "row": {"n": 20}}, {"output": "low", "row": {"n": 1}}]
    assert sorted(rows(both.output), key=str) == expected
    one = command("run", "sides.plan", "-i", NUMBERS, "--output", "high")
    assert rows(one.output) == [{"n": 20}]


def test_formats_are_chosen(command: Callable[..., Ended]) -> None:
    table = command("run", "double.plan", "-i", NUMBERS, "--format", "table")
    assert table.output == " n  twice\n──  ─────\n 1      2\n20     40\n"
    comma_separated = command("run", "double.plan", "-i", NUMBERS, "--format", "csv")
    assert comma_separated.output == "n,twice\n1,2\n20,40\n"


def test_small_o_appends_and_large_o_overwrites(folder: Path, command: Callable[..., Ended]) -> None:
    for _ in range(2):
        assert command("run", "double.plan", "-i", '{"n": 1}', "-o", "out.csv") == Ended(0, "", "")
    assert (folder / "out.csv").read_text() == "n,twice\n1,2\n1,2\n"
    command("run", "double.plan", "-i", '{"n": 3}', "-O", "out.csv")
    assert (folder / "out.csv").read_text() == "n,twice\n3,6\n"
    command("run", "double.plan", "-i", '{"n": 3}', "-o", "out.jsonl")
    assert (folder / "out.jsonl").read_text() == '{"n": 3, "twice": 6}\n'


def test_a_file_with_other_columns_is_not_appended_to(folder: Path, command: Callable[..., Ended]) -> None:
    (folder / "out.csv").write_text("a,b\n1,2\n")
    message = "error: the file to append to has the columns a, b; the tuples have n, twice\n"
    assert command("run", "double.plan", "-i", '{"n": 1}', "-o", "out.csv") == Ended(2, "", message)
    assert (folder / "out.csv").read_text() == "a,b\n1,2\n"


def test_an_overwritten_file_keeps_its_mode_and_the_link_to_it(
    folder: Path, command: Callable[..., Ended]
) -> None:
    target = folder / "target.jsonl"
    target.write_text("old")
    target.chmod(0o640)
    (folder / "link.jsonl").symlink_to(target)
    command("run", "double.plan", "-i", '{"n": 1}', "-O", "link.jsonl")
    assert (folder / "link.jsonl").is_symlink()
    assert target.read_text() == '{"n": 1, "twice": 2}\n'
    assert target.stat().st_mode & 0o777 == 0o640


def test_a_hundred_thousand_rows_come_through_whole(folder: Path, command: Callable[..., Ended]) -> None:
    (folder / "rows.jsonl").write_text("".join(f'{{"n": {number}}}\n' for number in range(100_000)))
    output = command("run", "double.plan", "-i", "@rows.jsonl").output
    assert output.count("\n") == 100_000
    assert output.endswith('{"n": 99999, "twice": 199998}\n')


# --- failures -----------------------------------------------------------------------------------


def test_a_failed_run_leaves_the_old_file_and_nothing_else(folder: Path) -> None:
    (folder / "out.jsonl").write_text("old")
    before = sorted(os.listdir(folder))
    arguments = ("broken.plan", "--ops", "functions", "-O", "out.jsonl", "-i", '{"n": 1}')
    done = aioflow("run", *arguments, cwd=folder, PYTHONDONTWRITEBYTECODE="1")
    assert done.returncode == 1
    assert (folder / "out.jsonl").read_text() == "old"
    assert sorted(os.listdir(folder)) == before


def test_a_failing_run_names_place_and_tuple_without_a_traceback(folder: Path) -> None:
    arguments = ("run", "broken.plan", "--ops", "functions", "-i", '{"n": 7}')
    done = aioflow(*arguments, cwd=folder)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: broken.plan:7:5: apply")
    assert "cannot do 7" in done.stderr
    assert "Traceback" not in done.stderr
    assert "Traceback" in aioflow(*arguments, cwd=folder, AIOFLOW_DEBUG="1").stderr


def test_a_run_past_its_timeout_fails(folder: Path) -> None:
    arguments = ("forever.plan", "--ops", "functions", "-i", '{"n": 1}', "--timeout", "200ms")
    done = aioflow("run", *arguments, cwd=folder)
    assert (done.returncode, done.stderr) == (1, "error: the run took longer than its timeout of 0.2 s\n")


# --- how it runs --------------------------------------------------------------------------------


def test_a_recursive_plan_gives_the_same_rows_in_every_mode(folder: Path) -> None:
    arguments = ("run", "houses.plan", "--ops", "functions", "-i", '{"page": 1}')
    expected = [{"house": f"{page}-{number}"} for page in (1, 2, 3) for number in (1, 2)]
    for mode in ("D-", "D+S-", "D+S+"):
        done = aioflow(*arguments, "--mode", mode, "--workers", "2", "--capacity", "1", cwd=folder)
        assert sorted(rows(done.stdout), key=str) == expected


def test_the_log_goes_to_stderr(folder: Path) -> None:
    done = aioflow("run", "logged.plan", "-i", NUMBERS, cwd=folder)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "log: seen: n=1\nlog: seen: n=20\nlog: seen: 2 tuples\n"


def test_a_trace_is_written_beside_the_output(folder: Path) -> None:
    arguments = ("run", "houses.plan", "--ops", "functions", "-i", '{"page": 1}', "--trace", "trace.json")
    assert aioflow(*arguments, cwd=folder).returncode == 0
    entries = json.loads((folder / "trace.json").read_text())["traceEvents"]
    slices = [entry for entry in entries if entry["ph"] == "X"]
    names = {entry["name"] for entry in slices if entry["cat"] == "firing"}
    # The levels of the recursion have colours of their own.
    assert len(names) >= 3
    assert_sane_nesting(entries)
