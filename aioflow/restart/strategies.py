"""Strategies that give a slow query up and ask again, or ask a second time beside it; and the best of them.

The formulas are those of Chalasani, Jha, Shehory and Sycara, "Query Restart Strategies for Web Agents", with
the time counted that was waited before a query was given up, which its formulas (2) to (4) forget.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import pairwise
from math import inf, isfinite
from typing import NamedTuple

import msgspec

from aioflow.errors import InputError
from aioflow.restart.distributions import Distribution, Waited

# Below this share of the time a difference is the rounding of floating-point numbers.
TIE = 1e-9
_NOTHING = 1e-12  # a probability that is 0 but for rounding


class Restart(msgspec.Struct, frozen=True):
    """A query that is given up `after` some seconds (None: never) and sent again, up to `restarts` times.

    `mean` and `variance` are those of the time to the answer, `queries` the expected number of queries and
    `answered` the probability that one of them is answered. `restarts` is None for as often as it takes.
    """

    after: float | None
    restarts: int | None
    mean: float
    variance: float
    queries: float
    answered: float


class Hedge(msgspec.Struct, frozen=True):
    """A second query `after` some seconds (None: never), beside the first; the first answer counts.

    `extra` is the expected number of extra queries. `busy` is the expected time for which queries are under
    way, counting twice while there are two.
    """

    after: float | None
    mean: float
    extra: float
    busy: float
    answered: float


class Strategy(msgspec.Struct, frozen=True):
    """Queries in order: the index of a source, and the seconds after which it is given up (None: never)."""

    steps: tuple[tuple[int, float | None], ...]
    mean: float
    variance: float
    queries: float
    answered: float


class Conditions(msgspec.Struct, frozen=True):
    """Theorem 2 at one restart time. All hold at the best time; together they do not make it the best.

    `improves`: mean * F(b) >= (1 - F(b)) * b. `is_stationary`: g falls before b and rises after it, which is
    F + mean * f = 1 where the density has no jump.
    """

    improves: bool
    is_stationary: bool
    slope_before: float
    slope_after: float


class _Outlook(NamedTuple):
    """What is to be expected from now on; the moments are those of the answers that come."""

    unanswered: float
    first: float
    second: float
    queries: float

    @property
    def mean(self) -> float:
        return self.first if self.unanswered == 0.0 else inf

    @property
    def variance(self) -> float:
        mean = self.mean
        return max(self.second - mean * mean, 0.0) if isfinite(mean) and isfinite(self.second) else inf

    def cost(self, price: float) -> float:
        return self.first + price * self.queries


def _waiting(source: Distribution) -> _Outlook:
    """Return the outlook of one query that is never given up."""
    answers = source.answers
    return _Outlook(1.0 - source.answered, answers.first, answers.second, 1.0)


def _giving_up(waited: Waited, rest: _Outlook) -> _Outlook:
    """Return the outlook of a query that is given up, if it must be, for the `rest`."""
    left = _left(waited)
    if left == 0.0:
        return _Outlook(0.0, waited.first, waited.second, 1.0)
    after, answered = waited.after, 1.0 - rest.unanswered
    return _Outlook(
        left * rest.unanswered,
        waited.first + left * (after * answered + rest.first),
        waited.second + left * (after * after * answered + 2.0 * after * rest.first + rest.second),
        1.0 + left * rest.queries,
    )


def _forever(waited: Waited) -> _Outlook:
    """Return the outlook of queries that are given up after the same time, as often as it takes."""
    share, left, after = waited.answered, _left(waited), waited.after
    if share <= _NOTHING:
        return _Outlook(1.0, 0.0, 0.0, inf)
    first = (waited.first + left * after) / share
    second = (waited.second + left * (after * after + 2.0 * after * first)) / share
    return _Outlook(0.0, first, second, 1.0 / share)


def _left(waited: Waited) -> float:
    left = 1.0 - waited.answered
    return left if left > _NOTHING else 0.0


def _is_better(one: _Outlook, other: _Outlook, price: float) -> bool:
    """Return whether an outlook is better by more than rounding: answers count first, then the cost."""
    if abs(one.unanswered - other.unanswered) > _NOTHING:
        return one.unanswered < other.unanswered
    mine, theirs = one.cost(price), other.cost(price)
    return mine < theirs - TIE * abs(theirs) if isfinite(theirs) else mine < theirs


# --- one source -------------------------------------------------------------------------------


def k_restart(
    source: Distribution,
    after: float | None,
    restarts: int | None = 1,
    then: Distribution | None = None,
) -> Restart:
    """Return the k-restart strategy (Theorem 1): `restarts` times, so that there are up to one more queries.

    `then` gets all queries but the first; None is the same source. `restarts=None` is as often as it takes.
    """
    _check_restarts(restarts)
    if after is None:
        return _restart(None, restarts, _waiting(source))
    _check_after(after)
    return _restart(after, restarts, _repeated(source.until(after), restarts, then or source))


def _repeated(waited: Waited, restarts: int | None, then: Distribution) -> _Outlook:
    if restarts is None:
        return _giving_up(waited, _forever(then.until(waited.after)))
    rest = _waiting(then)
    again = then.until(waited.after)
    for _ in range(restarts - 1):
        rest = _giving_up(again, rest)
    return _giving_up(waited, rest) if restarts else rest


def g(source: Distribution, after: float, then: Distribution | None = None) -> float:
    """Return formula (5): the expected time if the query is given up once, for one that is not."""
    _check_after(after)
    return _giving_up(source.until(after), _waiting(then or source)).mean


def residual(source: Distribution, after: float) -> float:
    """Return E[X - b | X > b]: the time still to be expected after having waited so long."""
    if source.answered < 1.0:
        return inf
    waited = source.until(after)
    left = _left(waited)
    return (source.answers.first - waited.first) / left - after if left else 0.0


def conditions(source: Distribution, after: float) -> Conditions:
    """Return Theorem 2's necessary conditions, with slopes on both sides: the best time may be at a jump."""
    waited = source.until(after)
    mean, left = source.mean, _left(waited)
    step = max(after, 1.0) * 1e-9
    before, behind = (left - mean * source.density(x) for x in (after - step, after + step))
    if source.cdf(after - step) < waited.answered - 1e-6:  # an atom: g falls by a jump
        before = -inf
    tolerance = 1e-6 * max(1.0, mean)
    return Conditions(
        mean * waited.answered >= left * after * (1.0 - TIE),
        before <= tolerance and behind >= -tolerance,
        before,
        behind,
    )


def best_restart(
    source: Distribution,
    restarts: int | None = 1,
    then: Distribution | None = None,
    price: float = 0,
) -> Restart:
    """Return the k-restart strategy with the least expected time, plus `price` seconds for each query."""
    _check_restarts(restarts)
    _check_price(price)
    never = _waiting(source)
    if restarts == 0:
        return _restart(None, restarts, never)

    def outlook(waited: Waited) -> _Outlook:
        return _repeated(waited, restarts, then or source)

    found = _best_time(source, source.times, outlook, price)
    if found is None or not _is_better(found[1], never, price):
        return _restart(None, restarts, never)
    return _restart(found[0], restarts, found[1])


def _best_time(
    source: Distribution, times: Sequence[Waited], outlook: Callable[[Waited], _Outlook], price: float
) -> tuple[float, _Outlook] | None:
    """Return the best of all times, the earliest of equals; between the times of a density it is searched."""
    best: tuple[float, _Outlook] | None = None
    place = 0
    for index, waited in enumerate(times):
        found = outlook(waited)
        if best is None or _is_better(found, best[1], price):
            best, place = (waited.after, found), index
    if best is None or source.is_discrete:
        return best
    for low, high in pairwise(times[max(place - 1, 0) : place + 2]):
        after = _golden(lambda b: outlook(source.until(b)).cost(price), low.after, high.after)
        found = outlook(source.until(after))
        if _is_better(found, best[1], price):
            best = after, found
    return best


_GOLDEN = (5.0**0.5 - 1.0) / 2.0


def _golden(value: Callable[[float], float], low: float, high: float) -> float:
    """Return the place of a minimum by golden section."""
    one, two = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    first, second = value(one), value(two)
    while high - low > 1e-10 * high:
        if first < second:
            high, two, second = two, one, first
            one = high - _GOLDEN * (high - low)
            first = value(one)
        else:
            low, one, first = one, two, second
            two = low + _GOLDEN * (high - low)
            second = value(two)
    return (low + high) / 2.0


def _restart(after: float | None, restarts: int | None, outlook: _Outlook) -> Restart:
    return Restart(
        None if after is None else float(after),
        restarts,
        outlook.mean,
        outlook.variance,
        outlook.queries,
        1.0 - outlook.unanswered,
    )


# --- several sources --------------------------------------------------------------------------


def optimal_strategy(
    sources: Sequence[Distribution],
    queries: int,
    price: float = 0,
    times: Sequence[Iterable[float]] | None = None,
) -> Strategy:
    """Return the best order of up to `queries` queries to several sources, by dynamic programming.

    Each query costs `price` seconds. `times` has the times at which each source may be given up; without it,
    all that matter are looked at. Among equals, not giving up comes first, then the lower index.
    """
    if not sources:
        raise InputError("optimal_strategy: there is no source to ask")
    if queries < 1:
        raise InputError(f"optimal_strategy: {queries!r} queries; there is to be at least one")
    _check_price(price)
    points: list[Sequence[Waited]] = (
        [source.times for source in sources]
        if times is None
        else [tuple(map(source.until, sorted(each))) for source, each in zip(sources, times, strict=True)]
    )
    singles = [_waiting(source) for source in sources]
    alone = _first_best(enumerate(singles), price)
    best = singles[alone]
    steps: tuple[tuple[int, float | None], ...] = ((alone, None),)
    for _ in range(queries - 1):
        rest = best
        found_step: tuple[int, float] | None = None
        for index, source in enumerate(sources):
            found = _best_time(source, points[index], partial(_giving_up, rest=rest), price)
            # The end of the plan is as good as this step if nothing is gained by it.
            if found is not None and _is_better(found[1], best, price):
                found_step, best = (index, float(found[0])), found[1]
        if found_step is None:
            break
        steps = (found_step, *steps)
    return Strategy(steps, best.mean, best.variance, best.queries, 1.0 - best.unanswered)


def _first_best(outlooks: Iterable[tuple[int, _Outlook]], price: float) -> int:
    place, best = -1, _Outlook(1.0, inf, inf, 1.0)
    for index, outlook in outlooks:
        if place < 0 or _is_better(outlook, best, price):
            place, best = index, outlook
    return place


# --- a second query beside the first ----------------------------------------------------------


def hedge(source: Distribution, after: float | None, then: Distribution | None = None) -> Hedge:
    """Return the time and load with a second query `after` some seconds, to `then` or the same source."""
    if after is None:
        return Hedge(None, source.mean, 0.0, source.mean, source.answered)
    _check_after(after)
    second = then or source
    waited = source.until(after)
    left = _left(waited)
    both_fail = (1.0 - source.answered) * (1.0 - second.answered)
    together = inf if both_fail > 0.0 else _together(source, after, second)
    alone = waited.first + left * after
    answered = 1.0 - both_fail
    return Hedge(float(after), alone + together, left, alone + 2.0 * together, answered)


def best_hedge(
    source: Distribution, extra: float = 0.05, then: Distribution | None = None, price: float = 0
) -> Hedge:
    """Return the hedge with the least time, for at most `extra` extra queries and `price` seconds for each.

    Without a price, the earlier the better: the budget decides. A hedge that gains nothing is not made.
    """
    _check_price(price)
    if not extra >= 0.0:
        raise InputError(f"best_hedge: {extra!r} is no number of extra queries")
    never = hedge(source, None)
    earliest = source.quantile(1.0 - extra) if extra < 1.0 else 0.0
    if not isfinite(earliest):
        return never
    later = (each.after for each in source.times if each.after > earliest) if price else ()
    best, least = never, never.mean
    for after in (earliest, *later):
        found = hedge(source, after, then)
        cost = found.mean + price * found.extra
        if found.answered > best.answered or cost < (least - TIE * least if isfinite(least) else least):
            best, least = found, cost
    return best


def _together(source: Distribution, after: float, second: Distribution) -> float:
    """Return the expected time for which both are under way: the integral of the product of their tails."""

    def both(t: float) -> float:
        return (1.0 - source.cdf(after + t)) * (1.0 - second.cdf(t))

    shifted = [each.after - after for each in source.times] + [jump - after for jump in source.jumps]
    bounds = {0.0, *(t for t in shifted if t > 0.0), *(each.after for each in second.times), *second.jumps}
    ordered = sorted(bounds)
    is_step = source.is_discrete and second.is_discrete
    total = 0.0
    for low, high in pairwise(ordered):
        if is_step:
            total += both(low) * (high - low)
        else:
            total += _simpson(both, low, high)
    if not is_step:
        low, high = ordered[-1], 2.0 * ordered[-1]
        while both(low) * (high - low) > 1e-12 * total:
            total += _simpson(both, low, high)
            low, high = high, 2.0 * high
    return total


def _simpson(value: Callable[[float], float], low: float, high: float) -> float:
    """Return an integral between two jumps, which are left out: a step at a bound belongs to its right."""
    width = high - low
    inner = high - width * 1e-9
    middle = (low + inner) / 2.0
    quarters = value((low + middle) / 2.0) + value((middle + inner) / 2.0)
    return width / 12.0 * (value(low) + 4.0 * quarters + 2.0 * value(middle) + value(inner))


# --- checks -----------------------------------------------------------------------------------


def _check_after(after: float) -> None:
    if not after >= 0.0:
        raise InputError(f"{after!r} is no time in seconds after which a query is given up")


def _check_restarts(restarts: int | None) -> None:
    if restarts is not None and restarts < 0:
        raise InputError(f"{restarts!r} restarts; 0 is none, None is as often as it takes")


def _check_price(price: float) -> None:
    if not 0.0 <= price < inf:
        raise InputError(f"{price!r} is no price of a query in seconds")
