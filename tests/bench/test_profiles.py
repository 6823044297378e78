"""Profiles name what computes, here and in processes of their own."""

from importlib import import_module
from pathlib import Path

import pytest

from aioflow.benchmarks.harness.child import Sampler
from aioflow.benchmarks.harness.experiment import Bench, Experiment
from aioflow.benchmarks.harness.processes import measure_process
from aioflow.benchmarks.harness.profiles import HERE, Profile, profile_experiment, shown_place

BUSY = """
from time import process_time

def busy():
    end = process_time() + 0.3
    while process_time() < end:
        sum(i * i for i in range(500))

busy()
print('{"count": 1000}')
"""


def spin(bench: Bench) -> None:
    from time import process_time

    end = process_time() + 0.3
    while process_time() < end:
        sum(i * i for i in range(500))
    bench.moved(500)


def experiment(measure: object) -> Experiment:
    return Experiment("it", "How hot?", "some", "", measure)  # type: ignore[arg-type]  # it measures


def test_the_hottest_function_is_named_with_its_cost_of_a_tuple() -> None:
    finding, (profile,) = profile_experiment(experiment(spin), Bench())
    assert finding.failure == ""
    assert (profile.name, profile.moved) == (HERE, 500)
    hot = profile.hottest(2)
    assert any("spin" in each.function for each in hot)
    assert hot[0].place.startswith("tests/bench/test_profiles.py:")
    assert sum(each.own_seconds for each in profile.hottest(10_000)) == pytest.approx(
        profile.processor_seconds
    )
    assert profile.each(profile.processor_seconds) == pytest.approx(profile.processor_seconds * 1e6 / 500)


def test_processes_are_profiled_by_name_and_tell_their_count(tmp_path: Path) -> None:
    work = tmp_path / "work.py"
    work.write_text(BUSY)

    def measure(bench: Bench) -> None:
        for _ in range(2):
            measure_process(work, profiled_as="the work")

    _, profiles = profile_experiment(experiment(measure), Bench())
    (profile,) = [each for each in profiles if each.name == "the work"]
    assert profile.moved == 2000
    assert any("busy" in hot.function and hot.place == "work.py:4" for hot in profile.hottest(3))


def test_functions_with_what_they_call_take_at_least_what_they_take_themselves() -> None:
    profile = Profile("it")
    functions = [["a.py", 1, "f", 1, 4], ["a.py", 9, "g", 3, 3]]
    profile.add({"processor_seconds": 1.0, "importing_seconds": 0.5, "functions": functions}, 10)
    assert [(hot.function, hot.own_seconds, hot.total_seconds) for hot in profile.hottest(5)] == [
        ("g", 0.75, 0.75),
        ("f", 0.25, 1.0),
    ]


def test_imports_are_counted_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "slow_to_import.py").write_text(BUSY)
    monkeypatch.syspath_prepend(tmp_path)
    sampler = Sampler()
    sampler.start()
    try:
        import_module("slow_to_import")
    finally:
        seen = sampler.stop()
    assert seen["importing_seconds"] > seen["processor_seconds"]
    assert not [each for each in seen["functions"] if "busy" in each[2]]


def test_places_are_told_without_the_folders_of_this_machine() -> None:
    import asyncio

    import rich

    assert shown_place(asyncio.__file__, 1) == "asyncio/__init__.py:1"
    assert shown_place(rich.__file__, 1) == "rich/__init__.py:1"
    assert shown_place("/somewhere/else/file.py", 3) == "file.py:3"
    assert shown_place("<string>", 3) == "<string>:3"


def test_an_experiment_that_fails_is_still_profiled() -> None:
    def fail(bench: Bench) -> None:
        spin(bench)
        raise ValueError("late")

    finding, profiles = profile_experiment(experiment(fail), Bench())
    assert finding.failure.startswith("ValueError: late")
    assert profiles
