"""Values of the script language: texts, numbers, lists, records and XML elements, and their functions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal, DecimalException
from typing import Any

from aioflow.errors import AioflowError

_NUMBER = re.compile(r"\s*[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*")
_DIGITS_AT_MOST = 1000
_BITS_AT_MOST = 4096
TEXT_AT_MOST = 10_000_000
_VALUES_AT_MOST = 1_000_000
_DEEPEST_ELEMENT = 200


class ScriptValueError(AioflowError):
    """A statement cannot be carried out; the interpreter adds the place."""


class XmlElement:
    """An XML element of a code block: a name, attributes, and texts and elements inside."""

    def __init__(self, name: str, attributes: Mapping[str, str] | None = None) -> None:
        if not _XML_NAME.fullmatch(name):
            raise ScriptValueError(f"{name!r} is no name for an XML element")
        self.name = name
        self.attributes: dict[str, str] = dict(attributes or {})
        self.children: list[XmlElement | str] = []

    def __repr__(self) -> str:
        return f"XmlElement({self.name!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, XmlElement):
            return NotImplemented
        return (self.name, self.attributes, self.children) == (other.name, other.attributes, other.children)

    __hash__ = None  # type: ignore[assignment]  # elements change

    def add(self, child: object) -> None:
        """Put a value at the end: an element, a text, or each value of a list."""
        if isinstance(child, list):
            for each in child:
                self.add(each)
        elif isinstance(child, XmlElement):
            if child is self:
                raise ScriptValueError("an element cannot stand in itself")
            self.children.append(child)
        elif child is not None:
            self.children.append(as_text(child))

    def lines(self, depth: int = 0) -> Iterable[str]:
        """Yield the element as indented lines of XML."""
        if depth > _DEEPEST_ELEMENT:
            raise ScriptValueError(f"the XML elements are nested more than {_DEEPEST_ELEMENT} levels deep")
        margin = "  " * depth
        written = "".join(f' {name}="{_escaped(text)}"' for name, text in self.attributes.items())
        start = f"{margin}<{self.name}{written}"
        if not self.children:
            yield f"{start}/>"
        elif all(isinstance(each, str) for each in self.children):
            text = "".join(_escaped(each) for each in self.children if isinstance(each, str))
            yield f"{start}>{text}</{self.name}>"
        else:
            yield f"{start}>"
            for each in self.children:
                if isinstance(each, XmlElement):
                    yield from each.lines(depth + 1)
                else:
                    yield f"{margin}  {_escaped(each)}"
            yield f"{margin}</{self.name}>"

    def __str__(self) -> str:
        return _bounded_text(each for line in self.lines() for each in (line, "\n")).removesuffix("\n")


_XML_NAME = re.compile(r"[^\W\d][\w.-]*(?::[^\W\d][\w.-]*)?")
_REPLACED = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"}
_SPECIAL = re.compile(r'[&<>"]|[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]')


def _escaped(text: str) -> str:
    # XML has no way to write control characters.
    return _SPECIAL.sub(lambda found: _REPLACED.get(found[0], "\ufffd"), text)


# --- conversions --------------------------------------------------------------------------------


def number_in(text: str) -> int | Decimal | None:
    """Return the number that a text is, or None."""
    if len(text) > _DIGITS_AT_MOST or not _NUMBER.fullmatch(text):
        return None
    stripped = text.strip()
    return Decimal(stripped) if "." in stripped else int(stripped)


def as_number(value: object) -> int | Decimal | None:
    """Return a number, or the number that a text is, or None."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | Decimal):
        return value
    if isinstance(value, float):
        return Decimal(repr(value))
    return number_in(value) if isinstance(value, str) else None


def as_text(value: object) -> str:
    """Return a value as `println` writes it."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        return format(value.normalize(), "f") if value == value.to_integral_value() else format(value, "f")
    if isinstance(value, list | dict):
        return _bounded_text(_pieces(value, 0))
    return str(value)


def _pieces(value: object, depth: int) -> Iterator[str]:
    if depth > _DEEPEST_ELEMENT:
        raise ScriptValueError(f"the value is nested more than {_DEEPEST_ELEMENT} levels deep")
    if isinstance(value, list | dict):
        names = value if isinstance(value, dict) else [""] * len(value)
        for number, (name, each) in enumerate(
            zip(names, value.values() if isinstance(value, dict) else value, strict=True)
        ):
            yield ", " if number else ""
            yield f"{name}: " if name else ""
            yield from _pieces(each, depth + 1)
    else:
        yield as_text(value)


def _bounded_text(pieces: Iterable[str]) -> str:
    """Return the pieces as one text. What stands in itself many times over must not fill the memory."""
    found: list[str] = []
    length = 0
    for each in pieces:
        found.append(each)
        length += len(each) + 1
        if length > TEXT_AT_MOST:
            raise ScriptValueError(f"the text is longer than {TEXT_AT_MOST:,} characters")
    return "".join(found)


def is_true(value: object) -> bool:
    """Return whether a condition holds: null, false, 0 and what is empty do not."""
    return bool(value)


def shown(value: object) -> str:
    """Return a value as messages name it."""
    if value is None:
        return "null"
    if isinstance(value, str):
        return repr(value if len(value) <= 40 else f"{value[:40]}…")
    if isinstance(value, bool | int | Decimal | float):
        return as_text(value)[:60]
    return {list: "a list", dict: "a record", XmlElement: "an XML element"}.get(
        type(value), type(value).__name__
    )


# --- operators ----------------------------------------------------------------------------------


def arithmetic(sign: str, left: object, right: object) -> object:
    """Return `left sign right`; `+` joins texts unless one side is a number and the other is one as well."""
    has_number = isinstance(left, _NUMERIC) or isinstance(right, _NUMERIC)
    has_list = isinstance(left, list) or isinstance(right, list)
    if sign == "+" and (has_list or not has_number):
        return _joined(left, right)
    one, other = as_number(left), as_number(right)
    if one is None or other is None:
        if sign == "+" and (isinstance(left, str) or isinstance(right, str)):
            return _joined(left, right)
        raise ScriptValueError(f"'{sign}' needs numbers, not {shown(left)} and {shown(right)}")
    try:
        return _bounded(_OPERATIONS[sign](one, other))
    except (ZeroDivisionError, DecimalException) as error:
        problem = "division by zero" if other == 0 else "the result is no number"
        raise ScriptValueError(f"{problem}: {shown(left)} {sign} {shown(right)}") from error


_NUMERIC = (int, Decimal, float)


def _divided(one: int | Decimal, other: int | Decimal) -> int | Decimal:
    if isinstance(one, int) and isinstance(other, int) and one % other == 0:
        return one // other
    return Decimal(one) / Decimal(other)


_OPERATIONS: Mapping[str, Callable[[Any, Any], int | Decimal]] = {
    "+": lambda one, other: one + other,
    "-": lambda one, other: one - other,
    "*": lambda one, other: one * other,
    "/": _divided,
    "%": lambda one, other: one % other,
}


def _bounded(value: int | Decimal) -> int | Decimal:
    if isinstance(value, int) and value.bit_length() > _BITS_AT_MOST:
        raise ScriptValueError("the number is too large")
    return value


def _joined(left: object, right: object) -> object:
    if isinstance(left, list) or isinstance(right, list):
        values = [*_listed(left), *_listed(right)]
        if len(values) > _VALUES_AT_MOST:
            raise ScriptValueError(f"the list has more than {_VALUES_AT_MOST:,} values")
        return values
    if not (isinstance(left, str | None) and isinstance(right, str | None)) and not (
        isinstance(left, str) or isinstance(right, str)
    ):
        raise ScriptValueError(f"'+' needs numbers, texts or lists, not {shown(left)} and {shown(right)}")
    text = as_text(left) + as_text(right)
    if len(text) > TEXT_AT_MOST:
        raise ScriptValueError(f"the text is longer than {TEXT_AT_MOST:,} characters")
    return text


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else [] if value is None else [value]


def compared(sign: str, left: object, right: object) -> bool:
    """Return `left sign right`; a text that is compared with a number is converted."""
    if isinstance(left, _NUMERIC) != isinstance(right, _NUMERIC):
        left, right = _converted(left), _converted(right)
    elif isinstance(left, float) or isinstance(right, float):
        left, right = as_number(left), as_number(right)
    if sign in ("==", "!="):
        return (left == right) is (sign == "==")
    kinds = {_order_of(left), _order_of(right)}
    if "" in kinds:
        raise ScriptValueError(f"{shown(left)} and {shown(right)} have no order")
    # Null, and a text that is no number beside a number, are neither less nor more.
    return len(kinds) == 1 and "null" not in kinds and _ORDERS[sign](left, right)


def _order_of(value: object) -> str:
    if value is None:
        return "null"
    return "text" if isinstance(value, str) else "number" if isinstance(value, int | Decimal) else ""


_ORDERS: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": lambda one, other: one < other,
    "<=": lambda one, other: one <= other,
    ">": lambda one, other: one > other,
    ">=": lambda one, other: one >= other,
}


def _converted(value: object) -> object:
    """Return the number in a text; a text that is none stays one, and is unequal to every number."""
    if isinstance(value, str):
        number = number_in(value)
        return value if number is None else number
    return value


# --- functions and members ----------------------------------------------------------------------


def length_of(value: object) -> int:
    if value is None:
        return 0
    if isinstance(value, str | list | dict):
        return len(value)
    if isinstance(value, XmlElement):
        return len(value.children)
    raise ScriptValueError(f"{shown(value)} has no length")


def _xml_element(name: object, *content: object) -> XmlElement:
    element = XmlElement(as_text(name))
    for each in content:
        element.add(each)
    return element


def _number(value: object) -> int | Decimal | None:
    return as_number(value)


def _text(*values: object) -> str:
    return "".join(map(as_text, values))


# Functions without effects. `print` and `println` belong to the interpreter, which has the output.
BUILT_IN: Mapping[str, Callable[..., object] | None] = {
    "xml_element": _xml_element,
    "record": lambda: {},
    "list": lambda *values: list(values),
    "number": _number,
    "text": _text,
    "length": length_of,
    "print": None,
    "println": None,
}
# Names of functions and methods that a condition must not call.
EFFECTS = frozenset({"print", "println", "prettyPrint", "addChild", "add"})


def member_of(owner: object, name: str) -> object:
    """Return `owner.name`."""
    if name == "length" and not (isinstance(owner, dict) and name in owner):
        return length_of(owner)
    if isinstance(owner, dict):
        return owner.get(name)
    if isinstance(owner, XmlElement):
        return owner.attributes.get(name)
    if owner is None:
        return None
    raise ScriptValueError(f"{shown(owner)} has no member '{name}'")


def set_member(owner: object, name: str, value: object) -> None:
    """Carry out `owner.name = value`."""
    if isinstance(owner, dict):
        owner[name] = value
    elif isinstance(owner, XmlElement):
        if not _XML_NAME.fullmatch(name):
            raise ScriptValueError(f"{name!r} is no name for an XML attribute")
        owner.attributes[name] = as_text(value)
    else:
        raise ScriptValueError(f"{shown(owner)} has no members that could be set")


def element_of(owner: object, index: object) -> object:
    """Return `owner[index]`; null past the end."""
    if isinstance(owner, dict):
        return owner.get(as_text(index))
    number = as_number(index)
    if not isinstance(number, int) or not isinstance(owner, list | str):
        raise ScriptValueError(f"{shown(owner)} has no element {shown(index)}")
    return owner[number] if -len(owner) <= number < len(owner) else None


TEXT_METHODS: Mapping[str, Callable[..., object]] = {
    "trim": lambda text: text.strip(),
    "upper": lambda text: text.upper(),
    "lower": lambda text: text.lower(),
    "contains": lambda text, part: as_text(part) in text,
    "startsWith": lambda text, part: text.startswith(as_text(part)),
    "endsWith": lambda text, part: text.endswith(as_text(part)),
    "replace": lambda text, old, new: _replaced(text, as_text(old), as_text(new)),
    "split": lambda text, part: text.split(as_text(part)) if as_text(part) else text.split(),
    "length": len,
}


def _replaced(text: str, old: str, new: str) -> str:
    if len(text) + text.count(old) * len(new) > TEXT_AT_MOST:
        raise ScriptValueError(f"the text is longer than {TEXT_AT_MOST:,} characters")
    return text.replace(old, new)
