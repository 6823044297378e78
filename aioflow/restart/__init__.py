"""Restart strategies: when to give up a slow query and ask again, whom to ask next, and what is gained.

Importable without the engine: distributions of the time to an answer, the theory of restarts and hedges.
"""

from aioflow.restart.distributions import (
    Discrete,
    Distribution,
    Empirical,
    Exponential,
    HalfNormal,
    LogNormal,
    Mixture,
    Piecewise,
    Uniform,
    Waited,
)
from aioflow.restart.strategies import (
    Conditions,
    Hedge,
    Restart,
    Strategy,
    best_hedge,
    best_restart,
    conditions,
    g,
    hedge,
    k_restart,
    optimal_strategy,
    residual,
)

__all__ = [
    "Conditions",
    "Discrete",
    "Distribution",
    "Empirical",
    "Exponential",
    "HalfNormal",
    "Hedge",
    "LogNormal",
    "Mixture",
    "Piecewise",
    "Restart",
    "Strategy",
    "Uniform",
    "Waited",
    "best_hedge",
    "best_restart",
    "conditions",
    "g",
    "hedge",
    "k_restart",
    "optimal_strategy",
    "residual",
]
