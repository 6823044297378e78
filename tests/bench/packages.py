"""Packages of experiments that tests write."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from aioflow.benchmarks.harness.experiment import experiments

HEADING = "from aioflow.benchmarks.harness import Bench, at_most, experiment\n"
WORKING = """
@experiment("How long does it take?", work="little")
def working(bench: Bench) -> None:
    for _ in bench.rounds(5):
        bench.sample("one, time", "s", 1.0)
        bench.sample("other, time", "s", 2.0)
    bench.claim_ratio("one, of the other", "one, time", "other, time", at_most(0.6))
"""
FAILING = """
@experiment("What if it fails?", work="none")
def failing(bench: Bench) -> None:
    bench.sample("before", "s", 1.0)
    raise ValueError("it fails")
"""


@contextmanager
def package(
    folder: Path, name: str, modules: Mapping[str, str], order: tuple[str, ...] = ()
) -> Iterator[str]:
    """A package of modules that can be imported in the block; its experiments are forgotten after it."""
    place = folder / name
    place.mkdir()
    (place / "__init__.py").write_text(f"__all__ = {list(order)!r}\n")
    for module, text in modules.items():
        (place / f"{module}.py").write_text(HEADING + text)
    before = dict(experiments)
    sys.path.insert(0, str(folder))
    try:
        yield name
    finally:
        sys.path.remove(str(folder))
        for module in [each for each in sys.modules if each.partition(".")[0] == name]:
            del sys.modules[module]
        experiments.clear()
        experiments.update(before)
