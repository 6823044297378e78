"""The sandbox of templates: they reach nothing but the data of a message, and they end.

This imports jinja2, and so is imported only when a plan has a template.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any, ClassVar

from jinja2 import StrictUndefined, Undefined, nodes
from jinja2.exceptions import SecurityError
from jinja2.filters import FILTERS
from jinja2.runtime import Context, LoopContext
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Cycler, Joiner, pass_context
from jinja2.visitor import NodeTransformer
from markupsafe import Markup, escape

from aioflow.messages.content.tables import value_text
from aioflow.relation import Relation, Row, Schema, Value

MOST_CHARACTERS = 1 << 20
_MOST_STEPS = 200_000
_MOST_BITS = 4096
BUDGET = "_budget"  # among the variables of a template, whose own names do not begin so

_KEPT_FILTERS = (
    *("abs", "capitalize", "count", "d", "default", "dictsort", "e", "escape", "first", "float", "groupby"),
    *("int", "items", "last", "length", "list", "lower", "map", "max", "min", "reject", "rejectattr"),
    *("reverse", "round", "select", "selectattr", "sort", "string", "striptags", "sum", "title", "tojson"),
    *("trim", "truncate", "unique", "upper", "urlencode", "urlize", "wordcount"),
)
_KEPT_GLOBALS = ("cycler", "joiner", "namespace", "range")
_TEXT_METHODS = frozenset(
    (
        *("capitalize", "endswith", "lower", "lstrip", "removeprefix", "removesuffix", "rstrip"),
        *("startswith", "strip", "title", "upper"),
    )
)
_DATE_METHODS = frozenset(("date", "isocalendar", "isoformat", "isoweekday", "weekday"))
_DATE_FORMAT = re.compile(r"(?:[^%]|%-?[A-Za-z%])*")
_MOST_FORMAT_CHARACTERS = 100


class LoopBudget:
    """The number of turns that all loops of one rendering may take together."""

    def __init__(self) -> None:
        self._left = _MOST_STEPS

    def spend(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise SecurityError(f"it goes through more than {_MOST_STEPS:,} rows or turns of loops")


class RowView(Mapping[str, Value]):
    """A tuple in a template: `row.price`, `row["house-url"]` or `row.house_url`."""

    __slots__ = ("_budget", "_row", "_schema")

    def __init__(self, schema: Schema, row: Row, budget: LoopBudget) -> None:
        self._schema, self._row, self._budget = schema, row, budget

    def __getitem__(self, name: str) -> Any:
        found = attribute_of(self._schema, name)
        if found is None and self._schema.open:
            return None
        if found is None:
            raise KeyError(name)
        return view(self._row[self._schema.position(found)], self._budget)

    def __iter__(self) -> Iterator[str]:
        return iter(self._schema.names)

    def __len__(self) -> int:
        return len(self._schema)

    def __str__(self) -> str:
        return "; ".join(f"{name}: {value_text(value)}" for name, value in zip(self, self._row, strict=True))


class RowsView:
    """A relation in a template, read from wherever it is kept."""

    def __init__(
        self, schema: Schema, walk: Callable[[], Iterable[Row]], count: int, budget: LoopBudget
    ) -> None:
        self._schema, self._walk, self._count, self._budget = schema, walk, count, budget

    def __iter__(self) -> Iterator[RowView]:
        for row in self._walk():
            self._budget.spend()
            yield RowView(self._schema, row, self._budget)

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, place: int) -> RowView:
        for number, row in enumerate(self):
            if number == place:
                return row
        raise IndexError(place)

    def __str__(self) -> str:
        return " / ".join(map(str, self))


class ListView:
    """A list of values in a template: `{% for tag in tags %}{{ tag }}{% endfor %}`, `tags|join(", ")`."""

    def __init__(self, relation: Relation, budget: LoopBudget) -> None:
        self._relation, self._budget = relation, budget

    def __iter__(self) -> Iterator[Any]:
        for (value,) in self._relation.rows:
            self._budget.spend()
            yield view(value, self._budget)

    def __len__(self) -> int:
        return len(self._relation)

    def __getitem__(self, place: int) -> Any:
        for number, value in enumerate(self):
            if number == place:
                return value
        raise IndexError(place)

    def __str__(self) -> str:
        return value_text(self._relation)


def attribute_of(schema: Schema, name: object) -> str | None:
    """The attribute that a name in a template means: itself, or the one with `-` in the place of `_`."""
    if name in schema:
        return str(name)
    dashed = str(name).replace("_", "-")
    return dashed if dashed in schema else None


def view(value: Value, budget: LoopBudget) -> Any:
    """A value as templates see it."""
    if isinstance(value, Relation) and value.is_list:
        return ListView(value, budget)
    if isinstance(value, Relation):
        return RowsView(value.schema, lambda: value.rows, len(value), budget)
    return value


class Sandbox(ImmutableSandboxedEnvironment):
    """An environment in which a template can neither reach out nor grow without end."""

    intercepted_binops: ClassVar[frozenset[str]] = frozenset(("+", "*", "**", "%"))  # type: ignore[misc]

    def __init__(self, *, html: bool) -> None:
        super().__init__(
            autoescape=html,
            undefined=StrictUndefined,
            finalize=_finalize,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
        )
        self.filters = {name: FILTERS[name] for name in _KEPT_FILTERS} | _FILTERS
        self.globals = {name: self.globals[name] for name in _KEPT_GLOBALS}

    def getattr(self, obj: Any, attribute: str) -> Any:
        if isinstance(obj, RowView):
            return self.getitem(obj, attribute)
        return super().getattr(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        if not isinstance(obj, RowView):
            return super().getitem(obj, argument)
        if isinstance(argument, str) and attribute_of(obj._schema, argument) is not None:
            return obj[argument]
        known = ", ".join(obj)
        return self.undefined(f"unknown attribute {argument!r} (there are: {known})", name=str(argument))

    def wrap_str_format(self, value: Any) -> None:
        """No text is formatted by a method: a width of a billion is written quickly."""

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        if not super().is_safe_attribute(obj, attr, value):
            return False
        if not callable(value) or isinstance(obj, LoopContext | Cycler | Joiner):
            return True
        if isinstance(obj, str):
            return attr in _TEXT_METHODS
        return isinstance(obj, date) and attr in _DATE_METHODS

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        if (check := _CHECKS.get(operator)) is not None:
            check(left, right)
        return super().call_binop(context, operator, left, right)


def guarded(tree: nodes.Template) -> nodes.Template:
    """The template with every loop counted and every joining of texts measured."""
    changed = _Guard().visit(tree)
    assert isinstance(changed, nodes.Template)
    return changed


class _Guard(NodeTransformer):
    def visit_For(self, node: nodes.For) -> nodes.Node:  # noqa: N802  # jinja2 finds it by this name
        self.generic_visit(node)
        node.iter = _filtered(node.iter, "counted", node.lineno)
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        return _filtered(nodes.List(node.nodes, lineno=node.lineno), "join", node.lineno)


def _filtered(node: nodes.Node, name: str, line: int) -> nodes.Filter:
    return nodes.Filter(node, name, [], [], None, None, lineno=line)


def _check_remainder(left: Any, right: Any) -> None:
    if isinstance(left, str):
        raise SecurityError("texts are not formatted with %; join them with ~")


def _check_power(left: Any, right: Any) -> None:
    grows = isinstance(left, int) and isinstance(right, int) and left.bit_length() * right > _MOST_BITS
    if grows or isinstance(left, Decimal) or isinstance(right, Decimal):
        raise SecurityError("the power is too large a number")


def _check_product(left: Any, right: Any) -> None:
    if isinstance(left, int) and isinstance(right, int):
        if left.bit_length() + right.bit_length() > _MOST_BITS:
            raise SecurityError("the product is too large a number")
        return
    sizes = [len(each) if hasattr(each, "__len__") else abs(int(each)) for each in (left, right)]
    if any(hasattr(each, "__len__") for each in (left, right)):
        _check_size(sizes[0] * sizes[1])


def _check_sum(left: Any, right: Any) -> None:
    if hasattr(left, "__len__") and hasattr(right, "__len__"):
        _check_size(len(left) + len(right))


_CHECKS: dict[str, Callable[[Any, Any], None]] = {
    "%": _check_remainder,
    "**": _check_power,
    "*": _check_product,
    "+": _check_sum,
}


def _check_size(size: int) -> None:
    if size > MOST_CHARACTERS:
        raise SecurityError(f"a text or list of it is longer than {MOST_CHARACTERS:,}")


# --- filters ------------------------------------------------------------------------------------


class _Counted:
    """The items of a loop. Their number is known when that of the whole is."""

    def __init__(self, whole: Any, budget: LoopBudget) -> None:
        self._whole, self._budget = whole, budget

    def __iter__(self) -> Iterator[Any]:
        for each in self._whole:
            self._budget.spend()
            yield each


class _SizedCounted(_Counted):
    def __len__(self) -> int:
        return len(self._whole)


@pass_context
def _counted(context: Context, whole: Any) -> Any:
    sized = hasattr(whole, "__len__")
    return (_SizedCounted if sized else _Counted)(whole, context[BUDGET])


def _join(values: Iterable[Any], separator: str = "", attribute: str | None = None) -> str:
    """One text of many; measured as it grows."""
    texts: list[str] = []
    size, has_markup = 0, isinstance(separator, Markup)
    for value in values:
        text = _finalize(value if attribute is None else value[attribute])
        text = text if isinstance(text, str) else str(text)
        has_markup |= isinstance(text, Markup)
        size += len(text) + len(separator)
        _check_size(size)
        texts.append(text)
    # Beside what is markup already, texts are escaped.
    return Markup(escape(separator)).join(texts) if has_markup else separator.join(texts)


def _replace(text: Any, old: str, new: str) -> str:
    whole = str(_finalize(text))
    _check_size(len(whole) + (whole.count(str(old)) if old else len(whole) + 1) * len(str(new)))
    return whole.replace(str(old), str(new))


def _date(value: Any, format: str = "%Y-%m-%d") -> str:
    """A date as its format says: `{{ seen|date("%d.%m.%Y") }}`; nothing for null."""
    if value is None:
        return ""
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    if len(format) > _MOST_FORMAT_CHARACTERS or not _DATE_FORMAT.fullmatch(format):
        raise SecurityError(f"{format[:_MOST_FORMAT_CHARACTERS]!r} is no format of dates, like '%d.%m.%Y'")
    text: str = value.strftime(format)
    return text


def _number(value: Any, decimals: int = 0) -> str:
    """A number with commas: `{{ price|number }}` is 549,000; nothing for null."""
    if value is None:
        return ""
    number = Decimal(value) if isinstance(value, str) else value
    return format(number, f",.{max(0, min(int(decimals), 30))}f")


def _plural(value: Any, one: str, many: str | None = None) -> str:
    """A number and what there is so many of: `{{ count|plural("house", "houses") }}`; also of rows."""
    number = len(value) if isinstance(value, RowsView | ListView | list | tuple) else value
    noun = one if number == 1 else f"{one}s" if many is None else many
    return _join([number, " ", noun])


def _finalize(value: Any) -> Any:
    """Return the text of a value: "" for null, dates and numbers as everywhere in a message."""
    if isinstance(value, str | Markup | Undefined | RowView | RowsView | ListView):
        return value
    if isinstance(value, list | tuple):
        return _join(value, ", ")
    try:
        return value_text(value)
    except (TypeError, AttributeError):
        return str(value)


_FILTERS: dict[str, Callable[..., Any]] = {
    "counted": _counted,
    "date": _date,
    "join": _join,
    "number": _number,
    "plural": _plural,
    "replace": _replace,
}
