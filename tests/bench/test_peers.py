"""Peers by hand and made up; the real ones are in environments that only a benchmark makes."""

from pathlib import Path

import pytest

from aioflow.benchmarks.harness import Bench, Finding, at_least
from aioflow.benchmarks.harness.experiment import experiments
from aioflow.benchmarks.harness.runner import choose
from aioflow.benchmarks.peers import by_aioflow, comparison
from aioflow.benchmarks.peers.comparison import Peers, claim_beside, compare
from aioflow.benchmarks.peers.running import AIOFLOW, BY_HAND, Job, Peer, measure, measure_all
from aioflow.demo.running import running_site

MODULE = "tests.bench.made_up_peers"
PLAIN, BACKWARD = Peer("plain", MODULE), Peer("backward", MODULE, form="backward_")
FORGETFUL, MISTAKEN = Peer("forgetful", MODULE, form="forgetful_"), Peer("mistaken", MODULE, form="mistaken_")
JOB = Job("three", "houses", "http://nowhere", 2, 3)


def finding(bench: Bench) -> Finding:
    return bench.finding(experiments["peers"])


def test_the_experiment_is_found() -> None:
    (found,) = choose(["peers"])
    assert found.question.endswith("?")


def test_code_by_hand_and_aioflow_find_the_same_houses() -> None:
    with running_site(results=4, per_page=2) as site:
        job = Job("tiny", "houses", site.url, 3, 4)
        found = measure_all((AIOFLOW, BY_HAND), job)
    assert all(len(each.arrivals) == 4 for each in found.values())
    assert all(0 < each.processor_seconds < each.process_processor_seconds for each in found.values())


def test_the_plan_of_the_crawl_has_no_mistakes() -> None:
    by_aioflow.prepare("crawl")


def test_tuples_may_come_in_another_order_and_numbers_be_of_another_type() -> None:
    measure_all((PLAIN, BACKWARD), JOB)


def test_a_peer_that_finds_less_is_refused() -> None:
    with pytest.raises(AssertionError, match="forgetful found 2 of 3"):
        measure(FORGETFUL, JOB)


def test_a_peer_that_finds_something_else_is_refused() -> None:
    with pytest.raises(AssertionError, match="do not do the same work"):
        compare(Bench(quick=True), JOB, [PLAIN, MISTAKEN], rounds=1)


def test_every_peer_is_sampled_in_every_round_but_slow_ones_in_the_first_alone() -> None:
    bench = Bench()
    runs = compare(bench, JOB, [PLAIN, BACKWARD], rounds=2, seldom={"backward"})
    assert list(runs) == ["plain", "backward"]
    assert {each.name: len(each.values) for each in finding(bench).samples if "last" in each.name} == {
        "plain, three: last tuple": 2,
        "backward, three: last tuple": 1,
    }
    claim_beside(bench, Peers(), "three: last tuple", "plain", "backward")
    (claim,) = finding(bench).claims
    assert claim.value is not None
    assert claim.remark == "rounds that had both: 1"


def test_pages_a_second_are_told_of_a_crawl() -> None:
    bench = Bench(quick=True)
    compare(bench, Job("crawl", "crawl", "http://nowhere", 2, 10), [PLAIN], rounds=1)
    (speed,) = (each for each in finding(bench).samples if each.unit == "pages/s")
    assert speed.name == "plain, crawl: speed"
    assert speed.figure == "crawl: speed"


def test_a_goal_beside_a_peer_that_cannot_run_says_why_it_was_not_measured() -> None:
    bench = Bench(quick=True)
    peers = Peers(missing={"Scrapy tuned": "Scrapy could not be installed: no network"})
    claim_beside(bench, peers, "crawl: speed", "aioflow", "Scrapy tuned", at_least(5))
    claim_beside(bench, peers, "crawl: processor time", "Scrapy tuned", "by hand")
    (claim,) = finding(bench).claims
    assert (claim.value, claim.reached) == (None, None)
    assert claim.remark == "not measured: Scrapy could not be installed: no network"


def test_what_is_not_installed_is_noted_and_left_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("aioflow.benchmarks.harness.environments.environments_folder", lambda: tmp_path)
    bench = Bench(quick=True)
    peers = comparison.find_peers(bench)
    assert peers.present == [AIOFLOW, BY_HAND]
    assert set(peers.missing) == {"Scrapy tuned", "Scrapy idiomatic", "Crawlee tuned", "Crawlee idiomatic"}
    assert any("Scrapy was not measured" in note for note in finding(bench).notes)


def test_homeseekers_is_compared_from_inside_and_from_a_shell() -> None:
    bench = Bench(quick=True)
    comparison.compare_homeseekers(bench, Peers())
    found = finding(bench)
    assert {claim.what for claim in found.claims} >= {
        "12 × 6: last tuple, aioflow / by hand",
        "12 × 6: processor time with start-up, aioflow / by hand",
        "12 × 6: peak memory, aioflow",
        "shell to first tuple, aioflow / by hand",
    }
    assert all(claim.value for claim in found.claims)
    assert [curve.points[-1][1] for plot in found.plots for curve in plot.curves] == [72, 72]
