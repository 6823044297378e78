"""crawl_hidden, which extracts every tuple behind a search form."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import cast

from aioflow import Context, Relation, Schema, Stream, To, operator
from aioflow.authoring.operator import Settings
from aioflow.errors import AioflowError
from aioflow.hidden import AskedForm, CrawlReport, FormCrawl, HiddenName
from aioflow.operators.function_calls import DependentJoin
from aioflow.relation import Row, Type, Value
from aioflow.wholeness import partial

_REPORT = Schema(
    (
        *("form", "complete", "statement", "tuples", "queries", "bound"),
        *("added", "changed", "removed", "covered", "unresolved", "changes"),
    ),
    (
        *(Type.CHAR, Type.BOOLEAN, Type.CHAR, Type.NUMBER, Type.NUMBER, Type.NUMBER),
        *(Type.NUMBER, Type.NUMBER, Type.NUMBER, Type.RELATION, Type.RELATION, Type.RELATION),
    ),
)


def _schemas(inputs: Sequence[Schema | None], settings: Settings) -> tuple[Schema | None, Schema | None]:
    found: Schema = settings["name"].schema
    if not inputs:
        return found, _REPORT
    if inputs[0] is None:
        return None, None
    return inputs[0].add(found), inputs[0].add(_REPORT)


@operator(
    outputs=("found", "report"),
    schema=_schemas,
    firing="tuple",
    effects=lambda settings: bool(settings["name"].wrapper.has_effects),
    outside=True,
)
async def crawl_hidden(
    rel: Stream | None = None, *, name: HiddenName, context: Context
) -> AsyncGenerator[To, None]:
    """Extract every tuple behind a search form that shows a limited number of results.

    The form is a HIDDEN item. It names the wrapper that asks a query, the attributes that can be asked for,
    and how an answer shows that there are more. Tuples leave as soon as they are certain. Answers are stored:
    a run that was killed goes on where it was, and a later crawl asks only what may have changed. If the
    result is incomplete, the relation is partial, and the report says why.

    With an input relation, there is a crawl for each tuple. It fills the inputs of the wrapper, and restricts
    the crawl where queries fill them too: to a value of a menu, or a part of a range. If an input is null
    that is not optional, there is no crawl, and the tuple is counted.

    Arguments:
        rel: the tuples, such as the regions to be crawled.
        name: a HIDDEN item of the plan's files.

    Examples:
        crawl_hidden ("houses" : found)
        crawl_hidden ("houses", cities : found, report)
    """
    asked = cast(AskedForm, name)
    schema = Schema(()) if rel is None else rel.schema
    assert schema is not None
    joins = [DependentJoin(schema, each, False, context.memory) for each in (asked.schema, _REPORT)]
    with joins[0] as found, joins[1] as reports:
        async with aclosing(_rows(rel)) as rows:
            async for row in rows:
                try:
                    crawl = FormCrawl(asked, schema, row, context)
                except AioflowError as error:
                    context.fail(row, error, 1)
                    continue
                if crawl.lacks_input:
                    context.count("null inputs")
                    context.fired()
                    continue
                try:
                    async with aclosing(crawl.batches()) as batches:
                        async for batch in batches:
                            yield To("found", found.rows(row, batch))
                except Exception as error:
                    context.fail(row, error, getattr(error, "attempts", 1))
                    continue
                if crawl.report is not None:
                    _tell(crawl.report, asked, context)
                    yield To("report", reports.rows(row, [_report_row(crawl.report, asked)]))
                context.fired()


async def _rows(rel: Stream | None) -> AsyncGenerator[Row, None]:
    if rel is None:
        yield ()
        return
    async for batch in rel.batches():
        for row in batch:
            yield row


def _tell(report: CrawlReport, asked: AskedForm, context: Context) -> None:
    for reason in report.explanation:
        context.note(f"{asked.form.name}: {reason}")
    for warning in report.warnings:
        context.warn(f"{asked.form.name}: {warning}")
    if not report.complete:
        text = f"{asked.form.name} is incomplete: {report.reason}"
        context.warn(text)
        context.mark(partial(f"{context.where}: {text}"))


def _report_row(report: CrawlReport, asked: AskedForm) -> Row:
    added, changed, removed = _differences(report, asked)
    unresolved = [
        {"query": report.shown(each.query), "kind": each.kind, "reason": each.reason, "known": each.known}
        for each in report.unresolved
    ]
    changes = [{"query": report.shown(each.query), "reason": each.reason} for each in report.changes]
    figures = (report.tuples, report.queries, report.bound(), added, changed, removed)
    covered = [{"query": report.shown(each)} for each in report.covered]
    relations = (
        _relation(covered, "query"),
        _relation(unresolved, "query kind reason known"),
        _relation(changes, "query reason"),
    )
    return (asked.form.name, report.complete, report.statement(), *figures, *relations)


def _relation(mappings: list[dict[str, Value]], names: str) -> Relation:
    columns = tuple(names.split())
    return Relation(Schema(columns), [tuple(each[name] for name in columns) for each in mappings])


def _differences(report: CrawlReport, asked: AskedForm) -> tuple[int | None, int | None, int | None]:
    """Return the numbers of tuples added, changed by their key, and removed since the last crawl."""
    if report.added is None or report.removed is None:
        return None, None, None
    added, removed = report.added.total(), report.removed.total()
    if not asked.form.key:
        return added, None, removed
    keys = [asked.keys_of(each) for each in (report.added, report.removed)]
    changed = (keys[0] & keys[1]).total()
    return added - changed, changed, removed - changed
