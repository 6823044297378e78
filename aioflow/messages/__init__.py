"""What a plan tells people: channels that deliver the messages of an outbox, and what they look like.

Names are loaded when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aioflow.messages.accounts import outbox_problems
    from aioflow.messages.attachments import Encoding
    from aioflow.messages.cutoff import if_cut_short
    from aioflow.messages.drafts import Draft, FileKind, Headings
    from aioflow.messages.email_settings import EmailAccounts
    from aioflow.messages.letters import Letters
    from aioflow.messages.mailboxes import Recipients
    from aioflow.messages.message import Channel, Delivery, DeliveryError, Message
    from aioflow.messages.notices import Notices, PhoneNumbers, ShortMessages, TextMessages, check_wording
    from aioflow.messages.notify import NotifyAccounts
    from aioflow.messages.outbox import Outbox
    from aioflow.messages.phone import PhoneAccounts
    from aioflow.messages.subjects import Subject
    from aioflow.messages.templates import BodyTemplate, HtmlTemplate

__all__ = [
    "BodyTemplate",
    "Channel",
    "Delivery",
    "DeliveryError",
    "Draft",
    "EmailAccounts",
    "Encoding",
    "FileKind",
    "Headings",
    "HtmlTemplate",
    "Letters",
    "Message",
    "Notices",
    "NotifyAccounts",
    "Outbox",
    "PhoneAccounts",
    "PhoneNumbers",
    "Recipients",
    "ShortMessages",
    "Subject",
    "TextMessages",
    "check_wording",
    "if_cut_short",
    "outbox_problems",
]

_HOMES = {
    "accounts": ("outbox_problems",),
    "attachments": ("Encoding",),
    "cutoff": ("if_cut_short",),
    "drafts": ("Draft", "FileKind", "Headings"),
    "email_settings": ("EmailAccounts",),
    "letters": ("Letters",),
    "mailboxes": ("Recipients",),
    "message": ("Channel", "Delivery", "DeliveryError", "Message"),
    "notices": ("Notices", "PhoneNumbers", "ShortMessages", "TextMessages", "check_wording"),
    "notify": ("NotifyAccounts",),
    "outbox": ("Outbox",),
    "phone": ("PhoneAccounts",),
    "subjects": ("Subject",),
    "templates": ("BodyTemplate", "HtmlTemplate"),
}
_HOME_OF = {name: f"aioflow.messages.{module}" for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'aioflow.messages' has no attribute {name!r}")
    value = getattr(import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
