"""`aioflow wrapper test`: the tuples that a wrapper reads in one page, and where each value came from."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from decimal import Decimal
from html import escape
from itertools import groupby
from typing import Any

from aioflow.cli.ending import FAILED, OK, tell
from aioflow.cli.fetching import shown_url, status_text
from aioflow.cli.pages import Browser, Extracted, Page, explain, extract
from aioflow.cli.paint import Paint, print_json, shortened
from aioflow.cli.program import load_modules
from aioflow.cli.table import Columns
from aioflow.cli.wrapper_files import file_of, find, in_python, load_wrappers
from aioflow.cli.wrapper_pages import Asked, next_page, pages_of
from aioflow.configuration import Configuration
from aioflow.dataclass import dataclass
from aioflow.display import visible
from aioflow.errors import InputError
from aioflow.operators.encoding import cell, json_text
from aioflow.quantities import count_text, duration_text
from aioflow.relation import Type, Value, is_empty
from aioflow.secrets import mask
from aioflow.web.configuration import web_settings
from aioflow.web.errors import WebError
from aioflow.web.urls import without_userinfo
from aioflow.wrappers.answers import accepted
from aioflow.wrappers.definition import Wrapper
from aioflow.wrappers.reading import Found

# So many rows are shown, and for so many it is told where their values came from, unless more are asked for.
SHOWN_ROWS = 10
EXPLAINED_ROWS = 3
SHOWN_PLACES = 3


@dataclass(frozen=True)
class WrapperTest:
    """What the command line says about one test."""

    target: Sequence[str]
    plan_file: str | None = None
    url: str | None = None
    file: str | None = None
    inputs: Sequence[str] = ()
    rows: int = EXPLAINED_ROWS
    as_json: bool = False

    def plan_and_name(self) -> tuple[str | None, str]:
        """`NAME`, or `PLAN NAME`."""
        if len(self.target) == 2 and self.plan_file is None:
            return self.target[0], self.target[1]
        if len(self.target) != 1:
            raise InputError("expected NAME or PLAN NAME")
        return self.plan_file, self.target[0]


def run_test(test: WrapperTest, settings_for: Callable[[str | None], Configuration]) -> int:
    """Report on one wrapper and page after page; returns the exit code."""
    path, name = test.plan_and_name()
    if path is None:
        load_modules(settings_for(None).ops)
        path = file_of(name)
    configuration = settings_for(path)
    load_modules(configuration.ops)
    wrapper = find(name, load_wrappers(path))
    if not isinstance(wrapper, Wrapper):
        raise in_python(wrapper)
    browser = Browser(web_settings(configuration))
    failed = False
    try:
        for number, asked in enumerate(pages_of(wrapper, browser, test.inputs, test.url, test.file)):
            if number and not test.as_json:
                print()
            failed = not _show_page(wrapper, asked, test) or failed
    finally:
        browser.close()
    return FAILED if failed else OK


# --- the report ---------------------------------------------------------------------------------


def _show_page(wrapper: Wrapper, asked: Asked, test: WrapperTest) -> bool:
    """Report on one page; whether it could be read."""
    paint = Paint()
    if asked.request is not None and not test.as_json:
        print(f"{paint('bold', asked.request.method)} {shown_url(asked.request.url)}")
    if asked.page is None:
        _tell_failure(asked, asked.error, test)
        return False
    if not test.as_json:
        print(_answer_text(asked.page, paint))
    try:
        found, places = _read(wrapper, asked.page)
    except WebError as error:
        _tell_failure(asked, error, test)
        return False
    if test.as_json:
        _print_json(wrapper, asked, found, places)
        return True
    print(mask("\n".join(_report(wrapper, asked, found, places, test.rows, paint))))
    return True


def _report(
    wrapper: Wrapper, asked: Asked, found: Extracted, places: Sequence[Found], rows: int, paint: Paint
) -> Iterator[str]:
    assert asked.page is not None
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    yield ""
    yield from _table(wrapper, asked.page, found, max(rows, SHOWN_ROWS), width)
    if rows:
        yield from _places(places, rows, paint, width or 160)
    yield from _fields(wrapper, found, places, paint)
    if (following := next_page(wrapper, asked, found)) is not None:
        yield ""
        yield f"next page: {visible(following)}"


def _read(wrapper: Wrapper, page: Page) -> tuple[Extracted, list[Found]]:
    """What a plan would read; as there, an error status is an error unless it means no result."""
    if page.head.status in wrapper.request.empty:
        return Extracted([], is_proven_empty=True), []
    if page.response is not None:
        accepted(page.response)
    return extract(wrapper.extraction, page), explain(wrapper.extraction, page)


def _tell_failure(asked: Asked, error: WebError | None, test: WrapperTest) -> None:
    if test.as_json:
        described = {"error": str(error), "error-kind": type(error).__name__}
        url = {"url": without_userinfo(asked.request.url)} if asked.request else {}
        print_json({**url, **described})
    else:
        tell("error", visible(str(error)))


def _answer_text(page: Page, paint: Paint) -> str:
    size = count_text(len(page.body), "byte")
    if page.response is None:
        return paint("dim", f"{size} from {page.path}")
    status = page.head.status
    text = f"{size} in {duration_text(page.response.timing.total_seconds)}"
    if page.head.url != (page.response.hops or (page.head.url,))[0]:
        text += f" from {shown_url(page.head.url)}"
    return f"{paint('green' if status < 400 else 'red', status_text(status))} {paint('dim', text)}"


def _table(wrapper: Wrapper, page: Page, found: Extracted, most: int, width: int | None) -> Iterator[str]:
    if page.head.status in wrapper.request.empty:
        yield f"no rows: EMPTY says that {page.head.status} means no result"
        return
    if found.is_proven_empty:
        yield f"no items: EMPTY {_proofs(wrapper)} is in the page, so that there are none"
    if not found.rows:
        yield from () if found.is_proven_empty else (_no_rows(wrapper),)
        return
    shown = found.rows[:most]
    columns = Columns(wrapper.schema.names, shown, width)
    yield from columns.header().splitlines()
    yield from (columns.line(row).rstrip("\n") for row in shown)
    is_cut = len(shown) < len(found.rows)
    yield count_text(len(found.rows), "row") + (f", the first {most} shown" if is_cut else "")


def _no_rows(wrapper: Wrapper) -> str:
    each = wrapper.extraction.each
    text = f"no rows: nothing in the page matches EACH {each!r}" if each else "no rows"
    return f"{text}, nor EMPTY {_proofs(wrapper)}" if wrapper.extraction.empty else text


def _proofs(wrapper: Wrapper) -> str:
    return " or ".join(map(repr, wrapper.extraction.empty))


def _places(places: Sequence[Found], most: int, paint: Paint, width: int) -> Iterator[str]:
    rows = groupby(places, lambda found: found.row)
    shown = 0
    for number, of_row in rows:
        if number >= most:
            break
        shown += 1
        yield ""
        yield paint("bold", f"row {number + 1}")
        # A field that takes all of its matches has as many places.
        for field, of_field in groupby(of_row, lambda found: (found.field, found.value)):
            yield from _places_of_field(field[0], list(of_field), paint, width)
    left = len({found.row for found in places}) - shown
    if left:
        yield ""
        yield paint("dim", f"… and {count_text(left, 'more row')}: --rows {shown + left} shows all")


def _places_of_field(name: str, places: Sequence[Found], paint: Paint, width: int) -> Iterator[str]:
    value = places[0].value
    text = "null" if value is None else shortened(visible(cell(value)), width // 2)
    yield f"  {paint('cyan', name)} = {paint('red' if value is None else 'green', text)}"
    for found in places[:SHOWN_PLACES]:
        if found.path:
            # The end of a path says more than its beginning.
            yield f"    {paint('dim', shortened(visible(found.path), width - 4, keep_end=True))}"
        if found.excerpt:
            yield f"    {highlighted(found, paint, width - 4)}"
    if len(places) > SHOWN_PLACES:
        yield f"    {paint('dim', f'… {len(places)} in all')}"


def highlighted(found: Found, paint: Paint, width: int) -> str:
    """The text of the page around a value, the value itself in colour."""
    excerpt = shortened(visible(found.excerpt), width)
    place = _place_of(found.value, excerpt)
    if place is None:
        return excerpt
    start, end = place
    return excerpt[:start] + paint("bold green", excerpt[start:end]) + excerpt[end:]


def _place_of(value: Value, excerpt: str) -> tuple[int, int] | None:
    """Where a value stands, which may be written otherwise: with other signs in a number, a link in short."""
    if value is None:
        return None
    text = visible(cell(value))
    candidates = [text]
    if text.startswith(("http://", "https://")):
        path = "/" + text.split("/", 3)[-1]
        candidates += [path, path.rpartition("/")[2]]
    patterns = [re.escape(form) for each in candidates for form in (each, escape(each, quote=False))]
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        patterns.append(r"[\s.,'’]*".join(re.findall(r"\d", text.removesuffix(".0"))))
    for pattern in filter(None, patterns):
        if match := re.search(pattern, excerpt):
            return match.span()
    return None


@dataclass(frozen=True)
class _Health:
    """How often a field was null or empty, of how many, and how often because it could not be read."""

    field: str
    type: str
    values: int
    nulls: int
    unreadable: int


def _health(wrapper: Wrapper, found: Extracted, places: Sequence[Found]) -> Iterator[_Health]:
    schema, counting = wrapper.schema, wrapper.counting_fields
    embedded = Counter(each.field for each in places if each.field not in schema.names)
    nulls = Counter(each.field for each in places if each.value is None)
    for place, (name, kind) in enumerate(zip(schema.names, schema.types, strict=True)):
        missing = sum(is_empty(row[place]) or (name in counting and row[place] == 0) for row in found.rows)
        unreadable = found.unreadable.get(name, 0)
        yield _Health(name, "" if kind is None else str(kind), len(found.rows), missing, unreadable)
        for inner, count in embedded.items():
            if inner.startswith(f"{name}."):
                # Readers count these by the name inside of the relation.
                own = inner.rpartition(".")[2]
                unreadable = 0 if own in schema else found.unreadable.get(own, 0)
                yield _Health(inner, "", count, nulls[inner], unreadable)


def _fields(wrapper: Wrapper, found: Extracted, places: Sequence[Found], paint: Paint) -> Iterator[str]:
    if not found.rows:
        return
    health = list(_health(wrapper, found, places))
    width = max(len(each.field) for each in health)
    yield ""
    for each in health:
        is_many = each.type == Type.RELATION or each.field in wrapper.counting_fields
        text = f"{each.nulls} of {each.values} {'empty' if is_many else 'null'}"
        if each.unreadable:
            text += f", {each.unreadable} could not be read"
        style = "red" if each.nulls == each.values else "yellow" if each.nulls else "green"
        yield f"{each.field:<{width}}  {each.type:<8}  {paint(style, text)}"


def _print_json(wrapper: Wrapper, asked: Asked, found: Extracted, places: Sequence[Found]) -> None:
    assert asked.page is not None
    described = {
        "method": asked.request.method if asked.request else None,
        "url": without_userinfo(asked.page.head.url),
        "status": asked.page.head.status,
        "rows": [dict(zip(wrapper.schema.names, map(_json_value, row), strict=True)) for row in found.rows],
        "proven-empty": found.is_proven_empty,
        "next-page": next_page(wrapper, asked, found),
        "fields": [asdict(each) for each in _health(wrapper, found, places)],
        "found": [{**asdict(each), "value": _json_value(each.value)} for each in places],
    }
    print_json(described)


def _json_value(value: Value) -> Any:
    return json.loads(json_text(value))
