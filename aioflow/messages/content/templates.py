"""Templates of messages (Jinja2): the settings BODY and BODY_HTML, whose mistakes are found before a run.

`sandbox` keeps templates from doing harm.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from html import escape, unescape
from itertools import takewhile
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from aioflow.errors import AioflowError, SettingError, suggestion
from aioflow.relation import Schema, unknown_attribute

if TYPE_CHECKING:
    from jinja2 import nodes

    from aioflow.messages.content.sandbox import LoopBudget, Sandbox

_FILE_NAME = "<template>"
_IDENTIFIER = re.compile(r"[^\W\d]\w*")
_LINKING = re.compile(
    r"""(\b(?:href|src|action|formaction|background|poster|xlink:href)\s*=\s*)("[^"]*"|'[^']*'|[^\s>"']+)""",
    re.IGNORECASE,
)
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*):", re.IGNORECASE)
_SAFE_SCHEMES = ("http", "https", "mailto", "tel", "cid")
_BLANKS = re.compile(r"[\x00-\x20\x7f-\xa0]+")


class TemplateError(AioflowError):
    """A template could not be filled in."""


class BodyTemplate(msgspec.Struct, frozen=True):
    """The text of a message with `{{ … }}` in it."""

    kind_name: ClassVar[str] = "a template"
    html: ClassVar[bool] = False

    text: str
    schema: Schema | None

    @classmethod
    def bind(cls, value: Any, inputs: Sequence[Schema | None]) -> BodyTemplate:
        if not isinstance(value, str):
            raise SettingError(f"must be {cls.kind_name} in quotes, not {value!r}")
        template = cls(value, inputs[0] if inputs else None)
        template._tree()
        return template

    def check(
        self, *, each: bool, relations: Mapping[str, Schema | None] | None = None, table: bool = True
    ) -> None:
        """Look for names that do not exist: of tuples with `each`, else of the whole relation.

        `relations` are those that are known by a name of their own; `table` says whether there is one.
        """
        from jinja2.meta import find_undeclared_variables

        tree = self._tree()
        if each and self.schema is None:
            return
        relations = {} if each else {"rows": self.schema} if relations is None else relations
        known = {"table"} if table else set()
        known |= {"row"} if each else {"count", *relations}
        attributes = identifiers(self.schema) if each and self.schema is not None else {}
        for name in sorted(find_undeclared_variables(tree)):
            if name not in known and name not in attributes:
                if each and self.schema is not None and self.schema.open:
                    self.schema.position(name)  # asks for it
                message = self._unknown(name, known | set(attributes), each)
                raise SettingError(message, offset=self._find(name))
        self._check_attributes(tree, {"row": self.schema} if each else {}, relations)

    def render(self, variables: Mapping[str, Any], budget: LoopBudget) -> str:
        """The text with these variables; a TemplateError says in which line it went wrong."""
        from aioflow.messages.content.sandbox import BUDGET, MOST_CHARACTERS

        pieces, size = [], 0
        try:
            for piece in _compiled(self.text, self.html).generate({**variables, BUDGET: budget}):
                size += len(piece)
                if size > MOST_CHARACTERS:
                    raise TemplateError(f"it gives more than {MOST_CHARACTERS:,} characters")
                pieces.append(piece)
        except Exception as error:
            line = _line_of(error)
            place = f", line {line}" if line is not None and "\n" in self.text else ""
            raise TemplateError(f"the template{place}: {_reason(error)}") from error
        return safe_links("".join(pieces)) if self.html else "".join(pieces)

    # --- mistakes -------------------------------------------------------------------------------

    def _tree(self) -> nodes.Template:
        from jinja2 import TemplateSyntaxError, nodes

        try:
            tree = _sandbox(self.html).parse(self.text)
            for kind, reason in _refused():
                found = tree.find(kind)
                if found is not None:
                    raise SettingError(reason, offset=self._line_start(found.lineno))
            loop = next((each for each in tree.find_all(nodes.For) if each.recursive), None)
            if loop is not None:
                raise SettingError(
                    "a recursive loop is not for messages", offset=self._line_start(loop.lineno)
                )
            # Unknown filters and tests are found by what makes code of it.
            _compiled(self.text, self.html)
            return tree
        except TemplateSyntaxError as error:
            raise SettingError(f"{error.message}", offset=self._line_start(error.lineno)) from None
        except RecursionError:
            raise SettingError("the template is nested too deeply") from None

    def _check_attributes(
        self,
        tree: nodes.Template,
        rows: Mapping[str, Schema | None],
        relations: Mapping[str, Schema | None],
    ) -> None:
        """`house.pirce`, where `house` is a row, or goes through those of a relation."""
        from jinja2 import nodes

        for name, attribute in _uses(tree):
            self._check_attribute(rows.get(name), attribute)
        for loop in tree.find_all(nodes.For):
            target, source = loop.target, loop.iter
            if isinstance(source, nodes.Name) and isinstance(target, nodes.Name):
                for name, attribute in _uses(loop):
                    if name == target.name:
                        self._check_attribute(relations.get(source.name), attribute)

    def _check_attribute(self, schema: Schema | None, name: str) -> None:
        from aioflow.messages.content.sandbox import attribute_of

        if schema is not None and attribute_of(schema, name) is None:
            if schema.open:
                schema.position(name)  # asks for it
            raise SettingError(unknown_attribute(name, schema), offset=self._find(name))

    def _unknown(self, name: str, known: set[str], each: bool) -> str:
        hint = suggestion(name, known)
        if not hint and not each and self.schema is not None and name in identifiers(self.schema):
            hint = f"; say EACH for a message a tuple, or {{% for row in rows %}}…row.{name}…{{% endfor %}}"
        return f"unknown name {name!r} in the template{hint} (there are: {', '.join(sorted(known))})"

    def _find(self, name: str) -> int | None:
        """Where a name stands, within the marks of a template."""
        for mark in re.finditer(r"\{[{%].*?[%}]\}", self.text, re.DOTALL):
            found = re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-])").search(self.text, *mark.span())
            if found:
                return found.start()
        return None

    def _line_start(self, line: int) -> int:
        before = sum(len(each) for each in self.text.splitlines(keepends=True)[: line - 1])
        return before + len(list(takewhile(str.isspace, self.text[before:].partition("\n")[0])))


class HtmlTemplate(BodyTemplate, frozen=True):
    """The same for HTML: what comes from data is escaped."""

    kind_name: ClassVar[str] = "a template of HTML"
    html: ClassVar[bool] = True


def identifiers(schema: Schema) -> dict[str, str]:
    """The attributes of a schema that can be variables of a template, by the names that they then have."""
    named = {name.replace("-", "_"): name for name in schema.names}
    named |= {name: name for name in schema.names}
    return {name: attribute for name, attribute in named.items() if _IDENTIFIER.fullmatch(name)}


def safe_links(text: str) -> str:
    """HTML whose links lead to the web or to mail; what else data made of them leads nowhere."""

    def replaced(found: re.Match[str]) -> str:
        link = _BLANKS.sub("", unescape(found[2].strip("\"'")))
        scheme = _SCHEME.match(link)
        unsafe = scheme is not None and scheme[1].lower() not in _SAFE_SCHEMES
        return f'{found[1]}"#"' if unsafe else f'{found[1]}"{escape(link)}"' if scheme else found[0]

    return _LINKING.sub(replaced, text)


def _uses(node: nodes.Node) -> Iterator[tuple[str, str]]:
    """Yield the uses of variables: the name of one, and an attribute."""
    from jinja2 import nodes

    for dotted in node.find_all(nodes.Getattr):
        if isinstance(dotted.node, nodes.Name):
            yield dotted.node.name, dotted.attr
    for found in node.find_all(nodes.Getitem):
        name, argument = found.node, found.arg
        if isinstance(name, nodes.Name) and isinstance(argument, nodes.Const):
            yield name.name, str(argument.value)


def _refused() -> Iterator[tuple[Any, str]]:
    from jinja2 import nodes

    outside = "a template stands alone: it can neither include nor import nor extend another"
    yield (nodes.Include, nodes.Import, nodes.FromImport, nodes.Extends), outside
    yield (nodes.ScopedEvalContextModifier, nodes.EvalContextModifier), "values are always escaped in HTML"


@cache
def _sandbox(html: bool) -> Sandbox:
    from aioflow.messages.content.sandbox import Sandbox

    return Sandbox(html=html)


@lru_cache(maxsize=64)
def _compiled(text: str, html: bool) -> Any:
    from jinja2 import Template

    from aioflow.messages.content.sandbox import guarded

    sandbox = _sandbox(html)
    code = sandbox.compile(guarded(sandbox.parse(text)), filename=_FILE_NAME)
    return Template.from_code(sandbox, code, dict(sandbox.globals))


def _line_of(error: BaseException) -> int | None:
    trace, line = error.__traceback__, None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == _FILE_NAME:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def _reason(error: Exception) -> str:
    if isinstance(error, TemplateError | RecursionError):
        return "it calls itself too deeply" if isinstance(error, RecursionError) else str(error)
    return str(error) or type(error).__name__
