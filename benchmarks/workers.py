"""How Homeseekers gets faster with workers, until its pages are the limit."""

from __future__ import annotations

from aioflow.benchmarks.growth import claim_growth, curve
from aioflow.benchmarks.harness import Bench, Curve, experiment
from aioflow.benchmarks.limits import limit_of
from aioflow.benchmarks.web_runs import LARGE_PER_PAGE as PER_PAGE
from aioflow.benchmarks.web_runs import PAGES, run_job
from aioflow.demo.running import running_site

LATENCY_SECONDS = 0.025
WORKERS = (1, 2, 4, 8, 16, 32, 64, 128)
# Up to here there is work for all of them.
_ENOUGH = 8


@experiment(
    "How does time fall with the number of workers?",
    work=f"Homeseekers: {PAGES * PER_PAGE} houses on {PAGES} pages, 25 ms a request, by 1 to 128 workers; "
    "the site is a process of its own",
    limit="all requests by all workers, pages one after the other; the processor comes on top",
)
def workers(bench: Bench) -> None:
    latency = bench.size(LATENCY_SECONDS, 0.002)
    per_page, counts = bench.size(PER_PAGE, 3), bench.size(WORKERS, (2, 8))
    limits = {count: limit_of("D+S+", PAGES, per_page, count, latency).last for count in counts}
    with running_site(latency=latency, results=PAGES * per_page, per_page=per_page) as site:
        if not bench.quick:
            run_job("houses", site.url, counts[-1], expected=PAGES * per_page)  # the fastest warms up as well
        for each in bench.rounds(1, warm_up=0):
            runs = {
                count: run_job("houses", site.url, count, expected=PAGES * per_page)
                for count in each.shuffled(counts)
            }
            for count in counts:
                bench.sample(f"workers {count}, last tuple", "s", runs[count].last, limit=limits[count])
                bench.sample(f"workers {count}, peak memory", "MB", runs[count].peak_megabytes)
    measured = curve(bench, "measured", counts, [f"workers {count}, last tuple" for count in counts])
    memory = curve(bench, "peak memory", counts, [f"workers {count}, peak memory" for count in counts])
    few = Curve("few", tuple(point for point in measured.points if point[0] <= _ENOUGH))
    claim_growth(bench, "time with workers, where there is work for all", few)
    claim_growth(bench, "memory with workers", memory)
    bench.plot(
        "Time to the last tuple over workers",
        "workers",
        "seconds",
        [measured, Curve("limit", tuple(limits.items()))],
        logarithmic_x=True,
        logarithmic_y=True,
    )
    bench.plot("Peak memory over workers", "workers", "MB", [memory], logarithmic_x=True)
