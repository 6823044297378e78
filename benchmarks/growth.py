"""How a figure grows with the size of the work: the exponent of the power law that fits its points best."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import linear_regression, median

from aioflow.benchmarks.harness import Bench, Curve
from aioflow.benchmarks.harness.results import Origin

_POINTS = 3


def exponent(points: Iterable[tuple[float, float]]) -> float:
    """Of y = c · x^exponent, by least squares on the logarithms: 1 is linear, 0 does not grow."""
    logarithms = [(math.log(x), math.log(y)) for x, y in points]
    slope: float = linear_regression(*zip(*logarithms, strict=True)).slope
    return slope


def curve(bench: Bench, name: str, sizes: Sequence[float], sampled: Sequence[str]) -> Curve:
    """The medians of what was sampled for each size."""
    values = (median(bench.values(each)) for each in sampled)
    return Curve(name, tuple(zip(sizes, values, strict=True)))


def claim_growth(bench: Bench, what: str, drawn: Curve, origin: Origin = "measured") -> None:
    """Claim the exponent of a curve, at its end: at its beginning there is what every run costs."""
    points = drawn.points[-_POINTS:]
    if not all(y > 0 for _, y in points):
        bench.claim(f"growth of {what}", None, "power", remark="too little to be seen", origin=origin)
        return
    remark = f"the exponent over {points[0][0]:,.12g} to {points[-1][0]:,.12g}: 1 is linear, 0 does not grow"
    bench.claim(f"growth of {what}", exponent(points), "power", remark=remark, origin=origin)
