"""The benchmark harness: experiments, method, results and reports. `benchmarks/` has the experiments."""

from aioflow.bench.experiment import Bench, Experiment, Round, experiment
from aioflow.bench.results import Claim, Curve, Finding, Goal, Plot, Results, Samples, at_least, at_most

__all__ = [
    "Bench",
    "Claim",
    "Curve",
    "Experiment",
    "Finding",
    "Goal",
    "Plot",
    "Results",
    "Round",
    "Samples",
    "at_least",
    "at_most",
    "experiment",
]
