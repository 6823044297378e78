"""The demonstration: it runs through, and its picture shows every request where it belongs."""

import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest

from aioflow.demo.picture import (
    HOUSES,
    PAGES,
    WORKERS,
    DemoMode,
    ModeOutcome,
    RequestSpan,
    Timeline,
    demo_modes,
    kind_of,
    lanes_of,
    run_picture,
)
from aioflow.runtime.events import FiringEnded, FiringStarted
from tests.clocks import PATIENCE_SECONDS

# In one process, so that it is run once.
pytestmark = pytest.mark.xdist_group("demonstration")

ROOT = Path(__file__).parents[2]
SVG = "{http://www.w3.org/2000/svg}"
LATENCY_SECONDS = 0.01


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the demonstration runs."""
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def printed(folder: Path) -> str:
    """What the demonstration prints, with short latencies."""
    script = f"from aioflow.demo import show_demo; show_demo({LATENCY_SECONDS})"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_the_demonstration_compares_the_three_modes_and_draws_them(printed: str, folder: Path) -> None:
    assert printed.count(f"all {HOUSES} after") == 3
    assert len(re.findall(r"^ +[\d.]+ s  .* \$ \d{3},\d{3} .* page", printed, re.MULTILINE)) == 8
    times = {
        mode: [float(number) for number in re.findall(r"([\d.]+) s", rest)]
        for mode, rest in re.findall(r"^ (D\S+) (.*)$", printed, re.MULTILINE)
    }
    assert list(times) == ["D-", "D+S-", "D+S+"]
    for first, first_limit, last, last_limit in times.values():
        assert first >= first_limit
        assert last >= last_limit
    # Only streaming gives its first tuple before the last.
    assert times["D+S+"][0] < times["D+S+"][2]
    picture = folder / "aioflow-demo.svg"
    assert str(picture) in printed
    drawn = ElementTree.parse(picture).getroot()
    assert [len(bars(drawn, kind)) for kind in ("search", "next", "house")] == [
        3,
        3 * (PAGES - 1),
        3 * HOUSES,
    ]


def test_the_demonstration_mails_a_house_that_is_new(printed: str) -> None:
    first, added, second, rest = re.search(
        r"^first run(.*)\n.*put up for sale: (\S+)\nsecond run(.*)\n((?: {16}.*\n)+)", printed, re.MULTILINE
    ).groups()  # type: ignore[union-attr]
    assert first.endswith(f"“New houses: {HOUSES}”")
    assert f"{PAGES + HOUSES} requests" in first
    assert second.endswith("“New houses: 1”")
    assert f"{PAGES + 2} requests" in second
    assert added in rest


def bars(picture: ElementTree.Element, kind: str) -> list[ElementTree.Element]:
    """The requests of a kind; the legend has no tooltip."""
    return [
        bar for bar in picture.iterfind(f"{SVG}rect[@class='{kind}']") if bar.find(f"{SVG}title") is not None
    ]


@pytest.mark.parametrize(
    ("mode", "first", "last"), [("D-", 8.4, 8.4), ("D+S-", 1.7, 1.7), ("D+S+", 0.2, 1.3)]
)
def test_the_limits_are_those_of_physics(mode: str, first: float, last: float) -> None:
    (found,) = (each for each in demo_modes(0.1) if each.name == mode)
    assert found.first_limit == pytest.approx(first)
    assert found.last_limit == pytest.approx(last)


@pytest.mark.parametrize(
    ("url", "kind", "path"),
    [
        ("http://h:1/search?city=Irvine", "search page", "/search?city=Irvine"),
        ("http://h:1/search?city=Irvine&page=2", "next page", "/search?city=Irvine&page=2"),
        ("http://h:1/houses/31-nightingale-1000", "house", "/houses/31-nightingale-1000"),
    ],
)
def test_a_request_is_known_by_its_address(url: str, kind: str, path: str) -> None:
    assert kind_of(url) == (kind, path)


def test_requests_are_collected_from_the_events_of_a_run() -> None:
    timeline = Timeline(started=10.0)
    step = ("run", "plan", "wrapper", 3, 0)
    timeline(FiringStarted(10.5, *step, firing=1, label="http://h/search"))
    timeline(FiringStarted(10.6, *step, firing=2, label="http://h/houses/1"))
    timeline(FiringEnded(10.75, *step, firing=1))
    timeline(FiringEnded(10.8, *step, firing=7))
    assert timeline.requests == [RequestSpan("search page", "/search", 0.5, 0.75)]
    assert (timeline.under_way, timeline.count("search page"), timeline.count("house")) == (1, 1, 0)


def test_requests_on_one_lane_do_not_overlap_and_pages_have_the_first() -> None:
    pages = [RequestSpan("next page", f"/p{n}", n * 0.1, n * 0.1 + 0.1) for n in range(12)]
    houses = [RequestSpan("house", f"/h{n}", n // 6 * 0.1, n // 6 * 0.1 + 0.13) for n in range(72)]
    requests = houses + pages
    lanes = lanes_of(requests, WORKERS)
    assert set(lanes[len(houses) :]) == {0}
    assert max(lanes) < WORKERS
    for lane in set(lanes):
        on_it = sorted(
            (request.start, request.end) for request, on in zip(requests, lanes, strict=True) if on == lane
        )
        assert all(end <= start + 1e-5 for (_, end), (start, _) in pairwise(on_it))


def test_the_picture_says_what_it_shows() -> None:
    mode = DemoMode("D+S+", "a <b> & c", WORKERS, 0.2, 1.3)
    request = RequestSpan("house", '/houses/"x"&y', 0.1, 0.2)
    outcome = ModeOutcome(mode, (request,), (0.25, 1.5))
    drawn = ElementTree.fromstring(run_picture([outcome, outcome], 0.1))
    texts = ["".join(element.itertext()) for element in drawn.iter(f"{SVG}text")]
    assert any("a <b> & c" in text for text in texts)
    assert any("first house after 0.25 s" in text for text in texts)
    assert [bar.findtext(f"{SVG}title") for bar in bars(drawn, "house")] == [request.path] * 2
