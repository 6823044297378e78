"""What a run tells at its end, on stderr and by --report; what -v, -vv and --log-file show of it."""

import json
import re
import signal
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import aioflow as quiet_aioflow
from tests.cli.program import start
from tests.cli.site import Site, served
from tests.cli.test_process import wait_until
from tests.cli.test_terminal import in_terminal, plain

TOLD = {"AIOFLOW_ACCOUNT": "true"}
NUMBERS = '[{"n": 1}, {"n": 2}, {"n": 30}]'
SECONDS = re.compile(r"\d+\.\d\d s")
WEB_PLAN = """\
WRAPPER houses (page number)
{
  GET: "SITE/houses{?page}"
  EACH: "li.house"
  address: "a.title"
}
WRAPPER missing (page number)
{
  GET: "SITE/missing{?page}"
  title: "h1"
}
PLAN web
{
  INPUT: pages (page number)
  OUTPUT: found, lost
  BODY
  {
    wrapper ("houses", pages : found)
    wrapper ("missing", pages : titles) {ERRORS: lost}
  }
}
"""


def aioflow(*arguments: str, cwd: Path, **changes: str) -> Any:
    """A command that tells what it tells people by default."""
    return quiet_aioflow(*arguments, cwd=cwd, **{**TOLD, **changes})


def told(text: str) -> list[str]:
    """Lines, with times as T."""
    return SECONDS.sub("T", text).splitlines()


@pytest.fixture
def site(folder: Path) -> Iterator[Site]:
    with served() as site:
        (folder / "web.plan").write_text(WEB_PLAN.replace("SITE", site.url("")))
        (folder / "aioflow.toml").write_text(f'[http]\nallow = ["{site.host}"]\nhealth = false\n')
        yield site


# --- on stderr ----------------------------------------------------------------------------------


def test_a_run_ends_with_its_account_also_without_a_terminal(folder: Path) -> None:
    done = aioflow("run", "double.plan", "-i", NUMBERS, cwd=folder)
    assert (done.returncode, told(done.stderr)) == (0, ["3 rows in T"])
    assert len(done.stdout.splitlines()) == 3
    done = aioflow("run", "sides.plan", "-i", NUMBERS, cwd=folder)
    assert told(done.stderr) == ["3 rows (low 2, high 1) in T"]


def test_a_run_without_outputs_is_done(folder: Path) -> None:
    done = aioflow("run", "logged.plan", "-i", '{"n": 1}', cwd=folder)
    assert told(done.stderr) == ["log: seen: n=1", "log: seen: 1 tuple", "done in T"]


@pytest.mark.parametrize("way", ["option", "short", "file"])
def test_the_account_can_be_turned_off(folder: Path, way: str) -> None:
    (folder / "aioflow.toml").write_text("account = false\n" if way == "file" else "")
    options = {"option": ["--quiet"], "short": ["-q"], "file": []}[way]
    done = quiet_aioflow("run", "double.plan", "-i", NUMBERS, *options, cwd=folder, AIOFLOW_ACCOUNT="")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_quiet_run_says_nothing_unless_something_is_wrong(folder: Path) -> None:
    assert aioflow("run", "logged.plan", "-i", '{"n": 1}', "-q", cwd=folder).stderr == ""
    (folder / "skips.plan").write_text(
        'PLAN skips { INPUT: a OUTPUT: b BODY { apply (a, "broken" : b) {ERRORS: skip} } }'
    )
    done = aioflow("run", "skips.plan", "--ops", "functions", "-i", '{"n": 7}', "-q", cwd=folder)
    assert all(line.startswith(("warning: ", "note: ")) for line in done.stderr.splitlines())
    assert "cannot do 7" in done.stderr


def test_the_account_tells_of_the_web_and_of_failures(folder: Path, site: Site) -> None:
    done = aioflow("run", "web.plan", "-i", '[{"page": 1}, {"page": 2}]', cwd=folder)
    assert done.returncode == 0
    *warnings, first, web, failures = told(done.stderr)
    assert (first, failures) == ("8 rows (found 6, lost 2) in T", "  2 failures: HttpStatusError")
    assert re.fullmatch(r"  2 pages, [\d.]+ \w+ from 1 host; 5 requests, 2 answered 4xx", web)
    assert all(line.startswith("warning: ") for line in warnings)


def test_a_run_that_failed_tells_what_it_did_before_the_error(folder: Path) -> None:
    done = aioflow("run", "broken.plan", "--ops", "functions", "-i", '{"n": 7}', cwd=folder)
    assert done.returncode == 1
    assert told(done.stderr)[:2] == [
        "failed after T",
        "error: broken.plan:7:5: apply: ValueError: cannot do 7",
    ]


def test_an_interrupted_run_tells_what_it_did(folder: Path) -> None:
    arguments = ("run", "forever.plan", "--ops", "functions", "-i", '{"n": 1}', "--report", "r.json")
    with start(*arguments, "--log-file", "run.log", cwd=folder, **TOLD) as process:
        wait_until((folder / "started").exists)
        process.popen.send_signal(signal.SIGINT)
        assert process.end() == 130
        assert told(process.messages.read().decode()) == ["interrupted after T", "interrupted"]
    report = json.loads((folder / "r.json").read_text())
    assert (report["outcome"], report["exit-code"]) == ("interrupted", 130)
    log = (folder / "run.log").read_text()
    assert " of forever_plan was interrupted\n" in log
    assert " INFO aioflow.cli interrupted after " in log


def test_a_reader_that_leaves_hears_no_account(folder: Path) -> None:
    with start("run", "double.plan", "-i", "-", "--report", "r.json", cwd=folder, **TOLD) as process:
        process.send(b'{"n": 1}\n')
        process.output.readline()
        process.output.close()
        assert (process.end(), process.messages.read()) == (0, b"")
    report = json.loads((folder / "r.json").read_text())
    assert (report["outcome"], report["exit-code"], report["outputs"]["doubled"]["rows"]) == ("stopped", 0, 1)


# --- --report -----------------------------------------------------------------------------------


def report_of(folder: Path, *arguments: str, **changes: str) -> tuple[Any, dict[str, Any]]:
    done = aioflow("run", *arguments, "--report", "report.json", cwd=folder, **changes)
    return done, json.loads((folder / "report.json").read_text())


def test_the_report_knows_a_tuple_of_the_command_line(folder: Path) -> None:
    _, report = report_of(folder, "double.plan", "-i", "n=1")
    assert report["inputs"] == {"numbers": {"rows": 1, "from": "command line"}}


def test_the_report_has_the_account_and_what_was_asked_for(folder: Path) -> None:
    (folder / "n.jsonl").write_text('{"n": 1}\n{"n": 20}\n')
    arguments = ("limited.plan", "-i", "@n.jsonl", "--set", "bound=10", "--set", "name=y")
    done, report = report_of(folder, *arguments)
    assert (done.returncode, report["exit-code"], report["outcome"]) == (0, 0, "ended")
    assert (report["version"], report["plan"], report["file"]) == (1, "limited", "limited.plan")
    assert report["inputs"] == {"numbers": {"rows": 2, "from": "n.jsonl"}}
    assert report["parameters"] == {"bound": 10, "name": "y"}
    assert report["outputs"] == {"some": {"rows": 1, "whole": True, "partial": [], "doubtful": []}}
    for name in ("started", "ended"):
        assert datetime.fromisoformat(report[name]).utcoffset() is not None
    assert report["error"] is None


def test_the_report_of_a_run_over_the_web_has_its_traffic(folder: Path, site: Site) -> None:
    _, report = report_of(folder, "web.plan", "-i", '{"page": 1}')
    assert report["web"]["pages"] == 1
    assert report["web"]["requests"] == len(site.requests) == 3
    assert report["web"]["statuses"] == {"2xx": 2, "4xx": 1}
    assert report["errors"] == {"HttpStatusError": 1}


@pytest.mark.parametrize(
    ("arguments", "code", "kind", "place"),
    [
        (("broken.plan", "--ops", "functions", "-i", '{"n": 7}'), 1, "ValueError", "broken.plan:7:5"),
        (("wrong.plan", "-i", "[]"), 2, "PlanError", "wrong.plan:7:5"),
        (("double.plan",), 2, "InputError", None),
        (("absent.plan",), 2, "InputError", None),
        (
            ("a_while.plan", "--ops", "functions", "-i", '{"n": 9}', "--timeout", "1ms"),
            1,
            "DeadlineError",
            None,
        ),
    ],
    ids=["failed", "mistake", "no input", "no plan", "timeout"],
)
def test_there_is_a_report_whatever_goes_wrong(
    folder: Path, arguments: tuple[str, ...], code: int, kind: str, place: str | None
) -> None:
    done, report = report_of(folder, *arguments)
    assert done.returncode == report["exit-code"] == code
    assert (report["error"]["kind"], report["error"]["place"]) == (kind, place)
    assert report["outcome"] == ("failed" if code == 1 else "refused")
    assert report["errors"] == ({kind: 1} if code == 1 else {})


def test_what_a_parameter_called_password_says_is_not_in_the_report(folder: Path) -> None:
    (folder / "login.plan").write_text(
        'PLAN login { INPUT: a (n number) OUTPUT: b PARAM: password BODY { select (a, "n < 5" : b) } }'
    )
    _, report = report_of(folder, "login.plan", "-i", '{"n": 1}', "--set", "password=hunter2")
    assert report["parameters"] == {"password": "********"}


@pytest.mark.parametrize(
    ("value", "shown"), [("hunter2x", "hunter2x"), ('"hunter2x"', "hunter2x"), ("123456",) * 2]
)
def test_what_a_parameter_called_password_says_is_shown_nowhere(folder: Path, value: str, shown: str) -> None:
    (folder / "login.plan").write_text(
        "PLAN login { INPUT: a OUTPUT: b PARAM: password "
        """BODY { project (a, "'${password}' as n" : c) apply (c, "broken" : b) } }"""
    )
    arguments = ("login.plan", "--ops", "functions", "-i", '{"n": 1}', "--set", f"password={value}")
    done, report = report_of(folder, *arguments, "-vv", "--log-file", "run.log")
    assert done.returncode == report["exit-code"] == 1
    told = (done.stderr, report["error"]["message"], (folder / "run.log").read_text())
    for text in told:
        assert "cannot do ********" in text
        assert shown not in text


def test_a_report_that_cannot_be_written_is_found_before_the_run(folder: Path) -> None:
    arguments = ("run", "double.plan", "-i", NUMBERS, "--report", "nowhere/report.json")
    done = aioflow(*arguments, cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: cannot write the report: there is no folder 'nowhere'\n"


def test_a_report_that_would_be_a_folder_is_found_before_the_run(folder: Path) -> None:
    (folder / "taken").mkdir()
    done = aioflow("run", "double.plan", "-i", NUMBERS, "--report", "taken", cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: cannot write the report: is a directory: 'taken'\n"


def test_a_report_that_cannot_be_written_after_the_run_makes_it_fail(folder: Path) -> None:
    (folder / "taking.py").write_text(
        "import os\nfrom aioflow import function\n\n@function(pure=True)\n"
        "def take(row):\n    os.mkdir('taken')\n    return {'done': True}\n"
    )
    (folder / "take.plan").write_text('PLAN take { INPUT: a OUTPUT: b BODY { apply (a, "take" : b) } }')
    arguments = ("run", "take.plan", "--ops", "taking", "-i", '{"n": 1}', "--report", "taken")
    done = aioflow(*arguments, cwd=folder)
    assert (done.returncode, done.stdout) == (1, '{"n": 1, "done": true}\n')
    assert "error: cannot write the report: is a directory: 'taken'\n" in done.stderr
    assert not list(folder.glob(".taken*"))


@pytest.mark.parametrize(
    ("arguments", "changes", "kind"),
    [
        (("-o", "a.jsonl", "-O", "b.jsonl"), {}, "InputError"),
        ((), {"AIOFLOW_WORKERS": "bad"}, "InputError"),
    ],
    ids=["two files", "setting"],
)
def test_a_run_that_is_refused_for_its_options_or_settings_replaces_the_report(
    folder: Path, arguments: tuple[str, ...], changes: dict[str, str], kind: str
) -> None:
    (folder / "report.json").write_text('{"outcome": "ended"}')
    done, report = report_of(folder, "double.plan", "-i", NUMBERS, *arguments, **changes)
    assert (done.returncode, done.stdout) == (2, "")
    assert (report["outcome"], report["exit-code"], report["error"]["kind"]) == ("refused", 2, kind)


def test_a_source_that_brought_nothing_is_in_the_report(folder: Path, site: Site) -> None:
    plan = WEB_PLAN.replace("SITE", site.url("")).replace("li.house", "li.none").partition("PLAN web")[0]
    plan += 'PLAN web { INPUT: p (page number) OUTPUT: o BODY { wrapper ("houses", p : o) } }'
    (folder / "web.plan").write_text(plan)
    done, report = report_of(folder, "web.plan", "-i", '{"page": 1}')
    assert done.returncode == report["exit-code"] == 3
    assert len(report["nothing-found"]) == 1


# --- logs ---------------------------------------------------------------------------------------


def test_v_shows_a_line_for_each_request(folder: Path, site: Site) -> None:
    done = aioflow("run", "web.plan", "-i", '{"page": 1}', "-v", "--output", "found", cwd=folder)
    lines = [line for line in done.stderr.splitlines() if line.startswith("web: ")]
    host = re.escape(site.host)
    assert len(lines) == len(site.requests)
    assert re.fullmatch(rf"web: GET http://{host}/robots.txt 200, 33 bytes, \d+ ms", lines[0])
    assert [
        line
        for line in lines
        if re.fullmatch(rf"web: GET http://{host}/houses\?page=1 200, \d+ bytes, \d+ ms", line)
    ]
    assert "engine: " not in done.stderr


def test_vv_shows_what_the_engine_does_too(folder: Path, site: Site) -> None:
    done = aioflow("run", "web.plan", "-i", '{"page": 1}', "-vv", "--output", "found", cwd=folder)
    engine = [line for line in done.stderr.splitlines() if line.startswith("engine: ")]
    assert re.fullmatch(r"engine: run [0-9a-f]{32} of web begins", engine[0])
    assert "engine: web:18 wrapper begins" in engine
    assert f"engine: web:18 wrapper fires: {site.url('/houses?page=1')}" in engine
    assert "engine: web:18 wrapper has ended: 1 row in, 3 rows out" in engine
    assert engine[-1].endswith(" of web has ended")


def test_a_log_file_has_everything_with_times(folder: Path, site: Site) -> None:
    arguments = ("run", "web.plan", "-i", '{"page": 1}', "--log-file", "run.log", "--output", "found")
    done = aioflow(*arguments, cwd=folder)
    assert "GET" not in done.stderr
    lines = (folder / "run.log").read_text().splitlines()
    moments = [datetime.fromisoformat(line.split(" ")[0]) for line in lines]
    assert all(moment.utcoffset() is not None for moment in moments)
    assert moments == sorted(moments)
    text = "\n".join(lines)
    assert " DEBUG aioflow.web.requests GET " in text
    assert " DEBUG aioflow.engine web:18 wrapper begins" in text
    assert " INFO aioflow.cli 3 rows in " in text


def test_a_warning_is_one_in_the_log_file_and_shown_once(folder: Path) -> None:
    (folder / "skips.plan").write_text(
        'PLAN skips { INPUT: a OUTPUT: b BODY { apply (a, "broken" : b) {ERRORS: skip} } }'
    )
    arguments = ("run", "skips.plan", "--ops", "functions", "-i", '{"n": 7}', "-vv", "--log-file", "run.log")
    done = aioflow(*arguments, cwd=folder)
    message = "1 failure was skipped, the first: ValueError: cannot do 7"
    shown = [line for line in done.stderr.splitlines() if message in line]
    logged = [line for line in (folder / "run.log").read_text().splitlines() if message in line]
    assert len(shown) == len(logged) == 1
    assert shown[0].startswith("warning: skips.plan:1:")
    assert " WARNING aioflow.engine" in logged[0]


def test_that_nothing_was_found_is_in_the_log_file(folder: Path, site: Site) -> None:
    plan = WEB_PLAN.replace("SITE", site.url("")).replace("li.house", "li.none").partition("PLAN web")[0]
    plan += 'PLAN web { INPUT: p (page number) OUTPUT: o BODY { wrapper ("houses", p : o) } }'
    (folder / "web.plan").write_text(plan)
    done = aioflow("run", "web.plan", "-i", '{"page": 1}', "--log-file", "run.log", cwd=folder)
    assert done.returncode == 3
    assert " INFO aioflow.cli nothing was found where something should be" in (folder / "run.log").read_text()


def test_a_log_can_be_json(folder: Path, site: Site) -> None:
    options = ("--log-file", "run.log", "--log-format", "json", "-v")
    done = aioflow("run", "web.plan", "-i", '{"page": 1}', *options, "--output", "found", cwd=folder)
    entries = [json.loads(line) for line in (folder / "run.log").read_text().splitlines()]
    requests = [entry for entry in entries if entry["logger"] == "aioflow.web.requests"]
    assert set(requests[0]) == {"time", "level", "logger", "message"}
    shown = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
    assert [entry["message"] for entry in shown] == [entry["message"] for entry in requests]


def test_the_error_that_ended_a_run_is_in_the_log_file(folder: Path) -> None:
    arguments = ("run", "broken.plan", "--ops", "functions", "-i", '{"n": 7}', "--log-file", "run.log")
    aioflow(*arguments, cwd=folder)
    assert (
        " ERROR aioflow.cli broken.plan:7:5: apply: ValueError: cannot do 7"
        in (folder / "run.log").read_text()
    )


def test_a_log_file_that_cannot_be_written_is_told(folder: Path) -> None:
    done = aioflow("run", "double.plan", "-i", NUMBERS, "--log-file", "nowhere/run.log", cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: cannot write the log: no such file or directory")


def test_fetch_and_wrapper_test_show_their_requests_too(folder: Path, site: Site) -> None:
    for arguments in (
        ("fetch", site.url("/old"), "-v"),
        ("wrapper", "test", "web.plan", "houses", "-i", "page=1", "-v"),
    ):
        done = aioflow(*arguments, cwd=folder)
        assert done.returncode == 0
        assert f"web: GET {site.url('/houses')}" in done.stderr


def test_a_secret_is_in_no_log_and_no_report(folder: Path, site: Site) -> None:
    (folder / "token.plan").write_text(
        f'WRAPPER echo (k char) {{ GET: "{site.url("/missing")}{{?k}}"; HEADERS: X = "secret:TOKEN"\n'
        't: "h1" }\n'
        'PLAN token { INPUT: a (k char) OUTPUT: o BODY { wrapper ("echo", a : o) } }\n'
    )
    given = '{"k": "hunter2-hunter2"}'  # as a host would send it back, in a link
    arguments = ("run", "token.plan", "-i", given, "-vv", "--log-file", "run.log", "--report", "r.json")
    done = aioflow(*arguments, cwd=folder, AIOFLOW_SECRET_TOKEN="hunter2-hunter2")
    assert done.returncode == 1
    told = {"stderr": done.stderr} | {name: (folder / name).read_text() for name in ("run.log", "r.json")}
    for text in told.values():
        assert "/missing?k=********" in text
        assert "hunter2" not in text


# --- a terminal ---------------------------------------------------------------------------------


def test_log_lines_stand_above_the_progress(folder: Path) -> None:
    arguments = ("run", "a_while.plan", "--ops", "functions", "-i", '[{"n": 1}]', "-vv")
    begun = ("a_while_plan:7 apply begins", lambda _: (folder / "over").touch())
    code, shown = in_terminal(*arguments, cwd=folder, once=begun)
    assert code == 0
    # Each line begins where a line begins, however often the display was drawn and erased.
    assert [
        line for line in plain(shown).splitlines() if "engine: " in line and not line.startswith("engine: ")
    ] == []
    assert re.search(r"engine: a_while_plan:7 apply begins\n", plain(shown))


def test_progress_tells_of_pages_and_hosts_and_not_of_permits(folder: Path, site: Site) -> None:
    (folder / "slow.plan").write_text(
        f'WRAPPER busy (page number) {{ GET: "{site.url("/houses")}{{?page}}"; EACH: "li.house"; a: "a" }}\n'
        'PLAN slow { INPUT: p (page number) OUTPUT: o BODY { wrapper ("busy", p : o) } }\n'
    )
    (folder / "aioflow.toml").write_text(
        f'[http]\nallow = ["{site.host}"]\nhealth = false\nrobots = false\nrate = 2\nburst = 1\n'
    )
    rows = json.dumps([{"page": number} for number in (1, 2, 3)])
    code, shown = in_terminal("run", "slow.plan", "-i", rows, cwd=folder)
    assert code == 0
    text = plain(shown)
    assert re.search(r"slow · [\d.]+ s · \d rows\n   \d pages?, [\d.]+ \w+ from 1 host\n", text)
    assert "permit" not in text
    lines = text.splitlines()
    assert re.fullmatch(r"9 rows in [\d.]+ s", lines[-2])
    assert re.fullmatch(r"  3 pages, \d\.\d\d kB from 1 host", lines[-1])


def test_quiet_shows_no_progress(folder: Path) -> None:
    (folder / "over").touch()
    arguments = ("run", "a_while.plan", "--ops", "functions", "-i", '[{"n": 1}]', "-q", "-O", "out.jsonl")
    assert in_terminal(*arguments, cwd=folder) == (0, "")
