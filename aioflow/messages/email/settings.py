"""`[email.NAME]` of the configuration: accounts from which mail is sent, by SMTP or into a Maildir."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeAlias
from urllib.parse import unquote, urlsplit

import msgspec

from aioflow.authoring.services import Scope, ServiceHost
from aioflow.config.configuration import Configuration, as_configuration
from aioflow.config.secrets import PREFIX, Secrets, check_name
from aioflow.config.sections import Section, at_least, more_than_nothing
from aioflow.errors import InputError, SettingError
from aioflow.messages.accounts import choose
from aioflow.messages.email.addresses import Mailbox, read_domain, read_mailbox
from aioflow.messages.timing import quiet_setting

Security: TypeAlias = Literal["tls", "starttls", "none"]

_MAILDIR = "maildir:"
_ANY_DOMAIN = "*"
_URL = (
    "'smtp://user@host:587' (with STARTTLS; on this very machine without), 'smtps://user@host' (TLS from the "
    "start), 'smtp+starttls://host', 'smtp+insecure://host' (never encrypted), or 'maildir:folder'"
)
_PORTS = {"smtp": 587, "smtp+starttls": 587, "smtps": 465, "smtp+insecure": 25}
NOTHING_CONFIGURED = (
    'no mail account is configured: write [email.default] url = "smtp://user@mail.example.org:587", '
    'from = "Watcher <user@example.org>" and password = "secret:MAIL" into aioflow.toml, and the password '
    'itself into the environment variable AIOFLOW_SECRET_MAIL; or url = "maildir:mail" to try it out'
)


@dataclass(frozen=True)
class EmailSettings:
    """An account: its mail server, its sender, and the recipients that data may name."""

    url: str = ""
    from_: str = ""
    password: str | None = None
    reply_to: str | None = None
    allow: tuple[str, ...] = ()  # domains and whole addresses that recipients from data may have; `*`: any
    timeout_seconds: float = 60.0  # for each answer of the server
    ca: Path | None = None  # certificates that are trusted besides the system's
    most_rows: int = 100  # of a relation that the table in a message shows
    most_bytes: int = 10 * 1024 * 1024  # of a message with all that is attached
    quiet: str | None = None  # hours in which nothing is delivered

    def allows(self, mailbox: Mailbox) -> bool:
        """Return whether a recipient that comes from data may get mail."""
        if mailbox.is_routed:
            return mailbox.address.lower() in self.allow
        return not {_ANY_DOMAIN, mailbox.domain, mailbox.address.lower()}.isdisjoint(self.allow)


class SmtpAddress(msgspec.Struct, frozen=True):
    """Where a server is, and how one speaks to it."""

    host: str
    port: int
    security: Security
    user: str | None = None

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


class EmailAccount(msgspec.Struct, frozen=True):
    """An account by name; `target` is a server, or the folder of a Maildir."""

    name: str
    settings: EmailSettings
    target: SmtpAddress | Path

    @property
    def sender(self) -> Mailbox:
        return read_mailbox(self.settings.from_)

    @property
    def reply_to(self) -> Mailbox | None:
        return None if self.settings.reply_to is None else read_mailbox(self.settings.reply_to)


class EmailAccounts:
    """The accounts of a configuration; a service of an engine."""

    scope: ClassVar[Scope] = "engine"

    def __init__(self, tables: Mapping[str, Any]) -> None:
        self._configuration: Configuration = as_configuration(tables)
        self._found = self._configuration.sections(EMAIL)

    @classmethod
    def open_service(cls, host: ServiceHost) -> EmailAccounts:
        return cls(host.configuration)

    async def close(self) -> None:
        """Nothing is open."""

    def find(self, name: str | None) -> EmailAccount:
        """Return the account of that name (None for `default` or the only one); raise an InputError if
        unusable.
        """
        name = self._name(name)
        settings = self._found[name]
        missing = [key for key, value in (("url", settings.url), ("from", settings.from_)) if not value]
        if missing:
            raise InputError(f"[email.{name}] has no {' and no '.join(missing)} in the configuration")
        if settings.url.startswith(_MAILDIR):
            folder = self._configuration.folder("email", name, "url")
            path = Path(settings.url.removeprefix(_MAILDIR)).expanduser()
            return EmailAccount(name, settings, folder / path)
        return EmailAccount(name, settings, smtp_address(settings.url))

    def problems(self, name: str | None) -> list[str]:
        """Return the problems that keep the account from being used."""
        try:
            account = self.find(name)
        except InputError as error:
            return [str(error)]
        return list(_problems(account))

    def _name(self, name: str | None) -> str:
        if not self._found:
            raise InputError(NOTHING_CONFIGURED)
        return choose("email", self._found, name, 'url = "smtp://user@host:587", from = "user@host"')[0]


def _problems(account: EmailAccount) -> Iterator[str]:
    target, table = account.target, f"[email.{account.name}]"
    if not isinstance(target, SmtpAddress):
        return
    password = account.settings.password
    if target.user and not password:
        yield f'{table} names the user {target.user!r} and no password = "secret:NAME"'
    if password and not target.user:
        yield f"{table} has a password, and its url names no user: smtp://user@{target}"
    if target.user and target.security == "none" and not is_loopback(target.host):
        yield f"{table}: a password is not sent to {target} without encryption; write smtp:// or smtps://"
    if password:
        try:
            Secrets().get(password)
        except InputError as error:
            yield f"{table}: {error}"


def smtp_address(url: str) -> SmtpAddress:
    """Return a server by its URL; the message of an InputError ends the sentence "must be …"."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise InputError(_URL) from None
    host = parts.hostname or ""
    if parts.scheme not in _PORTS or not host or not _is_plain(url):
        raise InputError(_URL)
    if parts.password is not None:
        raise InputError('an address without a password, which is given by password = "secret:NAME"')
    if parts.path.strip("/") or parts.query or parts.fragment:
        raise InputError(f"an address that ends with the host or its port: {_URL}")
    user = unquote(parts.username) if parts.username else None
    return SmtpAddress(host, port or _PORTS[parts.scheme], _security(parts.scheme, host), user)


def _security(scheme: str, host: str) -> Security:
    if scheme == "smtps":
        return "tls"
    # What does not leave the machine need not be encrypted.
    unencrypted = scheme == "smtp+insecure" or (scheme == "smtp" and is_loopback(host))
    return "none" if unencrypted else "starttls"


def is_loopback(host: str) -> bool:
    """Return whether a server is on this very machine, going by its name or number."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


# --- what values must be ------------------------------------------------------------------------


def _is_plain(text: str) -> bool:
    return text.isprintable() and not any(map(str.isspace, text))


def _url(text: str) -> str:
    if text.startswith(_MAILDIR):
        if not text.removeprefix(_MAILDIR) or not text.isprintable():
            raise InputError("'maildir:' and a folder")
        return text
    smtp_address(text)
    return text


def _address(text: str) -> str:
    try:
        return str(read_mailbox(text))
    except SettingError as error:
        raise InputError(f"an address like 'Watcher <me@example.org>' ({error})") from None


def _password(text: str) -> str:
    # The password itself would stand in a file that others read, and be shown.
    try:
        if text.startswith(PREFIX):
            check_name(text.removeprefix(PREFIX))
            return text
    except InputError:
        pass
    raise InputError("'secret:NAME', with the NAME of a secret")


def _allowed(texts: tuple[str, ...]) -> tuple[str, ...]:
    try:
        return tuple(map(_allowed_one, texts))
    except SettingError as error:
        raise InputError(f"a list of domains like 'example.org' and of addresses ({error})") from None


def _allowed_one(text: str) -> str:
    if text == _ANY_DOMAIN:
        return text
    return read_mailbox(text).address.lower() if "@" in text else read_domain(text)


_whole: Callable[[Any], Any] = at_least(1, "a whole number")

EMAIL = Section(
    "email",
    EmailSettings,
    named=True,
    refine={
        "url": _url,
        "from": _address,
        "password": _password,
        "reply_to": _address,
        "allow": _allowed,
        "timeout_seconds": more_than_nothing("a time"),
        "most_rows": _whole,
        "most_bytes": at_least(1, "a size"),
        "quiet": quiet_setting,
    },
)
