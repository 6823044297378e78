"""`aioflow bench`: its commands and their options. The harness does the work; only a checkout has it."""

from __future__ import annotations

import sys
from enum import StrEnum
from importlib.util import find_spec
from typing import Annotated, Any, TypeAlias

import typer
from typer.core import TyperGroup

from aioflow.cli.exit import guarded
from aioflow.errors import InputError, MissingExtraError

RESULTS_FILE = "bench-results.json"


class _RunsByDefault(TyperGroup):
    """Takes a first word that names no command for the name of an experiment to run."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not {"-h", "--help"} & set(args[:1]) and (not args or args[0] not in self.commands):
            args = ["run", *args]
        return super().parse_args(ctx, args)


class ReportFormat(StrEnum):
    HTML = "html"
    MARKDOWN = "markdown"


bench = typer.Typer(
    cls=_RunsByDefault,
    help="Measure speed and memory: `aioflow bench [NAME…] [--quick] [--profile] [-o FILE]` runs "
    "the experiments of these names, or all of them (`aioflow bench run --help` tells more).",
    rich_markup_mode=None,
)

_ResultsArgument: TypeAlias = Annotated[
    str, typer.Argument(metavar="[RESULTS.json]", help="What `aioflow bench` wrote.", show_default=False)
]


def _expect_harness() -> None:
    """Fail where there are no benchmarks, or where the packages are missing that they need."""
    if find_spec("aioflow.benchmarks") is None:
        raise InputError(
            "benchmarks run from a checkout of the sources, and this aioflow is an installed package: clone "
            "the repository, then `make bench` there, or `pip install -e '.[bench]'` and `aioflow bench`"
        )
    if find_spec("scipy") is None or find_spec("matplotlib") is None:
        raise MissingExtraError("aioflow bench", "bench")


@bench.command("run")
@guarded
def bench_run(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME", help="Experiments (`aioflow bench list` lists them); without, all."),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Tiny sizes: shows in two minutes that all works, no figures.")
    ] = False,
    profile: Annotated[
        bool, typer.Option("--profile", help="Name the hottest functions; keeps no results.")
    ] = False,
    output: Annotated[
        str | None,
        typer.Option("-o", metavar="FILE", help=f"Where results are kept ({RESULTS_FILE})."),
    ] = None,
) -> None:
    """Run experiments and keep what they find. Exit status 1: one failed, or a goal was missed."""
    _expect_harness()
    from aioflow.benchmarks.harness.command import profile_experiments, run_and_keep

    if profile:
        sys.exit(profile_experiments(names or (), output, quick=quick))
    sys.exit(run_and_keep(names or (), output or RESULTS_FILE, quick=quick))


@bench.command("list")
@guarded
def bench_list() -> None:
    """List the experiments and their questions."""
    _expect_harness()
    from aioflow.benchmarks.harness.command import list_experiments

    list_experiments()


@bench.command("report")
@guarded
def bench_report(
    results: _ResultsArgument = RESULTS_FILE,
    output: Annotated[
        str | None,
        typer.Option("-o", metavar="FILE", help="Write there (bench-report.html or .md); - is stdout."),
    ] = None,
    format: Annotated[
        ReportFormat | None, typer.Option(help="By the ending of -o, else html.", show_default=False)
    ] = None,
) -> None:
    """Make one page of results, with tables and plots; it fetches nothing."""
    _expect_harness()
    from aioflow.benchmarks.harness.command import write_report

    write_report(results, output, as_markdown=None if format is None else format is ReportFormat.MARKDOWN)


@bench.command("compare")
@guarded
def bench_compare(
    before: Annotated[str, typer.Argument(metavar="A.json", help="Results of the earlier run.")],
    after: Annotated[str, typer.Argument(metavar="B.json", help="Results of the later run.")],
    all: Annotated[bool, typer.Option("--all", help="Also figures without a change.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Compare quick with full runs, and different machines.")
    ] = False,
) -> None:
    """Say what became significantly faster or slower. Exit status 1: something became worse."""
    _expect_harness()
    from aioflow.benchmarks.harness.command import compare_files

    sys.exit(compare_files(before, after, everything=all, force=force))
