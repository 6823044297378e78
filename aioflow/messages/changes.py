"""Tuples that have changed, as `diff` gives them: which attributes have, and how texts differ by words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from difflib import SequenceMatcher
from typing import Literal, TypeAlias

from aioflow.dataclass import dataclass
from aioflow.relation import Row, Schema, Value
from aioflow.state.wish import CHANGES, OLD

Piece: TypeAlias = tuple[Literal["same", "old", "new"], str]

_CONTEXT_WORDS = 8
_MOST_RUN_CHARACTERS = 500
# Finding what two texts share takes time by the product of their lengths.
_MOST_COMPARED = 250_000
_LEAST_SHARED = 0.2


@dataclass(frozen=True)
class Shown:
    """What a message shows of an attribute: its value, and the one before if it has changed."""

    name: str
    value: Value
    before: Value = None
    is_changed: bool = False


def shown_changes(schema: Schema) -> Callable[[Row], list[Shown]] | None:
    """How a changed tuple is shown, each attribute once; None for tuples without old values."""
    old = {name.removeprefix(OLD): name for name in schema.names if name.startswith(OLD)}
    old = {name: before for name, before in old.items() if name in schema}
    if not old or CHANGES not in schema:
        return None
    told = schema.position(CHANGES)
    columns = [
        (name, schema.position(name), schema.position(old[name]) if name in old else None)
        for name in schema.names
        if name != CHANGES and name not in old.values()
    ]

    def shown(row: Row) -> list[Shown]:
        changes = f", {row[told]}, "
        return [
            Shown(name, row[place])
            if before is None or f", {name}, " not in changes
            else Shown(name, row[place], row[before], is_changed=True)
            for name, place, before in columns
        ]

    return shown


# --- word by word -------------------------------------------------------------------------------


def word_diff(before: str, now: str, *, context: int = _CONTEXT_WORDS) -> list[Piece]:
    """The words that both texts have, those of the first only, and those of the second only, in order.

    Of what they share, so many words beside a change are given.
    """
    old, new = before.split(), now.split()
    runs = list(_runs(old, new))
    shared = sum(len(words) for kind, words in runs if kind == "same")
    if shared < _LEAST_SHARED * max(len(old), len(new)):
        runs = [("old", old), ("new", new)]
    pieces: list[Piece] = []
    last = len(runs) - 1
    for place, (kind, words) in enumerate(runs):
        if kind == "same":
            text = _around(words, context if place or not last else 0, context if place < last else 0)
        else:
            text = _cut(" ".join(words))
        if text:
            pieces.append((kind, text))
    return pieces


def _runs(old: list[str], new: list[str]) -> Iterator[tuple[Literal["same", "old", "new"], list[str]]]:
    """Runs of words; what the texts begin and end with alike is found first, since that is quick."""
    start = _alike(old, new)
    end = _alike(old[start:][::-1], new[start:][::-1])
    middle_old, middle_new = old[start : len(old) - end], new[start : len(new) - end]
    if start:
        yield "same", old[:start]
    if len(middle_old) * len(middle_new) > _MOST_COMPARED:
        yield "old", middle_old
        yield "new", middle_new
    else:
        matcher = SequenceMatcher(None, middle_old, middle_new, autojunk=False)
        for tag, first, last, new_first, new_last in matcher.get_opcodes():
            if tag == "equal":
                yield "same", middle_old[first:last]
                continue
            if last > first:
                yield "old", middle_old[first:last]
            if new_last > new_first:
                yield "new", middle_new[new_first:new_last]
    if end:
        yield "same", old[len(old) - end :]


def _alike(one: Sequence[str], other: Sequence[str]) -> int:
    """How many words two texts begin with alike."""
    for place, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return place
    return min(len(one), len(other))


def _around(words: list[str], after: int, before: int) -> str:
    """Words that stay the same: so many after a change, and so many before the next one."""
    if len(words) <= after + before + 2:
        return " ".join(words)
    return " ".join([*words[:after], "…", *(words[-before:] if before else ())])


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_RUN_CHARACTERS else f"{text[: _MOST_RUN_CHARACTERS - 1]}…"
