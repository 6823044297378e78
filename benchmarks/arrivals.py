"""The moments at which the tuples of a job came: measurements, simulations and peers all have them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from aioflow.benchmarks.harness import Curve


@dataclass(frozen=True)
class Arrivals:
    """The seconds since the start of a job at which each tuple came."""

    arrivals: Sequence[float]

    @property
    def first(self) -> float:
        return self.arrivals[0]

    @property
    def last(self) -> float:
        return self.arrivals[-1]

    def curve(self, name: str) -> Curve:
        """Return tuples over time."""
        steps = ((seconds, float(number)) for number, seconds in enumerate(self.arrivals, 1))
        return Curve(name, ((0.0, 0.0), *steps))
