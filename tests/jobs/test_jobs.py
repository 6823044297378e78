"""Jobs: killed at any moment, the same command goes on, loses nothing and does not ask twice."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from aioflow.demo.running import Site, running_site
from aioflow.jobs import JobStore
from tests.cli.program import aioflow, start
from tests.jobs.campaign import run_campaign
from tests.jobs.job_plan import EFFECTS, WORKERS, pages, undisturbed, write_plan


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with running_site(latency=0.03) as site:
        yield site


@pytest.fixture
def folder(tmp_path: Path, site: Site) -> Path:
    write_plan(tmp_path, site)
    site.clear_log()
    return tmp_path


def attempt(folder: Path, *options: str, job: str = "j", **changes: str) -> int:
    """Run the plan as a job; the exit code."""
    arguments = ("run", "houses.plan", "--job", job, "-i", "city=Irvine", *options)
    return aioflow(*arguments, cwd=folder, **changes).returncode


def shown(folder: Path, job: str = "j") -> dict[str, object]:
    found: dict[str, object] = json.loads(aioflow("job", "show", job, "--json", cwd=folder).stdout)
    return found


# --- going on -----------------------------------------------------------------------------------


def test_killed_again_and_again_a_job_gives_what_an_undisturbed_run_gives(folder: Path, site: Site) -> None:
    expected = undisturbed(folder)
    once = pages(site)
    site.clear_log()
    moments = [
        *("job outcome known", "job noted", "job record put", "job records stored", "job record put:9"),
        *("job record put:30", "job record put:40", "job outcome known:2"),
    ]
    for moment in moments:
        assert attempt(folder, "-O", "out.jsonl", AIOFLOW_KILL_AT=moment) == -signal.SIGKILL, moment
    assert attempt(folder, "-O", "out.jsonl") == 0
    assert sorted((folder / "out.jsonl").read_text().splitlines()) == expected
    asked = pages(site)
    assert asked.keys() == once.keys()
    assert shown(folder)["state"] == "finished"
    assert shown(folder)["done"] == len(once)


def test_what_is_stored_is_not_asked_for_again(folder: Path, site: Site) -> None:
    """Repeated are the requests that were under way, and those of the group that was open: here none."""
    kills = 0
    while attempt(folder, AIOFLOW_KILL_AT="job records stored:2") == -signal.SIGKILL:
        kills += 1
    assert kills
    asked = pages(site)
    assert sum(asked.values()) - len(asked) <= kills * WORKERS


def test_ctrl_c_keeps_what_was_done_and_resume_goes_on(folder: Path, site: Site) -> None:
    expected = undisturbed(folder)
    once = pages(site)
    with start(
        *("run", "houses.plan", "--job", "j", "-i", "city=Irvine", "-o", "out.jsonl"), cwd=folder
    ) as process:
        while not pages_of_job(folder):
            pass
        process.popen.send_signal(signal.SIGINT)
        process.end()
    found = shown(folder)
    if found["state"] == "stopped":  # it may have been quicker than we were
        site.clear_log()
        assert aioflow("job", "resume", "j", cwd=folder).returncode == 0
        assert sum(pages(site).values()) < len(once)
    assert sorted((folder / "out.jsonl").read_text().splitlines()) == expected
    assert shown(folder)["state"] == "finished"


def pages_of_job(folder: Path) -> bool:
    return (folder / "aioflow-jobs" / "j" / "job.db").exists() and shown_safely(folder)


def shown_safely(folder: Path) -> bool:
    done = aioflow("job", "show", "j", "--json", cwd=folder)
    return done.returncode == 0 and json.loads(done.stdout)["done"] > 0


def test_a_finished_job_has_nothing_to_do(folder: Path, site: Site) -> None:
    assert attempt(folder, "-O", "out.jsonl") == 0
    once = pages(site)
    site.clear_log()
    done = aioflow("run", "houses.plan", "--job", "j", "-i", "city=Irvine", cwd=folder)
    assert done.returncode == 0
    assert "finished at" in done.stderr
    assert pages(site) == {}
    assert aioflow("job", "forget", "j", cwd=folder).returncode == 0
    assert aioflow("job", "show", "j", cwd=folder).returncode == 2
    assert attempt(folder) == 0
    assert pages(site) == once


def test_a_file_that_is_appended_to_is_cut_where_the_job_began(folder: Path) -> None:
    expected = undisturbed(folder)
    (folder / "out.jsonl").write_text('{"house": "before"}\n')
    for moment in ("job record put:30", "job record put:60"):
        assert attempt(folder, "-o", "out.jsonl", AIOFLOW_KILL_AT=moment) == -signal.SIGKILL
    assert attempt(folder, "-o", "out.jsonl") == 0
    first, *rest = (folder / "out.jsonl").read_text().splitlines()
    assert first == '{"house": "before"}'
    assert sorted(rest) == expected


def test_a_short_campaign_of_kills(site: Site) -> None:
    """The long form is `python -m tests.jobs`."""
    report = run_campaign(site, 6, seed=3)
    assert report.problems == []
    assert sum(report.kills.values()) >= 6


# --- effects ------------------------------------------------------------------------------------


@pytest.mark.parametrize("moment", ["job record put:20", "transaction committed", "job outcome known:2"])
def test_effects_take_hold_once(folder: Path, site: Site, moment: str) -> None:
    write_plan(folder, site, EFFECTS)
    assert attempt(folder, AIOFLOW_KILL_AT=moment) == -signal.SIGKILL
    done = aioflow("run", "houses.plan", "--job", "j", "-i", "city=Irvine", cwd=folder)
    assert shown(folder)["state"] == "finished", done.stderr
    rows = aioflow("run", "count.plan", "-q", cwd=counted(folder))
    assert json.loads(rows.stdout) == {"houses": len(undisturbed(folder))}
    assert len(list((folder / "mail" / "new").iterdir())) == 1


def test_a_file_that_was_not_written_after_the_commit_is_told(folder: Path, site: Site) -> None:
    write_plan(folder, site, EFFECTS)
    command = ("run", "houses.plan", "--job", "j", "-i", "city=Irvine", "-O", "out.jsonl")
    assert (
        aioflow(*command, cwd=folder, AIOFLOW_KILL_AT="transaction committed").returncode == -signal.SIGKILL
    )
    assert not (folder / "out.jsonl").exists()
    done = aioflow(*command, cwd=folder)
    assert done.returncode == 2
    assert "had committed before it was killed, and out.jsonl may lack its rows" in done.stderr


def counted(folder: Path) -> Path:
    (folder / "count.plan").write_text(
        'PLAN count { OUTPUT: out BODY { dbquery ("select count(*) as houses from houses" : out) } }'
    )
    return folder


# --- what a job refuses -------------------------------------------------------------------------


def test_other_inputs_are_another_job(folder: Path) -> None:
    assert attempt(folder, AIOFLOW_KILL_AT="job record put:5") == -signal.SIGKILL
    done = aioflow("run", "houses.plan", "--job", "j", "-i", "city=Orange", cwd=folder)
    assert done.returncode == 2
    assert "the job j has other inputs or parameters" in done.stderr


def test_a_plan_that_commits_as_it_streams_is_no_job(folder: Path) -> None:
    text = (folder / "houses.plan").read_text().replace("OUTPUT: found", "OUTPUT: found\n  COMMIT: batch")
    (folder / "houses.plan").write_text(text)
    done = aioflow("run", "houses.plan", "--job", "j", "-i", "city=Irvine", cwd=folder)
    assert done.returncode == 2
    assert "plan houses has COMMIT: batch, and a job commits once" in done.stderr


async def test_two_processes_do_not_work_on_one_job(folder: Path) -> None:
    store = await JobStore.open(folder / "aioflow-jobs" / "j")
    try:
        done = aioflow("run", "houses.plan", "--job", "j", "-i", "city=Irvine", cwd=folder)
    finally:
        await store.close()
    assert done.returncode == 2
    assert "the job j is being worked on by another process" in done.stderr


def test_inputs_are_read_again_in_each_attempt(folder: Path) -> None:
    (folder / "cities.jsonl").write_text('{"city": "Irvine"}\n')
    command = ("run", "houses.plan", "--job", "j", "-i", "cities=@cities.jsonl", "-O", "out.jsonl")
    assert aioflow(*command, cwd=folder, AIOFLOW_KILL_AT="job record put:9").returncode == -signal.SIGKILL
    assert aioflow(*command, cwd=folder).returncode == 0
    assert sorted((folder / "out.jsonl").read_text().splitlines()) == undisturbed(folder)
    done = aioflow("run", "houses.plan", "--job", "k", "-i", "-", cwd=folder, input='{"city": "Irvine"}')
    assert done.returncode == 2
    assert "give a file instead of stdin" in done.stderr


@pytest.mark.parametrize("name", ["../x", "", "a b", ".hidden"])
def test_names_are_names(folder: Path, name: str) -> None:
    assert attempt(folder, job=name) == 2
    assert not (folder.parent / "x").exists()


# --- new versions, failures ---------------------------------------------------------------------


def test_a_new_version_of_the_plan_asks_only_for_what_it_reads_in_another_way(
    folder: Path, site: Site
) -> None:
    once = len(undisturbed(folder))
    site.clear_log()
    assert attempt(folder, AIOFLOW_KILL_AT="job records stored:2") == -signal.SIGKILL
    stored = shown(folder)["done"]
    site.clear_log()
    text = (folder / "houses.plan").read_text()
    changed = text.replace(
        'project (listed, "house" : urls)',
        'select (listed, "house <> \'\'" : some)\n    project (some, "house" : urls)',
    )
    (folder / "houses.plan").write_text(f"# a comment moves every line\n{changed}")
    assert attempt(folder) == 0
    assert int(str(shown(folder)["done"])) - int(str(stored)) == sum(pages(site).values())
    assert aioflow("job", "forget", "j", cwd=folder).returncode == 0
    assert attempt(folder, AIOFLOW_KILL_AT="job outcome known:2") == -signal.SIGKILL
    site.clear_log()
    wrappers = (folder / "wrappers.plan").read_text().replace('price: ".asking" number', 'asked: ".asking"')
    (folder / "wrappers.plan").write_text(wrappers)
    (folder / "houses.plan").write_text(changed.replace("address, price", "address, asked"))
    assert attempt(folder, "-O", "out.jsonl") == 0
    asked = pages(site)
    assert len(asked) == once
    assert all(path.startswith("/houses/") for path in asked)
    assert '"asked": "$' in (folder / "out.jsonl").read_text()


def test_failures_that_the_plan_takes_are_remembered(folder: Path, site: Site) -> None:
    plan = (folder / "houses.plan").read_text()
    plan = plan.replace("{ERRORS: skip}", "{ERRORS: failed}").replace(
        "OUTPUT: found", "OUTPUT: failed, found"
    )
    plan = plan.replace(
        'project (listed, "house" : urls)', "project (listed, \"house || '-gone' as house\" : urls)"
    )
    (folder / "houses.plan").write_text(plan)
    assert attempt(folder, AIOFLOW_KILL_AT="job outcome known:2") == -signal.SIGKILL
    site.clear_log()
    done = aioflow(
        *("run", "houses.plan", "--job", "j", "-i", "city=Irvine", "--output", "failed", "-O", "out.jsonl"),
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    assert pages(site) == {}
    rows = [json.loads(line) for line in (folder / "out.jsonl").read_text().splitlines()]
    assert rows
    assert {row["error-kind"] for row in rows} == {"HttpStatusError"}
    assert shown(folder)["failed"] == len(rows)
