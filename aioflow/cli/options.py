"""Arguments and options that several commands share."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, TypeAlias

import typer


class ModeName(StrEnum):
    ONE_BY_ONE = "D-"
    PARALLEL = "D+S-"
    STREAMING = "D+S+"


class FormulasName(StrEnum):
    NEUTRAL = "neutral"
    KEEP = "keep"


class LogFormatName(StrEnum):
    TEXT = "text"
    JSON = "json"


class DrawingName(StrEnum):
    MERMAID = "mermaid"
    DOT = "dot"
    SVG = "svg"


PlanPath: TypeAlias = Annotated[str, typer.Argument(metavar="PLAN", help="A plan file.")]
PlanName: TypeAlias = Annotated[
    str | None,
    typer.Option("--plan", metavar="NAME", help="The plan of the file to take, if it has several."),
]
Inputs: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--input",
        "-i",
        metavar="NAME=VALUE",
        help="Rows for an input: NAME=@FILE (JSON lines, JSON, CSV, TSV or Parquet), NAME=JSON (an object "
        "or a list), or NAME=- (JSON lines from stdin, streamed). A plan with one input needs no NAME=; "
        "there ATTRIBUTE=VALUE, once or more, gives one tuple.",
    ),
]
Sets: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="PARAM=VALUE", help="A parameter of the plan: JSON, or else text."),
]
OutputName: TypeAlias = Annotated[
    str | None, typer.Option(metavar="NAME", help="The output to show, if the plan has several.")
]
AppendTo: TypeAlias = Annotated[
    str | None, typer.Option("-o", metavar="FILE", help="Append the rows to a file instead of stdout.")
]
JobName: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--job",
        metavar="NAME",
        help="Run it as a job: after Ctrl-C or a crash, the same command asks only for what is left.",
    ),
]
Overwrite: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "-O", metavar="FILE", help="Write the rows to a file, replacing it when the run has ended well."
    ),
]
FormatOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="table|jsonl|csv|…",
        help="Also tsv, json (one array), parquet, and what packages add. By default a table on a terminal, "
        "the format of a file's ending, else JSON lines.",
    ),
]
FormulasOption: TypeAlias = Annotated[
    FormulasName | None,
    typer.Option(
        "--formulas",
        metavar="neutral|keep",
        help="Texts that a spreadsheet would compute get an apostrophe in CSV, or are kept as they are.",
    ),
]
TraceFile: TypeAlias = Annotated[
    str | None, typer.Option(metavar="FILE", help="Write a trace for ui.perfetto.dev or chrome://tracing.")
]
Modules: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--ops", metavar="MODULE", help="A module of operators and functions of your own."),
]
Workers: TypeAlias = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="Most firings that wait on the outside world at once (15)."),
]
ModeOption: TypeAlias = Annotated[
    ModeName | None,
    typer.Option(
        "--mode",
        metavar="D-|D+S-|D+S+",
        help="One operator at a time, in parallel, or streaming (the default).",
    ),
]
Capacity: TypeAlias = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="Most rows in a queue between two statements (256).")
]
MemoryLimit: TypeAlias = Annotated[
    str | None,
    typer.Option("--memory", metavar="SIZE", help="Memory of operators before they use the disk: 64MB."),
]
Timeout: TypeAlias = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="End the run with an error after this long: 90s, 5m, 1h30m."),
]
Quiet: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--quiet", "-q", help="Tell only of warnings and errors: no progress, no notes, no account."
    ),
]
ReportFile: TypeAlias = Annotated[
    str | None,
    typer.Option("--report", metavar="FILE", help="Write the account of the run as JSON, also if it fails."),
]
Verbose: TypeAlias = Annotated[
    int,
    typer.Option(
        "--verbose", "-v", count=True, help="Show each request; -vv also what every statement does."
    ),
]
LogFile: TypeAlias = Annotated[
    str | None,
    typer.Option("--log-file", metavar="FILE", help="Add all that -vv shows to a file, with times."),
]
LogFormat: TypeAlias = Annotated[
    LogFormatName, typer.Option("--log-format", metavar="text|json", help="How logs are written.")
]
AllowEmpty: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--allow-empty",
        help="Take it for a success when a source brings nothing; otherwise the exit code is 3.",
    ),
]
Database: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--db",
        metavar="[NAME=]URL",
        help="A database: sqlite:FILE or postgresql://USER@HOST/NAME; without NAME the default one.",
    ),
]
Offline: TypeAlias = Annotated[
    bool, typer.Option("--offline", help="Use no network: answers come from the HTTP cache.")
]
Cache: TypeAlias = Annotated[
    bool | None,
    typer.Option("--cache/--no-cache", help="Keep answers in the HTTP cache, and take fresh ones from it."),
]
Record: TypeAlias = Annotated[
    str | None, typer.Option("--record", metavar="FILE", help="Write every answer to a file, for --replay.")
]
Replay: TypeAlias = Annotated[
    str | None,
    typer.Option("--replay", metavar="FILE", help="Use no network: answers come from a recording."),
]
DatabaseName: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--db", metavar="URL|NAME", help="The database: a URL like sqlite:houses.db, or a configured name."
    ),
]
PlanOfDatabase: TypeAlias = Annotated[
    str | None,
    typer.Argument(metavar="PLAN", help="A plan file, for the database and settings of its runs."),
]
PlanFile: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--plan-file", metavar="PLAN", help="A plan file, for the database and settings of its runs."
    ),
]
