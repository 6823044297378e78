"""A policy from observations: the latencies of a source, and the decision that they justify.

The paper knows the distribution. Here it is estimated, so a restart is decided on only where its gain is
certain: among a thousand exponential times, some time to give up always seems to gain a few per cent.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from functools import cached_property
from math import hypot, inf, isfinite, sqrt
from statistics import fmean, stdev, variance
from typing import NamedTuple

import msgspec

from aioflow.restart.distributions import Discrete, Distribution, Empirical
from aioflow.restart.policies import RestartPolicy
from aioflow.restart.strategies import best_hedge, hedge, k_restart, optimal_strategy, residual

KEPT = 1000  # observations for each part of the day
PARTS_OF_DAY = 6
KEPT_DAYS = 30.0
_DAY = 86_400.0
_HALF_LIFE = 700  # observations
_AGAIN_KEPT = 200
_AGAIN_LASTS = 5000  # observations of first attempts

FEWEST = 40  # observations before anything is decided
_FEWEST_SLOW = 5  # of them that took longer than the time to give up
_FEWEST_AGAIN = 8  # second attempts, before they count for more than independence
_SIGMAS = 4.5
_SLOWER_SIGMAS = 3.0  # by which second attempts are slower than first ones
USUAL_SHARE = 0.75
_DIFFERENT_SIGMAS = 4.0  # by which means differ
_DIFFERENT = 1.95  # of the Kolmogorov-Smirnov statistic: chance of 0.001
_FEWEST_OF_PART = 100
_CANDIDATES = 48
_BOUND = 0.9  # quantile at which times are cut off where two means are compared, since tails may be heavy
_GAPS = 16
_BISECTIONS = 12
_ATOMS = 128  # a distribution is thinned out to so many times for a hedge, which costs their square
# Some slow requests are left running, or the tail would be forgotten: their share at most, and what they may
# cost of the expected time.
_LEFT_RUNNING = 0.03
_LEARNING_COST = 0.01


class Observation(NamedTuple):
    """An attempt: the time of day in seconds since 1970, how long it took, and whether it was answered.

    An attempt that was given up took longer than that.
    """

    at: float
    seconds: float
    answered: bool = True


class Latencies:
    """The latest observations of one source, by part of the day; those of second attempts are apart."""

    def __init__(self) -> None:
        self._parts = [deque[Observation](maxlen=KEPT) for _ in range(PARTS_OF_DAY)]
        self._again = deque[tuple[int, Observation]](maxlen=_AGAIN_KEPT)
        self.total = 0

    def add(self, seen: Observation, *, again: bool = False) -> None:
        """Add an attempt; `again` if an earlier one at the same request was given up or still runs."""
        if again:
            self._again.append((self.total, seen))
        else:
            self.total += 1
            self._parts[_part_of_day(seen.at)].append(seen)

    def first_attempts(self, now: float) -> list[Observation]:
        """Return first attempts, the latest last: of this part of the day, if it differs from the rest."""
        oldest = now - KEPT_DAYS * _DAY
        here = _part_of_day(now)
        mine = [seen for seen in self._parts[here] if seen.at >= oldest]
        others = [
            seen
            for part, kept in enumerate(self._parts)
            for seen in kept
            if part != here and seen.at >= oldest
        ]
        if min(len(mine), len(others)) >= _FEWEST_OF_PART and _differ(mine, others):
            return mine
        return sorted(mine + others)[-2 * KEPT :]

    def second_attempts(self) -> list[Observation]:
        """Return attempts at requests whose first attempt was slow, unless they were long ago."""
        return [seen for count, seen in self._again if count >= self.total - _AGAIN_LASTS]


class RestartLimits(msgspec.Struct, frozen=True):
    """The bounds of a policy: restarts of one request, and extra requests for each request on average."""

    restarts: int = 5
    extra: float = 0.05


class Decision(msgspec.Struct, frozen=True):
    """The course of a request: whom to ask, and after how many seconds to ask the next one.

    `seconds` is the expected time, `waiting` that of waiting for the first answer, `extra` the expected
    number of extra requests where no cap holds them back; None as long as too little was seen. `slow` is the
    share of requests that are slower than the first time to give up, and `usual` the time that three of four
    keep to. `left_running` is the share of slow requests that is waited for all the same, to learn from.
    `why` is for people.
    """

    steps: tuple[tuple[int, float | None], ...] = ((0, None),)
    keeps_first: bool = False
    seconds: float | None = None
    waiting: float | None = None
    extra: float = 0.0
    slow: float = 0.0
    usual: float = inf
    left_running: float = 0.0
    why: str = ""

    @property
    def restarts(self) -> bool:
        return len(self.steps) > 1

    def under(self, cap: float) -> Decision:
        """Return what is to be expected if extra requests are held back beyond a cap."""
        if self.seconds is None or self.waiting is None or self.extra <= cap:
            return self
        seconds = self.waiting - cap / self.extra * (self.waiting - self.seconds)
        return msgspec.structs.replace(self, seconds=seconds, extra=cap)

    def with_steps(self, steps: tuple[tuple[int, float | None], ...]) -> Decision:
        return msgspec.structs.replace(self, steps=steps)


def decide(
    policy: RestartPolicy,
    sources: Sequence[Latencies],
    limits: RestartLimits,
    now: float,
    before: Decision | None = None,
) -> Decision:
    """Return the decision for sources of the same, the asked one first; `before` is the present decision."""
    seen = [_Seen(each, now) for each in sources]
    if not policy.is_on:
        return Decision(waiting=seen[0].mean, why="restarts are off")
    found = _learned(policy, seen, limits, before) if policy.is_learned else _ruled(policy, seen[0], limits)
    return msgspec.structs.replace(found, usual=seen[found.steps[0][0]].usual)


def _ruled(policy: RestartPolicy, source: _Seen, limits: RestartLimits) -> Decision:
    """Return the decision for a fixed time or a percentile."""
    after = policy.after
    if policy.percentile is not None:
        if source.size < FEWEST:
            return Decision(waiting=source.mean, why=source.too_few)
        assert source.distribution is not None
        after = source.distribution.quantile(policy.percentile / 100.0)
    assert after is not None
    steps = ((0, after),) * (1 if policy.keeps_first else limits.restarts) + ((0, None),)
    if limits.restarts == 0:
        return Decision(waiting=source.mean, why="no restarts are allowed")
    return source.priced(steps, policy.keeps_first, f"as configured: {policy}")


def _learned(
    policy: RestartPolicy, seen: Sequence[_Seen], limits: RestartLimits, before: Decision | None
) -> Decision:
    known = [index for index, each in enumerate(seen) if each.size >= FEWEST]
    if not known:
        return Decision(waiting=seen[0].mean, why=seen[0].too_few)
    first = min(known, key=lambda index: (seen[index].mean or inf, index))
    asked = Decision(((first, None),), seconds=seen[first].mean, waiting=seen[0].mean)
    if limits.restarts == 0 or limits.extra == 0:
        return msgspec.structs.replace(asked, why="no extra requests are allowed")
    is_running = before is not None and before.restarts
    fresh = min((seen[index].fresh for index in known), key=lambda each: each.distribution.mean)
    times = [seen[index].gains(fresh) if index in known else [] for index in range(len(seen))]
    # A policy that is running goes on as long as it is more likely than not to gain something.
    is_certain = is_running or any(seen[index].is_certain(times[index], fresh) for index in known)
    if not is_certain or not any(times):
        if is_running and before is not None and seen[before.steps[0][0]].is_blind(before.steps[0][1]):
            # All that is slow is given up: there is nothing that speaks against it.
            return before
        return msgspec.structs.replace(asked, why=_why_not(seen[first]))
    strategy = _within(seen, known, times, limits)
    found = Decision(
        strategy.steps,
        seconds=strategy.seconds,
        waiting=seen[0].mean,
        extra=strategy.extra,
        slow=seen[strategy.steps[0][0]].slower_share(strategy.steps[0][1]),
        why="the gain is certain",
    )
    found = _hedged(policy, seen[first], found, limits, min(map(min, filter(None, times))))
    return msgspec.structs.replace(found, left_running=_left_running(found))


def _left_running(decision: Decision) -> float:
    """Return the share of slow requests to be left running, by what each of them costs."""
    seconds, waiting = decision.seconds, decision.waiting
    if seconds is None or waiting is None or seconds >= waiting:
        return _LEFT_RUNNING
    return min(_LEFT_RUNNING, _LEARNING_COST * seconds / (waiting - seconds))


def _why_not(source: _Seen) -> str:
    if source.fresh.distribution is not source.distribution:
        return "second attempts are as slow as first ones"
    return "no gain is certain"


class _Found(NamedTuple):
    steps: tuple[tuple[int, float | None], ...]
    seconds: float
    extra: float


def _within(
    seen: Sequence[_Seen], known: Sequence[int], times: Sequence[list[float]], limits: RestartLimits
) -> _Found:
    """Return the best strategy for the cap: the cap is a price for each query, which is found by bisection.

    Where no price gives just the cap, the strategy is the one that asks for more: the cap holds it back.
    """
    sources = [each.distribution for index, each in enumerate(seen) if index in known]
    distributions: list[Distribution] = [each for each in sources if each is not None]
    given_up = [times[index] for index in known]

    def at(price: float) -> _Found:
        found = optimal_strategy(distributions, limits.restarts + 1, price, given_up)
        steps = tuple((known[index], after) for index, after in found.steps)
        return _Found(steps, found.mean, found.queries - 1.0)

    free = at(0.0)
    if free.extra <= limits.extra:
        return free
    low, high, best = 0.0, max(each.mean or 0.0 for each in seen) * 100.0, free
    for _ in range(_BISECTIONS):
        price = (low + high) / 2.0
        found = at(price)
        if found.extra > limits.extra:
            low, best = price, found
        else:
            high = price
    return best


def _hedged(
    policy: RestartPolicy, source: _Seen, found: Decision, limits: RestartLimits, earliest: float
) -> Decision:
    """Return a hedge in place of restarts if it is wanted, or faster and no more load for the source.

    It costs no more extra requests than the restarts would.
    """
    assert source.distribution is not None
    thin = _thinned(source.distribution)
    best = best_hedge(thin, min(limits.extra, found.extra, 1.0))
    if best.after is None:
        return found
    if best.after < earliest:
        best = hedge(thin, earliest)
    assert best.after is not None
    is_lighter = best.busy <= thin.mean
    capped = found.under(limits.extra)
    faster = capped.seconds is None or best.mean < capped.seconds
    if not policy.keeps_first and not (is_lighter and faster):
        return found
    return Decision(
        ((0, best.after), (0, None)),
        True,
        best.mean,
        found.waiting,
        best.extra,
        source.slower_share(best.after),
        why="the gain is certain",
    )


def _thinned(distribution: Empirical) -> Distribution:
    """Return a distribution with fewer times, of equal mean."""
    if len(distribution.jumps) <= _ATOMS:
        return distribution
    shares: dict[float, float] = {}
    last = (0.0, 0.0)
    for step in range(1, _ATOMS + 1):
        waited = distribution.until(distribution.quantile(step / _ATOMS * distribution.answered))
        share = waited.answered - last[0]
        if share > 0.0:
            shares[(waited.first - last[1]) / share] = share
            last = waited.answered, waited.first
    total = sum(shares.values())
    return Discrete({time: share / total for time, share in shares.items()})


class _Mean(NamedTuple):
    mean: float
    error: float


class _Fresh(NamedTuple):
    """The time that a new attempt takes, from so many observations."""

    distribution: Distribution
    size: float

    def bounded(self, most: float) -> _Mean:
        """Return the mean of that time, where longer ones count as `most`."""
        waited = self.distribution.until(most)
        left = 1.0 - waited.answered
        bounded = most if left > 0.0 else 0.0
        mean = waited.first + left * bounded
        spread = waited.second + left * bounded * bounded - mean * mean
        return _Mean(mean, sqrt(max(spread, 0.0) / self.size))


class _Seen:
    """The observations of one source, as far as a decision needs them."""

    def __init__(self, latencies: Latencies, now: float) -> None:
        observations = latencies.first_attempts(now)
        self.size = len(observations)
        weights = [0.5 ** (rank / _HALF_LIFE) for rank in range(self.size - 1, -1, -1)]
        pairs = list(zip(observations, weights, strict=True))
        self.distribution = None
        if any(seen.answered for seen in observations):
            self.distribution = Empirical(
                (seen.seconds for seen in observations if seen.answered),
                (seen.seconds for seen in observations if not seen.answered),
                weights=[weight for seen, weight in pairs if seen.answered],
                censored_weights=[weight for seen, weight in pairs if not seen.answered],
            )
        self.answered = sorted(seen.seconds for seen in observations if seen.answered)
        self.again = latencies.second_attempts()
        squares = sum(weight * weight for weight in weights)
        # The number of observations of equal weight that tell as much.
        self.effective = sum(weights) ** 2 / squares if squares else 0.0

    @property
    def mean(self) -> float | None:
        return None if self.distribution is None else self.distribution.mean

    @property
    def too_few(self) -> str:
        return f"too little was seen: {self.size} of {FEWEST} requests"

    @cached_property
    def fresh(self) -> _Fresh:
        """The time that a new attempt takes: that of second attempts, if they are certainly slower."""
        assert self.distribution is not None
        own = _Fresh(self.distribution, max(self.effective, 1.0))
        if len(self.again) < _FEWEST_AGAIN:
            return own
        seconds = Empirical(
            (seen.seconds for seen in self.again if seen.answered),
            (seen.seconds for seen in self.again if not seen.answered),
        )
        # Those that were given up tell little: a hedge gives most of them up.
        again = _Fresh(seconds, max(sum(seen.answered for seen in self.again), 1))
        most = self.distribution.quantile(_BOUND * self.distribution.answered)
        first, second = own.bounded(most), again.bounded(most)
        is_slower = second.mean - first.mean > _SLOWER_SIGMAS * hypot(first.error, second.error)
        return again if is_slower else own

    @property
    def usual(self) -> float:
        """The time that three of four requests keep to; infinite as long as too little was seen."""
        if self.distribution is None or self.size < FEWEST:
            return inf
        return self.distribution.quantile(USUAL_SHARE)

    def slower_share(self, after: float | None) -> float:
        """Return the share of requests that take longer."""
        return 0.0 if after is None or self.distribution is None else 1.0 - self.distribution.cdf(after)

    def is_blind(self, after: float | None) -> bool:
        """Return whether too few requests were left running after that time to say anything."""
        return after is not None and self._slower_than(after) < _FEWEST_SLOW

    def _slower_than(self, after: float) -> int:
        return len(self.answered) - bisect_right(self.answered, after)

    def gains(self, fresh: _Fresh) -> list[float]:
        """Return the times after which a new attempt seems to be faster than going on waiting (6)."""
        assert self.distribution is not None
        expected = fresh.distribution.mean
        found = []
        for after in self._candidates():
            if self._slower_than(after) >= _FEWEST_SLOW:
                left = residual(self.distribution, after)
                if isfinite(left) and left > expected:
                    found.append(after)
        return found

    def is_certain(self, times: Sequence[float], fresh: _Fresh) -> bool:
        """Return whether the gain after one of these times is no chance."""
        return any(self._is_certain(after, fresh) for after in times)

    def _is_certain(self, after: float, fresh: _Fresh) -> bool:
        """Return whether the gain is no chance, from requests that took longer.

        Of a heavy tail, few observations make most of the variance. So only the gain that is made before
        some bound is looked at: more is gained after it.
        """
        slower = self.answered[len(self.answered) - self._slower_than(after) :]
        size = max(len(slower) * self.effective / self.size, 2.0)
        # Few observations: about Student's distribution instead of the normal one.
        sigmas = _SIGMAS * (1.0 + (_SIGMAS**2 + 1.0) / (4.0 * size))
        most = slower[min(int(len(slower) * _BOUND), len(slower) - 1)] - after
        again = fresh.bounded(most)
        error = sqrt(variance(min(time - after, most) for time in slower) / size + again.error**2)
        return self._bounded_residual(after, most) - again.mean > sigmas * error

    def _bounded_residual(self, after: float, most: float) -> float:
        """Return the time still to be expected after having waited so long, where more counts as `most`."""
        assert self.distribution is not None
        begin, end = self.distribution.until(after), self.distribution.until(after + most)
        between = end.first - begin.first - after * (end.answered - begin.answered)
        return (between + most * (1.0 - end.answered)) / (1.0 - begin.answered)

    def _candidates(self) -> list[float]:
        """Return times to give up: spread evenly, closer in the tail, and before the widest gaps."""
        times, last = self.answered, len(self.answered) - 1
        places = {round(last * step / _CANDIDATES) for step in range(_CANDIDATES)}
        places |= {round(last * (1.0 - 2.0**-step)) for step in range(1, 12)}
        gaps = sorted(range(last), key=lambda place: times[place] - times[place + 1])
        return sorted({times[place] for place in (*places, *gaps[:_GAPS])})

    def priced(self, steps: tuple[tuple[int, float | None], ...], keeps_first: bool, why: str) -> Decision:
        """Return the decision for given steps, with what is to be expected of it if enough was seen."""
        after = steps[0][1]
        found = Decision(steps, keeps_first, waiting=self.mean, slow=self.slower_share(after), why=why)
        if self.distribution is None or self.size < FEWEST:
            # Nothing is known of what is usual: no share of slow requests is too large.
            return msgspec.structs.replace(found, slow=1.0)
        if keeps_first:
            expected = hedge(_thinned(self.distribution), after)
            return msgspec.structs.replace(found, seconds=expected.mean, extra=expected.extra)
        restart = k_restart(self.distribution, after, len(steps) - 1)
        return msgspec.structs.replace(found, seconds=restart.mean, extra=restart.queries - 1.0)


def _part_of_day(at: float) -> int:
    return int(at % _DAY * PARTS_OF_DAY / _DAY)


def _differ(one: Sequence[Observation], other: Sequence[Observation]) -> bool:
    """Return whether two samples are of different distributions: by their means, or by Kolmogorov-Smirnov.

    The latter hardly sees tails, and the former nothing else.
    """
    mine = sorted(seen.seconds for seen in one)
    theirs = sorted(seen.seconds for seen in other)
    error = hypot(*(stdev(times) / sqrt(len(times)) for times in (mine, theirs)))
    if abs(fmean(mine) - fmean(theirs)) > _DIFFERENT_SIGMAS * error:
        return True
    distance = max(
        abs(bisect_right(mine, time) / len(mine) - bisect_right(theirs, time) / len(theirs))
        for time in (*mine, *theirs)
    )
    return distance > _DIFFERENT * sqrt((len(mine) + len(theirs)) / (len(mine) * len(theirs)))
