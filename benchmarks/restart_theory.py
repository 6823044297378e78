"""The figures of Chalasani, Jha, Shehory and Sycara (1998), drawn from `aioflow.restart`, and our own."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt

from aioflow.benchmarks.harness import Bench, Curve, experiment
from aioflow.restart import (
    Discrete,
    Distribution,
    Exponential,
    HalfNormal,
    LogNormal,
    Piecewise,
    best_restart,
    g,
    hedge,
    k_restart,
)

_COUNTS = range(11)
_FIGURE_3 = Piecewise([(0, 1, 8 / 12), (1, 5, 1 / 12)])
_POINTS = 120


def _curve(name: str, value: Callable[[float], float], end: float) -> Curve:
    steps = [end * step / _POINTS for step in range(1, _POINTS + 1)]
    return Curve(name, tuple((each, value(each)) for each in steps))


@experiment(
    "What does theory say about restarts?",
    work="the figures of the paper on restarts, from its formulas as aioflow.restart has them, and the gain "
    "of restarts and hedges for a lognormal source",
    limit="the numbers that the paper prints",
    name="restart-theory",
)
def restart_theory(bench: Bench) -> None:
    for _ in bench.rounds(1, warm_up=0):
        _figure_1(bench)
        _figure_2(bench)
        _figure_3(bench)
        _lognormal(bench)


def _figure_1(bench: Bench) -> None:
    curves = []
    for c in (6.0, 3.5, 2.0):
        source = Discrete({1: 0.5, c: 0.5})
        found = [k_restart(source, 1, count) for count in _COUNTS]
        curves.append(Curve(f"mean, c = {c:g}", tuple((k, each.mean) for k, each in enumerate(found))))
        deviations = tuple((k, sqrt(each.variance)) for k, each in enumerate(found))
        curves.append(Curve(f"deviation, c = {c:g}", deviations))
    bench.plot("Figure 1: mean and standard deviation with k restarts", "restarts k", "seconds", curves)
    six = k_restart(Discrete({1: 0.5, 6: 0.5}), 1, 5)
    bench.sample("c = 6 with five restarts, mean", "s", six.mean, limit=2.047)
    bench.sample("c = 6 with five restarts, standard deviation", "s", sqrt(six.variance), limit=1.634)
    for name in ("mean", "standard deviation"):
        bench.claim_limit(
            f"c = 6 with five restarts: {name}, of the paper's", f"c = 6 with five restarts, {name}"
        )


def _figure_2(bench: Bench) -> None:
    sources: dict[str, Distribution] = {
        "one-sided normal": HalfNormal(),
        "uniform from 0 to 2": Piecewise([(0, 2, 0.5)]),
        "exponential": Exponential(),
    }
    curves = [
        _curve(name, lambda b, source=source: g(source, b) - source.mean, 2.0)  # type: ignore[misc]
        for name, source in sources.items()
    ]
    bench.plot("Figure 2: the loss g(b) - mean where no restart helps", "restart after b", "seconds", curves)


def _figure_3(bench: Bench) -> None:
    curves = [
        _curve("density f(x)", _FIGURE_3.density, 5.0),
        _curve("g(b)", lambda b: g(_FIGURE_3, b), 5.0),
        _curve("mean", lambda b: _FIGURE_3.mean, 5.0),
    ]
    bench.plot("Figure 3: one hump, and yet a restart helps", "seconds", "density, and seconds", curves)
    found = best_restart(_FIGURE_3)
    assert found.after is not None
    bench.sample("figure 3, best time for a restart", "s", found.after, limit=1.0)
    bench.sample("figure 3, mean with it", "s", found.mean, limit=10 / 9)
    bench.claim_limit("figure 3: mean with the best restart, of the paper's 10/9", "figure 3, mean with it")


def _lognormal(bench: Bench) -> None:
    source = LogNormal(0.1, 1.5)
    pairs = [(after, k_restart(source, after, 1), hedge(source, after)) for after in _times(source)]
    curves = [
        Curve("given up and sent again", tuple((each.queries - 1.0, each.mean) for _, each, _ in pairs)),
        Curve("hedge: the first one goes on", tuple((each.extra, each.mean) for _, _, each in pairs)),
        Curve("waiting", ((0.0, source.mean), (0.5, source.mean))),
    ]
    title = "A lognormal source (median 0.1 s, sigma 1.5): time against extra requests"
    bench.plot(title, "extra requests a request", "seconds", curves)


def _times(source: Distribution) -> list[float]:
    return [source.quantile(0.5 + 0.005 * step) for step in range(100)]
