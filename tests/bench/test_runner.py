"""Finding experiments and running them."""

import gc
from collections.abc import Mapping
from pathlib import Path

import pytest

from aioflow.benchmarks.harness import Bench, Experiment, Results
from aioflow.benchmarks.harness.runner import choose, load_experiments, run_experiment, run_experiments
from aioflow.errors import InputError
from tests.bench.packages import FAILING, WORKING, package

INTERRUPTED = """
@experiment("What if it is interrupted?", work="none")
def interrupted(bench: Bench) -> None:
    raise KeyboardInterrupt
"""


def run(
    tmp_path: Path, modules: Mapping[str, str], *names: str, quick: bool = False
) -> tuple[Results, list[str]]:
    said: list[str] = []
    with package(tmp_path, "made_up_experiments", modules) as name:
        results = run_experiments(names, quick, lambda who, text: said.append(f"{who}: {text}"), package=name)
    return results, said


def test_experiments_come_in_the_order_that_their_package_names(tmp_path: Path) -> None:
    modules = {"a": WORKING, "b": FAILING, "_private": WORKING.replace("working", "private")}
    with package(tmp_path, "ordered", modules, order=("b",)) as name:
        assert list(load_experiments(name)) == ["failing", "working"]


def test_an_experiment_runs_its_rounds_and_says_how_far_it_is(tmp_path: Path) -> None:
    results, said = run(tmp_path, {"a": WORKING})
    (finding,) = results.findings
    assert finding.repetitions == 5
    assert [len(each.values) for each in finding.samples] == [5, 5]
    assert (finding.claims[0].value, finding.claims[0].reached) == (0.5, True)
    assert said == [
        "working: begins",
        "working: warming up",
        *(f"working: round {n} of 5" for n in range(1, 6)),
        "working: ended",
    ]


def test_a_quick_run_has_one_round_and_no_warm_up(tmp_path: Path) -> None:
    results, said = run(tmp_path, {"a": WORKING}, quick=True)
    assert results.quick
    assert said == ["working: begins", "working: round 1 of 1", "working: ended"]


def test_conditions_are_recorded(tmp_path: Path) -> None:
    results, _ = run(tmp_path, {"a": WORKING})
    assert len(results.findings[0].conditions["collections"]) == 3
    assert results.findings[0].seconds > 0
    assert results.versions["Python"].startswith("CPython 3.")
    assert results.machine["cores"] >= 1


def test_garbage_is_collected_as_often_as_in_a_program_that_uses_the_library() -> None:
    seen = []
    usual = gc.get_threshold()
    measured = Experiment("it", "How often?", "", "", lambda bench: seen.append(gc.get_threshold()))
    gc.set_threshold(10_000)  # as the command line does
    try:
        run_experiment(measured, Bench())
        assert gc.get_threshold()[0] == 10_000
    finally:
        gc.set_threshold(*usual)
    assert seen == [usual]


def test_an_experiment_that_fails_does_not_stop_the_others(tmp_path: Path) -> None:
    results, said = run(tmp_path, {"a": FAILING, "b": WORKING})
    failed, other = results.findings
    assert failed.failure == "ValueError: it fails (a.py, line 6)"
    assert [each.name for each in failed.samples] == ["before"]
    assert other.failure == ""
    assert "failing: failed: ValueError: it fails (a.py, line 6)" in said


def test_a_module_that_cannot_be_imported_is_an_experiment_that_fails(tmp_path: Path) -> None:
    results, _ = run(tmp_path, {"needs_more": "import there_is_no_such_module\n", "b": WORKING})
    failures = {finding.name: finding.failure for finding in results.findings}
    assert failures["working"] == ""
    assert (
        "needs_more cannot be imported: No module named 'there_is_no_such_module'" in failures["needs-more"]
    )


def test_only_those_named_run_each_once(tmp_path: Path) -> None:
    results, _ = run(tmp_path, {"a": FAILING, "b": WORKING}, "working", "working")
    assert [finding.name for finding in results.findings] == ["working"]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("workin", r"there is no experiment 'workin'; did you mean 'working'\?"),
        ("xyz", r"there is no experiment 'xyz' \(there are: working\)"),
    ],
)
def test_an_unknown_name_is_refused_and_a_near_one_is_suggested(tmp_path: Path, name: str, told: str) -> None:
    with pytest.raises(InputError, match=told):
        run(tmp_path, {"a": WORKING}, name)


def test_what_is_finished_is_kept_when_it_is_interrupted(tmp_path: Path) -> None:
    kept: list[Results] = []
    with (
        package(tmp_path, "stopped", {"a": WORKING, "b": INTERRUPTED}) as name,
        pytest.raises(KeyboardInterrupt),
    ):
        run_experiments(package=name, kept=kept.append)
    assert [[finding.name for finding in results.findings] for results in kept] == [["working"]]


def test_without_names_all_experiments_are_chosen(tmp_path: Path) -> None:
    with package(tmp_path, "unnamed", {"a": WORKING, "b": FAILING}) as name:
        assert [each.name for each in choose((), name)] == ["working", "failing"]


def test_no_module_of_the_harness_is_taken_for_experiments() -> None:
    modules = {each.measure.__module__ for each in load_experiments().values()}
    assert not [name for name in modules if ".harness." in name]


def test_a_package_that_is_not_there_is_told() -> None:
    with pytest.raises(InputError, match="there are no experiments: No module named 'not_there'"):
        load_experiments("not_there")
