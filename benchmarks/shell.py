"""From a shell to the first tuple: `aioflow run` beside a program by hand, both with all that they import."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from aioflow.benchmarks.harness import Bench, at_most, experiment
from aioflow.benchmarks.harness.processes import run_command
from aioflow.benchmarks.web_runs import LATENCY_SECONDS, QUICK_LATENCY_SECONDS, UNLIKE_DEFAULTS, WORKERS
from aioflow.demo.running import running_site

HOUSES = 72
TOOLS = ("aioflow run", "by hand")


@experiment(
    "How long from the shell to the first tuple?",
    work=f"Homeseekers by `aioflow run` and by a program written by hand, 100 ms a request, {WORKERS} "
    "workers: from the start of the process to the first line that it prints, and to its end",
    limit="a page and a house: 0.2 s, and the start of the interpreter",
)
def shell(bench: Bench) -> None:
    from aioflow.benchmarks.peers.running import BY_HAND, Job, aioflow_run, program

    latency = bench.size(LATENCY_SECONDS, QUICK_LATENCY_SECONDS)
    with running_site(latency=latency, results=HOUSES) as site, TemporaryDirectory() as folder:
        job = Job("Homeseekers", "houses", site.url, WORKERS, HOUSES)
        commands = dict(
            zip(TOOLS, (aioflow_run(site, WORKERS, Path(folder)), program(BY_HAND, job)), strict=True)
        )
        for each in bench.rounds(7):
            runs = {tool: run_command(commands[tool], profiled_as=tool) for tool in each.shuffled(TOOLS)}
            for tool in TOOLS:
                run = runs[tool]
                if run.first_line_seconds is None or run.lines != HOUSES:
                    raise AssertionError(f"{tool} printed {run.lines} of {HOUSES} houses")
                bench.sample(f"{tool}, first tuple", "s", run.first_line_seconds)
                bench.sample(f"{tool}, all of it", "s", run.seconds)
                bench.sample(f"{tool}, processor time", "s", run.processor_seconds)
    for figure, goal in (("first tuple", at_most(1.8)), ("all of it", None), ("processor time", None)):
        bench.claim_ratio(f"{figure}, of code by hand", f"aioflow run, {figure}", f"by hand, {figure}", goal)
    bench.claim_median("to the first tuple", "aioflow run, first tuple")
    bench.note(UNLIKE_DEFAULTS)
