"""The report's page: what it says, and that it stands for itself."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from aioflow.benchmarks.harness.page import html_page
from tests.bench.made_up import made_up_results

VOID = {"meta", "br", "hr", "img", "link", "input"}
PAGE = html_page(made_up_results())


class Outline(HTMLParser):
    """Checks that every element ends, and collects anchors, links and texts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.anchors: list[str] = []
        self.links: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += attrs
        found = dict(attrs)
        self.anchors += filter(None, [found.get("id")])
        self.links += filter(None, [found.get("href")])
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] != ["style"]:
            self.text += data + " "


def text_of(page: str) -> str:
    return " ".join(Outline(page).text.split())


TEXT = text_of(PAGE)


def test_every_element_ends_and_every_link_leads_somewhere() -> None:
    outline = Outline(PAGE)
    assert outline.open == []
    assert len(set(outline.anchors)) == len(outline.anchors)
    assert outline.links
    assert {link.removeprefix("#") for link in outline.links} <= set(outline.anchors)  # marks of plots too


def test_the_page_fetches_nothing_and_has_no_script() -> None:
    outline = Outline(PAGE)
    assert not {name for name, _ in outline.attributes} & {"src", "srcset", "data", "xlink:href", "onload"}
    assert "<script" not in PAGE
    assert "@import" not in PAGE
    assert "url(" not in PAGE
    assert set(re.findall(r"https?://[^\s\"<]+", PAGE)) == {"http://www.w3.org/2000/svg"}


def test_it_is_light_and_dark_as_the_reader_wishes() -> None:
    assert "color-scheme: light dark" in PAGE
    assert PAGE.count("prefers-color-scheme: dark") >= 2


def test_goals_are_told_in_words_and_signs() -> None:
    assert "8 of 10 goals reached, 1 missed, 1 unknown." in TEXT
    assert "D+S- to the last tuple, of its limit 1.04× 1.04 – 1.06× at most 1.03× ✗ missed" in TEXT
    assert "at most 1.10× ✓ reached" in TEXT
    assert "not found at least 2× – unknown" in TEXT


def test_simulated_goals_stand_apart() -> None:
    goals = PAGE.partition('id="goals"')[2].partition('id="measured"')[0]
    measured, simulated = goals.split("On the virtual clock")
    assert "#paper-14-simulated" in simulated
    assert "simulated" not in measured.removesuffix('<h4><span class="badge">simulated</span>')


def test_rows_of_one_figure_stand_under_its_name() -> None:
    assert PAGE.count('<th colspan="9" scope="rowgroup">last tuple</th>') == 2  # measured and simulated
    assert "<td>last tuple</td>" not in PAGE


def test_what_stands_between_backticks_is_code() -> None:
    results = made_up_results()
    finding = replace(results.findings[0], work="`aioflow run` of <it>")
    page = html_page(replace(results, findings=(finding,)))
    assert "<code>aioflow run</code> of &lt;it&gt;" in page


def test_a_disturbed_run_is_told_first() -> None:
    assert "Disturbed" not in PAGE
    results = made_up_results()
    busy = replace(results.findings[0], conditions={"others_share": 0.4})
    text = text_of(html_page(replace(results, findings=(busy, *results.findings[1:]))))
    assert "⚠ Disturbed. Other programs took more than 10% of the processors during 1 of 6" in text


def test_an_experiment_says_its_question_work_limit_rounds_and_conditions() -> None:
    for part in (
        "How long do the three modes take to the first and to the last tuple?",
        "Homeseekers: 72 houses on 12 result pages",
        "The requests that must wait for each other",
        "rounds 12",
        "load 0.4 before, 1.1 after",
        "other programs took 3% of the processors",
        "The site answers every request after 100 ms",
    ):
        assert part in TEXT


def test_both_kinds_of_statistics_stand_beside_each_other() -> None:
    assert "difference of means unpaired t-test ratio of a round 95 % interval differ" in TEXT
    assert re.search(
        r"D\+S- D\+S\+ 0\.39\d s t\([\d.]+\) = [\d.]+, p < 0\.0001 1\.29× 1\.27 – 1\.31× yes", TEXT
    )
    assert re.search(r"D\+S\+ s 12 1\.38 1\.37 – 1\.39 1\.3\d\d ± 0\.015", TEXT)


def test_simulated_findings_come_after_the_measured_ones_and_are_labelled() -> None:
    measured, simulated = PAGE.split('<h2 id="simulated">')
    assert "These figures were not measured." in simulated
    assert 'class="simulated"' in simulated
    assert 'class="simulated"' not in measured
    assert "And with the latencies of the paper?" in simulated
    assert "How long do the three modes take" not in simulated
    # Every drawing of a simulation says so.
    figures = re.findall(r"<figcaption>(.*?)</figcaption>", simulated)
    assert figures
    assert all("simulated" in figure for figure in figures)


def test_a_finding_with_both_origins_is_split() -> None:
    results = made_up_results()
    both = replace(
        results.findings[0], samples=results.findings[0].samples + results.findings[4].samples, name="both"
    )
    outline = Outline(html_page(replace(results, findings=(both,))))
    assert {"both", "both-simulated"} <= set(outline.anchors)


def test_a_failed_experiment_is_told_first_and_in_its_place() -> None:
    assert "✗ 1 failed: " in PAGE
    assert PAGE.count("ValueError: it is &lt;broken&gt; &amp; told") == 1
    assert "<broken>" not in PAGE


def test_a_quick_run_says_so_and_judges_nothing() -> None:
    text = text_of(html_page(made_up_results(quick=True)))
    assert "Quick run." in text
    assert "✓ reached" not in text
    assert "✗ missed" not in text


def test_machine_versions_and_commit_are_there() -> None:
    assert "Imaginary 9000, 2 cores" in TEXT
    assert "25.3 GB" in TEXT
    assert "6c6cc08d1f1b, with changes" in TEXT
    assert "scrapy 2.13.0" in TEXT


@pytest.mark.parametrize("quick", [True, False])
def test_a_run_that_found_nothing_still_has_a_page(quick: bool) -> None:
    assert Outline(html_page(replace(made_up_results(quick), findings=()))).open == []
