"""Distributions of the time that a query takes, in seconds; part of it may be never.

A distribution gives its moments up to any time b: strategies that give a query up need nothing else. No
numerical library is used, since the engine needs this without an extra: scipy has the closed forms, but
neither atoms beside a density nor an answer that never comes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import accumulate
from math import erf, exp, fsum, inf, isfinite, isnan, log, pi, sqrt
from random import Random
from statistics import NormalDist
from typing import NamedTuple

from aioflow.errors import InputError

_NORMAL = NormalDist()
_SLACK = 1e-9  # of sums of probabilities
_BISECTIONS = 200


class Waited(NamedTuple):
    """A query up to a time: the probability of an answer by then, and the moments E[X; X <= after]."""

    after: float
    answered: float
    first: float
    second: float


class Distribution(ABC):
    """The time until a query is answered. `answered` is less than 1 if some queries never are."""

    answered: float = 1.0
    # Times where probability or density jump: the best time to give up lies there, or in between.
    jumps: tuple[float, ...] = ()
    is_discrete = False

    @abstractmethod
    def until(self, after: float) -> Waited:
        """Return the moments of the answers that come within a time."""

    @abstractmethod
    def sample(self, random: Random) -> float:
        """Return a random time; infinite if the query is never answered."""

    def density(self, x: float) -> float:
        """Return the density at a time, without atoms; on a jump the value to its right."""
        return 0.0

    def cdf(self, x: float) -> float:
        """Return the probability of an answer within a time."""
        return self.until(x).answered

    @cached_property
    def answers(self) -> Waited:
        """The moments of all queries that are answered."""
        return self.until(inf)

    @property
    def mean(self) -> float:
        return self.answers.first if self.answered == 1.0 else inf

    @property
    def variance(self) -> float:
        mean = self.mean
        return max(self.answers.second - mean * mean, 0.0) if isfinite(self.answers.second + mean) else inf

    def quantile(self, share: float) -> float:
        """Return the earliest time by which that share of the queries is answered; infinite if none is."""
        if share > self.answered:
            return inf
        low, high = 0.0, 1.0
        while self.cdf(high) < share:
            low, high = high, 2.0 * high
            if not isfinite(high):
                return inf
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2.0
            if middle in (low, high):
                break
            if self.cdf(middle) < share:
                low = middle
            else:
                high = middle
        return high

    @cached_property
    def times(self) -> tuple[Waited, ...]:
        """The times worth looking at for giving up, in order: jumps, and a grid between them."""
        last = self.answered * (1.0 - 1e-6)
        shares = {last * step / _GRID for step in range(1, _GRID + 1)}
        shares |= {last * 2.0**-step for step in range(1, _FINE)}
        shares |= {self.answered * (1.0 - 2.0**-step) for step in range(1, _FINE)}
        after = {self.quantile(share) for share in shares} | set(self.jumps)
        return tuple(self.until(each) for each in sorted(after) if 0.0 < each < inf)


_GRID = 256
_FINE = 20  # halvings towards both ends, where quantiles are far apart


class _Atoms(Distribution):
    """Times with probabilities of their own."""

    is_discrete = True

    def __init__(self, atoms: Iterable[tuple[float, float]]) -> None:
        kept = sorted((time, share) for time, share in atoms if share > 0.0)
        self._values = [time for time, _ in kept]
        self._shares = [share for _, share in kept]
        self._sums = [
            Waited(0.0, 0.0, 0.0, 0.0),
            *map(
                Waited,
                self._values,
                accumulate(self._shares),
                accumulate(time * share for time, share in kept),
                accumulate(time * time * share for time, share in kept),
            ),
        ]
        total = fsum(self._shares)
        self.answered = 1.0 if abs(total - 1.0) <= _SLACK else total
        if kept:  # sums of rounded numbers have to end at 1
            self._sums[-1] = self._sums[-1]._replace(answered=self.answered)
        self.jumps = tuple(self._values)

    def until(self, after: float) -> Waited:
        return self._sums[bisect_right(self._values, after)]._replace(after=after)

    def quantile(self, share: float) -> float:
        place = bisect_left(self._sums, share, key=lambda sum_: sum_.answered)
        return inf if place == len(self._sums) else self._sums[place].after

    @cached_property
    def times(self) -> tuple[Waited, ...]:
        return tuple(self._sums[1:])

    def sample(self, random: Random) -> float:
        return self.quantile(1.0 - random.random())  # never 0


class Discrete(_Atoms):
    """Times with their probabilities: `{5: 0.6, 20: 0.4}`; if less than 1 in all, the rest never comes."""

    def __init__(self, probabilities: Mapping[int, float] | Mapping[float, float]) -> None:
        for time, share in probabilities.items():
            _check_time(time)
            if not 0.0 <= share <= 1.0 + _SLACK:
                raise InputError(f"Discrete: {share!r} is no probability")
        _check_total("Discrete", fsum(probabilities.values()))
        super().__init__(probabilities.items())

    def __repr__(self) -> str:
        return f"Discrete({dict(zip(self._values, self._shares, strict=True))})"


class Empirical(_Atoms):
    """The distribution of observed times; `censored` are those of queries that were given up unanswered.

    A query that was given up takes longer than that: this is the estimate of Kaplan and Meier. If the longest
    of all was given up, its share counts as answered then, so that mean and variance are lower bounds.
    `weights` and `censored_weights` count observations more or less than others.
    """

    def __init__(
        self,
        samples: Iterable[float],
        censored: Iterable[float] = (),
        *,
        weights: Sequence[float] | None = None,
        censored_weights: Sequence[float] | None = None,
    ) -> None:
        answered, given_up = list(samples), list(censored)
        for time in (*answered, *given_up):
            _check_time(time)
        if not answered and not given_up:
            raise InputError("Empirical: there is no observation")
        # At the same time, answers come before queries that were given up: those take longer.
        shares = weights or [1.0] * len(answered)
        censored_shares = censored_weights or [1.0] * len(given_up)
        seen = [(time, False, weight) for time, weight in zip(answered, shares, strict=True)]
        seen += [(time, True, weight) for time, weight in zip(given_up, censored_shares, strict=True)]
        seen.sort()
        super().__init__(_kaplan_meier(seen))
        self.size = len(seen)

    def __repr__(self) -> str:
        return f"<Empirical of {self.size} observations, mean {self.mean:.4g} s>"


def _kaplan_meier(seen: Sequence[tuple[float, bool, float]]) -> list[tuple[float, float]]:
    """Return times and shares; a time seen more than once is one of them."""
    at_risk = fsum(weight for _, _, weight in seen)
    shares: dict[float, float] = {}
    longer = 1.0
    for time, is_censored, weight in seen:
        if not is_censored and at_risk > 0.0:
            share = longer * min(weight / at_risk, 1.0)
            shares[time] = shares.get(time, 0.0) + share
            longer -= share
        at_risk -= weight
    if longer > 0.0:
        last = seen[-1][0]
        shares[last] = shares.get(last, 0.0) + longer
    return list(shares.items())


class Exponential(Distribution):
    """The exponential distribution, by its mean. Its past says nothing of its future."""

    def __init__(self, mean: float = 1.0) -> None:
        _check_positive("Exponential: the mean", mean)
        self._mean = float(mean)

    def until(self, after: float) -> Waited:
        mean = self._mean
        if after <= 0.0:
            return Waited(after, 0.0, 0.0, 0.0)
        if after == inf:
            return Waited(after, 1.0, mean, 2.0 * mean * mean)
        left = exp(-after / mean)
        first = mean - left * (after + mean)
        second = 2.0 * mean * mean - left * (after * after + 2.0 * after * mean + 2.0 * mean * mean)
        return Waited(after, 1.0 - left, first, second)

    def density(self, x: float) -> float:
        return exp(-x / self._mean) / self._mean if x >= 0.0 else 0.0

    def sample(self, random: Random) -> float:
        return random.expovariate(1.0 / self._mean)

    def __repr__(self) -> str:
        return f"Exponential(mean={self._mean:g})"


class HalfNormal(Distribution):
    """The one-sided normal distribution: the size of a normal deviation with the given sigma."""

    def __init__(self, sigma: float = 1.0) -> None:
        _check_positive("HalfNormal: sigma", sigma)
        self._sigma = float(sigma)

    def until(self, after: float) -> Waited:
        if after <= 0.0:
            return Waited(after, 0.0, 0.0, 0.0)
        scale, scaled = sqrt(2.0 / pi), after / self._sigma
        share = erf(scaled / sqrt(2.0))
        bell = exp(-scaled * scaled / 2.0)
        tail = 0.0 if bell == 0.0 else scale * scaled * bell
        return Waited(after, share, self._sigma * scale * (1.0 - bell), self._sigma**2 * (share - tail))

    def density(self, x: float) -> float:
        scaled = x / self._sigma
        return sqrt(2.0 / pi) * exp(-scaled * scaled / 2.0) / self._sigma if x >= 0.0 else 0.0

    def sample(self, random: Random) -> float:
        return abs(random.gauss(0.0, self._sigma))

    def __repr__(self) -> str:
        return f"HalfNormal(sigma={self._sigma:g})"


class LogNormal(Distribution):
    """The lognormal distribution, by its median and by sigma, the deviation of the logarithm."""

    def __init__(self, median: float = 1.0, sigma: float = 1.0) -> None:
        _check_positive("LogNormal: the median", median)
        _check_positive("LogNormal: sigma", sigma)
        self._median = float(median)
        self._sigma = float(sigma)

    def until(self, after: float) -> Waited:
        if after <= 0.0:
            return Waited(after, 0.0, 0.0, 0.0)
        sigma = self._sigma
        place = log(after / self._median) / sigma if after < inf else inf
        moments = (
            self._median**power * exp(power * power * sigma * sigma / 2.0) * _phi(place - power * sigma)
            for power in range(3)
        )
        return Waited(after, *moments)

    def density(self, x: float) -> float:
        if x <= 0.0:
            return 0.0
        return _NORMAL.pdf(log(x / self._median) / self._sigma) / (x * self._sigma)

    def sample(self, random: Random) -> float:
        return self._median * exp(random.gauss(0.0, self._sigma))

    def __repr__(self) -> str:
        return f"LogNormal(median={self._median:g}, sigma={self._sigma:g})"


class Piecewise(Distribution):
    """A density that is constant on pieces `(low, high, density)`, as in figure 3 of the paper."""

    def __init__(self, pieces: Iterable[tuple[float, float, float]]) -> None:
        self._pieces = sorted(pieces)
        end = 0.0
        for low, high, density in self._pieces:
            if not (end <= low < high < inf and 0.0 <= density < inf):
                raise InputError(
                    f"Piecewise: ({low!r}, {high!r}, {density!r}) is no piece (low, high, density) of its own"
                )
            end = high
        total = fsum((high - low) * density for low, high, density in self._pieces)
        _check_total("Piecewise", total)
        self.answered = 1.0 if abs(total - 1.0) <= _SLACK else total
        self.jumps = tuple(sorted({bound for low, high, _ in self._pieces for bound in (low, high)}))

    def until(self, after: float) -> Waited:
        share = first = second = 0.0
        for low, high, density in self._pieces:
            end = min(high, after)
            if end > low:
                share += (end - low) * density
                first += (end**2 - low**2) / 2.0 * density
                second += (end**3 - low**3) / 3.0 * density
        if self._pieces and after >= self._pieces[-1][1]:
            share = self.answered
        return Waited(after, share, first, second)

    def density(self, x: float) -> float:
        return next((density for low, high, density in self._pieces if low <= x < high), 0.0)

    def sample(self, random: Random) -> float:
        left = random.random()
        for low, high, density in self._pieces:
            share = (high - low) * density
            if left < share:
                return low + left / density
            left -= share
        return inf if self.answered < 1.0 else self._pieces[-1][1]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._pieces})"


class Uniform(Piecewise):
    """Equal density from low to high; `Uniform(4)` is from 0 to 4, like `range`."""

    def __init__(self, low: float, high: float | None = None) -> None:
        low, high = (0.0, low) if high is None else (low, high)
        if not 0.0 <= low < high < inf:
            raise InputError(f"Uniform: {low!r} to {high!r} is no span of times")
        super().__init__([(low, high, 1.0 / (high - low))])

    def __repr__(self) -> str:
        low, high, _ = self._pieces[0]
        return f"Uniform({low:g}, {high:g})"


class Mixture(Distribution):
    """One of several distributions, by pairs `(probability, distribution)`; the rest never comes."""

    def __init__(self, parts: Iterable[tuple[float, Distribution]]) -> None:
        self._parts = list(parts)
        for share, part in self._parts:
            if not isinstance(part, Distribution) or not 0.0 <= share <= 1.0 + _SLACK:
                raise InputError(
                    f"Mixture: ({share!r}, {part!r}) is no pair of a probability and a distribution"
                )
        total = fsum(share for share, _ in self._parts)
        _check_total("Mixture", total)
        answered = fsum(share * part.answered for share, part in self._parts)
        self.answered = 1.0 if abs(answered - 1.0) <= _SLACK else answered
        self.jumps = tuple(sorted({jump for share, part in self._parts if share for jump in part.jumps}))
        self.is_discrete = all(part.is_discrete for _, part in self._parts)

    def until(self, after: float) -> Waited:
        parts = [(share, part.until(after)) for share, part in self._parts if share]
        sums = (fsum(share * waited[place] for share, waited in parts) for place in (1, 2, 3))
        return Waited(after, *sums)

    def density(self, x: float) -> float:
        return fsum(share * part.density(x) for share, part in self._parts)

    @cached_property
    def times(self) -> tuple[Waited, ...]:
        after = {each.after for share, part in self._parts if share for each in part.times}
        return tuple(self.until(each) for each in sorted(after))

    def sample(self, random: Random) -> float:
        left = random.random()
        for share, part in self._parts:
            if left < share:
                return part.sample(random)
            left -= share
        return (
            inf
            if fsum(share for share, _ in self._parts) < 1.0 - _SLACK
            else self._parts[-1][1].sample(random)
        )

    def __repr__(self) -> str:
        return f"Mixture({self._parts})"


def _phi(x: float) -> float:
    return (1.0 + erf(x / sqrt(2.0))) / 2.0


def _check_time(time: float) -> None:
    if isnan(time) or not 0.0 <= time < inf:
        raise InputError(f"{time!r} is no time in seconds; a query that is never answered has no time at all")


def _check_positive(name: str, value: float) -> None:
    if not 0.0 < value < inf:
        raise InputError(f"{name} is to be more than 0, not {value!r}")


def _check_total(name: str, total: float) -> None:
    if not 0.0 < total <= 1.0 + _SLACK:
        raise InputError(
            f"{name}: the probabilities are {total:g} in all; that is to be more than 0, at most 1"
        )
