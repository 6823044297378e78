"""From data to text: plans and files in the one layout that `aioflow fmt` gives.

The pieces of a statement or a header entry share one line if they fit there; otherwise the line is broken.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import TypeAlias

from aioflow.errors import InputError, PlanError
from aioflow.language.kinds import end_of_body, item_kinds
from aioflow.language.literals import write_constant
from aioflow.language.parser import OWN_CLAUSES, read_text
from aioflow.language.scanner import CONSTANT, END, Scanner, open_source
from aioflow.language.splitter import HEADER
from aioflow.plan import (
    InputDeclaration,
    Item,
    Option,
    Parameter,
    Plan,
    PlanFile,
    Setting,
    Statement,
    Use,
    Variable,
    Word,
    is_name,
    is_word,
)
from aioflow.relation import Schema
from aioflow.source import Source, Span

# A key and its values; a flag has none.
Clause: TypeAlias = tuple[str, Sequence[str]]
WIDTH = 100
STEP = "  "


def fits(lines: Iterable[str]) -> bool:
    """Return whether no line is too long; a string over several lines counts line by line."""
    return all(len(part) <= WIDTH for line in lines for part in line.split("\n"))


def fill(items: Sequence[str], indent: str) -> list[str]:
    """Items with commas between them, as many on each line as fit."""
    lines: list[str] = []
    for number, item in enumerate(items, 1):
        text = item if number == len(items) else f"{item},"
        if lines and fits([f"{lines[-1]} {text}"]):
            lines[-1] += f" {text}"
        else:
            lines.append(indent + text)
    return lines


def entry_lines(key: str, values: Sequence[str], indent: str) -> list[str]:
    """`KEY: values`, the values on lines of their own when they do not fit."""
    line = f"{indent}{key}: {', '.join(values)}".rstrip()
    return [line] if fits([line]) else [f"{indent}{key}:", *fill(values, indent + STEP)]


def statement_lines(
    operator: str, arguments: Sequence[str], outputs: Sequence[str], clauses: Sequence[Clause], indent: str
) -> list[str]:
    """A statement in the first of these forms that fits: on one line, clauses below it, all of it broken."""
    head = f"{indent}{operator} ({_inside(arguments, outputs)})"
    broken_head = [
        f"{indent}{operator} (",
        *fill(arguments, indent + STEP),
        *_output_lines(outputs, indent + STEP),
        f"{indent})",
    ]
    forms = [
        _with_clauses(lines, clauses, indent, broken)
        for lines in ([head], broken_head)
        for broken in (False, True)
    ]
    # A constant that is too long by itself is no reason to break the clauses as well.
    return next(filter(fits, forms), forms[-2] if fits(forms[-2][-1:]) else forms[-1])


def _inside(arguments: Sequence[str], outputs: Sequence[str]) -> str:
    if not outputs:
        return ", ".join(arguments)
    return f"{', '.join(arguments)} : {', '.join(outputs)}".lstrip()


def _output_lines(outputs: Sequence[str], indent: str) -> list[str]:
    lines = fill(outputs, indent + STEP)
    return [f"{indent}: {lines[0].lstrip()}", *lines[1:]] if lines else []


def _with_clauses(head: list[str], clauses: Sequence[Clause], indent: str, broken: bool) -> list[str]:
    if not clauses:
        return head
    if not broken:
        listed = "; ".join(line for clause in clauses for line in _clause_lines(clause, "", broken=False))
        return [*head[:-1], f"{head[-1]} {{{listed}}}"]
    lines = [line for clause in clauses for line in _clause_lines(clause, indent + STEP, broken=True)]
    return [*head[:-1], f"{head[-1]} {{", *lines, f"{indent}}}"]


def _clause_lines(clause: Clause, indent: str, broken: bool) -> list[str]:
    key, values = clause
    if not values:
        return [f"{indent}{key}"]
    return entry_lines(key, values, indent) if broken else [f"{indent}{key}: {', '.join(values)}"]


_LONG_LIST = 60
_COMMENT_MARKS = ("#", "//", "/*")


def print_plan(plan: Plan) -> str:
    """A plan as text; reading it gives an equal plan. An InputError for what no text can say."""
    return _Printer().file(PlanFile((plan,)))


def print_file(plan_file: PlanFile) -> str:
    """A file as text; reading it gives an equal one."""
    return _Printer().file(plan_file)


def format_text(text: str | bytes, name: str = "<plan>") -> str:
    """A text in its canonical layout, with all its comments; a PlanError when it has mistakes.

    A file that is the body of one item stays as it is.
    """
    if item_kinds.of_file(name) is not None:
        source, mistakes = open_source(text, name)
        if mistakes:
            raise PlanError(mistakes.diagnostics())
        return source.text
    plan_file, diagnostics = read_text(text, name, contents=False)
    if diagnostics:
        raise PlanError(diagnostics)
    return _Printer(keep_literals=True).file(plan_file)


class _Printer:
    """Collects lines. With `keep_literals` strings and numbers stay as their source wrote them."""

    def __init__(self, keep_literals: bool = False) -> None:
        self._keep_literals = keep_literals
        self._lines: list[str] = []

    def file(self, plan_file: PlanFile) -> str:
        previous: object = None
        for entry in plan_file.entries:
            blank = entry.comments[:1] == ("",) or not (isinstance(entry, Use) and isinstance(previous, Use))
            if previous is not None and blank:
                self._lines.append("")
            self._comments(_without_first_blank(entry.comments), "")
            self._entry(entry)
            previous = entry
        closing = _without_last_blank(plan_file.closing_comments)
        self._comments(closing if self._lines else _without_first_blank(closing), "")
        return "".join(f"{line}\n" for line in self._lines)

    def _entry(self, entry: Plan | Item | Use) -> None:
        if isinstance(entry, Use):
            self._add([f"USE {self._constant(entry.path, entry.span)}"], entry.trailing_comment)
        elif isinstance(entry, Item):
            self._item(entry)
        else:
            self._plan(entry)

    # --- lines and comments ---------------------------------------------------------------------

    def _add(self, lines: Sequence[str], trailing: str | None = None) -> None:
        self._lines.extend(lines)
        if trailing:
            self._lines[-1] += f"  {trailing}"

    def _comments(self, comments: Iterable[str], indent: str) -> None:
        for comment in comments:
            marked = comment if not comment or comment.startswith(_COMMENT_MARKS) else f"# {comment}"
            self._lines.extend(f"{indent}{line}" if line else "" for line in marked.split("\n"))

    # --- plans ----------------------------------------------------------------------------------

    def _plan(self, plan: Plan) -> None:
        if not is_word(plan.name):
            raise InputError(f"{plan.name!r} cannot be the name of a plan")
        trailing = plan.trailing_comments
        self._add([f"PLAN {plan.name}"], trailing.get("PLAN"))
        self._labelled(plan, "{", ["{"], "", first=True)
        entries = self._header(plan)
        for number, (key, values) in enumerate(entries):
            self._labelled(plan, key, entry_lines(key, values, STEP), STEP, first=number == 0)
        if entries:
            self._lines.append("")
        self._labelled(plan, "BODY", [f"{STEP}BODY"], STEP, first=True)
        self._labelled(plan, "BODY {", [f"{STEP}{{"], STEP, first=True)
        self._statements(plan.statements)
        self._labelled(plan, "BODY }", [f"{STEP}}}"], STEP, last=True)
        self._labelled(plan, "}", ["}"], "", last=True)

    def _labelled(
        self,
        plan: Plan,
        label: str,
        lines: list[str],
        indent: str,
        *,
        first: bool = False,
        last: bool = False,
    ) -> None:
        comments = plan.closing_comments if label == "}" else plan.header_comments.get(label, ())
        if first:
            comments = _without_first_blank(comments)
        if last:
            comments, indent = _without_last_blank(comments), indent + STEP
        self._comments(comments, indent)
        self._add(lines, plan.trailing_comments.get(label))

    def _header(self, plan: Plan) -> list[tuple[str, list[str]]]:
        entries: dict[str, list[str]] = {
            "INPUT": [self._input(each) for each in plan.inputs],
            "OUTPUT": [_variable(each) for each in plan.outputs],
            "PARAM": [self._parameter(each) for each in plan.parameters],
            "MAX_DEPTH": _max_depth(plan),
            "ONCE": [] if plan.once is None else [self._constant(plan.once, plan.once_span)],
        }
        for option in plan.options:
            if option.name in entries or option.name not in HEADER or not option.values:
                raise InputError(f"{option.name!r} cannot be an option of a plan")
            entries[option.name] = self._values(option)
        return [
            (key, entries.get(key, [])) for key in HEADER if entries.get(key) or plan.header_comments.get(key)
        ]

    def _input(self, declaration: InputDeclaration) -> str:
        name = _name(declaration.name)
        return name if declaration.schema is None else f"{name} ({_attributes(declaration.schema)})"

    def _parameter(self, parameter: Parameter) -> str:
        name = _name(parameter.name)
        if not parameter.required:
            return f"{name} = {self._constant(parameter.default, parameter.default_span)}"
        if parameter.default is not None:
            raise InputError(f"parameter {name!r} cannot be required and have a default")
        return name

    # --- statements -----------------------------------------------------------------------------

    def _statements(self, statements: Sequence[Statement]) -> None:
        for number, statement in enumerate(statements):
            comments = statement.comments if number else _without_first_blank(statement.comments)
            self._comments(comments, STEP * 2)
            if not is_word(statement.operator):
                raise InputError(f"{statement.operator!r} cannot be the name of an operator")
            lines = statement_lines(
                statement.operator,
                [self._argument(each) for each in statement.arguments],
                [_variable(each) for each in statement.outputs],
                self._clauses(statement),
                STEP * 2,
            )
            self._add(lines, statement.trailing_comment)

    def _argument(self, argument: Variable | Setting) -> str:
        if isinstance(argument, Variable):
            return _variable(argument)
        if isinstance(argument.value, Word):
            raise InputError(f"{argument.value} cannot stand among the arguments of a statement")
        text = self._constant(argument.value, argument.span)
        return text if argument.name is None else f"{_name(argument.name)}={text}"

    def _clauses(self, statement: Statement) -> list[Clause]:
        clauses: list[Clause] = []
        for key, variables in (
            ("WAIT", statement.wait),
            ("ENABLE", statement.enable),
            ("DONE", statement.done),
        ):
            if variables:
                clauses.append((key, [_variable(each) for each in variables]))
        if statement.errors is not None:
            clauses.append(("ERRORS", [_errors(statement.errors)]))
        for option in statement.options:
            if option.name.upper() in OWN_CLAUSES:
                raise InputError(f"{option.name} cannot be an option: every statement has such a clause")
            clauses.append((_name(option.name), self._values(option)))
        return clauses

    def _values(self, option: Option) -> list[str]:
        spans = option.spans or (None,) * len(option.values)
        return [self._constant(value, span) for value, span in zip(option.values, spans, strict=True)]

    def _constant(self, value: object, span: Span | None) -> str:
        if self._keep_literals and span is not None and isinstance(value, str | int | float):
            return span.source.text[span.start : span.end]
        if not isinstance(value, tuple):
            return write_constant(value)
        text = write_constant(value)
        members = [write_constant(each) for each in value]
        if self._keep_literals and span is not None:
            members = _members(span)
            text = f"[{', '.join(members)}]"
        if len(text) <= _LONG_LIST:
            return text
        return "[\n" + "\n".join(fill(members, STEP * 4)) + f"\n{STEP * 3}]"

    # --- other items ----------------------------------------------------------------------------

    def _item(self, item: Item) -> None:
        if not is_word(item.kind) or not is_word(item.name):
            raise InputError(f"{item.kind} {item.name!r} has no name that a plan file can hold")
        self._add([" ".join(filter(None, [item.kind.upper(), item.name, item.header]))], item.header_comment)
        kind = item_kinds.get(item.kind)
        if (kind.end_of_body if kind else end_of_body)(f"{item.body}\n}}", 0) != len(item.body) + 1:
            raise InputError(f"the body of {item.kind} {item.name!r} does not end where it should")
        body = [f"{_indentation(item)}{item.body}"] if item.body else []
        self._add(["{", *body, "}"], item.trailing_comment)


def _indentation(item: Item) -> str:
    """Return that of the body's first line, so that the lines of the body keep their relative places."""
    if item.body_span is None:
        return STEP
    start = item.body_span.start
    line_start = item.body_span.source.text.rfind("\n", 0, start) + 1
    before = item.body_span.source.text[line_start:start]
    return before if before.isspace() or not before else STEP


def _members(span: Span) -> list[str]:
    """The members of a list as its source writes them."""
    tokens = Scanner(Source("", span.source.text[span.start : span.end])).tokens
    return [
        token.text for token in takewhile(lambda token: token.type != END, tokens) if token.type == CONSTANT
    ]


def _name(name: str) -> str:
    if not is_name(name):
        raise InputError(f"{name!r} is not a name that a plan can hold")
    return name


def _variable(variable: Variable) -> str:
    return _name(variable.name)


def _errors(errors: Variable | str) -> str:
    if isinstance(errors, str):
        return errors
    if errors.name.lower() == "skip":
        raise InputError("a variable for ERRORS cannot be called 'skip'")
    return _variable(errors)


def _attributes(schema: Schema) -> str:
    return ", ".join(
        f"{_attribute(name)} {kind}" if kind else _attribute(name)
        for name, kind in zip(schema.names, schema.types, strict=True)
    )


def _attribute(name: str) -> str:
    if is_name(name):
        return name
    if not name or "`" in name or not name.isprintable():
        raise InputError(f"an attribute called {name!r} cannot be declared in a plan")
    return f"`{name}`"


def _max_depth(plan: Plan) -> list[str]:
    if plan.max_depth is None:
        if plan.stop_at_max_depth:
            raise InputError("a plan that stops at its MAX_DEPTH must have one")
        return []
    if plan.max_depth < 1:
        raise InputError(f"MAX_DEPTH must be at least 1, not {plan.max_depth}")
    return [f"{plan.max_depth} stop" if plan.stop_at_max_depth else str(plan.max_depth)]


def _without_first_blank(comments: tuple[str, ...]) -> tuple[str, ...]:
    return comments[1:] if comments[:1] == ("",) else comments


def _without_last_blank(comments: tuple[str, ...]) -> tuple[str, ...]:
    return comments[:-1] if comments[-1:] == ("",) else comments
