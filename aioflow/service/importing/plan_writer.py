"""The text of a plan for one watch: its wrappers, the comparison of lines or values, and its messages."""

from __future__ import annotations

import re

import msgspec

from aioflow.language.literals import write_string
from aioflow.service.importing.message_accounts import MessageAccount
from aioflow.service.importing.page_filters import PageFields

_HAS_BRACES = re.compile(r"[{}]")


class LineSteps(msgspec.Struct, frozen=True):
    """The rules of a watch as expressions over `line`; an empty text is no rule."""

    ignored: str = ""
    kept: str = ""
    extracted: str = ""
    trigger: str = ""
    forbidden: str = ""


class WatchMessage(msgspec.Struct, frozen=True):
    """The subject of mails, the title of other messages, their text if it is a template, and their lines."""

    subject: str
    title: str
    body: str = ""
    tells_new: bool = True
    tells_gone: bool = True


class PlanParts(msgspec.Struct, frozen=True):
    """Everything that the text of a plan is made of."""

    name: str
    comments: tuple[str, ...]
    request: tuple[str, ...]
    pages: tuple[PageFields, ...]
    steps: LineSteps
    message: WatchMessage
    accounts: tuple[MessageAccount, ...]


def write_plan(parts: PlanParts) -> str:
    """Return the text of a plan."""
    return _PlanWriter(parts).text()


class _PlanWriter:
    def __init__(self, parts: PlanParts) -> None:
        self._parts = parts
        self._table = parts.name.replace("-", "_")
        self._statements: list[str] = []
        self._outputs: list[str] = []

    def text(self) -> str:
        comments = "".join(f"# {' '.join(each.split())}\n" for each in self._parts.comments)
        wrappers = [
            self._wrapper(f"page{_number(index)}", page) for index, page in enumerate(self._parts.pages, 1)
        ]
        self._compare()
        output = [f"  OUTPUT: {', '.join(self._outputs)}", ""] if self._outputs else []
        plan = [f"PLAN {self._parts.name}", "{", *output, "  BODY", "  {"]
        plan += [f"    {line}" for statement in self._statements for line in statement.split("\n")]
        return comments + "\n\n".join([*wrappers, "\n".join([*plan, "  }", "}"])]) + "\n"

    def _wrapper(self, name: str, page: PageFields) -> str:
        source = (f"watch: = {write_string(self._parts.name)}",) if page.is_value else ()
        lines = [*self._parts.request, *page.reading, *source, *page.fields]
        return "\n".join([f"WRAPPER {name}", "{", *(f"  {line}" for line in lines), "}"])

    def _add(self, statement: str) -> None:
        self._statements.append(statement)

    def _compare(self) -> None:
        values = [index for index, page in enumerate(self._parts.pages, 1) if page.is_value]
        lines = [index for index, page in enumerate(self._parts.pages, 1) if not page.is_value]
        told: list[str] = []
        for index in values:
            page, changed = f"page{_number(index)}", f"changed{_number(index)}"
            self._add(f'wrapper ("{page}" : value{_number(index)})')
            table = self._table if len(self._parts.pages) == 1 else f"{self._table}_{index}"
            self._add(f'diff (value{_number(index)}, "{table}" : _, {changed}) {{KEY: "watch"}}')
            told.append(changed)
        if lines:
            told += self._compare_lines(lines)
        self._tell(told)

    def _compare_lines(self, numbers: list[int]) -> list[str]:
        found = [self._lines_of(index) for index in numbers]
        lines = found[0]
        if len(found) > 1:
            lines = "all-lines"
            self._add(f"union ({', '.join(found)} : {lines})")
        steps, message = self._parts.steps, self._parts.message
        lines = self._select(lines, steps.ignored and f"not ({steps.ignored})", "not-ignored")
        lines = self._select(lines, steps.kept, "wanted")
        if steps.extracted:
            self._add(f"project ({lines}, {_expression(f'{steps.extracted} as line')} : extracts)")
            lines = self._select("extracts", "line is not null", "extracted")
        new, gone = ("new" if message.tells_new else "_"), ("gone" if message.tells_gone else "_")
        outputs = f"{new}, _, {gone}" if message.tells_gone else new
        self._add(f'diff ({lines}, "{self._table}" : {outputs}) {{GUARD: off}}')
        told = [each for each in (new, gone) if each != "_"]
        told = self._gate(told, lines, steps.trigger, "semi", "triggers", "triggered")
        return self._gate(told, lines, steps.forbidden, "anti", "forbidden", "allowed")

    def _lines_of(self, index: int) -> str:
        page, number = self._parts.pages[index - 1], _number(index)
        lines = f"lines{number}"
        if not page.is_list:
            self._add(f'wrapper ("page{number}" : {lines})')
            return lines
        self._add(f'wrapper ("page{number}" : page{number})')
        if not page.has_excluded:
            self._add(f'unpack (page{number}, "line" : {lines})')
            return lines
        self._add(f'unpack (page{number}, "line" : found{number})')
        self._add(f'project (found{number}, "line" : all{number})')
        self._add(f'unpack (page{number}, "excluded" : left-out{number})')
        self._add(f'project (left-out{number}, "excluded as line" : excluded{number})')
        self._add(f"minus (all{number}, excluded{number} : {lines})")
        return lines

    def _select(self, relation: str, condition: str, result: str) -> str:
        if not condition:
            return relation
        self._add(f"select ({relation}, {_expression(condition)} : {result})")
        return result

    def _gate(
        self, told: list[str], lines: str, condition: str, kind: str, found: str, suffix: str
    ) -> list[str]:
        """Let relations pass only if the page has a line, or has none, for which a condition holds."""
        if not condition or not told:
            return told
        self._add(f"select ({lines}, {_expression(condition)} : {found})")
        for each in told:
            self._add(f'join ({each}, {found}, "true" : {each}-{suffix}) {{TYPE: {kind}}}')
        return [f"{each}-{suffix}" for each in told]

    def _tell(self, told: list[str]) -> None:
        mails = [each for each in self._parts.accounts if each.kind == "email"]
        chats = [each for each in self._parts.accounts if each.kind == "notify"]
        if not (mails or chats) or not told:
            self._outputs = told
            return
        for mail in mails:
            self._add(self._email(told, mail))
        for number, chat in enumerate(chats, 1):
            self._notify(told, chat, _number(number))

    def _email(self, told: list[str], account: MessageAccount) -> str:
        message = self._parts.message
        options = [f"VIA: {account.name}"]
        if len(told) > 1 and not message.body:
            options.append(f'HEADINGS: "{", ".join(_heading(each) for each in told)}"')
        if message.body:
            options.append(f"BODY: {_template(message.body)}")
        settings = f"to={write_string(account.to)}, subject={_template(message.subject)}"
        return f"email ({', '.join(told)}, {settings})\n{{\n  " + "\n  ".join(options) + "\n}"

    def _notify(self, told: list[str], account: MessageAccount, number: str) -> None:
        changes = told[0]
        if len(told) > 1:
            parts = []
            for each in told:
                parts.append(f"{each}-lines{number}")
                kind = _heading(each).lower()
                line = "value as line" if each.startswith("changed") else "line"
                self._add(f"project ({each}, \"'{kind}' as change, {line}\" : {parts[-1]})")
            changes = f"changes{number}"
            self._add(f"union ({', '.join(parts)} : {changes}) {{ALL}}")
        options = [f"VIA: {account.name}"]
        if self._parts.message.body:
            options.append(f"BODY: {_template(self._parts.message.body)}")
        self._add(f"notify ({changes}, {_template(self._parts.message.title)}) {{{'; '.join(options)}}}")


def _number(index: int) -> str:
    return "" if index == 1 else f"-{index}"


def _heading(relation: str) -> str:
    return relation.split("-")[0].capitalize()


def _expression(text: str) -> str:
    text = text.replace("${", "$${")
    if "\\" in text and '"' not in text and "\n" not in text and text.isprintable():
        return f'r"{text}"'
    return write_string(text)


def _template(text: str) -> str:
    return write_string(text.replace("${", "$${"))


def plain(text: str) -> str:
    """Return a text for a subject: in one line, and without braces, which have a meaning there."""
    return _HAS_BRACES.sub("", " ".join(text.split()))[:120]
