"""XPath 1.0 as wrappers use it: checked before a page is read, and analysed for what it needs of a page.

lxml evaluates the paths. They can call the functions of XPath 1.0 and no others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal, TypeAlias

import msgspec

from aioflow.errors import SettingError, suggestion
from aioflow.wrappers.definition import Field
from aioflow.xml.guard import etree
from aioflow.xml.items import SimpleSteps

# fmt: off
_FUNCTIONS = (
    "last", "position", "count", "id", "local-name", "namespace-uri", "name", "string", "concat",
    "starts-with", "contains", "substring-before", "substring-after", "substring", "string-length",
    "normalize-space", "translate", "boolean", "not", "true", "false", "lang", "number", "sum",
    "floor", "ceiling", "round",
)
_AXES = (
    "ancestor", "ancestor-or-self", "attribute", "child", "descendant", "descendant-or-self", "following",
    "following-sibling", "namespace", "parent", "preceding", "preceding-sibling", "self",
)
# fmt: on
_NODE_TYPES = ("comment", "text", "processing-instruction", "node")
_INNER_AXES = frozenset({"attribute", "child", "descendant", "descendant-or-self", "namespace", "self"})
_WORD_OPERATORS = frozenset({"and", "or", "div", "mod"})

_TOKEN = re.compile(
    r"""(?P<space>\s+)
      | (?P<text>"[^"]*"|'[^']*')
      | (?P<number>\d+(?:\.\d*)?|\.\d+)
      | (?P<variable>\$\s*[^\W\d][\w.-]*(?::[^\W\d][\w.-]*)?)
      | (?P<name>(?:[^\W\d][\w.-]*:(?!:))?(?:[^\W\d][\w.-]*|(?<=:)\*))
      | (?P<sign>::|//|\.\.|!=|<=|>=|[()\[\].@,/|+\-=<>*])""",
    re.VERBOSE,
)
_PLAIN_NAME = re.compile(r"[^\W\d][\w.-]*")
# Behind these a name or `*` begins an operand; behind anything else it is an operator.
_BEFORE_OPERAND = frozenset(
    {"@", "::", "(", "[", ",", "/", "//", "|", "+", "-", "=", "!=", "<", "<=", ">", ">=", "*"}
)

_Kind: TypeAlias = Literal[
    "text", "number", "variable", "sign", "operator", "function", "type", "axis", "test"
]


class _Token(msgspec.Struct, frozen=True):
    kind: _Kind
    text: str
    offset: int


class XmlPath(msgspec.Struct, frozen=True, dict=True):
    """An XPath that was checked; `expression` is what lxml evaluates."""

    text: str
    expression: str
    namespaces: Mapping[str, str]
    is_inner: bool  # it looks at nothing outside of the element that it starts from
    is_absolute: bool
    gives_nodes: bool  # and not a number, a text or a truth value
    attribute: str | None  # when it is nothing but an attribute without namespace
    steps: SimpleSteps | None  # when it leads along named elements only
    degree: int = 0  # finding it takes steps of the order of (nodes of the page) to this power
    texts: int = 0  # how often it may put together all text of a node

    @cached_property
    def find(self) -> Callable[[Any], Any]:
        """Return the result of the path from an element: a list of nodes, or a value."""
        if self.attribute is not None:
            name = self.attribute
            return lambda element: [] if (value := element.get(name)) is None else [value]
        if self.steps is not None and len(self.steps.tags) == 2 and self.steps.tags[0] == _ROOT:
            tag = self.steps.tags[1]
            return lambda element: list(element.iterchildren(tag))
        return _xpath(self.expression, self.namespaces)

    def trace(self, element: Any) -> Any:
        """`find`, with texts that know their element."""
        return _xpath(self.expression, self.namespaces, smart_strings=True)(element)


def compile_xpath(text: str, namespaces: Mapping[str, str], any_namespace: bool = False) -> XmlPath:
    """The path that a text says; a SettingError with the offset of the mistake otherwise.

    With `any_namespace` a name without a prefix means elements and attributes of that name in whatever
    namespace.
    """
    tokens = list(_classified(text))
    if not tokens:
        raise SettingError("the XPath is empty; write . for the element itself", offset=0)
    for token in tokens:
        _check(token, namespaces)
    expression = _without_namespaces(tokens) if any_namespace else text
    try:
        _xpath(text, namespaces)
        # Wrong types and numbers of arguments show in use only.
        gives_nodes = isinstance(_xpath(expression, namespaces)(etree.Element("x")), list)
    except etree.XPathError as error:
        raise SettingError(f"bad XPath {text!r}: {_reason(error)}", offset=_offset(error, text)) from None
    return XmlPath(
        text,
        expression,
        dict(namespaces),
        all(map(_is_inner, tokens)) and not _has_root(tokens),
        tokens[0].text in ("/", "//"),
        gives_nodes,
        None if any_namespace else _only_attribute(tokens),
        _simple_steps(tokens, namespaces, any_namespace),
        _degree(tokens),
        _texts(tokens),
    )


def check_use(path: XmlPath, field: Field, *, is_inside: bool) -> XmlPath:
    """The path itself; a SettingError when it cannot be that of a field (EACH is one of that name)."""
    if path.is_absolute and is_inside:
        hint = f"{path.text!r} is looked for in the whole page; write .{path.text.strip()}, or say page"
        raise SettingError(hint, offset=0)
    if not path.gives_nodes and (field.fields or field.name == "EACH"):
        raise SettingError(f"{path.text!r} leads to a value and not to elements", offset=0)
    return path


def _xpath(
    expression: str, namespaces: Mapping[str, str], smart_strings: bool = False
) -> Callable[[Any], Any]:
    made: Callable[[Any], Any] = etree.XPath(
        expression, namespaces=dict(namespaces), regexp=False, smart_strings=smart_strings
    )
    return made


# --- tokens --------------------------------------------------------------------------------------


def _scanned(text: str) -> Iterator[tuple[str, str, int]]:
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            what = "a text without its end" if text[position] in "\"'" else f"unexpected {text[position]!r}"
            raise SettingError(f"bad XPath {text!r}: {what}", offset=position)
        if match.lastgroup != "space":
            yield str(match.lastgroup), match[0], position
        position = match.end()


def _classified(text: str) -> Iterator[_Token]:
    """The tokens; what a name is shows in what stands around it."""
    scanned = [*_scanned(text), ("end", "", len(text))]
    before: _Token | None = None
    for (kind, word, offset), (_, following, _) in pairwise(scanned):
        token = _Token(_kind(kind, word, before, following), word, offset)
        yield token
        before = token


def _kind(kind: str, word: str, before: _Token | None, following: str) -> _Kind:
    is_operand = _begins_operand(before)
    if word == "*":
        return "test" if is_operand else "operator"
    if kind != "name":
        return kind  # type: ignore[return-value]  # the names of the groups are kinds
    if not is_operand and word in _WORD_OPERATORS:
        return "operator"
    if following == "(":
        return "type" if word in _NODE_TYPES else "function"
    return "axis" if following == "::" else "test"


def _begins_operand(before: _Token | None) -> bool:
    return before is None or before.kind == "operator" or before.text in _BEFORE_OPERAND


def _check(token: _Token, namespaces: Mapping[str, str]) -> None:
    message = None
    if token.kind == "variable":
        message = f"there are no variables ({token.text})"
    elif token.kind == "function" and token.text not in _FUNCTIONS:
        message = f"unknown function {token.text}(){suggestion(token.text, _FUNCTIONS)}"
    elif token.kind == "axis" and token.text not in _AXES:
        message = f"unknown axis {token.text!r}{suggestion(token.text, _AXES)}"
    elif token.kind == "test" and (prefix := _prefix(token.text)) not in (None, "xml", *namespaces):
        message = f'unknown prefix {prefix!r}; say READ: xml namespace "{prefix}" "http://…"'
    if message is not None:
        raise SettingError(f"bad XPath: {message}", offset=token.offset)


def _prefix(name: str) -> str | None:
    return name.partition(":")[0] if ":" in name else None


def _is_inner(token: _Token) -> bool:
    if token.kind == "axis":
        return token.text in _INNER_AXES
    if token.kind == "function":
        return token.text not in ("id", "lang")
    return token.text != ".."


def _degree(tokens: list[_Token]) -> int:
    """Return how often one walk over nodes may stand inside of another.

    A walk is a step to more than children, a path from the root inside of a condition, or a union, in which
    nodes are looked for one by one. A comparison of two sets of nodes is two.
    """
    walks = walks_inside = depth = 0
    for place, token in enumerate(tokens):
        before = tokens[place - 1] if place else None
        depth += (token.text == "[") - (token.text == "]") if token.kind == "sign" else 0
        if token.kind in ("text", "test"):
            continue
        is_root = token.text == "/" and depth > 0 and _begins_operand(before)
        found = 0
        if token.text in _WIDE or is_root or (token.kind == "axis" and token.text not in _NARROW_AXES):
            found = 1
        elif token.text in _COMPARISONS and not _has_scalar(tokens, place):
            found = 2
        walks, walks_inside = (walks, walks_inside + found) if depth else (walks + found, walks_inside)
    # A condition is looked at for every node that it may let pass, by whatever step that was found.
    return max(walks, 1) + walks_inside if walks_inside else walks


_WIDE = frozenset({"//", "..", "|"})
_NARROW_AXES = frozenset({"attribute", "child", "namespace", "self"})
_COMPARISONS = frozenset({"=", "!=", "<", "<=", ">", ">="})
# Comparing 10,000 pairs of nodes takes some ten milliseconds.
_MOST_STEPS = 100_000


def _has_scalar(tokens: list[_Token], place: int) -> bool:
    """Return whether one side of a comparison is one value: a constant, an attribute or a result."""
    before, after = tokens[place - 1] if place else None, tokens[place + 1 : place + 2]
    if before is not None and (before.kind in ("text", "number") or _is_call(tokens, place - 1)):
        return True
    if place >= 2 and tokens[place - 2].text == "@" and (place == 2 or tokens[place - 3].text == "["):
        return True
    return any(
        token.kind in ("text", "number") or (token.kind == "function" and token.text != "id")
        for token in after
    )


def _is_call(tokens: list[_Token], end: int) -> bool:
    """Return whether the call of a function ends here."""
    depth = 0
    for place in range(end, -1, -1):
        depth += (tokens[place].text == ")") - (tokens[place].text == "(")
        if depth <= 0:
            return place > 0 and tokens[place - 1].kind == "function" and tokens[place - 1].text != "id"
    return False


def _texts(tokens: list[_Token]) -> int:
    """Return how often the text of a node with all in it may be put together, for one node."""
    return sum(
        (token.kind == "function" and token.text in _TEXT_FUNCTIONS)
        or (token.kind == "sign" and token.text == ".")
        for token in tokens
    )


_TEXT_FUNCTIONS = frozenset(_FUNCTIONS) - {
    *("last", "position", "count", "id", "local-name", "namespace-uri", "name", "boolean", "not", "true"),
    *("false", "lang"),
}


def is_steep(nodes: int, degree: int) -> bool:
    """Return whether a path of such a degree may block the event loop in a page of so many nodes."""
    return bool(nodes**degree > _MOST_STEPS)


def _has_root(tokens: list[_Token]) -> bool:
    """Return whether a path in it starts at the root: a slash where an operand begins."""
    befores = (None, *tokens)
    return any(
        token.kind == "sign" and token.text in ("/", "//") and _begins_operand(before)
        for before, token in zip(befores, tokens, strict=False)
    )


def _without_namespaces(tokens: list[_Token]) -> str:
    return " ".join(
        f'*[local-name() = "{token.text}"]'
        if token.kind == "test" and token.text != "*" and ":" not in token.text
        else token.text
        for token in tokens
    )


def _simple_steps(
    tokens: list[_Token], namespaces: Mapping[str, str], any_namespace: bool
) -> SimpleSteps | None:
    signs, names = tokens[0::2], tokens[1::2]
    if tokens[0].kind == "test":
        signs, names = tokens[1::2], tokens[0::2]
    slashes = [token.text for token in signs]
    if not names or any(token.kind != "test" or "*" in token.text for token in names):
        return None
    if len(tokens) > 1 and tokens[-1].kind != "test":
        return None
    is_anywhere = slashes[:1] == ["//"] and tokens[0].text == "//"
    if any(slash != "/" for slash in (slashes[1:] if is_anywhere else slashes)):
        return None
    tags = tuple(_tag(token.text, namespaces, any_namespace) for token in names)
    if tokens[0].kind == "test":
        # A relative path starts from the root element, so its steps are below that.
        return SimpleSteps((_ROOT, *tags), False)
    return SimpleSteps(tags, is_anywhere)


def _only_attribute(tokens: list[_Token]) -> str | None:
    if len(tokens) != 2 or tokens[0].text != "@" or not _PLAIN_NAME.fullmatch(tokens[1].text):
        return None
    return tokens[1].text


def _tag(name: str, namespaces: Mapping[str, str], any_namespace: bool) -> str:
    prefix, _, local = name.rpartition(":")
    if prefix:
        return f"{{{namespaces[prefix]}}}{local}" if prefix in namespaces else f"{{{_XML}}}{local}"
    return f"{{*}}{local}" if any_namespace else local


_ROOT = "{*}*"  # the element that a relative path starts from
_XML = "http://www.w3.org/XML/1998/namespace"


# --- what lxml says ------------------------------------------------------------------------------


def _reason(error: Any) -> str:
    text = str(error)
    return text[:1].lower() + text[1:]


def _offset(error: Any, text: str) -> int:
    """lxml counts bytes."""
    entries = list(error.error_log)
    column = entries[-1].column if entries else 0
    return min(len(text), len(text.encode()[: max(0, column)].decode("utf-8", "ignore")))
