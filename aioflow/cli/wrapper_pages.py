"""The pages that `aioflow wrapper test` looks at: of which requests, and which request would come next."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, urlsplit

from aioflow.cli.pages import Browser, Extracted, Page, saved_page
from aioflow.cli.paint import shortened
from aioflow.cli.reading import row_of
from aioflow.cli.values import is_json_of_rows, parsed_json, single_tuple
from aioflow.dataclass import dataclass
from aioflow.errors import InputError, SettingError, suggestion
from aioflow.operators.encoding import cell
from aioflow.rows import value_of
from aioflow.secrets import Secrets
from aioflow.web.errors import WebError
from aioflow.web.messages import Request
from aioflow.web.urls import without_userinfo
from aioflow.wrappers.definition import Paging, RequestTemplate, Wrapper
from aioflow.wrappers.naming import AnyWrapper

# What stands before the first input in the address of a wrapper, if that is a host and more.
_SURE_BEGINNING = re.compile(r"https?://[^/{}]+/[^{}?#]*", re.IGNORECASE)


@dataclass(frozen=True)
class Asked:
    """A page, or why there is none, and the request it answers."""

    page: Page | None
    request: Request | None = None
    error: WebError | None = None


def pages_of(
    wrapper: Wrapper, browser: Browser, inputs: Sequence[str], url: str | None, file: str | None
) -> Iterator[Asked]:
    """The page that was saved or is named, or else those that the inputs ask for."""
    if file is not None:
        yield Asked(saved_page(file, url or _own_url(wrapper, inputs)))
        return
    named = None if url is None else [Request(url, robots=wrapper.request.robots)]
    for request in named or _requests(wrapper, inputs):
        try:
            yield Asked(browser.fetch(request), request)
        except WebError as error:
            yield Asked(None, request, error)


def _requests(wrapper: Wrapper, given: Sequence[str]) -> list[Request]:
    from aioflow.wrappers.requests import RequestMaker

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
    """Where a wrapper would have found a page that was saved; None if its inputs are needed to tell."""
    from aioflow.wrappers.requests import RequestMaker

    rows = input_rows(given, wrapper)
    # Neither a body nor credentials are needed for that.
    bare = replace(wrapper, request=RequestTemplate(url=wrapper.request.url))
    with suppress(SettingError, WebError):
        request = RequestMaker(bare).make({name: value_of(value) for name, value in rows[0].items()})
        if request is not None:
            return request.url
    beginning = _SURE_BEGINNING.match(wrapper.request.url)
    return beginning[0] if beginning else None


def input_rows(given: Sequence[str], wrapper: AnyWrapper) -> list[Mapping[str, Any]]:
    """The tuples that `--input` gives: JSON objects or arrays of them; all NAME=VALUE together are one."""
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


def next_page(wrapper: Wrapper, asked: Asked, found: Extracted) -> str | None:
    """Where a wrapper that pages by itself would go on: an address, or as much of it as is known."""
    from aioflow.wrappers.paging import Pages

    assert asked.page is not None
    url = asked.page.head.url
    if wrapper.paging is None:
        return None
    if not url.startswith(("http://", "https://")):
        if wrapper.paging.kind == "next":
            return None if found.next_page is None else cell(found.next_page)
        url = ""
    request = asked.request or Request(url)
    pages = Pages(wrapper)
    pages.pages = _number_of(request.url, wrapper.paging)
    following = pages.following(request, url, found.next_page, len(found.rows))
    return None if following is None else without_userinfo(following.url)


def _number_of(url: str, paging: Paging) -> int:
    """Which of its pages this is, for a wrapper that counts them."""
    said = parse_qs(urlsplit(url).query).get(paging.parameter or "", ("",))[-1]
    return max(1, (int(said) - paging.start) // paging.step + 1) if said.isdecimal() else 1
