"""Every experiment runs in its quick form; what it measures then means nothing, so it is not looked at."""

from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

import aioflow.benchmarks
from aioflow.benchmarks.contenders import sample_all
from aioflow.benchmarks.growth import claim_growth, exponent
from aioflow.benchmarks.harness import Curve, Finding
from aioflow.benchmarks.harness.experiment import Bench, Experiment, experiments
from aioflow.benchmarks.limits import limit_of, limit_of_drawn

FOLDER = Path(aioflow.benchmarks.__file__).parent


def in_module(name: str) -> list[Experiment]:
    module = import_module(f"aioflow.benchmarks.{name}")
    return [each for each in experiments.values() if each.measure.__module__ == module.__name__]


@cache
def found_quickly(name: str) -> Finding:
    bench = Bench(quick=True)
    experiments[name].measure(bench)
    return bench.finding(experiments[name])


ALL = [each for name in aioflow.benchmarks.__all__ for each in in_module(name)]


@pytest.mark.parametrize("experiment", ALL, ids=lambda each: each.name)
def test_an_experiment_runs_and_finds_what_it_claims(experiment: Experiment) -> None:
    found = found_quickly(experiment.name)
    assert found.claims
    assert all(claim.value is not None or claim.remark for claim in found.claims)
    assert found.samples or all(claim.value is None for claim in found.claims)
    names = [claim.what for claim in found.claims]
    assert len(set(names)) == len(names)
    assert all(claim.origin == "simulated" for claim in found.claims) is found.name.startswith("simulated")
    assert all(plot.curves for plot in found.plots)


def test_processor_time_has_a_goal_for_the_whole_process_alone() -> None:
    claims = found_quickly("homeseekers").claims
    assert [each.what for each in claims if each.goal and "processor time" in each.what] == [
        "processor time with start-up, of code by hand"
    ]
    assert "processor time of the job, of code by hand" in [each.what for each in claims]


@pytest.mark.parametrize("name", ["homeseekers", "crawl", "shell"])
def test_what_is_not_as_by_default_is_told_where_aioflow_is_compared(name: str) -> None:
    assert any("robots.txt" in note and "health" in note for note in found_quickly(name).notes)


@pytest.mark.parametrize("experiment", ALL, ids=lambda each: each.name)
def test_an_experiment_says_what_it_asks_what_it_does_and_what_the_limit_is(experiment: Experiment) -> None:
    assert experiment.question.endswith("?")
    assert experiment.work
    assert experiment.limit


def test_every_experiment_is_listed() -> None:
    asked = {path.stem for path in FOLDER.glob("*.py") if "\n@experiment(" in path.read_text()}
    assert asked == set(aioflow.benchmarks.__all__)


def test_contenders_must_do_the_same_work() -> None:
    with pytest.raises(AssertionError, match="do not do the same work"):
        sample_all(Bench(quick=True), {"one": lambda: 1, "two": lambda: 2}, rounds=1)


@pytest.mark.parametrize(
    ("mode", "per_page", "workers", "first", "last"),
    [
        ("D-", 6, 15, 8.4, 8.4),
        ("D+S-", 6, 15, 1.7, 1.7),
        ("D+S+", 6, 15, 0.2, 1.3),
        ("D+S+", 30, 15, 0.2, 2.6),
        ("D+S+", 30, 1, 0.2, 37.2),
        ("D+S+", 30, 128, 0.2, 1.3),
    ],
)
def test_the_limit_of_homeseekers_is_that_of_its_requests(
    mode: str, per_page: int, workers: int, first: float, last: float
) -> None:
    limit = limit_of(mode, 12, per_page, workers, 0.1)
    assert limit.first == pytest.approx(first)
    assert limit.last == pytest.approx(last)


@pytest.mark.parametrize("mode", ["D-", "D+S+"])
def test_the_limit_of_drawn_latencies_is_the_same_when_all_are_equal(mode: str) -> None:
    drawn = limit_of_drawn(mode, [0.1] * 12, [[0.1] * 6] * 12, 15)
    limit = limit_of(mode, 12, 6, 15, 0.1)
    assert drawn.first == pytest.approx(limit.first)
    assert drawn.last == pytest.approx(limit.last)


def test_the_exponent_of_a_power_law_is_found() -> None:
    assert exponent([(x, 3 * x**2) for x in (1, 10, 100)]) == pytest.approx(2)
    assert exponent([(x, 5.0) for x in (1, 10, 100)]) == pytest.approx(0)


def test_what_is_too_little_to_be_seen_has_no_growth() -> None:
    bench = Bench(quick=True)
    claim_growth(bench, "memory", Curve("memory", ((1, 0.0), (2, 3.0))))
    (claim,) = bench.finding(ALL[0]).claims
    assert (claim.value, claim.remark) == (None, "too little to be seen")


@pytest.mark.parametrize("name", ["workers", "site-size", "shapes", "recursion", "memory"])
def test_growth_is_told_of_time_and_of_memory(name: str) -> None:
    growths = [claim.what for claim in found_quickly(name).claims if claim.unit == "power"]
    assert any("time" in each for each in growths)
    assert any("memory" in each for each in growths)
