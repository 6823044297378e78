"""The means that plans of editors may use: `[service.editor] allow`.

A plan is analysed with the parameters of its task, through all plans that it calls. Each use of an operator
with effects, a database, a file, a recipient, an account, a secret or code must be listed. A value that only
the run will tell is refused, except in a file that is merely stored.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import msgspec

from aioflow.authoring.operator import Operator, Registry
from aioflow.compiler.analysis import Analysis, InferredCall, reachable
from aioflow.compiler.check import analyse
from aioflow.compiler.fitting import value_or_unknown
from aioflow.compiler.parameters import UNKNOWN
from aioflow.compiler.resolution import Resolved
from aioflow.config.configuration import FILE_NAME
from aioflow.errors import AioflowError, SettingError
from aioflow.expressions.parser import parse_aggregates
from aioflow.plan import Program
from aioflow.service.errors import ForbiddenError
from aioflow.service.home import PLANS_FOLDER
from aioflow.service.programs import analyse_for_task
from aioflow.service.task import TaskDefinition
from aioflow.state.databases import Databases
from aioflow.state.driver import Address

# Operators of the library that touch nothing outside of their run, except its log and its outputs.
HARMLESS = frozenset(
    {
        *("aggregate", "distinct", "emit", "format", "intersect", "join", "limit", "log", "minus", "null"),
        *("pack", "project", "sample", "select", "sort", "union", "unpack", "window"),
    }
)
# The tasks that these add are not checked, so no list can allow them.
_NEVER = frozenset({"schedule", "unschedule"})
_LIBRARY = "aioflow.operators."
_BUILT_IN_AGGREGATES = frozenset({"count", "sum", "avg", "min", "max", "first", "list"})
_SECRET = re.compile(r"secret:([A-Za-z0-9_-]+)")
_ANY = "*"
_SHOWN_USES = 20
CODE_FOLDER = "code"  # of the home: modules that are imported


class ForbiddenUse(msgspec.Struct, frozen=True, order=True):
    """A use of something that is not allowed: where, and in words."""

    line: int
    plan: str
    text: str

    def __str__(self) -> str:
        place = f"line {self.line} of {self.plan}: " if self.line else ""
        return f"{place}{self.text}"


class Allowance:
    """Decides whether a plan uses only what editors may use."""

    def __init__(
        self,
        entries: Sequence[str],
        home: Path,
        databases: Databases,
        own: Address,
        registry: Registry,
    ) -> None:
        self._home = home
        self._databases = databases
        self._own = own
        self._registry = registry
        self._names: dict[str, list[str]] = {}
        for entry in entries:
            kind, _, name = entry.partition(":")
            self._names.setdefault(kind, []).append(name.strip())
        folders = self._names.get("folder", ())
        self.folders = [Path(os.path.realpath(home / Path(each).expanduser())) for each in folders]

    def allows(self, kind: str, name: str) -> bool:
        """Return whether a name is listed under a kind; entries may have `*`."""
        return any(fnmatchcase(name.lower(), each.lower()) for each in self.listed(kind))

    def listed(self, kind: str) -> Sequence[str]:
        """Return the entries of a kind."""
        return self._names.get(kind, ())

    def allows_path(self, path: Path, *, to_write: bool) -> bool:
        """Return whether a real path lies in a folder that is listed, and is none of the service itself."""
        own = [self._home / FILE_NAME, self._home / CODE_FOLDER]
        if to_write:
            own.append(self._home / PLANS_FOLDER)
        if any(path.is_relative_to(os.path.realpath(each)) for each in own) or self._is_own_database(path):
            return False
        return any(path.is_relative_to(folder) for folder in self.folders)

    def _is_own_database(self, path: Path) -> bool:
        """Return whether a path is the task database, or one of the files that SQLite keeps beside it."""
        if self._own.path is None:
            return False
        own = Path(os.path.realpath(self._own.path))
        return path.parent == own.parent and path.name.startswith(own.name)

    def check_task(self, program: Program, definition: TaskDefinition) -> None:
        """Raise a ForbiddenError for a task that uses more than is allowed."""
        analysis = analyse_for_task(program, definition, self._registry)
        found = [*self._of_definition(definition)]
        look = _Look(self, analysis, definition.defaults, is_strict=True)
        found += look.uses([analysis.root])
        _refuse(found)

    def check_run(self, analysis: Analysis) -> None:
        """Raise a ForbiddenError for a plan whose run would use more than is allowed."""
        _refuse(_Look(self, analysis, {}, is_strict=True).uses([analysis.root]))

    def check_file(self, program: Program) -> None:
        """Raise a ForbiddenError for a file that names something forbidden; its tasks are checked as well."""
        analysis = analyse(program, self._registry)
        roots = [analysis.inference.follow(plan, {}, [None] * len(plan.inputs)) for plan in analysis.program]
        _refuse(_Look(self, analysis, {}, is_strict=False).uses(roots))

    def _of_definition(self, definition: TaskDefinition) -> Iterator[ForbiddenUse]:
        for kind, name in definition.defaults.items():
            if kind == "database":
                yield from self.database_uses(name, 0, "")
            elif kind != "first" and not self.allows("account", f"{kind}.{name}"):
                yield ForbiddenUse(0, "", f"the account {kind}.{name}")
        if definition.reload == "automatic":
            text = "reload = 'automatic': the plan would be taken over without being checked"
            yield ForbiddenUse(0, "", text)

    def database_uses(self, name: str | None, line: int, plan: str) -> Iterator[ForbiddenUse]:
        """Yield the use of a database unless it is listed; the task database never is."""
        chosen = self._databases.name_of(name)
        if not self.allows("database", chosen):
            yield ForbiddenUse(line, plan, f"the database {chosen}")
            return
        try:
            address = self._databases.address(name, self._home)
        except AioflowError:
            return  # there is no such database: the run says so
        if address.url == self._own.url:
            yield ForbiddenUse(line, plan, f"the database {chosen}, which is that of the service itself")


def _refuse(found: Sequence[ForbiddenUse]) -> None:
    if not found:
        return
    texts = [str(use) for use in sorted(set(found))]
    more = f"; and {len(texts) - _SHOWN_USES} more" if len(texts) > _SHOWN_USES else ""
    raise ForbiddenError(
        f"an editor may not use {'; '.join(texts[:_SHOWN_USES])}{more}. An owner can list it under "
        "[service.editor] allow"
    )


class _Look:
    """Looks at the statements of one program."""

    def __init__(
        self, allowance: Allowance, analysis: Analysis, defaults: Mapping[str, str], *, is_strict: bool
    ) -> None:
        self._allowance = allowance
        self._analysis = analysis
        self._defaults = defaults
        self._is_strict = is_strict

    def uses(self, roots: Sequence[InferredCall]) -> list[ForbiddenUse]:
        """Return everything forbidden that runs from these calls on may use."""
        found = [
            use for item in self._analysis.program.items for use in self._secrets(item.header, item.body)
        ]
        for call in reachable(roots):
            for resolved in self._analysis.linked.statements(call.plan):
                if resolved is not None and isinstance(resolved.target, Operator):
                    found += _Statement(self, call, resolved, resolved.target).uses()
        return found

    def _secrets(self, *texts: str) -> Iterator[ForbiddenUse]:
        for name in {name for text in texts for name in _SECRET.findall(text)}:
            if not self._allowance.allows("secret", name):
                yield ForbiddenUse(0, "", f"the secret {name}")

    @property
    def allowance(self) -> Allowance:
        return self._allowance

    @property
    def is_strict(self) -> bool:
        return self._is_strict

    @property
    def program(self) -> Program:
        return self._analysis.program

    def default(self, kind: str) -> str | None:
        return self._defaults.get(kind)


class _UnknownValueError(Exception):
    """Only the run will tell the value of a setting."""


class _Statement:
    """One statement in one call of its plan."""

    def __init__(self, look: _Look, call: InferredCall, resolved: Resolved, operator: Operator) -> None:
        self._look = look
        self._allowance = look.allowance
        self._resolved = resolved
        self._operator = operator
        self._call = call
        span = resolved.statement.name_span
        self._line = span.line if span is not None else 0
        self._checks = {
            "aggregate": self._aggregates,
            "apply": self._function,
            "wrapper": self._wrapper,
            "read": self._file,
            "write": self._file,
            "email": self._email,
            "phone": self._phone,
            "notify": self._notify,
        }

    def uses(self) -> list[ForbiddenUse]:
        """Return what is forbidden about this statement."""
        operator, found = self._operator, []
        is_own = operator.function.__module__.startswith(_LIBRARY)
        if operator.key in _NEVER and is_own:
            return [self._use(f"{operator.name}, since the tasks that it adds are not checked")]
        is_harmless = (operator.key in HARMLESS or operator.key == "apply") and is_own
        if not is_harmless and not self._allowance.allows("operator", operator.name):
            found.append(self._use(f"the operator {operator.name}"))
        check = self._checks.get(operator.key) if is_own else None
        for look in (self._store, check):
            if look is None:
                continue
            try:
                found += look()
            except _UnknownValueError as error:
                if self._look.is_strict:
                    found.append(self._use(f"{operator.name} with a value that only the run tells ({error})"))
        return found

    def _use(self, text: str) -> ForbiddenUse:
        return ForbiddenUse(self._line, self._call.plan.name, text)

    def _value(self, name: str) -> Any:
        """Return the value of a setting with its parameters filled in."""
        given = self._resolved.settings
        if name not in given:
            port = self._operator.setting(name)
            return None if port is None else port.default
        value = value_or_unknown(given[name], self._call.scope.values)
        if value is UNKNOWN:
            raise _UnknownValueError(name)
        return value

    # --- by operator ----------------------------------------------------------------------------

    def _store(self) -> Iterator[ForbiddenUse]:
        if self._operator.store is None:
            return
        # Only the name counts; other settings may be unknown.
        name = self._value("db")
        yield from self._allowance.database_uses(
            self._look.default("database") if name is None else name, self._line, self._call.plan.name
        )

    def _aggregates(self) -> Iterator[ForbiddenUse]:
        try:
            called = {each.node.function.lower() for each in parse_aggregates(str(self._value("functions")))}
        except SettingError:
            return  # the check of the plan says so
        for name in called - _BUILT_IN_AGGREGATES:
            if not self._allowance.allows("function", name):
                yield self._use(f"the function {name}")

    def _function(self) -> Iterator[ForbiddenUse]:
        name = str(self._value("function"))
        if not self._allowance.allows("function", name):
            yield self._use(f"the function {name}")

    def _wrapper(self) -> Iterator[ForbiddenUse]:
        from aioflow.wrappers.definition import Wrapper
        from aioflow.wrappers.wrapper_item import find_wrapper

        try:
            found = find_wrapper(self._value("name"), self._look.program)
        except SettingError:
            return  # the check of the plan says so
        if not isinstance(found, Wrapper):
            if not self._allowance.allows("function", found.name):
                yield self._use(f"the wrapper {found.name}, which is written in Python")
            return
        request = found.request
        method = request.method.upper()
        if method not in ("GET", "HEAD") and not self._allowance.allows("method", method):
            yield self._use(f"requests with the method {method} (wrapper {found.name})")
        # After escapes and LIKE are resolved: a name cannot be hidden in its spelling.
        sent = repr((request.headers, request.form, request.json, request.body, request.auth, request.url))
        for name in set(_SECRET.findall(sent)):
            if not self._allowance.allows("secret", name):
                yield self._use(f"the secret {name}")

    def _file(self) -> Iterator[ForbiddenUse]:
        path = self._value("path")
        if path == "-":
            yield self._use(f"{self._operator.name} with standard input or output")
            return
        try:
            target = Path(os.path.realpath(Path(self._look.program.folder or ".") / str(path)))
        except (OSError, ValueError):
            target = Path(os.sep)
        if not self._allowance.allows_path(target, to_write=self._operator.key == "write"):
            yield self._use(f"the file {path}")

    def _email(self) -> Iterator[ForbiddenUse]:
        from aioflow.messages import Recipients

        yield from self._account("email")
        for name in ("to", "cc", "bcc", "reply_to"):
            value = self._value(name)
            if value is None:
                continue
            try:
                recipients = Recipients.bind(value, [None])
            except SettingError:
                continue  # the check of the plan says so
            addresses = [(each.address, each.is_routed) for each in recipients.constant]
            yield from self._recipients(addresses, comes_from_data=bool(recipients.from_data))

    def _phone(self) -> Iterator[ForbiddenUse]:
        from aioflow.messages import PhoneNumbers

        yield from self._account("phone")
        try:
            numbers = PhoneNumbers.bind(self._value("to"), [None])
        except SettingError:
            return
        found = [(number, False) for number in numbers.constant]
        yield from self._recipients(found, comes_from_data=bool(numbers.from_data))

    def _recipients(
        self, addresses: Collection[tuple[str, bool]], *, comes_from_data: bool
    ) -> Iterator[ForbiddenUse]:
        if _ANY in self._allowance.listed("recipient"):
            return
        if comes_from_data:
            yield self._use("recipients that come from data")
        for address, is_routed in addresses:
            if is_routed or not self._allowance.allows("recipient", address):
                yield self._use(f"the recipient {address}")

    def _account(self, channel: str) -> Iterator[ForbiddenUse]:
        via = self._value("via")
        name = self._look.default(channel) if via is None else via
        if name is not None and not self._allowance.allows("account", f"{channel}.{name}"):
            yield self._use(f"the account {channel}.{name}")

    def _notify(self) -> Iterator[ForbiddenUse]:
        # The account decides where a notification goes, so the default one must be listed too.
        via = self._value("via")
        name = (self._look.default("notify") if via is None else via) or "default"
        if not self._allowance.allows("account", f"notify.{name}"):
            yield self._use(f"the account notify.{name}")
