"""aioflow task and aioflow serve, as people use them from a shell."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import AIOFLOW, aioflow, environment, own_folders
from tests.service.backups import backup

PLAN = """
PLAN count
{
  INPUT: numbers (n number)
  OUTPUT: out
  PARAM: step = 1
  BODY
  {
    project (numbers, "n + ${step} as n" : out)
    dbappend (out, "counted")
    log (out, "counted")
  }
}
"""
BAD = "PLAN bad { INPUT: x OUTPUT: y BODY { selct (x, 'a > 1' : y) } }"


class Home:
    """A folder with plans and a home, and commands about its tasks."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "count.plan").write_text(PLAN)

    def __call__(self, *arguments: str, code: int = 0) -> str:
        ended = aioflow("task", *arguments, "--home", "home", cwd=self.folder)
        assert ended.returncode == code, ended.stdout + ended.stderr
        assert "Traceback" not in ended.stderr
        return ended.stdout if code == 0 else ended.stderr

    def json(self, *arguments: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self(*arguments, "--json").splitlines()]


@pytest.fixture
def task(tmp_path: Path) -> Home:
    return Home(tmp_path)


def test_a_task_is_added_shown_run_and_removed(task: Home) -> None:
    shown = task("add", "count.plan", "05 08-17 1,3,5 * *", "-i", "n=3", "--zone", "Europe/Berlin")
    assert "at 8:05, 9:05 … 17:05 on days 1, 3 and 5 (Europe/Berlin)" in shown
    (listed,) = task.json("list")
    assert listed["definition"]["name"] == "count n=3"
    assert listed["definition"]["inputs"] == {"numbers": [{"n": 3}]}
    assert task("run", "count n=3").startswith("succeeded (run ")
    (run,) = task.json("history")
    assert (run["task"], run["state"], run["cause"]) == ("count n=3", "succeeded", "manual")
    assert run["account"]["outputs"]["out"]["rows"] == 1
    assert "counted: n=4" in task("logs", "count n=3")
    task("logs", run["run_id"], "--trace", "trace.json")
    assert json.loads((task.folder / "trace.json").read_text())["traceEvents"]
    assert task("remove", "count n=3") == "removed: count n=3\n"
    assert task.json("list") == []


def test_a_failed_run_tells_why_and_ends_with_1(task: Home) -> None:
    (task.folder / "fails.plan").write_text("PLAN fails { OUTPUT: out BODY { dbimport ('nothing' : out) } }")
    task("add", "fails.plan")
    told = task("run", "fails", code=1)
    assert "aioflow task logs" in told
    (run,) = task.json("history", "fails")
    assert "nothing" in run["reason"]


def test_an_interrupted_run_is_cancelled_and_no_service_runs_it_later(task: Home) -> None:
    (task.folder / "slow.plan").write_text("PLAN slow { OUTPUT: out BODY { window_never (: out) } }")
    (task.folder / "slow_operators.py").write_text(
        "import asyncio\nfrom aioflow import operator, Schema\n\n"
        "@operator(schema=lambda inputs, settings: Schema(('n',)))\n"
        "async def window_never():\n"
        '    """Wait."""\n'
        "    print('waiting', flush=True)\n"
        "    await asyncio.sleep(1000)\n"
        "    yield []\n"
    )
    (task.folder / "home").mkdir()
    (task.folder / "home" / "aioflow.toml").write_text('ops = ["slow_operators"]')
    task("add", "slow.plan")
    with subprocess.Popen(
        [*AIOFLOW, "task", "run", "slow", "--home", "home"],
        cwd=task.folder,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(**own_folders(task.folder)),
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "waiting\n"
        running.send_signal(signal.SIGINT)
        running.stdout.read()
        assert running.wait() == 130
    (run,) = task.json("history")
    assert (run["state"], run["reason"]) == ("cancelled", "it was interrupted")


def test_a_task_is_edited_paused_and_resumed(task: Home) -> None:
    task("add", "count.plan", "@daily", "--name", "c", "-i", "n=1")
    task("edit", "c", "--schedule", "every 15m", "--option", "retries=2", "--set", "step=5", "-i", "n=2")
    (found,) = task.json("show", "c")
    assert found["definition"]["schedule"] == "every 15m"
    assert found["definition"]["retries"] == 2
    assert found["definition"]["parameters"] == {"step": 5}
    assert found["definition"]["inputs"] == {"numbers": [{"n": 2}]}
    task("pause", "c", "--reason", "holidays")
    assert task.json("show", "c")[0]["state_reason"] == "holidays"
    assert task.json("show", "c")[0]["next_due"] is None
    task("resume", "c")
    assert task.json("show", "c")[0]["next_due"] is not None
    task("edit", "c", "--option", "retries=", "--option", "accounts.email=team")
    assert "retries" not in task.json("show", "c")[0]["definition"]
    task("edit", "c", "--option", "accounts.email=")
    assert "accounts" not in task.json("show", "c")[0]["definition"]


def test_what_is_exported_can_be_imported_and_changes_nothing(task: Home) -> None:
    task("add", "count.plan", "@hourly", "--name", "one", "-i", "n=1", "--option", "accounts.email=team")
    task("add", "count.plan", "--name", "two", "-i", "n=2", "--option", "ends=2030-01-01T00:00:00+01:00")
    task("export", "-o", "tasks.toml")
    text = (task.folder / "tasks.toml").read_text()
    assert 'plan = "count.plan"' in text
    assert task("import", "tasks.toml") == "unchanged: one\nunchanged: two\n"
    (task.folder / "tasks.toml").write_text(text.replace("@hourly", "@daily"))
    assert task("import", "tasks.toml") == "changed: one\nunchanged: two\n"
    again = aioflow("task", "import", "tasks.toml", "--home", "other", cwd=task.folder)
    assert again.stdout == "added: one\nadded: two\n"


@pytest.mark.parametrize("rows", ['{"n": null}', '{"n": 1, "t": "a\\r\\nb"}', '{"n": 1e300, "t": "\\n\\n"}'])
def test_any_input_survives_export_and_import(task: Home, rows: str) -> None:
    (task.folder / "count.plan").write_text(PLAN.replace("n number", "n number, t char"))
    task("add", "count.plan", "--name", "one", "-i", rows)
    task("export", "-o", "tasks.toml")
    assert task("import", "tasks.toml") == "unchanged: one\n"
    aioflow("task", "import", "tasks.toml", "--home", "other", cwd=task.folder)
    ended = aioflow("task", "show", "one", "--home", "other", "--json", cwd=task.folder)
    assert json.loads(ended.stdout)["definition"] == task.json("show", "one")[0]["definition"]


def test_a_paused_task_stays_so_when_it_is_exported_and_imported(task: Home) -> None:
    task("add", "count.plan", "@daily", "--name", "one", "-i", "n=1", "--paused")
    task("export", "-o", "tasks.toml")
    assert "paused = true" in (task.folder / "tasks.toml").read_text()
    assert task("import", "tasks.toml") == "unchanged: one\n"
    again = aioflow("task", "import", "tasks.toml", "--home", "other", cwd=task.folder)
    assert again.stdout == "added: one\n"
    ended = aioflow("task", "list", "--home", "other", "--json", cwd=task.folder)
    assert json.loads(ended.stdout)["state"] == "paused"
    # A task that is there keeps its state.
    task("resume", "one")
    assert task("import", "tasks.toml") == "unchanged: one\n"
    assert task.json("show", "one")[0]["state"] == "active"


def test_lines_of_a_task_file_become_tasks_named_by_plan_input_and_schedule(task: Home) -> None:
    (task.folder / "tasks").write_text(
        "# counted on some days\nCRON_TZ=Europe/Berlin\n"
        "05 08-17 1,3,5 * * count.plan n=7\n0 9 1 * 2027 count.plan n=8\nevery 15m count.plan n=9\n"
    )
    names = [
        "count n=7 (05 08-17 1,3,5 * *)",
        "count n=8 (0 9 1 * 2027)",
        "count n=9 (every 15m)",
    ]
    assert task("import", "tasks") == "".join(f"added: {name}\n" for name in names)
    assert task("import", "tasks") == "".join(f"unchanged: {name}\n" for name in names)
    assert {each["definition"]["zone"] for each in task.json("list")} == {"Europe/Berlin"}


def test_every_mistake_in_a_task_file_is_told_and_nothing_is_added(task: Home) -> None:
    (task.folder / "tasks").write_text("99 * * * * count.plan n=7\n@daily\n@daily count.plan n=1\n")
    told = task("import", "tasks", code=2)
    assert "tasks:1: minute: 99 is not between 0 and 59" in told
    assert "tasks:2: a plan file must stand after the schedule" in told
    assert task.json("list") == []


def test_a_wrong_zone_and_the_plans_of_all_lines_are_told_with_the_rest(task: Home) -> None:
    (task.folder / "bad.plan").write_text(BAD)
    (task.folder / "tasks").write_text(
        "CRON_TZ=Foo\n99 * * * * count.plan zz=1\n@daily bad.plan a=1\n@daily missing.plan\n"
        "@daily count.plan n=x\n"
    )
    told = task("import", "tasks", code=2)
    for words in (
        "tasks:1: unknown time zone 'Foo'",
        "tasks:2: minute: 99 is not between 0 and 59",
        "tasks:2: --input zz: plan count has no input",
        "unknown operator 'selct'",
        "tasks:4: there is no file missing.plan",
        "tasks:5: input 'numbers', row 1: attribute 'n' must be number",
    ):
        assert told.count(words) == 1, told
    (task.folder / "tasks").write_text("\nCRON_TZ=Foo\n")
    assert "tasks:2: unknown time zone" in task("import", "tasks", code=2)


def test_every_mistake_in_a_file_of_toml_is_told_with_its_line(task: Home) -> None:
    (task.folder / "bad.plan").write_text(BAD)
    (task.folder / "tasks.toml").write_text(
        '[[task]]\nname = "a"\nplan = "bad.plan"\npriority = 99999\nschedul = "@daily"\nzone = "Foo"\n'
        '[task.inputs]\nx = [{a = 1}]\n\n[[task]]\nname = "b"\nplan = "missing.plan"\npaused = "yes"\n'
    )
    told = task("import", "tasks.toml", code=2)
    for words in (
        "tasks.toml:1: " + str(task.folder / "bad.plan"),
        "tasks.toml:4: priority must be a whole number from -1,000 to 1,000, not 99999",
        "tasks.toml:5: unknown setting 'schedul'; did you mean 'schedule'?",
        "tasks.toml:6: unknown time zone 'Foo'",
        "tasks.toml:10: there is no file",
        "tasks.toml:13: paused must be true or false, not 'yes'",
    ):
        assert told.count(words) == 1, told
    assert task.json("list") == []


def test_operators_of_the_home_are_found_from_any_folder(task: Home) -> None:
    home = task.folder / "home"
    home.mkdir()
    (home / "doubling.py").write_text(
        "from aioflow import function\n\n@function(name='twice_of_home', returns='n number')\n"
        "def twice(row):\n    return {'n': 2 * row['n']}\n"
    )
    (home / "aioflow.toml").write_text('ops = ["doubling"]')
    (home / "twice.plan").write_text(
        "PLAN twice { INPUT: rows (n number) OUTPUT: out BODY { apply (rows, 'twice_of_home' : out) } }"
    )
    task("add", "home/twice.plan", "--name", "t", "-i", "n=2")
    elsewhere = task.folder / "elsewhere"
    elsewhere.mkdir()
    shown = aioflow("task", "show", "t", "--home", str(home), cwd=elsewhere)
    assert "code of doubling" in shown.stdout, shown.stderr
    assert aioflow("task", "run", "t", "--home", str(home), cwd=elsewhere).stdout.startswith("succeeded")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("add", "count.plan", "@daily"), "plan count needs --input numbers"),
        (("add", "count.plan", "never", "-i", "n=1"), "a schedule has five fields"),
        (("add", "missing.plan", "@daily"), "there is no file missing.plan"),
        (
            ("add", "bad.plan", "@daily", "-i", '[{"a": 1}]'),
            "unknown operator 'selct'; did you mean 'select'?",
        ),
        (("add", "count.plan", "-i", "numbers=-"), "cannot read stdin"),
        (
            ("add", "count.plan", "-i", "n=1", "--option", "overlap=sometimes"),
            "overlap must be allow-all, buffer-all",
        ),
        (
            ("add", "count.plan", "-i", "n=1", "--option", "retry=1"),
            "unknown setting 'retry'; did you mean 'retries'?",
        ),
        (
            ("add", "count.plan", "-i", "n=1", "--option", "retries=x"),
            "a whole number from 0 to 100, not 'x'",
        ),
        (
            ("add", "count.plan", "-i", "n=1", "--option", "priority=99999"),
            "a whole number from -1,000 to 1,000",
        ),
        (("add", "count.plan", "-i", "n=x"), "attribute 'n' must be number"),
        (("add", "count.plan", "-i", "n=1", "--option", "database=nope"), "there is no database 'nope'"),
        (("add", "count.plan", "0 0 1 1 2020", "-i", "n=1"), "never comes any more"),
        (("add", "count.plan", "every 99999999999d", "-i", "n=1"), "at most ten years"),
        (("add", "count.plan", "-i", "n=1", "--option", "ends=2026-12-31"), "a time needs an offset"),
        (("history", "--state", "lost"), "--state lost: a state is one of waiting, running"),
        (("show", "nothing"), "there is no task 'nothing'"),
        (("edit", "nothing", "--reload"), "there is no task 'nothing'"),
        (("import", "missing.toml"), "no such file"),
        (("logs", "nothing"), "there is no task or run 'nothing'"),
        (("add", "count.plan", "-i", "n=1", "--option", "overlp="), "unknown setting 'overlp'"),
        (
            ("add", "count.plan", "@daily", "-i", "n=1", "--option", "ends=2020-01-01T00:00Z"),
            "ends=2020-01-01T00:00:00+00:00 has passed",
        ),
        (("add", "count.plan", "every 15", "-i", "n=1"), "write every 15m"),
        (("add", "count.plan", "0 9 29 2 * 2027", "-i", "n=1"), "none of its years has such a day"),
    ],
)
def test_bad_input_is_told_in_words(task: Home, arguments: tuple[str, ...], message: str) -> None:
    (task.folder / "bad.plan").write_text(BAD)
    assert message in task(*arguments, code=2)


def test_the_end_of_a_task_needs_no_seconds(task: Home) -> None:
    task("add", "count.plan", "@daily", "--name", "c", "-i", "n=1", "--option", "ends=2099-12-31T18:00+01:00")
    assert task.json("show", "c")[0]["definition"]["ends"] == "2099-12-31T18:00:00+01:00"


def test_the_figures_of_a_run_are_shown_with_its_log(task: Home) -> None:
    task("add", "count.plan", "--name", "c", "-i", "n=1")
    task("run", "c")
    assert "output  out: 1 row\n" in task("logs", "c")


def test_a_service_runs_tasks_and_notices_those_that_commands_add(task: Home) -> None:
    task("add", "count.plan", "every 1s", "--name", "first", "-i", "n=1")
    with _served(task) as service:
        _wait_for(service, "task first succeeded")
        task("add", "count.plan", "--name", "second", "-i", "n=2")
        assert task("run", "second", "--no-wait").startswith("asked the service for a run of second")
        _wait_for(service, "task second succeeded")
        assert task("run", "second").startswith("succeeded (run ")
        (task.folder / "fails.plan").write_text("PLAN fails { OUTPUT: out BODY { dbimport ('no' : out) } }")
        task("add", "fails.plan")
        assert "shows its log" in task("run", "fails", code=1)
        assert "no run of 'second' is under way or waiting" in task("cancel", "second", code=2)
    assert task.json("history", "--state", "running") == []


def test_a_command_that_waits_for_a_run_can_be_interrupted_and_the_run_goes_on(task: Home) -> None:
    (task.folder / "slow.plan").write_text("PLAN slow { OUTPUT: out BODY { wait_long_for_service (: out) } }")
    (task.folder / "slow_for_service.py").write_text(
        "import asyncio\nfrom aioflow import operator, Schema\n\n"
        "@operator(schema=lambda inputs, settings: Schema(('n',)))\n"
        "async def wait_long_for_service():\n"
        '    """Wait."""\n'
        "    await asyncio.sleep(1000)\n"
        "    yield []\n"
    )
    (task.folder / "home").mkdir()
    (task.folder / "home" / "aioflow.toml").write_text(
        'ops = ["slow_for_service"]\n[service]\ngrace_seconds = 0'
    )
    task("add", "slow.plan")
    with _served(task) as service:
        _wait_for(service, "serving 1 task")
        command = [*AIOFLOW, "task", "run", "slow", "--home", "home"]
        environ = environment(**own_folders(task.folder))
        with subprocess.Popen(
            command, cwd=task.folder, stderr=subprocess.PIPE, text=True, env=environ
        ) as run:
            assert run.stderr is not None
            assert "Ctrl-C stops waiting only" in run.stderr.readline()
            assert any(task.json("history", "--state", "running") for _ in range(100))
            run.send_signal(signal.SIGINT)
            assert "the run goes on" in run.stderr.read()
            assert run.wait() == 130
        assert len(task.json("history", "--state", "running")) == 1
        assert task("cancel", "slow") == "1 run is being cancelled\n"


def test_every_line_of_a_service_on_stderr_is_json_if_wanted(task: Home) -> None:
    task("list")
    with subprocess.Popen(
        [*AIOFLOW, "serve", "--home", "home", "--port", "0", "--log-format", "json"],
        cwd=task.folder,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        env=environment(**own_folders(task.folder)),
    ) as service:
        assert service.stderr is not None
        lines = [service.stderr.readline()]
        service.send_signal(signal.SIGTERM)
        lines += service.stderr.read().splitlines()
    messages = [json.loads(line)["message"] for line in lines]
    assert [message.partition(" ")[0] for message in messages] == ["serving", "stopping:"]
    (task.folder / "home" / "aioflow.toml").write_text("[service]\nalert_again_seconds = 60\n")
    refused = aioflow("serve", "--home", "home", "--log-format", "json", cwd=task.folder)
    assert refused.returncode == 2
    assert "a time of at least 3600" in json.loads(refused.stderr)["message"]


def test_the_times_of_a_task_are_shown_in_its_zone(task: Home) -> None:
    shown = task("add", "count.plan", "30 9 * * *", "--name", "c", "-i", "n=1", "--zone", "Asia/Tokyo")
    assert "09:30:00+09:00\n" in shown
    task("run", "c")
    assert task("show", "c").count("+09:00\n") == 2
    assert task("list").count("+09:00") == 2
    assert task("history").count("+09:00") == 1
    assert task("logs", "c").count("+09:00") == 3
    task("pause", "c")
    assert task("resume", "c").endswith("09:30:00+09:00\n")


def test_a_task_keeps_the_zone_of_the_machine_where_it_was_added(
    task: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    task("add", "count.plan", "0 8 * * *", "--name", "c", "-i", "n=1")
    task("add", "count.plan", "every 1h", "--name", "i", "-i", "n=1")
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert "at 8:00 (America/New_York)" in task("show", "c")
    assert 'zone = "America/New_York"' in task("export", "c")
    task("edit", "c", "--option", "zone=")
    assert "at 8:00 (Asia/Tokyo)" in task("show", "c")
    assert "(Asia/Tokyo)" in task("show", "i")  # an interval has the same times everywhere


def test_the_history_of_a_task_that_was_removed_is_found_by_its_name(task: Home) -> None:
    task("add", "count.plan", "--name", "c", "-i", "n=1")
    task("run", "c")
    task("remove", "c")
    (run,) = task.json("history", "c")
    assert [run] == task.json("history", run["task_id"]) == task.json("history")
    assert "there is no task 'd'" in task("history", "d", code=2)


def test_accounts_of_unknown_channels_are_refused(task: Home) -> None:
    channel = "there is no channel 'emial'; did you mean 'email'?"
    wrong = ("--option", "accounts.emial=main")
    assert channel in task("add", "count.plan", "--name", "c", "-i", "n=1", *wrong, code=2)
    task("add", "count.plan", "--name", "c", "-i", "n=1")
    assert channel in task("edit", "c", *wrong, code=2)
    assert "no channel 'database'" in task("edit", "c", "--option", "accounts.database=main", code=2)


def test_a_name_among_the_options_is_the_name(task: Home) -> None:
    task("add", "count.plan", "--option", "name=c", "-i", "n=1")
    assert task("list").splitlines()[2].startswith("c ")


def test_large_inputs_are_shortened_for_people_only(task: Home) -> None:
    rows = json.dumps([{"n": number} for number in range(500)])
    shown = task("add", "count.plan", "--name", "c", "-i", rows)
    assert max(map(len, shown.splitlines())) < 400
    assert len(task.json("show", "c")[0]["definition"]["inputs"]["numbers"]) == 500


def test_a_schedule_that_may_mean_something_else_is_warned_about(task: Home) -> None:
    ended = aioflow("task", "add", "count.plan", "*/90 * * * *", "-i", "n=1", cwd=task.folder)
    assert ended.returncode == 0
    assert "warning: minute: the step of */90 is longer than the range" in ended.stderr
    silent = aioflow("task", "next", "*/30 */23 1-31/30 * *", cwd=task.folder)
    assert silent.stderr == ""


def test_commands_talk_to_a_service_at_an_address(task: Home) -> None:
    (task.folder / "home" / "plans").mkdir(parents=True)
    (task.folder / "home" / "plans" / "count.plan").write_text(PLAN)
    with _served(task) as service:
        assert service.stdout is not None
        address = service.stdout.readline().split()[-1]
        token = service.stdout.readline().split()[-1]

        def remote(*arguments: str, **changes: str) -> str:
            given = {"AIOFLOW_TOKEN": token, **changes}
            ended = aioflow("--server", address, "task", *arguments, cwd=task.folder, **given)
            assert "Traceback" not in ended.stderr
            return ended.stdout + ended.stderr

        assert "every 15 minutes" in remote("add", "count.plan", "every 15m", "--name", "c", "-i", "n=1")
        assert "asked the service for a run" in remote("run", "c", "--no-wait")
        _wait_for(service, "task c succeeded")
        assert "succeeded (run " in remote("run", "c")
        (task.folder / "other.plan").write_text(PLAN)
        told = remote("add", "other.plan", "-i", "n=1")
        assert "there is no file other.plan in the folder of plans of the service" in told
        assert "leave one of them out" in remote("list", "--home", "home")
        assert "succeeded" in remote("history")
        assert "paused: c" in remote("pause", "c")
        assert 'name = "c"' in remote("export")
        assert "removed: c" in remote("remove", "c")
        (task.folder / "tasks").write_text("@daily count.plan n=1\n")
        assert remote("import", "tasks") == "added: count n=1 (@daily)\n"
        watch = {"url": "http://example.com/", "title": "Page", "notification_muted": True}
        backup(task.folder, watch)
        told = remote("import", "--from", "changedetection", "backup.zip")
        assert told.startswith("added: page")
        assert "  page: Its notifications are muted" in told
        assert "the token is wrong" in remote("list", AIOFLOW_TOKEN="aioflow_0123")
        assert "a token is needed" in remote("list", AIOFLOW_TOKEN="")
    assert "no service answers" in remote("list")


@contextmanager
def _served(task: Home) -> Iterator[subprocess.Popen[str]]:
    """A service on a port of its own, which is stopped afterwards."""
    with subprocess.Popen(
        [*AIOFLOW, "serve", "--home", "home", "--port", "0", "--log-format", "json"],
        cwd=task.folder,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(**own_folders(task.folder)),
    ) as service:
        assert service.stderr is not None
        try:
            yield service
        finally:
            service.send_signal(signal.SIGTERM)
            rest = service.stderr.read()
        assert service.wait() == 0, rest


def _wait_for(service: subprocess.Popen[str], words: str) -> None:
    assert service.stderr is not None
    seen = []
    for line in service.stderr:
        seen.append(line)
        if words in line:
            return
    raise AssertionError("".join(seen))


def test_a_task_database_that_is_a_folder_is_named(task: Home) -> None:
    (task.folder / "home" / "service.db").mkdir(parents=True)
    assert "service.db is a folder: move it away" in task("list", code=2)


def test_a_time_that_no_schedule_knows_is_refused(task: Home) -> None:
    ended = aioflow(
        *("task", "next", "@daily", "--from", "0001-01-01T00:00", "--zone", "Europe/Berlin"), cwd=task.folder
    )
    assert ended.returncode == 2
    assert "--from 0001-01-01T00:00: the year is from 1900 to 8999" in ended.stderr


def test_other_commands_refuse_the_address_of_a_service(task: Home) -> None:
    ended = aioflow("--server", "http://127.0.0.1:1", "outbox", "list", cwd=task.folder)
    assert ended.returncode == 2
    assert "only the commands of `aioflow task` talk to a service" in ended.stderr
