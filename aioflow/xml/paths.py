"""Paths into XML as `xml2rel` takes them: to the iterating elements, and from these to attributes of tuples.

A name without a prefix means elements in the namespace of the iterating element. `dc:date` takes the prefix
as the document declares it, `{http://purl.org/dc/elements/1.1/}date` names the namespace itself, and a name
in backticks is that of an attribute as `rel2xml` writes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import msgspec

from aioflow.errors import SettingError, suggestion
from aioflow.relation import Schema, Type
from aioflow.xml.items import SimpleSteps
from aioflow.xml.names import attribute_name, element_name, is_element_name

_NAME = r"(?:`[^`]+`|\{[^{}]*\}[^\s,/@`{}:]+|[^\s,/@`{}:]+(?::[^\s,/@`{}:]+)?)"
_STEPS = re.compile(rf"\s*(?P<root>//?)?(?P<steps>{_NAME}(?:/{_NAME})*)\s*")
_PATH = re.compile(
    rf"\s*(?P<path>(?:{_NAME}/)*(?:@?{_NAME}|\.))"
    r"(?:\s+as\s+(?P<name>`[^`]+`|[^\s,`]+))?(?:\s+(?P<type>[A-Za-z]+))?\s*",
    re.IGNORECASE,
)
_STEP = re.compile(_NAME)


class ElementName(msgspec.Struct, frozen=True):
    """The name of an element or attribute in a path: with a prefix, a namespace, or neither."""

    local: str
    prefix: str | None = None
    namespace: str | None = None

    @classmethod
    def of(cls, text: str) -> ElementName:
        """Return the name that a text says; raise a SettingError if it is none."""
        if text.startswith("`"):
            return cls(element_name(text[1:-1]))
        namespace, is_named, local = text[1:].rpartition("}") if text.startswith("{") else ("", "", text)
        prefix, has_prefix, local = local.rpartition(":")
        if text == "..":
            raise SettingError("a path leads down only: iterate over the parent instead")
        for part in (local, prefix) if has_prefix else (local,):
            if not is_element_name(part):
                raise SettingError(f"{part!r} is no name of an XML element")
        return cls(local, prefix or None, namespace if is_named else None)

    def is_name_of(self, element: Any, home: str) -> bool:
        """Return whether an element has this name; names without prefix are in the namespace `home`."""
        namespace, local = split_tag(element.tag)
        if local != self.local:
            return False
        if self.namespace is not None:
            return namespace == self.namespace
        if self.prefix is not None:
            return bool(element.nsmap.get(self.prefix, "") == namespace)
        return namespace == home

    def value_in(self, element: Any) -> str | None:
        """Return the value of the XML attribute of this name; without a prefix it is in no namespace."""
        namespace = self.namespace
        if self.prefix is not None:
            namespace = _XML if self.prefix == "xml" else element.nsmap.get(self.prefix)
            if namespace is None:
                return None
        value: str | None = element.get(f"{{{namespace}}}{self.local}" if namespace else self.local)
        return value


_XML = "http://www.w3.org/XML/1998/namespace"


def split_tag(tag: str) -> tuple[str, str]:
    """Return the namespace and the local name of a tag in lxml's notation."""
    namespace, _, local = tag.rpartition("}")
    return namespace[1:], local


class ItemPath(msgspec.Struct, frozen=True):
    """The path to the iterating elements.

    `house` are elements of that name at any depth, but none inside of another; `//house` are those too;
    `/catalogue/house` begins at the root, `catalogue/house` anywhere.
    """

    kind_name: ClassVar[str] = "the name of an element, or a path to it"

    names: tuple[ElementName, ...]
    is_absolute: bool = False
    is_outermost: bool = True

    @classmethod
    def bind(cls, value: Any, inputs: Sequence[Schema | None]) -> ItemPath:
        found = _STEPS.fullmatch(value) if isinstance(value, str) else None
        if found is None:
            raise SettingError(f"must be {cls.kind_name} such as house or catalogue/house, not {value!r}")
        names = tuple(ElementName.of(step[0]) for step in _STEP.finditer(found["steps"]))
        return cls(names, found["root"] == "/", not found["root"])

    @property
    def steps(self) -> SimpleSteps:
        """The path as tags, of any namespace where only a prefix tells it."""
        tags = (
            f"{{{'*' if name.namespace is None else name.namespace}}}{name.local}"
            if name.namespace != ""
            else name.local
            for name in self.names
        )
        return SimpleSteps(tuple(tags), not self.is_absolute)

    def leads_to(self, element: Any) -> bool:
        """Return whether the prefixes in the path are those of the element and the ones around it."""
        for name in reversed(self.names):
            if name.prefix is not None and not name.is_name_of(element, ""):
                return False
            element = element.getparent()
        return True


class AttributePath(msgspec.Struct, frozen=True):
    """The path to one attribute of the tuples: elements, and at the end perhaps an XML attribute."""

    name: str
    elements: tuple[ElementName, ...]
    attribute: ElementName | None = None
    kind: Type | None = None


class AttributePaths(tuple[AttributePath, ...]):
    """A setting that lists paths, `price number, address/city, @id as id`."""

    kind_name: ClassVar[str] = "a list of elements"

    @classmethod
    def bind(cls, value: Any, inputs: Sequence[Schema | None]) -> AttributePaths:
        if not isinstance(value, str) or not value.strip():
            raise SettingError(f"must be {cls.kind_name} such as price, address/city, @id, not {value!r}")
        return cls(_paths(value))

    @property
    def schema(self) -> Schema:
        """The attributes of the tuples."""
        return Schema(tuple(path.name for path in self), tuple(path.kind for path in self))


def _paths(text: str) -> Iterator[AttributePath]:
    position = 0
    seen: set[str] = set()
    while True:
        found = _PATH.match(text, position)
        end = len(text) if found is None else found.end()
        if found is None or text[end : end + 1] not in ("", ","):
            hint = "expected a path such as price, address/city, @id or title as name, and a comma after it"
            raise SettingError(hint, offset=_start(text, position if found is None else end))
        try:
            path = _path(found)
        except SettingError as error:
            raise SettingError(error.message, offset=found.start("path")) from None
        if path.name in seen:
            raise SettingError(
                f"attribute {path.name!r} appears twice: name one of them, {found['path']} as …",
                offset=found.start("path"),
            )
        seen.add(path.name)
        yield path
        if end == len(text):
            return
        position = end + 1


def _start(text: str, position: int) -> int:
    return position + len(text[position:]) - len(text[position:].lstrip())


def _path(found: re.Match[str]) -> AttributePath:
    kind = found["type"]
    if kind is not None and kind.lower() not in list(Type):
        raise SettingError(
            f"unknown type {kind!r}{suggestion(kind, map(str, Type))} (types: {', '.join(Type)})"
        )
    steps = found["path"].rpartition("/") if not found["path"].endswith("`") else ("", "", found["path"])
    names = _names(found["path"])
    last = names[-1] if names else None
    attribute = last if last is not None and "@" in found["path"] else None
    if found["name"] is not None:
        name = found["name"].strip("`")
    elif last is None or steps[2] == ".":
        raise SettingError("the element itself needs a name: . as …")
    else:
        name = attribute_name(last.local)
    elements = names if attribute is None else names[:-1]
    return AttributePath(name, elements, attribute, None if kind is None else Type(kind.lower()))


def _names(path: str) -> tuple[ElementName, ...]:
    return tuple(ElementName.of(step[0]) for step in _STEP.finditer(path) if step[0] != ".")
