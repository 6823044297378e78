"""Knows what every change must have led to, and finds what did not: lost, twice, or half."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass, field

from tests.kills.receivers import Receipt
from tests.kills.world import DIGESTS, STREAM, World, news_in

# The receiver may have the message, and nobody has noted it: a copy may follow.
WINDOW = frozenset(
    {"smtp-dot", "smtp-taken", "gateway-answered", "apprise-answered", "maildir-moved", "message handed over"}
)


@dataclass
class Kill:
    """A process that was killed: where, and what each receiver had got before and after its life."""

    where: str  # a moment, or a time
    moment: str | None
    before: dict[str, int]
    after: dict[str, int]
    copies: int = 0  # that followed since it was killed

    def has_sent(self, channel: str) -> bool:
        return self.before[channel] < self.after[channel]


@dataclass
class Oracle:
    """Looks at a world after kills and recoveries."""

    world: World
    kills: list[Kill] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    _told: set[str] = field(default_factory=set)

    def stored(self) -> dict[str, int]:
        """The houses that the plan remembers."""
        return dict(self.world.store.rows("select url, price from houses"))

    def look_after_kill(self, before: dict[str, int]) -> None:
        """Nothing is half: the tables are as before the run or as after it, and agree with the outbox."""
        store = self.world.store
        if self.stored() not in (before, self.world.source.houses):
            self._tell("the table houses is half")
        written = {f"new {url} {price}" for url, price in store.rows("select url, price from history")}
        posted = self._posted()
        news = {text for text in posted if text.startswith("new ")}
        if written != news:
            self._tell(f"stored and told disagree: {_some(written ^ news)}")

    def look_after_recovery(self) -> None:
        """All is as if nobody had been killed, but for copies in the permitted window."""
        world, source = self.world, self.world.source
        if world.plan != STREAM and self.stored() != source.houses:
            self._tell("the table houses is not the source")
        history = world.store.rows("select url, price from history")
        if sorted(history) != sorted(source.ever.items()):
            self._tell(f"the table history has {len(history)} rows, not {len(source.ever)}")
        for channel, receipts in world.receipts().items():
            self._look_at(channel, receipts)
        self.problems += world.store.problems()
        self.problems += [f"a temporary file is left: {name}" for name in world.left_files()]
        states = dict(world.store.rows("select state, count(*) from aioflow_outbox group by state"))
        if states.keys() - {"sent"}:
            self._tell(f"messages in the outbox are {states}")

    def _look_at(self, channel: str, receipts: list[Receipt]) -> None:
        ids, places = defaultdict[str, set[str]](set), defaultdict[str, list[int]](list)
        for place, receipt in enumerate(receipts):
            ids[receipt.text].add(receipt.message_id)
            places[receipt.message_id].append(place)
        expected = self.world.expected()
        if lost := expected - ids.keys():
            self._tell(f"{channel}: lost {_some(lost)}")
        if invented := ids.keys() - expected:
            self._tell(f"{channel}: nobody changed {_some(invented)}")
        if twice := {text for text, keys in ids.items() if len(keys) > 1}:
            self._tell(f"{channel}: told twice, as different messages: {_some(twice)}")
        earlier = [place for copies in places.values() for place in copies[:-1]]
        self._explain(channel, sorted(earlier))

    def _explain(self, channel: str, earlier: list[int]) -> None:
        """Every copy but the last of a message must be the last thing that a killed process has sent."""
        last = {kill.after[channel] - 1: kill for kill in self.kills if kill.has_sent(channel)}
        used: set[int] = set()
        for place in earlier:
            kill = last.get(place)
            if kill is None:
                self._tell(f"{channel}: a copy that no kill explains, of the message at place {place}")
            elif self._is_outside(kill):
                self._tell(f"{channel}: a copy after the kill at {kill.moment!r}, outside of the window")
            else:
                used.add(id(kill))
        for kill in self.kills:
            kill.copies = int(id(kill) in used)

    def _is_outside(self, kill: Kill) -> bool:
        """Whether no copy may follow it. Of several channels another one may just have been in its window."""
        return kill.moment is not None and kill.moment not in WINDOW and len(kill.before) == 1

    def _posted(self) -> list[str]:
        contents = self.world.store.rows("select content from aioflow_outbox where channel <> 'phone'")
        subjects = [json.loads(content)["subject"] for (content,) in contents]
        if self.world.plan != DIGESTS:
            return subjects
        return [*(text for subject in subjects for text in news_in(subject)), *self.world.gathered()]

    def _tell(self, problem: str) -> None:
        if problem not in self._told:  # what is wrong once stays so
            self._told.add(problem)
            where = self.kills[-1].where if self.kills else "nobody"
            self.problems.append(f"after kill {len(self.kills)} ({where}): {problem}")


def _some(texts: set[str]) -> str:
    first = sorted(texts)[:3]
    return f"{len(texts)} ({', '.join(first)}{', …' if len(texts) > len(first) else ''})"
