"""All that is known of a program before it runs: made once by the check, then used to prepare the run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from aioflow.compiler.inference import Inference, InferredCall, reachable
from aioflow.compiler.linking import LinkedProgram
from aioflow.errors import Diagnostic, PlanError
from aioflow.plan import Program


class Analysis(msgspec.Struct, frozen=True):
    """A linked program, its schemas, the call of its main plan, and the mistakes and warnings found in it."""

    linked: LinkedProgram
    inference: Inference
    root: InferredCall
    diagnostics: Sequence[Diagnostic]

    @property
    def program(self) -> Program:
        return self.linked.program

    def called_with(self, parameters: Mapping[str, Any]) -> Analysis:
        """The same program with other parameters of its main plan; the diagnostics stay as they were."""
        main = self.program.main
        return replace(self, root=self.inference.follow(main, parameters, [None] * len(main.inputs)))

    def calls(self) -> Iterator[InferredCall]:
        """Every call that a run may make, from that of the main plan on."""
        return reachable([self.root])

    def raise_mistakes(self) -> None:
        """Raise a PlanError if the program has mistakes."""
        mistakes = [found for found in self.diagnostics if found.severity == "error"]
        if mistakes:
            raise PlanError(mistakes)
