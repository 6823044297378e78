"""The crawler of a form: it asks queries, passes on tuples that are certain, and keeps the report.

Algorithms are steps that ask one query and add further steps. A number of workers take the latest step
first, so that the steps wait in little memory. No step waits for another: a deep search has no deep stack.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, TypeAlias

import msgspec
from msgspec.structs import replace

from aioflow.errors import InputError
from aioflow.hidden.coverage import RegionIndex
from aioflow.hidden.knowledge import Knowledge
from aioflow.hidden.known import Known
from aioflow.hidden.report import CrawlReport, Kind, SourceChange, Unresolved
from aioflow.hidden.space import (
    Codes,
    QueryAnswer,
    RangeAxis,
    Region,
    Space,
    counted,
    identity,
)

# Conditions by attribute -> tuples in the order of attributes, and whether there are more: yes, no, how many
# there are in all, or None if the source does not say.
Query: TypeAlias = Callable[[dict[str, Any]], Awaitable[tuple[Iterable[Sequence[Any]], bool | int | None]]]
Step: TypeAlias = Callable[[], Awaitable[None]]
_SAME_WARNINGS_AT_MOST = 20
# Answers that overflowed, which a fallback may need again: as many as a sweep has queries to spare, and more
# of them if they have few tuples.
_RECENT_AT_LEAST, _RECENT_TUPLES = 48, 16_384
# A source that says at every query that there are more would be asked for ever. It is believed for as many
# points in a row of which it shows nothing, or queries of which none was answered with all tuples.
_EMPTY_POINTS_AT_MOST, _OVERFLOWS_AT_MOST = 100, 10_000


class _Shown(msgspec.Struct, frozen=True):
    row: tuple[Any, ...]
    codes: Codes
    times: int


class FormCrawler:
    """The queries, results and steps that an algorithm works with."""

    def __init__(
        self,
        query: Query,
        space: Space,
        report: CrawlReport,
        knowledge: Knowledge,
        send: Callable[[list[tuple[Any, ...]]], Awaitable[None]],
        workers: int,
        known: Known,
        *,
        keeps_answers: bool = True,
    ) -> None:
        self._keeps_answers = keeps_answers
        self.space = space
        self.known = known
        self.report = report
        self.knowledge = knowledge
        self.workers = workers
        self._query = query
        self._send = send
        self._k = report.k
        self._longest = 0
        self._is_told = True  # whether answers say that there are more
        self._whole = 0  # answers that have all tuples of their query
        self._empty_points = 0  # in a row, of which the source says that there are more than none
        self._steps: list[Step] = []
        self._idle = 0
        self._has_steps = asyncio.Event()
        self._sent: set[Region] = set()
        self._kept: dict[Region, QueryAnswer] = {}
        self._whole_slices: set[Region] = set()  # whose tuples were not kept
        self._recent: dict[Region, QueryAnswer] = {}  # that overflowed: a fallback may come to them again
        self._under_way: dict[Region, asyncio.Future[QueryAnswer]] = {}
        self._sample: Counter[Any] = Counter()
        # Tuples that answers have shown and no region has passed on yet, by their identity.
        self._shown: dict[Any, _Shown] = {}
        self._unresolved: list[tuple[Region, tuple[Region, ...]]] = []  # each without parts of it
        self._at_least = 0  # tuples, by the first answer
        self._divided: set[int] = set()  # attributes that queries have values of
        self._without_value: set[int] = set()  # attributes that have no value in some tuple
        self._expanded: dict[int, list[Callable[[int], Step]]] = {}

    # --- steps --------------------------------------------------------------------------------------

    def add(self, *steps: Step) -> None:
        """Add steps, of which the first is to be taken first."""
        self._steps.extend(reversed(steps))
        self._has_steps.set()

    async def work(self) -> None:
        """Take steps until none is left and no other worker can add any."""
        while True:
            if self._steps:
                await self._steps.pop()()
                continue
            self._idle += 1
            if self._idle == self.workers:
                self._has_steps.set()  # the others look, and end too
                return
            self._has_steps.clear()
            await self._has_steps.wait()
            if self._idle == self.workers:
                return
            self._idle -= 1

    # --- queries ------------------------------------------------------------------------------------

    async def ask(self, region: Region, *, keep: bool = False) -> QueryAnswer:
        """Return the answer to a query. One that is under way, kept or recent is not asked again."""
        known = self._kept.get(region, self._recent.get(region))
        if known is not None:
            return known
        if region in self._under_way:
            return await asyncio.shield(self._under_way[region])
        future = self._under_way[region] = asyncio.get_running_loop().create_future()
        try:
            answer = await self._asked(region)
        except BaseException as error:
            if isinstance(error, Exception):
                future.set_exception(error)
                future.exception()  # nobody may be waiting
            else:
                future.cancel()
            raise
        finally:
            del self._under_way[region]
        future.set_result(answer)
        if answer.overflows and not keep:  # a slice has tuples of regions that were passed on before
            self._note_shown(answer if self._keeps_answers else self._seen_only_now(answer))
        if keep:
            self._keep(region, answer)
        elif answer.overflows and self._keeps_answers:
            self._recent[region] = answer
            if len(self._recent) > max(_RECENT_AT_LEAST, _RECENT_TUPLES // max(len(answer), 1)):
                del self._recent[next(iter(self._recent))]
        return answer

    def _keep(self, region: Region, answer: QueryAnswer) -> None:
        """Keep the answer to a slice, or only whether it overflows."""
        if answer.overflows and self.space.free_lists(region):
            # Of one that overflows and can be divided, only that fact is of use later.
            self._kept[region] = QueryAnswer((), (), overflows=True)
        elif self._keeps_answers or not (answer.overflows or len(answer)):
            self._kept[region] = answer
        elif not answer.overflows:
            self._whole_slices.add(region)

    def _seen_only_now(self, answer: QueryAnswer) -> QueryAnswer:
        """Return the tuples of an answer that no resolved region may hold, if answers are not kept."""
        if self.space.one_sided:
            return answer
        pairs = [pair for pair in zip(answer.codes, answer.rows, strict=True) if None in pair[0]]
        return replace(answer, codes=[codes for codes, _ in pairs], rows=[row for _, row in pairs])

    def _note_shown(self, answer: QueryAnswer) -> None:
        """Remember the tuples of an answer until a region passes them on."""
        for (row, times), codes in zip(counted(answer.rows).items(), _first_codes(answer), strict=True):
            known = self._shown.get(row)
            if known is None or known.times < times:
                self._shown[row] = _Shown(codes[1], codes[0], times)

    async def ask_unless_known(self, region: Region) -> QueryAnswer:
        """Return the answer to a query, or known tuples if it would overflow for all that is known."""
        return self.known.overflowing(region, self._k) or await self.ask(region)

    @property
    def most_whole(self) -> int:
        """The most tuples of an answer that certainly is whole."""
        k = max(self.report.k or 1, 1)
        return k if self._is_told else max(k - 1, 1)

    def slice_overflows(self, region: Region) -> bool | None:
        """Return whether a slice is known to overflow; None if it was not asked."""
        known = self._kept.get(region)
        return known.overflows if known is not None else False if self.is_forgotten(region) else None

    def is_forgotten(self, region: Region) -> bool:
        """Return whether a slice was whole and its answer was not kept."""
        return region in self._whole_slices

    async def _asked(self, region: Region) -> QueryAnswer:
        if self.knowledge.excludes(region):
            return QueryAnswer((), (), overflows=False)
        query = self.space.query(region)
        answer = await self._query(query)
        # One that a quota refused was not asked, and is not counted.
        if region in self._sent:
            self.report.repeated += 1
        else:
            self._sent.add(region)
            self.report.queries += 1
        try:
            shown, more = answer
            rows = [tuple(row) for row in shown]
        except (TypeError, ValueError) as error:
            raise InputError(f"a query returns its tuples and whether there are more: {error}") from error
        found = self._read(region, query, rows, more)
        if not found.overflows:
            self._whole, self._empty_points = self._whole + 1, 0
        return found

    def _read(
        self, region: Region, query: dict[str, Any], rows: list[tuple[Any, ...]], more: bool | int | None
    ) -> QueryAnswer:
        total = _total(more)
        self._is_told = more is not None
        limit = self._limit(len(rows))
        is_full = limit is not None and len(rows) >= limit and bool(rows)
        overflows = is_full if more is None else total > len(rows) if total is not None else bool(more)
        codes, kept = self._understood(region, rows)
        self.knowledge.check(codes, self.doubt)
        if region == self.space.whole:
            self._take_sample(kept, total)
            self._at_least = len(rows) + 1 if overflows and more is not None else 0
        self._expand_learnt()
        return QueryAnswer(codes, kept, overflows, is_undecided=is_full and more is None, total=total)

    def _understood(
        self, region: Region, rows: Iterable[tuple[Any, ...]]
    ) -> tuple[list[Codes], list[tuple[Any, ...]]]:
        """Return the tuples of an answer that lie in its region, as numbers and as they came."""
        codes, kept = [], []
        checks = self.space.checks(region)
        for row in rows:
            found = self._codes(row)
            if found is None:
                continue
            if all(holds(predicate, found[place]) for place, holds, predicate in checks):
                codes.append(found)
                kept.append(row)
            else:
                self.warn("answers hold tuples that their query did not ask for, which were left out", row)
        return codes, kept

    def _limit(self, found: int) -> int | None:
        """Return the most tuples of an answer. Without k, the longest answer so far is taken for full."""
        if self._k is not None:
            if found > self._k:
                self.warn(f"an answer has more than k = {self._k} tuples", None)
            return self._k
        if found > self._longest:
            self._longest = self.report.k = found
        return self._longest

    def _codes(self, row: tuple[Any, ...]) -> Codes | None:
        axes = self.space.axes
        if len(row) < len(axes):
            raise InputError(f"a tuple has {len(row)} values, but there are {len(axes)} attributes: {row!r}")
        codes: list[int | None] = []
        for axis, value in zip(axes, row, strict=False):
            try:
                codes.append(None if value is None else axis.encode(value))
            except (ValueError, TypeError, ArithmeticError) as error:
                self.doubt(f"the value {value!r} of {axis.name} does not fit: {error}")
                return None
            if value is None:
                self._without_value.add(len(codes) - 1)
        return tuple(codes)

    def _take_sample(self, rows: list[tuple[Any, ...]], total: int | None) -> None:
        self._sample = counted(rows)
        self.report.sampled, self.report.found_of_sample = len(rows), 0
        self.report.total = total

    # --- results ------------------------------------------------------------------------------------

    async def resolved(self, region: Region, answer: QueryAnswer) -> None:
        """Pass on the tuples of a region that is resolved."""
        self.report.resolved.append(region)
        await self._pass_on(answer.rows)

    async def answered_by(self, region: Region, wider: QueryAnswer, but: Sequence[Region] = ()) -> None:
        """Pass on the tuples of a region that a resolved answer about a wider one contains.

        Those in regions that were passed on before are left out.
        """
        pairs = zip(wider.codes, wider.rows, strict=True)
        await self._pass_on([row for codes, row in pairs if self._lies_in(codes, region, but)])

    def unresolved(
        self, region: Region, kind: Kind, reason: str, answer: QueryAnswer, but: Sequence[Region] = ()
    ) -> None:
        """Note a region that may hold more tuples than answers have shown; they are passed on at the end."""
        self._note_shown(answer)
        self._empty_points += not len(answer)
        query = self.space.point(region) if kind in ("point", "undecided") else self.space.query(region)
        self.report.unresolved.append(Unresolved(query, kind, reason))
        self._unresolved.append((region, tuple(but)))

    def ends_endless(self, region: Region, answer: QueryAnswer, place: int) -> bool:
        """Return whether a region that overflows is not worth dividing by an attribute; then it is noted.

        A source that tells the truth has more tuples there than answers have, so the result is incomplete.
        """
        says = "the source says that there are more tuples"
        axis = self.space.axes[place]
        if isinstance(axis, RangeAxis) and not len(answer) and axis.is_far_out(region[place]):
            reason = f"{says}, beyond 64 bits and all values that it has shown, and shows none"
        elif not len(answer) and self._empty_points >= _EMPTY_POINTS_AT_MOST:
            reason = f"{says} and shows none, as at {_EMPTY_POINTS_AT_MOST} points before"
        elif isinstance(axis, RangeAxis) and axis.is_vast(region[place]) and self._always_overflows:
            reason = f"{says} at each of {_OVERFLOWS_AT_MOST:,} queries, so there is no end"
        else:
            return False
        self.unresolved(region, "endless", reason, answer)
        return True

    @property
    def _always_overflows(self) -> bool:
        return not self._whole and self.report.queries >= _OVERFLOWS_AT_MOST

    def _lies_in(self, codes: Codes, region: Region, but: Sequence[Region]) -> bool:
        return self.space.holds(region, codes) and not any(self.space.holds(each, codes) for each in but)

    async def _pass_on(self, rows: Sequence[tuple[Any, ...]]) -> None:
        if not rows:
            return
        self.report.tuples += len(rows)
        if self._shown or self._sample:
            for row, times in counted(rows).items():
                self._compare(row, times)
        await self._send(list(rows))

    def _compare(self, row: Any, times: int) -> None:
        """Compare the number of identical tuples with that in answers before."""
        if row in self._sample:
            self.report.found_of_sample += min(times, self._sample.pop(row))
        shown = self._shown.pop(row, None)
        if shown is not None and shown.times > times:
            self._note_change(shown, f"was shown {shown.times} times, and later {times}")

    def _note_change(self, shown: _Shown, reason: str) -> None:
        names = [axis.name for axis in self.space.axes]
        query = dict(zip(names, shown.row, strict=False))
        reason = f"a tuple with {self.space.shown(query)} {reason}"
        self.report.changes.append(SourceChange(query, shown.row, reason))

    def values(self, answer: QueryAnswer, place: int) -> list[int]:
        """Return the sorted values of an ordered attribute in an answer, which is to be divided by it."""
        self._divided.add(place)
        return sorted(value for codes in answer.codes if (value := codes[place]) is not None)

    async def finish(self) -> None:
        """After the last step: account for tuples that answers have shown and no region has passed on."""
        left, self._shown = self._shown, {}
        regions, known = self._unresolved, Counter[int]()
        index = RegionIndex(self.space, [each for each, _ in regions])
        passed_on = [part for _, parts in regions for part in parts]  # before later queries showed them again
        for shown in left.values():
            if any(self.space.holds(part, shown.codes) for part in passed_on):
                continue
            around = index.around(shown.codes)
            region = next((n for n in around if self._lies_in(shown.codes, *regions[n])), None)
            if region is not None:
                known[region] += shown.times
            elif not any(shown.codes[place] is None for place in self._divided):
                self._note_change(shown, "was shown, and not found again")
                continue
            await self._pass_on([shown.row] * shown.times)
        for number, times in known.items():
            self.report.unresolved[number] = replace(self.report.unresolved[number], known=times)
        for place in sorted(self._divided & self._without_value):
            name = self.space.axes[place].name
            reason = f"tuples without a value of {name} are shown only by queries that leave it open"
            self.report.unresolved.append(Unresolved({}, "no value", reason))
        self._check_total()
        self._check_domains()
        self.report.is_finished = True

    def _check_total(self) -> None:
        total, found = self.report.total, self.report.tuples
        if total is None and found < self._at_least and not self.report.unresolved:
            self.doubt(f"the first answer said that there are more than {self._at_least - 1} tuples")
        if total is not None and total != found and not self.report.unresolved:
            self.doubt(f"the source says that it has {total:,} tuples, and {found:,} were found")

    def warn(self, message: str, example: tuple[Any, ...] | str | None) -> None:
        text = message if example is None else f"{message}, such as {example}"
        if len(self.report.warnings) < _SAME_WARNINGS_AT_MOST and not any(
            each.startswith(message) for each in self.report.warnings
        ):
            self.report.warnings.append(text)

    def doubt(self, reason: str) -> None:
        """Note a reason why tuples may be missing."""
        if reason not in self.report.doubts and len(self.report.doubts) < _SAME_WARNINGS_AT_MOST:
            self.report.doubts.append(reason)

    # --- values that answers show -------------------------------------------------------------------

    def expand(self, place: int, step_for: Callable[[int], Step]) -> None:
        """Add a step for each value of a list axis, and later for values that answers show only then."""
        axis = self.space.list_axis(place)
        self._divided.add(place)
        self._expanded.setdefault(place, []).append(step_for)
        self.add(*(step_for(number) for number in range(len(axis))))

    def _expand_learnt(self) -> None:
        for place in self.space.lists:
            axis = self.space.list_axis(place)
            learnt, axis.learnt = axis.learnt, []
            if learnt and not axis.is_learnt:
                values = ", ".join(str(axis.values[number]) for number in learnt[:5])
                self.warn(f"{axis.name} has values that its domain lacks", values)
                axis.is_wrong = True
            for number in learnt:
                self.add(*(step_for(number) for step_for in self._expanded.get(place, ())))

    def _check_domains(self) -> None:
        """If a domain was learnt from answers, values that no answer shows may be missing."""
        if self.report.total is not None and self.report.total == self.report.tuples:
            return
        for place in self._expanded:
            axis = self.space.list_axis(place)
            if axis.is_wrong:
                self.doubt(f"the domain of {axis.name} lacks values that answers show: others may exist")
            if axis.is_learnt:
                self.warn(f"the values of {axis.name} were learnt from answers", None)
                self.doubt(f"the values of {axis.name} were learnt from answers: others may exist")


def _total(more: Any) -> int | None:
    """Return the number of all tuples, if that is what an answer says; an InputError if it makes no sense."""
    if more is None or type(more).__name__ in ("bool", "bool_"):  # those of numpy too
        return None
    try:
        if (total := int(more)) == more:
            return total
    except (TypeError, ValueError, OverflowError):
        pass
    raise InputError(
        f"a query says whether there are more by True or False, their number, or None, not {more!r}"
    )


def _first_codes(answer: QueryAnswer) -> list[tuple[Codes, tuple[Any, ...]]]:
    """Return the numbers and the form of each different tuple, in the order of their first."""
    found: dict[Any, tuple[Codes, tuple[Any, ...]]] = {}
    for codes, row in zip(answer.codes, answer.rows, strict=True):
        found.setdefault(identity(row), (codes, row))
    return list(found.values())
