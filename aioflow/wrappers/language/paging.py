"""PAGING: how a wrapper goes on to further pages by itself."""

from __future__ import annotations

from typing import cast

from aioflow.errors import suggestion
from aioflow.language.scanner import Token
from aioflow.language.words import show
from aioflow.wrappers.definition import Field
from aioflow.wrappers.language.cutting import Line, UnexpectedError
from aioflow.wrappers.language.fields import read_processing
from aioflow.wrappers.language.pieces import PagingKind, PagingText

_KINDS = ("next", "number", "offset", "cursor")
NEXT_PAGE = "PAGING"


def whole_number(line: Line, least: int | None) -> int:
    """A whole number, of at least so much."""
    token, value = line.constant("a whole number")
    wanted = "a whole number" if least is None else f"a whole number of at least {least}"
    if isinstance(value, bool) or not isinstance(value, int) or (least is not None and value < least):
        raise UnexpectedError(f"expected {wanted}, found {show(token)}", token.start, token.end)
    return value


def read_paging(line: Line) -> PagingText:
    """The value of PAGING."""
    kind = line.word("next, number, offset or cursor")
    name = kind.text.lower()
    if name not in _KINDS:
        hint = suggestion(name, _KINDS) or f" (there are: {', '.join(_KINDS)})"
        raise UnexpectedError(f"unknown kind of PAGING {kind.text!r}{hint}", kind.start, kind.end)
    if name in ("next", "cursor"):
        return _read_found(cast(PagingKind, name), kind, line)
    return _read_counting(cast(PagingKind, name), kind, line)


def _read_found(name: PagingKind, kind: Token, line: Line) -> PagingText:
    selector = line.text("a selector in quotes")
    if not str(selector.value).strip():
        raise UnexpectedError("an empty selector finds nothing", selector.start, selector.end)
    words = read_processing(line, until=("as",) if name == "cursor" else ())
    found = Field(NEXT_PAGE, str(selector.value), "page", words, span=kind.span, selector_span=selector.span)
    if name == "next":
        return PagingText("next", found=found, span=kind.span)
    if not line.is_word("as"):
        line.expect("'as' and a parameter of the query in quotes")
    line.take()
    return PagingText("cursor", _parameter(line), found=found, span=kind.span)


def _read_counting(name: PagingKind, kind: Token, line: Line) -> PagingText:
    parameter = _parameter(line)
    numbers: dict[str, int] = {}
    while not line.at_end:
        if not line.is_word("from", "by"):
            line.expect("'from' or 'by' and a number")
        word = line.take()
        if word.text.lower() in numbers:
            raise UnexpectedError(f"{word.text!r} stands here twice", word.start, word.end)
        numbers[word.text.lower()] = whole_number(line, 1 if word.text.lower() == "by" else 0)
    if name == "offset" and "by" not in numbers:
        line.expect("'by' and how many items a page has")
    return PagingText(name, parameter, numbers.get("from"), numbers.get("by"), span=kind.span)


def _parameter(line: Line) -> str:
    token = line.text("a parameter of the query in quotes")
    if not str(token.value).strip():
        raise UnexpectedError("the name of a parameter cannot be empty", token.start, token.end)
    return str(token.value)
