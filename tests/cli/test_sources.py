"""`aioflow sources`: histograms of latencies, the strategy that follows, its gain and its cost."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from xml.etree import ElementTree

import pytest

from aioflow.testing import Answer, ScriptedSite, run
from aioflow.web.http import Request
from tests.cli.program import aioflow

SETTINGS = '[http]\nlatencies = "latencies.sqlite"\nrestart = "auto"\nrestart_extra = 1\n'


def learn(folder: Path, *, slow: float, requests: int = 600, rule: str = "auto") -> None:
    """Have a client learn from a shop, one in ten of whose answers takes `slow` seconds."""
    dice = Random(1)
    file = str(folder / "latencies.sqlite")

    async def main() -> None:
        site = ScriptedSite(lambda _: Answer(seconds=slow if dice.random() < 0.1 else dice.uniform(0.9, 1.1)))
        http = {"restart": rule, "restart_extra": 1.0, "latencies": file, "concurrency": 100}
        async with site.client({"http": http}) as client:
            for number in range(requests):
                for kind in ("search", "detail"):
                    await client.fetch(Request(f"http://shop.example/{kind}/{number}", kind=kind))

    (folder / "aioflow.toml").write_text(SETTINGS)
    run(main())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("sources")
    learn(found, slow=20.0)
    return found


def test_a_source_is_shown_with_its_histogram_its_strategy_and_its_cost(folder: Path) -> None:
    shown = aioflow("sources", "show", "shop.example", "--wrapper", "search", cwd=folder)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.startswith("shop.example, wrapper search\n")
    for expected in (
        "rule        auto",
        "strategy    send again after 1.1 s, up to 5 times",
        "because     the gain is certain",
        "s a request, ",
        "saved for each request",
        "of 600 requests",
        "── 1.1 s: given up and sent again ──",
        "███",
    ):
        assert expected in shown.stdout


def test_figures_of_a_source_as_json(folder: Path) -> None:
    shown = aioflow("sources", "show", "shop.example:80", "--json", cwd=folder)
    search, detail = sorted(map(json.loads, shown.stdout.splitlines()), key=lambda each: each["wrapper"])[
        ::-1
    ]
    assert (search["wrapper"], detail["wrapper"]) == ("search", "detail")
    assert search["host"] == "shop.example:80"
    assert search["steps"][0]["after"] == pytest.approx(1.1, rel=0.01)
    assert search["expected-seconds"] < 2 < search["waiting-seconds"]
    assert search["observed-gain-seconds"] > 0
    assert search["requests"] == 600
    assert 0 < search["extra"] < 200
    assert search["seconds"]["p50"] == pytest.approx(1.0, rel=0.1)


def test_the_histogram_is_drawn_as_svg(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "shop.svg"
    options = ("--wrapper", "search", "--svg", str(target))
    assert aioflow("sources", "show", "shop.example", *options, cwd=folder).returncode == 0
    drawn = ElementTree.fromstring(target.read_text())
    names = [text.text for text in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert names[0] == "shop.example, wrapper search"
    assert "1.1 s: given up and sent again" in names


def test_several_histograms_are_not_drawn_into_one_file(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "shop.svg"
    shown = aioflow("sources", "show", "shop.example", "--svg", str(target), cwd=folder)
    assert shown.returncode != 0
    assert "choose one by --wrapper: detail, search" in shown.stderr
    assert not target.exists()


def test_sources_are_listed(folder: Path) -> None:
    listed = aioflow("sources", "list", cwd=folder).stdout
    assert [line.split()[:2] for line in listed.splitlines()[2:]] == [
        ["shop.example", "detail"],
        ["shop.example", "search"],
    ]
    figures = [
        json.loads(line) for line in aioflow("sources", "list", "--json", cwd=folder).stdout.splitlines()
    ]
    assert [each["rule"] for each in figures] == ["auto", "auto"]


def test_an_unknown_host_is_an_error_with_a_suggestion(folder: Path) -> None:
    shown = aioflow("sources", "show", "shop.exampel", cwd=folder)
    assert shown.returncode != 0
    assert (
        "no latencies of 'shop.exampel' are known in latencies.sqlite; did you mean 'shop.example'?"
        in shown.stderr
    )
    shown = aioflow("sources", "show", "shop.example", "--wrapper", "serach", cwd=folder)
    assert "did you mean 'search'?" in shown.stderr


def test_what_is_not_kept_cannot_be_shown(tmp_path: Path) -> None:
    (tmp_path / "aioflow.toml").write_text("[http]\nlatencies = false\n")
    shown = aioflow("sources", "list", cwd=tmp_path)
    assert "latencies are not kept, since http.latencies is false" in shown.stderr


def test_a_newcomer_is_told_how_sources_become_known(tmp_path: Path) -> None:
    (tmp_path / "aioflow.toml").write_text(SETTINGS)
    shown = aioflow("sources", "list", cwd=tmp_path)
    assert shown.returncode == 0
    assert "no latencies are known" in shown.stderr
    assert not (tmp_path / "latencies.sqlite").exists()


def test_a_fixed_rule_is_shown_with_what_it_gains(tmp_path: Path) -> None:
    learn(tmp_path, slow=20.0, requests=100, rule="hedge 2")
    shown = aioflow("sources", "show", "shop.example", "--wrapper", "search", cwd=tmp_path).stdout
    assert "strategy    a second request after 2 s, beside the first" in shown
    assert "because     as configured: hedge 2" in shown
