"""Drafts: what a statement says of its mails, checked before it runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias

from aioflow.dataclass import dataclass
from aioflow.errors import SettingError
from aioflow.expressions.template import Template
from aioflow.messages.mailboxes import Recipients
from aioflow.messages.templates import BodyTemplate, HtmlTemplate
from aioflow.relation import Schema, Type

FileKind: TypeAlias = Literal["csv", "json", "xml"]

# What the subject of a message for a whole relation may name.
COUNT = Schema(("count",), (Type.NUMBER,))
RECIPIENTS = ("to", "cc", "bcc")


@dataclass(frozen=True)
class Draft:
    """All that a statement says about its mails, beside the tuples themselves."""

    to: Recipients
    subject: Template
    cc: Recipients | None = None
    bcc: Recipients | None = None
    reply_to: Recipients | None = None
    body: BodyTemplate | None = None
    body_html: HtmlTemplate | None = None
    attach: Sequence[FileKind] = ()
    each: bool = False

    @property
    def takes_recipients_from_data(self) -> bool:
        return any(each is not None and each.from_data for each in (self.to, self.cc, self.bcc))

    def check(self, schema: Schema | None) -> None:
        """Look for mistakes before anything runs; a SettingError names the setting."""
        for name in (*RECIPIENTS, "reply_to"):
            self._check_recipients(name)
        _naming("subject", Template(self.subject.text, schema if self.each else COUNT).formatter)
        for name in ("body", "body_html"):
            template: BodyTemplate | None = getattr(self, name)
            if template is not None:
                _naming(name, template.check, each=self.each)

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
