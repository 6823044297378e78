"""Plans that every promise of the engine is tried on, with inputs and what must come out of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import aioflow
from aioflow.plan import Program
from aioflow.relation import Relation
from tests.naive.bag import Bag, counted, counted_bag
from tests.naive.evaluator import Evaluator
from tests.naive.operators import OPERATORS as NAIVE
from tests.reference_plans.sources import NAIVE_OPERATORS, OPERATORS

FOLDER = Path(__file__).parent
Outputs = Mapping[str, Sequence[Mapping[str, Any]]]

__all__ = ["OPERATORS", "REFERENCES", "Outputs", "Reference", "reference"]


@dataclass(frozen=True)
class Reference:
    """A reference plan. `cuts` says of how many rows at most an output may be any part of its whole."""

    file: str
    plan: str
    inputs: Mapping[str, Bag]
    cuts: Mapping[str, int] = field(default_factory=dict)
    whole: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.plan

    @cached_property
    def program(self) -> Program:
        text = (FOLDER / self.file).read_text(encoding="utf-8")
        return aioflow.loads(text, name=self.file, plan=self.plan)

    @cached_property
    def given(self) -> Mapping[str, Relation]:
        return {name: bag.relation() for name, bag in self.inputs.items()}

    @cached_property
    def expected(self) -> Mapping[str, Counter[Hashable]]:
        evaluator = Evaluator(self.program, {**NAIVE, **NAIVE_OPERATORS})
        outputs = evaluator.run(self.inputs, self.whole)
        assert not evaluator.failed
        return {name: counted_bag(bag) for name, bag in outputs.items()}

    def problem(self, outputs: Outputs) -> str | None:
        """What is wrong with these outputs; None when nothing is."""
        for name, wanted in self.expected.items():
            found = counted(outputs[name])
            if name not in self.cuts:
                if found != wanted:
                    return f"{name}: missing {dict(wanted - found)}, too many {dict(found - wanted)}"
            elif found - wanted or found.total() > self.cuts[name]:
                return f"{name}: {found.total()} rows, not in the whole: {dict(found - wanted)}"
            elif name == "few" and found.total() != self.cuts[name]:
                return f"{name}: {found.total()} rows instead of {self.cuts[name]}"
        return None


def _numbers(*numbers: int) -> Bag:
    return Bag(("n",), tuple((number,) for number in numbers))


def _monitor(stored: Sequence[int]) -> Reference:
    found = Bag(("url", "price"), tuple((f"u{number}", 100 * number) for number in range(6)))
    return Reference(
        "persistent_diff.plan",
        "monitor",
        {"found": found, "stored": Bag(("url",), tuple((f"u{number}",) for number in stored))},
    )


REFERENCES: tuple[Reference, ...] = (
    Reference("figure8.plan", "parent_plan", {"w": _numbers(1, 2, 3), "x": _numbers(4, 5, 6, 7)}),
    Reference("get_houses.plan", "get_houses", {"criteria": Bag(("city",), (("Irvine",),))}),
    _monitor((1, 3)),
    _monitor(range(6)),
    Reference("tree.plan", "grow", {"seeds": Bag(("n", "path"), ((4, ""), (2, "x")))}),
    Reference("mutual.plan", "count_down", {"start": Bag(("n", "side"), ((5, ""), (3, ""), (0, "")))}),
    Reference("crawl.plan", "crawl", {"start": _numbers(3, 2, 3)}),
    Reference("gated.plan", "gated", {"source": _numbers(*range(5))}),
    Reference("diamond.plan", "diamond", {"source": _numbers(*range(9))}),
    Reference(
        "errors_limit.plan",
        "errors_limit",
        {"numbers": _numbers(*range(12))},
        cuts={"few": 3, "failed": 4},
        whole={"most": 10_000},
    ),
)


def reference(fits: Callable[[Reference], bool]) -> Reference:
    """The first reference plan that fits."""
    return next(each for each in REFERENCES if fits(each))
