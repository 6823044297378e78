"""Kills of jobs, at named moments and at random, with every kind of effect; each is compared with a run."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from aioflow.demo.running import Site
from tests.cli.program import AIOFLOW, aioflow, environment, own_folders
from tests.jobs.job_plan import EFFECTS, WORKERS, pages, undisturbed, write_plan

_MOMENTS = (
    *("job outcome known", "job noted", "job record put", "job record put:5", "job record put:20"),
    *("job record put:60", "job records stored", "job records stored:2", "job records stored:3"),
    *("job outcome known:2", "transaction begun", "writes applied", "transaction committed"),
    *("message claimed", "maildir-written", "maildir-moved", "message noted"),
)
_KINDS = ("overwrite", "append", "effects")
_ATTEMPTS_AT_MOST = 40


@dataclass
class Report:
    """What a campaign did and found."""

    jobs: int = 0
    kills: Counter[str] = field(default_factory=Counter)
    doubles: int = 0
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        kills = sum(self.kills.values())
        doubles = f"{self.doubles} requests made twice"
        return f"{self.jobs} jobs, {kills} kills, {doubles}, {len(self.problems)} problems"


def run_campaign(site: Site, kills: int, seed: int) -> Report:
    """Kill jobs until there were so many kills."""
    report = Report()
    choose = random.Random(seed)
    while sum(report.kills.values()) < kills:
        with tempfile.TemporaryDirectory(prefix="aioflow-jobs-") as folder:
            _kill_one(Path(folder), site, choose, report)
    return report


def _kill_one(folder: Path, site: Site, choose: random.Random, report: Report) -> None:
    """Run one job with kills to its end, and compare."""
    kind = choose.choice(_KINDS)
    write_plan(folder, site)
    expected = undisturbed(folder)
    write_plan(folder, site, EFFECTS if kind == "effects" else "")
    site.clear_log()
    (folder / "out.jsonl").write_text("before\n" if kind == "append" else "")
    before = sum(report.kills.values())
    for _ in range(_ATTEMPTS_AT_MOST):
        status = _attempt(folder, kind, choose, report, ends=sum(report.kills.values()) - before >= 6)
        if status != -signal.SIGKILL:
            break
    report.jobs += 1
    place = f"job {report.jobs} ({kind})"
    if status != 0:
        report.problems.append(f"{place}: ended with {status}")
        return
    asked = pages(site)
    doubles = sum(asked.values()) - len(asked)
    report.doubles += doubles
    killed = sum(report.kills.values()) - before
    # Under way, and put since the group before: a quarter of a second of requests.
    if doubles > killed * (WORKERS + 64):
        report.problems.append(f"{place}: {doubles} requests were made twice in {killed} kills")
    report.problems += [f"{place}: {problem}" for problem in _differences(folder, kind, expected)]


def _attempt(folder: Path, kind: str, choose: random.Random, report: Report, *, ends: bool) -> int:
    options = {"overwrite": ("-O", "out.jsonl"), "append": ("-o", "out.jsonl"), "effects": ()}[kind]
    arguments = ["run", "houses.plan", "--job", "j", "-i", "city=Irvine", *options]
    if ends:
        return aioflow(*arguments, cwd=folder).returncode
    if choose.random() < 0.5:
        moment = choose.choice(_MOMENTS)
        status = aioflow(*arguments, cwd=folder, AIOFLOW_KILL_AT=moment).returncode
        if status == -signal.SIGKILL:
            report.kills[moment] += 1
        return status
    process = subprocess.Popen(
        [*AIOFLOW, *arguments],
        cwd=folder,
        env=environment(**own_folders(folder)),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        return process.wait(choose.uniform(0.2, 1.2))
    except subprocess.TimeoutExpired:
        process.kill()
        status = process.wait()
        report.kills["at random"] += status == -signal.SIGKILL
        return status


def _differences(folder: Path, kind: str, expected: list[str]) -> list[str]:
    if kind == "effects":
        return _effects(folder, len(expected))
    lines = (folder / "out.jsonl").read_text().splitlines()
    if kind == "append":
        first, *lines = lines
        if first != "before":
            return ["the file lost what was there before"]
    return [] if sorted(lines) == expected else ["the file differs from that of an undisturbed run"]


def _effects(folder: Path, houses: int) -> list[str]:
    (folder / "count.plan").write_text(
        'PLAN count { OUTPUT: out BODY { dbquery ("select count(*) as houses from houses" : out) } }'
    )
    found = json.loads(aioflow("run", "count.plan", "-q", cwd=folder).stdout)["houses"]
    aioflow("outbox", "deliver", "houses.plan", cwd=folder)
    # One that was claimed when the process died waits until its lease has run out.
    waiting = len(aioflow("outbox", "list", "--json", cwd=folder).stdout.splitlines())
    mails = max(waiting, len(list((folder / "mail" / "new").glob("*"))))
    problems = []
    if found != houses:
        problems.append(f"{found} rows are stored, not {houses}")
    if mails != 1:
        problems.append(f"there are {mails} mails")
    return problems
