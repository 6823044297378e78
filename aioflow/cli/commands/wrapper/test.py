"""`aioflow wrapper test`: shows the tuples that a wrapper reads in a page, and the origin of each value."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from decimal import Decimal
from functools import partial
from html import escape
from itertools import groupby
from typing import Annotated, Any
from urllib.parse import parse_qs, urlsplit

import msgspec
import typer

from aioflow.cli.commands.fetch import shown_url, status_text
from aioflow.cli.commands.wrapper.list import file_of, find, in_python, load_wrappers
from aioflow.cli.config import web_configuration, web_options
from aioflow.cli.exit import FAILED, OK, guarded, print_message
from aioflow.cli.inputs import is_json_of_rows, parsed_json, row_of, single_tuple
from aioflow.cli.options import (
    Cache,
    LogFile,
    LogFormat,
    LogFormatName,
    Modules,
    Offline,
    Record,
    Replay,
    Verbose,
)
from aioflow.cli.output.colour import Colour, print_json, shortened
from aioflow.cli.output.formats import Columns
from aioflow.cli.output.logs import LogOptions, logged
from aioflow.cli.pages import Browser, Extracted, FetchedPage, explain, extract, saved_page
from aioflow.cli.program import load_modules
from aioflow.config.configuration import Configuration
from aioflow.config.masking import mask
from aioflow.config.secrets import Secrets
from aioflow.errors import InputError, SettingError, suggestion
from aioflow.relation import Type, Value, is_empty
from aioflow.values.cells import cell, json_text
from aioflow.values.coercion import value_of
from aioflow.values.display import visible
from aioflow.values.quantities import count_text, duration_text
from aioflow.web.errors import WebError
from aioflow.web.http import Request
from aioflow.web.settings import web_settings
from aioflow.web.urls import without_userinfo
from aioflow.wrappers.calls import accepted
from aioflow.wrappers.definition import Paging, RequestTemplate, Wrapper
from aioflow.wrappers.readers.reader import Found
from aioflow.wrappers.requests import Pages, RequestMaker
from aioflow.wrappers.wrapper_item import AnyWrapper

# The part of a wrapper's address before its first input, if it is a host and more.
_SURE_BEGINNING = re.compile(r"https?://[^/{}]+/[^{}?#]*", re.IGNORECASE)


@guarded
def wrapper_test(
    target: Annotated[
        list[str],
        typer.Argument(metavar="[PLAN] NAME", help="A wrapper, and the plan file that it stands in."),
    ],
    plan_file: Annotated[
        str | None,
        typer.Option("--plan-file", metavar="PLAN", help="The plan file, if it is not given before NAME."),
    ] = None,
    url: Annotated[
        str | None, typer.Option("--url", metavar="URL", help="Read this page; with --file, where it was.")
    ] = None,
    file: Annotated[
        str | None, typer.Option("--file", metavar="PAGE", help="Read a page that was saved.")
    ] = None,
    input: Annotated[
        list[str] | None,
        typer.Option("--input", "-i", metavar="NAME=VALUE|JSON", help="Values for the wrapper's inputs."),
    ] = None,
    rows: Annotated[
        int, typer.Option("--rows", min=0, metavar="N", help="Tell of so many rows where they came from (3).")
    ] = 3,
    json: Annotated[bool, typer.Option("--json", help="One JSON object for each page.")] = False,
    ops: Modules = None,
    offline: Offline = False,
    cache: Cache = None,
    record: Record = None,
    replay: Replay = None,
    verbose: Verbose = 0,
    log_file: LogFile = None,
    log_format: LogFormat = LogFormatName.TEXT,
) -> None:
    """Show the tuples that a wrapper reads in a page, where each came from, and what was missing."""
    test = WrapperTest(target, plan_file, url, file, input or (), rows, json)
    given = {"ops": ops, **web_options(offline, cache, record, replay)}
    with logged(LogOptions(verbose, log_file, log_format)):
        sys.exit(run_test(test, partial(web_configuration, given)))


@dataclass(frozen=True)
class TestedPage:
    """A page, or the error in its place, and its request."""

    page: FetchedPage | None
    request: Request | None = None
    error: WebError | None = None


def pages_of(
    wrapper: Wrapper, browser: Browser, inputs: Sequence[str], url: str | None, file: str | None
) -> Iterator[TestedPage]:
    """Yield the page that was saved or that has this URL, or else the pages that the inputs ask for."""
    if file is not None:
        yield TestedPage(saved_page(file, url or _own_url(wrapper, inputs)))
        return
    named = None if url is None else [Request(url, robots=wrapper.request.robots)]
    for request in named or _requests(wrapper, inputs):
        try:
            yield TestedPage(browser.fetch(request), request)
        except WebError as error:
            yield TestedPage(None, request, error)


def _requests(wrapper: Wrapper, given: Sequence[str]) -> list[Request]:
    secrets = Secrets()
    maker = RequestMaker(wrapper, secret=lambda name: secrets.get(name).reveal())
    requests = []
    for values in input_rows(given, wrapper):
        request = maker.make({name: value_of(value) for name, value in values.items()})
        if request is None:
            missing = [
                each.name for each in wrapper.inputs if not each.optional and values.get(each.name) is None
            ]
            shown = " ".join(f"--input {name}=VALUE" for name in missing)
            raise InputError(f"wrapper {wrapper.name} needs {shown} (or --url, or --file)")
        requests.append(request)
    return requests


def _own_url(wrapper: Wrapper, given: Sequence[str]) -> str | None:
    """Return the URL at which a wrapper would find a saved page; None if that depends on its inputs."""
    rows = input_rows(given, wrapper)
    # The URL depends on neither the body nor credentials.
    bare = msgspec.structs.replace(wrapper, request=RequestTemplate(url=wrapper.request.url))
    with suppress(SettingError, WebError):
        request = RequestMaker(bare).make({name: value_of(value) for name, value in rows[0].items()})
        if request is not None:
            return request.url
    beginning = _SURE_BEGINNING.match(wrapper.request.url)
    return beginning[0] if beginning else None


def input_rows(given: Sequence[str], wrapper: AnyWrapper) -> list[Mapping[str, Any]]:
    """Return the tuples of `--input`: JSON objects or arrays; all NAME=VALUE together are one tuple."""
    names = [each.name for each in wrapper.inputs]
    rows: list[Mapping[str, Any]] = []
    single: list[tuple[str, str]] = []
    for text in given:
        if is_json_of_rows(text):
            rows += _json_rows(text)
            continue
        name, equals, value = text.partition("=")
        if not equals:
            raise InputError(f"--input {text}: expected JSON or NAME=VALUE")
        single.append((name, value))
    if single or not rows:
        rows.append(single_tuple(single, {each.name: each.type for each in wrapper.inputs}))
    for name in {name: None for row in rows for name in row if name not in names}:
        known = ", ".join(names) or "none"
        near = suggestion(name, names)
        raise InputError(f"--input: wrapper {wrapper.name} has no input {name!r}{near} (inputs: {known})")
    return rows


def _json_rows(text: str) -> list[Mapping[str, Any]]:
    content = parsed_json(text, f"--input {shortened(text, 40)}")
    listed = content if isinstance(content, list) else [content]
    return [row_of(each, f"--input, row {number}") for number, each in enumerate(listed, 1)]


# --- the next page ------------------------------------------------------------------------------


def next_page(wrapper: Wrapper, tested: TestedPage, found: Extracted) -> str | None:
    """Return the address of the next page of a wrapper with paging, or the part of it that is known."""
    assert tested.page is not None
    url = tested.page.head.url
    if wrapper.paging is None:
        return None
    if not url.startswith(("http://", "https://")):
        if wrapper.paging.kind == "next":
            return None if found.next_page is None else cell(found.next_page)
        url = ""
    request = tested.request or Request(url)
    pages = Pages(wrapper)
    pages.pages = _number_of(request.url, wrapper.paging)
    following = pages.following(request, url, found.next_page, len(found.rows))
    return None if following is None else without_userinfo(following.url)


def _number_of(url: str, paging: Paging) -> int:
    """Return the number of a page, for a wrapper that counts its pages."""
    said = parse_qs(urlsplit(url).query).get(paging.parameter or "", ("",))[-1]
    return max(1, (int(said) - paging.start) // paging.step + 1) if said.isdecimal() else 1


# Rows that are shown, rows whose values are shown with their origin, and origins for each value.
SHOWN_ROWS = 10
EXPLAINED_ROWS = 3
SHOWN_PLACES = 3


@dataclass(frozen=True)
class WrapperTest:
    """The options of one test."""

    target: Sequence[str]
    plan_file: str | None = None
    url: str | None = None
    file: str | None = None
    inputs: Sequence[str] = ()
    rows: int = EXPLAINED_ROWS
    as_json: bool = False

    def plan_and_name(self) -> tuple[str | None, str]:
        """Return the plan file, if it is given, and the name of the wrapper."""
        if len(self.target) == 2 and self.plan_file is None:
            return self.target[0], self.target[1]
        if len(self.target) != 1:
            raise InputError("expected NAME or PLAN NAME")
        return self.plan_file, self.target[0]


def run_test(test: WrapperTest, settings_for: Callable[[str | None], Configuration]) -> int:
    """Report on a wrapper, page by page; return the exit code."""
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
        for number, tested in enumerate(pages_of(wrapper, browser, test.inputs, test.url, test.file)):
            if number and not test.as_json:
                print()
            failed = not _show_page(wrapper, tested, test) or failed
    finally:
        browser.close()
    return FAILED if failed else OK


# --- the report ---------------------------------------------------------------------------------


def _show_page(wrapper: Wrapper, tested: TestedPage, test: WrapperTest) -> bool:
    """Report on one page; return whether it could be read."""
    paint = Colour()
    if tested.request is not None and not test.as_json:
        print(f"{paint('bold', tested.request.method)} {shown_url(tested.request.url)}")
    if tested.page is None:
        _tell_failure(tested, tested.error, test)
        return False
    if not test.as_json:
        print(_answer_text(tested.page, paint))
    try:
        found, places = _read(wrapper, tested.page)
    except WebError as error:
        _tell_failure(tested, error, test)
        return False
    if test.as_json:
        _print_json(wrapper, tested, found, places)
        return True
    print(mask("\n".join(_report(wrapper, tested, found, places, test.rows, paint))))
    return True


def _report(
    wrapper: Wrapper, tested: TestedPage, found: Extracted, places: Sequence[Found], rows: int, paint: Colour
) -> Iterator[str]:
    assert tested.page is not None
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    yield ""
    yield from _table(wrapper, tested.page, found, max(rows, SHOWN_ROWS), width)
    if rows:
        yield from _places(places, rows, paint, width or 160)
    yield from _fields(wrapper, found, places, paint)
    if (following := next_page(wrapper, tested, found)) is not None:
        yield ""
        yield f"next page: {visible(following)}"


def _read(wrapper: Wrapper, page: FetchedPage) -> tuple[Extracted, list[Found]]:
    """Read a page as a plan would: an error status is an error, unless EMPTY says that it means no result."""
    if page.head.status in wrapper.request.empty:
        return Extracted([], is_proven_empty=True), []
    if page.response is not None:
        accepted(page.response)
    return extract(wrapper.extraction, page), explain(wrapper.extraction, page)


def _tell_failure(tested: TestedPage, error: WebError | None, test: WrapperTest) -> None:
    if test.as_json:
        described = {"error": str(error), "error-kind": type(error).__name__}
        url = {"url": without_userinfo(tested.request.url)} if tested.request else {}
        print_json({**url, **described})
    else:
        print_message("error", visible(str(error)))


def _answer_text(page: FetchedPage, paint: Colour) -> str:
    size = count_text(len(page.body), "byte")
    if page.response is None:
        return paint("dim", f"{size} from {page.path}")
    status = page.head.status
    text = f"{size} in {duration_text(page.response.timing.total_seconds)}"
    if page.head.url != (page.response.hops or (page.head.url,))[0]:
        text += f" from {shown_url(page.head.url)}"
    return f"{paint('green' if status < 400 else 'red', status_text(status))} {paint('dim', text)}"


def _table(
    wrapper: Wrapper, page: FetchedPage, found: Extracted, most: int, width: int | None
) -> Iterator[str]:
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


def _places(places: Sequence[Found], most: int, paint: Colour, width: int) -> Iterator[str]:
    rows = groupby(places, lambda found: found.row)
    shown = 0
    for number, of_row in rows:
        if number >= most:
            break
        shown += 1
        yield ""
        yield paint("bold", f"row {number + 1}")
        # A field that takes all of its matches has a place for each.
        for field, of_field in groupby(of_row, lambda found: (found.field, found.value)):
            yield from _places_of_field(field[0], list(of_field), paint, width)
    left = len({found.row for found in places}) - shown
    if left:
        yield ""
        yield paint("dim", f"… and {count_text(left, 'more row')}: --rows {shown + left} shows all")


def _places_of_field(name: str, places: Sequence[Found], paint: Colour, width: int) -> Iterator[str]:
    value = places[0].value
    text = "null" if value is None else shortened(visible(cell(value)), width // 2)
    yield f"  {paint('cyan', name)} = {paint('red' if value is None else 'green', text)}"
    for found in places[:SHOWN_PLACES]:
        if found.path:
            # The end of a path tells more than its beginning.
            yield f"    {paint('dim', shortened(visible(found.path), width - 4, keep_end=True))}"
        if found.excerpt:
            yield f"    {highlighted(found, paint, width - 4)}"
    if len(places) > SHOWN_PLACES:
        yield f"    {paint('dim', f'… {len(places)} in all')}"


def highlighted(found: Found, paint: Colour, width: int) -> str:
    """Return the text of the page around a value, with the value in colour."""
    excerpt = shortened(visible(found.excerpt), width)
    place = _place_of(found.value, excerpt)
    if place is None:
        return excerpt
    start, end = place
    return excerpt[:start] + paint("bold green", excerpt[start:end]) + excerpt[end:]


def _place_of(value: Value, excerpt: str) -> tuple[int, int] | None:
    """Return start and end of a value; its number may be written with other signs, its link in short."""
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
    """The number of values of a field, and of those that are null or empty or could not be read."""

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
                # Readers count these by their name inside of the relation.
                own = inner.rpartition(".")[2]
                unreadable = 0 if own in schema else found.unreadable.get(own, 0)
                yield _Health(inner, "", count, nulls[inner], unreadable)


def _fields(wrapper: Wrapper, found: Extracted, places: Sequence[Found], paint: Colour) -> Iterator[str]:
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


def _print_json(wrapper: Wrapper, tested: TestedPage, found: Extracted, places: Sequence[Found]) -> None:
    assert tested.page is not None
    described = {
        "method": tested.request.method if tested.request else None,
        "url": without_userinfo(tested.page.head.url),
        "status": tested.page.head.status,
        "rows": [dict(zip(wrapper.schema.names, map(_json_value, row), strict=True)) for row in found.rows],
        "proven-empty": found.is_proven_empty,
        "next-page": next_page(wrapper, tested, found),
        "fields": [asdict(each) for each in _health(wrapper, found, places)],
        "found": [{**msgspec.structs.asdict(each), "value": _json_value(each.value)} for each in places],
    }
    print_json(described)


def _json_value(value: Value) -> Any:
    return json.loads(json_text(value))
