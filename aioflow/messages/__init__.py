"""Messages to people: their content, the outbox that holds them, and the channels that deliver them.

Names are loaded when they are first used.
"""

from typing import TYPE_CHECKING

from aioflow.exports import lazy_exports

if TYPE_CHECKING:
    from aioflow.messages.accounts import outbox_problems
    from aioflow.messages.chat.channel import NotifyAccounts
    from aioflow.messages.content.attachments import FileKind, ValueEncoding
    from aioflow.messages.content.short_text import (
        Notices,
        PhoneNumbers,
        ShortMessages,
        TextMessages,
        check_wording,
    )
    from aioflow.messages.content.templates import BodyTemplate, HtmlTemplate
    from aioflow.messages.email.addresses import Recipients
    from aioflow.messages.email.email_content import EmailContent, EmailDraft, Headings, Subject
    from aioflow.messages.email.settings import EmailAccounts
    from aioflow.messages.outbox.contributions import gathered_rows
    from aioflow.messages.outbox.courier import deliver_due, next_due
    from aioflow.messages.outbox.message import Channel, Delivery, DeliveryError, Message, if_cut_short
    from aioflow.messages.outbox.service import DigestRecipe, Outbox
    from aioflow.messages.sms.channel import PhoneAccounts
    from aioflow.messages.timing import Debounce, DigestTimes, MessageTiming, QuietHours

__all__ = [
    "BodyTemplate",
    "Channel",
    "Debounce",
    "Delivery",
    "DeliveryError",
    "DigestRecipe",
    "DigestTimes",
    "EmailAccounts",
    "EmailContent",
    "EmailDraft",
    "FileKind",
    "Headings",
    "HtmlTemplate",
    "Message",
    "MessageTiming",
    "Notices",
    "NotifyAccounts",
    "Outbox",
    "PhoneAccounts",
    "PhoneNumbers",
    "QuietHours",
    "Recipients",
    "ShortMessages",
    "Subject",
    "TextMessages",
    "ValueEncoding",
    "check_wording",
    "deliver_due",
    "gathered_rows",
    "if_cut_short",
    "next_due",
    "outbox_problems",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "accounts": ("outbox_problems",),
        "chat.channel": ("NotifyAccounts",),
        "content.attachments": ("ValueEncoding", "FileKind"),
        "content.short_text": ("Notices", "PhoneNumbers", "ShortMessages", "TextMessages", "check_wording"),
        "content.templates": ("BodyTemplate", "HtmlTemplate"),
        "email.addresses": ("Recipients",),
        "email.email_content": ("EmailDraft", "Headings", "EmailContent", "Subject"),
        "email.settings": ("EmailAccounts",),
        "outbox.message": ("Channel", "Delivery", "DeliveryError", "Message", "if_cut_short"),
        "outbox.contributions": ("gathered_rows",),
        "outbox.courier": ("deliver_due", "next_due"),
        "outbox.service": ("DigestRecipe", "Outbox"),
        "sms.channel": ("PhoneAccounts",),
        "timing": ("Debounce", "DigestTimes", "MessageTiming", "QuietHours"),
    },
)
