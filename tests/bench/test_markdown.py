"""The report as Markdown: the same as the page says, with drawings beside it."""

from dataclasses import replace
from xml.etree import ElementTree

from aioflow.benchmarks.harness.markdown import markdown_report
from tests.bench.made_up import made_up_results

REPORT = markdown_report(made_up_results(), "plots")


def test_every_table_has_as_many_cells_in_each_row() -> None:
    tables = [block for block in REPORT.text.split("\n\n") if block.startswith("|")]
    assert len(tables) > 8
    for table in tables:
        cells = {row.replace("\\|", "").count("|") for row in table.splitlines()}
        assert len(cells) == 1, table


def test_drawings_are_files_that_the_text_shows() -> None:
    assert "plots/figure-14-measured-1.svg" in REPORT.drawings
    for name, drawing in REPORT.drawings.items():
        assert f"]({name})" in REPORT.text
        ElementTree.fromstring(drawing)


def test_without_a_folder_there_are_no_drawings() -> None:
    report = markdown_report(made_up_results(), None)
    assert report.drawings == {}
    assert "![" not in report.text


def test_simulations_are_labelled_and_apart() -> None:
    measured, simulated = REPORT.text.split("\n## Simulated\n")
    assert "not measured" in simulated
    assert "### Simulated: And with the latencies of the paper?" in simulated
    assert "Simulated:" not in measured
    assert "![Simulated: Tuples over time]" in simulated


def test_goals_and_failures_are_told() -> None:
    assert "**8 of 10 goals reached, 1 missed, 1 unknown.**" in REPORT.text
    assert "✗ missed" in REPORT.text
    assert "ValueError: it is \\<broken\\> & told" in REPORT.text


def test_what_stands_between_backticks_is_code() -> None:
    results = made_up_results()
    finding = replace(results.findings[0], work="`aioflow run *.plan` of\n *all*")
    text = markdown_report(replace(results, findings=(finding,)), None).text
    assert r"- work: `aioflow run *.plan` of \*all\*" in text
