"""Drafts: what a statement says of its mails, checked before it runs."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal, TypeAlias, TypeVar

from aioflow.dataclass import dataclass
from aioflow.errors import SettingError
from aioflow.messages.mailboxes import Recipients
from aioflow.messages.subjects import Subject
from aioflow.messages.templates import BodyTemplate, HtmlTemplate
from aioflow.plan import NAME_PATTERN
from aioflow.quantities import count_text
from aioflow.relation import Schema

T = TypeVar("T")

FileKind: TypeAlias = Literal["csv", "json", "xml"]

RECIPIENTS = ("to", "cc", "bcc")
_RESERVED = ("count", "table", "row")


class Headings(tuple[str, ...]):
    """The headings of several relations: `"New, Changed, Gone"`, or a list."""

    __slots__ = ()
    kind_name: ClassVar[str] = "a list of headings"

    @classmethod
    def bind(cls, value: Any, inputs: Sequence[Schema | None]) -> Headings:
        texts = value.split(",") if isinstance(value, str) else value
        if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
            raise SettingError(f"must be {cls.kind_name}, not {value!r}")
        return cls(text.strip() for text in texts)


@dataclass(frozen=True)
class Draft:
    """All that a statement says about its mails, beside the tuples themselves."""

    to: Recipients
    subject: Subject
    cc: Recipients | None = None
    bcc: Recipients | None = None
    reply_to: Recipients | None = None
    body: BodyTemplate | None = None
    body_html: HtmlTemplate | None = None
    attach: Sequence[FileKind] = ()
    each: bool = False
    names: Sequence[str] = ()
    headings: Sequence[str] = ()

    @property
    def takes_recipients_from_data(self) -> bool:
        return any(each is not None and each.from_data for each in (self.to, self.cc, self.bcc))

    def check(self, schemas: Sequence[Schema | None]) -> None:
        """Look for mistakes before anything runs; a SettingError names the setting."""
        self._check_relations(len(schemas))
        for name in (*RECIPIENTS, "reply_to"):
            self._check_recipients(name)
        relations = self.named(schemas)
        for name in ("subject", "body", "body_html"):
            template: Subject | BodyTemplate | None = getattr(self, name)
            if template is not None:
                _naming(name, template.check, each=self.each, relations=relations)

    def named(self, relations: Sequence[T]) -> dict[str, T]:
        """Relations by the names that templates have for them; a single one is also called `rows`."""
        names = [name.replace("-", "_") for name in self.names]
        found = {name: each for name, each in zip(names, relations, strict=True) if name not in _RESERVED}
        return found | ({"rows": relations[0]} if len(relations) == 1 else {})

    def heading(self, place: int) -> str:
        """The heading of a relation: by default its name, for several of them."""
        if self.headings:
            return self.headings[place]
        return self.names[place].replace("-", " ").replace("_", " ").capitalize() if self.names[1:] else ""

    def _check_relations(self, count: int) -> None:
        if self.each and count > 1:
            raise SettingError("with EACH there is a message for each tuple of one relation", setting="each")
        for name in ("names", "headings"):
            given: Sequence[str] = getattr(self, name)
            if given and len(given) != count:
                told = f"{count_text(len(given), name[:-1])} for {count_text(count, 'relation')}"
                raise SettingError(told, setting=name)
        for place, name in enumerate(self.names):
            if not re.fullmatch(NAME_PATTERN, name):
                raise SettingError(f"{name!r} is no name", setting="names")
            if name in self.names[:place]:
                raise SettingError(f"two of the relations are called {name!r}: set NAMES", setting="names")

    def _check_recipients(self, name: str) -> None:
        given: Recipients | None = getattr(self, name)
        if given is None:
            return
        if given.from_data and name == "reply_to":
            raise SettingError("answers do not go to addresses from data", setting=name, offset=given.offset)
        if given.from_data and not self.each:
            raise SettingError(
                f"{given.from_data[0].text!r} takes an address from each tuple: say EACH for a message each",
                setting=name,
                offset=given.offset,
            )
        if name == "reply_to" and len(given.constant) != 1:
            raise SettingError("answers go to one address", setting=name)


def _naming(name: str, check: Callable[..., Any], **arguments: Any) -> None:
    try:
        check(**arguments)
    except SettingError as error:
        error.setting = name
        raise
