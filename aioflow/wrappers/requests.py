"""Requests of a wrapper, made from the values of its inputs, and the requests for its further pages."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, TypeVar
from urllib.parse import quote, quote_plus, unquote_plus, urlencode

from aioflow.config.masking import conceal
from aioflow.errors import SettingError
from aioflow.relation import Row, Value
from aioflow.values.coercion import Coercion
from aioflow.web.http import SAFE_METHODS, Request, harmless
from aioflow.web.urls import origin, resolve
from aioflow.wrappers.definition import IdentityCache, Paging, RequestTemplate, Wrapper
from aioflow.wrappers.input_values import misfit, refused, value_json, value_text, value_texts
from aioflow.wrappers.language.directives import SECRET
from aioflow.wrappers.templates import Authority, Mistake, TextTemplate, UrlTemplate, plain_url


class Pages:
    """The way through the pages of one tuple.

    `was_cut` tells that a limit ended it, not the source, and `is_bounded` that the wrapper states the limit.
    """

    def __init__(self, wrapper: Wrapper) -> None:
        self.pages = 1
        self.was_cut = False
        self._paging = wrapper.paging
        self.is_bounded = wrapper.paging is not None and wrapper.paging.is_bounded
        self._seen: set[str] = set()
        self._first: Request | None = None

    def following(self, request: Request, url: str, next_page: Value, items: int) -> Request | None:
        """Return the request for the page after this one, or None after the last.

        `url` is where the page came from in the end, `next_page` what the extraction found for it, and
        `items` how many items the page had.
        """
        paging = self._paging
        if paging is None:
            return None
        self._first = self._first or request
        found = self._following(paging, request, url, next_page, items)
        if found is not None and self.pages >= paging.most_pages:
            self.was_cut = True
            return None
        self.pages += found is not None
        return found

    def _following(
        self, paging: Paging, request: Request, url: str, next_page: Value, items: int
    ) -> Request | None:
        if paging.kind in ("number", "offset"):
            if items == 0:
                return None
            number = paging.start + self.pages * paging.step
            return self._with_parameter(paging, request, str(number))
        link = "" if next_page is None else value_text(next_page, "next page").strip()
        if not link:
            return None
        if paging.kind == "cursor":
            return None if self._is_seen(link) else self._with_parameter(paging, request, link)
        return self._linked(request, url, link)

    def _with_parameter(self, paging: Paging, request: Request, value: str) -> Request:
        return replace(request, url=with_parameter(request.url, paging.parameter or "", value))

    def _linked(self, request: Request, url: str, link: str) -> Request | None:
        self._seen.update((request.url, url))
        target = resolve(url, link)
        if target is None or self._is_seen(target):
            return None
        changes: dict[str, Any] = {"url": target}
        if request.body is not None or request.method != "GET":
            # A link is followed by GET, whatever brought the page that it stands on.
            headers = {name: value for name, value in request.headers.items() if name != "Content-Type"}
            changes |= {"method": "GET", "body": None, "is_safe": True, "headers": headers}
        given = changes.get("headers", request.headers)
        if given and origin(target) != origin((self._first or request).url):
            # As with a redirect: a page decides where the link leads, and any header may be a credential.
            changes["headers"] = harmless(given)
        return replace(request, **changes)

    def _is_seen(self, key: str) -> bool:
        if key in self._seen:
            return True
        self._seen.add(key)
        return False


def with_parameter(url: str, name: str, value: str) -> str:
    """Return the URL with a parameter of its query set, in place of all that had that name."""
    url, mark, fragment = url.partition("#")
    path, _, query = url.partition("?")
    added = f"{quote_plus(name)}={quote(value, safe='', errors='replace')}"
    kept = [part for part in query.split("&") if part and unquote_plus(part.partition("=")[0]) != name]
    return f"{path}?{'&'.join([*kept, added])}{mark}{fragment}"


# The name of a secret -> its value.
FindSecret: TypeAlias = Callable[[str], str]
_Make: TypeAlias = Callable[[Sequence[Value], FindSecret], Any]
_AnyTemplate = TypeVar("_AnyTemplate", UrlTemplate, TextTemplate)

_BREAKING = re.compile(r"[\r\n\0]")
_CONTENT_TYPE = "content-type"


class RequestMaker:
    """Makes the requests of one wrapper; further keyword arguments are those of every Request.

    `secret` finds the value of a secret by its name. Raises SettingError for a wrapper that was not
    checked and has mistakes in its templates.
    """

    def __init__(self, wrapper: Wrapper, *, secret: FindSecret | None = None, **common: Any) -> None:
        template = wrapper.request
        self._inputs = wrapper.inputs
        self._names = wrapper.input_names
        self._secret = secret or _no_secret
        self._parts = _parts_of(wrapper)
        self._common = {
            "method": template.method,
            "is_safe": template.safe or template.method in SAFE_METHODS,
            "robots": template.robots,
            "timeout_seconds": template.timeout_seconds,
            "restart": template.restart,
            **common,
        }

    def make(self, values: Mapping[str, Value] | Row, secret: FindSecret | None = None) -> Request | None:
        """Return the request for these values, by name or in the order of the inputs.

        None when an input is null that is not optional. A RequestRefusedError when the values make no
        request that could be sent.
        """
        parts = self._parts
        row: Sequence[Value]
        row = values if isinstance(values, tuple) else tuple(map(values.get, self._names))
        for place in parts.needed:
            if row[place] is None:
                return None
        if parts.fitting is not None:
            row = parts.fitting.fitted(row)
        if parts.has_defaults:
            given = zip(self._inputs, row, strict=True)
            row = [each.default if value is None else value for each, value in given]
        find = secret or self._secret
        headers = parts.headers if isinstance(parts.headers, dict) else parts.headers(row, find)
        body = None if parts.body is None else parts.body(row, find)
        return Request(parts.make_url(row), headers=headers, body=body, **self._common)


class _Parts:
    """The templates of a wrapper, compiled."""

    def __init__(self, wrapper: Wrapper) -> None:
        template = wrapper.request
        self.needed = [place for place, given in enumerate(wrapper.inputs) if not given.optional]
        self.has_defaults = any(given.default is not None for given in wrapper.inputs)
        self.fitting = Coercion(((given.name, given.type) for given in wrapper.inputs), misfit) or None
        self._names = wrapper.input_names
        places = {name: place for place, name in enumerate(self._names)}
        self._url = _sound(UrlTemplate(template.url, places))
        self._authority = Authority(self._url)
        _refuse(self._authority.mistakes)
        counts = wrapper.paging is not None and wrapper.paging.kind in ("number", "offset")
        self._paging = wrapper.paging if counts else None
        self.body = _body_maker(template, places)
        self.headers = _headers_maker(template, places)

    def make_url(self, row: Sequence[Value]) -> str:
        only = self._url.only
        if only is not None:
            url = plain_url(row[only], self._names[only])
        else:
            url = self._authority.url(self._url.expand(row))
        if self._paging is not None:
            url = with_parameter(url, self._paging.parameter or "", str(self._paging.start))
        return url


_parts_of = IdentityCache[Wrapper, _Parts](_Parts)


def compile_request(wrapper: Wrapper) -> None:
    """Have the templates of a wrapper compiled before they are needed; a SettingError for mistakes."""
    _parts_of(wrapper)


def _no_secret(name: str) -> str:
    raise SettingError(f"the secret {name!r} is asked for where there are none")


def _sound(template: _AnyTemplate) -> _AnyTemplate:
    _refuse(template.mistakes)
    return template


def _refuse(mistakes: list[Mistake]) -> None:
    for mistake in mistakes:
        raise SettingError(mistake.message, offset=mistake.start)


# --- texts with values and secrets ---------------------------------------------------------------


def _text_maker(text: str, places: Mapping[str, int]) -> _Make:
    """Return a maker of a text with its values; it makes None for `{name}` if that is null."""
    if SECRET.search(text):
        return lambda row, secret: SECRET.sub(lambda match: secret(match[1]), text)
    template = _sound(TextTemplate(text, places))
    only = template.only
    if only is None:
        return lambda row, secret: template.render(row)
    _, place = only
    return lambda row, secret: None if row[place] is None else template.render(row)


# --- headers -------------------------------------------------------------------------------------


def _headers_maker(template: RequestTemplate, places: Mapping[str, int]) -> dict[str, str] | _Make:
    """Return the headers, or a maker that takes values and secrets."""
    named = [(name, text, _text_maker(text, places)) for name, text in template.headers]
    implied = _implied_headers(template)
    authorize = None if template.auth is None else _authorization(template.auth)

    def make(row: Sequence[Value], secret: FindSecret) -> dict[str, str]:
        headers = dict(implied)
        for name, text, write in named:
            value = write(row, secret)
            if value is not None:
                headers[name] = _header_value(name, text, value)
        if authorize is not None:
            headers["Authorization"] = _header_value("Authorization", template.auth, authorize(secret))
        return headers

    is_fixed = authorize is None and not any(
        SECRET.search(text) or TextTemplate(text, places).used for _, text in template.headers
    )
    return make((), str) if is_fixed else make


def _header_value(name: str, text: str | None, value: str) -> str:
    if _BREAKING.search(value):
        # The value may be a secret: it is not shown.
        raise refused(
            f"the header {name!r} ({text}) would hold a line break or NUL, which could forge other headers"
        )
    return value.strip()


def _implied_headers(template: RequestTemplate) -> dict[str, str]:
    if any(name.lower() == _CONTENT_TYPE for name, _ in template.headers):
        return {}
    if template.form is not None:
        return {"Content-Type": "application/x-www-form-urlencoded"}
    if template.json is not None:
        return {"Content-Type": "application/json"}
    return {} if template.body is None else {"Content-Type": "text/plain; charset=utf-8"}


def _authorization(auth: str) -> Callable[[FindSecret], str]:
    kind, _, rest = auth.partition(" ")
    if kind.lower() == "bearer":
        return lambda secret: f"Bearer {_resolved(rest, secret)}"
    user, _, password = rest.rpartition(" ")

    def basic(secret: FindSecret) -> str:
        credentials = f"{_resolved(user, secret)}:{_resolved(password, secret)}"
        encoded = b64encode(credentials.encode()).decode()
        conceal(encoded)
        return f"Basic {encoded}"

    return basic


def _resolved(text: str, secret: FindSecret) -> str:
    return SECRET.sub(lambda match: secret(match[1]), text)


# --- bodies --------------------------------------------------------------------------------------


def _body_maker(template: RequestTemplate, places: Mapping[str, int]) -> _Make | None:
    if template.form is not None:
        return _form_maker(template.form, places)
    if template.json is not None:
        return _json_maker(template.json, places)
    if template.body is not None:
        text = _sound(TextTemplate(template.body, places))
        return lambda row, secret: text.render(row).encode("utf-8", "replace")
    return None


def _form_maker(form: Sequence[tuple[str, Any]], places: Mapping[str, int]) -> _Make:
    parts = [(name, _part_maker(value, places, value_texts)) for name, value in form]

    def make(row: Sequence[Value], secret: FindSecret) -> bytes:
        fields = ((name, write(row, secret)) for name, write in parts)
        given = [(name, value) for name, value in fields if value is not None]
        return urlencode(given, doseq=True, errors="replace").encode()

    return make


def _json_maker(members: Sequence[tuple[str, Any]], places: Mapping[str, int]) -> _Make:
    parts = [(name.split("."), _part_maker(value, places, value_json)) for name, value in members]

    def make(row: Sequence[Value], secret: FindSecret) -> bytes:
        whole: dict[str, Any] = {}
        for path, write in parts:
            value = write(row, secret)
            if value is not None:
                _put(whole, path, value)
        return json.dumps(whole, ensure_ascii=False).encode("utf-8", "replace")

    return make


def _put(whole: dict[str, Any], path: list[str], value: Any) -> None:
    for step in path[:-1]:
        whole = whole.setdefault(step, {})
    whole[path[-1]] = None if value is _NULL else value


# A null that the wrapper's text says, as against one that an optional input has.
_NULL = object()


def _part_maker(value: Any, places: Mapping[str, int], write: Callable[[Value, str], Any]) -> _Make:
    """Return a maker of a member of a form or a JSON object; None leaves the member out."""
    if isinstance(value, str):
        template = TextTemplate(value, places)
        if SECRET.search(value) or template.only is None:
            return _text_maker(value, places)
        name, place = template.only
        return lambda row, secret: None if row[place] is None else write(row[place], name)
    if isinstance(value, tuple):
        return _list_maker([_part_maker(each, places, write) for each in value], write)
    constant = write(value, "") if value is not None else _NULL if write is value_json else ""
    return lambda row, secret: constant


def _list_maker(makers: list[_Make], write: Callable[[Value, str], Any]) -> _Make:
    """Return a maker of a list. In JSON a null keeps its place; a form has only texts, and no nulls."""
    if write is value_json:
        return lambda row, secret: [
            None if (value := make(row, secret)) is _NULL else value for make in makers
        ]

    def texts(row: Sequence[Value], secret: FindSecret) -> list[str]:
        made = [make(row, secret) for make in makers]
        lists = [each if isinstance(each, list) else [each] for each in made if each is not None]
        return [text for each in lists for text in each]

    return texts
