"""The monitor service: how late runs begin, what one costs, and how soon a restarted service is back."""

from __future__ import annotations

from typing import Any

from aioflow.benchmarks.harness import Bench, at_most, experiment
from aioflow.benchmarks.harness.processes import run_process

_HOMES = "aioflow.benchmarks.service_homes"
_P99 = 0.99
_MILLI = 1000
LATE, COST, MEMORY = "lateness of 99 % of runs", "processor time of a run", "memory"
READY, FIRST = "restart until ready", "restart until the first run"


@experiment(
    "How late are the runs of a service, what does one cost, and how soon is a service back?",
    work="1,000 tasks of a small plan, each due once a minute at a time of its own, served for two minutes; "
    "and `aioflow serve` on a home with these tasks and 10,000 messages in the outbox",
    limit="none: a run has one tuple",
)
def service(bench: Bench) -> None:
    tasks, seconds = bench.size(1000, 40), bench.size(120, 2)
    messages = bench.size(10_000, 50)
    for _ in bench.rounds(3, warm_up=0):
        served = run_process(_HOMES, "minute", tasks, seconds)
        late = served["late_seconds"]
        _expect_all(served)
        bench.sample(LATE, "s", late[min(int(len(late) * _P99), len(late) - 1)])
        bench.sample(COST, "ms", served["processor_seconds"] / len(late) * _MILLI)
        bench.sample(MEMORY, "MB", served["megabytes"])
        bench.moved(len(late))
    for _ in bench.rounds(3, warm_up=0):
        again = run_process(_HOMES, "restart", tasks, messages)
        bench.sample(READY, "s", again["ready_seconds"])
        bench.sample(FIRST, "s", again["first_run_seconds"])
    bench.claim_median(f"{tasks:,} tasks a minute: {LATE}", LATE, at_most(1))
    bench.claim_median(COST, COST, at_most(30))
    bench.claim_median(f"memory of a service with {tasks:,} tasks", MEMORY)
    bench.claim_median(f"{READY}, {messages:,} messages in the outbox", READY, at_most(5))
    bench.claim_median(f"{FIRST} has begun", FIRST, at_most(5))


def _expect_all(served: dict[str, Any]) -> None:
    others = served["states"].keys() - {"succeeded", "waiting", "running"}
    if others or not served["late_seconds"]:
        raise AssertionError(f"runs did not all succeed: {served['states']}")
