"""The report as one self-contained HTML page: it fetches nothing and has no script."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from itertools import zip_longest

from aioflow.benchmarks.harness.plots import Drawing, drawings
from aioflow.benchmarks.harness.results import Finding, Origin, Results
from aioflow.benchmarks.harness.svg import STYLE, colour_scheme
from aioflow.benchmarks.harness.tables import (
    ReportTable,
    claims_table,
    goals,
    goals_table,
    pairs_table,
    parts,
    samples_table,
)
from aioflow.benchmarks.harness.wording import (
    METHOD,
    QUICK,
    SIMULATED,
    condition_lines,
    disturbed_text,
    goals_summary,
    machine_lines,
)

# Longer tables are folded away.
_SHOWN_ROWS = 16
_CODE = re.compile("`([^`]+)`")
_PAGE = """
:root { --wash: #f5f6f8; --good: #00694e; --bad: #b3261e; --line: #d5d9df; }
@media (prefers-color-scheme: dark) {
  :root { --wash: #1d2024; --good: #56cfa6; --bad: #ff9088; --line: #363b42; }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; scroll-behavior: smooth; }
body { margin: 0 auto; padding: 2.5rem 1.25rem 5rem; max-width: 62rem; background: var(--paper);
  color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", "Helvetica Neue", Arial, sans-serif; }
h1 { font-size: 2rem; line-height: 1.2; margin: 0 0 .25rem; }
h2 { font-size: 1.45rem; margin: 3.25rem 0 .75rem; padding-bottom: .3rem;
  border-bottom: 2px solid var(--ink); }
h3 { font-size: 1.2rem; line-height: 1.35; margin: 0 0 .4rem; }
h4 { font-size: .95rem; margin: 1.75rem 0 .4rem; }
p { margin: .5rem 0; max-width: 46rem; }
a { color: var(--series-1); }
code { font: .875em ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
.muted { color: var(--muted); }
.lead { font-size: 1.05rem; }
nav ol { columns: 2 22rem; column-gap: 2.5rem; padding-left: 1.4rem; margin: .5rem 0; }
nav li { break-inside: avoid; padding: .12rem 0; }
.banner { border: 2px solid currentColor; border-radius: 6px; padding: .6rem .9rem; margin: 1.25rem 0;
  max-width: none; }
.banner.bad { color: var(--bad); }
article { margin: 2.25rem 0 0; padding: 0 0 .5rem; }
article + article { border-top: 1px solid var(--line); padding-top: 2rem; }
article.simulated { border: 2px dashed var(--series-5); border-radius: 8px; padding: 1.25rem;
  margin-top: 1.5rem; }
.badge { display: inline-block; border: 1.5px dashed var(--series-5); color: var(--series-5);
  border-radius: 4px;
  padding: 0 .45rem; font-size: .8rem; font-weight: 600; letter-spacing: .03em; vertical-align: .12em;
  margin-right: .5rem; white-space: nowrap; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; margin: .6rem 0 1rem; }
dt { color: var(--muted); }
dd { margin: 0; min-width: 0; }
.scroll { overflow-x: auto; margin: .6rem 0 1rem; }
table { border-collapse: collapse; font-size: .875rem; line-height: 1.4; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--muted); padding-bottom: .3rem; }
th, td { text-align: left; padding: .32rem .8rem .32rem 0; vertical-align: baseline;
  border-bottom: 1px solid var(--line); }
th { font-weight: 600; border-bottom: 1.5px solid var(--muted); white-space: nowrap; }
th.n, td.n { text-align: right; white-space: nowrap; }
th:last-child, td:last-child { padding-right: 0; }
tr.group th { padding-top: .8rem; border-bottom-width: 1px; border-bottom-color: var(--line); }
td.verdict { white-space: nowrap; font-weight: 600; }
td.reached { color: var(--good); }
td.missed { color: var(--bad); }
td.missed span { border-bottom: 2px solid currentColor; }
tr.missed td { background: var(--wash); }
figure { margin: 1.25rem 0 1.5rem; }
figcaption { font-weight: 600; margin-bottom: .35rem; }
figure .frame { overflow-x: auto; }
figure svg { display: block; width: 100%; max-width: 720px; min-width: 560px; height: auto; }
details { margin: .6rem 0; }
summary { cursor: pointer; font-size: .95rem; font-weight: 600; padding: .2rem 0; }
.notes { margin: .4rem 0; padding-left: 1.2rem; max-width: 46rem; }
@media (max-width: 40rem) { body { padding-top: 1.25rem; } h1 { font-size: 1.6rem; }
  dl { grid-template-columns: 1fr; }
  dd { margin-bottom: .4rem; } }
@media (max-width: 40rem) { table { font-size: .8rem; } td:first-child:not(.n) { min-width: 5.5rem; }
  th, td, th.n, td.n, td.verdict { white-space: normal; padding-right: .35rem; } }
@media print { body { max-width: none; } article { break-inside: avoid-page; } nav { display: none; } }
"""


def page_style() -> str:
    return f"{colour_scheme()}{_PAGE}{STYLE}"


def html_page(results: Results) -> str:
    """Return the whole report."""
    body = [_header(results), _contents(results), _goals(results)]
    measured, simulated = parts(results, "measured"), parts(results, "simulated")
    if measured:
        body.append(tag("h2", "Measured", id="measured"))
        body += [_article(each, "measured", results.quick) for each in measured]
    if simulated:
        body.append(tag("h2", "Simulated", id="simulated"))
        body.append(tag("p", escape(SIMULATED)))
        body += [_article(each, "simulated", results.quick) for each in simulated]
    body += [_method(), _machine(results)]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>aioflow benchmarks</title>\n<style>{page_style()}</style>\n</head>\n<body>\n"
        + "\n".join(filter(None, body))
        + "\n</body>\n</html>\n"
    )


def tag(kind: str, *children: str, **attributes: str) -> str:
    """Return `<kind …>children</kind>`; `css` is its class."""
    written = "".join(
        f' {"class" if name == "css" else name}="{escape(value)}"'
        for name, value in attributes.items()
        if value
    )
    return f"<{kind}{written}>{''.join(children)}</{kind}>"


# --- the beginning ------------------------------------------------------------------------------


def _header(results: Results) -> str:
    machine = dict(machine_lines(results))
    shown = [machine[name] for name in ("processor", "system") if name in machine]
    about = " · ".join([results.started[:10], f"aioflow {results.versions.get('aioflow', '?')}", *shown])
    found = [tag("h1", "aioflow benchmarks"), tag("p", escape(about), css="muted")]
    if results.quick:
        found.append(tag("p", tag("strong", "Quick run. "), escape(QUICK), css="banner"))
    disturbed = disturbed_text(results)
    if disturbed:
        found.append(tag("p", tag("strong", "⚠ Disturbed. "), escape(disturbed), css="banner"))
    failed = [each.name for each in results.findings if each.failure]
    if failed:
        names = ", ".join(tag("a", escape(name), href=f"#{_anchor(name, 'measured')}") for name in failed)
        found.append(tag("p", tag("strong", f"✗ {len(failed)} failed: "), names, css="banner bad"))
    return tag("header", *found)


def _contents(results: Results) -> str:
    entries = []
    origins: tuple[Origin, ...] = ("measured", "simulated")
    for origin in origins:
        for each in parts(results, origin):
            link = tag("a", escape(each.question), href=f"#{_anchor(each.name, origin)}")
            entries.append(tag("li", _badge(origin), link))
    return tag("nav", tag("h2", "Questions"), tag("ol", *entries)) if entries else ""


def _goals(results: Results) -> str:
    inner = []
    origins: tuple[Origin, ...] = ("measured", "simulated")
    for origin in origins:
        anchors = [_anchor(each.name, origin) for each, _ in goals(results, origin)]
        if anchors:
            heading = tag("h4", _badge(origin), "On the virtual clock") if origin == "simulated" else ""
            inner.append(heading + _table(goals_table(results, origin), anchors))
    if not inner:
        return ""
    summary = tag("p", tag("strong", escape(goals_summary(results) + ".")), css="lead")
    return tag("section", tag("h2", "Goals", id="goals"), "" if results.quick else summary, *inner)


# --- an experiment ------------------------------------------------------------------------------


def _article(finding: Finding, origin: Origin, quick: bool) -> str:
    inner = [tag("h3", _badge(origin), escape(finding.question)), _about(finding, origin)]
    if finding.failure:
        inner.append(tag("p", tag("strong", "✗ failed: "), escape(finding.failure), css="banner bad"))
    if finding.claims:
        inner.append(_table(claims_table(finding.claims, quick=quick)))
    inner += [_figure(each, origin) for each in drawings(finding, origin)]
    if finding.notes:
        inner.append(tag("ul", *(tag("li", _prose(note)) for note in finding.notes), css="notes"))
    if finding.samples:
        inner.append(_folded("Every variant", samples_table(finding.samples, origin)))
        compared = pairs_table(finding, origin)
        if compared.rows:
            inner.append(_folded("Variants against each other: the paper's test, and our ratio", compared))
    css = "simulated" if origin == "simulated" else ""
    return tag("article", *inner, id=_anchor(finding.name, origin), css=css)


def _about(finding: Finding, origin: Origin) -> str:
    lines = [("experiment", tag("code", escape(finding.name))), ("work", _prose(finding.work))]
    lines.append(("limit", _prose(finding.limit)))
    if finding.repetitions:
        lines.append(("rounds", str(finding.repetitions)))
    if origin == "measured":
        lines.append(("meanwhile", escape(" · ".join(condition_lines(finding)))))
    return tag("dl", *(tag("dt", name) + tag("dd", value) for name, value in lines if value))


def _figure(drawing: Drawing, origin: Origin) -> str:
    caption = tag("figcaption", _badge(origin), escape(drawing.title))
    return tag("figure", caption, tag("div", drawing.svg, css="frame"))


def _prose(text: str) -> str:
    """Return text as HTML, with code between backticks."""
    return _CODE.sub(r"<code>\1</code>", escape(text))


def _badge(origin: Origin) -> str:
    return tag("span", "simulated", css="badge") if origin == "simulated" else ""


def _folded(title: str, table: ReportTable) -> str:
    if len(table.rows) <= _SHOWN_ROWS:
        return tag("h4", escape(title)) + _table(table)
    return tag("details", tag("summary", f"{escape(title)} ({len(table.rows)})"), _table(table))


# --- tables -------------------------------------------------------------------------------------


def _table(table: ReportTable, anchors: Sequence[str] = ()) -> str:
    """Return a table; with anchors, the first cell of each row or the name of its group links there."""
    first = 1 if table.is_grouped else 0
    head = tag(
        "tr",
        *(
            tag("th", escape(heading), css="n" if place in table.numeric else "", scope="col")
            for place, heading in enumerate(table.headings)
            if place >= first
        ),
    )
    rows, before = [], None
    for row, anchor in zip_longest(table.rows, anchors, fillvalue=""):
        if table.is_grouped and row[0] != before:
            rows.append(_group(row[0], anchor, len(table.headings) - 1))
        rows.append(_row(table, row, "" if table.is_grouped else anchor, first))
        before = row[0]
    return tag("div", tag("table", tag("thead", head), tag("tbody", *rows)), css="scroll")


def _group(name: str, anchor: str, columns: int) -> str:
    """Return a row with the name of those that follow."""
    shown = tag("a", escape(name), href=f"#{anchor}") if anchor else escape(name)
    return tag("tr", tag("th", shown, colspan=str(columns), scope="rowgroup"), css="group") if name else ""


def _row(table: ReportTable, row: Sequence[str], anchor: str, first: int) -> str:
    cells = []
    for place, value in enumerate(row):
        if place < first:
            continue
        if anchor and place == 0:
            cells.append(tag("td", tag("a", escape(value), href=f"#{anchor}")))
        elif value[:1] in ("✓", "✗", "–") and place not in table.numeric:
            kind = {"✓": "reached", "✗": "missed"}.get(value[0], "muted")
            cells.append(tag("td", tag("span", escape(value)), css=f"verdict {kind}"))
        else:
            cells.append(tag("td", escape(value), css="n" if place in table.numeric else ""))
    return tag("tr", *cells, css="missed" if any(value.startswith("✗") for value in row) else "")


def _anchor(name: str, origin: Origin) -> str:
    return name if origin == "measured" else f"{name}-simulated"


# --- the end ------------------------------------------------------------------------------------


def _method() -> str:
    paragraphs = [tag("p", tag("strong", escape(title)), " ", escape(text)) for title, text in METHOD]
    return tag("section", tag("h2", "Method", id="method"), *paragraphs)


def _machine(results: Results) -> str:
    lines = [*machine_lines(results), *results.versions.items()]
    entries = [tag("dt", escape(name)) + tag("dd", escape(value)) for name, value in lines]
    return tag("section", tag("h2", "Machine and versions", id="machine"), tag("dl", *entries))
