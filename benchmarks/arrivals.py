"""When the tuples of a job came: what measurements, simulations and peers have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from aioflow.bench import Curve


@dataclass(frozen=True)
class Arrivals:
    """Seconds since the start of a job, of each tuple as it came."""

    arrivals: Sequence[float]

    @property
    def first(self) -> float:
        return self.arrivals[0]

    @property
    def last(self) -> float:
        return self.arrivals[-1]

    def curve(self, name: str) -> Curve:
        """Tuples over time."""
        steps = ((seconds, float(number)) for number, seconds in enumerate(self.arrivals, 1))
        return Curve(name, ((0.0, 0.0), *steps))
