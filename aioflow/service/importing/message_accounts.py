"""Notification URLs of apprise as accounts of aioflow, with every credential as a secret by reference."""

from __future__ import annotations

import re
from urllib.parse import SplitResult, parse_qs, quote, unquote, urlsplit

import msgspec

from aioflow.service.importing.imported import ImportedSecret

_MAIL_SCHEMES = ("mailto", "mailtos")
# These exist within changedetection.io only.
_OWN_SCHEMES = frozenset(
    ("get", "gets", "post", "posts", "put", "puts", "delete", "deletes", "patch", "patchs", "browser")
)
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]{0,30})://")
_ADDRESS = re.compile(r"[^\s@,<>\"]+@[^\s@,<>\"]+")
_HOST = re.compile(r"[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]")
# The servers that apprise knows for the domains of some providers; the others are called like their domain.
_SERVERS = {
    "gmail.com": ("smtp.gmail.com", 587),
    "hotmail.com": ("smtp-mail.outlook.com", 587),
    "live.com": ("smtp-mail.outlook.com", 587),
    "outlook.com": ("smtp.outlook.com", 587),
    "office365.com": ("smtp.office365.com", 587),
    "yahoo.com": ("smtp.mail.yahoo.com", 465),
    "fastmail.com": ("smtp.fastmail.com", 465),
    "gmx.de": ("mail.gmx.com", 587),
    "gmx.net": ("mail.gmx.com", 587),
    "gmx.com": ("mail.gmx.com", 587),
}
_PORTS = {"ssl": 465, "starttls": 587, "insecure": 25}
_LOGS_IN_BY_ADDRESS = frozenset(_SERVERS)


class MessageAccount(msgspec.Struct, frozen=True):
    """An account of the configuration: `kind` is `email` or `notify`, `to` has the addresses of mails."""

    kind: str
    name: str
    settings: str
    to: str = ""
    secrets: tuple[ImportedSecret, ...] = ()


class _Mail(msgspec.Struct, frozen=True):
    url: str
    sender: str
    to: str
    password: str | None
    notes: tuple[str, ...] = ()


class AccountBook:
    """The accounts of a whole backup: one URL is one account, whichever watches use it."""

    def __init__(self) -> None:
        self._names: dict[tuple[str, str], str] = {}
        self._taken: set[str] = set()

    def accounts(self, urls: list[str], notes: list[str]) -> list[MessageAccount]:
        """Return the accounts for notification URLs; a URL that cannot be taken over gets a note."""
        found: list[MessageAccount] = []
        chats: list[str] = []
        for url in dict.fromkeys(each.strip() for each in urls):
            scheme = _SCHEME.match(url)
            if scheme is None or "{{" in url or "{%" in url:
                notes.append("A notification URL is no URL that can be taken over (it may be a template).")
            elif scheme[1].lower() in _OWN_SCHEMES:
                notes.append(
                    f"Notifications by {scheme[1].lower()}:// are an invention of changedetection.io: "
                    "use json://, form:// or xml:// of apprise."
                )
            elif scheme[1].lower() in _MAIL_SCHEMES:
                found += self._mail(url, notes)
            else:
                chats.append(url)
        return [*found, *([self._chat(chats)] if chats else [])]

    def _name(self, kind: str, identity: str, wanted: str) -> str:
        known = self._names.get((kind, identity))
        if known is not None:
            return known
        base = re.sub(r"[^a-z0-9]+", "-", wanted.lower()).strip("-")[:40] or kind
        base = base if base[0].isalpha() else f"{kind}-{base}"
        name, number = base, 2
        while f"{kind} {name}" in self._taken:
            name, number = f"{base}-{number}", number + 1
        self._taken.add(f"{kind} {name}")
        self._names[kind, identity] = name
        return name

    def _chat(self, urls: list[str]) -> MessageAccount:
        schemes = dict.fromkeys(url.partition(":")[0].lower() for url in urls)
        name = self._name("notify", "\n".join(urls), "-".join(schemes))
        secrets = tuple(
            ImportedSecret(
                _secret_name("NOTIFY", name, number if len(urls) > 1 else None),
                f"the notification URL that begins with {url.partition(':')[0].lower()}://",
                url,
            )
            for number, url in enumerate(urls, 1)
        )
        listed = ", ".join(f'"secret:{each.name}"' for each in secrets)
        value = f"[{listed}]" if len(secrets) > 1 else listed
        return MessageAccount("notify", name, f"[notify.{name}]\nurl = {value}\n", secrets=secrets)

    def _mail(self, url: str, notes: list[str]) -> list[MessageAccount]:
        try:
            mail = _read_mail(urlsplit(url))
        except ValueError:
            mail = None
        if mail is None:
            notes.append("A mailto:// notification URL has no address that mail can be sent to.")
            return []
        notes += [each for each in mail.notes if each not in notes]
        identity = f"{mail.url}\n{mail.sender}\n{mail.password}"
        name = self._name("email", identity, urlsplit(mail.url).hostname or "mail")
        lines = [f"[email.{name}]", f"url = {_toml(mail.url)}", f"from = {_toml(mail.sender)}"]
        secrets: tuple[ImportedSecret, ...] = ()
        if mail.password:
            secret = ImportedSecret(
                _secret_name("MAIL", name), f"the password of {mail.sender} for sending mail", mail.password
            )
            secrets = (secret,)
            lines.append(f'password = "secret:{secret.name}"')
        return [MessageAccount("email", name, "\n".join(lines) + "\n", mail.to, secrets)]


def _secret_name(kind: str, name: str, number: int | None = None) -> str:
    text = f"{kind}_{name}".replace("-", "_").upper()
    return text if number is None else f"{text}_{number}"


def _toml(text: str) -> str:
    """Return a text as a string of TOML; its escapes are those of JSON."""
    return msgspec.json.encode(text).decode().replace("\x7f", "\\u007f")


def _read_mail(url: SplitResult) -> _Mail | None:
    """Return the mail account of a mailto:// URL, as apprise reads it, or None without a recipient."""
    query = {name.lower(): values[-1].strip() for name, values in parse_qs(url.query).items()}
    host = (url.hostname or "").lower()
    user = unquote(url.username or query.get("user", ""))
    password = unquote(url.password) if url.password else query.get("pass") or None
    own = user if "@" in user else f"{user}@{host}" if user else ""
    sender = _sender(query, own)
    to = ", ".join(_addresses(url.path, query)) or own or _address_in(query.get("from", ""))
    if not _ADDRESS.fullmatch(to.split(", ")[0]) or not host:
        return None
    known = _SERVERS.get(host if "smtp" not in query else "")
    server = query.get("smtp") or (known[0] if known else host)
    if not _HOST.fullmatch(server):
        return None
    if known and host in _LOGS_IN_BY_ADDRESS:
        user = own
    mode = query.get("mode", "").lower()
    port = url.port or (known[1] if known and not mode else 0)
    if mode not in _PORTS:
        is_plain = url.scheme.lower() == "mailto" and not known
        mode = "ssl" if port == _PORTS["ssl"] else "insecure" if is_plain else "starttls"
    notes = []
    if mode == "insecure" and password:
        mode = "starttls"
        notes.append("Its mail goes over an encrypted connection: a password is not sent over any other.")
    scheme = {"ssl": "smtps", "starttls": "smtp", "insecure": "smtp+insecure"}[mode]
    login = f"{quote(user, safe='')}@" if user and password else ""
    if "cc" in query or "bcc" in query:
        notes.append("The cc= and bcc= of its mailto:// URL were left out: use CC and BCC of email.")
    return _Mail(
        f"{scheme}://{login}{server}:{port or _PORTS[mode]}",
        sender or to.split(", ")[0],
        to,
        password,
        tuple(notes),
    )


def _sender(query: dict[str, str], own: str) -> str:
    given = query.get("from", "")
    address = _address_in(given) or own
    name = query.get("name", "") or ("" if _ADDRESS.fullmatch(given) else re.sub(r"<.*", "", given))
    name = re.sub(r'[\r\n"<>,\\@]+', " ", name).strip()
    return f"{name} <{address}>" if name and address else address


def _address_in(text: str) -> str:
    found = _ADDRESS.search(text)
    return found[0] if found else ""


def _addresses(path: str, query: dict[str, str]) -> list[str]:
    targets = [unquote(each) for each in path.split("/") if each]
    return list(dict.fromkeys(_ADDRESS.findall(" ".join([*targets, query.get("to", "")]))))
