"""The style sheet and the script of the debug page."""

from __future__ import annotations

CSS = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1d2024; --soft: #667080; --line: #d5d9df;
  --bar: #f5f6f8;
  --tint: 92%; --rich: 75%; --edge: 45%; --chip: 32%; --skip: #8a93a0; --stripe: #eef0f3; --bad: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --paper: #15171a; --ink: #e4e7eb; --soft: #98a1ad;
  --line: #33383f;
  --bar: #1d2024; --tint: 19%; --rich: 45%; --edge: 62%; --chip: 76%; --skip: #79828e; --stripe: #1f2327;
  --bad: #f2938c;
  } }
* { box-sizing: border-box; }
body { margin: 0 0 3rem; background: var(--paper); color: var(--ink);
  font: 14px/1.5 system-ui, sans-serif; }
header { position: sticky; top: 0; z-index: 1; padding: .6rem 1rem; background: var(--bar);
  border-bottom: 1px solid var(--line); max-height: 40vh; overflow: auto; }
h1 { margin: 0; font-size: 1rem; overflow-wrap: anywhere; } header p { margin: .15rem 0;
  color: var(--soft); }
.legend > span:first-child { display: inline-block; min-width: 6rem; }
.failure { color: var(--bad) !important; font-weight: 600; }
.keys { font-size: 12px; }
kbd { border: 1px solid var(--line); border-radius: 3px; padding: 0 .3em;
  font: 11px ui-monospace, monospace; }
a { color: inherit; }
button { font: inherit; font-size: 12px; color: var(--ink); background: none; border: 1px solid var(--line);
  border-radius: 4px; padding: 0 .4em; margin: .1rem 0; cursor: pointer; }
button[aria-pressed=false] { opacity: .45; text-decoration: line-through; }
button .v::before { content: none; }
main, pre { font: 13px/1.7 ui-monospace, "Cascadia Mono", "DejaVu Sans Mono", Menlo, Consolas, monospace; }
main { padding: .5rem 0; counter-reset: line; outline: none; }
.b { content-visibility: auto; contain-intrinsic-size: auto 2200px; }
.l { position: relative; padding: 0 1rem 0 4.6rem; min-height: 1.7em; white-space: pre-wrap;
  overflow-wrap: anywhere;
  unicode-bidi: isolate; direction: ltr; text-align: left; scroll-margin-top: 12rem; }
.l::before { content: attr(data-l); position: absolute; left: 0; width: 3.8rem; text-align: right;
  color: var(--soft);
  font-size: 11px; opacity: .8; user-select: none; }
.r { background: hsl(var(--h) var(--rich) var(--tint)); box-shadow: -2px 0 0 hsl(var(--h) 60% var(--edge));
  border-radius: 2px; padding: 1px 0; box-decoration-break: clone; -webkit-box-decoration-break: clone; }
.r.more { box-shadow: none; }
.v { border-bottom: 2px solid hsl(var(--h) 65% var(--edge)); font-weight: 600; }
.v > .r { font-weight: 400; }
.v[data-p]::before { content: attr(data-n); font: 600 10px/1 system-ui, sans-serif; vertical-align: .45em;
  color: hsl(var(--h) 70% var(--chip)); border: 1px solid; border-radius: 3px; padding: 0 3px;
  margin: 0 3px 0 1px; }
.unnamed .v::before { display: none; }
.k { color: var(--skip); font-weight: 400; font-style: italic;
  background: repeating-linear-gradient(135deg, var(--stripe) 0 4px, var(--paper) 4px 8px); }
.f { background: #b3261e; color: #fff; font: 700 11px system-ui, sans-serif; padding: 0 .4em;
  border-radius: 3px; }
.on { outline: 2px solid hsl(var(--h, 0) 75% var(--edge)); outline-offset: 0; }
details { margin: .5rem 1rem; } summary { cursor: pointer; }
details pre { white-space: pre-wrap; overflow-wrap: anywhere; padding: .5rem;
  border: 1px solid var(--line); }
footer { position: fixed; inset: auto 0 0; padding: .3rem 1rem; background: var(--bar); min-height: 2rem;
  border-top: 1px solid var(--line); font-size: 13px; overflow-wrap: anywhere; max-height: 25vh;
  overflow: auto; }
footer:empty { display: none; }
footer b { border-bottom: 2px solid hsl(var(--h, 0) 65% var(--edge)); }
@media print { :root { color-scheme: light; --paper: #fff; --ink: #000; --soft: #444; --line: #bbb;
  --bar: #fff;
    --tint: 92%; --rich: 75%; --edge: 45%; --chip: 32%; --skip: #777; --stripe: #eee; --bad: #b3261e; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  header { position: static; max-height: none; } footer, .keys { display: none;
  } .b { content-visibility: visible; }
  body { font-size: 11px; } main { font-size: 9px; }
  .v[data-p]::before { font-size: 7px; } }
"""

SCRIPT = """
const main = document.querySelector('main'), where = document.getElementById('where');
let lit = [], record = null, skipped = null;
const first = piece => document.querySelector(`main [data-i="${piece.dataset.i}"]`);
function show(piece) {
  lit.forEach(each => each.classList.remove('on'));
  lit = [];
  where.replaceChildren();
  if (!piece) return;
  lit = [...document.querySelectorAll(`main [data-i="${piece.dataset.i}"]`)];
  lit.forEach(each => each.classList.add('on'));
  const path = [];
  for (let at = piece; at && at !== main; at = at.parentElement) if (at.dataset.i) path.unshift(at);
  path.forEach((at, depth) => {
    const name = document.createElement('b');
    name.className = [...at.classList].find(each => /^c\\d/.test(each)) || '';
    const kind = at.classList;
    name.textContent = at.dataset.n + (kind.contains('r') ? '()' : kind.contains('v') ? '=' : '');
    where.append(depth ? ' \\u203a ' : '', name);
  });
  const begin = first(piece);
  where.append(' \\u2014 ' + begin.dataset.p + (begin.dataset.x ? '; value: ' + begin.dataset.x : ''));
}
main.addEventListener('mouseover', event => show(event.target.closest('[data-i]')));
document.querySelectorAll('button[data-c]').forEach(button => button.addEventListener('click', () => {
  const off = document.body.classList.toggle('off-' + button.dataset.c);
  button.setAttribute('aria-pressed', String(!off));
}));
function go(selector, from, step) {
  const all = [...document.querySelectorAll(selector)];
  if (!all.length) return from;
  let at = all.indexOf(from) + step;
  if (from === null && step < 0) at = all.length - 1;
  const next = all[(at + all.length) % all.length];
  next.scrollIntoView({block: 'center'});
  show(next);
  return next;
}
const records = document.querySelector('.rec') ? 'main .rec' : 'main .r:not(.more)';
document.addEventListener('keydown', event => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === 'n') record = go(records, record, 1);
  else if (event.key === 'p') record = go(records, record, -1);
  else if (event.key === 's') skipped = go('main .k:not(.more)', skipped, 1);
  else if (event.key === 'S') skipped = go('main .k:not(.more)', skipped, -1);
  else if (event.key === 'v') document.body.classList.toggle('unnamed');
  else if (event.key === 'Escape') show(null);
});
"""
