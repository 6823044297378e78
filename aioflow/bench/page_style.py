"""The style of the report's page."""

from __future__ import annotations

from aioflow.bench.svg import STYLE, colour_scheme, series_style

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
    return f"{colour_scheme()}{_PAGE}{STYLE}{series_style()}"
