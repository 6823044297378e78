"""The work of `aioflow bench`: run experiments and list, report, compare and profile them."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from types import FrameType

from rich.console import Console
from rich.table import Table as PrintedTable
from rich.text import Text

from aioflow.benchmarks.harness.comparison import FigureChange, compare, incomparable
from aioflow.benchmarks.harness.experiment import Bench
from aioflow.benchmarks.harness.profiles import Profile, profile_experiment
from aioflow.benchmarks.harness.progress import Progress
from aioflow.benchmarks.harness.results import Results, load, save
from aioflow.benchmarks.harness.runner import choose, load_experiments, run_experiments
from aioflow.benchmarks.harness.tables import ReportTable, all_claims_table
from aioflow.benchmarks.harness.wording import (
    bounds,
    disturbed_text,
    goals_summary,
    has_missed_goals,
    is_disturbed,
    number,
    p_text,
    quantity,
)
from aioflow.cli.exit import FAILED, OK, print_message
from aioflow.errors import InputError
from aioflow.values.quantities import count_text

_HOTTEST = 15
_PLAIN_COLUMNS = 150  # when the output is no terminal, whose width would be unknown


# --- running ------------------------------------------------------------------------------------


def run_and_keep(names: Sequence[str], output: str, *, quick: bool) -> int:
    """Run experiments, write the results after each of them, and return the exit status."""
    target = Path(output)
    _expect_writable(target)
    chosen = [each.name for each in choose(names)]
    finished: list[Results] = []
    with _ended_by_signals(), Progress(chosen) as progress:

        def keep(results: Results) -> None:
            finished.append(results)
            save(results, target)
            progress.ended(results.findings[-1])

        try:
            results = run_experiments(chosen, quick, progress.told, kept=keep)
        except (KeyboardInterrupt, SystemExit):
            _tell_finished(finished[-1] if finished else None, len(chosen), target)
            raise
    _show_results(results)
    print_message(
        "note", f"the results are in {target}; `aioflow bench report {target}` makes a page of them"
    )
    return _status(results)


def _expect_writable(target: Path) -> None:
    """Fail before anything is measured, not after twenty minutes."""
    if target.is_dir():
        raise InputError(f"{target} is a folder; -o takes a file")
    if not target.absolute().parent.is_dir():
        raise InputError(f"there is no folder {target.parent} for {target.name}")


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Have SIGTERM and SIGHUP end the command as Ctrl-C does: processes that it started end with it."""

    def end(number: int, frame: FrameType | None) -> None:
        sys.exit(128 + number)

    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {number: signal.signal(number, end) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _tell_finished(results: Results | None, count: int, target: Path) -> None:
    if results is None:
        print_message("note", f"nothing was finished; {target} was not written")
        return
    done = count_text(len(results.findings), "experiment")
    print_message("note", f"{done} of {count} finished: what they found is in {target}")


def _status(results: Results) -> int:
    failed = [finding for finding in results.findings if finding.failure]
    for finding in failed:
        print_message("error", f"{finding.name} failed: {finding.failure}")
    disturbed = [finding.name for finding in results.findings if is_disturbed(finding)]
    if disturbed and not results.quick:
        print_message("warning", f"other programs were busy meanwhile, measure again: {', '.join(disturbed)}")
    missed = has_missed_goals(results) and not results.quick
    return FAILED if failed or missed else OK


def _show_results(results: Results) -> None:
    title = "a quick run: these figures mean little" if results.quick else goals_summary(results)
    _print_table(all_claims_table(results), title, sections=True)


def list_experiments() -> None:
    """Print names and questions."""
    rows = [(each.name, each.question) for each in load_experiments().values()]
    _print_table(ReportTable(("experiment", "question"), tuple(rows)))


# --- reading results ----------------------------------------------------------------------------


def write_report(results_file: str, output: str | None, *, as_markdown: bool | None) -> None:
    """Make a report of a file of results."""
    results = load(Path(results_file))
    if as_markdown is None:
        as_markdown = output is not None and output.endswith((".md", ".markdown"))
    target = output or ("bench-report.md" if as_markdown else "bench-report.html")
    (_write_markdown if as_markdown else _write_page)(results, target)
    if target != "-":
        print_message("note", f"the report is in {target}")


def _write_page(results: Results, target: str) -> None:
    # Matplotlib is for reports only: runs would be measured with all of its objects in their process.
    from aioflow.benchmarks.harness.page import html_page

    _write(target, html_page(results))


def _write_markdown(results: Results, target: str) -> None:
    from aioflow.benchmarks.harness.markdown import markdown_report

    # Drawings are files beside the text, so a text on stdout has none.
    folder = None if target == "-" else f"{Path(target).stem}-plots"
    report = markdown_report(results, folder)
    _write(target, report.text)
    for name, drawing in report.drawings.items():
        path = Path(target).parent / name
        try:
            path.parent.mkdir(exist_ok=True)
        except OSError as error:
            raise InputError(f"cannot make the folder {path.parent}: {error.strerror}") from error
        _write(str(path), drawing)


def _write(target: str, text: str) -> None:
    if target == "-":
        sys.stdout.write(text)
        return
    try:
        Path(target).write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot write {target}: {(error.strerror or str(error)).lower()}") from error


def compare_files(before: str, after: str, *, everything: bool, force: bool) -> int:
    """Print the changes between two runs and return the exit status."""
    earlier, later = load(Path(before)), load(Path(after))
    found = compare(earlier, later, force=force)
    for reason in incomparable(earlier, later):
        print_message("warning", reason)
    for file, results in ((before, earlier), (after, later)):
        if disturbed := disturbed_text(results):
            print_message("warning", f"{file}: {disturbed}")
    works = {finding.name: finding.work for finding in earlier.findings}
    others = [each.name for each in later.findings if works.get(each.name, each.work) != each.work]
    if others:
        print_message("warning", f"not the same work before and after: {', '.join(others)}")
    changed = [change for change in found.changes if change.is_significant]
    shown = [each for each in found.changes if everything or each.is_significant]
    compared = count_text(len(found.changes), "figure")
    title = f"{compared} compared, {len(changed)} changed significantly"
    headings = ("experiment", "figure", "before", "after", "ratio", "95 % interval", "p, corrected", "")
    if shown:
        _print_table(ReportTable(headings, tuple(map(_change_row, shown)), frozenset({2, 3, 4, 5, 6})), title)
    else:
        print(title)
    for which, names in (("before", found.only_before), ("after", found.only_after)):
        if names:
            print_message("note", f"only {which}: {', '.join(names)}")
    return FAILED if found.is_worse else OK


def _change_row(change: FigureChange) -> tuple[str, ...]:

    return (
        change.experiment,
        change.name,
        quantity(median(change.before.values), change.unit),
        quantity(median(change.after.values), change.unit),
        f"{number(change.ratio.value)}×" if change.ratio else "",
        bounds(change.ratio, "x") if change.ratio else "",
        "" if change.p is None else p_text(change.p),
        ("✗ " if change.is_worse else "✓ " if change.is_significant else "") + change.word,
    )


# --- profiles -----------------------------------------------------------------------------------


def profile_experiments(names: Sequence[str], output: str | None, *, quick: bool) -> int:
    """Run experiments under a profiler, print the hottest functions, and return the exit status."""
    if output is not None:
        raise InputError("--profile keeps no results, as the profiler slows them down: leave out -o")
    status, chosen = OK, choose(names)
    with _ended_by_signals(), Progress([each.name for each in chosen]) as progress:
        for each in chosen:
            finding, profiles = profile_experiment(each, Bench(quick, partial(progress.told, each.name)))
            progress.ended(finding)
            for profile in profiles:
                _show_profile(each.name, profile)
            if not profiles and not finding.failure:
                more = "; a run that is not quick does more" if quick else ""
                print_message("note", f"{each.name} computed too little to tell what is hot{more}")
            if finding.failure:
                print_message("error", f"{each.name} failed: {finding.failure}")
                status = FAILED
    return status


def _show_profile(experiment: str, profile: Profile) -> None:

    each = profile.each(profile.processor_seconds)
    cost = f" for {count_text(profile.moved, 'tuple')}: {number(each)} µs each" if each is not None else ""
    title = f"{experiment}, {profile.name}: {number(profile.processor_seconds)} s of processor time{cost}"
    title += f" ({count_text(profile.samples, 'sample')}; imports {number(profile.importing_seconds)} s more)"
    rows = []
    for hot in profile.hottest(_HOTTEST):
        own, total = profile.each(hot.own_seconds), profile.each(hot.total_seconds)
        shares = [f"{part / profile.processor_seconds:.1%}" for part in (hot.own_seconds, hot.total_seconds)]
        costs = ["" if part is None else number(part) for part in (own, total)]
        rows.append((hot.function, hot.place, shares[0], costs[0], shares[1], costs[1]))
    headings = ("function", "where", "itself", "µs a tuple", "with all it calls", "µs a tuple")
    _print_table(ReportTable(headings, tuple(rows), frozenset({2, 3, 4, 5})).without_empty_columns(), title)


# --- tables -------------------------------------------------------------------------------------


def _print_table(table: ReportTable, title: str = "", *, sections: bool = False) -> None:
    """Print a table; with sections a line separates rows whose first cells differ."""
    printed = PrintedTable(title=title or None, title_justify="left", title_style="bold")
    for place, heading in enumerate(table.headings):
        numeric = place in table.numeric
        printed.add_column(heading, justify="right" if numeric else "left", no_wrap=numeric, overflow="fold")
    before = ""
    for row in table.rows:
        if sections and before and row[0] != before:
            printed.add_section()
        first = "" if sections and row[0] == before else row[0]
        printed.add_row(*(Text(cell, style=_style(cell)) for cell in (first, *row[1:])))
        before = row[0]
    Console(width=None if sys.stdout.isatty() else _PLAIN_COLUMNS, highlight=False).print(printed)


def _style(cell: str) -> str:
    return {"✓": "green", "✗": "red"}.get(cell[:1], "")
