"""The report as one HTML page that stands for itself: it fetches nothing and needs no script."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from itertools import zip_longest

from aioflow.bench.drawings import Drawing, drawings
from aioflow.bench.method import METHOD, QUICK, SIMULATED
from aioflow.bench.page_style import page_style
from aioflow.bench.results import Finding, Origin, Results
from aioflow.bench.tables import Table, claims_table, goals, goals_table, pairs_table, parts, samples_table
from aioflow.bench.wording import condition_lines, disturbed_text, goals_summary, machine_lines

# Longer tables are folded away.
_SHOWN_ROWS = 16
_CODE = re.compile("`([^`]+)`")


def html_page(results: Results) -> str:
    """The whole report."""
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
    """`<kind …>children</kind>`; `css` is its class."""
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
    """What stands between backticks is code."""
    return _CODE.sub(r"<code>\1</code>", escape(text))


def _badge(origin: Origin) -> str:
    return tag("span", "simulated", css="badge") if origin == "simulated" else ""


def _folded(title: str, table: Table) -> str:
    if len(table.rows) <= _SHOWN_ROWS:
        return tag("h4", escape(title)) + _table(table)
    return tag("details", tag("summary", f"{escape(title)} ({len(table.rows)})"), _table(table))


# --- tables -------------------------------------------------------------------------------------


def _table(table: Table, anchors: Sequence[str] = ()) -> str:
    """A table; with anchors the first cell of each row, or the name of its group, leads there."""
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
    """The name of the rows that follow."""
    shown = tag("a", escape(name), href=f"#{anchor}") if anchor else escape(name)
    return tag("tr", tag("th", shown, colspan=str(columns), scope="rowgroup"), css="group") if name else ""


def _row(table: Table, row: Sequence[str], anchor: str, first: int) -> str:
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
