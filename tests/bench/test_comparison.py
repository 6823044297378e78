"""What became faster or slower between two runs, and what cannot be compared."""

import random
from collections.abc import Mapping
from dataclasses import replace

import pytest

from aioflow.benchmarks.harness import Results, Samples
from aioflow.benchmarks.harness.comparison import compare
from aioflow.benchmarks.harness.results import Finding, Unit
from aioflow.benchmarks.harness.statistics import t_test
from aioflow.errors import InputError
from tests.bench.made_up import made_up_results


def run(variants: Mapping[str, list[float]], quick: bool = False, cores: int = 2) -> Results:
    samples = tuple(Samples(name, "s", tuple(values)) for name, values in variants.items())
    findings = (Finding("it", "How long?", "", "", 10, samples),)
    machine = {"processor": "Imaginary 9000", "cores": cores, "architecture": "x86_64"}
    return replace(made_up_results(), quick=quick, findings=findings, machine=machine)


def noise(around: float, seed: int, count: int = 12) -> list[float]:
    chance = random.Random(seed)
    return [around * chance.gauss(1, 0.02) for _ in range(count)]


def test_what_became_slower_and_faster_is_found_and_noise_is_not() -> None:
    before = run({"slower": noise(1, 1), "faster": noise(1, 2), "same": noise(1, 3)})
    after = run({"slower": noise(1.1, 4), "faster": noise(0.5, 5), "same": noise(1, 6)})
    found = compare(before, after)
    assert [change.word for change in found.changes] == ["slower", "faster", "no change shown"]
    assert [change.is_worse for change in found.changes] == [True, False, False]
    assert found.is_worse
    ratio = found.changes[1].ratio
    assert ratio is not None
    assert ratio.value == pytest.approx(0.5, rel=0.05)


def test_a_run_compared_with_itself_shows_no_change() -> None:
    results = made_up_results()
    found = compare(results, results)
    assert found.changes
    assert {change.word for change in found.changes} == {"no change shown"}
    assert not found.is_worse


def test_luck_among_many_comparisons_is_not_taken_for_a_change() -> None:
    before = {f"v{n}": noise(1, 5000 + n) for n in range(60)}
    after = {f"v{n}": noise(1, 5500 + n) for n in range(60)}
    tests = [t_test(before[name], after[name]) for name in before]
    assert sum(test is not None and test.is_significant for test in tests) == 4  # one in twenty, about
    found = compare(run(before), run(after))
    assert [change.name for change in found.changes if change.is_significant] == []


@pytest.mark.parametrize(
    ("unit", "word", "worse"),
    [
        ("s", "slower", True),
        ("rows/s", "faster", False),
        ("MB", "larger", True),
        ("requests", "more", False),
    ],
)
def test_more_is_better_or_worse_by_its_unit(unit: Unit, word: str, worse: bool) -> None:
    results = run({"it": noise(1, 1)})

    def of(values: list[float]) -> Results:
        finding = replace(results.findings[0], samples=(Samples("it", unit, tuple(values)),))
        return replace(results, findings=(finding,))

    (change,) = compare(of(noise(1, 1)), of(noise(2, 2))).changes
    assert (change.word, change.is_worse) == (word, worse)


def test_too_few_rounds_say_nothing() -> None:
    (change,) = compare(run({"it": [1.0]}), run({"it": [9.0]})).changes
    assert (change.word, change.is_significant) == ("too few rounds", False)


def test_what_has_too_few_rounds_to_show_a_change_hides_none_of_the_others() -> None:
    few: dict[str, list[float]] = {f"few {n}": [1.0, 2.0] for n in range(5000)}
    before, after = run({"it": noise(1, 1, 6), **few}), run({"it": noise(1.1, 2, 6), **few})
    assert compare(before, after).changes[0].word == "slower"


def test_what_only_one_run_has_is_told() -> None:
    found = compare(run({"both": noise(1, 1), "old": [1.0]}), run({"both": noise(1, 2), "new": [1.0]}))
    assert (found.only_before, found.only_after) == (("it: old",), ("it: new",))


def test_quick_and_full_runs_and_different_machines_are_compared_only_by_force() -> None:
    with pytest.raises(InputError, match="one run is quick and the other is full; --force"):
        compare(run({"it": [1.0]}, quick=True), run({"it": [1.0]}))
    with pytest.raises(InputError, match=r"different machines \(cores: 2 and 8\)"):
        compare(run({"it": [1.0]}), run({"it": [1.0]}, cores=8))
    assert compare(run({"it": [1.0]}), run({"it": [1.0]}, cores=8, quick=True), force=True).changes


def test_rounds_of_simulations_have_the_same_seeds_and_are_compared_one_by_one() -> None:
    def simulated(factor: float) -> Results:
        results = run({"it": [factor * value for value in (10.0, 14.0, 11.0, 19.0, 12.0, 13.0)]})
        finding = results.findings[0]
        samples = (replace(finding.samples[0], origin="simulated"),)
        return replace(results, findings=(replace(finding, samples=samples),))

    (slower,) = compare(simulated(1.0), simulated(1.02)).changes
    (same,) = compare(simulated(1.0), simulated(1.0)).changes
    assert (slower.word, same.word) == ("slower", "no change shown")


def test_a_simulation_is_never_compared_with_a_measurement() -> None:
    measured = run({"it": noise(1, 1)})
    finding = measured.findings[0]
    simulated = replace(finding, samples=(replace(finding.samples[0], origin="simulated"),))
    found = compare(measured, replace(measured, findings=(simulated,)))
    assert found.changes == ()
