"""Mails as they arrive: headers and parts read back by Python's own parser; Maildirs; accounts."""

from __future__ import annotations

import base64
import email
import email.policy
from email.header import decode_header, make_header
from email.message import EmailMessage
from mailbox import Maildir
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from aioflow.config.configuration import as_configuration, read_configuration
from aioflow.errors import InputError
from aioflow.messages.email.addresses import Mailbox, read_mailbox
from aioflow.messages.email.channel import EmailChannel
from aioflow.messages.email.mime import Mail, one_line
from aioflow.messages.email.settings import EMAIL, EmailAccount, EmailAccounts, SmtpAddress
from aioflow.messages.outbox.message import DeliveryError, Message
from aioflow.state.crash_points import watch
from tests.messages.mails import account, channel, mail
from tests.servers.smtp import SmtpServer


def parsed(message: Message) -> EmailMessage:
    found = email.message_from_bytes(Mail.of(message).as_bytes(), policy=email.policy.default)
    assert isinstance(found, EmailMessage)
    return found


def text_of(part: Any) -> str:
    return str(part.get_content()).replace("\r\n", "\n")


# --- headers ------------------------------------------------------------------------------------


async def test_a_mail_is_what_was_posted() -> None:
    encoded = base64.b64encode("ä,b\r\n".encode()).decode()
    attached = {"name": "houses.csv", "type": "text/csv", "base64": encoded}
    message = mail(
        to=["Jörg Ö <joerg@example.org>", "ann@example.org"],
        cc=['"B, C" <b@example.org>'],
        bcc=["dan@example.org"],
        reply_to="Desk <desk@example.org>",
        subject="Zwölf neue Häuser",
        text="Grüße\n",
        html="<p>Grüße</p>\n",
        attachments=[attached],
    )
    async with SmtpServer() as server, channel(server) as sender:
        await sender.deliver(message)
    found = server.kept[0].message
    assert found["From"].addresses[0].addr_spec == "watch@example.org"
    assert [(each.display_name, each.addr_spec) for each in found["To"].addresses] == [
        ("Jörg Ö", "joerg@example.org"),
        ("", "ann@example.org"),
    ]
    assert [(each.display_name, each.addr_spec) for each in found["Cc"].addresses] == [
        ("B, C", "b@example.org")
    ]
    assert found["Bcc"] is None
    assert str(found["Reply-To"]) == "Desk <desk@example.org>"
    assert found["Subject"] == "Zwölf neue Häuser"
    assert found["Date"] == "Sat, 31 Jan 2026 10:30:00 +0000"
    assert found["Message-ID"] == "<key-1@example.org>"
    assert found["Auto-Submitted"] == "auto-generated"
    assert found["X-Aioflow-Run"] == "run-7"
    text, html, file = found.get_body(("plain",)), found.get_body(("html",)), *found.iter_attachments()
    assert (text_of(text), text_of(html)) == ("Grüße\n", "<p>Grüße</p>\n")
    assert file.get_filename() == "houses.csv"
    assert file.get_payload(decode=True) == "ä,b\r\n".encode()
    assert found.get_content_type() == "multipart/mixed"
    assert all(len(line) <= 100 for line in server.kept[0].data.split(b"\r\n"))
    assert server.kept[0].data.isascii()


def test_every_copy_of_a_message_is_the_same() -> None:
    assert Mail.of(mail()).as_bytes() == Mail.of(mail()).as_bytes()
    assert Mail.of(mail()).message_id != Mail.of(mail("key-2")).message_id


def test_the_bytes_of_a_mail_are_the_same_in_every_version() -> None:
    attached = {"name": "houses.csv", "type": "text/csv", "base64": base64.b64encode(b"a,b\r\n").decode()}
    data = Mail.of(mail(subject="Zwölf", text="Grüße, eine lange Zeile", attachments=[attached])).as_bytes()
    assert data.decode("ascii").split("\r\n") == [
        "From: Watcher <watch@example.org>",
        "To: ann@example.org",
        "Subject: =?utf-8?b?WnfDtmxm?=",
        "Date: Sat, 31 Jan 2026 10:30:00 +0000",
        "Message-ID: <key-1@example.org>",
        "Auto-Submitted: auto-generated",
        "X-Aioflow-Run: run-7",
        "MIME-Version: 1.0",
        'Content-Type: multipart/mixed; boundary="=_m_be2974546978e3739e6d6da85c4be9f3"',
        "",
        "--=_m_be2974546978e3739e6d6da85c4be9f3",
        'Content-Type: multipart/alternative; boundary="=_a_be2974546978e3739e6d6da85c4be9f3"',
        "",
        "--=_a_be2974546978e3739e6d6da85c4be9f3",
        'Content-Type: text/plain; charset="utf-8"',
        "Content-Transfer-Encoding: quoted-printable",
        "",
        "Gr=C3=BC=C3=9Fe, eine lange Zeile",
        "--=_a_be2974546978e3739e6d6da85c4be9f3",
        'Content-Type: text/html; charset="utf-8"',
        "Content-Transfer-Encoding: quoted-printable",
        "",
        "<p>Two of them.</p>",
        "",
        "--=_a_be2974546978e3739e6d6da85c4be9f3--",
        "",
        "--=_m_be2974546978e3739e6d6da85c4be9f3",
        'Content-Type: text/csv; name="houses.csv"; charset="utf-8"',
        'Content-Disposition: attachment; filename="houses.csv"',
        "Content-Transfer-Encoding: base64",
        "",
        "YSxiDQo=",
        "",
        "--=_m_be2974546978e3739e6d6da85c4be9f3--",
        "",
    ]


def test_a_key_that_no_message_id_may_hold_is_hashed() -> None:
    message_id = Mail.of(mail("a b>\r\nX: y")).message_id
    assert len(message_id) == len("<@example.org>") + 64
    assert Mail.of(mail("a b>\r\nX: y")).message_id == message_id


def test_a_mail_without_html_has_one_part() -> None:
    found = parsed(mail(html=""))
    assert found.get_content_type() == "text/plain"
    assert text_of(found) == "Two of them.\n"


HEADERS = {"from", "to", "subject", "date", "message-id", "auto-submitted", "x-aioflow-run", "mime-version"}
# What ends lines for somebody, what looks like headers, and what encodes.
ODD = ["\r", "\n", "\0", "\x85", "\u2028", "\x0b", "Bcc: x@y.z", "=?utf-8?q?x?=", " ", ";", "é", "a"]
NASTY = st.lists(st.sampled_from(ODD)).map("".join) | st.text()


@given(NASTY)
@example("\r\nBcc: x@y.z\r\n\r\nbody")
@example("=?utf-8?q?Bcc=3A?=")
@example("x" * 5000)
@example("é" * 300)
@example("\ud800")
def test_no_subject_breaks_out_of_its_header(subject: str) -> None:
    data = Mail.of(mail(subject=subject, html="")).as_bytes()
    header, _, body = data.partition(b"\r\n\r\n")
    found = email.message_from_bytes(data, policy=email.policy.default)
    assert {name.lower() for name in set(found.keys())} == HEADERS | {
        "content-type",
        "content-transfer-encoding",
    }
    assert body == b"Two of them.\r\n"
    assert all(len(line) < 998 for line in header.split(b"\r\n"))
    assert b"\n" not in header.replace(b"\r\n", b"")
    assert b"\r" not in header.replace(b"\r\n", b"")
    raw = str(email.message_from_bytes(data)["Subject"])
    assert str(make_header(decode_header(raw))) == one_line(subject)


@given(NASTY, NASTY)
@settings(max_examples=60)
def test_no_name_breaks_out_of_its_header(name: str, other: str) -> None:
    names = [one_line(each)[:100] for each in (name, other)]
    to = [str(Mailbox("ann@example.org", each)) for each in names]
    found = parsed(mail(to=to, html=""))
    assert {header.lower() for header in set(found.keys())} == HEADERS | {
        "content-type",
        "content-transfer-encoding",
    }
    assert [each.addr_spec for each in found["To"].addresses] == ["ann@example.org"] * 2


@given(NASTY, NASTY)
@settings(max_examples=60)
def test_no_text_breaks_out_of_its_part(text: str, html: str) -> None:
    found = parsed(mail(text=text, html=html + "x"))
    assert [part.get_content_type() for part in found.walk()] == [
        "multipart/alternative",
        "text/plain",
        "text/html",
    ]


@given(st.text(st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp"))))
@settings(max_examples=60)
def test_texts_arrive_as_they_were(text: str) -> None:
    found = parsed(mail(text=f"{text}\n", html=f"<p>{text}</p>"))
    assert text_of(found.get_body(("plain",))) == f"{text}\n"
    assert text_of(found.get_body(("html",))) == f"<p>{text}</p>"


@pytest.mark.parametrize(
    "content",
    [
        {"to": ["ann@example.org\r\nRCPT TO:<x@y.z>"]},
        {"to": ["nobody"]},
        {"from": "x"},
        {"reply_to": "a\nb@c.d"},
        {"subject": None},
        {"text": 7},
        {"to": 7},
        {"attachments": [{"name": "a", "type": "text/csv\r\nX: y", "base64": ""}]},
        {"attachments": [{"name": "a", "type": "text/csv", "base64": "?"}]},
        {"attachments": [{}]},
    ],
)
async def test_a_damaged_message_is_given_up_and_reaches_no_server(content: dict[str, Any]) -> None:
    async with SmtpServer() as server, channel(server) as sender:
        with pytest.raises(DeliveryError, match="the message cannot be sent as it is") as caught:
            await sender.deliver(mail(**content))
    assert caught.value.final
    assert server.kept == []


# --- Maildirs -----------------------------------------------------------------------------------


async def deliver_to(folder: Path, message: Message) -> str:
    sender = EmailChannel(account(f"maildir:{folder}"))
    answer = await sender.deliver(message)
    await sender.close()
    return answer


async def test_a_maildir_takes_messages(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "mail"
    assert "kept as" in await deliver_to(folder, mail(bcc=["dan@example.org"]))
    [kept] = list(Maildir(folder, create=False))
    assert kept["Subject"] == "New houses"
    assert kept["Bcc"] == "dan@example.org"
    assert not list((folder / "tmp").iterdir())


async def test_a_second_delivery_of_a_message_makes_no_second_file(tmp_path: Path) -> None:
    await deliver_to(tmp_path, mail())
    assert "there already" in await deliver_to(tmp_path, mail())
    [kept] = (tmp_path / "new").iterdir()
    kept.rename(tmp_path / "cur" / f"{kept.name}:2,S")
    assert "there already" in await deliver_to(tmp_path, mail())
    await deliver_to(tmp_path, mail("key-2"))
    assert len(list((tmp_path / "new").iterdir())) == 1


@pytest.mark.parametrize("last", ["maildir-written", "maildir-moved"])
async def test_a_delivery_that_was_cut_short_can_be_repeated(tmp_path: Path, last: str) -> None:
    def stop(name: str) -> None:
        if name == last:
            raise OSError("killed")

    with watch(stop), pytest.raises(DeliveryError, match="killed"):
        await deliver_to(tmp_path, mail())
    await deliver_to(tmp_path, mail())
    assert len(list(Maildir(tmp_path, create=False))) == 1
    assert not list((tmp_path / "tmp").iterdir())


async def test_a_maildir_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "mail").write_text("")
    with pytest.raises(DeliveryError, match=r"cannot write into the Maildir .*mail: ") as caught:
        await deliver_to(tmp_path / "mail", mail())
    assert not caught.value.final


# --- accounts -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "host", "port", "security", "user"),
    [
        ("smtp://me@mail.example.org", "mail.example.org", 587, "starttls", "me"),
        ("smtp://mail.example.org:25", "mail.example.org", 25, "starttls", None),
        ("smtp://localhost:2525", "localhost", 2525, "none", None),
        ("smtp://[::1]:25", "::1", 25, "none", None),
        ("smtp+starttls://127.0.0.1", "127.0.0.1", 587, "starttls", None),
        ("smtps://me%40x.org@mail.example.org", "mail.example.org", 465, "tls", "me@x.org"),
        ("smtps://me@x.org@mail.example.org", "mail.example.org", 465, "tls", "me@x.org"),
        ("smtp+insecure://mail.example.org", "mail.example.org", 25, "none", None),
    ],
)
def test_addresses_of_servers(url: str, host: str, port: int, security: str, user: str | None) -> None:
    found = EmailAccounts(account(url)).find(None)
    assert found.target == SmtpAddress(host, port, security, user)  # type: ignore[arg-type]


def test_a_maildir_is_relative_to_the_file_that_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
    monkeypatch.chdir(tmp_path)
    plans = tmp_path / "plans"
    plans.mkdir()
    (plans / "aioflow.toml").write_text('[email.home]\nurl = "maildir:mail"\nfrom = "a@x.org"\n')
    assert EmailAccounts(read_configuration(plans)).find(None).target == plans / "mail"


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("url", "ftp://mail.example.org", "email.default.url must be 'smtp://user@host:587'"),
        ("url", "smtp://", "email.default.url must be"),
        ("url", "smtp://host:99999", "email.default.url must be"),
        ("url", "smtp://ho st", "email.default.url must be"),
        ("url", "smtp://host/inbox", "an address that ends with the host or its port"),
        ("url", "smtp://me:pepper@host", 'password = "secret:NAME"'),
        ("url", "maildir:", "'maildir:' and a folder"),
        ("from", "nobody", "an address like 'Watcher <me@example.org>'"),
        ("from", "a@x.org\r\nBcc: b@x.org", "control character"),
        ("reply_to", "a@x.org, b@x.org", "an address like"),
        ("password", "pepper", "'secret:NAME', with the NAME of a secret"),
        ("allow", ["exa mple"], "a list of domains"),
        ("timeout_seconds", 0, "a time greater than 0"),
        ("most_rows", 0, "a whole number of at least 1"),
    ],
)
def test_bad_values_of_an_account_are_told(key: str, value: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        as_configuration({"email": {"default": {key: value}}})
    assert message in str(caught.value)
    assert "pepper" not in str(caught.value)


def test_without_any_account_it_is_told_how_to_make_one() -> None:
    [problem] = EmailAccounts({}).problems(None)
    assert "no mail account is configured: write [email.default] url =" in problem
    assert 'url = "maildir:mail" to try it out' in problem


def tables(**accounts: dict[str, Any]) -> dict[str, Any]:
    return {"email": {name: {"from": "a@x.org", **keys} for name, keys in accounts.items()}}


def test_the_account_that_is_meant() -> None:
    both = EmailAccounts(tables(home={"url": "smtp://h"}, work={"url": "smtp://w"}))
    assert both.find("work").name == "work"
    assert "say VIA: home" in both.problems(None)[0]
    assert "there is no email account 'wrok'; did you mean 'work'?" in both.problems("wrok")[0]
    assert EmailAccounts(tables(home={"url": "smtp://h"})).find(None).name == "home"
    default = EmailAccounts(tables(home={"url": "smtp://h"}, default={"url": "smtp://d"}))
    assert default.find(None).name == "default"


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ({}, "[email.default] has no url"),
        ({"url": "smtp://me@host"}, "names the user 'me' and no password"),
        ({"url": "smtp://host", "password": "secret:MAIL"}, "its url names no user: smtp://user@host:587"),
        (
            {"url": "smtp+insecure://me@host", "password": "secret:MAIL"},
            "a password is not sent to host:25 without encryption",
        ),
        ({"url": "smtp://me@host", "password": "secret:NOBODY"}, "there is no secret 'NOBODY'"),
    ],
)
def test_what_is_missing_in_an_account(
    keys: dict[str, Any], problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIOFLOW_SECRET_MAIL", "pepper")
    monkeypatch.delenv("AIOFLOW_SECRET_NOBODY", raising=False)
    [found] = EmailAccounts(tables(default=keys)).problems(None)
    assert problem in found


def test_an_account_in_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
    monkeypatch.setenv("AIOFLOW_EMAIL_HOME_URL", "maildir:mail")
    monkeypatch.setenv("AIOFLOW_EMAIL_HOME_FROM", "a@x.org")
    found = EmailAccounts(read_configuration()).find("home")
    assert isinstance(found, EmailAccount)
    assert found.sender == Mailbox("a@x.org")


@pytest.mark.parametrize(
    ("allow", "address", "allowed"),
    [
        (["example.org"], "ann@example.org", True),
        (["Example.ORG"], "ann@EXAMPLE.org", True),
        (["example.org"], "ann@sub.example.org", False),
        (["example.org"], "ann@example.org.evil.example", False),
        (["ann@example.org"], "Ann@example.org", True),
        (["ann@example.org"], "bob@example.org", False),
        (["straße.example"], "ann@xn--strae-oqa.example", True),
        (["*"], "anybody@anywhere.example", True),
        ([], "ann@example.org", False),
        (["example.org", "*"], "ann%evil.example@example.org", False),
        (["example.org", "*"], "evil.example!ann@example.org", False),
        (["Ann%home@example.org"], "ann%home@example.org", True),
    ],
)
def test_who_may_get_mail_when_data_say_so(allow: list[str], address: str, allowed: bool) -> None:
    [found] = as_configuration(tables(default={"allow": allow})).sections(EMAIL).values()
    assert found.allows(read_mailbox(address)) is allowed
