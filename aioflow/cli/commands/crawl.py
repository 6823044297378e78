"""`aioflow crawl`: the plan `crawl.plan` of the library for some URLs, run as `aioflow run` runs a plan."""

from __future__ import annotations

import json
from typing import Annotated, Any
from urllib.parse import urlsplit

import typer

from aioflow.cli.commands.run import RunOptions, run_plan
from aioflow.cli.config import web_options
from aioflow.cli.exit import NOTHING_FOUND, guarded, print_message
from aioflow.cli.options import (
    AppendTo,
    Cache,
    FormatOption,
    FormulasOption,
    JobName,
    LogFile,
    LogFormat,
    LogFormatName,
    Offline,
    Overwrite,
    Quiet,
    Record,
    Replay,
    ReportFile,
    Timeout,
    Verbose,
    Workers,
)
from aioflow.cli.output.logs import LogOptions
from aioflow.errors import InputError
from aioflow.language.loader import LIBRARY

_PLAN = LIBRARY / "crawl.plan"


@guarded
def crawl(
    urls: Annotated[list[str], typer.Argument(metavar="URL...", help="The pages to begin with.")],
    depth: Annotated[
        int, typer.Option(min=0, metavar="N", help="The number of links that a page may be away.")
    ] = 3,
    max_pages: Annotated[
        int, typer.Option("--max-pages", min=1, metavar="N", help="The number of pages to ask for at most.")
    ] = 1000,
    domains: Annotated[
        str | None,
        typer.Option(
            metavar="LIST",
            help="The hosts to stay on, with those below them: a.example, b.example. By default those of the "
            "URLs.",
        ),
    ] = None,
    follow: Annotated[
        str | None,
        typer.Option(
            metavar="PATTERN",
            help="Follow only links like this: '/docs/*', or a regular expression, '/page=[0-9]+/'.",
        ),
    ] = None,
    skip: Annotated[
        str | None, typer.Option(metavar="PATTERN", help="Leave out links like this: '*.pdf'.")
    ] = None,
    fields: Annotated[
        str | None,
        typer.Option(metavar="LIST", help="The attributes of pages to show: url, title, text."),
    ] = None,
    show: Annotated[
        str, typer.Option(metavar="pages|links|refused", help="What to show: pages, or links, or failures.")
    ] = "pages",
    append: AppendTo = None,
    overwrite: Overwrite = None,
    format: FormatOption = None,
    workers: Workers = None,
    timeout: Timeout = None,
    offline: Offline = False,
    cache: Cache = None,
    record: Record = None,
    replay: Replay = None,
    formulas: FormulasOption = None,
    job: JobName = None,
    quiet: Quiet = False,
    report: ReportFile = None,
    verbose: Verbose = 0,
    log_file: LogFile = None,
    log_format: LogFormat = LogFormatName.TEXT,
) -> None:
    """Fetch the pages of a site by following links, and show them as they come.

    The crawl is breadth first, polite, and stays on the hosts of the URLs. The plan is crawl.plan of the
    library: `aioflow run` takes a copy of it for anything else.
    """
    starts = [_checked(url) for url in urls]
    hosts = dict.fromkeys(urlsplit(url).hostname or "" for url in starts)
    parameters = {"domains": domains or ", ".join(hosts), "depth": depth, "max_pages": max_pages}
    parameters |= _given(follow=follow, skip=skip, fields=fields)
    options = RunOptions(
        str(_PLAN),
        inputs=[f"start={json.dumps([{'url': url} for url in dict.fromkeys(starts)])}"],
        parameters=[f"{name}={json.dumps(value)}" for name, value in parameters.items()],
        output=show,
        append=append,
        overwrite=overwrite,
        format=format,
        timeout=timeout,
        quiet=quiet,
        report=report,
        is_of_library=True,
        log=LogOptions(verbose, log_file, log_format, quiet),
        job=job,
    )
    given: dict[str, Any] = {"workers": workers, **web_options(offline, cache, record, replay)}
    given |= {} if formulas is None else {"files": {"formulas": formulas}}
    try:
        run_plan(options, given)
    except SystemExit as ended:
        if ended.code == NOTHING_FOUND and show == "pages":
            print_message("note", "`--show refused` lists the addresses of which no page came, and why")
        raise


def _given(**options: str | None) -> dict[str, str]:
    return {name: value for name, value in options.items() if value is not None}


def _checked(url: str) -> str:
    """Return a URL; an InputError says what is wrong with it."""
    from aioflow.web.urls import has_host

    if has_host(url):
        return url
    hint = f"; did you mean https://{url}?" if "://" not in url and has_host(f"https://{url}") else ""
    raise InputError(f"{url!r} is no http(s) URL{hint}")
