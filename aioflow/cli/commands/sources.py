"""`aioflow sources`: shows the latencies of web sources, and what follows from them for slow requests."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from aioflow.cli.exit import guarded, print_message
from aioflow.cli.output.colour import print_json
from aioflow.cli.output.destination import replace_file
from aioflow.cli.output.formats import Table
from aioflow.config.configuration import read_configuration
from aioflow.config.folders import shown_path
from aioflow.drawing.histogram import Mark, histogram, histogram_svg, histogram_text
from aioflow.errors import InputError, suggestion
from aioflow.relation import Record, Schema
from aioflow.values.quantities import count_text
from aioflow.web.latency_report import SourceReport, read_reports
from aioflow.web.latency_store import latency_path
from aioflow.web.settings import WebSettings, web_settings

_COLUMNS = Schema(("host", "wrapper", "requests", "median", "p99", "rule", "strategy", "extra"))

sources = typer.Typer(
    help="Look at how long web sources take, and when slow requests are sent again.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@sources.command("list")
@guarded
def sources_list(
    json: Annotated[bool, typer.Option("--json", help="One JSON object for each source.")] = False,
) -> None:
    """List the sources whose latencies are known."""
    settings = web_settings(read_configuration())
    reports = read_reports(settings, _file(settings), time.time())
    if json:
        for report in reports:
            print_json(_described(report))
    elif reports:
        table = Table(several_outputs=False, width=None)
        lines = [Record(_COLUMNS, _line(report)) for report in reports]
        sys.stdout.write((table.rows("sources", lines) + table.end()).decode(errors="replace"))
    else:
        _say_that_nothing_is_known(settings)


@sources.command("show")
@guarded
def sources_show(
    host: Annotated[str, typer.Argument(metavar="HOST", help="A host, with its port or without.")],
    wrapper: Annotated[
        str | None, typer.Option("--wrapper", metavar="NAME", help="Only requests of this wrapper.")
    ] = None,
    svg: Annotated[
        str | None, typer.Option("--svg", metavar="FILE", help="Draw the histogram as SVG as well.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object for each wrapper.")] = False,
) -> None:
    """Show how long a host takes to answer, as a histogram, and how its slow requests are treated."""
    settings = web_settings(read_configuration())
    reports = _chosen(read_reports(settings, _file(settings), time.time()), settings, host, wrapper)
    if svg is not None:
        _draw(reports, svg)
    if json:
        for report in reports:
            print_json(_described(report))
        return
    print("\n\n".join(_text(report) for report in reports))


def _file(settings: WebSettings) -> Path:
    path = latency_path(settings.http)
    if path is None:
        raise InputError("latencies are not kept, since http.latencies is false")
    return path


def _say_that_nothing_is_known(settings: WebSettings) -> None:
    print_message(
        "note",
        f"no latencies are known in {shown_path(_file(settings))}; they are learned from requests under a "
        "rule such as `RESTART: auto`, or http.restart",
    )


def _chosen(
    reports: Sequence[SourceReport], settings: WebSettings, host: str, wrapper: str | None
) -> list[SourceReport]:
    found = [each for each in reports if host.lower() in (each.host, each.name)]
    if not found:
        names = list(dict.fromkeys(each.name for each in reports))
        where = shown_path(_file(settings))
        raise InputError(f"no latencies of {host!r} are known in {where}{suggestion(host, names)}")
    if wrapper is None:
        return found
    of_wrapper = [each for each in found if each.kind == wrapper]
    if not of_wrapper:
        kinds = [each.kind for each in found]
        raise InputError(
            f"no latencies of wrapper {wrapper!r} are known for {host}{suggestion(wrapper, kinds)}"
        )
    return of_wrapper


# --- one source -------------------------------------------------------------------------------


def _text(report: SourceReport) -> str:
    lines = [report.title]
    lines += [f"  {name:<12}{text}" for name, text in _facts(report)]
    if report.answered:
        lines += ["", histogram_text(histogram(report.answered, _marks(report)))]
    return "\n".join(lines)


def _facts(report: SourceReport) -> list[tuple[str, str]]:
    facts = [("seen", _seen(report)), ("rule", report.rule), ("strategy", report.strategy)]
    if report.decision.why:
        facts.append(("because", report.decision.why))
    expected, counts = report.expected, report.counts
    if expected.seconds is not None and expected.waiting is not None:
        facts.append(
            (
                "expected",
                f"{expected.seconds:.3g} s a request, {expected.waiting:.3g} s without restarts "
                f"({_change(expected.seconds, expected.waiting)})",
            )
        )
    gain = report.observed_gain
    if gain is not None:
        facts.append(("observed", f"{abs(gain):.3g} s {'saved' if gain >= 0 else 'lost'} for each request"))
    if counts.requests:
        share = f"{100 * counts.extra / counts.requests:.1f} %"
        facts.append(("extra", f"{counts.extra:,} of {count_text(counts.requests, 'request')} ({share})"))
    for reason, count in sorted(counts.held_back.items(), key=lambda item: -item[1]):
        facts.append(("held back", f"{count:,} x: {reason}"))
    return facts


def _seen(report: SourceReport) -> str:
    latest = f"{datetime.fromtimestamp(report.latest).astimezone():%Y-%m-%d %H:%M:%S}"
    given_up = f", {report.given_up:,} of them given up unanswered" if report.given_up else ""
    seen = count_text(len(report.answered) + report.given_up, "first attempt")
    return f"{seen}{given_up}; the latest {latest}"


def _change(one: float, other: float) -> str:
    return f"{100 * (one / other - 1):+.0f} %" if other else "as much"


def _marks(report: SourceReport) -> list[Mark]:
    after = report.decision.steps[0][1]
    return [] if after is None else [Mark(after, report.strategy_name)]


def _draw(reports: Sequence[SourceReport], target: str) -> None:
    drawn = [each for each in reports if each.answered]
    if len(drawn) != 1:
        names = ", ".join(each.kind for each in drawn)
        raise InputError(
            f"--svg draws one histogram, and there are {len(drawn)}; choose one by --wrapper: {names}"
            if drawn
            else "--svg has nothing to draw: no request has been answered yet"
        )
    report = drawn[0]
    replace_file(target, histogram_svg(histogram(report.answered, _marks(report)), report.title))


# --- lists ------------------------------------------------------------------------------------


def _line(report: SourceReport) -> tuple[object, ...]:
    distribution = report.distribution
    times = ["-", "-"]
    if distribution is not None:
        times = [f"{distribution.quantile(share * distribution.answered):.3g} s" for share in (0.5, 0.99)]
    return (
        *(report.name, report.kind or "-", report.counts.requests, *times),
        *(report.rule, report.strategy, report.counts.extra),
    )


def _described(report: SourceReport) -> dict[str, Any]:
    expected, counts = report.expected, report.counts
    quantiles = {}
    if report.distribution is not None:
        answered = report.distribution.answered
        quantiles = {
            f"p{percent:g}": report.distribution.quantile(percent / 100 * answered)
            for percent in (50, 90, 95, 99)
        }
    return {
        "host": report.host,
        "wrapper": report.kind or None,
        "rule": report.rule,
        "steps": [{"host": report.hosts[index], "after": after} for index, after in report.decision.steps],
        "hedge": report.decision.keeps_first,
        "why": report.decision.why,
        "seen": len(report.answered) + report.given_up,
        "given-up": report.given_up,
        "seconds": quantiles,
        "expected-seconds": expected.seconds,
        "waiting-seconds": expected.waiting,
        "expected-extra": expected.extra,
        "observed-gain-seconds": report.observed_gain,
        "requests": counts.requests,
        "extra": counts.extra,
        "held-back": counts.held_back,
    }
