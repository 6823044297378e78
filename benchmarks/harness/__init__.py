"""The benchmark harness: experiments, method, results and reports. `benchmarks/` has the experiments."""

from aioflow.benchmarks.harness.experiment import Bench, Experiment, Round, experiment
from aioflow.benchmarks.harness.results import (
    Claim,
    Curve,
    Finding,
    Goal,
    Plot,
    Results,
    Samples,
    at_least,
    at_most,
)

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
