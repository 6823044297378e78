"""The runner finds the experiments and runs them one by one; a failure does not stop the others."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from importlib import import_module
from pkgutil import walk_packages
from time import perf_counter
from typing import TypeAlias

from aioflow.benchmarks.harness.experiment import Bench, Experiment, experiments
from aioflow.benchmarks.harness.machine import (
    MachineMonitor,
    describe_machine,
    find_commit,
    find_versions,
    usual_collections,
)
from aioflow.benchmarks.harness.results import Finding, Results
from aioflow.config.masking import mask
from aioflow.errors import AioflowError, InputError, suggestion

PACKAGE = "aioflow.benchmarks"

# Gets the name of the experiment and its progress.
Told: TypeAlias = Callable[[str, str], None]
# Gets the results so far, after each experiment.
Kept: TypeAlias = Callable[[Results], None]


def load_experiments(package: str | None = None) -> Mapping[str, Experiment]:
    """Return all experiments by name, those of the modules in the `__all__` of their package first.

    A module that cannot be imported becomes an experiment that fails.
    """
    package = package or PACKAGE
    try:
        found = import_module(package)
    except ModuleNotFoundError as error:
        raise InputError(f"there are no experiments: {error}") from error
    first = [f"{package}.{name}" for name in getattr(found, "__all__", ())]
    others = [each.name for each in walk_packages(found.__path__, f"{package}.", onerror=_ignored)]
    modules = [name for name in dict.fromkeys([*first, *others]) if _may_have_experiments(name)]
    broken = {each.name: each for module in modules if (each := _load(module)) is not None}
    return {name: each for name, each in experiments.items() if each.measure.__module__ in modules} | broken


def _ignored(package: str) -> None:
    """A sub-package that cannot be imported is reported when its turn comes."""


def _may_have_experiments(module: str) -> bool:
    """Return False for private modules and for the harness, whose reports would import Matplotlib."""
    return "._" not in module and not f"{module}.".startswith(f"{__package__}.")


def _load(module: str) -> Experiment | None:
    """Import a module; return an experiment that fails when it cannot be imported."""
    try:
        import_module(module)
    except Exception as error:
        name = module.rpartition(".")[2].replace("_", "-")
        text = f"{module} cannot be imported: {described(error)}"

        def fail(bench: Bench) -> None:
            raise InputError(text)

        return Experiment(name, f"What does {name} measure?", "", "", fail)
    return None


def choose(names: Sequence[str], package: str | None = None) -> list[Experiment]:
    """Return the experiments of these names, or all in their order."""
    known = load_experiments(package)
    if not names:
        return list(known.values())
    for name in names:
        if name not in known:
            near = suggestion(name, known) or f" (there are: {', '.join(sorted(known))})"
            raise InputError(f"there is no experiment {name!r}{near}")
    return [known[name] for name in dict.fromkeys(names)]


def run_experiments(
    names: Sequence[str] = (),
    quick: bool = False,
    told: Told = lambda name, text: None,
    *,
    kept: Kept = lambda results: None,
    package: str | None = None,
) -> Results:
    """Run the experiments of these names, or all; `kept` gets the results so far after each of them."""
    chosen = choose(names, package)
    commit, dirty = find_commit()
    results = Results(
        (),
        quick,
        datetime.now(UTC).isoformat(timespec="seconds"),
        describe_machine(),
        find_versions(),
        commit,
    )
    results = replace(results, dirty=dirty)
    for each in chosen:
        finding = run_experiment(each, Bench(quick, partial(told, each.name)))
        # Again: peers are installed when they are first needed.
        results = replace(results, findings=(*results.findings, finding), versions=find_versions())
        kept(results)
    return results


def run_experiment(experiment: Experiment, bench: Bench) -> Finding:
    """Run one experiment; findings before a failure remain."""
    failure = ""
    watch, started = MachineMonitor(), perf_counter()
    bench.tell("begins")
    try:
        with usual_collections():
            experiment.measure(bench)
    except Exception as error:
        failure = described(error)
        if os.environ.get("AIOFLOW_DEBUG") == "1":
            print(mask("".join(traceback.format_exception(error))), end="", file=sys.stderr)
    seconds = perf_counter() - started
    finding = replace(
        bench.finding(experiment), seconds=seconds, conditions=watch.conditions(), failure=failure
    )
    bench.tell(f"failed: {failure}" if failure else "ended")
    return finding


def described(error: BaseException) -> str:
    """Return the message of an error; those that are not ours have their kind and place."""
    if isinstance(error, AioflowError | ModuleNotFoundError):
        return str(error)
    said = str(error) or "no more is known"
    frames = [each for each in traceback.extract_tb(error.__traceback__) if not each.filename.startswith("<")]
    place = f" ({os.path.basename(frames[-1].filename)}, line {frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {said}{place}"
