"""Tail calls: recursive calls whose results may go straight to the outermost call.

The results of such a call are results of its plan, or reach them only through merging statements
(unions, all of one kind), which the outermost call's own merging statement can do the work of.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from aioflow.analysis.callgraph import CallGraph
from aioflow.analysis.resolve import Resolved
from aioflow.dataclass import dataclass
from aioflow.operator import Operator
from aioflow.plan import Plan


@dataclass(frozen=True)
class Path:
    """Where an output of a call leads: to an output of the plan, through merging statements of one key."""

    output: int
    key: Hashable | None  # None: it is the output itself


@dataclass(frozen=True)
class Merged:
    """The ways of a tail call's outputs; None for one that nobody needs."""

    paths: tuple[Path | None, ...]

    def enclosing(self, around: Mapping[int, Hashable]) -> tuple[tuple[int, Hashable], ...]:
        """Which outputs of the called plan go into a merging statement, given those of the caller."""
        found = []
        for number, path in enumerate(self.paths):
            key = None if path is None else path.key if path.key is not None else around.get(path.output)
            if key is not None:
                found.append((number, key))
        return tuple(found)


class TailCalls:
    """The tail calls and mergeable statements of one plan."""

    def __init__(self, plan: Plan, statements: Sequence[Resolved], calls: CallGraph) -> None:
        self._plan = plan
        self._statements = statements
        self._calls = calls
        self._uses: dict[str, list[int]] = {}
        self._outputs: dict[str, list[int]] = {}
        for number, statement in enumerate(statements):
            for name in (*statement.inputs, *statement.wait):
                self._uses.setdefault(name, []).append(number)
        for number, output in enumerate(plan.outputs):
            self._outputs.setdefault(output.name, []).append(number)

    def of(self, number: int) -> Merged | None:
        """The ways of a statement's outputs if it is a tail call."""
        call = self._statements[number]
        if not isinstance(call.target, Plan) or not self._calls.is_recursive(self._plan, call.target):
            return None
        if call.enable or call.done or call.errors or call.skip_errors or call.ordered or call.whole:
            return None
        paths: list[Path | None] = []
        for name in call.outputs:
            path = self._path(name) if name is not None else None
            if path is None and name is not None:
                return None
            paths.append(path)
        return Merged(tuple(paths))

    def merged_into(self, enclosing: Mapping[int, Hashable]) -> dict[int, int]:
        """Statements that do nothing but merge for an output that is merged again outside: by number."""
        merged = {}
        for number, statement in enumerate(self._statements):
            key = self._merging_key(statement)
            path = self._path(statement.outputs[0]) if key is not None and statement.outputs[0] else None
            if path is not None and path.key in (None, key) and enclosing.get(path.output) == key:
                merged[number] = path.output
        return merged

    def _path(self, name: str) -> Path | None:
        """Where a variable leads, if to one output of the plan only and through merging statements only."""
        key: Hashable | None = None
        for _ in range(len(self._statements) + 1):
            uses, outputs = self._uses.get(name, []), self._outputs.get(name, [])
            if len(outputs) == 1 and not uses:
                return Path(outputs[0], key)
            if outputs or len(uses) != 1:
                return None
            statement = self._statements[uses[0]]
            merging = self._merging_key(statement)
            if merging is None or (key is not None and merging != key) or statement.outputs[0] is None:
                return None
            key, name = merging, statement.outputs[0]
        return None

    def _merging_key(self, statement: Resolved) -> Hashable | None:
        target = statement.target
        if not isinstance(target, Operator) or target.flattens is None:
            return None
        signals = statement.wait or statement.enable or statement.done
        if signals or statement.errors or statement.skip_errors or statement.ordered or statement.whole:
            return None
        return target.flattens(statement.settings)
