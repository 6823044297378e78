"""The lists that settings are written in: projections, attributes, sort keys, aggregates."""

from __future__ import annotations

from aioflow.dataclass import dataclass
from aioflow.errors import SettingError
from aioflow.expressions.parser import Parser, remembered
from aioflow.expressions.syntax import Call, Name, Node


@dataclass(frozen=True)
class ProjectionItem:
    """`expression as name`."""

    offset: int
    name: str
    node: Node


@dataclass(frozen=True)
class Star:
    """`*` or `* except a, b`: all attributes but these."""

    offset: int
    excepted: tuple[Name, ...] = ()


@remembered
def parse_attributes(text: str) -> tuple[Name, ...]:
    """`a, b`."""
    parser = Parser(text)
    if parser.at_end:
        raise SettingError("the list of attributes is empty", offset=0)
    names = parser.items(parser.name)
    if not parser.at_end:
        parser.fail("expected ',' or the end", parser.operator_hint())
    return tuple(names)


@remembered
def parse_expressions(text: str) -> tuple[Node, ...]:
    """`a, lower(b)`."""
    parser = Parser(text)
    if parser.at_end:
        raise SettingError("the list of attributes is empty", offset=0)
    nodes = parser.items(parser.expression)
    parser.finish(", ','")
    return tuple(nodes)


@remembered
def parse_projection(text: str) -> tuple[ProjectionItem | Star, ...]:
    """`a, b as c, n - 1 as n, *, * except a`."""
    parser = Parser(text)
    if parser.at_end:
        raise SettingError("the projection is empty", offset=0)
    items = parser.items(lambda: _projected(parser))
    parser.finish(", 'as', ','")
    return tuple(items)


def _projected(parser: Parser) -> ProjectionItem | Star:
    start = parser.token.start
    if parser.accept("*"):
        return Star(start, _excepted(parser))
    node = parser.expression()
    end = parser.tokens[parser.index - 1].end
    if parser.accept("as"):
        return ProjectionItem(start, parser.name().text, node)
    if isinstance(node, Name):
        return ProjectionItem(start, node.text, node)
    if not parser.at_end and parser.token.keyword != ",":
        parser.finish(", 'as', ','")
    written = parser.text[start:end]
    raise SettingError(f"a computed attribute needs a name: write '{written} as …'", offset=start)


def _excepted(parser: Parser) -> tuple[Name, ...]:
    """The names after `except`, in parentheses or up to the next item that is more than a name."""
    if not parser.accept("except"):
        return ()
    if parser.accept("("):
        names = parser.items(parser.name)
        parser.close("(")
        return tuple(names)
    names = [parser.name()]
    while parser.token.keyword == "," and _bare_name_follows(parser):
        parser.advance()
        names.append(parser.name())
    return tuple(names)


def _bare_name_follows(parser: Parser) -> bool:
    """Whether the next item is a name and no more; the attribute is among `*` already, so it is left out."""
    index = parser.index + 1
    while parser.tokens[index].kind in ("name", "quoted") and parser.tokens[index + 1].keyword == ".":
        index += 2
    name, following = parser.tokens[index], parser.tokens[index + 1 : index + 2]
    return name.kind in ("name", "quoted") and (following[0].kind == "end" or following[0].keyword == ",")


# --- sort keys ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class SortItem:
    """`expression desc nulls first`."""

    node: Node
    descending: bool
    nulls_first: bool


@remembered
def parse_sort_keys(text: str) -> tuple[SortItem, ...]:
    """`price desc, city, opened nulls first`."""
    parser = Parser(text)
    if parser.at_end:
        raise SettingError("the list of sort keys is empty", offset=0)
    items = parser.items(lambda: _sorted_by(parser))
    parser.finish(", 'asc', 'desc', 'nulls', ','")
    return tuple(items)


def _sorted_by(parser: Parser) -> SortItem:
    node = parser.expression()
    direction = parser.accept("asc", "desc")
    first = False
    if parser.accept("nulls"):
        word = parser.accept("first", "last") or parser.fail("expected 'first' or 'last' after 'nulls'")
        first = word.keyword == "first"
    return SortItem(node, direction is not None and direction.keyword == "desc", first)


# --- aggregates ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class AggregateItem:
    """`call as name`; `name` is empty without `as`, and `written` is the call's own text."""

    node: Call
    name: str
    written: str


@remembered
def parse_aggregates(text: str) -> tuple[AggregateItem, ...]:
    """`sum(price) as total, count() as n`."""
    parser = Parser(text)
    if parser.at_end:
        raise SettingError("the list of aggregate functions is empty", offset=0)
    items = parser.items(lambda: _aggregated(parser))
    if not parser.at_end:
        parser.fail("expected 'as', ',' or the end")
    return tuple(items)


def _aggregated(parser: Parser) -> AggregateItem:
    start = parser.token.start
    if parser.token.kind != "name" or parser.following.keyword != "(":
        parser.fail("expected a function with its argument, as in 'sum(price)'")
    node = parser.call()
    written = parser.text[start : parser.tokens[parser.index - 1].end]
    name = parser.name().text if parser.accept("as") else ""
    return AggregateItem(node, name, written)
