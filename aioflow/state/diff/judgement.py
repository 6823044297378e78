"""The rules of a comparison, without the rows: what it may tell and store, and what it must hold back."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from aioflow.state.diff.settings import DiffSpec
from aioflow.state.diff.suspects import NEW, Confirmation, Suspect
from aioflow.state.system_tables import from_stamp, stamp
from aioflow.values.quantities import count_text
from aioflow.wholeness import Marks, Reason

# Of the rows that vanish, so large a part must appear under other keys for the key to look redesigned.
_ABOUT_AS_MANY = 0.5
# A daily schedule does not begin at the same moment each day.
_PUNCTUALITY = 0.95


class RowCounts(msgspec.Struct, frozen=True):
    """Numbers of rows: of the table, of the relation, in both, and only in the relation."""

    total: int
    rows: int
    known: int
    added: int

    @property
    def vanishing(self) -> int:
        return self.total - self.known


class Absence(msgspec.Struct, frozen=True):
    """The number of counting runs in which a row was missing, and the moment of the latest."""

    runs: int = 0
    counted: str = ""


class Judgement:
    """Judges one comparison: `before` is what earlier runs held back, `is_first` when there was none.

    `vanished` are the columns that had values and are empty in this run; `still_empty` are those that went
    empty before, and that no tuple of this run has a value for.
    """

    def __init__(
        self,
        spec: DiffSpec,
        before: Suspect | None,
        is_first: bool,
        marks: Marks,
        vanished: Sequence[str],
        still_empty: Sequence[str] = (),
    ) -> None:
        self._still_empty = still_empty
        self._spec = spec
        self._before = before
        self._is_first = is_first
        self._marks = marks
        lost_keys = [name for name in vanished if name in (spec.key or ())]
        self.vanished = tuple(name for name in vanished if name not in self._confirmed_columns)
        self.doubts: tuple[Reason, ...] = marks.doubtful
        if spec.duplicates == "first":  # of what is missing, another tuple may stand for the first
            self.doubts = marks.reasons
        if lost_keys:
            text = f"{', '.join(lost_keys)}, of the KEY, {_is(lost_keys)} null in every row, and had values"
            self.doubts = (*self.doubts, Reason(text))

    # --- before rows are compared ---------------------------------------------------------------

    @property
    def is_whole(self) -> bool:
        return not self._marks.partial and not self.doubts

    @property
    def confirmation(self) -> Confirmation:
        """Return what a person has said, if this run can apply it."""
        return self._before.confirmed if self._before is not None and self._marks.is_whole else ""

    @property
    def _confirmed_columns(self) -> tuple[str, ...]:
        return self._before.confirmed_columns if self._before is not None and self.confirmation else ()

    @property
    def silent_nulls(self) -> tuple[str, ...]:
        """Return the columns whose values may become null without a message."""
        return self._confirmed_columns if self.confirmation == "quiet" else ()

    @property
    def filled(self) -> tuple[str, ...]:
        """Return the columns that were empty before. Values that come back to them are no news."""
        return self._before.columns if self._before is not None else ()

    @property
    def tells_new(self) -> bool:
        """Return whether new rows are news. Until a whole run they are rows that no run had seen so far."""
        is_baseline = self._is_first or (self._before is not None and self._before.incomplete)
        return self._spec.first == "news" or not is_baseline

    # --- rows that vanish -----------------------------------------------------------------------

    def counts(self, found: RowCounts) -> bool:
        """Return whether the run counts for repetition: it is whole, found rows, and most are as they were.

        When most rows vanish and about as many others appear, the key was probably redesigned. That stays
        wrong however often it is seen.
        """
        redesigned = found.added >= _ABOUT_AS_MANY * found.vanishing and found.known < found.vanishing
        return self.is_whole and found.rows > 0 and not redesigned

    def absence(self, before: Absence | None, now: datetime, counts: bool) -> Absence:
        """Return in how many runs a row that is missing now was missing."""
        if before is None or before.runs <= NEW:
            before = Absence()
        if not counts or (before.runs and not self._is_apart(before.counted, now)):
            return before
        return Absence(before.runs + 1, stamp(now))

    def _is_apart(self, counted: str, now: datetime) -> bool:
        since = (now - from_stamp(counted)).total_seconds()
        return since >= _PUNCTUALITY * self._spec.confirm_seconds

    def is_settled(self, before: Absence | None, absence: Absence) -> bool:
        """Return whether a missing row is known to be gone: a person or enough runs say so."""
        was_held = before is not None and before.runs > NEW
        return (bool(self.confirmation) and was_held) or absence.runs >= self._spec.confirm_runs

    def holds_gone(self, found: RowCounts, settled: int) -> Reason | None:
        """Return why the missing rows that are not settled must stay, or None when they may go."""
        rest, total = found.vanishing - settled, found.total - settled
        if not rest:
            return None
        if self._marks.partial:
            return self._marks.partial[0]
        if self._spec.guard is not None and not found.rows:
            return None if self._marks.proven_empty else _no_rows(found.total)
        return self._too_many(rest, total)

    def holds_new(self, found: RowCounts, settled: int) -> bool:
        """Return whether new rows may be old ones under another key, or were held as such before."""
        rest, total = found.vanishing - settled, found.total - settled
        was_redesigned = self._before is not None and self._before.added > 0 and not self.is_whole
        looks_redesigned = self._too_many(rest, total) is not None and (
            found.added >= _ABOUT_AS_MANY * rest or not found.known
        )
        return found.added > 0 and (was_redesigned or looks_redesigned)

    def _too_many(self, rest: int, total: int) -> Reason | None:
        share = self._spec.guard
        if share is None or rest <= share * total:
            return None
        rows = f"{rest:,} of {count_text(total, 'row')} {'is' if rest == 1 else 'are'} missing"
        return Reason(f"{rows}, more than GUARD: {share:g} lets go at once")

    def awaits(self, runs: int) -> int:
        """Return the count to hold for a row that was held as new and that this run did not see, or 0.

        After a whole run these are rows that a person has taken over without a message. They are not waited
        for for ever.
        """
        if not self.is_whole:
            return runs
        if runs == NEW:
            return NEW - 1 if self.confirmation == "quiet" else 0
        return runs - 1 if runs > NEW - self._spec.confirm_runs else 0

    # --- what is remembered ---------------------------------------------------------------------

    def suspect(
        self,
        found: RowCounts,
        gone: int,
        added: int,
        reasons: Sequence[Reason],
        run_id: str,
        now: datetime,
        *,
        awaits: bool = False,
    ) -> Suspect | None:
        """Return what is to be remembered of the table beside its rows, given how many are held back.

        It `awaits` rows that a person has taken over and that have not come yet.
        """
        before = self._before
        columns = self._columns(found)
        incomplete = not self.tells_new and not self.is_whole
        told = list(reasons)
        if columns:
            rows = "the only row" if found.rows == 1 else f"all {found.rows:,} rows"
            seen = f"{_is(columns)} null in {rows}" if self._still_empty or self.vanished else "went empty"
            told.append(Reason(f"{', '.join(columns)} {seen}, and had values"))
        if incomplete and not told:
            told.extend(self._marks.partial)
        if before is not None and not self.is_whole:
            added = max(added, before.added)  # those that this run did not see are held as well
        # While there is no table, that its baseline is known, and empty, stands here alone.
        is_known = self._is_first or (before is not None and not before.incomplete)
        is_note = awaits or (is_known and not (found.rows or found.total or incomplete))
        if not (gone or added or columns or incomplete or is_note):
            return None
        return Suspect(
            *(self._spec.table, run_id, before.noticed if before else now, now, found.total, gone, added, 0),
            *(columns, tuple(dict.fromkeys(told)), incomplete),
            *self._waiting_confirmation,
        )

    @property
    def _waiting_confirmation(self) -> tuple[Confirmation, tuple[str, ...]]:
        """Return what a person has said, if this run could not apply it, and for which columns."""
        before = self._before
        if before is None or self._marks.is_whole:
            return "", ()
        return before.confirmed, before.confirmed_columns

    def _columns(self, found: RowCounts) -> tuple[str, ...]:
        """Return the columns that are empty, or were and may come back to rows that this run did not see."""
        kept = self._still_empty if self.is_whole and found.rows else self.filled
        left = [name for name in kept if name not in self._confirmed_columns]
        return tuple(dict.fromkeys((*self.vanished, *left)))

    def doubtful_suspect(self, found: RowCounts, run_id: str, now: datetime) -> Suspect:
        """Return what is to be remembered when nothing of the run can be believed."""
        before = self._before
        return Suspect(
            *(self._spec.table, run_id, before.noticed if before else now, now, found.total),
            *((before.gone, before.added, before.changed) if before else (0, 0, 0)),
            before.columns if before else (),
            self.doubts,
            not self.tells_new,
            *((before.confirmed, before.confirmed_columns) if before else ("", ())),
        )


def _no_rows(total: int) -> Reason:
    rows = count_text(total, "row")
    return Reason(f"nothing came at all, where the table has {rows}; EMPTY in a WRAPPER proves an empty page")


def _is(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 else "are"
